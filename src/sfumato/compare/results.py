"""The runs of a comparison, carried out, and what came of them: values, means with standard errors, files and pictures.

A run publishes the rows to learn from with a known seed, and measures the release by them and by the other rows. The
raw rows are measured, too. Nothing is debited from the table's own account: no release leaves a run, only measures for
the holder.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato
from sfumato import Method, MethodWithoutEpsilon, Release, Schema, seeded_release
from sfumato.arrays import CodedRows
from sfumato.compare.contest import (
    DISTANCES,
    MEASURES,
    REGIONS,
    TREE,
    Contest,
    Group,
    Measure,
    Run,
    accuracy_name,
    area_name,
    digest_of,
    distance_name,
    error_names,
    interval_names,
    learners_of,
    match_name,
)
from sfumato.errors import ReleaseError, SfumatoError, TableError
from sfumato.evaluate.card import NOT_PRIVATE, Cost, cost_of
from sfumato.evaluate.clusters import MOST_CLUSTERED, matches
from sfumato.evaluate.coverage import measured_intervals
from sfumato.evaluate.fidelity import (
    QUERIES,
    certainty_penalty_of,
    discernibility_of,
    errors_by_size,
    marginal_distances,
    precision_of,
    random_queries,
    sizes_of,
)
from sfumato.evaluate.known import known_measures
from sfumato.evaluate.learning import (
    PAPERS_TREE,
    Learner,
    Trial,
    accuracy,
    accuracy_of_regions,
    graded,
    lot,
    majority_accuracy,
    most_learnt,
    splits,
    teach,
)
from sfumato.evaluate.runs import Kept, Key, Outcome, Watch, carry_out, mean_and_error
from sfumato.exact import write_fraction
from sfumato.pictures.canvas import Curve, Panel, draw_panels
from sfumato.storage import reason_of, refuse_no_folder

Value = tuple[str, float]
"""The name of a measure, and its value."""
Level = Literal["raw data", "most frequent class"]
"""What releases are held against: a learner that saw the raw rows (BA), and one that always says the same (LA)."""
NO_GUARANTEE = "Every release was made with a known seed, carries no guarantee, and was not kept; nothing was debited."
"""What every result of a comparison says of its releases."""
RUNS, RESULTS, SUMMARY = "runs", "results.parquet", "summary.csv"
"""In the folder of a comparison: the folder of finished runs, the table of all values, and their means."""
LEVELS = {"raw data": "raw data (BA)", "most frequent class": "most frequent class (LA)"}
"""What pictures call the levels."""
NOTE = "Releases made with known seeds: no guarantee.\nWorked out from raw data: for the holder's eyes, not private."
"""What is written below every picture."""


@dataclass(frozen=True)
class Found:
    """One value: of a method or of a level, in one run."""

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
        """The mean of every measure, in the order in which methods and measures are known."""
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
        """The results as plain values, for JSON."""
        return {
            "warning": NOT_PRIVATE,
            "guarantee": NO_GUARANTEE,
            "protocol": self.contest.protocol,
            "summary": [asdict(one) for one in self.means()],
            "left_out": list(self.left_out),
        }


def carry_out_contest(
    contest: Contest, folder: Path, *, workers: int | None = None, watch: Watch | None = None
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
    """Write all values, their means and, if they can be drawn, the pictures: all together, over older ones. Return the
    names of the files.
    """
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


def draw_gallery(results: Results, folder: Path) -> None:
    """Draw every measure that some method has, in a picture of its own or a panel of one."""
    means, pictures = results.means(), dict[str, list[Measure]]()
    for name in results.measures:
        pictures.setdefault(MEASURES[name].picture, []).append(MEASURES[name])
    for title, several in pictures.items():
        panels = [panel_of(results, each, [one for one in means if one.measure == each.name]) for each in several]
        draw_panels(folder / f"{several[0].file}.png", title, panels, note=NOTE)


def panel_of(results: Results, measure: Measure, means: Sequence[Mean]) -> Panel:
    """The curves of a measure, and the levels that it has."""
    curves = [
        _curve(one.label, [mean for mean in means if mean.method == one.label], results.contest.epsilons)
        for one in results.contest.contestants
    ]
    levels = [(LEVELS[one.method], one.mean) for one in means if one.method in LEVELS]
    levels += [] if measure.aim is None else [(f"as stated ({100 * measure.aim:g} %)", measure.aim)]
    return Panel(
        title=f"{measure.panel}{': ' if measure.panel else ''}{measure.better} is better",
        quantity="epsilon",
        measure=measure.axis,
        curves=tuple(curve for curve in curves if curve.at),
        levels=tuple(levels),
        logarithmic=(True, measure.logarithmic and all(one.mean > 0 for one in means)),
    )


def _curve(label: str, means: Sequence[Mean], epsilons: Sequence[Fraction]) -> Curve:
    """The means of a method over epsilon; a method without one is the same everywhere."""
    places = {
        at: one
        for one in means
        for at in ([float(Fraction(one.epsilon))] if one.epsilon is not None else map(float, epsilons))
    }
    ordered = [(at, places[at]) for at in sorted(places)]
    several = any(one.standard_error is not None for _, one in ordered)
    errors = tuple(one.standard_error or 0.0 for _, one in ordered) if several else None
    return Curve(label, tuple(at for at, _ in ordered), tuple(one.mean for _, one in ordered), errors)


@dataclass(frozen=True, eq=False)
class Bench:
    """What every run is given beside its key."""

    table: Any
    schema: Schema
    methods: tuple[Method | MethodWithoutEpsilon, ...]

    @classmethod
    def of(cls, contest: Contest) -> Bench:
        """Take what the runs of a contest need."""
        return cls(contest.table, contest.schema, tuple(one.method for one in contest.contestants))

    def method(self, key: Key) -> Method | MethodWithoutEpsilon:
        """Find the method that a key means."""
        return next(one for one in self.methods if one.name == key["what"] and one.parameters == key["parameters"])


@dataclass(frozen=True, eq=False)
class Opened:
    """A table that was read: its rows as they are, and coded."""

    known_by: tuple[str, str]
    """the digests of its coded rows and of the schema"""
    rows: pa.Table
    codes: CodedRows


_LAST: list[Opened] = []
"""The table that this process read last: the next run is of the same."""


def measured(bench: Bench, key: Key) -> Outcome:
    """Do a run: values by name, or by level and name for the raw rows; or why the method refuses."""
    opened = _opened(bench, (key["table"], key["schema"]))
    parts = splits(key["protocol"], opened.rows.num_rows, 0)
    seed, part = divmod(key["run"], len(parts))
    learnt, tested = splits(key["protocol"], opened.rows.num_rows, seed)[part]
    trial = Trial(*({name: codes[chosen] for name, codes in opened.codes.items()} for chosen in (learnt, tested)))
    if key["what"] == "raw data":
        return {"levels": levels_of(bench.schema, trial, key["measures"], key["run"])}
    rows, method = opened.rows.take(learnt), bench.method(key)
    try:
        release, cost = cost_of(lambda: seeded_release(rows, bench.schema, method, key["epsilon"], key["run"]))
    except SfumatoError as error:
        return {"refused": error.problem}
    values = values_of(release, trial, key["measures"], key["run"])
    return {"values": values | (_cost(cost) if "cost" in key["measures"] else {})}


def _cost(cost: Cost) -> dict[str, float]:
    known = {"processor seconds": cost.processor_seconds, "seconds": cost.seconds, "peak MB": cost.peak_megabytes}
    return {name: value for name, value in known.items() if value is not None}


def _opened(bench: Bench, known_by: tuple[str, str]) -> Opened:
    """Read the table, unless it was read for the run before; refuse one that is no longer what was compared."""
    if not (_LAST and _LAST[0].known_by == known_by):
        coded = sfumato.coded(bench.table, bench.schema, misfits=True)
        if digest_of(coded) != known_by[0]:
            raise TableError("a table must not change while methods are compared on it", "Start again.")
        columns = [*coded.columns, *filter(None, [bench.schema.person])]
        _LAST[:] = [Opened(known_by, sfumato.raw_rows(bench.table, columns), coded.columns)]
    return _LAST[0]


@dataclass(frozen=True, eq=False)
class Judged:
    """A release of the rows to learn from, records drawn from it, and a seed for whatever is drawn by lot."""

    release: Release
    trial: Trial
    drawn: CodedRows
    seed: int

    @property
    def rows(self) -> int:
        """How many rows were published."""
        return _rows(self.trial.train)


def values_of(release: Release, trial: Trial, groups: Sequence[Group], seed: int) -> dict[str, float]:
    """Measure a release of a trial's training rows: by them, and what can be learnt from it by the test rows."""
    judged = Judged(release, trial, release.sample_codes(seed=seed), seed)
    found: list[Value] = []
    if release.schema.target is not None:
        found += _learnt(judged, learners_of(tuple(groups)))
        if "classification" in groups and release.disjoint:
            found += [(TREE, accuracy(release, trial.test)), (REGIONS, accuracy_of_regions(release, trial.test))]
    if "information" in groups and release.has_groups:
        found += _information(judged)
    if "marginals" in groups:
        found += _marginals(judged)
    if "queries" in groups:
        found += _queries(judged)
    if "intervals" in groups:
        found += _intervals(judged)
    if "known" in groups and _rows(judged.drawn):
        found += known_measures(release.schema, trial.train, judged.drawn, seed, trial.test).items()
    if "clusters" in groups and _rows(judged.drawn):
        found += _clusters(judged)
    return dict(found)


