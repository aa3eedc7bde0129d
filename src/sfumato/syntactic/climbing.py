"""Bottom-up local recoding: records climb their hierarchies, one step of one attribute at a time, until all are safe.

Records with the same generalized values and the same sensitive value fare alike, so these climb together, all that are
unsafe in one round, and the order of records does not matter. A group that loses members is looked at again in the next
round, also by those who stayed: the rounds end when everyone is safe in the groups as they then are. They do end,
because every round takes someone up or out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.boxes import Boxes
from sfumato.confidence_cap import expected_confidence
from sfumato.counts.combinations import Combinations
from sfumato.grouping import row_keys
from sfumato.hierarchy import Hierarchy
from sfumato.knowledge import Knowledge
from sfumato.partition import Indices
from sfumato.tree import NONE

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

SLACK = 1e-9
"""Distortions that differ by less are the same."""
TIE = 1e-12
"""Confidences that differ by less are the same, whatever rounding says."""
GENERAL = "fully general and still unsafe"
DISTORTED = "unsafe within the distortion limit"


def distortion(hierarchies: Sequence[Hierarchy], nodes: Sequence[Indices]) -> Floats:
    """Give the mean over the attributes of how far each record's values have climbed."""
    return np.asarray(np.mean([one.distortions[node] for one, node in zip(hierarchies, nodes, strict=True)], axis=0))


@dataclass(eq=False)
class Climb:
    """Kinds of records (generalized values and a sensitive value), how many there are of each, and what became of the
    rest.
    """

    hierarchies: Sequence[Hierarchy]
    knowledge: Knowledge
    sampling: float
    limit: float
    """the most distortion that a record may have"""
    nodes: list[Indices]
    """by attribute, the value of its hierarchy that each kind has"""
    values: Indices
    counts: Indices
    suppressed: Counter[str] = field(default_factory=lambda: Counter({GENERAL: 0, DISTORTED: 0}))
    steps: list[Counter[int]] = field(default_factory=list)
    """by round in which someone went up, how many records along each attribute"""

    @classmethod
    def of(
        cls,
        found: Combinations,
        hierarchies: Sequence[Hierarchy],
        knowledge: Knowledge,
        sampling: float,
        limit: float,
    ) -> Climb:
        """Begin with every record at the finest values that may be published."""
        nodes = [one.starts[part] for one, part in zip(hierarchies, found.parts, strict=True)]
        return cls(hierarchies, knowledge, sampling, limit, nodes, found.classes, found.counts)

    def run(self) -> None:
        """Take unsafe records up, round after round, or out where there is no step left."""
        self._masses = [self.knowledge.masses(at, one.ranges) for at, one in enumerate(self.hierarchies)]
        self._probability = self._probabilities(np.arange(len(self.counts)))
        self._gather()
        unsafe = np.flatnonzero(self._unsafe() | (distortion(self.hierarchies, self.nodes) > self.limit + SLACK))
        while len(unsafe):
            self._lift(unsafe)
            self._gather()
            unsafe = np.flatnonzero(self._unsafe())

    def groups(self) -> tuple[Boxes, Indices]:
        """Give the groups, and their counts by sensitive value."""
        starts = self._starts
        ranges = [one.ranges[node[starts]] for one, node in zip(self.hierarchies, self.nodes, strict=True)]
        counts = np.zeros((len(starts), len(self.knowledge.sensitive)), np.int64)
        counts[np.repeat(np.arange(len(starts)), self._kinds()), self.values] = self.counts
        return Boxes(self.knowledge.shape, np.stack(ranges, axis=1)), counts

    def _unsafe(self) -> Booleans:
        """Tell which kinds have an observed confidence above the expected one."""
        sizes = np.repeat(np.add.reduceat(self.counts, self._starts), self._kinds()) if len(self.counts) else 1
        observed = self.sampling * self.counts / sizes
        return np.asarray(observed > expected_confidence(self._probability, int(self.counts.sum())) + TIE)

    def _kinds(self) -> Indices:
        """Count the kinds of each group."""
        return np.diff(self._starts, append=len(self.counts))

    def _gather(self) -> None:
        """Put kinds of the same group side by side, and add up those that have become the same."""
        values = len(self.knowledge.sensitive)
        keys = row_keys([*self.nodes, self.values], [*(len(one.ranges) for one in self.hierarchies), values])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        first = np.flatnonzero(np.diff(keys, prepend=NONE))
        self.counts = np.add.reduceat(self.counts[order], first) if len(first) else self.counts
        self._keep(order[first])
        self._starts = np.flatnonzero(np.diff(keys[first] // values, prepend=NONE))

    def _keep(self, kinds: Indices) -> None:
        self.nodes = [node[kinds] for node in self.nodes]
        self.values, self._probability = self.values[kinds], self._probability[kinds]

    def _probabilities(self, kinds: Indices) -> Floats:
        masses = [mass[node[kinds]] for mass, node in zip(self._masses, self.nodes, strict=True)]
        return self.knowledge.joined(masses, self.values[kinds])

    def _lift(self, unsafe: Indices) -> None:
        """Take kinds one step up; those for which there is none, out."""
        along = self._chosen([node[unsafe] for node in self.nodes])
        went: Counter[int] = Counter()
        for attribute, hierarchy in enumerate(self.hierarchies):
            kinds = unsafe[along == attribute]
            self.nodes[attribute][kinds] = hierarchy.parents[self.nodes[attribute][kinds]]
            went[attribute] = int(self.counts[kinds].sum())
        if +went:
            self.steps.append(+went)
        self._probability[unsafe] = self._probabilities(unsafe)
        self._suppress(unsafe[along == NONE])

    def _chosen(self, nodes: Sequence[Indices]) -> Indices:
        """Choose for each kind the attribute of the largest left domain size, the first of equals, among the steps that
        stay within the distortion limit; NONE if there is none.
        """
        along, largest = np.full(len(nodes[0]), NONE), np.zeros(len(nodes[0]), np.int64)
        now = distortion(self.hierarchies, nodes)
        for attribute, (hierarchy, node) in enumerate(zip(self.hierarchies, nodes, strict=True)):
            above = hierarchy.parents[node]
            after = now + (hierarchy.distortions[above] - hierarchy.distortions[node]) / len(nodes)
            left = np.where((above != NONE) & (after <= self.limit + SLACK), hierarchy.left_domain_sizes[node], 0)
            along[left > largest] = attribute
            largest = np.maximum(left, largest)
        return along

    def _suppress(self, kinds: Indices) -> None:
        """Leave kinds out, and count their records by reason."""
        general = np.ones(len(kinds), np.bool_)
        for hierarchy, node in zip(self.hierarchies, self.nodes, strict=True):
            general &= hierarchy.parents[node[kinds]] == NONE
        for reason, which in ((GENERAL, general), (DISTORTED, ~general)):
            self.suppressed[reason] += int(self.counts[kinds[which]].sum())
        kept = np.ones(len(self.counts), np.bool_)
        kept[kinds] = False
        self.counts = self.counts[kept]
        self._keep(np.flatnonzero(kept))
