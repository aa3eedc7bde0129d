"""DPCocGen: a grid of groups of values learnt from a noisy histogram, its parts counted anew (Benkhelif et al. 2017).

Privacy. Two rounds over disjoint cells, and the margins: the histogram of all combinations of leaves, then the parts of
the grid, which is made from the noisy histogram alone and so costs nothing. Their debits sum to epsilon at most.

The paper clips the noisy counts and takes them for exact, gives both rounds half of epsilon, and spreads people evenly
inside parts. We correct the counts for their noise before the co-clustering, choose how coarse the grid should be,
combine both rounds, buy margins, and let the release spread people inside parts by all that was paid for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.errors import MethodError
from sfumato.geometry.grid import Grid
from sfumato.methods.laplace import FEWER, histogram
from sfumato.methods.margins import WithMargins, buy_margins, margin_parts
from sfumato.methods.method import Method, number, one_of, optional, parameter, share
from sfumato.modl import DataGrid, fit
from sfumato.modl.grid import MOST_CELLS, Labels, sum_parts
from sfumato.privacy.budget import Schedule, payable
from sfumato.privacy.measurements import Draft, Noisy, variance_of
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.attributes import Numeric
from sfumato.schema.schema import Schema, cells_of, kinds_of, refuse_large

MOST_RESTARTS = 1000
"""The most restarts of the search for the best grid."""
SURE = 4.0
"""By how many standard deviations structure must stand out from noise."""

Correction = Literal["dispersion", "clip"]
"""How noisy counts are made fit for co-clustering: ours, or the paper's."""
Inside = Literal["all", "evenly"]
"""How people are spread inside groups: ours, or the paper's."""

read_cells = number("Give for example 144.")
MUST_BE_FEWER = (
    f"Publish fewer with --attributes, or give those a coarser grid: no more than {MOST_CELLS:,} cells can be "
    "co-clustered, whatever max_cells says."
)
"""The way out for a domain that no max_cells lets through."""
NO_STRUCTURE = "warning: the grid cannot be told from noise, so this release carries no structure beyond its margins"
"""The step that warns of a grid which means nothing."""


@dataclass(frozen=True, kw_only=True)
class DPCocGen(WithMargins, Method):
    """Co-clustering of all attributes, for synthetic individuals that keep their joint structure."""

    name: ClassVar[str] = "dpcocgen"
    order: ClassVar[int] = 4
    suits: ClassVar[str] = "synthetic people of a few attributes that keep their joint structure"
    arithmetic: ClassVar[str] = "half of the rest for all cells, half for the groups; margins first"
    unsuited: ClassVar[str] = "on domains of more than ten million cells: a few attributes only"
    summary: ClassVar[str] = (
        "groups the values of all attributes at once by co-clustering a noisy histogram (MODL), and counts the groups, "
        "for synthetic individuals (Benkhelif et al. 2017)"
    )
    additions: ClassVar[str] = (
        "noise corrected before the co-clustering, granularity by expected error, both counts combined, cells refined "
        "by what was paid for, a warning when the grid cannot be told from noise"
    )
    MARGINS: ClassVar[Fraction] = Fraction(3, 20)
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {},
        {"margins": 0, "cells": 12},
        {"correction": "clip", "information": "0.5", "restarts": 1, "histogram": "0.25"},
    )
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    cells: int | None = parameter(
        None,
        "The most groups that the grid may have, the class apart; if not given, what has least error.",
        read=optional(read_cells),
    )
    information: Fraction | None = parameter(
        None,
        "The share of the best grid's information that must be kept, up to 1, instead of a number of cells.",
        read=optional(share(most=Fraction(1))),
    )
    histogram: Fraction = parameter(
        Fraction(1, 2),
        "The share of epsilon without margins that is spent on the histogram of all combinations.",
        read=share(least=Fraction(1, 20)),
    )
    correction: Correction = parameter(
        "dispersion",
        "How noisy counts are made fit for co-clustering: corrected for their dispersion, or clip at 0.",
        read=one_of(get_args(Correction)),
    )
    inside: Inside = parameter(
        "all",
        "How people are spread inside groups: by all that was paid for, or evenly, as in the paper.",
        read=one_of(get_args(Inside)),
    )
    restarts: int = parameter(
        0, "How often the search for the best grid begins anew.", read=number("Give for example 3.", 0, MOST_RESTARTS)
    )
    max_cells: int = parameter(
        10_000_000,
        "A domain with more combinations of values than this is refused.",
        read=number("Give what you can store.", least=2),
    )

    @classmethod
    def as_published(cls, *, cells: int | str | None = None) -> DPCocGen:
        """Make the method as the paper has it, at the finest level or one with at most so many cells."""
        return cls(
            cells=None if cells is None else read_cells("cells", cells),
            information=Fraction(1) if cells is None else None,
            margins=Fraction(0),
            correction="clip",
            inside="evenly",
        )

    def check(self) -> None:
        """Refuse a granularity that is given twice."""
        if self.cells is not None and self.information is not None:
            raise MethodError("granularity must be given by cells or by information, not both", "Leave one out.")

    @property
    def model(self) -> str:
        """The model of co-clusters, whose cells were counted, too; that of a grid if people are spread evenly."""
        return "coclusters" if self.inside == "all" else "grid"

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Share epsilon among margins, histogram and counts."""
        if len(schema.predictors) + (schema.target is not None) < 2:
            raise MethodError(f"{self.name} must have two attributes or more", "Publish more of them.")
        refuse_large(schema, min(self.max_cells, MOST_CELLS), FEWER if self.max_cells < MOST_CELLS else MUST_BE_FEWER)
        parts = dict(margin_parts(schema, epsilon * self.margin_share, self.margins_by))
        rest = epsilon - sum(parts.values(), Fraction(0))
        return Schedule(parts | {"histogram": rest * self.histogram, "counts": rest * (1 - self.histogram)})

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Measure the histogram, learn the grid, measure margins for what it leaves open, and count its parts."""
        fine = meter.measure(histogram(schema), schedule["histogram"], "histogram")
        grid = grid_of(schema, self._learnt(schema, fine.noisy, schedule["counts"]))
        classes = len(schema.classes)
        singles = Tally(Grid.whole(schema.shape), classes, tuple(range(len(schema.shape))))
        margins = buy_margins(meter, schema, schedule, singles, self.margins_by)
        counts = meter.measure(Cells(Tally(grid, classes)), payable(meter.left), "counts")
        steps = (*describe_groups(schema, grid), *structure(grid, counts.noisy))
        kept = (fine,) if self.inside == "all" else ()
        return Draft(grid, (*kept, *margins, counts), self.model, steps)

    def _learnt(self, schema: Schema, fine: Noisy, spend: Fraction) -> DataGrid | None:
        """Co-cluster the noisy histogram; None if nothing of it stands out from the noise."""
        (rate,) = fine.rates
        table = _by_variable(schema, fine)
        known = corrected(table, rate) if self.correction == "dispersion" else clipped(table)
        if not known.counts.any():
            return None
        best = fit(known.counts, kinds_of(schema), dispersion=known.dispersion, restarts=self.restarts)
        if self.cells is not None:
            return with_groups(best, len(schema.shape), self.cells)
        return self._cut(best, known, table, variance_of(rate), variance_of(spend))

    def _cut(self, best: DataGrid, known: Corrected, table: Integers, of_cell: float, of_part: float) -> DataGrid:
        """Take the grid that keeps as much information as was asked for or, if that is open, the one of least error."""
        if self.information is not None:
            return best.cut(information=float(self.information))
        return best_granularity(best, known.dispersion, table, of_cell, of_part)

    def expected_cells(self, schema: Schema) -> int:
        """Bound the cells by twice those of the histogram: no grid has more."""
        return 2 * cells_of(schema)


