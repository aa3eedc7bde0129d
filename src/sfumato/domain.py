"""How many combinations of leaves a schema has, and what to do when there are too many to look at each."""

from __future__ import annotations

import math

from sfumato.errors import MethodError
from sfumato.schema import Schema

LARGEST = 3
"""So many attributes are named when a domain is too large."""


def cells_of(schema: Schema) -> int:
    """Give the number of cells of a domain: combinations of leaves and classes."""
    return math.prod(schema.shape) * len(schema.classes)


def refuse_large(schema: Schema, most: int, remedy: str) -> None:
    """Refuse a domain that has too many cells, with its longest attributes."""
    cells = cells_of(schema)
    if cells > most:
        leaves = {name: column.leaves for name, column in schema.predictors.items()}
        if schema.target is not None:
            leaves[schema.target] = len(schema.classes)
        largest = sorted(leaves.items(), key=lambda one: -one[1])[:LARGEST]
        raise MethodError(
            f"the domain ({cells:,} cells) must have at most {most:,} cells; the longest attributes are "
            + ", ".join(f"{name} ({count:,})" for name, count in largest),
            remedy,
        )
