"""Candidates: the specializations that a grid or boxes still allow, in arrays that hold millions of them.

All of it is geometry over the schema. `taxonomy_candidates` and `intervals` are for methods that generalize one
attribute at a time, on a grid; `Divisions` is for methods that split every region in its own way. `stages_of` turns the
specializations of a grid into the tree that they grow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Integers, frozen, read_only
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.schema.attributes import Categorical, Numeric
from sfumato.schema.schema import Predictor

WHOLE = 0
"""The one region of the undivided table, on whose histograms the cuts of a grid are chosen."""
NO_SPLIT = 0
"""Stands in place of a split point for a range that has none."""
Interval = tuple[int, int, int]
"""A numeric attribute and a range of its leaves."""


@dataclass(frozen=True)
class Specialization:
    """One candidate: in one place, one attribute's range divided at these borders (outer ones included)."""

    place: int
    attribute: int
    borders: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Entries of candidates: entry i is about attribute `attributes[i]` in place `places[i]`.

    Its borders are `borders[starts[i]:starts[i + 1]]`, outer ones included. With inner borders an entry is one
    candidate; outer borders alone stand for every split of their range in two: at each grid point of the declared
    range, whatever the data.

    >>> candidates = Candidates.join([Candidates.one(0, 1, (0, 2, 4)), Candidates.splits(0, 2, 3, 6)])
    >>> candidates.each.tolist(), candidates.pick(np.array([0, 1]), np.array([0, 1]))[1]
    ([1, 2], Specialization(place=0, attribute=2, borders=(3, 5, 6)))
    """

    places: Integers
    attributes: Integers
    borders: Integers
    starts: Integers

    def __post_init__(self) -> None:
        """Copy the arrays in 64 bits, so that nobody can change them and no product wraps around."""
        for name in ("places", "attributes", "borders", "starts"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @classmethod
    def one(cls, place: int, attribute: int, borders: Sequence[int]) -> Candidates:
        """One entry: the candidate that divides a range at these borders."""
        return cls(np.array([place]), np.array([attribute]), np.array(borders), np.array([0, len(borders)]))

    @classmethod
    def splits(cls, place: int, attribute: int, lo: int, hi: int) -> Candidates:
        """One entry: every split of a range in two."""
        return cls.one(place, attribute, (lo, hi))

    @classmethod
    def join(cls, batches: Sequence[Candidates]) -> Candidates:
        """Put batches one after the other."""
        none = np.empty(0, np.int64)
        return cls(
            np.concatenate([none, *(batch.places for batch in batches)]),
            np.concatenate([none, *(batch.attributes for batch in batches)]),
            np.concatenate([none, *(batch.borders for batch in batches)]),
            starts_of(np.concatenate([none, *(np.diff(batch.starts) for batch in batches)])),
        )

    def __len__(self) -> int:
        """The number of entries."""
        return len(self.places)

    def __getitem__(self, index: int) -> Specialization:
        """One entry."""
        borders = self.borders[self.starts[index] : self.starts[index + 1]]
        return Specialization(int(self.places[index]), int(self.attributes[index]), tuple(borders.tolist()))

    @cached_property
    def lows(self) -> Integers:
        """Where the range of each entry begins."""
        return read_only(self.borders[self.starts[:-1]])

    @cached_property
    def highs(self) -> Integers:
        """Where the range of each entry ends."""
        return read_only(self.borders[self.starts[1:] - 1])

    @cached_property
    def is_split(self) -> Booleans:
        """Whether each entry stands for every split of its range."""
        return read_only(np.asarray(np.diff(self.starts) == 2))

    @property
    def children(self) -> Integers:
        """The number of children that a candidate of each entry has."""
        return np.where(self.is_split, 2, np.diff(self.starts) - 1)

    @cached_property
    def each(self) -> Integers:
        """The number of candidates that each entry stands for: public, from the declared ranges."""
        return read_only(np.where(self.is_split, self.highs - self.lows - 1, 1))

    def take(self, candidates: Integers | Booleans) -> Candidates:
        """Some of the entries, in this order."""
        chosen = np.arange(len(self))[candidates]
        widths = np.diff(self.starts)[chosen]
        starts = starts_of(widths)
        inside = np.arange(starts[-1]) - np.repeat(starts[:-1], widths)
        return Candidates(
            self.places[chosen],
            self.attributes[chosen],
            self.borders[np.repeat(self.starts[chosen], widths) + inside],
            starts,
        )

    def pick(self, candidates: Integers, offsets: Integers) -> Candidates:
        """Single candidates: of each of these entries, the one at its offset."""
        picked = self.take(candidates)
        at = picked.lows + 1 + offsets
        borders = np.insert(picked.borders, picked.starts[1:][picked.is_split] - 1, at[picked.is_split])
        return Candidates(
            picked.places, picked.attributes, borders, starts_of(np.diff(picked.starts) + picked.is_split)
        )


def starts_of(sizes: Integers) -> Integers:
    """Where each of several runs of these sizes begins, and where the last ends."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def taxonomy_candidates(attributes: Sequence[Predictor], grid: Grid) -> Iterator[Candidates]:
    """Every categorical value of the grid's cuts that its taxonomy divides further."""
    for index, attribute in enumerate(attributes):
        for lo, hi in pairwise(grid.cuts[index]):
            borders = attribute.children(lo, hi)
            if borders is not None:
                yield Candidates.one(WHOLE, index, borders)


