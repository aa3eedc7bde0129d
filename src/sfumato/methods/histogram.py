"""The noisy histogram of a whole domain: every combination of leaves and every class, empty or not."""

from __future__ import annotations

import math

from sfumato.counts.tally import Cells, Tally
from sfumato.errors import MethodError
from sfumato.partition import Grid
from sfumato.schema import Schema

LARGEST = 3
"""So many attributes are named when a domain is too large."""


def finest(schema: Schema) -> Grid:
    """Give the grid whose regions are single combinations of leaves."""
    return Grid(tuple(tuple(range(leaves + 1)) for leaves in schema.shape))


def histogram(schema: Schema) -> Cells:
    """Ask for all combinations of leaves, by class. A record lies in one cell: one round."""
    return Cells(Tally(finest(schema), len(schema.classes)))


def cells_of(schema: Schema) -> int:
    """Give the number of cells of a domain."""
    return math.prod(schema.shape) * len(schema.classes)


def refuse_large(schema: Schema, most: int) -> None:
    """Refuse a domain that has too many cells to put noise on each."""
    cells = cells_of(schema)
    if cells > most:
        leaves = {name: column.leaves for name, column in schema.predictors.items()}
        if schema.target is not None:
            leaves[schema.target] = len(schema.classes)
        largest = sorted(leaves.items(), key=lambda one: -one[1])[:LARGEST]
        raise MethodError(
            f"the domain ({cells:,} cells) must have at most {most:,} cells; the longest attributes are "
            + ", ".join(f"{name} ({count:,})" for name, count in largest),
            "Publish fewer with --attributes, give those a coarser grid, or raise max_cells.",
        )
