"""DPCocGen: a grid of groups of values learnt from a noisy histogram, its parts counted anew (Benkhelif et al. 2017).

Privacy. Two rounds over disjoint cells, and the margins: the histogram of all combinations of leaves, then the parts of
the grid, which is made from the noisy histogram alone and so costs nothing. Their debits sum to epsilon at most.

The paper clips the noisy counts and takes them for exact, gives both rounds half of epsilon, and spreads people evenly
inside parts. We correct the counts for their noise before the co-clustering, choose how coarse the grid should be,
combine both rounds, buy margins, and let the release spread people inside parts by all that was paid for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.coclustering import kinds_of
from sfumato.counts.meter import Meter
from sfumato.counts.tally import Cells, Tally
from sfumato.domain import cells_of, refuse_large
from sfumato.errors import MethodError
from sfumato.methods.base import Draft
from sfumato.methods.granularity import best_granularity
from sfumato.methods.groups import describe_groups, grid_of, structure, with_groups
from sfumato.methods.histogram import FEWER, histogram
from sfumato.methods.margins import buy_margins, margin_parts
from sfumato.methods.overdispersion import Corrected, clipped, corrected
from sfumato.methods.parameters import parameter, plain_parameters, read_number, read_share, refuse_other
from sfumato.modl import DataGrid, fit
from sfumato.modl.table import MOST_CELLS
from sfumato.partition import Grid
from sfumato.privacy.budget import Schedule, payable
from sfumato.privacy.noisy import Noisy, variance_of
from sfumato.schema import Schema

Correction = Literal["dispersion", "clip"]
Inside = Literal["all", "evenly"]

MOST_RESTARTS = 1000
MUST_BE_FEWER = (
    f"Publish fewer with --attributes, or give those a coarser grid: no more than {MOST_CELLS:,} cells can be "
    "co-clustered, whatever max_cells says."
)
"""What to do about a domain that no max_cells lets through."""


@dataclass(frozen=True, kw_only=True)
class DPCocGen:
    """Co-clustering of all attributes, for synthetic individuals that keep their joint structure."""

    name: ClassVar[str] = "dpcocgen"

    cells: int | None = parameter(
        None, "The most groups that the grid may have, the class apart; if not given, what has least error."
    )
    information: Fraction | None = parameter(
        None, "The share of the best grid's information that must be kept, up to 1, instead of a number of cells."
    )
    histogram: Fraction = parameter(
        Fraction(1, 2), "The share of epsilon without margins that is spent on the histogram of all combinations."
    )
    margins: Fraction = parameter(
        Fraction(3, 20), "The share of epsilon spent on one-way margins, which spread counts inside groups."
    )
    correction: Correction = parameter(
        "dispersion",
        "How noisy counts are made fit for co-clustering: corrected for their dispersion, or clip at 0.",
    )
    inside: Inside = parameter(
        "all", "How people are spread inside groups: by all that was paid for, or evenly, as in the paper."
    )
    restarts: int = parameter(0, "How often the search for the best grid begins anew.")
    max_cells: int = parameter(10_000_000, "A domain with more combinations of values than this is refused.")

    @classmethod
    def as_published(cls, *, cells: int | str | None = None) -> DPCocGen:
        """Give the method as the paper has it, at the finest level or one with at most so many cells."""
        best = Fraction(1) if cells is None else None
        return cls(
            cells=None if cells is None else read_number("cells", cells, "Give for example 144."),
            information=best,
            margins=Fraction(0),
            correction="clip",
            inside="evenly",
        )

    def __post_init__(self) -> None:
        """Read parameters that came as text; refuse those that make no sense for any table."""
        if self.cells is not None:
            object.__setattr__(self, "cells", read_number("cells", self.cells, "Give for example 144."))
        if self.information is not None:
            share = read_share("information", self.information, Fraction(0), Fraction(1))
            object.__setattr__(self, "information", share)
        if self.cells is not None and self.information is not None:
            raise MethodError("granularity must be given by cells or by information, not both", "Leave one out.")
        object.__setattr__(self, "histogram", read_share("histogram", self.histogram, Fraction(1, 20)))
        object.__setattr__(self, "margins", read_share("margins", self.margins, Fraction(0)))
        refuse_other("correction", self.correction, get_args(Correction))
        refuse_other("inside", self.inside, get_args(Inside))
        restarts = read_number("restarts", self.restarts, "Give for example 3.", 0, MOST_RESTARTS)
        object.__setattr__(self, "restarts", restarts)
        object.__setattr__(self, "max_cells", read_number("max_cells", self.max_cells, "Give what you can store.", 2))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Give the parameters as plain values."""
        return plain_parameters(self)

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Share epsilon among margins, histogram and counts."""
        if len(schema.predictors) + (schema.target is not None) < 2:
            raise MethodError(f"{self.name} must have two attributes or more", "Publish more of them.")
        refuse_large(schema, min(self.max_cells, MOST_CELLS), FEWER if self.max_cells < MOST_CELLS else MUST_BE_FEWER)
        parts = dict(margin_parts(schema, epsilon * self.margins))
        rest = epsilon - sum(parts.values(), Fraction(0))
        return Schedule(parts | {"histogram": rest * self.histogram, "counts": rest * (1 - self.histogram)})

    def expected_cells(self, schema: Schema) -> int:
        """Give the cells of the histogram, twice: no grid has more."""
        return 2 * cells_of(schema)

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Measure the histogram, learn the grid, buy margins for what it leaves open, and count its parts."""
        fine = meter.measure(histogram(schema), schedule["histogram"], "histogram")
        found = self._learnt(schema, fine, schedule["counts"])
        grid = grid_of(schema, found)
        classes = len(schema.classes)
        singles = Tally(Grid.whole(schema.shape), classes, tuple(range(len(schema.shape))))
        margins = buy_margins(meter, schema, schedule, singles, grid.unresolved)
        counts = meter.measure(Cells(Tally(grid, classes)), payable(meter.left), "counts")
        steps = (*describe_groups(schema, grid), *structure(grid, counts))
        return Draft(grid, counts, margins, steps, histogram=fine if self.inside == "all" else None)

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

    def _cut(
        self, best: DataGrid, known: Corrected, table: NDArray[np.int64], of_cell: float, of_part: float
    ) -> DataGrid:
        if self.information is not None:
            return best.cut(information=float(self.information))
        return best_granularity(best, known.dispersion, table, of_cell, of_part)


def _by_variable(schema: Schema, fine: Noisy) -> NDArray[np.int64]:
    """Give the histogram an axis for each attribute, and for the class if there is one."""
    classes = () if schema.target is None else (len(schema.classes),)
    return fine.counts.reshape(*schema.shape, *classes)