def intervals(attributes: Sequence[Predictor], grid: Grid) -> Iterator[Interval]:
    """Every numeric interval of the grid's cuts that has a grid point inside."""
    for index, attribute in enumerate(attributes):
        if isinstance(attribute, Numeric):
            yield from ((index, lo, hi) for lo, hi in pairwise(grid.cuts[index]) if hi - lo > 1)


def regions_after(grid: Grid, candidates: Candidates) -> Integers:
    """The number of regions that the grid would have after each specialization."""
    parts = np.array(grid.parts)[candidates.attributes]
    return grid.regions // parts * (parts + candidates.children - 1)


class Divisions:
    """The candidates of boxes: all divisions that a schema allows are found once, then looked up for many boxes."""

    def __init__(self, attributes: Sequence[Predictor]) -> None:
        """Find the divisions of all taxonomies."""
        self._attributes = [
            index if isinstance(attribute, Numeric) else _Taxonomy(attribute, index)
            for index, attribute in enumerate(attributes)
        ]

    def candidates(self, boxes: NDArray[np.int32], places: Integers, splits: Integers | None = None) -> Candidates:
        """The values of each place's box that can be specialized, place by place.

        A categorical value is divided as its taxonomy says; an interval at every grid point or, if `splits` (places x
        attributes) are given, only at its own split point.
        """
        found = []
        for index, attribute in enumerate(self._attributes):
            ranges = boxes[:, index].astype(np.int64)
            if isinstance(attribute, _Taxonomy):
                found.append(attribute.candidates(ranges, places))
            elif splits is None:
                found.append(_every_split(index, ranges, places))
            else:
                found.append(_own_split(index, ranges, places, splits[:, index]))
        candidates = Candidates.join(found)
        return candidates.take(np.argsort(candidates.places, kind="stable"))


def _every_split(index: int, ranges: Integers, places: Integers) -> Candidates:
    wide = np.flatnonzero(ranges[:, 1] - ranges[:, 0] > 1)
    return Candidates(places[wide], np.full(len(wide), index), ranges[wide].ravel(), np.arange(len(wide) + 1) * 2)


def _own_split(index: int, ranges: Integers, places: Integers, splits: Integers) -> Candidates:
    chosen = np.flatnonzero(splits != NO_SPLIT)
    borders = np.stack([ranges[chosen, 0], splits[chosen], ranges[chosen, 1]], axis=1)
    return Candidates(places[chosen], np.full(len(chosen), index), borders.ravel(), np.arange(len(chosen) + 1) * 3)


class _Taxonomy:
    """The divisions of one categorical attribute, by the range that is divided."""

    def __init__(self, attribute: Categorical, index: int) -> None:
        self._leaves = attribute.leaves
        found: dict[int, tuple[int, ...]] = {}
        waiting = [(0, attribute.leaves)]
        while waiting:
            lo, hi = waiting.pop()
            borders = attribute.children(lo, hi)
            if borders is not None:
                found[lo * (self._leaves + 1) + hi] = borders
                waiting += pairwise(borders)
        self._keys = np.array(sorted(found), np.int64)
        self._known = Candidates.join([Candidates.one(0, index, found[key]) for key in self._keys.tolist()])

    def candidates(self, ranges: Integers, places: Integers) -> Candidates:
        keys = ranges[:, 0] * (self._leaves + 1) + ranges[:, 1]
        divided = np.flatnonzero(np.isin(keys, self._keys))
        taken = self._known.take(np.searchsorted(self._keys, keys[divided]))
        return Candidates(places[divided], taken.attributes, taken.borders, taken.starts)


