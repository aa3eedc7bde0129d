"""Regions of a grid: all combinations of parts of attributes, each measured once, with noise of its own.

Queries sum attributes out one after the other: first those that a query does not restrict, which it shares with others,
then its own. Regions were measured apart: variances add up, times squared weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Floats, Integers
from sfumato.errors import BLAME, ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.models.consistency import nonnegative, whole
from sfumato.models.covering import PARTLY, UNTOUCHED, Combinations, Overlap, Share, Sums
from sfumato.models.fitting import Interactions, Parts, interactions_of
from sfumato.models.intervals import CLASS, Clauses
from sfumato.models.margins import Spread
from sfumato.models.merged import Counted, Merged
from sfumato.models.model import UNMEASURED, Description, Listing, Nonnegative, Ribbon, percent, refuse_unknown
from sfumato.models.regions import DECIMALS, FittedModel
from sfumato.privacy.measurements import Draft, Measurement, Noisy
from sfumato.schema.schema import Schema

Summed = tuple[Integers, tuple[int, ...], Floats]
"""Queries, the attributes that they restrict, and the table of these attributes' parts x columns."""

MOST_AT_ONCE = 2**22
"""So many numbers are held at a time: a query takes the parts of the first attribute that it restricts, and then
what is left of the table when that is summed out."""
MOST_PARTS = 30
"""Of an attribute with more parts, only their number is told."""


