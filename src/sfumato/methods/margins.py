"""One-way margins: how a method shares a part of its budget among them, and measures them.

All answers of a release agree with its margins; the papers do without. Of an attribute with few leaves, the leaves
alone are measured. Of one with many, a range adds up the noise of many leaves, and coarser levels of the attribute's
halving pay off, or the differences of halves (wavelets). What is measured and how it shares the margin's budget is
decided by the number of leaves alone, which is public, for the least expected error of the share of people below a
border between two leaves, any border being as likely as another; a range's share is the difference of two such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal, get_args

import numpy as np

from sfumato.arrays import Floats
from sfumato.geometry.contrasts import Halves
from sfumato.geometry.halving import borders, height, parts
from sfumato.methods.method import Parameters, one_of, optional, parameter, share
from sfumato.privacy.budget import Schedule
from sfumato.privacy.measurements import Measurement
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Cells, Contrasts, Tally
from sfumato.schema.schema import Schema, variables_of

Purpose = Literal["balanced", "counts", "classification"]
"""What a release is for: counts by a few attributes, telling the class, or both."""
SHARES: Mapping[str, Fraction] = {"balanced": Fraction(1, 2), "counts": Fraction(4, 5)}
"""The share of epsilon that margins get, by purpose; for classification each method knows best."""
FINENESS = 100
"""Weights of margins are rounded to one part in so many."""
ROUNDS = 12
"""How often shares and demands are brought in line; they settle before."""
CLOSEST = 3
"""The fewest halvings between two levels, so that parts are divided in eight or more: closer ones never paid off."""
WORTH_IT = 0.99
"""A plan must have at most this part of the error of a simpler one to be preferred."""
SHORTEST = 16
"""Of an attribute with fewer leaves differences are not the best plan, whatever its error: they do not tell how many
people there are, which short margins tell well."""
By = Literal["best", "flat", "levels", "wavelets"]
"""How margins are measured: leaf by leaf, by levels of a halving, by differences of halves, or as is best."""


@dataclass(frozen=True, kw_only=True)
class WithMargins(Parameters):
    """What methods that buy margins declare: what the release is for, and the share of epsilon that margins get."""

    MARGINS: ClassVar[Fraction]
    """the share that serves classification best, by this method"""

    purpose: Purpose = parameter(
        "balanced",
        "What the release is for: counts, classification, or both (balanced). It decides the share of epsilon that "
        "one-way margins get.",
        read=one_of(get_args(Purpose)),
        option="for",
    )
    margins: Fraction | None = parameter(
        None,
        "The share of epsilon spent on one-way margins, which all answers agree with; if not given, what the purpose "
        "calls for; 0 is the paper's way.",
        read=optional(share()),
    )

    margins_by: By = parameter(
        "best",
        "How margins are measured: leaf by leaf (flat), by levels of a halving, by Haar wavelets, or by what is best "
        "for each attribute's number of leaves.",
        read=one_of(get_args(By)),
    )

    @property
    def margin_share(self) -> Fraction:
        """The share of epsilon that margins get."""
        return SHARES.get(self.purpose, self.MARGINS) if self.margins is None else self.margins


def margin_parts(schema: Schema, budget: Fraction, by: By) -> Mapping[str, Fraction]:
    """Share a budget among all rounds of the margins of all attributes, the class included.

    An attribute gets as the cube root of its expected error: that has the least sum of error / epsilon^2.
    """
    weights = {
        label: max(round(FINENESS * part * plan_margin(leaves, by).error ** (1 / 3)), 1)
        for name, leaves in _margins(schema)
        for label, (_, part) in _rounds(schema, name, leaves, by).items()
    }
    return {label: budget * weight / sum(weights.values()) for label, weight in weights.items() if budget}


def buy_margins(meter: Meter, schema: Schema, schedule: Schedule, histograms: Tally, by: By) -> tuple[Measurement, ...]:
    """Measure the margins of all attributes, also of those that the regions resolve, and of the class.

    Each level is a round of its own: its parts are disjoint, and the next level's lie in them. So are the differences
    of the halves of a level's parts.
    """
    names = list(schema.predictors)
    return tuple(
        meter.measure(
            _asked(histograms, names.index(name) if name in names else None, leaves, what), schedule[label], label
        )
        for name, leaves in _margins(schema)
        for label, (what, _) in _rounds(schema, name, leaves, by).items()
        if label in schedule.parts
    )


def _margins(schema: Schema) -> list[tuple[str, int]]:
    """List the attributes that have a margin, and their leaves."""
    return [(name, column.leaves) for name, column in variables_of(schema).items() if column.leaves > 1]


def _rounds(schema: Schema, name: str, leaves: int, by: By) -> Mapping[str, tuple[int | Halves, float]]:
    """Share an attribute's budget among levels, by their depth, and differences; the class has no order, and one level.

    Rounds are named so that no two attributes' can be called the same.
    """
    last = height(leaves)
    plan = FLAT if name == schema.target else plan_margin(leaves, by)
    levels = plan.shares or ({} if plan.halves else {last: 1.0})
    counted = {_label(name, leaves, depth): (depth, share) for depth, share in levels.items()}
    halves = {
        f"margin by halves of {parts(leaves, depth)} parts of {name}": (Halves(leaves, depth), share)
        for depth, share in plan.halves.items()
    }
    return counted | halves


def _asked(histograms: Tally, attribute: int | None, leaves: int, what: int | Halves) -> Cells | Contrasts:
    if attribute is None:
        return Cells(histograms)
    if isinstance(what, Halves):
        return Contrasts(histograms, attribute, what)
    return Cells(histograms, attribute, borders(leaves, what))


def _label(name: str, leaves: int, depth: int) -> str:
    return f"margin of {name}" if depth == height(leaves) else f"margin in {parts(leaves, depth)} parts of {name}"


@dataclass(frozen=True)
class Plan:
    """The share of the budget of each measured depth, and the expected error: a variance, for a budget of 1."""

    shares: Mapping[int, float]
    error: float
    halves: Mapping[int, float] = field(default_factory=dict)
    """the share of the differences of the halves of each depth's parts"""


