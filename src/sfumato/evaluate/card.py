"""The scorecard: all measures that apply to a release, with what was left out and why.

It reads the raw table, so what it says is not private: it is for the holder, and never enters a release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from sfumato.boxes import Boxes
from sfumato.errors import ReleaseError, TableError
from sfumato.evaluate.classification import Codes
from sfumato.evaluate.clusters import MOST_CLUSTERED, Match, matches
from sfumato.evaluate.information import certainty_penalty_of, discernibility_of, precision_of, sizes_of
from sfumato.evaluate.lessons import Lesson, Trial, lessons, lot, most_learnt
from sfumato.evaluate.marginals import MarginalDistance, marginal_distances
from sfumato.evaluate.queries import FLOOR, QUERIES, QueryErrors, RangeQuery, errors_by_size, random_queries
from sfumato.evaluate.splits import Protocol, splits
from sfumato.evaluate.tables import ScoreTable, tables_of
from sfumato.evaluate.threads import one_thread
from sfumato.evaluate.use import Use, costs_of_use
from sfumato.io.encode import Coded, encode, refuse_misfits
from sfumato.io.tables import open_table
from sfumato.release.release import Release
from sfumato.schema import Schema

NOT_PRIVATE = "Worked out from the raw data: for the holder's eyes, not private, not to be published."


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
    clusters: tuple[Match, ...]
    use: tuple[Use, ...] = field(compare=False)
    """what it costs to use the release, on this machine and today"""
    notes: tuple[str, ...]
    """how it was measured"""
    left_out: tuple[str, ...]
    """what does not apply, and why"""

    def plain(self) -> dict[str, Any]:
        """Give plain values for JSON."""
        worth = [asdict(one) | {"cost": one.cost, "benefit": one.benefit} for one in self.lessons]
        return {"warning": NOT_PRIVATE} | asdict(self) | {"lessons": worth}

    def tables(self, target: str | None) -> list[ScoreTable]:
        """Lay out all but what use costs, given the class attribute of the release."""
        return list(tables_of(self, target))


@dataclass(frozen=True, eq=False)
class _Reference:
    """What a release is measured by: the coded table, and records drawn from the release."""

    release: Release
    table: Codes
    rows: int
    drawn: Codes
    seed: int

    @property
    def nobody(self) -> bool:
        """Whether there is no record to draw."""
        return not len(next(iter(self.drawn.values())))


def scorecard(
    release: Release,
    table: Any,
    test: Any = None,
    *,
    protocol: Protocol = "2/3",
    seed: int = 0,
    watch: Callable[[str], None] = lambda _: None,
) -> Scorecard:
    """Measure a release by its table (a path or a frame), and what can be learnt from it by a test set if one is given.

    Without a test set the table is split by a protocol of the papers; a seed decides whatever is drawn by lot.
    """
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
        watch("comparing marginals")
        fidelity = [] if given.nobody else marginal_distances(release.schema, given.table, given.drawn, seed)
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
        clusters=tuple(clustered),
        use=tuple(use),
        notes=(*_notes_on_trials(trials, tested, protocol, seed), *_notes(given, coded)),
        left_out=tuple(f"{what}: {why}." for what, why in excuses.items()),
    )


def _coded(table: Any, schema: Schema, what: str) -> Coded:
    """Read a table by the release's schema, and refuse one that is not of it, or has no rows."""
    try:
        coded = encode(open_table(table), schema)
        refuse_misfits(coded)
    except TableError as error:
        remedy = "Evaluate with the table that was published, and a test set like it."
        raise ReleaseError(f"{what} must be of the release's schema: {error.problem}", remedy) from None
    if not coded.rows:
        raise TableError(f"{what} must have a row", "Evaluate with the table that was published.")
    return coded


def _excuses(given: _Reference) -> dict[str, str]:
    """Say what cannot be measured, and why."""
    schema, excuses = given.release.schema, {}
    if schema.target is None:
        excuses["Classification"] = "the release has no class attribute"
    if isinstance(given.release.partition, Boxes):
        excuses["Accuracy on groups and by regions, Match Point of generalized rows"] = (
            "groups overlap, so a row has no group of its own"
        )
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
    predictors, partition = given.release.schema.predictors, given.release.partition
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
    """Say what was drawn by lot, smoothed or taken for something else."""
    drawn, learnt = len(next(iter(given.drawn.values()))), most_learnt(given.release.schema)
    notes = [
        f"{drawn:,} records were drawn from the release (seed {given.seed}); learners see {learnt:,} records at "
        f"most and clusters {MOST_CLUSTERED:,}, drawn by lot.",
        "Both trees split in two by entropy: the pruned one in the manner of C4.5, ID3 not pruned.",
        "Distances are of shares of rows, Kullback-Leibler in nats: one record more, spread evenly over all cells of "
        "the marginal, was added to the drawn ones. City-block is twice total variation.",
        f"{QUERIES:,} random range counts (seed {given.seed}) on 2 to 4 attributes each; errors are relative to the "
        f"truth, or to {FLOOR:.1%} of the rows if that is more.",
        "Time and memory are of using the release, on one thread; memory is what was added at the peak.",
    ]
    if isinstance(given.release.partition, Boxes):
        notes.append("Discernibility, NCP and precision are of the published records; suppressed ones have no group.")
    notes += [
        f"{name}: {rows:,} rows of the data outside the declared range count in the nearest cell."
        for name, rows in coded.outside.items()
    ]
    return notes