def most_specializations(attributes: Sequence[Predictor]) -> int:
    """Count the specializations that take every attribute from its root to its leaves."""
    return sum(inner_nodes(attribute, 0, attribute.leaves) for attribute in attributes)


def inner_nodes(attribute: Predictor, lo: int, hi: int) -> int:
    """Count the specializations that take a range to its leaves."""
    if isinstance(attribute, Numeric):
        return hi - lo - 1
    borders = attribute.children(lo, hi)
    if borders is None:
        return 0
    return 1 + sum(inner_nodes(attribute, left, right) for left, right in pairwise(borders))


def most_specializations_of_boxes(attributes: Sequence[Predictor]) -> int:
    """Count the specializations that take one region to single cells (DiffMulti, equation 14).

    Take the attributes one after the other. Those that come before have made as many regions as the product of their
    leaves, and each of these needs as many specializations as the taxonomy has inner nodes, its root included.
    """
    total, regions = 0, 1
    for attribute in attributes:
        total += regions * inner_nodes(attribute, 0, attribute.leaves)
        regions *= attribute.leaves
    return total


def longest_path(attributes: Sequence[Predictor], numeric_height: int) -> int:
    """Count the specializations that take a record from most general to its leaves: the taxonomies' heights, summed.

    A numeric attribute has no taxonomy; the paper assumes a height for it.
    """
    return sum(
        min(numeric_height, attribute.leaves - 1) if isinstance(attribute, Numeric) else attribute.tree.height
        for attribute in attributes
    )


def stages_of(shape: Sequence[int], steps: Sequence[Specialization]) -> list[Tree]:
    """The tree that the specializations of a grid grow, level by level: stage d has all nodes down to depth d.

    A specialization of a value splits every region that has the value, so the ends of the tree are the regions of the
    grid; there is one node for each specialization on a path. The tree is given level by level because the nodes of one
    level are the disjoint cells of one round.

    >>> steps = [Specialization(0, 0, (0, 2, 4)), Specialization(0, 1, (0, 9, 47)), Specialization(0, 0, (2, 3, 4))]
    >>> [stage.regions for stage in stages_of((4, 47), steps)]
    [1, 2, 4, 6]
    """
    stages = [Tree.whole(shape)]
    candidates = Candidates.join([Candidates.one(0, step.attribute, step.borders) for step in steps])
    nodes, passed = np.zeros(1, np.int64), np.zeros(1, np.int64)
    while True:
        tree = stages[-1]
        next_step = _next_steps(tree, nodes, passed, steps)
        splitting = np.flatnonzero(next_step < len(steps))
        if not len(splitting):
            return stages
        chosen = candidates.take(next_step[splitting])
        stages.append(tree.refine(nodes[splitting], chosen.attributes, chosen.borders, chosen.starts))
        passed = np.repeat(next_step[splitting] + 1, chosen.children)
        nodes = np.arange(len(tree), len(stages[-1]))


def _next_steps(tree: Tree, nodes: Integers, passed: Integers, steps: Sequence[Specialization]) -> Integers:
    """The first step, of those not yet passed on the path to each node, that specializes a value of its box."""
    boxes = tree.boxes_of(nodes)
    found = np.full(len(nodes), len(steps))
    for number, step in reversed(list(enumerate(steps))):
        concerns = (boxes[:, step.attribute] == (step.borders[0], step.borders[-1])).all(axis=1)
        found[concerns & (passed <= number)] = number
    return found


def describe(attribute: Predictor, name: str, chosen: Specialization) -> str:
    """A specialization as a line for people: the attribute, the value and its children."""
    children = ", ".join(attribute.label(left, right) for left, right in pairwise(chosen.borders))
    return f"{name}: {attribute.label(chosen.borders[0], chosen.borders[-1])} → {children}"


def describe_all(attributes: Mapping[str, Predictor], steps: Sequence[Specialization]) -> tuple[str, ...]:
    """Lines for people, one for each specialization."""
    names = list(attributes)
    return tuple(describe(attributes[names[one.attribute]], names[one.attribute], one) for one in steps)


def describe_level(number: int, chosen: Candidates, names: Sequence[str]) -> str:
    """A line for people on the specializations of one level.

    >>> describe_level(1, Candidates.one(0, 1, (0, 22, 47)), ["job", "age"])
    'level 1: 1 specialization (age 1)'
    """
    by_name = Counter(names[attribute] for attribute in chosen.attributes.tolist())
    along = ", ".join(f"{name} {count:,}" for name, count in by_name.most_common())
    return f"level {number}: {len(chosen):,} specialization{'s' if len(chosen) > 1 else ''} ({along})"
