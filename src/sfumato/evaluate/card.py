"""The scorecard of a release: all measures that apply to it, what using it costs, and what was left out and why.

It reads the raw table, so what it says is not private: it is for the holder, and never enters a release. Costs are of
reading, asking and drawing from a release: seconds of the processor and of the clock, and the memory added at the peak.
What publishing cost cannot be told from a release: it depends on the rows, so it must not stand there.
"""

from __future__ import annotations

import ctypes
import gc
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

import sfumato
from sfumato import Coded, Condition, Release, Schema
from sfumato.arrays import CodedRows
from sfumato.errors import ReleaseError, TableError
from sfumato.evaluate.clusters import MOST_CLUSTERED, Match, matches
from sfumato.evaluate.coverage import KINDS, LEVELS, QUESTIONS, RESTRICTED, Intervals, measured_intervals
from sfumato.evaluate.fidelity import (
    FLOOR,
    QUERIES,
    MarginalDistance,
    QueryErrors,
    RangeQuery,
    certainty_penalty_of,
    discernibility_of,
    errors_by_size,
    marginal_distances,
    precision_of,
    random_queries,
    sizes_of,
)
from sfumato.evaluate.known import known_measures
from sfumato.evaluate.learning import Lesson, Protocol, Trial, lessons, lot, most_learnt, splits
from sfumato.evaluate.runs import one_thread
from sfumato.evaluate.verdict import CountErrors, Verdict, count_errors, verdict_of
from sfumato.markup import joined, paragraph, table, tag
from sfumato.progress import rounds_watched

Result = TypeVar("Result")
NOT_PRIVATE = "Worked out from the raw data: for the holder's eyes, not private, not to be published."
"""What every result that was worked out from raw rows says of itself."""
NO_GROUPS = "the release is a network, not groups"
"""Why measures of groups are left out."""
STATUS, FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
"""Where Linux says how much memory this process holds, and where it is told to forget the peak so far."""
PEAK_ONLY = "5"
"""Written to `FORGET`: forget the peak, and nothing else."""


@dataclass(frozen=True)
class Cost:
    """What some work cost this process."""

    processor_seconds: float
    seconds: float
    peak_megabytes: float | None
    """the most that it held beyond what was held before; unknown on systems that do not tell"""


def cost_of(work: Callable[[], Result]) -> tuple[Result, Cost]:
    """Do some work; return what came of it, and what it cost."""
    _give_back()
    before = _held()
    processor, clock = time.process_time(), time.perf_counter()
    result = work()
    spent = time.process_time() - processor, time.perf_counter() - clock
    peak = None if before is None else _kilobytes("VmHWM") - before
    return result, Cost(*spent, None if peak is None else max(peak, 0) / 1024)


def _give_back() -> None:
    """Return free memory to the system, so that work cannot use it unseen."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _held() -> int | None:
    """Let the system forget the peak so far, and return the kilobytes that are held now; None if it does not tell."""
    try:
        FORGET.write_text(PEAK_ONLY)
        return _kilobytes("VmRSS")
    except OSError:
        return None


def _kilobytes(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


@dataclass(frozen=True)
class Use(Cost):
    """What one use of a release cost."""

    what: str


def costs_of_use(release: Release, asked: Sequence[Condition], seed: int) -> list[Use]:
    """Measure what it costs to read the release anew, as everyone must who has its folder; to ask it; and to draw from
    it.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "release"
        release.save(folder)
        opened, reading = cost_of(lambda: Release.load(folder))
    _, answering = cost_of(partial(opened.count_many, asked))
    drawn, drawing = cost_of(partial(opened.sample, seed=seed))
    return [
        Use(**asdict(reading), what="reading it"),
        Use(**asdict(answering), what=f"answering {len(asked):,} range counts"),
        Use(**asdict(drawing), what=f"drawing {drawn.num_rows:,} records"),
    ]


