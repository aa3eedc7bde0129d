"""Scores: qualities of candidates, as integers, that are safe to choose by.

A score sees the class counts of the children of every candidate and gives one integer per candidate, in multiples of
`unit`. Neighbouring tables differ by one record, which falls into at most one child of a candidate, in one class. Each
score has its sensitivity, with the derivation of it. A method chooses a score of `SCORES` by name and cannot pass a
function of its own.

The scores with `needs_classes` say how well the children tell the classes apart. The others say, of any table, how
fine and how even the children are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.errors import BLAME, MethodError, PrivacyError


@dataclass(frozen=True, eq=False)
class Children:
    """The children of candidates that divide ranges of one attribute."""

    counts: Integers
    """children x classes"""
    starts: Integers
    """candidate i has the children `starts[i]` to `starts[i + 1]`"""
    widths: Integers
    """how many leaves each child has; for a run of splits, the first one's"""
    leaves: int
    """how many leaves the attribute has"""
    places: Integers
    """the place of each candidate"""

    def __repr__(self) -> str:
        """Show nothing of the data."""
        return "Children(...)"

    @cached_property
    def fans(self) -> Integers:
        """The number of children of each candidate."""
        return np.diff(self.starts)

    @cached_property
    def _in_pairs(self) -> bool:
        return bool((self.fans == 2).all())

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum the children's values by candidate."""
        if self._in_pairs:
            return np.asarray(values[::2] + values[1::2])
        return np.asarray(np.add.reduceat(values, self.starts[:-1]))

    def repeat(self, values: NDArray[Any]) -> NDArray[Any]:
        """For each child, the value of its candidate."""
        return np.repeat(values, 2 if self._in_pairs else self.fans, axis=0)

    @cached_property
    def parents(self) -> Integers:
        """The class counts of the ranges that are divided: candidates x classes."""
        return self.sum(self.counts)


class Score(Protocol):
    """A quality of candidates that is safe to choose by. Scores are values: a method cannot pass a function."""

    name: ClassVar[str]
    """what users call it"""
    unit: ClassVar[Fraction]
    """what one step of the integer score is worth"""
    monotone: ClassVar[bool]
    """whether adding a record moves every candidate's score in one direction, or not at all"""
    positional: ClassVar[bool]
    """whether splits that divide the records alike may still differ, by where they are"""
    needs_classes: ClassVar[bool]
    """whether it is only for tables with a class attribute"""

    def sensitivity(self, classes: int, /) -> Fraction:
        """How far one record can move one candidate's score, in the score's own terms (not in units)."""

    def of(self, children: Children) -> Integers:
        """The score of each candidate."""

    def fits(self, _places: int, _classes: int, /) -> bool:
        """Whether it can score candidates in this many places, of this many classes.

        The meter asks before anything is paid: a score that does not fit might fail or not, depending on who is
        counted.
        """
        return True


@dataclass(frozen=True)
class Max(Score):
    """The records that a majority vote in each child gets right (DiffGen, equation 4).

    Sensitivity 1: a new record raises one count of one child by 1, and so that child's maximum by 0 or 1.
    Monotone: 0 or 1 is never down, for any candidate.
    """

    name: ClassVar[str] = "max"
    unit: ClassVar[Fraction] = Fraction(1)
    monotone: ClassVar[bool] = True
    positional: ClassVar[bool] = False
    needs_classes: ClassVar[bool] = True

    def sensitivity(self, _classes: int, /) -> Fraction:
        """1, as derived above."""
        return Fraction(1)

    def of(self, children: Children) -> Integers:
        """The sum of the majorities."""
        return np.asarray(children.sum(children.counts.max(axis=1)))


