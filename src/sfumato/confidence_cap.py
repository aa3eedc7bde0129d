"""The promise of the confidence-capped framework (Sattar, Li, Ding, Liu, Vincent): nobody can claim more about a person
from a record than one would expect of the record to be there by chance.

The **observed confidence** of a record is the sampling rate times the share of its sensitive value in its group. Its
**expected confidence** is the probability that such a record occurs among n drawn from public knowledge, 1 - (1 - P)^n,
where n is the number of published records. The first never exceeds the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.boxes import Boxes, Regions
from sfumato.errors import MethodError
from sfumato.exact import read_fraction
from sfumato.knowledge import Knowledge
from sfumato.promises import NOT_DIFFERENTIAL

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""On another machine logarithms may round otherwise."""
LEAK = (
    "Public statistics were NOT given: what is expected was taken from the sampled records themselves, suppressed ones "
    "included. Their margins are published with it, rounded down to steps of at least 1 % and 20 records: a leak, and "
    "no public knowledge. Where fewer people are published than a step says, some were suppressed."
)


def expected_confidence(probability: Floats, records: int) -> Floats:
    """Give the probability that a record occurs at least once among so many.

    >>> expected_confidence(np.array([0.00375]), 100).round(3), expected_confidence(np.array([0.00375]), 1000).round(3)
    (array([0.313]), array([0.977]))
    """
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(records * np.log1p(-probability)))


@dataclass(frozen=True, eq=False)
class Claims:
    """What the published records let someone claim: of every group and sensitive value that occurs in it."""

    groups: Integers
    values: Integers
    observed: Floats
    expected: Floats


@dataclass(frozen=True, eq=False)
class ConfidenceCap:
    """No record's observed confidence exceeds its expected confidence."""

    model: ClassVar[str] = "confidence cap"

    quasi: tuple[str, ...]
    sensitive: str
    sampling: Fraction
    knowledge: Knowledge | None
    """None before the table was asked for its own statistics"""

    def __eq__(self, other: object) -> bool:
        """Compare what is said."""
        return isinstance(other, ConfidenceCap) and self.plain() == other.plain()

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash((self.quasi, self.sensitive, self.sampling))

    @property
    def _own(self) -> bool:
        return self.knowledge is None or self.knowledge.source != "public"

    @property
    def guarantee(self) -> str:
        """Say what is capped by what."""
        return (
            f"This release caps confidence in {self.sensitive}: of no record does the observed confidence (sampling "
            f"rate {self.sampling} times the share of its value in its group) exceed the expected confidence, "
            "the probability that such a record occurs among as many drawn from public statistics. "
            f"{LEAK + ' ' if self._own else ''}{NOT_DIFFERENTIAL}"
        )

    @property
    def adversary(self) -> str:
        """Say what must not be known, and what is not said."""
        return (
            f"Someone who knows a person's {', '.join(self.quasi)}, that the person is in the table, the statistics "
            "and the group in which the person's record would lie. It does not hold against someone who knows who was "
            "sampled, other members of a group or another release of the table, or who weighs several groups together. "
            "Expected is that such a record is there at all, which in a large table is nearly certain: then a group "
            f"may agree on {self.sensitive}, up to the sampling rate."
        )

    def claims(self, boxes: Boxes, counts: Integers) -> Claims:
        """Work out both confidences from the groups and their counts by sensitive value."""
        if self.knowledge is None:
            raise ValueError("the statistics must be known")
        groups, values = np.nonzero(counts)
        observed = float(self.sampling) * counts[groups, values] / counts.sum(axis=1)[groups]
        probability = self.knowledge.probability(boxes.ranges[groups], values)
        return Claims(groups, values, observed, expected_confidence(probability, int(counts.sum())))

    def refuse_table(self, counts: Integers) -> None:
        """Refuse a table in which everyone has the same sensitive value: each group would agree on it."""
        if (counts > 0).sum() < 2:
            raise MethodError(
                f"sensitive ({self.sensitive}) must have two values or more in the table, and has fewer",
                "Choose another attribute, or a larger table.",
            )

    def kept(self, regions: Regions, counts: Integers) -> bool:
        """Tell whether it holds of every record."""
        if not isinstance(regions, Boxes) or self.knowledge is None or self.knowledge.shape != regions.shape:
            return False
        if (counts < 0).any() or counts.shape != (regions.regions, len(self.knowledge.sensitive)):
            return False
        claims = self.claims(regions, counts)
        return bool((claims.observed <= claims.expected + ROUNDING).all())

    def plain(self) -> dict[str, Any]:
        """Give it as plain values; statistics that were not looked at yet are left out."""
        plain: dict[str, Any] = {
            "model": self.model,
            "quasi": list(self.quasi),
            "sensitive": self.sensitive,
            "sampling": str(self.sampling),
        }
        return plain if self.knowledge is None else plain | {"statistics": self.knowledge.plain()}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Read it back, refusing what is none."""
        sampling, quasi, sensitive = read_fraction(plain["sampling"]), tuple(plain["quasi"]), plain["sensitive"]
        if sampling is None or not 0 < sampling <= 1 or not all(isinstance(one, str) for one in (*quasi, sensitive)):
            raise ValueError("a confidence cap must have names of attributes and a sampling rate")
        return cls(quasi, sensitive, sampling, Knowledge.of_plain(plain["statistics"]))