FLAT = Plan({}, 0.0)
"""The leaves alone, whatever their number."""


def plan_margin(leaves: int, by: By) -> Plan:
    """The plan of a kind; the best is decided by the number of leaves, which is public.

    >>> [(by, round(plan_margin(1000, by).error)) for by in ("flat", "levels", "wavelets")]
    [('flat', 333), ('levels', 79), ('wavelets', 176)]
    """
    if by == "flat":
        return _shared(leaves, [height(leaves)])
    if by == "wavelets":
        return plan_halves(leaves)
    levels = plan_levels(leaves)
    halves = plan_halves(leaves)
    better = leaves >= SHORTEST and halves.error < WORTH_IT * levels.error
    return halves if by == "best" and better else levels


@lru_cache(maxsize=256)
def plan_halves(leaves: int) -> Plan:
    """The plan in which the differences of halves are measured at every depth.

    Let a border lie in a part at depth d so that a fraction x of its first half and y of the second lie below. The
    halves are (S + D) / 2 and (S - D) / 2, so an error of D counts (x - y) / 2 times: its variance times
    (x - y)^2 / 4, on average (1 + 2 / m^2) / 12 of it for a part of m leaves (see `expected_error`); on the last depth
    only some parts have two halves. Differences of all depths err by themselves. Noise of a share s of the budget has
    variance 2 / s^2, and shares as the cube roots of these demands have the least sum.
    """
    last = height(leaves)
    demand = (1 + 2 / (leaves / 2.0 ** np.arange(last)) ** 2) / 12
    if last:
        demand[-1] = (leaves / 2.0 ** (last - 1) - 1) / 8
    roots = np.cbrt(demand)
    shares = roots / max(roots.sum(), 1e-300)
    return Plan({}, float(2 * roots.sum() ** 3), dict(enumerate(shares.tolist())))


