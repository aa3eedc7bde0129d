"""The noisy contingency table (Dwork et al. 2006): every cell of the domain with noise, nothing else.

Privacy. One round over disjoint cells. The papers compare themselves with it: on a large domain its noise drowns
everything, on a small one nothing is better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.counts.meter import Meter
from sfumato.domain import cells_of, refuse_large
from sfumato.methods.base import Draft
from sfumato.methods.histogram import FEWER, finest, histogram
from sfumato.methods.parameters import parameter, plain_parameters, read_number
from sfumato.privacy.budget import Schedule
from sfumato.schema import Schema


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
