"""Options that commands share: which table, how it is counted, by which method it is published, and what that would
cost.

Methods' options are their parameters, taken from the methods themselves. Methods to compare are written as
`diffgen,mondrian:k=10,diffmulti:as-published`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato import ENGINES, METHODS, WITHOUT_EPSILON, Method, MethodWithoutEpsilon, Schedule, Schema, epsilon_of
from sfumato.cli.show import table
from sfumato.errors import MethodError

if TYPE_CHECKING:
    from sfumato.compare.contest import Contestant

Command = Callable[..., Any]
EVERY: Mapping[str, Any] = {**METHODS, **WITHOUT_EPSILON}
ALL = "all"
"""In the place of methods: all that have an epsilon and need no parameter."""
"""All methods, with and without epsilon."""
_IN_MEMORY = [name for name, method in WITHOUT_EPSILON.items() if method.engines == ("local",)]
"""The methods that only one machine, in memory, counts for."""
ENGINE_OPTIONS = ("engine", "memory", "master", "scratch")
"""The names of the options that say how a table is counted."""
AS_PUBLISHED = "as-published"
"""What is written after the name of a method to compare that is to be the paper's."""
HOW = "Write for example diffgen:specializations=10,mondrian:k=10,mondrian:k=60."
"""How methods to compare are written, for those who wrote them otherwise."""


def listed(names: Iterable[str]) -> str:
    """Names as they stand in a sentence.

    >>> listed(["confidence", "mondrian", "tds"]), listed(["tds"])
    ('confidence, mondrian and tds', 'tds')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


schema_option = click.option(
    "--schema", "schema_path", type=click.Path(), help="The schema file [default: beside the data]."
)


def source_options(command: Command) -> Command:
    """Add the options that choose what is read of DATA."""
    command = click.option(
        "--sql",
        metavar="QUERY",
        help="Columns and rows to read: a select from one table of the DuckDB database DATA, or from `data`, which is "
        "what the Parquet files DATA are called.",
    )(command)
    command = click.option(
        "--encoding", metavar="NAME", help="How the CSV file DATA is written, such as cp1252 [default: UTF-8]."
    )(command)
    return click.option("--table", metavar="NAME", help="The table of the DuckDB database, or sheet of the workbook.")(
        command
    )


_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(list(ENGINES)),
        default="auto",
        show_default=True,
        help=f"Who counts: auto is this machine (local), or Spark for what lies there. {listed(_IN_MEMORY)} work on "
        "single records, in memory only.",
    ),
    click.option("--memory", metavar="SIZE", help="The memory to use, such as 4GB [default: half of what is free]."),
    click.option("--master", metavar="URL", help="The Spark cluster, such as spark://host:7077 or local[4]."),
    click.option(
        "--scratch",
        type=click.Path(),
        help="The folder for coded rows that do not fit in memory, removed at the end [default: beside the ledger].",
    ),
)


def engine_options(command: Command) -> Command:
    """Add the options that say how a table is counted."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def how_counted(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was said about counting, for the account."""
    return {name: options[name] for name in ENGINE_OPTIONS}


