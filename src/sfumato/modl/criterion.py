"""What a grid costs: minus the logarithm of its posterior probability, up to a constant that all grids share.

Notation: d variables, a total weight N; variable j has V_j values that were seen, put into k_j parts; G is the product
of the k_j; cell c of the grid has weight n_c, part i of variable j weight N_i and m_i values, value v weight n_v. Then

    cost = sum_j prior_j(k_j)                                    the partitions
         + ln C(N + G - 1, G - 1) + ln N! - sum_c ln n_c!        the weights of the cells, and who is in which
         + sum over groups    of ln C(N_i + m_i - 1, m_i - 1) + ln N_i!    minus sum_v ln n_v!    (categorical)
         + sum over intervals of ln N_i!                                                          (numeric)

All distributions of a group's weight over its values are equally probable; inside an interval records are ranked.
Borders of intervals need no prior: on ranks, they follow from the weights of the cells. The first binomial simplifies
to ln Gamma(N + G) - ln Gamma(G), a group's to ln (N_i + m_i - 1)! - ln (m_i - 1)!. Weights may be real: ! is Gamma's.

Nearly all time goes into logarithms of factorials, which are looked up in a table (`LogFactorials`) where weights are
whole multiples of one unit. Priors are lengths, in nats, of the codes of numbers of parts and of partitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers

Kind = Literal["categorical", "numeric"]
Variant = Literal["boulle2010", "khiops11"]
Counts = NDArray[Any]
"""Whole counts (np.int64), or real weights (np.float64)."""
SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
"""The coefficients of Stirling's series."""
HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
TABLE = 1 << 20
"""How many logarithms of factorials are tabulated at most: no more than a processor's cache holds."""
UNIVERSAL_CONSTANT = 2.86511
"""The sum of 2^-log2*(n) over all n >= 1, as Khiops rounds it."""
SUMMED = 1 << 16
"""Up to here the sum of 2^-log2*(n) is taken term by term; it is also where log2* gets its fifth term."""
ROOM_FOR_GARBAGE = 7
"""With more values than this, Khiops pays ln 2 to say whether one group is a garbage group."""


def log_gamma(arguments: Floats) -> Floats:
    """Ln Gamma(x) for x >= 1.

    From Gamma(x + 8) = x (x + 1) ... (x + 7) Gamma(x), and Stirling's series at z = x + 8, which is so large that what
    follows the term in z^-9 is below 691 / (360360 9^11) < 10^-13. With t = x (x + 7) the factors, taken in pairs from
    both ends, are t, t + 6, t + 10 and t + 12.

    >>> log_gamma(np.array([1.0, 5.0, 11.0])).round(9).tolist() == [0.0, round(math.log(24), 9), 15.104412573]
    True
    """
    pair = arguments * (arguments + 7)
    product = pair * (pair + 6)
    product *= (pair + 10) * (pair + 12)
    shifted = arguments + 8
    inverse = 1 / shifted
    square = inverse * inverse
    series = square * SERIES[-1]
    for coefficient in SERIES[-2:0:-1]:
        series += coefficient
        series *= square
    series += SERIES[0]
    series *= inverse
    result: Floats = (shifted - 0.5) * np.log(shifted)
    result -= np.log(product)
    result -= shifted - HALF_LOG_TAU
    result += series
    return result


class LogFactorials:
    """ln (n unit)! for arrays of counts: integers n of at most `largest`, or real weights, whose unit is 1."""

    def __init__(self, largest: float, unit: float) -> None:
        """Tabulate the integers, up to TABLE of them."""
        self._unit = unit
        self._has_all = largest < TABLE
        self._table = log_gamma(np.arange(min(int(largest), TABLE) + 1.0) * unit + 1)

    def __call__(self, counts: Counts) -> Floats:
        """The logarithms: integers are looked up, reals are computed."""
        if counts.dtype.kind == "f":
            return log_gamma(counts + 1.0)
        result: Floats = self._table.take(counts, mode="clip")
        if not self._has_all:
            beyond = counts >= TABLE
            if beyond.any():
                result[beyond] = log_gamma(counts[beyond] * self._unit + 1)
        return result


def log2_star(number: float) -> float:
    """The sum of log2 n, log2 log2 n, ... as long as these are positive.

    >>> log2_star(1), log2_star(2), log2_star(16)
    (0.0, 1.0, 7.0)
    """
    total, term = 0.0, math.log2(number)
    while term > 0:
        total += term
        term = math.log2(term)
    return total


def universal(number: int) -> float:
    """The length of Rissanen's code for an integer n >= 1 of which nothing is known: ln c + ln 2 log2*(n)."""
    return math.log(UNIVERSAL_CONSTANT) + math.log(2) * log2_star(number)


def bounded(number: int, largest: float) -> float:
    """The length of the same code for an integer known to be at most `largest`: c is the sum up to there."""
    return math.log(_mass(max(math.floor(largest), number))) + math.log(2) * log2_star(number)


