"""What the methods for one attribute share: every attribute is published apart, and the class or the size beside them.

They were written for one histogram. A table of several attributes becomes as many histograms, with parts of epsilon of
their own; answers about several attributes take them for independent, and say so. The last round counts everyone by
class, in one cell for each: of a table without a class it is the size.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato.geometry.grid import Grid
from sfumato.methods.method import Method
from sfumato.privacy.budget import Schedule, payable
from sfumato.privacy.measurements import Draft, Measurement
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.schema import Schema

COUNTS = "counts"
"""The round that counts everyone by class."""
SIZE = Fraction(1, 20)
"""What that gets of epsilon where there is no class."""


@dataclass(frozen=True)
class Histogram:
    """One attribute: its name, its number, and how many leaves it has."""

    name: str
    attribute: int
    leaves: int


def histograms_of(schema: Schema) -> Iterator[Histogram]:
    """List the attributes that have something to tell."""
    for at, (name, column) in enumerate(schema.predictors.items()):
        if column.leaves > 1:
            yield Histogram(name, at, column.leaves)


def everyone(schema: Schema) -> Tally:
    """The whole table, and every attribute leaf by leaf: one pass for all rounds."""
    return Tally(Grid.whole(schema.shape), len(schema.classes), tuple(range(len(schema.shape))))


@dataclass(frozen=True, kw_only=True)
class Histograms(Method):
    """A method that publishes every attribute apart."""

    @property
    def model(self) -> str:
        """The model of a grid: one region, which margins tell apart."""
        return "grid"

    @abstractmethod
    def rounds(self, one: Histogram) -> Mapping[str, Fraction]:
        """What the rounds of one attribute are called, and how they share its part of epsilon."""

    @abstractmethod
    def ask(
        self, meter: Meter, tally: Tally, one: Histogram, schedule: Schedule
    ) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
        """Measure one attribute, and say in words how."""

    def share(self, schema: Schema, one: Histogram) -> Fraction:
        """The part of epsilon that an attribute gets: all the same; the class has one like it, the size little."""
        number = sum(1 for _ in histograms_of(schema))
        assert 0 <= one.attribute < len(schema.shape)
        return Fraction(1, number + 1) if len(schema.classes) > 1 else (1 - SIZE) / number

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Share epsilon among the rounds of all attributes; what is left counts everyone."""
        parts = {
            label: epsilon * self.share(schema, one) * part
            for one in histograms_of(schema)
            for label, part in self.rounds(one).items()
        }
        return Schedule(parts | {COUNTS: epsilon - sum(parts.values(), Fraction(0))})

    def expected_cells(self, schema: Schema) -> int:
        """Bound the counts of all levels of all attributes."""
        return 4 * sum(schema.shape) + len(schema.classes)

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Measure attribute after attribute, then count everyone with all that is left."""
        tally = everyone(schema)
        measured, steps = list[Measurement](), list[str]()
        for one in histograms_of(schema):
            found, said = self.ask(meter, tally, one, schedule)
            measured += found
            steps += said
        counts = meter.measure(Cells(tally), payable(meter.left), COUNTS)
        return Draft(Grid.whole(schema.shape), (*measured, counts), self.model, tuple(steps))