@dataclass(frozen=True)
class ScoreTable:
    """One table of a scorecard as text: what it is about, its columns, its rows, and which columns hold numbers."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    numbers: Sequence[int]


@dataclass(frozen=True)
class Scorecard:
    """What a release is worth. Not private."""

    release: str
    rows: int
    people: int
    """how many records the release stands for"""
    lessons: tuple[Lesson, ...]
    information: dict[str, float]
    marginals: tuple[MarginalDistance, ...]
    queries: tuple[QueryErrors, ...]
    intervals: tuple[Intervals, ...]
    clusters: tuple[Match, ...]
    counts: tuple[CountErrors, ...]
    """errors of counts that an analyst would ask for"""
    known: dict[str, float]
    """measures that people know from elsewhere"""
    use: tuple[Use, ...] = field(compare=False)
    """what it costs to use the release, on this machine and today"""
    notes: tuple[str, ...]
    """how it was measured"""
    left_out: tuple[str, ...]
    """what does not apply, and why"""

    def plain(self) -> dict[str, Any]:
        """The scorecard as plain values, for JSON."""
        worth = [asdict(one) | {"cost": one.cost, "benefit": one.benefit} for one in self.lessons]
        return {"warning": NOT_PRIVATE} | asdict(self) | {"lessons": worth}

    def verdict(self, target: str | None) -> Verdict:
        """Say in words what the release is good for."""
        return verdict_of(self, target)

    def _repr_html_(self) -> str:
        words = tag("ul", *(tag("li", line) for line in self.verdict(None).lines))
        return joined(
            [paragraph(NOT_PRIVATE), words, *(table(one.header, one.rows, one.numbers) for one in self.tables(None))]
        )

    def tables(self, target: str | None) -> list[ScoreTable]:
        """Lay out as tables all but what use costs, given the class attribute of the release."""
        return list(tables_of(self, target))


@dataclass(frozen=True, eq=False)
class _Reference:
    """What a release is measured by: the coded table, and records drawn from the release."""

    release: Release
    table: CodedRows
    rows: int
    drawn: CodedRows
    seed: int

    @property
    def nobody(self) -> bool:
        """Whether the release has no record to draw."""
        return not len(next(iter(self.drawn.values())))


def scorecard(
    release: Release,
    table: Any,
    test: Any = None,
    *,
    protocol: Protocol = "2/3",
    seed: int = 0,
    watch: Callable[[str], None] | None = None,
) -> Scorecard:
    """Measure a release by its table (a path or a frame), and what can be learnt from it by a test set, if one is
    given.

    Without a test set the table is split by a protocol of the papers. The seed decides whatever is drawn by lot.
    `watch` is told what begins; without it, a notebook shows a bar.
    """
    with rounds_watched(watch, None) as tell:
        return _scored(release, table, test, protocol, seed, tell)


def _scored(
    release: Release, table: Any, test: Any, protocol: Protocol, seed: int, watch: Callable[[str], None]
) -> Scorecard:
    coded = _coded(table, release.schema, "the data")
    tested = None if test is None else _coded(test, release.schema, "the test set")
    given = _Reference(release, coded.columns, coded.rows, release.sample_codes(seed=seed), seed)
    excuses = _excuses(given)
    trials = [] if "Classification" in excuses else _trials(given, tested, protocol)
    with one_thread():
        watch("learning the class")
        learnt = lessons(release, given.drawn, trials, seed) if trials else []
        watch("counting groups and ranges")
        information, queries = _information(given), _queries(given)
        watch("holding intervals against the rows")
        intervals = measured_intervals(release, given.table, given.rows, seed)
        watch("comparing marginals")
        fidelity = [] if given.nobody else marginal_distances(release.schema, given.table, given.drawn, seed)
        watch("measuring as others do")
        counts = count_errors(release, given.table, given.rows, seed)
        known = {} if given.nobody else known_measures(release.schema, given.table, given.drawn, seed, _control(tested))
        watch("clustering")
        clustered = [] if "Clusters" in excuses else _clusters(given)
        watch("using the release")
        use = costs_of_use(release, [one.weights(release.schema) for one in _asked(given)], seed)
    return Scorecard(
        release=repr(release),
        rows=coded.rows,
        people=release.total,
        lessons=tuple(learnt),
        information=information,
        marginals=tuple(fidelity),
        queries=tuple(queries),
        intervals=tuple(intervals),
        clusters=tuple(clustered),
        counts=tuple(counts),
        known=known,
        use=tuple(use),
        notes=(*_notes_on_trials(trials, tested, protocol, seed), *_notes(given, coded)),
        left_out=tuple(f"{what}: {why}." for what, why in excuses.items()),
    )


def _control(tested: Coded | None) -> CodedRows | None:
    return None if tested is None else tested.columns


def _coded(table: Any, schema: Schema, what: str) -> Coded:
    """Read a table by the release's schema; refuse one that is not of it, or has no rows."""
    try:
        coded = sfumato.coded(table, schema)
    except TableError as error:
        remedy = "Evaluate with the table that was published, and a test set like it."
        raise ReleaseError(f"{what} must be of the release's schema: {error.problem}", remedy) from None
    if not coded.rows:
        raise TableError(f"{what} must have a row", "Evaluate with the table that was published.")
    return coded


