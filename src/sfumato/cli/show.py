"""How results and errors look on a terminal, and as JSON for programs.

Every command speaks through here, so that `--json` means the same everywhere and an error is always one sentence and
the way out, on standard error, with exit code 2.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from sfumato.cli.progress import Progress
from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Schedule

REFUSED = 2


def reporting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command its `--json` flag and let its errors be shown, not thrown."""

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
            kind = type(error).__name__
            Show(as_json).error(
                SfumatoError(f"Sfumato must not fail like this ({kind})", "Report it, without the data.")
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
    """Where a command's words go."""

    def __init__(self, as_json: bool) -> None:
        """Speak to people, or to programs."""
        self._as_json = as_json

    def result(self, plain: Any, text: str) -> None:
        """Show a result, as JSON or as text."""
        click.echo(json.dumps(plain, indent=2, ensure_ascii=False, default=str) if self._as_json else text)

    def error(self, error: SfumatoError) -> None:
        """Show an error on standard error."""
        plain = {"error": {"kind": type(error).__name__, "problem": error.problem, "remedy": error.remedy}}
        click.echo(json.dumps(plain, ensure_ascii=False) if self._as_json else f"error: {error}", err=True)

    def aside(self, text: str) -> None:
        """Tell something on standard error, on a line of its own."""
        click.echo(("\r\x1b[K" if sys.stderr.isatty() else "") + text, err=True)

    def progress(self, text: str) -> None:
        """Show what is being done, where a person is watching."""
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{text} ...", err=True, nl=False)

    @contextmanager
    def working(self, plan: Schedule | None = None) -> Iterator[Callable[[str], None]]:
        """Give a way to tell what is being done, round by round if there is a plan; clear the line afterwards."""
        try:
            yield Progress(self.progress, plan) if plan else self.progress
        finally:
            if sys.stderr.isatty():
                click.echo("\r\x1b[K", err=True, nl=False)


def table(rows: Sequence[Sequence[Any]], header: Sequence[str], right: Sequence[int] = ()) -> str:
    """Lay rows out in columns, the given ones flush right."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
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