@dataclass(frozen=True, eq=False)
class BalancedMax(Score):
    """Max with the larger classes discounted, so that a split can count although no majority changes. Ours.

    S = sum over children c of max over classes k of w_k n_ck, with **public** weights w_k between 0 and 1 for each
    place, made from noisy counts that were bought before. With two classes max(a, b) = (a + b) / 2 + |a - b| / 2, and
    the first term sums to the same for all candidates of a place: they are ordered by the sum of |w_1 n_c1 - w_2 n_c2|,
    which for weights that balance the classes is the deviation from the place's class shares, |n_c1 - p n_c|.

    Sensitivity 1, monotone: a record of class k raises one n_ck by 1, and so one maximum by something between 0 and
    w_k. The weights are whole numbers of units and do not depend on the table, given the earlier answers, so all of it
    is exact.
    """

    weights: Integers
    """places x classes, in units"""
    name: ClassVar[str] = "balanced"
    unit: ClassVar[Fraction] = Fraction(1, 2**10)
    monotone: ClassVar[bool] = True
    positional: ClassVar[bool] = False
    needs_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Copy the weights, so that nothing changes; refuse those above 1, for which the sensitivity is not proved."""
        object.__setattr__(self, "weights", np.array(self.weights, np.int64))
        self.weights.setflags(write=False)
        if not ((self.weights >= 0) & (self.weights <= self.unit.denominator)).all():
            raise PrivacyError("weights must be between 0 and 1", BLAME)

    @classmethod
    def halfway(cls, counts: Floats) -> BalancedMax:
        """Discount classes that are larger than the second largest, halfway to balance: w = sqrt(second / own).

        `counts` are noisy: places x classes. It is the second largest so that a rare third class does not decide.
        """
        sizes = np.maximum(counts, 1.0)
        second = np.sort(sizes, axis=1)[:, -2:-1] if counts.shape[1] > 1 else sizes
        weights = np.minimum(np.sqrt(second / sizes), 1.0)
        return cls(np.floor(weights * cls.unit.denominator).astype(np.int64))

    def sensitivity(self, _classes: int, /) -> Fraction:
        """1, as derived above."""
        return Fraction(1)

    def fits(self, places: int, classes: int, /) -> bool:
        """Whether there is a weight for each class in each place."""
        return self.weights.shape == (places, classes)

    def of(self, children: Children) -> Integers:
        """The sum of the weighted majorities."""
        weighted = children.counts * children.repeat(self.weights[children.places])
        return np.asarray(children.sum(weighted.max(axis=1)))


@dataclass(frozen=True)
class InfoGain(Score):
    """The information, in bits, that the children give about the class (DiffGen, equation 3).

    Sensitivity log2(classes): the gain lies between 0 and the entropy of the class, which is at most log2(classes),
    so no change of the table moves it further. The score is rounded to the grid and *clipped to that interval on the
    grid*, so the bound holds for what is computed, whatever the rounding of the logarithms. It is attained: two
    records of two classes in two children have gain 1, one record has gain 0. Not monotone.
    """

    name: ClassVar[str] = "gain"
    unit: ClassVar[Fraction] = Fraction(1, 2**12)
    monotone: ClassVar[bool] = False
    positional: ClassVar[bool] = False
    needs_classes: ClassVar[bool] = True

    def sensitivity(self, classes: int, /) -> Fraction:
        """log2(classes), rounded up to the grid."""
        return math.ceil(math.log2(classes) / self.unit + 1) * self.unit

    def of(self, children: Children) -> Integers:
        """The gains; an empty candidate has gain 0."""
        gain = _bits(children.parents) - children.sum(_bits(children.counts))
        gain = gain / np.maximum(children.parents.sum(axis=1), 1)
        ceiling = int(self.sensitivity(children.counts.shape[1]) / self.unit)
        return np.asarray(np.clip(np.rint(gain / float(self.unit)), 0, ceiling), np.int64)


def _bits(counts: Integers) -> Floats:
    """|D| H(D) for each row of class counts."""
    inside = _x_log_x(counts).sum(axis=1)
    return np.asarray(_x_log_x(counts.sum(axis=1)) - inside)


def _x_log_x(x: Integers) -> Floats:
    return np.asarray(x * np.log2(np.maximum(x, 1)))


@dataclass(frozen=True)
class WeightedGain(Score):
    """The gain times the number of records, |D_v| InfoGain(D, v) (Friedman and Schuster, 2010).

    Let f(x) = x log2 x. The score is S(parent) - sum over children c of S(c), with S(n) = f(sum of n_k) - sum of
    f(n_k). A record of class k in child c changes S(parent) by g(n) - g(n_k) and S(c) by g(n_c) - g(n_ck), where g(x)
    = f(x + 1) - f(x) grows with x. Both changes are at least 0, because the parts are no larger than the whole, and
    at most g(n), so the score moves by at most g(n), and g(n) = log2(n + 1) + n log2(1 + 1/n) <= log2(n + 1) + 1/ln
    2.

    That grows with the private n. So f is continued from `rows` on with constant slope g(rows): it stays convex, the
    argument stands, and no change exceeds log2(rows + 1) + 1/ln 2, **whatever the size of the table**. `rows` is
    public; the score is sharpest when it has the table's order of magnitude, and remains safe when it is wrong.

    f is rounded to the grid *before* the sums, which are then exact integers: one record touches four differences of
    two rounded values, each off by at most one unit and the error of the logarithm (below a hundredth of a unit up to
    10^9 records), so five units are added. Not monotone.
    """

    rows: int = 1_000_000
    name: ClassVar[str] = "weighted-gain"
    unit: ClassVar[Fraction] = Fraction(1, 2**8)
    monotone: ClassVar[bool] = False
    positional: ClassVar[bool] = False
    needs_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse a number of rows that is out of bounds."""
        if not 1 <= self.rows <= 10**9:
            raise MethodError(
                f"rows ({self.rows}) must be between 1 and 1,000,000,000",
                "Give the table's order of magnitude.",
            )

    def sensitivity(self, _classes: int, /) -> Fraction:
        """log2(rows + 1) + 1/ln 2 plus the rounding, rounded up to the grid."""
        return math.ceil((math.log2(self.rows + 1) + 1 / math.log(2)) / self.unit + 6) * self.unit

    def of(self, children: Children) -> Integers:
        """The weighted gains."""
        return np.asarray(self._bits(children.parents) - children.sum(self._bits(children.counts)))

    def _bits(self, counts: Integers) -> Integers:
        return np.asarray(self._convex(counts.sum(axis=1)) - self._convex(counts).sum(axis=1), np.int64)

    def _convex(self, x: Integers) -> Integers:
        """F on the grid, linear from `rows` on: there by exact integer multiples of one rounded slope."""
        bent = np.minimum(x, self.rows)
        curve = np.rint(_x_log_x(bent) / float(self.unit)).astype(np.int64)
        last = math.log2(self.rows + 1) + self.rows * math.log2(1 + 1 / self.rows)
        return curve + (x - bent) * math.ceil(last / self.unit)


