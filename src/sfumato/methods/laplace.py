"""The noisy histogram of a whole domain: every combination of leaves and every class, empty or not.

The noisy contingency table (Dwork et al. 2006): every cell of the domain with noise, nothing else.

Privacy. One round over disjoint cells. The papers compare themselves with it: on a large domain its noise drowns
everything, on a small one nothing is better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.geometry.grid import Grid
from sfumato.methods.method import Draft, parameter, plain_parameters, read_number
from sfumato.privacy.budget import Schedule
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.schema import Schema, cells_of, refuse_large

FEWER = "Publish fewer with --attributes, give those a coarser grid, or raise max_cells."
"""What to do about a domain that has too many cells to put noise on each."""


def finest(schema: Schema) -> Grid:
    """Give the grid whose regions are single combinations of leaves."""
    return Grid(tuple(tuple(range(leaves + 1)) for leaves in schema.shape))


def histogram(schema: Schema) -> Cells:
    """Ask for all combinations of leaves, by class. A record lies in one cell: one round."""
    return Cells(Tally(finest(schema), len(schema.classes)))


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """The histogram of all attributes together, with noise on every cell."""

    name: ClassVar[str] = "laplace"

    max_cells: int = parameter(10_000_000, "A domain with more combinations of values than this is refused.")

    @classmethod
    def as_published(cls) -> Laplace:
        """Give the method as the papers use it; they draw records from the counts clamped at 0."""
        return cls()

    def __post_init__(self) -> None:
        """Read the parameter if it came as text."""
        object.__setattr__(self, "max_cells", read_number("max_cells", self.max_cells, "Give what you can store.", 2))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Give the parameters as plain values."""
        return plain_parameters(self)

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Spend all on the cells."""
        refuse_large(schema, self.max_cells, FEWER)
        return Schedule({"counts": epsilon})

    def expected_cells(self, schema: Schema) -> int:
        """Give the number of cells."""
        return cells_of(schema)

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Count every cell."""
        return Draft(finest(schema), meter.measure(histogram(schema), schedule["counts"], "counts"))
