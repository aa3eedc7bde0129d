"""How results, errors and progress look on a terminal, and as JSON for programs.

Every command speaks through here, so that `--json` means the same everywhere and an error is always one sentence and
the way out, on standard error, with exit code 2. Whatever a release, a schema or a table is called or holds, nothing of
it reaches the terminal raw.

A person who waits is told which round is under way, of how many, since when, and about how long it will take; a bar
stands for work of many steps. Where nobody watches, nothing is told. All of it is public: rounds and their number stand
in the plan, or follow from what was released; time is time. Nothing that was counted is ever told.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from sfumato.errors import MethodError, SfumatoError

if TYPE_CHECKING:
    from sfumato import Release, Schedule

REFUSED = 2
"""The exit code of a refusal."""
LAST = 5
"""The number of rounds by which it is told how long a round takes, the last ones."""
STEPS = ("reading the table", "writing the release")
"""The parts of publishing that are no rounds."""
NO_GUARANTEE = "NO GUARANTEE: this release was made with a known seed; whoever knows it sees the true counts."
"""What stands above all that is shown of a seeded release."""
WIDTH = 30
"""The width of a bar."""
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


class Progress:
    """Turns the names of rounds into lines that tell how far a publication is.

    Where a plan is open, rounds follow from what was found so far: nobody knows how many, so what is told of them is
    how long one takes.

    >>> from fractions import Fraction
    >>> from sfumato import Schedule
    >>> told, plan = [], Schedule({"choice 1": Fraction(1, 2), "counts": Fraction(1, 2)})
    >>> progress = Progress(told.append, plan, clock=iter([0, 10, 40]).__next__)
    >>> progress("reading the table"); progress("choice 1"); progress("counts")
    >>> told[1:]
    ['round 1 of 2: choice 1 (0:10 so far)', 'round 2 of 2: counts (0:40 so far, about 0:30 left)']
    """

    def __init__(
        self, tell: Callable[[str], None], plan: Schedule, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with the plan."""
        self._tell = tell
        self._rounds, self._open = plan.rounds, plan.open_part is not None
        self._clock = clock
        self._begun: float | None = None
        self._asked: list[float] = []

    def __call__(self, label: str) -> None:
        """Tell that something begins."""
        now = self._clock()
        self._begun = now if self._begun is None else self._begun
        if label in STEPS:
            self._tell(label)
            return
        self._asked.append(now)
        self._tell(f"round {self._number(label)}: {label} ({_clock(now - self._begun)} so far{self._outlook(label)})")

    def _number(self, label: str) -> str:
        if label not in self._rounds:
            return str(len(self._asked))
        return f"{len(self._asked)} of {len(self._rounds)}" + (" planned" if self._open else "")

    def _outlook(self, label: str) -> str:
        """How long it will take, if the rounds that are left, this one too, last as long as those before did on
        average.
        """
        done = self._asked[-LAST:]
        if len(done) < 2:
            return ""
        if self._open:
            return "" if label in self._rounds else f", about {(done[-1] - done[0]) / (len(done) - 1):.1f} s a round"
        each = (self._asked[-1] - self._asked[0]) / (len(self._asked) - 1)
        return f", about {_clock(each * max(len(self._rounds) - len(self._asked) + 1, 1))} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Steps:
    """Counts finished steps, of how many; those that were finished before took no time."""

    def __init__(self, what: str, tell: Callable[[str], None]) -> None:
        """Begin to count."""
        self._what, self._tell, self._start = what, tell, time.monotonic()
        self._before: int | None = None
        self.done, self.all = 0, 0

    @property
    def before(self) -> int:
        """How many steps were finished before it began."""
        return self._before or 0

    def __call__(self, done: int, of: int) -> None:
        """Show how far it is."""
        if self._before is None:
            self._before = done
        self.done, self.all = done, of
        self._tell(bar(self._what, done, of, done - self._before, time.monotonic() - self._start))


def bar(what: str, done: int, of: int, fresh: int, seconds: float) -> str:
    """A bar for work of many steps; what is left is estimated by the steps that were done now.

    >>> bar("runs", 5, 10, 5, 60.0)
    'runs [###############               ] 5 of 10, about 60 s left'
    """
    filled = "#" * (WIDTH * done // max(of, 1))
    left = ", about " + _duration(seconds * (of - done) / fresh) + " left" if fresh and done < of else ""
    return f"{what} [{filled:{WIDTH}}] {done:,} of {of:,}{left}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
