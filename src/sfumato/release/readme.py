"""The files of a release that are for people: what it is, what it is good for, how to read it, what columns mean.

Everything follows from the release: whoever has it can write these files again, and `verify` does.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sfumato.release.about import About
from sfumato.release.folder import RECORDS_FILE
from sfumato.release.manifest import WARNING
from sfumato.release.records import count_names, end_names, harmless
from sfumato.release.release import Release
from sfumato.release.risk import odds_of
from sfumato.release.worth import Expected, expected_errors
from sfumato.schema.attributes import Categorical, Numeric
from sfumato.schema.schema import variables_of

WORTH = "## What it is good for"
"""Where the section begins whose numbers are estimates."""
MOST_LISTED = 60
"""The most categories that a dictionary lists."""
FOLDER = {
    "README.md": "this page",
    "dictionary.csv": "what the columns mean",
    "records.parquet": "generalized records with their counts",
    "synthetic.parquet": "synthetic people, one in each row, with values as in the original table",
    "synthetic.csv": "synthetic people, one in each row, with values as in the original table",
    "measurements.parquet": "every count as it was measured",
    "structure.json": "the model and its structure, what each measurement asked, and its noise",
    "schema.json": "the public schema",
    "manifest.json": "the promise and the ledger; seals the others",
    "croissant.json": "the same for machines, as Croissant (MLCommons)",
    "datapackage.json": "the same for machines, as a Data Package (Frictionless)",
    "deployment.yaml": "what a registry of differential privacy deployments asks for",
}
"""What each file of a release holds."""
DICTIONARY = (
    *("column", "title", "kind", "type", "lower", "upper", "step", "missing", "values", "values_in_records"),
    "categories",
)
"""The columns of a dictionary."""


def readme(release: Release, files: Iterable[str]) -> str:
    """Write the page for those who open the folder, in which these files are."""
    about = About.parse(release.manifest.about)
    blocks = [
        f"# {_line(about.title or release.schema.name)}",
        *_opening(release, about),
        "## The promise",
        *_promise(release),
        WORTH,
        *_worth(expected_errors(release)),
        *_hidden(release),
        "## How to read it",
        *_reading(release, set(files)),
        "## What is in the folder",
        "\n".join(f"* `{name}`: {FOLDER[name]}" for name in FOLDER if name in {*files, "manifest.json"}),
        *_facts(about),
    ]
    return "\n\n".join(blocks) + "\n"


def _line(text: str) -> str:
    """A text on one line, without what would be markup."""
    shown = "".join(one if one.isprintable() else "�" for one in " ".join(text.split()))
    return shown.replace("<", "&lt;").replace("|", "\\|")


def _opening(release: Release, about: About) -> Iterator[str]:
    if about.description:
        yield _line(about.description)
    exact = release.is_exact and release.manifest.sampling == 1
    names = ", ".join(_line(name) for name in variables_of(release.schema))
    whose = "about them" if release.manifest.rows_per_person is None else "about persons"
    yield (
        f"{'' if exact else 'About '}{max(release.total, 0):,} {release.manifest.counted}, described by {names}. "
        f"It was made by Sfumato from a table {whose} that is not published. No row of that table is in it: "
        f"there are {_counted(release)}, from which everything else is estimated."
    )


def _counted(release: Release) -> str:
    if release.has_groups:
        return "groups with counts"
    return "noisy counts of a few attributes at a time, and a network of all attributes that was fitted to them"


def _promise(release: Release) -> Iterator[str]:
    manifest = release.manifest
    for one in manifest.warnings:
        yield f"**Warning.** {_line(one.removeprefix(WARNING))}"
    if not manifest.secure or manifest.promise is not None:
        yield _line(manifest.guarantee)
        return
    odds = odds_of(release)
    before, present, _ = odds.beliefs[0]
    yield (
        f"Whether or not any one {manifest.unit} was in the table, this release could have come about almost as easily "
        f"(differential privacy, epsilon = {manifest.epsilon}): it was at most {odds.presence:,.3g} times as probable "
        f"in one case as in the other. Someone who thought it {100 * before:.3g} % likely that a {manifest.unit} was "
        f"in the table may think it {100 * present:.3g} % likely afterwards, and no more, whatever else they know. "
        "Promises of several releases of one table add up."
    )


def _worth(expected: Sequence[Expected]) -> Iterator[str]:
    """Say what to expect of answers, by the release's own intervals."""
    if not expected:
        yield "There are too few questions to tell."
        return
    yield (
        "By its own intervals, of counts that are at least one in a hundred people. Smaller counts err more in "
        "relation to themselves; every answer says by how much."
    )
    titles = {"good for": "**Good for**", "fair for": "**With care for**", "not for": "**Not for**"}
    yield "\n".join(f"* {titles[one.verdict]} {one.sentence}" for one in expected)
    yield "**Not for** finding a person, or counts of a few people: no number here is exact."