def options_of(methods: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Add to a command an option for every parameter of any of these methods."""

    def with_options(command: Command) -> Command:
        for name in reversed(list(dict.fromkeys(one.name for method in methods.values() for one in fields(method)))):
            said = _help(name, methods)
            command = click.option(written(name), name, metavar="VALUE", help=said)(command)
        return command

    return with_options


OPTIONS = {one.name: one.metadata["option"] for method in EVERY.values() for one in fields(method)}
"""What parameters are called on the command line, where it is not by their names."""


PARAMETERS = {option: name for name, option in OPTIONS.items() if option}
"""The same the other way round."""


def written(name: str) -> str:
    """The option of a parameter.

    >>> written("max_cells"), written("purpose")
    ('--max-cells', '--for')
    """
    return f"--{OPTIONS.get(name) or name.replace('_', '-')}"


HELPS = ("--help-all", "--help")
"""The options that show options."""


class ManyOptions(click.Command):
    """A command with an option for every parameter of every method: `--help` shows those that people use, `--help-all`
    all of them, a section for each method.
    """

    common: tuple[str, ...] = ()
    """the options that `--help` shows, in this order"""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Add `--help-all` to the options."""
        return [*super().get_params(ctx), _HELP_ALL]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options that people use, and how to see the others."""
        found = {option: one for one in self.get_params(ctx) for option in one.opts}
        self._section(ctx, formatter, "Options", [found[option] for option in (*self.common, *HELPS)])

    def get_full_help(self, ctx: click.Context) -> str:
        """Write all options: those that people use, those of each method, the rest."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)
        known = {written(one.name) for method in EVERY.values() for one in fields(method)}
        known |= {*self.common, *HELPS}
        rest = [one for one in self.get_params(ctx) if isinstance(one, click.Option) and not known & {*one.opts}]
        self._section(ctx, formatter, "More options", rest)
        for name, method in EVERY.items():
            told = [(f"{written(one.name)} VALUE", _help(one.name, {name: method})) for one in fields(method)]
            if told:
                with formatter.section(f"Options of {name}"):
                    formatter.write_dl(told)
        return formatter.getvalue().rstrip("\n")

    @staticmethod
    def _section(
        ctx: click.Context, formatter: click.HelpFormatter, title: str, options: Iterable[click.Parameter]
    ) -> None:
        told = [record for one in options if (record := one.get_help_record(ctx)) is not None]
        with formatter.section(title):
            formatter.write_dl(told)


def _show_all(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and isinstance(ctx.command, ManyOptions):
        click.echo(ctx.command.get_full_help(ctx))
        ctx.exit()


_HELP_ALL = click.Option(
    ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all, help="Show all options."
)


def _help(name: str, methods: Mapping[str, Any]) -> str:
    """What a parameter does, said once for methods that agree, and its defaults."""
    declared = {method.name: one for method in methods.values() for one in fields(method) if one.name == name}
    said: dict[str, list[str]] = {}
    for method, one in declared.items():
        said.setdefault(one.metadata["says"], []).append(method)
    texts = [text if len(saying) == len(methods) else f"({', '.join(saying)}) {text}" for text, saying in said.items()]
    defaults = {method: _plain(one.default) for method, one in declared.items() if one.default not in (None, MISSING)}
    if len(set(defaults.values())) == 1:
        defaults = {"default": next(iter(defaults.values()))}
    shown = ", ".join(f"{method} {default}" for method, default in defaults.items())
    return " ".join(texts) + (f" [{shown}]" if shown else "")


def _plain(default: object) -> str:
    return {True: "yes", False: "no"}.get(default, str(default)) if isinstance(default, bool) else str(default)


def _given(value: str, *, file: bool) -> str:
    """The value of an option: what a file holds if it begins with @ or is the name of a file, else what was written."""
    if not (file or value.startswith("@")):
        return value
    path = value.removeprefix("@")
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise MethodError(f"file ({path}) must be text that can be read", "Look at its name.") from problem


def make_method(name: str, given: Mapping[str, Any], *, as_published: bool) -> Method | MethodWithoutEpsilon:
    """Make the named method from the options that were given, refusing those that it does not have, or lacks."""
    method = EVERY[name]
    files = {one.name for one in fields(method) if one.metadata["file"]}
    options: dict[str, Any] = {
        key: _given(value, file=key in files) for key, value in given.items() if value is not None
    }
    if as_published and not hasattr(method, "as_published"):
        raise MethodError(f"as-published must go with a method that we changed, and {name} is not", "Leave it out.")
    known = inspect.signature(method.as_published).parameters if as_published else [one.name for one in fields(method)]
    for key in [key for key in options if key not in known]:
        what = f"{name} as published" if as_published else name
        raise MethodError(
            f"option {written(key)} must belong to the method, and {what} does not have it",
            f"It has {', '.join(map(written, known)) or 'no options'}.",
        )
    for key in [one.name for one in fields(method) if one.default is MISSING and one.name not in options]:
        raise MethodError(f"{name} must have its {key}", f"Give --{key}.")
    made: Method | MethodWithoutEpsilon = method.as_published(**options) if as_published else method(**options)
    return made


def read_contestants(text: str) -> list[Contestant]:
    """Read methods, separated by commas, each with its options after colons; `all` is all with an epsilon.

    A comma before what is no method's name belongs to the option before it, as in `mondrian:k=10:quasi=age,sex`.
    """
    written: list[str] = []
    for word in (word.strip() for word in text.split(",")):
        if word == ALL:
            written += [
                one for one, method in METHODS.items() if all(each.default is not MISSING for each in fields(method))
            ]
        elif word.split(":")[0] in EVERY:
            written.append(word)
        elif written and "=" in written[-1]:
            written[-1] += f",{word}"
        else:
            raise MethodError(f"methods ({word[:40]}) must be one of {', '.join(EVERY)}", HOW)
    return [_contestant(one) for one in written]


def _contestant(written: str) -> Contestant:
    from sfumato.compare.contest import Contestant

    name, *options = [part.strip() for part in written.split(":")]
    as_published = AS_PUBLISHED in options
    given: dict[str, str] = {}
    for option in options:
        if option == AS_PUBLISHED:
            continue
        key, equals, value = option.partition("=")
        if not equals or not key or not value:
            raise MethodError(f"option ({option[:40]}) of {name} must be written as name=value", HOW)
        given[PARAMETERS.get(key.strip(), key.strip().replace("-", "_"))] = value.strip()
    lacking = [one.name for one in fields(EVERY[name]) if one.default is MISSING and one.name not in given]
    if lacking:
        some = "10" if lacking[0] == "k" else "..."
        raise MethodError(f"{name} must have its {lacking[0]}", f"Write for example {name}:{lacking[0]}={some}.")
    return Contestant(" ".join([name, *options]), make_method(name, given, as_published=as_published))


def refuse_unfit_options(method: Method | MethodWithoutEpsilon, options: Mapping[str, Any]) -> None:
    """Refuse options that do not go with the method, and a differentially private method without an epsilon."""
    if isinstance(method, MethodWithoutEpsilon):
        _refuse(method.name, options, ("epsilon",), "a differentially private method")
        _refuse(method.name, options, ("memory", "master", "scratch"), "a method that only counts")
        if method.drawn == 1:
            _refuse(method.name, options, ("unsafe_seed",), "a method that draws at random")
    else:
        _refuse(method.name, options, ("despite_budget",), "a method without epsilon")
        if options["epsilon"] is None:
            raise MethodError(f"{method.name} must have an epsilon to spend", "Give for example --epsilon 1.")


def _refuse(method: str, options: Mapping[str, Any], names: tuple[str, ...], owner: str) -> None:
    for name in names:
        if options[name] not in (None, False):
            raise MethodError(
                f"option --{name.replace('_', '-')} must go with {owner}, and {method} is none", "Leave it out."
            )


def plan_shown(method: Method | MethodWithoutEpsilon, schema: Schema, epsilon: str) -> tuple[dict[str, Any], str]:
    """The schedule of debits, or what would be promised instead, as plain values and as text."""
    if isinstance(method, MethodWithoutEpsilon):
        kept = method.narrowed(schema)
        promise = method.promise(kept)
        plain = {"promise": promise.plain(), "adversary": promise.adversary, "published": list(kept.attributes)}
        published = f"Published, and alone read: {', '.join(kept.attributes)}"
        return plain, f"{promise.guarantee}\n\n{promise.adversary}\n\n{published}"
    records = schema.rows_per_person
    schedule = method.plan(schema, epsilon_of(epsilon) / records).times(records)
    return {"schedule": {label: str(part) for label, part in schedule.parts.items()}}, _schedule_text(schedule)


def _schedule_text(schedule: Schedule) -> str:
    rows = [(label, str(part), f"{float(part):.6f}") for label, part in schedule.parts.items()]
    return table(
        [*rows, ("total", str(schedule.total), f"{float(schedule.total):.6f}")], ("round", "epsilon", "about"), (1, 2)
    )
