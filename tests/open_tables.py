"""Small tables behind exact counts, and what a published group is, found by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import strategies as st

from sfumato import Schema
from sfumato.engines.local import MemoryListing
from sfumato.privacy.budget import NonPrivate
from sfumato.privacy.exact_counts import ExactCounts
from sfumato.privacy.measurements import Draft
from sfumato.privacy.tally import Domain
from sfumato.without_epsilon import MethodWithoutEpsilon

SMALL = Schema.loads("""
name: small
confirmed: true
attributes:
  a: {kind: numeric, lower: 0, upper: 8}
  b: {kind: categorical, taxonomy: {p: [x, y], q: {r: [z, w], s: [v]}}}
  c: {kind: numeric, lower: 0, upper: 2}
  class: {kind: class, taxonomy: [no, yes, perhaps]}
""")

Rows = list[tuple[int, ...]]


class Notes:
    """A notebook in memory."""

    def __init__(self) -> None:
        """Begin empty."""
        self.lines: list[NonPrivate] = []

    def note(self, line: NonPrivate) -> None:
        """Keep a line."""
        self.lines.append(line)


class Fuse:
    """An engine that must not be asked."""

    def tally(self, _: object, /) -> None:
        """Blow."""
        raise AssertionError("it looked")


def rows(most: int = 60) -> st.SearchStrategy[Rows]:
    """Give rows of codes: the attributes of SMALL, and the class."""
    leaves = (*SMALL.shape, len(SMALL.classes))
    return st.lists(st.tuples(*(st.integers(0, one - 1) for one in leaves)), min_size=1, max_size=most)


def exact(table: Rows, schema: Schema = SMALL) -> ExactCounts:
    columns = [np.array(column, np.uint8) for column in zip(*table, strict=True)]
    domain = Domain(schema.shape, len(schema.classes))
    return ExactCounts(MemoryListing(columns[:-1], columns[-1]), Notes(), domain, "test")


def drafted(method: MethodWithoutEpsilon, table: Rows) -> Draft:
    return method.publish(exact(table), method.narrowed(SMALL))


def groups_by_hand(draft: Draft, table: Rows) -> list[Counter[int]]:
    """Put every row into its region: the classes of each region that holds someone, regions in their order."""
    columns = [np.array(column, np.uint8) for column in zip(*table, strict=True)]
    groups: dict[int, Counter[int]] = {}
    for region, row in zip(draft.structure.regions_of(columns[:-1]).tolist(), table, strict=True):
        groups.setdefault(region, Counter())[row[-1]] += 1
    return [groups[region] for region in sorted(groups)]