def _hidden(release: Release) -> Iterator[str]:
    """Say which columns of the records are no use."""
    told = set(release.told_apart)
    hidden = [name for name in release.schema.predictors if name not in told]
    if hidden and told:
        yield (
            f"`records.parquet` does not tell apart {', '.join(f'`{_line(name)}`' for name in hidden)}: everybody has "
            "the same value there. Their distributions were measured by themselves all the same: ask for counts, or "
            "take synthetic people."
        )


def _reading(release: Release, files: set[str]) -> Iterator[str]:
    noisy, count = count_names(release.schema)
    ends = [end_names(release.schema)[name] for name in end_names(release.schema)]
    if release.is_exact:
        told = f"`{count}` says how many records a row stands for."
    else:
        told = (
            f"`{count}` says how many {release.manifest.counted} a row stands for, as a whole number; `{noisy}` is the "
            "estimate itself, which may be negative."
        )
    beside = (
        f" Beside an interval stand its ends as numbers, such as `{ends[0][0]}` and `{ends[0][1]}` (not included)."
        if ends
        else ""
    )
    yield f"{release.about_records.replace(RECORDS_FILE, f'`{RECORDS_FILE}`')} {told}{beside}"
    for name, (language, lines) in snippets(release, "synthetic.csv" if "synthetic.csv" in files else None).items():
        yield f"{name}:\n\n```{language}\n{lines}\n```"
    people = next((name for name in ("synthetic.csv", "synthetic.parquet") if name in files), None)
    if people == "synthetic.csv":
        yield "Excel and other spreadsheets: open `synthetic.csv` for people, or `dictionary.csv` for the columns."
        if any(harmless(text) != text for text in _texts(release)):
            yield (
                "In `synthetic.csv`, text that begins with = + - or @ has an apostrophe in front, so that no "
                "spreadsheet runs it."
            )
    else:
        yield (
            "Excel and other spreadsheets: load `records.parquet` with Power Query (Data, Get Data, From File, From "
            "Parquet), or write a CSV file with `sfumato sample . --out people.csv`."
        )
    yield (
        "Rows of `records.parquet` cannot say how far sums of them are off. Sfumato can: it answers with intervals, "
        "from everything that was measured."
    )


def _texts(release: Release) -> Iterator[str]:
    """All texts that synthetic people may show: names of columns, and of values."""
    for name, column in variables_of(release.schema).items():
        yield name
        if isinstance(column, Categorical):
            yield from column.tree.leaves


