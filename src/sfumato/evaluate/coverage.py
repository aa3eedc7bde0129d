"""Whether intervals hold the truth as often as they say, and how wide they are for that.

**Natural questions** are those that analysts ask: of one, two or three attributes, the class among them, each
restricted to a range of numbers or to a value or category. Half of the ranges lie between the values of two rows, half
between two borders of cells; half of the categories are a row's own value or one above it, half any of the taxonomy.

**Coverage** is the share of questions whose true count lies in the interval: of 95 % intervals it should be 95 %, more
is waste and less is a lie. **Width** is that of the interval. Neither alone is a measure: everything is covered by
intervals that are wide enough. The **score** is both, the width and what the truth lies outside by, times 2 / (1 -
level): no interval has a lower expected score than the one between the true quantiles (Gneiting and Raftery, 2007), so
whoever states wider or narrower ones loses. That holds for means over questions and in a unit that depends on neither
truth nor answer, so widths and scores are means, in shares of all rows.

Questions are told apart by how many attributes they restrict, and by the size of the answer, which an analyst sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato import Categorical, Identifier, Numeric, Release, Schema
from sfumato.arrays import Booleans, CodedRows, Codes, Floats, Integers
from sfumato.evaluate.fidelity import LARGE, SMALL, RangeQuery, answers_to

LEVELS = (0.95, 0.5)
"""The levels of the intervals that are measured."""
RESTRICTED = (1, 2, 3)
"""How many attributes questions restrict."""
QUESTIONS = 300
"""How many questions are asked of each number of attributes."""
BY_ATTRIBUTES = {ways: f"{ways} attribute{'s' if ways > 1 else ''}" for ways in RESTRICTED}
SIZED = ("answers < 1 %", "answers of 1 to 10 %", "answers > 10 %")
KINDS = (*BY_ATTRIBUTES.values(), *SIZED)
"""What questions are told apart by, in order."""
CLOSE = 1e-6
"""An interval that misses the truth by less than this part of a person holds it: answers are sums of floats."""


@dataclass(frozen=True)
class Intervals:
    """How the intervals of one level do on questions of one kind."""

    questions_of: str
    level: float
    questions: int
    coverage: float
    """the share that holds the truth"""
    width: float
    """the mean, in shares of all rows"""
    score: float
    """the mean, in shares of all rows; the less, the better"""


def measured_intervals(release: Release, rows: CodedRows, size: int, seed: int) -> list[Intervals]:
    """Ask a release natural questions, and hold its intervals against the rows, so many of them; kinds of questions
    that there are none of are left out.
    """
    schema = release.schema
    asked = [one for ways in RESTRICTED for one in natural_questions(schema, rows, ways, QUESTIONS, seed)]
    if not asked:
        return []
    answers = answers_to(release, asked)
    truths = np.array([one.truth(rows) for one in asked], np.float64)
    kinds = _kinds(asked, answers.values / max(release.total, 1))
    found = []
    for level in LEVELS:
        low, high = answers.between(level)
        held, scores = holding(low, high, truths), interval_scores(low, high, truths, level)
        worth = np.stack([held, (high - low) / size, scores / size], axis=1)
        found += [
            Intervals(name, level, int(of.sum()), *worth[of].mean(axis=0).tolist())
            for name, of in kinds.items()
            if of.any()
        ]
    return found


def holding(low: Floats, high: Floats, truths: Floats) -> Booleans:
    """Tell which intervals hold the truth, ends included.

    >>> holding(np.array([1.0, 4.0]), np.array([3.0, 5.0]), np.array([3.0, 3.0])).tolist()
    [True, False]
    """
    return np.asarray((low - CLOSE <= truths) & (truths <= high + CLOSE))


def interval_scores(low: Floats, high: Floats, truths: Floats, level: float) -> Floats:
    """The width, and what the truth lies outside by, times 2 / (1 - level).

    >>> interval_scores(np.array([1.0, 4.0]), np.array([3.0, 5.0]), np.array([3.0, 3.0]), 0.5).tolist()
    [2.0, 5.0]
    """
    outside = np.maximum(low - truths, 0.0) + np.maximum(truths - high, 0.0)
    return np.asarray(high - low + 2 / (1 - level) * outside)


def _kinds(asked: Sequence[RangeQuery], shares: Floats) -> dict[str, Booleans]:
    """Tell questions apart by how many attributes they restrict, and by the share of people that is the answer."""
    ways = np.array([len(one.ranges) for one in asked])
    by_size = (shares < SMALL, (shares >= SMALL) & (shares <= LARGE), shares > LARGE)
    return {name: ways == number for number, name in BY_ATTRIBUTES.items()} | dict(zip(SIZED, by_size, strict=True))


def natural_questions(schema: Schema, rows: CodedRows, ways: int, count: int, seed: int) -> list[RangeQuery]:
    """Draw questions that restrict so many attributes, none of them to all of its values; none if there are fewer."""
    rng = np.random.default_rng([seed, ways])
    several = {
        name: _Attribute(column, rows[name])
        for name, column in schema.attributes.items()
        if not isinstance(column, Identifier) and column.leaves > 1
    }
    if len(several) < ways:
        return []
    names = list(several)
    chosen = [sorted(rng.choice(len(names), ways, replace=False).tolist()) for _ in range(count)]
    return [RangeQuery({names[at]: several[names[at]].range(rng) for at in each}) for each in chosen]


@dataclass(frozen=True, eq=False)
class _Attribute:
    """What ranges of an attribute are drawn from: its values, and the rows' codes."""

    column: Categorical | Numeric
    codes: Codes

    def range(self, rng: np.random.Generator) -> tuple[int, int]:
        """Draw a range of leaves that is not all of them, half of the times by what rows have."""
        by_rows = rng.random() < 0.5
        if isinstance(self.column, Numeric):
            lo, hi = self._between_rows(rng) if by_rows else (0, self.column.leaves)
            while (lo, hi) == (0, self.column.leaves):
                lo, hi = sorted(rng.choice(self.column.cells + 1, 2, replace=False).tolist())
            return lo, hi
        lows, highs = self._nodes.T
        leaf = self._code(rng)
        fitting = (lows <= leaf) & (leaf < highs) | (not by_rows)
        lo, hi = rng.choice(self._nodes[fitting]).tolist()
        return lo, hi

    def _between_rows(self, rng: np.random.Generator) -> tuple[int, int]:
        """Take the range between two rows' values, or of those who have none if one of them is such."""
        assert isinstance(self.column, Numeric)
        lo, hi = sorted((self._code(rng), self._code(rng)))
        return (lo, hi + 1) if hi < self.column.cells else (self.column.cells, self.column.leaves)

    def _code(self, rng: np.random.Generator) -> int:
        return int(self.codes[rng.integers(len(self.codes))])

    @cached_property
    def _nodes(self) -> Integers:
        """The ranges of the taxonomy's values and categories, but for all leaves together."""
        assert isinstance(self.column, Categorical)
        ranges = {(node.lo, node.hi) for node in self.column.tree.nodes} - {(0, self.column.leaves)}
        return np.array(sorted(ranges), np.int64)