def levels_of(schema: Schema, trial: Trial, groups: Sequence[Group], seed: int) -> dict[Level, dict[str, float]]:
    """What raw rows teach each learner, and what always saying their most frequent class is worth."""
    raw: dict[str, float] = {}
    learners = [*learners_of(tuple(groups)), *((PAPERS_TREE,) if "classification" in groups else ())]
    seen = lot(trial.train, most_learnt(schema), seed)
    for learner in dict.fromkeys(learners):
        right, area = graded(teach(learner, schema, seen), schema, trial.test)
        if learner == PAPERS_TREE and "classification" in groups:
            raw |= {TREE: right, REGIONS: right}
        if learner != PAPERS_TREE or "learners" in groups:
            raw |= {accuracy_name(learner): right, area_name(learner): area}
    lower = majority_accuracy(trial.train, trial.test, str(schema.target))
    return {
        "raw data": raw,
        "most frequent class": {name: lower if name.startswith("accuracy") else 0.5 for name in raw},
    }


def _rows(records: CodedRows) -> int:
    return len(next(iter(records.values())))


def _learnt(judged: Judged, learners: Sequence[Learner]) -> Iterator[Value]:
    """Teach learners by drawn records; where there is none, the first class is as good as any."""
    schema, test = judged.release.schema, judged.trial.test
    seen = lot(judged.drawn, most_learnt(schema), judged.seed)
    for learner in learners:
        if _rows(seen):
            right, area = graded(teach(learner, schema, seen), schema, test)
        else:
            right, area = float((np.asarray(test[str(schema.target)]) == 0).mean()), 0.5
        yield accuracy_name(learner), right
        yield area_name(learner), area


