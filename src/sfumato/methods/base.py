"""What a method is: a frozen value that plans its spending from public facts and drafts a release through a meter.

It drafts and does not seal: the account joins the draft with the ledger, so a method cannot write its own certificate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from sfumato.consistency import Consistency
from sfumato.counts.meter import Meter
from sfumato.privacy.budget import Schedule
from sfumato.privacy.noisy import Margin, NodeCounts, Noisy
from sfumato.schema import Schema
from sfumato.tree import Partition


@dataclass(frozen=True)
class Draft:
    """What a method found: regions, their noisy counts by class, noisy margins by attribute, and how it got there."""

    partition: Partition
    counts: Noisy
    margins: Mapping[int, Margin] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    earlier: tuple[NodeCounts, ...] = ()
    """what was bought on the way, if the regions are the leaves of a tree"""
    consistency: Consistency = "least squares"
    """how all these counts of a tree are made to agree"""
    histogram: Noisy | None = None
    """the noisy counts of all single cells, by class, if they were bought, too"""


class Method(Protocol):
    """A way to publish. Validated at birth: after data is opened nothing fails because of a parameter."""

    name: ClassVar[str]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Give the parameters as plain values, for the manifest."""

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Say what every round will cost, from public facts alone, or refuse."""

    def expected_cells(self, schema: Schema) -> int:
        """Estimate generously, from public facts, how many cells a release will have, to set disk space aside."""

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Ask the meter and draft a release."""