@dataclass(frozen=True)
class Deviation(Score):
    """How many records stand in the wrong child for the children to tell nothing about the class. Ours.

    With n records in the candidate, n_k of class k, n_c in child c, and p_k = n_k / n:

        S = 1/4 sum over children c and classes k of |n_ck - p_k n_c|.

    It grows with the table as Max does but sees every class, not the majority only, so a split that moves a class
    share from 10 % to 40 % counts although the majority stays; and it is 0 for a split that tells nothing.

    Sensitivity 1. Add a record of class k to child a, and let r = (n - n_a) / (n + 1) < 1. Then p_k rises by
    (1 - p_k)/(n + 1) and every other p_j falls by p_j/(n + 1). For class k the terms of the children c != a move by
    (1 - p_k) n_c/(n + 1), which sums to (1 - p_k) r, and child a's moves by (1 - p_k) r: together 2 (1 - p_k) r. For a
    class j != k it is likewise p_j r + p_j r, and summed over j again 2 (1 - p_k) r. In all 4 (1 - p_k) r < 4 at most,
    before the factor 1/4. Not monotone.

    A candidate with f children multiplies the groups by about f, that is by log2(f) doublings, and a table can bear
    only so many. So the score is S per doubling, S / log2(f): a public factor of at most 1, which cannot raise the
    sensitivity. S and its product are rounded down to the grid, exactly, in integers; the difference of two numbers
    rounded down exceeds their own by less than a unit, so two units are added.
    """

    name: ClassVar[str] = "deviation"
    unit: ClassVar[Fraction] = Fraction(1, 2**10)
    monotone: ClassVar[bool] = False
    positional: ClassVar[bool] = False
    needs_classes: ClassVar[bool] = True

    def sensitivity(self, _classes: int, /) -> Fraction:
        """1 plus the rounding."""
        return 1 + 2 * self.unit

    def of(self, children: Children) -> Integers:
        """floor(sum |n n_ck - n_k n_c| / (4 n unit)) per doubling; an empty candidate has 0."""
        parents, counts = _roomy(children.parents, children.counts)
        sizes = np.maximum(parents.sum(axis=1), 1)
        expected = children.repeat(parents) * counts.sum(axis=1, keepdims=True)
        observed = children.repeat(sizes)[:, None] * counts
        quarters = children.sum(np.abs(observed - expected).sum(axis=1))
        whole, rest = quarters // sizes, quarters % sizes
        steps = self.unit.denominator // 4
        deviation = whole * steps + rest * steps // sizes
        return np.asarray(deviation * _per_doubling(children.fans) // DOUBLING, np.int64)


DOUBLING = 1 << 10
"""The factor for one doubling, of which others are parts."""


def _roomy(parents: Integers, children: Integers) -> tuple[NDArray[Any], NDArray[Any]]:
    """Change to Python's integers where 2 n^2 could exceed 64 bits: the values are the same, only the time differs."""
    if int(parents.sum(axis=1).max()) < 2**30:
        return parents, children
    return parents.astype(object), children.astype(object)


def _per_doubling(children: Integers) -> Integers:
    """1 / log2(children) in units of 1 / DOUBLING, at most DOUBLING: public, from the schema alone."""
    return np.asarray(np.floor(DOUBLING / np.log2(np.maximum(children, 2))), np.int64)


@dataclass(frozen=True)
class Discernibility(Score):
    """How many records each record of the range cannot be told from, on average, after the split; less is better.

    The discernibility metric is the sum of n_c^2 over the children (DiffMulti, equation 3), which moves by up to 2 n +
    1. All candidates of a range divide the same n records, so S = sum n_c^2 / n orders them alike; the score is -S.

    Sensitivity 1. Let Q = sum n_c^2 and add a record to child a:

        S' - S = (Q + 2 n_a + 1) / (n + 1) - Q / n = (2 n_a + 1 - Q / n) / (n + 1).

    Since Q >= n_a^2, the bracket is at most 2 n_a + 1 - n_a^2 / n, which grows with n_a up to n + 1 at n_a = n: S
    rises by at most 1. Since Q <= n^2 and n_a >= 0, it is at least 1 - n: S falls by less than 1. An empty range has S
    = 0, and 1 with its first record. Not monotone. S is rounded down to the grid, exactly, which adds one unit.
    """

    name: ClassVar[str] = "discernibility"
    unit: ClassVar[Fraction] = Fraction(1, 2**10)
    monotone: ClassVar[bool] = False
    positional: ClassVar[bool] = False
    needs_classes: ClassVar[bool] = False

    def sensitivity(self, _classes: int, /) -> Fraction:
        """1 plus the rounding."""
        return 1 + self.unit

    def of(self, children: Children) -> Integers:
        """-floor(sum n_c^2 / (n unit))."""
        sizes: NDArray[Any] = children.counts.sum(axis=1)
        totals = np.maximum(children.sum(sizes), 1)
        if int(totals.max()) >= 2**31:
            sizes, totals = sizes.astype(object), totals.astype(object)
        squares = children.sum(sizes * sizes)
        steps = self.unit.denominator
        return np.asarray(-(squares // totals * steps + squares % totals * steps // totals), np.int64)


@dataclass(frozen=True)
class Gini(Score):
    """The Gini impurity that the children leave, weighted by their records; less is better (Friedman and Schuster).

    S = -sum over children c of n_c (1 - sum over classes k of (n_ck / n_c)^2) = sum over c of (Q_c / n_c - n_c), with
    Q_c the sum of n_ck^2; a child without records has 0.

    Sensitivity 2, monotone. A record of class k in child c changes Q_c / n_c as it does in `Discernibility`, classes
    being its children: by at most 1, and down by less than 1. From that 1 is taken, so S falls by 0 or more, and by
    less than 2. Each child's term is rounded down to the grid, exactly: n_c is whole, so that is rounding down
    Q_c / n_c. What never rises does not when it is rounded down, and it falls by one unit more at most.
    """

    name: ClassVar[str] = "gini"
    unit: ClassVar[Fraction] = Fraction(1, 2**10)
    monotone: ClassVar[bool] = True
    positional: ClassVar[bool] = False
    needs_classes: ClassVar[bool] = True

    def sensitivity(self, _classes: int, /) -> Fraction:
        """2 plus the rounding."""
        return 2 + self.unit

    def of(self, children: Children) -> Integers:
        """The sum of floor(Q_c / (n_c unit)) - n_c / unit."""
        counts: NDArray[Any] = children.counts
        if int(counts.sum(axis=1).max(initial=0)) >= 2**31:
            counts = counts.astype(object)
        sizes = counts.sum(axis=1)
        least_one, squares, steps = np.maximum(sizes, 1), (counts * counts).sum(axis=1), self.unit.denominator
        purity = squares // least_one * steps + squares % least_one * steps // least_one
        return np.asarray(children.sum(purity - sizes * steps), np.int64)


@dataclass(frozen=True)
class Balance(Score):
    """How far the children are from holding equally many records; less is better: a split of score 0 is at the median.

    S = -(the largest child's records less the smallest's), of two children -| |L| - |R| |. Sensitivity 1: a record
    raises one child by 1, and with it the largest by 0 or 1 and the smallest by 0 or 1, so their difference moves by 1
    at most. Not monotone.
    """

    name: ClassVar[str] = "balance"
    unit: ClassVar[Fraction] = Fraction(1)
    monotone: ClassVar[bool] = False
    positional: ClassVar[bool] = False
    needs_classes: ClassVar[bool] = False

    def sensitivity(self, _classes: int, /) -> Fraction:
        """1, as derived above."""
        return Fraction(1)

    def of(self, children: Children) -> Integers:
        """The differences of sizes."""
        sizes, first = children.counts.sum(axis=1), children.starts[:-1]
        return np.asarray(np.minimum.reduceat(sizes, first) - np.maximum.reduceat(sizes, first))


PENALTY = 2**16
"""The whole domain's normalized certainty penalty, of which others are parts."""


def _penalties(widths: Integers, leaves: int) -> Integers:
    """The normalized certainty penalty of ranges, on the grid: their share of the domain, 0 for single leaves.

    They are public numbers between 0 and 1, rounded down once for all tables, so sums over them are exact.
    """
    return np.asarray(np.where(widths > 1, widths * PENALTY // leaves, 0), np.int64)


@dataclass(frozen=True)
class CertaintyGain(Score):
    """The certainty that the records gain: what a split takes off the normalized certainty penalty (NCP). Ours.

    S = sum over children of n_c (w - w_c), with w the penalty of the range that is divided and w_c of the child's. It
    is what greedy growth should maximize, since the penalty of the other attributes stays.

    Sensitivity 1, monotone: a record in child c adds w - w_c, which is between 0 and 1, and public.
    """

    name: ClassVar[str] = "ncp"
    unit: ClassVar[Fraction] = Fraction(1, PENALTY)
    monotone: ClassVar[bool] = True
    positional: ClassVar[bool] = True
    needs_classes: ClassVar[bool] = False

    def sensitivity(self, _classes: int, /) -> Fraction:
        """1, as derived above."""
        return Fraction(1)

    def of(self, children: Children) -> Integers:
        """The sum of what the records gain."""
        before = children.repeat(_penalties(children.sum(children.widths), children.leaves))
        gained = before - _penalties(children.widths, children.leaves)
        return np.asarray(children.sum(children.counts.sum(axis=1) * gained))


@dataclass(frozen=True)
class PenaltyLeft(Score):
    """The normalized certainty penalty after the split, of the divided attribute (DiffMulti, equation 6).

    Less is better: S = -sum over children of n_c w_c. Sensitivity 1, monotone: a record in child c takes off w_c, which
    is between 0 and 1. It compares attributes by what is left of their penalty, not by what the split takes off it.
    """

    name: ClassVar[str] = "ncp-left"
    unit: ClassVar[Fraction] = Fraction(1, PENALTY)
    monotone: ClassVar[bool] = True
    positional: ClassVar[bool] = True
    needs_classes: ClassVar[bool] = False

    def sensitivity(self, _classes: int, /) -> Fraction:
        """1, as derived above."""
        return Fraction(1)

    def of(self, children: Children) -> Integers:
        """The sum of what is left."""
        left = _penalties(children.widths, children.leaves)
        return np.asarray(-children.sum(children.counts.sum(axis=1) * left))


@dataclass(frozen=True)
class Beyond(Score):
    """Whether the record that is so many records from an end lies in a candidate's outermost cell but one: a bound.

    A candidate's last child is what lies beyond the bound, and the child before it the cell that ends there (for a
    lower bound, the first and the second). With n_o and n_c their records, and r = `rows`, which is public:

        S = min(n_o + n_c - r, r - n_o).

    It is 0 or more for the cell in which the r-th record from the end lies, at most 0 for every other, and -r where
    nobody lies in the cell or beyond it, of which there may be many. A candidate of one child has n_c = 0.

    Sensitivity 1: a record raises n_o + n_c by 0 or 1, and r - n_o falls by 0 or 1; the smaller of two numbers that
    move by 1 at most moves by 1 at most. Not monotone.
    """

    rows: int = 20
    upper: bool = True
    name: ClassVar[str] = "beyond"
    unit: ClassVar[Fraction] = Fraction(1)
    monotone: ClassVar[bool] = False
    positional: ClassVar[bool] = False
    needs_classes: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse a number of records that is out of bounds."""
        if not 0 <= self.rows <= 10**15:
            raise MethodError(f"rows ({self.rows}) must be between 0 and 10^15", "Use a larger epsilon.")

    def sensitivity(self, _classes: int, /) -> Fraction:
        """1, as derived above."""
        return Fraction(1)

    def of(self, children: Children) -> Integers:
        """How well each candidate holds the record."""
        sizes, several = children.counts.sum(axis=1), children.fans > 1
        places = children.starts[1:] - 1 if self.upper else children.starts[:-1]
        outer, cell = sizes[places], sizes[places + several * (-1 if self.upper else 1)] * several
        return np.asarray(np.minimum(outer + cell - self.rows, self.rows - outer))


Selection = Literal["permute-and-flip", "exponential"]
"""How one of several scored candidates is chosen."""

SCORES: dict[str, type[Score]] = {
    Max.name: Max,
    BalancedMax.name: BalancedMax,
    InfoGain.name: InfoGain,
    WeightedGain.name: WeightedGain,
    Deviation.name: Deviation,
    Gini.name: Gini,
    Discernibility.name: Discernibility,
    Balance.name: Balance,
    CertaintyGain.name: CertaintyGain,
    PenaltyLeft.name: PenaltyLeft,
    Beyond.name: Beyond,
}
"""The scores by name: the only ones that the meter chooses by."""


def sides(score: type[Score], selection: Selection) -> int:
    """By how many sensitivities the gap between two scores may change.

    One record moves two scores apart by two sensitivities, or by one if it moves all scores in one direction. The
    exponential mechanism is here to do what the papers do, and keeps the factor 2.
    """
    return 1 if score.monotone and selection == "permute-and-flip" else 2
