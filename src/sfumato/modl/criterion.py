"""What a grid costs: minus the logarithm of its posterior probability, up to a constant that all grids share.

It stands apart from the search because it defines what is searched for. Notation: d variables, a total weight N;
variable j has V_j values that were seen, put into k_j parts; G is the product of the k_j; cell c of the grid has
weight n_c, part i of variable j weight N_i and m_i values, value v weight n_v. Then

    cost = sum_j prior_j(k_j)                                    the partitions
         + ln C(N + G - 1, G - 1) + ln N! - sum_c ln n_c!        the weights of the cells, and who is in which
         + sum over groups    of ln C(N_i + m_i - 1, m_i - 1) + ln N_i!    minus sum_v ln n_v!    (categorical)
         + sum over intervals of ln N_i!                                                          (numeric)

Values inside a group are counted in some way, all equally probable; inside an interval records are ranked. Borders of
intervals need no prior: on ranks, they follow from the weights of the cells. The first binomial simplifies to
ln Gamma(N + G) - ln Gamma(G), a group's to ln (N_i + m_i - 1)! - ln (m_i - 1)!. Weights may be real: ! is Gamma's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.modl.codes import bounded, log_partitions, universal
from sfumato.modl.factorials import Floats, log_gamma

Kind = Literal["categorical", "numeric"]
Variant = Literal["boulle2010", "khiops11"]
Sizes = NDArray[np.int64]

ROOM_FOR_GARBAGE = 7
"""With more values than this, Khiops pays ln 2 to say whether one group is a garbage group."""


@dataclass(frozen=True)
class Criterion:
    """The costs of one histogram's grids.

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
        """Give what depends on the numbers of parts alone: the priors, and that of the weights of all G cells."""
        cells = math.prod(parts)
        priors = sum(self._prior(variable, number) for variable, number in enumerate(parts))
        return self._selection(parts) + priors + math.lgamma(self.total + cells) - math.lgamma(cells)

    def shape_costs_along(self, variable: int, parts: Sequence[int], numbers: Sequence[int]) -> Floats:
        """Give the shape costs when one variable has other numbers of parts."""
        before, after = tuple(parts[:variable]), tuple(parts[variable + 1 :])
        return np.array([self.shape_cost((*before, number, *after)) for number in numbers])

    def part_costs(self, variable: int, weights: Floats, sizes: Sizes) -> Floats:
        """Give what each part of a variable costs, from its weight and its number of values."""
        if self.kinds[variable] == "numeric":
            return log_gamma(weights + 1.0)
        return log_gamma(weights + sizes) - self._log_gammas.take(sizes, mode="clip")

    def group_cost(self, weight: float, size: int) -> float:
        """Give what one group of a categorical variable costs: nothing while it is empty."""
        return math.lgamma(weight + size) - math.lgamma(size) if size else 0.0

    @cached_property
    def _log_gammas(self) -> Floats:
        """Give ln Gamma(m) for each number m of values that a part can have, and 0 for none."""
        return np.append(0.0, log_gamma(np.arange(1.0, max(self.values) + 1)))

    def _selection(self, parts: Sequence[int]) -> float:
        """Give Khiops' cost of telling the null model from others, and which variables are cut."""
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
