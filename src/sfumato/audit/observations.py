"""What someone who knows both tables sees in a release: numbers that tell on which one it was made, and its shape.

The two tables agree but for one record. So of every measurement the cell that would hold that record tells something:
the noisy count y of a cell that holds c others is exp(rate) times as likely with the record if y > c, and so much less
likely if not. Added up, that is the most that noise can tell; the other numbers do not rely on what is claimed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.pairs import Pair
from sfumato.halving import borders
from sfumato.methods.base import Draft
from sfumato.partition import Grid
from sfumato.privacy.budget import Debit
from sfumato.privacy.noisy import Noisy
from sfumato.tree import Partition, Tree

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

NUMBERS = (
    "the evidence of all counts",
    "the evidence of the groups' counts",
    "the count of the record's cell",
    "the number of counts of the record's group that exceed the others there",
    "the total of all counts",
    "the largest count",
    "the smallest count",
    "the number of counts that are 0",
    "the number of groups",
    "the epsilon that was paid",
)


@dataclass(frozen=True, eq=False)
class Observations:
    """What was seen in several releases: runs x numbers, and the shape of each."""

    numbers: Floats
    shapes: tuple[bytes, ...]

    def __len__(self) -> int:
        """Count the releases."""
        return len(self.shapes)

    def every_other(self, first: int) -> Observations:
        """Keep every second release, from the first or the second one on."""
        return Observations(self.numbers[first::2], self.shapes[first::2])


def observed(draft: Draft, debits: tuple[Debit, ...], pair: Pair) -> tuple[list[float], bytes]:
    """Look at one release."""
    counts = draft.counts.counts
    own = list(_own_cells(draft, pair))
    evidence = [float(rate) if count > others else -float(rate) for count, others, rate in own]
    numbers = [
        sum(evidence),
        evidence[0],
        float(own[0][0]),
        float(_exceeding(draft, pair)),
        float(counts.sum()),
        float(counts.max()),
        float(counts.min()),
        float((counts == 0).sum()),
        float(draft.partition.regions),
        float(sum((debit.epsilon for debit in debits), Fraction(0))),
    ]
    return numbers, shape_of(draft, debits)


def shape_of(draft: Draft, debits: tuple[Debit, ...]) -> bytes:
    """Give a digest of all that a release tells apart from numbers: regions, steps, margins and rounds."""
    told = (
        _boxes(draft.partition).tolist(),
        getattr(draft.partition, "orders", None),
        draft.counts.counts.shape,
        draft.steps if isinstance(draft.partition, Grid) else len(draft.steps),
        sorted(draft.margins),
        [(debit.label, debit.mechanism.split(",")[0], debit.sensitivity, debit.cells) for debit in debits],
    )
    return hashlib.blake2b(repr(told).encode(), digest_size=8).digest()


def _own_cells(draft: Draft, pair: Pair) -> Iterator[tuple[int, int, Fraction]]:
    """Give, of every measurement, the noisy count of the record's cell, how many others it holds, and its rate."""
    others = pair.table(complete=False).astype(np.int64)
    record = np.array(pair.record, np.int64)
    yield from _by_class(draft.counts, _places(draft.partition, record), _places(draft.partition, others), pair)
    for earlier in draft.earlier:
        assert isinstance(draft.partition, Tree)
        boxes = draft.partition.boxes_of(earlier.nodes).astype(np.int64)
        yield from _by_class(earlier.noisy, _inside(boxes, record), _inside(boxes, others), pair)
    for attribute, margin in draft.margins.items():
        for groups in margin.levels:
            ends = borders(margin.leaves, groups.depth)[1:]
            mine = int(np.searchsorted(ends, record[attribute], side="right"))
            alike = np.searchsorted(ends, others[:, attribute], side="right") == mine
            yield int(groups.counts[mine]), int(alike.sum()), groups.rate
    if draft.histogram is not None:
        shape = draft.partition.shape
        cells = [np.ravel_multi_index(tuple(rows.T[:-1]), shape) for rows in (record[None], others)]
        yield from _by_class(draft.histogram, cells[0], cells[1], pair)


def _exceeding(draft: Draft, pair: Pair) -> int:
    """Count the classes of which the record's group has more than the others are."""
    mine = _places(draft.partition, np.array(pair.record, np.int64))[0]
    theirs = _places(draft.partition, pair.table(complete=False).astype(np.int64))
    labels = [row[-1] for row, place in zip(pair.rows, theirs.tolist(), strict=True) if place == mine]
    counts = draft.counts.counts[mine]
    return int((counts > np.bincount(labels, minlength=len(counts))).sum())


def _by_class(noisy: Noisy, mine: Integers, theirs: Integers, pair: Pair) -> Iterator[tuple[int, int, Fraction]]:
    """Give the record's cell of counts by class, if it lies in one of their places."""
    label = pair.record[-1]
    for place in mine[mine >= 0].tolist():
        alike = [place == other and row[-1] == label for other, row in zip(theirs.tolist(), pair.rows, strict=True)]
        yield int(noisy.counts[place, label]), sum(alike), noisy.rates[noisy.rate_of[place]]


def _places(partition: Partition, rows: Integers) -> Integers:
    return _inside(_boxes(partition), rows) if isinstance(partition, Tree) else _regions(partition, rows)


def _regions(grid: Grid, rows: Integers) -> Integers:
    table = np.atleast_2d(rows).astype(np.uint8)
    return np.asarray(grid.locate(list(table.T[:-1]), len(table)), np.int64)


def _boxes(partition: Partition) -> Integers:
    if isinstance(partition, Tree):
        return partition.boxes_of(partition.leaves).astype(np.int64)
    return np.asarray(partition.boxes(0, partition.regions), np.int64)


def _inside(boxes: Integers, rows: Integers) -> Integers:
    """Give the box that holds each row, -1 for none."""
    points = np.atleast_2d(rows)[:, None, :-1]
    inside = np.asarray(((boxes[None, :, :, 0] <= points) & (points < boxes[None, :, :, 1])).all(axis=2))
    return np.where(inside.any(axis=1), inside.argmax(axis=1), -1)