def _by_variable(schema: Schema, fine: Noisy) -> Integers:
    """Shape the histogram: an axis for each attribute, and one for the class if there is one."""
    classes = () if schema.target is None else (len(schema.classes),)
    return fine.counts.reshape(*schema.shape, *classes)


@dataclass(frozen=True, eq=False)
class Corrected:
    """Noisy counts made fit for a criterion that takes counts for exact.

    A co-clustering asks how much more counts vary than chance allows. Noise clipped at 0 varies far more than chance:
    of every cell it makes a discovery. Two corrections follow from the noise alone, which is public: counts that noise
    reaches easily are taken for 0, and what is left counts for less, divided by what clipped noise varies more than a
    Poisson count of its mean.
    """

    counts: Integers
    dispersion: float
    """what the criterion divides the counts by"""


def corrected(noisy: Integers, rate: Fraction) -> Corrected:
    """Take counts up to a threshold for 0, and divide the others by the dispersion of clipped noise.

    Noise exceeds t with a probability of about exp(-rate t) / 2, so of n empty cells about one exceeds
    ln(n / 2) / rate. At half of that, cells that hold few people are still seen, and about the root of n empty ones.
    """
    threshold = math.log(max(noisy.size / 2, 1.0)) / (2 * rate)
    return Corrected(np.where(noisy > threshold, noisy, 0), clipped_dispersion(rate))


def clipped(noisy: Integers) -> Corrected:
    """Clip counts at 0 and take them for exact, as the paper does."""
    return Corrected(np.maximum(noisy, 0), 1.0)


def clipped_dispersion(rate: Fraction) -> float:
    """The variance over the mean of max(noise, 0), at least 1.

    With q = exp(-rate), P(k) = (1 - q) / (1 + q) q^k. The sum of k q^k is q / (1 - q)^2 and that of k^2 q^k is
    q (1 + q) / (1 - q)^3. So the mean is m = q / (1 - q^2), the mean square q / (1 - q)^2 = m (1 + q) / (1 - q), and
    variance over mean (1 + q) / (1 - q) - m.

    >>> [round(clipped_dispersion(Fraction(rate)), 1) for rate in ("0.1", "0.25", "0.5", "1", "2")]
    [15.0, 6.1, 3.1, 1.7, 1.2]
    """
    q = math.exp(-rate)
    return max((1 + q) / (1 - q) - q / (1 - q * q), 1.0) if q < 1 else math.inf


