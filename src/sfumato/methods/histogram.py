"""The noisy histogram of a whole domain: every combination of leaves and every class, empty or not."""

from __future__ import annotations

from sfumato.counts.tally import Cells, Tally
from sfumato.partition import Grid
from sfumato.schema import Schema

FEWER = "Publish fewer with --attributes, give those a coarser grid, or raise max_cells."
"""What to do about a domain that has too many cells to put noise on each."""


def finest(schema: Schema) -> Grid:
    """Give the grid whose regions are single combinations of leaves."""
    return Grid(tuple(tuple(range(leaves + 1)) for leaves in schema.shape))


def histogram(schema: Schema) -> Cells:
    """Ask for all combinations of leaves, by class. A record lies in one cell: one round."""
    return Cells(Tally(finest(schema), len(schema.classes)))