def _excuses(given: _Reference) -> dict[str, str]:
    """What cannot be measured, and why."""
    schema, excuses = given.release.schema, {}
    if schema.target is None:
        excuses["Classification"] = "the release has no class attribute"
    if not given.release.disjoint:
        excuses["Accuracy on groups and by regions, Match Point of generalized rows"] = (
            "groups overlap, so a row has no group of its own" if given.release.has_groups else NO_GROUPS
        )
    if not given.release.has_groups:
        excuses["Information (discernibility, NCP, precision)"] = NO_GROUPS
    for what in ("Classification", "Clusters"):
        if not schema.predictors:
            excuses.setdefault(what, "the release has no attributes beside the class")
        elif given.nobody:
            excuses.setdefault(what, "the release has no people")
    if given.nobody:
        excuses["Marginals"] = "the release has no people"
    return excuses


def _trials(given: _Reference, tested: Coded | None, protocol: Protocol) -> list[Trial]:
    if tested is not None:
        return [Trial(given.table, tested.columns)]
    return [
        Trial(*({name: column[chosen] for name, column in given.table.items()} for chosen in split))
        for split in splits(protocol, given.rows, given.seed)
    ]


def _information(given: _Reference) -> dict[str, float]:
    if not given.release.has_groups:
        return {}
    predictors, partition = given.release.schema.predictors, given.release.regions
    sizes = sizes_of(given.release, [given.table[name] for name in predictors], given.rows)
    return {
        "discernibility": discernibility_of(sizes),
        "NCP": certainty_penalty_of(partition, sizes),
        "precision": precision_of(list(predictors.values()), partition, sizes),
    }


def _queries(given: _Reference) -> list[QueryErrors]:
    return errors_by_size(given.release, _asked(given), given.table, given.rows)


def _asked(given: _Reference) -> list[RangeQuery]:
    return random_queries(given.release.schema, QUERIES, given.seed)


def _clusters(given: _Reference) -> list[Match]:
    rows, drawn = (lot(records, MOST_CLUSTERED, given.seed) for records in (given.table, given.drawn))
    return matches(given.release, rows, drawn)


def _notes_on_trials(trials: list[Trial], tested: Coded | None, protocol: Protocol, seed: int) -> list[str]:
    if not trials:
        return []
    if tested is not None:
        return [f"Classification was tested on the {tested.rows:,} rows of the test set; BA was learnt from the data."]
    return [
        f"Classification was tested on rows of the table itself, which was also the published one: BA was learnt from "
        f"the rows that protocol {protocol} leaves for learning (seed {seed}), the release from all. Give a test set "
        "that was not published for an accuracy on new people."
    ]