def _information(judged: Judged) -> Iterator[Value]:
    predictors, partition = judged.release.schema.predictors, judged.release.regions
    sizes = sizes_of(judged.release, [judged.trial.train[name] for name in predictors], judged.rows)
    yield "discernibility", float(discernibility_of(sizes))
    yield "NCP", certainty_penalty_of(partition, sizes)
    yield "precision", precision_of(list(predictors.values()), partition, sizes)


def _marginals(judged: Judged) -> Iterator[Value]:
    for one in marginal_distances(judged.release.schema, judged.trial.train, judged.drawn, judged.seed):
        if one.distance in DISTANCES:
            yield distance_name(one.distance, one.ways), one.mean


def _queries(judged: Judged) -> Iterator[Value]:
    asked = random_queries(judged.release.schema, QUERIES, judged.seed)
    for one in errors_by_size(judged.release, asked, judged.trial.train, judged.rows):
        yield from zip(error_names(one.size), (one.mean, one.median), strict=True)


def _intervals(judged: Judged) -> Iterator[Value]:
    for one in measured_intervals(judged.release, judged.trial.train, judged.rows, judged.seed):
        yield from zip(interval_names(one.level, one.questions_of), (one.coverage, one.width, one.score), strict=True)


def _clusters(judged: Judged) -> Iterator[Value]:
    rows, drawn = (lot(records, MOST_CLUSTERED, judged.seed) for records in (judged.trial.train, judged.drawn))
    for one in matches(judged.release, rows, drawn):
        yield match_name(one.clusters, one.after), one.match_point