def snippets(release: Release, csv_file: str | None = None) -> Mapping[str, tuple[str, str]]:
    """How each tool reads the folder: its language, and the lines."""
    count, by = count_names(release.schema)[1], release.grouping
    column, number = _quoted(by), _quoted(count)
    plain = f'\n\npeople = pd.read_csv("{csv_file}")' if csv_file else ""
    return {
        "pandas": (
            "python",
            'import pandas as pd\n\nrecords = pd.read_parquet("records.parquet")\n'
            f"records.groupby({by!r}, observed=True)[{count!r}].sum(){plain}",
        ),
        "Polars": (
            "python",
            'import polars as pl\n\nrecords = pl.read_parquet("records.parquet")\n'
            f"records.group_by(pl.col({by!r}).cast(pl.String)).agg(pl.col({count!r}).sum())",
        ),
        "DuckDB": (
            "sql",
            f"SELECT {_identifier(by)}, sum({_identifier(count)}) AS people\nFROM 'records.parquet'\nGROUP BY ALL;",
        ),
        "R": (
            "r",
            'library(arrow)\n\nrecords <- read_parquet("records.parquet")\n'
            f"aggregate(records[[{number}]], by = list(value = records[[{column}]]), FUN = sum)",
        ),
        "Sfumato": (
            "python",
            'import sfumato\n\nrelease = sfumato.Release.load(".")\nrelease.count()  # everyone, with an interval\n'
            'release.sample(1000, "pandas")  # synthetic people',
        ),
    }


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _facts(about: About) -> Iterator[str]:
    said = {name: value for name, value in about.plain().items() if name not in ("title", "description")}
    if said:
        lines = [
            f"* {name}: {_line(', '.join(value) if isinstance(value, list) else value)}" for name, value in said.items()
        ]
        yield "## About it"
        yield "\n".join(lines)


def dictionary(release: Release) -> str:
    """Write what is public about every column, as CSV."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(DICTIONARY)
    writer.writerows([_harmless(str(row[name])) for name in DICTIONARY] for row in dictionary_rows(release))
    return written.getvalue()


def _harmless(text: str) -> str:
    """Keep a spreadsheet from taking a text for a formula; numbers are none."""
    return text if _is_number(text) else harmless(text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def dictionary_rows(release: Release) -> list[dict[str, Any]]:
    """What is public about every column: those of the table, and those that records have besides."""
    schema = release.schema
    ends, (noisy, count) = end_names(schema), count_names(schema)
    parts, counted = _parts_of(release), release.manifest.counted
    rows = []
    for name, column in variables_of(schema).items():
        rows.append(_row(name, column) | {"values_in_records": parts.get(name, "")})
        rows += [
            _blank(end, f"{side} end of the interval of {name}", "end of an interval", _type(column))
            for end, side in zip(ends.get(name, ()), ("lower", "upper"), strict=False)
        ]
    if not release.is_exact:
        rows.append(_blank(noisy, f"estimated number of {counted}, with noise", "count", "number"))
    return [*rows, _blank(count, f"number of {counted} in the group", "count", "integer")]


def _parts_of(release: Release) -> dict[str, int]:
    """How many different values the records have of each attribute."""
    if release.model.regions is None:
        return {}
    schema = release.schema
    parts = {name: len(side.ranges) for name, side in zip(schema.predictors, release.sides, strict=True)}
    return parts | ({schema.target: len(schema.classes)} if schema.target else {})


def _blank(name: str, title: str, kind: str, type_: str) -> dict[str, Any]:
    return dict.fromkeys(DICTIONARY, "") | {"column": name, "title": title, "kind": kind, "type": type_}


def _row(name: str, column: Categorical | Numeric) -> dict[str, Any]:
    facts = _blank(name, column.title, column.kind, _type(column)) | {
        "values": column.leaves,
        "missing": column.missing or "",
    }
    if isinstance(column, Numeric):
        last = column.edge(column.cells)
        step = "" if column.is_uneven else str(column.step)
        return facts | {"lower": column.edge(0), "upper": str(column.upper) if column.is_whole else last, "step": step}
    leaves = [*column.tree.leaves[:MOST_LISTED], *(["…"] if column.leaves > MOST_LISTED else [])]
    return facts | {"categories": " | ".join(leaves)}


def _type(column: Categorical | Numeric) -> str:
    """The type of values in the original table and in synthetic people."""
    if isinstance(column, Categorical):
        return "string"
    return "date" if column.is_date else "integer" if column.is_whole else "number"