def best_granularity(
    grid: DataGrid, dispersion: float, histogram: Integers, of_cell: float, of_part: float
) -> DataGrid:
    """The grid of the least expected error, among those on the way from the best grid to a single cell.

    Decided by public numbers: the costs of the grids, the noisy histogram that they were learnt from, and how much
    noise the counts of their parts will have (`of_part`; `of_cell` is the variance of a cell of the histogram).

    What a merge loses is told by the criterion: its cost is a negative log-likelihood, in which a deviation d of a cell
    from what is expected there, x, counts d^2 / (2 x), and in the distance it counts d^2 / (8 x): a quarter. Counts
    had been divided by the dispersion.
    """
    finest = Parts.of(histogram, grid.labels)
    first = tuple(np.unique(labels, return_index=True)[1] for labels in grid.labels)
    errors = [finest.noise_error(of_cell, of_part)]
    for step in grid.steps:
        merged = finest.merged(tuple(labels[at] for labels, at in zip(step.labels, first, strict=True)))
        lost = (step.cost - grid.cost) * dispersion / 4
        errors.append(lost + merged.noise_error(of_cell, of_part))
    return grid.after(int(np.argmin(errors)))


@dataclass(frozen=True, eq=False)
class Parts:
    """A noisy histogram summed up by the parts of a grid."""

    counts: Integers
    cells: Integers
    """how many cells of the histogram each part has"""

    @classmethod
    def of(cls, histogram: Integers, labels: Labels) -> Parts:
        """Sum up the cells of a histogram by the parts in which labels put them."""
        return cls(histogram, np.ones(histogram.shape, np.int64)).merged(labels)

    def merged(self, labels: Labels) -> Parts:
        """Merge parts along every axis as labels say."""
        counts, cells = self.counts, self.cells
        for axis, label in enumerate(labels):
            counts, cells = sum_parts(counts, axis, label), sum_parts(cells, axis, label)
        return Parts(counts, cells)

    def noise_error(self, of_cell: float, of_part: float) -> float:
        """What noise adds to the distance of the parts' people from the truth.

        `of_cell` is the variance of a cell of the histogram, `of_part` that of a part's own count.

        The distance is Hellinger's: half the sum of (sqrt(x) - sqrt(y))^2, with people for shares. For an estimate y
        of x with variance v that is about v / (8 x), and of the order of sqrt(v) / 8 if x is smaller than the noise. A
        part is known from its own count and, m times noisier, from its m cells of the histogram.
        """
        variance = 1 / (1 / of_part + 1 / (self.cells * of_cell))
        return float((variance / (8 * np.maximum(self.counts, np.sqrt(variance)))).sum())


def with_groups(found: DataGrid, attributes: int, most: int) -> DataGrid:
    """The finest grid on the way whose first attributes have at most so many combinations of parts.

    The class, which may come after them, is left out: its values are counted one by one whatever its parts are.
    """
    shapes = [found.shape, *(step.shape for step in found.steps)]
    return found.after(next(merges for merges, shape in enumerate(shapes) if math.prod(shape[:attributes]) <= most))


def grid_of(schema: Schema, found: DataGrid | None) -> Grid:
    """The grid of the attributes' parts; the class is counted value by value in any case."""
    if found is None:
        return Grid.whole(schema.shape)
    return Grid.of_groups(found.parts[: len(schema.shape)])


def describe_groups(schema: Schema, grid: Grid) -> tuple[str, ...]:
    """Say how many parts each attribute has."""
    return tuple(
        f"{name}: {parts} {'interval' if isinstance(column, Numeric) else 'group'}{'s' if parts > 1 else ''}"
        for (name, column), parts in zip(schema.predictors.items(), grid.parts, strict=True)
    )


def structure(grid: Grid, counts: Noisy) -> tuple[str, ...]:
    """Warn if the parts' own counts, whose noise the grid was not learnt from, show nothing that margins do not.

    If attributes were independent, a part would have e people, the product of its margins' shares, and its count would
    miss that by chance and by noise, with variance e + v. The sum of (count - e)^2 / (e + v) over G parts would then
    be about G, give or take sqrt(2 G) or, the noise being Laplace, sqrt(5 G). A count below 0 is noise for certain: it
    is taken for 0, which only lowers the sum.
    """
    table = counts.counts.reshape(*grid.parts, -1).astype(np.float64)
    deviations = _beyond_margins(table, float(counts.variances[0]))
    excess = float((deviations - 1).sum())
    return () if excess > SURE * math.sqrt(5 * table.size) else (NO_STRUCTURE,)


def _beyond_margins(table: Floats, variance: float) -> Floats:
    """The squared deviations from what the margins say, in units of their variance."""
    expected = np.full(table.shape, max(float(table.sum()), 0.0))
    for axis in range(table.ndim):
        others = tuple(other for other in range(table.ndim) if other != axis)
        margin = np.maximum(table.sum(axis=others, keepdims=True), 0.0)
        expected *= margin / max(float(margin.sum()), 1.0)
    return np.asarray((np.maximum(table, 0.0) - expected) ** 2 / (expected + variance))
