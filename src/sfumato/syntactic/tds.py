"""Top-down specialization for k-anonymity (Fung, Wang, Yu, "Top-Down Specialization for Information and Privacy
Preservation", ICDE 2005).

The cut of every attribute is the same for all records, as in DiffGen. Each step takes the valid value with the largest
information gain per loss of anonymity, InfoGain / (AnonyLoss + 1); an interval is split where the gain is largest. It
ends when no valid, beneficial value is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.counts.exact_counts import ExactCounts
from sfumato.counts.tally import Tally
from sfumato.errors import MethodError
from sfumato.methods.cuts import describe_all
from sfumato.privacy.noisy import Noisy
from sfumato.schema import Schema
from sfumato.syntactic.base import KAnonymous, OpenDraft
from sfumato.syntactic.topdown import TopDown


@dataclass(frozen=True, kw_only=True)
class TDS(KAnonymous):
    """Single-dimensional k-anonymity for classification."""

    name: ClassVar[str] = "tds"

    def narrowed(self, schema: Schema) -> Schema:
        """Refuse a schema without a class to choose by."""
        if schema.target is None or len(schema.classes) < 2:
            raise MethodError(
                "tds must have a class attribute of two values or more to choose by",
                "Name one with --target or in the schema.",
            )
        return super().narrowed(schema)

    def publish(self, counts: ExactCounts, schema: Schema) -> OpenDraft:
        """Choose the cuts, then count the groups: the leaves of the tree that the cuts grow, empty ones undivided."""
        growth = TopDown(counts=counts, schema=schema, k=self.k)
        growth.run()
        groups = counts.tally(Tally(growth.tree, len(schema.classes)), "counts of groups").by_place
        return OpenDraft(growth.tree, Noisy.exact(groups), steps=describe_all(schema.predictors, growth.steps))
