"""Intervals for the columns of a SQL answer.

A count is a question that the model answers itself, with an interval, as it does for `count`: DuckDB is asked, beside
each count, which cells it counts, and these are written as disjoint boxes. For everything else, averages, sums, shares,
the question is asked again of replicates, and the interval is as wide as their answers differ. Rows are the same if the
columns that do not rest on estimates are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.arrays import Floats
from sfumato.errors import QueryError
from sfumato.models.intervals import CLASS
from sfumato.models.model import LEVEL, Model, Query
from sfumato.models.replicates import Doubt, student
from sfumato.release.questions import Question, answer_questions
from sfumato.release.sql import CellColumn, Desk, Understood, cell_table, cells_of, desk_for
from sfumato.release.weighing import Node
from sfumato.schema.unions import disjoint_boxes

REPLICATES = 20
"""So often a question is asked again."""
SEED = 0
"""The same question has the same answer each time."""
MOST_CELLS = 1_000_000
"""The most cells of a question that is asked of replicates."""
MOST_ROWS = 100_000
"""The most rows of an answer with intervals."""
MOST_LISTED = 200_000
"""The most cells of a question of which counts that are no box are written as boxes."""
LEAF = "leaf of {}"
"""A column of cells, with the codes of an attribute, which questions cannot name."""
CELL = "number of a cell"
"""A column of cells that numbers them, which questions cannot name."""


def answer_with_intervals(text: str, model: Model, doubt: Doubt) -> pa.Table:
    """Answer a SELECT over `release`; after every number that rests on estimates come two columns, low and high."""
    with desk_for(model.schema) as desk:
        question = desk.understand(text)
        estimates = question.weighing.estimates(question.query)
        if estimates is None:
            raise QueryError("columns of an answer with intervals must be named one by one", "Write names, and no *.")
        return _Bounding(desk, question, model, doubt, estimates).answer()


@dataclass(frozen=True, eq=False)
class _Bounding:
    """One question, with intervals."""

    desk: Desk
    question: Understood
    model: Model
    doubt: Doubt
    estimates: Sequence[bool]

    def answer(self) -> pa.Table:
        """Ask for values and what is counted; then for what counting does not tell."""
        asked, kinds = self._asked_with_leaves()
        found = self.desk.ask(self.question, asked, self._cells())
        if found.num_rows > MOST_ROWS:
            raise QueryError(
                f"an answer with intervals ({found.num_rows:,} rows) must have at most {MOST_ROWS:,} rows",
                "Ask for fewer, or without intervals.",
            )
        columns = found.columns
        values = {at: _numbers(column) for at, column in enumerate(columns[: len(self.estimates)])}
        bounds = {
            at: (np.full(found.num_rows, np.nan), np.full(found.num_rows, np.nan))
            for at, numbers in values.items()
            if self.estimates[at] and numbers is not None
        }
        extra = len(self._told)
        for place, at in enumerate(kinds):
            first = len(self.estimates) + place * extra
            self._count(columns[first : first + extra], bounds[at])
        if any(np.isnan(low).any() for low, _ in bounds.values()):
            self._replicate(columns, values, bounds, kinds)
        return _table(self.question.names, columns, bounds)

    @property
    def _axes(self) -> list[int]:
        """The attributes that the question mentions, and the class if it does."""
        schema = self.model.schema
        axes = [at for at, name in enumerate(schema.predictors) if name in self.question.attributes]
        return [*axes, *([CLASS] if schema.target in self.question.attributes else [])]

    @property
    def _told(self) -> list[str | None]:
        """What is asked beside each count: how many cells, which leaves of each attribute and, of few, which cells."""
        few = math.prod(self._shape) <= MOST_LISTED
        return [None, *(LEAF.format(self._name(at)) for at in self._axes), *([CELL] if few and self._axes else [])]

    @property
    def _shape(self) -> tuple[int, ...]:
        return tuple(map(self.doubt.leaves, self._axes))

    def _name(self, axis: int) -> str:
        schema = self.model.schema
        return str(schema.target) if axis == CLASS else list(schema.predictors)[axis]

    def _columns(self) -> Mapping[str, CellColumn]:
        """All columns of cells, and one with the leaf of each attribute that is mentioned."""
        leaves = {at: self.doubt.leaves(at) for at in self._axes}
        codes = {
            LEAF.format(self._name(at)): CellColumn(self._name(at), pa.array(np.arange(number)))
            for at, number in leaves.items()
        }
        return {**self.desk.columns, **codes}

    def _cells(self) -> pa.Table | None:
        if not self.question.reads_release:
            return None
        cells = cells_of(self.model, self.question.attributes, self._columns())
        return cells.append_column(CELL, pa.array(np.arange(cells.num_rows))) if CELL in self._told else cells

    def _asked_with_leaves(self) -> tuple[Node, list[int]]:
        """Ask beside each plain count which cells it counts.

        The columns go last, so rows, their order and their number are what they were.
        """
        node, weighing = self.question.query, self.question.weighing
        distinct = any(one["type"] == "DISTINCT_MODIFIER" for one in node["modifiers"])
        if distinct or "select_list" not in node or not weighing.selects_release(node):
            return self.question.weighed, []
        counts = {at: one for at, one in enumerate(node["select_list"]) if weighing.counts(one)}
        more = [weighing.counted(one, leaf) for one in counts.values() for leaf in self._told]
        weighed = self.question.weighed
        listed = [*weighed["node"]["select_list"], *more]
        return weighed | {"node": weighed["node"] | {"select_list": listed}}, list(counts)

    def _count(self, told: Sequence[pa.ChunkedArray], bounds: tuple[Floats, Floats]) -> None:
        """Let the model bound counts of which it is known what they count."""
        number, *listed = (column.to_pylist() for column in told)
        leaves, cells = listed[: len(self._axes)], listed[len(self._axes) :]
        chosen = [[[one for one in each or () if one is not None] for each in column] for column in leaves]
        questions: dict[int, Question] = {}
        for row, counted in enumerate(number):
            if counted == math.prod(len(column[row]) for column in chosen):
                questions[row] = Question("", (self._query([column[row] for column in chosen]),))
            elif cells and (union := self._union([one for one in cells[0][row] if one is not None])):
                questions[row] = union
        answers = answer_questions(self.model, iter(questions.values()))
        for bound, found in zip(bounds, answers.between(LEVEL), strict=True):
            bound[list(questions)] = found

    def _union(self, cells: Sequence[int]) -> Question | None:
        """Ask for people in one of some cells, as disjoint boxes; None if there would be too many."""
        held = np.zeros(math.prod(self._shape), np.bool_)
        held[list(cells)] = True
        sides = [disjoint_boxes(one.reshape(self._shape)) for one in (held, ~held)]
        if sides[0] is None:
            return None
        inside, rest = (
            tuple(self._query([np.flatnonzero(axis).tolist() for axis in box]) for box in boxes or ())
            for boxes in sides
        )
        everyone = self._query([list(range(size)) for size in self._shape])
        return Question("", inside, (everyone, *rest) if rest else ())

    def _query(self, leaves: Sequence[Sequence[int]]) -> Query:
        """Ask for people who have one of some leaves of each attribute."""
        weights = {}
        for at, chosen in zip(self._axes, leaves, strict=True):
            weights[at] = np.zeros(self.doubt.leaves(at))
            weights[at][list(chosen)] = 1.0
        everyone = np.ones(len(self.model.schema.classes))
        classes = weights.pop(CLASS, everyone)
        return Query("", {at: one for at, one in weights.items() if not one.all()}, classes)

    def _replicate(
        self,
        columns: Sequence[pa.ChunkedArray],
        values: Mapping[int, Floats | None],
        bounds: Mapping[int, tuple[Floats, Floats]],
        counts: Sequence[int],
    ) -> None:
        """Bound what is left by how far the answers of replicates differ from each other."""
        keys = [at for at, is_one in enumerate(self.estimates) if not is_one]
        row_of = {key: row for row, key in enumerate(_rows(columns, keys))}
        number = len(columns[0])
        if len(row_of) < number:
            raise QueryError(
                "rows of an answer with intervals must differ in columns that are not estimates",
                "Select the columns by which it is grouped, too.",
            )
        found = {at: np.full((REPLICATES, number), np.nan) for at in bounds}
        for place, answer in enumerate(self._answers_of_replicates()):
            rows = [(row_of[key], other) for other, key in enumerate(_rows(answer.columns, keys)) if key in row_of]
            own, others = np.array(rows, np.int64).reshape(-1, 2).T
            for at, each in found.items():
                numbers = _numbers(answer.columns[at])
                if numbers is not None:
                    each[place, own] = numbers[others]
        for at, (low, high) in bounds.items():
            half, value, open_rows = _half_widths(found[at]), values[at], np.isnan(low)
            assert value is not None
            least = np.minimum(value, 0.0) if at in counts else np.full(number, -np.inf)
            low[open_rows] = np.maximum(value - half, least)[open_rows]
            high[open_rows] = (value + half)[open_rows]

    def _answers_of_replicates(self) -> Iterator[pa.Table]:
        """Ask the question of one replicate after the other."""
        axes, by_class = self._axes, CLASS in self._axes
        estimates = self.model.marginal([at for at in axes if at != CLASS], by_class=by_class)
        if estimates.size > MOST_CELLS:
            raise QueryError(
                f"the columns of a question with intervals must have at most {MOST_CELLS:,} combinations of leaves, "
                f"unless it only counts, and these have more ({estimates.size:,})",
                "Mention fewer columns, or ask without intervals.",
            )
        shape = estimates.shape if by_class else estimates.shape[:-1]
        codes = {at: one.ravel() for at, one in zip(axes, np.indices(shape), strict=True)}
        names = [*(self._name(at) for at in axes), *([] if by_class else [""])]
        rng = np.random.default_rng(SEED)
        for _ in range(REPLICATES):
            weights = self.doubt.replicate(axes, rng).weighed(codes, estimates.ravel())
            cells = cell_table(weights.reshape(estimates.shape), names, self.desk.columns)
            yield self.desk.ask(self.question, self.question.weighed, cells)


def _numbers(column: pa.ChunkedArray) -> Floats | None:
    """Read a column of numbers, null as NaN; None if it is something else."""
    kind = column.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return None
    return np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)


def _rows(columns: Sequence[pa.ChunkedArray], chosen: Sequence[int]) -> list[tuple[Any, ...]]:
    """List the rows of some columns."""
    if not chosen:
        return [()] * len(columns[0])
    return list(zip(*(columns[at].to_pylist() for at in chosen), strict=True))


def _half_widths(found: Floats) -> Floats:
    """Find half the interval for each row (replicates x rows): as far as another replicate would be from their mean.

    A row that fewer than half of the replicates have has none.
    """
    there = (~np.isnan(found)).sum(axis=0)
    known = there >= REPLICATES / 2
    some = np.where(known, found, 0.0)
    mean = np.nansum(some, axis=0) / np.maximum(there, 1)
    squares = np.nansum((some - mean) ** 2, axis=0) / np.maximum(there - 1, 1)
    width = student(LEVEL, REPLICATES - 1) * np.sqrt(squares * (1 + 1 / np.maximum(there, 1)))
    return np.where(known, width, np.nan)


def _table(
    names: Sequence[str], columns: Sequence[pa.ChunkedArray], bounds: Mapping[int, tuple[Floats, Floats]]
) -> pa.Table:
    """Put low and high after each column that has them; their names are distinct from all others."""
    found: dict[str, Any] = {}
    for at, name in enumerate(names):
        found[name] = columns[at]
        for tail, bound in zip(("low", "high"), bounds.get(at, ()), strict=False):
            own = f"{name}_{tail}"
            while own in names or own in found:
                own += "_"
            found[own] = pa.array(bound, pa.float64(), from_pandas=True)
    return pa.table(found)