@cache
def _mass(largest: int) -> float:
    """The sum of f(n) = 2^-log2*(n) for n = 1 ... largest.

    Beyond 2^16, f(x) = 1 / (x log2(x) log2(log2(x)) ...), with four logarithms, is (ln 2)^5 times the derivative of
    the fifth iterate of log2; Euler and Maclaurin turn the integral into the sum, with an error of f'/12 < 10^-12.
    """
    head = _heads()
    if largest <= SUMMED:
        return float(head[largest - 1])
    iterate = float(largest)
    for _ in range(5):
        iterate = math.log2(iterate)
    ends = (2.0 ** -log2_star(largest) - 2.0 ** -log2_star(SUMMED)) / 2
    return float(head[-1] + math.log(2) ** 5 * iterate + ends)


@cache
def _heads() -> Floats:
    """The sums of 2^-log2*(n) up to each of the first SUMMED integers."""
    return np.cumsum([2.0 ** -log2_star(number) for number in range(1, SUMMED + 1)])


@cache
def log_partitions(values: int, groups: int) -> float:
    """Ln B(V, k), where B is the number of partitions of V values into at most k groups.

    Stirling's number of partitions into exactly j groups is the sum over i of (-1)^(j-i) i^V / (i! (j-i)!). Summed over
    j <= k it is that of i^V / i! d(k-i), where d(m) = 1 - 1/1! + 1/2! - ... (m terms more) is the share of
    permutations of m things that leave none in its place. No d is negative, so nothing cancels.

    >>> round(math.exp(log_partitions(4, 4)), 9), round(math.exp(log_partitions(4, 2)), 9)
    (15.0, 8.0)
    """
    if groups == 1 or values == 1:
        return 0.0
    most = min(groups, values)
    indices = np.arange(1, most + 1)
    shares = _displaced(most)[most - indices]
    log_factorials = np.cumsum(np.log(indices))
    with np.errstate(divide="ignore"):
        terms = values * np.log(indices) - log_factorials + np.log(shares)
    highest = terms.max()
    return float(highest + math.log(np.exp(terms - highest).sum()))


def _displaced(most: int) -> Floats:
    """d(m) for m = 0 ... most - 1; it is 1/e to the last digit from m = 18 on."""
    shares, term = [1.0], 1.0
    for index in range(1, 19):
        term /= -index
        shares.append(shares[-1] + term)
    return np.array(shares)[np.minimum(np.arange(most), 18)]


@dataclass(frozen=True)
class Criterion:
    """What the grids of one histogram cost.

    `boulle2010` is the published prior: a number of parts is uniform up to V_j (categorical) or N (numeric), then every
    partition into at most that many groups. `khiops11` is that of the program Khiops 11: universal codes for the number
    of variables that are cut and for the numbers of parts. Its alternative code for a partition with a garbage group
    is left out.
    """

    variant: Variant
    kinds: tuple[Kind, ...]
    values: tuple[int, ...]
    total: float
    _priors: dict[tuple[int, int], float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def shape_cost(self, parts: Sequence[int]) -> float:
        """The part of the cost that depends on the numbers of parts alone: their priors, and that of the G weights."""
        cells = math.prod(parts)
        priors = sum(self._prior(variable, number) for variable, number in enumerate(parts))
        return self._selection(parts) + priors + math.lgamma(self.total + cells) - math.lgamma(cells)

    def shape_costs_along(self, variable: int, parts: Sequence[int], numbers: Sequence[int]) -> Floats:
        """The shape costs if one variable had other numbers of parts."""
        before, after = tuple(parts[:variable]), tuple(parts[variable + 1 :])
        return np.array([self.shape_cost((*before, number, *after)) for number in numbers])

    def part_costs(self, variable: int, weights: Floats, sizes: Integers) -> Floats:
        """The cost of each part of a variable, from its weight and its number of values."""
        if self.kinds[variable] == "numeric":
            return log_gamma(weights + 1.0)
        return log_gamma(weights + sizes) - self._log_gammas.take(sizes, mode="clip")

    def group_cost(self, weight: float, size: int) -> float:
        """The cost of one group of a categorical variable; 0 while it is empty."""
        return math.lgamma(weight + size) - math.lgamma(size) if size else 0.0

    @cached_property
    def _log_gammas(self) -> Floats:
        """Ln Gamma(m) for each number m of values that a part can have, and 0 for none."""
        return np.append(0.0, log_gamma(np.arange(1.0, max(self.values) + 1)))

    def _selection(self, parts: Sequence[int]) -> float:
        """Khiops' cost of telling the null model from others, and which variables are cut."""
        if self.variant == "boulle2010":
            return 0.0
        cut = sum(number > 1 for number in parts)
        return math.log(2) + (universal(cut) - math.lgamma(cut + 1) if cut else 0.0)

    def _prior(self, variable: int, number: int) -> float:
        known = self._priors.get((variable, number))
        if known is None:
            prior = _published if self.variant == "boulle2010" else _khiops
            known = prior(self.kinds[variable], self.values[variable], self.total, number)
            self._priors[variable, number] = known
        return known


def _published(kind: Kind, values: int, total: float, parts: int) -> float:
    if kind == "numeric":
        return math.log(max(total, 1.0))
    return math.log(values) + log_partitions(values, parts)


def _khiops(kind: Kind, values: int, total: float, parts: int) -> float:
    if parts == 1:
        return 0.0
    if kind == "numeric":
        return bounded(parts - 1, total - 1)
    garbage = math.log(2) if values > ROOM_FOR_GARBAGE else 0.0
    return bounded(parts - 1, values - 1) + log_partitions(values, parts) + garbage
