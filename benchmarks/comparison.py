"""Methods side by side on two tables, Adult and an excerpt of a census: the tables of docs/methods.md.

All methods that can publish the whole table do, or, with `--few`, a few of its attributes: by the runs of `sfumato
compare`, which publish two thirds of the rows with known seeds. Finished runs are kept in the folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow as pa

from answers import FEW, census_rows
from sfumato import Schema, datasets
from sfumato.cli.options import read_contestants
from sfumato.compare import Results, carry_out_contest, open_contest
from sfumato.compare.contest import read_groups
from sfumato.exact import write_fraction

METHODS = "all,structurefirst:largest=10000"
"""All with an epsilon; one of them must be told the order of the largest count."""
MEASURES = {
    "total variation, 2-way": ("2-way distance", ".3f"),
    "relative error, all (median)": ("query error", ".3f"),
    "accuracy, naive Bayes": ("accuracy", ".3f"),
    "processor seconds": ("seconds", ".2f"),
}
"""What the tables show, what they call it, and how its numbers are written."""


def rows_of(table: str) -> tuple[pa.Table, Schema]:
    """Read a table and its schema."""
    if table == "census":
        return census_rows()
    found = datasets.adult()
    return found.table, found.schema


def written(results: Results) -> Iterator[str]:
    """Write a row for each method, with each measure at all epsilons: best first, by the first measure at the last."""
    means = {(one.method, one.measure, one.epsilon): one.mean for one in results.means()}
    epsilons = [write_fraction(one) for one in results.contest.epsilons]
    shown = {name: told for name, told in MEASURES.items() if name in results.measures}
    yield f"| method | {' | '.join(title for title, _ in shown.values())} |"
    yield f"|{' --- |' * (1 + len(shown))}"
    first = next(iter(shown))
    labels = [one.label for one in results.contest.contestants]
    for label in sorted(labels, key=lambda one: means[one, first, epsilons[-1]]):
        cells = [
            " · ".join(f"{means[label, name, one]:{form}}" for one in epsilons) for name, (_, form) in shown.items()
        ]
        yield f"| `{label}` | {' | '.join(cells)} |"
    yield from results.left_out


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table", choices=FEW.keys() - {"made up"})
    parser.add_argument("--few", action="store_true", help="A few attributes and the class.")
    parser.add_argument("--epsilons", default="0.1,0.5,1")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--measures", default="classification,marginals,queries,cost")
    parser.add_argument("--out", type=Path, default=Path("comparison"))
    given = parser.parse_args()
    table, schema = rows_of(given.table)
    if given.few:
        schema = schema.only([*FEW[given.table], schema.target or ""])
    contest = open_contest(
        *(table, schema, read_contestants(METHODS), [Fraction(one) for one in given.epsilons.split(",")]),
        runs=given.runs,
        groups=read_groups(given.measures),
    )
    given.out.mkdir(exist_ok=True)
    print("\n".join(written(carry_out_contest(contest, given.out, workers=1))))


if __name__ == "__main__":
    main()
