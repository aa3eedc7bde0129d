"""The noisy contingency table (Dwork et al. 2006): every cell of the domain with noise, nothing else.

Privacy. One round over disjoint cells. The papers compare themselves with it: on a large domain its noise drowns
everything, on a small one nothing is better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.geometry.grid import Grid
from sfumato.methods.method import Method, number, parameter
from sfumato.privacy.budget import Schedule
from sfumato.privacy.measurements import Draft
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.schema import Schema, cells_of, refuse_large

FEWER = "Publish fewer with --attributes, give those a coarser grid, or raise max_cells."
"""The way out for a domain that has too many cells to put noise on each."""


@dataclass(frozen=True, kw_only=True)
class Laplace(Method):
    """The histogram of all attributes together, with noise on every cell."""

    name: ClassVar[str] = "laplace"
    order: ClassVar[int] = 9
    suits: ClassVar[str] = "small domains: up to about as many cells as people"
    arithmetic: ClassVar[str] = "all of epsilon on every cell"
    unsuited: ClassVar[str] = "on large domains: a range adds up the noise of all its cells"
    summary: ClassVar[str] = (
        "puts noise on every combination of values (Dwork et al. 2006), which the papers compare with"
    )
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    max_cells: int = parameter(
        10_000_000,
        "A domain with more combinations of values than this is refused.",
        read=number("Give what you can store.", least=2),
    )

    @classmethod
    def as_published(cls) -> Laplace:
        """Make the method as the papers use it; they draw records from the counts clamped at 0."""
        return cls()

    @property
    def model(self) -> str:
        """The model of a grid: groups are single cells."""
        return "grid"

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Spend all of epsilon on the cells."""
        refuse_large(schema, self.max_cells, FEWER)
        return Schedule({"counts": epsilon})

    def expected_cells(self, schema: Schema) -> int:
        """Count the cells of the domain."""
        return cells_of(schema)

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Measure every cell."""
        counts = meter.measure(histogram(schema), schedule["counts"], "counts")
        return Draft(counts.question.regions, (counts,), self.model)


def histogram(schema: Schema) -> Cells:
    """Ask for all combinations of leaves, by class, empty or not. A record lies in one cell: one round."""
    return Cells(Tally(Grid.finest(schema.shape), len(schema.classes)))