class GridModel(FittedModel):
    """Counts of regions that were measured once: they are their own best estimates."""

    heavier: ClassVar[float] = 1.2

    def __init__(self, schema: Schema, draft: Draft) -> None:
        """Refuse a grid that was not measured."""
        super().__init__(schema, draft)
        if not isinstance(draft.structure, Grid) or draft.structure.shape != schema.shape or not self.own:
            raise ReleaseError(*UNMEASURED)
        self.grid = draft.structure

    @property
    def region_counts(self) -> Measurement:
        """What was measured last of the grid's own regions."""
        return self.own[-1]

    @property
    def counts(self) -> Noisy:
        """The noisy counts of the regions."""
        return self.region_counts.noisy

    @cached_property
    def measured(self) -> Floats:
        """The counts."""
        return self.counts.counts.astype(np.float64)

    @cached_property
    def _interactions(self) -> Interactions | None:
        """What the regions say beyond margins: an axis for each attribute that is cut, and the class last."""
        margins = self.all_margins
        if margins is None:
            return None
        split, classes = self.grid.split_attributes, len(self.schema.classes)
        people: list[Floats] = [self.by_part(at, margins.people[at]) for at in split]
        people += [margins.classes] if classes > 1 else []
        axes = [self.grid.parts[at] for at in split] + ([classes] if classes > 1 else [])
        counts, variances = self.measured.reshape(axes), np.repeat(self.variances, classes).reshape(axes)
        shares = [np.asarray(one / one.sum(), np.float64) for one in people]
        return interactions_of(counts, variances, shares, margins.size.value)

    def by_part(self, attribute: int, leaves: Floats) -> Floats:
        """Sum numbers of leaves over the parts of an attribute."""
        return np.bincount(self.grid.part_of(attribute), leaves, self.grid.parts[attribute]).astype(np.float64)

    @property
    def class_counts(self) -> tuple[Floats, float]:
        """Sum the regions by class."""
        return self.measured.sum(axis=0), float(self.variances.sum())

    def part_sums(self) -> Mapping[int, Parts]:
        """Sum the regions by the parts of each attribute."""
        found, classes = {}, len(self.schema.classes)
        for at in self.grid.split_attributes:
            sums, variances = (
                np.bincount(self.numbers[at], one, self.grid.parts[at]).astype(np.float64)
                for one in (self.measured.sum(axis=1), self.variances)
            )
            found[at] = (self.grid.part_of(at), sums, classes * variances)
        return found

    def interacting(self) -> Floats:
        """Add what pairs and triples of attributes depart from independence by."""
        found = self._interactions
        assert found is not None
        return found.masses.reshape(self.grid.regions, len(self.schema.classes)).copy()

    def region_noise(self, clauses: Clauses, sums: Sums) -> Floats:
        """Add up what is left of the noise of departures: that of each cell times the squares of f - mean f, f being
        what a query covers of the cell's part; and of what four axes and more say.
        """
        found, noise = self._interactions, np.zeros(clauses.queries)
        assert found is not None
        axes = [*self.grid.split_attributes, CLASS]
        number = np.sum([clauses.restricted(at) for at in axes], axis=0)
        for chosen, left in found.errors.items():
            attributes = [axes[axis] for axis in chosen]
            asking = np.flatnonzero(clauses.restricted(*attributes))
            if len(asking):
                reached = np.ones((1, len(asking)))
                for at in attributes:
                    covered = clauses.by_attribute[at].shares[:, asking]
                    apart = (covered - covered.mean(axis=0)) ** 2
                    reached = (reached[:, None] * apart).reshape(-1, len(asking))
                noise[asking] += clauses.others(*attributes)[asking] ** 2 * (left.ravel() @ reached)
        return noise + np.where(number > 3, found.rest * sums.variances[:, 0], 0.0)

    @cached_property
    def variances(self) -> Floats:
        """The variances of their noise."""
        return self.counts.variances

    @property
    def total(self) -> int:
        """The estimated number of people."""
        return round(float(self.values.sum()))

    @property
    def shown(self) -> NDArray[Any]:
        """The noisy counts as they were measured or, where all was fitted, the estimates."""
        return self.counts.counts if self.fitted is None else np.asarray(np.round(self.values, DECIMALS))

    def people(self, how: Nonnegative) -> Integers:
        """Project all counts at once, or clamp them; what was fitted is rounded, and keeps its total."""
        refuse_unknown(how)
        if self.fitted is None:
            return nonnegative(self.counts.counts, how)
        everyone, total = np.zeros(self.values.size, np.int64), np.array([self.total])
        return whole(self.values.ravel(), everyone, total).reshape(self.values.shape)

    def covering(self, regions: Booleans) -> tuple[Integers, Floats]:
        """Take the regions themselves, which have nothing above them."""
        return self.grid.boxes_of(np.flatnonzero(regions)), self.values[regions]

    def majorities(self) -> Integers:
        """Find the class of the largest own count, the first of equals: margins know nothing of it."""
        return np.asarray(np.argmax(self.measured, axis=1))

    def cells(self, counts: Floats, attributes: Sequence[int]) -> Floats:
        """Spread along the axes of the grid."""
        return cells_of_grid(self.grid, counts, {at: self.leaf_spreads[at] for at in attributes})

    @property
    def axes(self) -> tuple[int, ...]:
        """The number of ranges of each attribute in `table`."""
        return self.grid.parts

    @cached_property
    def table(self) -> Floats:
        """What is summed over: the regions x their squared people, the variance of one class, and all classes."""
        return np.column_stack([self.values.sum(axis=1) ** 2, self.variances, self.values])

    def sums(self, overlaps: Mapping[int, Overlap], share: Share) -> Sums:
        """Sum attributes out, for all queries that restrict the same ones at once."""
        sums = Sums.none(len(share.weights), self.table.shape[1] - 2)
        everyone, split = np.arange(len(share.weights)), [at for at, parts in enumerate(self.axes) if parts > 1]
        for asking, attributes, table in self._summed(overlaps, everyone, (), split, self.table):
            first = self.axes[attributes[0]] if attributes else 1
            most = max(1, MOST_AT_ONCE // max(first, table.size // first))
            for some in np.split(asking, np.arange(most, len(asking), most)):
                self._ask(sums, {at: overlaps[at] for at in attributes}, some, table, share.among(some))
        return sums

    def _summed(
        self,
        overlaps: Mapping[int, Overlap],
        asking: Integers,
        kept: tuple[int, ...],
        rest: Sequence[int],
        table: Floats,
    ) -> Iterator[Summed]:
        """Sum out what queries do not restrict, attribute by attribute, for all of them that go the same way."""
        if not rest:
            yield asking, kept, table.reshape(-1, self.table.shape[1])
            return
        first, later = rest[0], rest[1:]
        restricting = overlaps[first].clause_of[asking] > 0 if first in overlaps else np.zeros(len(asking), np.bool_)
        if not restricting.all():
            summed = table.reshape(math.prod(self.axes[at] for at in kept), self.axes[first], -1).sum(axis=1)
            yield from self._summed(overlaps, asking[~restricting], kept, later, summed)
        if restricting.any():
            yield from self._summed(overlaps, asking[restricting], (*kept, first), later, table)

    def _ask(self, sums: Sums, overlaps: Mapping[int, Overlap], asking: Integers, table: Floats, share: Share) -> None:
        """Weigh the parts of restricted attributes by what queries cover of them."""
        found = [overlap.over(np.arange(len(overlap.shares)), asking) for overlap in overlaps.values()]
        weights, states = [shares for shares, _ in found], [state for _, state in found]
        once = share.weights[:, None] * _contract(table, weights, len(asking))
        twice = share.weights[:, None] ** 2 * _contract(table[:, :2], [one**2 for one in weights], len(asking))
        sums.values[asking], sums.variances[asking] = once[:, 2:], twice[:, 1:]
        sums.uneven[asking] = once[:, 0] - twice[:, 0]
        partly, nobody = share.states == PARTLY, share.states >= UNTOUCHED
        for state in states:
            partly, nobody = partly | (state == PARTLY).any(axis=0), nobody | (state == UNTOUCHED).all(axis=0)
        sums.aligned[asking] = nobody | ~partly

    def own_variances(self, weights: Floats, found: Combinations) -> Floats:
        """Add up squares: regions were measured apart."""
        return np.asarray(weights**2 @ np.bincount(found.of, self.variances, len(found.squares))[:, None])

    def own_query(self, rng: np.random.Generator) -> Mapping[int, Integers] | None:
        """Draw parts of up to three attributes."""
        split = self.grid.split_attributes
        if not split:
            return None
        size = min(int(rng.integers(1, 4)), len(split))
        chosen = sorted(rng.choice(len(split), size, replace=False).tolist())
        return {split[at]: self._run(split[at], rng) for at in chosen}

    def _run(self, attribute: int, rng: np.random.Generator) -> Integers:
        """Take the leaves of one part, or of parts side by side where there are many and leaves are in their order."""
        cut, parts = self.grid.cuts[attribute], self.grid.parts[attribute]
        first = int(rng.integers(parts))
        last = first + 1
        if not self.grid.orders and parts > 2:
            last = int(rng.integers(first + 1, parts + (first > 0)))
        return np.sort(self.grid.order_of(attribute)[cut[first] : cut[last]])

    def describe(self) -> Description:
        """Tell the parts of each attribute, with their shares of people."""
        names, cut = list(self.schema.predictors), self.grid.split_attributes
        sizes = " × ".join(f"{self.grid.parts[at]:,}" for at in cut) or "1"
        sizes += f" = {self.grid.regions:,}" if len(cut) > 1 else ""
        uncut = [name for at, name in enumerate(names) if at not in cut]
        ribbons = tuple(self._ribbon(at) for at in cut)
        rows = [(one.attribute, name, percent(share)) for one in ribbons for name, share in one.parts]
        rows += [(one.attribute, f"{one.number:,} parts", "") for one in ribbons if not one.parts]
        kind = "Groups of values" if self.grid.orders else "Parts"
        return Description(
            title="The grid",
            words=f"The regions are all combinations of parts of {len(cut)} attribute{'s' if len(cut) != 1 else ''}: "
            f"{sizes}. {_untold(uncut)}",
            told_apart=cut,
            ribbons=ribbons,
            caption=f"{kind} of each attribute, as wide as their shares of people.",
            listings=(Listing("The same in words", ("attribute", "part", "people"), tuple(rows), (2,)),),
        )

    def _ribbon(self, attribute: int) -> Ribbon:
        name, column = list(self.schema.predictors.items())[attribute]
        parts = self.grid.parts[attribute]
        if parts > MOST_PARTS:
            return Ribbon(name, (), parts)
        shares = self.part_shares(attribute).tolist()
        return Ribbon(name, tuple(zip(self.sides[attribute].names(column), shares, strict=True)), parts)

    def part_shares(self, attribute: int) -> Floats:
        """Estimate the shares of people that the parts of an attribute have."""
        inner = math.prod(self.grid.parts[attribute + 1 :])
        counts = self.values.sum(axis=1).reshape(-1, self.grid.parts[attribute], inner)
        people = np.maximum(counts.sum(axis=(0, 2)), 0.0)
        return np.asarray(people / people.sum() if people.sum() > 0 else np.full(len(people), 1 / len(people)))


class MergedGridModel(GridModel):
    """A grid whose margins are merged to bins where noise alone tells leaves apart."""

    def __init__(self, schema: Schema, draft: Draft) -> None:
        """Merge what was counted of single attributes; refuse what was measured otherwise."""
        super().__init__(schema, draft)
        for at in self.margins:
            one, *others = (each for each in draft.measurements if each.question.attributes == (at,))
            grid = one.question.regions
            if others or one.question.contrast is not None or not isinstance(grid, Grid):
                raise ReleaseError("what is merged must be one count of an attribute's leaves", BLAME)
            counts, variance = one.counts[:, 0].astype(np.float64), float(one.noisy.variances[0])
            self.margins[at] = Merged.of_counted(Counted(np.asarray(grid.cuts[at]), counts, variance))


def _untold(names: list[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:20]) + (" and others" if len(names) > 20 else "")
    return f"Not told apart by the regions: {shown}; inside them people are spread over the values of these."


def _contract(table: Floats, factors: Sequence[Floats], conditions: int) -> Floats:
    """Weigh and sum a table axis by axis, outermost first: conditions x columns. Factors are parts x conditions."""
    if not factors:
        return np.repeat(table, conditions, axis=0)
    sums = factors[0].T @ table.reshape(len(factors[0]), -1)
    for factor in factors[1:]:
        sums = np.matmul(factor.T[:, None], sums.reshape(conditions, len(factor), -1))[:, 0]
    return np.asarray(sums.reshape(conditions, -1))


def over_leaves(grid: Grid, parts: Floats, attributes: Sequence[int]) -> Floats:
    """Give every cell the number of its parts: the first axes are those of some attributes."""
    for axis, attribute in enumerate(attributes):
        parts = parts.take(grid.part_of(attribute), axis=axis)
    return parts


def cells_of_grid(grid: Grid, counts: NDArray[np.number], spreads: Mapping[int, Spread]) -> Floats:
    """Bring regions x classes to leaves x leaves ... x classes of the attributes that have spreads, in that order of
    leaf codes in which the spreads are.

    >>> grid = Grid.of_groups([[[0, 2], [1]], [[0, 1]]])
    >>> cells_of_grid(grid, np.array([[6.0], [2.0]]), {0: Spread.of(3)}).tolist()
    [[3.0], [2.0], [3.0]]
    """
    asked, axes = sorted(spreads), sorted({*grid.split_attributes, *spreads})
    others = tuple(axis for axis, attribute in enumerate(axes) if attribute not in spreads)
    parts_of_axes = (grid.parts[attribute] for attribute in axes)
    table = counts.reshape(*parts_of_axes, counts.shape[1]).sum(axis=others).astype(np.float64)
    cells = over_leaves(grid, table, asked)
    for axis, attribute in enumerate(asked):
        parts, mass = grid.part_of(attribute), spreads[attribute].mass
        cells *= (mass / np.bincount(parts, mass)[parts]).reshape(-1, *(1,) * (cells.ndim - axis - 1))
    return cells
