"""Ends of a tree that were counted twice: as ends, and cell by cell in a histogram of the whole domain.

An end's people are the mean of both by inverse variance: the sum of m cells errs m times as much as one. But the noise
of its cells is also what made an end what it is: a single cell stands alone because it stands out, so what its noisy
count says was heard already. Cells therefore have (m - 1) / m of their say, none for a single one. Inside an end people
are spread evenly, as DPCube has it.
"""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.errors import ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.models.model import UNMEASURED
from sfumato.models.tree import TreeModel
from sfumato.privacy.measurements import Draft, Measurement
from sfumato.schema.schema import Schema


class CubeModel(TreeModel):
    """Ends of a kd-tree, by their own counts and by those of their cells."""

    def __init__(self, schema: Schema, draft: Draft) -> None:
        """Refuse a release without a histogram of all cells, which was measured first."""
        super().__init__(schema, draft)
        if not self._is_histogram(draft.measurements[0]):
            raise ReleaseError(*UNMEASURED)

    def uses(self, one: Measurement) -> bool:
        """Use the histogram, too."""
        return self._is_histogram(one) or super().uses(one)

    def is_margin(self, one: Measurement) -> bool:
        """Leave out the histogram, which of a single attribute would be one."""
        return not self._is_histogram(one) and super().is_margin(one)

    def _is_histogram(self, one: Measurement) -> bool:
        finest, classes = Grid.finest(self.schema.shape), len(self.schema.classes)
        return one is self.draft.measurements[0] and (
            one.question.regions == finest and one.question.classes == classes and len(one.noisy.rates) == 1
        )

    def _means(self) -> tuple[Floats, Floats]:
        """Combine each end's own count with the sum of its cells."""
        mean, precision = super()._means()
        ends, noisy = self.tree.ends, self.draft.measurements[0].noisy
        running = _running(noisy.counts.reshape(*self.schema.shape, -1).astype(np.float64))
        boxes = self.tree.boxes_of(ends).astype(np.int64)
        cells = (boxes[:, :, 1] - boxes[:, :, 0]).prod(axis=1)
        new = (1 - 1 / cells) / (cells * float(noisy.variances[0]))
        precision[ends] += new
        mean[ends] += (new / precision[ends])[:, None] * (_sums_of(running, boxes) - mean[ends])
        return mean, precision


def _running(table: Floats) -> Floats:
    """The sums of all cells before each corner: one longer along every axis but the last."""
    for axis in range(table.ndim - 1):
        zeros = np.zeros([1 if at == axis else size for at, size in enumerate(table.shape)])
        table = np.concatenate([zeros, np.cumsum(table, axis=axis)], axis=axis)
    return table


def _sums_of(running: Floats, boxes: Integers) -> Floats:
    """The sums of boxes: corners with alternating signs (boxes x classes)."""
    attributes = boxes.shape[1]
    total = np.zeros((len(boxes), running.shape[-1]))
    for corner in np.ndindex(*(2,) * attributes):
        sign = -1 if (attributes - sum(corner)) % 2 else 1
        total += sign * running[tuple(boxes[:, at, end] for at, end in enumerate(corner))]
    return total
