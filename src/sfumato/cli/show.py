"""How results, errors and progress look on a terminal, and as JSON for programs.

Every command speaks through here, so that `--json` means the same everywhere and an error is always one sentence and
the way out, on standard error, with exit code 2. Whatever a release, a schema or a table is called or holds, nothing of
it reaches the terminal raw.

Where nobody watches, no progress is told.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from sfumato.errors import MethodError, SfumatoError

if TYPE_CHECKING:
    from sfumato import Release, Schedule

REFUSED = 2
"""The exit code of a refusal."""
NO_GUARANTEE = "NO GUARANTEE: this release was made with a known seed; whoever knows it sees the true counts."
"""What stands above all that is shown of a seeded release."""
release_argument = click.argument("release", type=click.Path())


def reporting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flag `--json` to a command, and let its errors be shown, not thrown."""

    @click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")
    @functools.wraps(command)
    def shown(*arguments: Any, as_json: bool, **options: Any) -> Any:
        try:
            return command(*arguments, show=Show(as_json), **options)
        except SfumatoError as error:
            Show(as_json).error(error)
            sys.exit(REFUSED)
        except MemoryError:
            Show(as_json).error(SfumatoError("the table must fit in memory", "Use a machine with more of it."))
            sys.exit(REFUSED)
        except Exception as error:
            if click.get_current_context().find_root().obj:
                raise
            kind = type(error).__name__
            Show(as_json).error(
                SfumatoError(
                    f"Sfumato must not fail like this ({kind})", "Report it, without the data; see sfumato --debug."
                )
            )
            sys.exit(REFUSED)

    return shown


class OneSentence(click.Group):
    """A group of commands that refuses wrong words in the same way as wrong values."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run a command; show click's own complaints as one sentence and the way out."""
        try:
            return super().main(*arguments, **(options | {"standalone_mode": False}))
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else "sfumato"
            problem = " ".join(error.format_message().split()).rstrip(".")
            as_json = "--json" in (options.get("args") or (arguments[0] if arguments else None) or sys.argv)
            Show(as_json).error(SfumatoError(f"the command must be well-formed: {problem}", f"See {command} --help."))
            sys.exit(REFUSED)
        except click.Abort:
            sys.exit(130)


class Show:
    """Where the words of a command go: to people as text, or to programs as JSON."""

    def __init__(self, as_json: bool) -> None:
        """Choose between people and programs."""
        self._as_json = as_json
        self._unsafe = False

    def opened(self, folder: str) -> Release:
        """Open a release; what is shown of one that was made with a known seed says so, each time."""
        from sfumato import Release

        release = Release.load(folder)
        self._unsafe = not release.manifest.secure
        return release

    def result(self, plain: Any, text: str) -> None:
        """Show a result, as JSON or as text."""
        if self._unsafe:
            plain = {"no_guarantee": NO_GUARANTEE} | (plain if isinstance(plain, dict) else {"result": plain})
            text = f"{NO_GUARANTEE}\n{text}"
        click.echo(visible_json(plain, 2) if self._as_json else visible(text, lines=True))

    def error(self, error: SfumatoError) -> None:
        """Show an error on standard error."""
        plain = {"error": {"kind": type(error).__name__, "problem": error.problem, "remedy": error.remedy}}
        click.echo(visible_json(plain) if self._as_json else f"error: {visible(str(error))}", err=True)

    def aside(self, text: str) -> None:
        """Tell something on standard error, on a line of its own."""
        click.echo(("\r\x1b[K" if sys.stderr.isatty() else "") + visible(text, lines=True), err=True)

    def progress(self, text: str) -> None:
        """Show what is being done, where a person is watching."""
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{visible(text)} ...", err=True, nl=False)

    @contextmanager
    def working(self, plan: Schedule | None = None) -> Iterator[Callable[[str], None]]:
        """Yield a function that tells what is being done, round by round if there is a plan, and clear the line at the
        end.
        """
        from sfumato.progress import Progress

        try:
            yield Progress(self.progress, plan) if plan else self.progress
        finally:
            if sys.stderr.isatty():
                click.echo("\r\x1b[K", err=True, nl=False)


def visible(text: str, *, lines: bool = False) -> str:
    """Write what a terminal would act on as it is written in code: control characters, marks that change the direction
    or are not to be seen. Ends of lines are ours where the text is (`lines`), and are escaped where it is a value.

    >>> visible("a\\x1b[2Jb\\u202ec"), visible("two\\nlines"), visible("two\\nlines", lines=True)
    ('a\\\\x1b[2Jb\\\\u202ec', 'two\\\\nlines', 'two\\nlines')
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or (lines and one == "\n") else _escaped(one) for one in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def visible_json(plain: Any, indent: int | None = None) -> str:
    """Write JSON in which everything that is not to be seen stands escaped, too, as JSON has it."""
    text = json.dumps(plain, indent=indent, ensure_ascii=False, default=str)
    return "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text)


def table(rows: Sequence[Sequence[Any]], header: Sequence[str], right: Sequence[int] = ()) -> str:
    """Lay rows out in columns, the given ones flush right."""
    cells = [[visible(str(cell)) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    aligned = [
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    ruled = [aligned[0], "  ".join("-" * width for width in widths), *aligned[1:]]
    return "\n".join(line.rstrip() for line in ruled)


def lacking(command: str, library: str, extras: str = "evaluate") -> MethodError:
    """The error of a command that cannot do without a library."""
    return MethodError(f"{command} must have {library}", f"Install it with pip install 'sfumato[{extras}]'.")