@lru_cache(maxsize=256)
def plan_levels(leaves: int) -> Plan:
    """The best plan in which levels at equal distances are measured, from the leaves up to some level.

    >>> plan_levels(16).shares
    {4: 1.0}
    >>> {depth: round(share, 2) for depth, share in plan_levels(1000).shares.items()}
    {4: 0.38, 7: 0.29, 10: 0.34}
    """
    best = Plan({}, np.inf)
    for depths in _candidates(height(leaves)):
        plan = _shared(leaves, depths)
        if plan.error < WORTH_IT * best.error:
            best = plan
    return best


def _candidates(last: int) -> Iterator[list[int]]:
    """List sets of depths: the leaves' level alone, then with others at equal distances above it, but not the root."""
    yield [last]
    for step in range(CLOSEST, last):
        for first in range(last - step, 0, -step):
            yield [*range(first, last + 1, step)]


def _shared(leaves: int, depths: list[int]) -> Plan:
    """Share a budget of 1 among levels: as the cube root of the demand, which has the least sum of demand / share^2.

    The demand follows from the shares, so both are brought in line by turns. Noise is taken for Laplace's, of variance
    2 / share^2.
    """
    shares = np.zeros(height(leaves) + 1)
    shares[depths] = 1 / len(depths)
    for _ in range(ROUNDS if len(depths) > 1 else 0):
        _, demand = expected_error(leaves, shares**2 / 2)
        shares = np.cbrt(demand)
        shares /= shares.sum()
    error, _ = expected_error(leaves, shares**2 / 2)
    return Plan({depth: float(shares[depth]) for depth in depths}, error)


def expected_error(leaves: int, precision: Floats) -> tuple[float, Floats]:
    """The variance of the share below a border, times the people squared, and the demand for each level.

    Let v_d be the variance of a part at depth d as its own subtree sees it (see `consistency.LeastSquares`): with
    b_d parts to a part above, v_(d-1) = 1 / (p_(d-1) + 1 / (b_d v_d)). A border lies in one part of each depth. If
    it cuts the two halves of that so that a fraction x of one and y of the other lies below, the division between the
    halves errs into the share by v_d (x - y)^2 / 2. For a part of m leaves, all borders alike, (x - y)^2 is on
    average (1 + 2 / m^2) / 3. The total does not matter, only shares do: nothing is added for the root. On the last
    level only some parts have two halves; there the averages of b and of (x - y)^2 stand for all. For a power of 2
    all of this is exact.

    So the error is the sum of g_d v_d, and the demand for level d, the sum of its measurements' squared coefficients,
    is -p^2 times the error's derivative by p_d (the coefficients being the best, that is the whole of it), which runs
    down from the root: a_d = g_d + a_(d-1) v_(d-1)^2 / (b_d v_d^2), and the demand is a_d (p_d v_d)^2.
    """
    last = height(leaves)
    children, cut = np.full(last + 1, 2.0), np.zeros(last + 1)
    children[last] = leaves / 2.0 ** (last - 1)
    cut[1:] = (1 + 2 / (leaves / 2.0 ** np.arange(last)) ** 2) / 6
    cut[last] = (children[last] - 1) / 4
    variance = np.zeros(last + 1)
    variance[last] = 1 / precision[last]
    for depth in range(last, 0, -1):
        variance[depth - 1] = 1 / (precision[depth - 1] + 1 / (children[depth] * variance[depth]))
    passed = cut.copy()
    for depth in range(2, last + 1):
        passed[depth] += passed[depth - 1] * (variance[depth - 1] / variance[depth]) ** 2 / children[depth]
    return float(cut @ variance), passed * (precision * variance) ** 2
