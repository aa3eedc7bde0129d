"""What came of a comparison: a row for every method, epsilon, run and measure; means with standard errors; files."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.compare.contest import Contest, Run
from sfumato.compare.measures import MEASURES
from sfumato.compare.publishing import Bench, measured
from sfumato.errors import ReleaseError
from sfumato.evaluate.averages import mean_and_error
from sfumato.evaluate.card import NOT_PRIVATE
from sfumato.evaluate.runs import Kept, Outcome, Watch, carry_out
from sfumato.exact import write_fraction
from sfumato.storage import reason_of, refuse_no_folder

NO_GUARANTEE = "Every release was made with a known seed, carries no guarantee, and was not kept; nothing was debited."
RUNS, RESULTS, SUMMARY = "runs", "results.parquet", "summary.csv"


@dataclass(frozen=True)
class Found:
    """One value: of a method or of a level (raw data, most frequent class), in one run."""

    method: str
    epsilon: str | None
    run: int
    measure: str
    value: float


@dataclass(frozen=True)
class Mean:
    """The mean of a measure over runs, and its standard error if there are several."""

    method: str
    epsilon: str | None
    measure: str
    mean: float
    standard_error: float | None
    runs: int


@dataclass(frozen=True, eq=False)
class Results:
    """All values of a comparison. Not private."""

    contest: Contest
    found: tuple[Found, ...]
    left_out: tuple[str, ...]
    """who or what is missing, and why"""

    def means(self) -> list[Mean]:
        """Give the mean of every measure, in the order in which methods and measures are known."""
        values: dict[tuple[str, str | None, str], list[float]] = {}
        for one in self.found:
            values.setdefault((one.method, one.epsilon, one.measure), []).append(one.value)
        return [Mean(*what, *mean_and_error(several), len(several)) for what, several in values.items()]

    @property
    def measures(self) -> list[str]:
        """The names of what was measured of any method."""
        known = {one.measure for one in self.found}
        return [name for name in MEASURES if name in known]

    def plain(self) -> dict[str, Any]:
        """Give plain values for JSON."""
        return {
            "warning": NOT_PRIVATE,
            "guarantee": NO_GUARANTEE,
            "protocol": self.contest.protocol,
            "summary": [asdict(one) for one in self.means()],
            "left_out": list(self.left_out),
        }


def carry_out_contest(
    contest: Contest, folder: Path, *, workers: int | None = None, watch: Watch = lambda _done, _all: None
) -> Results:
    """Do all runs that are not kept in the folder yet, and gather what came of them."""
    refuse_no_folder(folder)
    runs = contest.runs()
    with _explained(folder):
        outcomes = carry_out(
            partial(measured, Bench.of(contest)),
            [run.key for run in runs],
            Kept(folder / RUNS),
            workers=workers,
            watch=watch,
        )
    pairs = list(zip(runs, outcomes, strict=True))
    refused = {f"{_place(run)}: {outcome['refused']}." for run, outcome in pairs if "refused" in outcome}
    found = tuple(one for run, outcome in pairs for one in _found(run, outcome))
    return Results(contest, found, (*contest.left_out, *sorted(refused)))


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Say in one sentence why a folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise ReleaseError(
            f"out ({str(folder)[:200]}) must be a folder that can be written ({reason_of(error)})",
            "Name another place, or make room.",
        ) from None


def _place(run: Run) -> str:
    return str(run.label) if run.epsilon is None else f"{run.label} at epsilon {write_fraction(run.epsilon)}"


def _found(run: Run, outcome: Outcome) -> Iterator[Found]:
    epsilon = None if run.epsilon is None else write_fraction(run.epsilon)
    by_method: Mapping[str, Mapping[str, float]] = outcome.get("levels", {str(run.label): outcome.get("values", {})})
    for method, values in by_method.items():
        for name in MEASURES:
            if name in values:
                yield Found(method, epsilon, run.number, name, values[name])


def write_results(results: Results, folder: Path, draw: Callable[[Path], None] | None) -> list[str]:
    """Write the table, the summary and, if they can be drawn, the pictures: all together, over older ones."""
    with _explained(folder), tempfile.TemporaryDirectory(dir=folder, prefix=".partial-") as staging:
        place = Path(staging)
        _write_table(results, place / RESULTS)
        _write_summary(results, place / SUMMARY)
        if draw is not None:
            draw(place)
        names = sorted(path.name for path in place.iterdir())
        for name in names:
            os.replace(place / name, folder / name)
    return names


def _write_table(results: Results, path: Path) -> None:
    rows = [asdict(one) for one in results.found]
    kinds = [("method", pa.string()), ("epsilon", pa.string()), ("run", pa.int32())]
    schema = pa.schema([*kinds, ("measure", pa.string()), ("value", pa.float64())])
    facts = {
        "warning": NOT_PRIVATE,
        "guarantee": NO_GUARANTEE,
        "protocol": results.contest.protocol,
        "left_out": json.dumps(results.left_out, ensure_ascii=False),
    }
    pq.write_table(pa.Table.from_pylist(rows, schema).replace_schema_metadata(facts), path)


def _write_summary(results: Results, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*Mean.__dataclass_fields__, "guarantee"])
        writer.writerows([*asdict(one).values(), "none: known seed, not private"] for one in results.means())
