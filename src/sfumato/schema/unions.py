"""Write a set of cells as disjoint boxes: a set of places of each axis.

The boxes depend on the set alone, however it was said. Along one axis places that look the same are put together; the
axis with the fewest kinds of places is taken first, and each kind is divided along the other axes in the same way.
"""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Booleans

Box = tuple[Booleans, ...]
"""For each axis, which of its places are in the box."""
MOST_CELLS = 1_000_000
"""No set is of a larger table of cells."""
MOST_BOXES = 500
"""No set is written as more boxes."""


def disjoint_boxes(held: Booleans) -> list[Box] | None:
    """Divide the cells that are held into boxes; None if there would be too many.

    >>> either = np.array([[True, True], [True, False]])
    >>> [[axis.astype(int).tolist() for axis in box] for box in disjoint_boxes(either)]
    [[[1, 0], [1, 1]], [[0, 1], [1, 0]]]
    """
    if held.all():
        return [tuple(np.ones(size, np.bool_) for size in held.shape)]
    if not held.any():
        return []
    kinds = [np.unique(np.moveaxis(held, axis, 0).reshape(size, -1), axis=0) for axis, size in enumerate(held.shape)]
    first = min(range(held.ndim), key=lambda axis: len(kinds[axis]))
    slices = np.moveaxis(held, first, 0)
    boxes: list[Box] = []
    for chosen in _alike(slices):
        inner = disjoint_boxes(slices[int(np.argmax(chosen))])
        if inner is None or len(boxes) + len(inner) > MOST_BOXES:
            return None
        boxes += [(*box[:first], chosen, *box[first:]) for box in inner]
    return boxes


def _alike(slices: Booleans) -> list[Booleans]:
    """Mark the places of each kind, in the order in which kinds begin."""
    _, kind = np.unique(slices.reshape(len(slices), -1), axis=0, return_inverse=True)
    kind = kind.ravel()
    begins = np.unique(kind, return_index=True)[1]
    return [kind == one for one in np.argsort(begins)]
