"""How to read the files of a release, in words that can be copied: only files that this release has are named."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sfumato.release.records import count_names
from sfumato.release.release import Release
from sfumato.report.html import Html, paragraph, section, table, tag

FILES = {
    "manifest.json": "the promise and the ledger; seals the others",
    "schema.json": "the public schema",
    "geometry.json": "of what kind the regions are, and how much noise counts have",
    "records.parquet": "generalized records with their counts: the file to open",
    "margins.parquet": "one-way counts by which people are spread inside regions",
    "nodes.parquet": "the tree of cuts",
    "counts.parquet": "counts of the regions as they were measured",
    "earlier.parquet": "counts bought on the way to the regions",
    "histogram.parquet": "noisy counts of single cells, from which the groups were made",
    "boxes.parquet": "the ranges of the groups, which may overlap",
}


def loading_section(release: Release, folder: str) -> Html:
    """Show how to open the release."""
    names = ["manifest.json", *sorted(release.manifest.files)]
    rows = [(Html(tag("code", name)), FILES.get(name, "")) for name in names]
    noisy, count = count_names(release.schema)
    told = (
        f"{count} is the exact number of records of a group{_drawn(release)}."
        if release.counts.is_exact
        else f"{noisy} is the estimate with its noise, which may be negative; {count} is a whole number of people that "
        "is not, and sums to the noisy total."
    )
    shown = [
        part
        for name, code in snippets(release, folder).items()
        for part in (tag("h3", name), tag("pre", tag("code", code)))
    ]
    return section(
        "loading",
        "How to load it",
        paragraph(
            "A row of records.parquet is a group: a generalized value of every attribute, and how many people. ", told
        ),
        *shown,
        tag("h3", "What is in the folder"),
        table(("file", "what it holds"), rows),
    )


def _drawn(release: Release) -> str:
    sampling = release.manifest.sampling
    return "" if sampling == 1 else f"; each record of the table was published with probability {sampling} at most"


def snippets(release: Release, folder: str) -> dict[str, str]:
    """Write how each tool reads the records and adds them up by one attribute; Sfumato itself answers questions."""
    path, count = f"{folder}/records.parquet", count_names(release.schema)[1]
    by = grouping_of(release)
    quoted = json.dumps(path, ensure_ascii=False)
    column, number = json.dumps(by, ensure_ascii=False), json.dumps(count)
    return {
        "pandas": f"import pandas as pd\n\nrecords = pd.read_parquet({path!r})\n"
        f"print(records.groupby({by!r}, observed=True)[{count!r}].sum())",
        "Polars": f"import polars as pl\n\nrecords = pl.read_parquet({path!r})\n"
        f"print(records.group_by(pl.col({by!r}).cast(pl.String)).agg(pl.col({count!r}).sum()))",
        "DuckDB": f"SELECT {_identifier(by)}, sum({_identifier(count)}) AS people\n"
        f"FROM read_parquet({_literal(path)})\nGROUP BY ALL ORDER BY people DESC;",
        "R": f"library(arrow)\n\nrecords <- read_parquet({quoted})\n"
        f"aggregate(records[[{number}]], by = list(value = records[[{column}]]), FUN = sum)",
        "Sfumato": f"import sfumato\n\nrelease = sfumato.Release.load({folder!r})\n"
        "print(release.count())  # everyone, with the error of the noise\n"
        'people = release.sample(1000, "pandas")  # synthetic records with original values',
    }


def grouping_of(release: Release) -> str:
    """Choose the attribute of the examples: the first that the regions tell apart, or the class, or any."""
    names: Sequence[str] = list(release.schema.predictors)
    told_apart = [names[at] for at in release.partition.split_attributes]
    return next(iter([*told_apart, *filter(None, [release.schema.target]), *names]), count_names(release.schema)[1])


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