def _notes(given: _Reference, coded: Coded) -> list[str]:
    """What was drawn by lot, smoothed or taken for something else."""
    drawn, learnt = len(next(iter(given.drawn.values()))), most_learnt(given.release.schema)
    notes = [
        f"{drawn:,} records were drawn from the release (seed {given.seed}); learners see {learnt:,} records at "
        f"most and clusters {MOST_CLUSTERED:,}, drawn by lot.",
        "Both trees split in two by entropy: the pruned one in the manner of C4.5, ID3 not pruned.",
        "Distances are of shares of rows, Kullback-Leibler in nats: one record more, spread evenly over all cells of "
        "the marginal, was added to the drawn ones. City-block is twice total variation.",
        f"{QUERIES:,} random range counts (seed {given.seed}) on 2 to 4 attributes each; errors are relative to the "
        f"truth, or to {FLOOR:.1%} of the rows if that is more.",
        f"Intervals were held against the rows by natural questions (seed {given.seed}), {QUESTIONS:,} on each number "
        f"of attributes from {RESTRICTED[0]} to {RESTRICTED[-1]}: ranges between two rows' values or two borders, "
        "values and categories. Sizes are of answers. The score is the width and 2 / (1 - level) times what the truth "
        "lies outside by, the less the better; means, in percent of all rows.",
        "Singling out is held against rows of the test set, if there is one; else against guesses that know nothing, "
        "and then much of it may be what anyone could guess of such people.",
        "Time and memory are of using the release, on one thread; memory is what was added at the peak.",
    ]
    if not given.release.disjoint:
        notes.append("Discernibility, NCP and precision are of the published records; suppressed ones have no group.")
    notes += [
        f"{name}: {rows:,} rows of the data outside the declared range count in the nearest cell."
        for name, rows in coded.outside.items()
    ]
    return notes


def tables_of(card: Scorecard, target: str | None) -> Iterator[ScoreTable]:
    """The tables of a card, without those that would be empty."""
    if card.lessons:
        yield _lessons(card, str(target))
    information = [
        (name, f"{value:,}" if isinstance(value, int) else f"{value:.4f}") for name, value in card.information.items()
    ]
    if information:
        yield ScoreTable("Information", ("measure", "value"), information, (1,))
    if card.marginals:
        yield _marginals(card)
    queries = [(one.size, f"{one.queries:,}", f"{one.mean:.3f}", f"{one.median:.3f}") for one in card.queries]
    yield ScoreTable("Relative error of range counts", ("size", "queries", "mean", "median"), queries, (1, 2, 3))
    if card.intervals:
        yield _intervals(card)
    if card.known:
        known = [
            (name, f"{value:,.0f}" if name.startswith("k-") else f"{value:.3f}") for name, value in card.known.items()
        ]
        yield ScoreTable("Measures known from elsewhere", ("measure", "value"), known, (1,))
    if card.clusters:
        clusters = [(one.clusters, one.after, _percent(one.match_point)) for one in card.clusters]
        yield ScoreTable("Clusters", ("clusters", "after", "Match Point"), clusters, (0, 2))


def _lessons(card: Scorecard, target: str) -> ScoreTable:
    rows = [
        (
            *(one.learner, one.taught_by, *map(_percent, (one.ba, one.ca, one.cost, one.benefit))),
            *("" if area is None else f"{area:.3f}" for area in (one.auc_raw, one.auc)),
        )
        for one in card.lessons
    ]
    header = ("learner", "taught by", "BA (raw)", "CA", "cost", "benefit", "AUC (raw)", "AUC")
    lower = _percent(card.lessons[0].la)
    title = f"Classification of {target}; LA, always saying the most frequent class: {lower}"
    return ScoreTable(title, header, rows, range(2, 8))


def _marginals(card: Scorecard) -> ScoreTable:
    rows = [
        (
            *(f"{one.ways}-way", one.distance, f"{one.mean:.4f}", f"{one.worst:.4f}", ", ".join(one.worst_of)),
            f"{one.measured:,} of {one.of:,}",
        )
        for one in card.marginals
    ]
    header = ("marginals", "distance", "mean", "worst", "worst of", "measured")
    return ScoreTable("Fidelity of drawn records", header, rows, (2, 3))


def _intervals(card: Scorecard) -> ScoreTable:
    """Lay out what intervals of all levels are worth, side by side."""
    found = {(one.questions_of, one.level): one for one in card.intervals}
    asked = [kind for kind in KINDS if (kind, LEVELS[0]) in found]
    rows = []
    for kind in asked:
        cells = [f"{found[kind, LEVELS[0]].questions:,}"]
        for level in LEVELS:
            one = found[kind, level]
            cells += [_percent(one.coverage), *(f"{100 * share:.3f} %" for share in (one.width, one.score))]
        rows.append((kind, *cells))
    header = ["questions on", "questions"]
    for level in LEVELS:
        header += [f"{100 * level:g} % hold", "width", "score"]
    return ScoreTable("Intervals that hold the truth", tuple(header), rows, range(1, len(header)))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
