"""Taxonomies: trees of categories in which every node is a contiguous range of leaf codes.

Leaves are numbered depth first, so "Government" is not a set but `[2, 5)`. Regions, queries and generalized values are
therefore arithmetic on integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sfumato.errors import SchemaError

ROOT = "Any"
"""What the root is called unless the schema names it."""
DEEPEST = 200
"""No taxonomy has more levels."""

Nested = list["str | dict[str, Nested]"]
"""A taxonomy as a schema file holds it: a list of leaves and of one-key mappings from a name to what is below it."""


@dataclass(frozen=True)
class Node:
    """One category: its name, the leaf codes `[lo, hi)` below it, its children, and its distance from the root."""

    label: str
    lo: int
    hi: int
    depth: int
    children: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        """Visit this node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class Taxonomy:
    """A rooted tree of distinct names.

    >>> jobs = Taxonomy.of([{"Professional": ["Engineer", "Lawyer"]}, {"Artist": ["Dancer", "Writer"]}])
    >>> jobs.leaves
    ('Engineer', 'Lawyer', 'Dancer', 'Writer')
    >>> jobs.range_of("Artist"), jobs.children(0, 4), jobs.label(0, 2), jobs.height
    ((2, 4), (0, 2, 4), 'Professional', 2)
    """

    root: Node

    @classmethod
    def of(cls, nested: Nested, root: str = ROOT) -> Taxonomy:
        """Build the tree from the nested form of a schema file."""
        taxonomy = cls(_grow(root, nested, lo=0, depth=0))
        taxonomy._refuse_repeated_names()
        return taxonomy

    @classmethod
    def of_hierarchy(cls, rows: Sequence[Sequence[str]]) -> Taxonomy:
        """Build the tree from a hierarchy table: one row per leaf, `leaf; parent; ...; root`.

        A name that repeats its child's name only keeps rows equally long; it is not a level.

        >>> rows = [("Dancer", "Artist", "*"), ("Writer", "Artist", "*"), ("Retired", "Retired", "*")]
        >>> Taxonomy.of_hierarchy(rows).nested
        [{'Artist': ['Dancer', 'Writer']}, 'Retired']
        """
        paths = [_path(row, number) for number, row in enumerate(rows, start=1)]
        roots = {path[0] for path in paths}
        if len(roots) != 1:
            raise SchemaError(
                f"the hierarchy must have one root in its last column, and has {len(roots)}",
                "End every row with the same most general value, such as *.",
            )
        return cls.of(_nest([path[1:] for path in paths]), root=roots.pop())

    @property
    def hierarchy(self) -> list[tuple[str, ...]]:
        """The hierarchy table: one row per leaf from the leaf to the root, made equally long by repeating the leaf."""
        padded = self.height + 1
        return [(path[-1],) * (padded - len(path)) + tuple(reversed(path)) for path in _paths(self.root)]

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node, parents first."""
        return tuple(self.root.walk())

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The leaf names in the order of their codes."""
        return tuple(node.label for node in self.nodes if not node.children)

    @property
    def height(self) -> int:
        """The number of edges on the longest path from the root to a leaf."""
        return max(node.depth for node in self.nodes)

    @property
    def nested(self) -> Nested:
        """The nested form that `of` reads."""
        return _nested(self.root)

    @cached_property
    def _ranges(self) -> dict[str, tuple[int, int]]:
        return {node.label: (node.lo, node.hi) for node in self.nodes}

    @cached_property
    def _by_range(self) -> dict[tuple[int, int], Node]:
        """The most specific node of each range: an only child stands for its parent."""
        return {(node.lo, node.hi): node for node in self.nodes}

    def range_of(self, label: str) -> tuple[int, int] | None:
        """The leaf codes below a name, or None if the tree does not have it."""
        return self._ranges.get(label)

    def label(self, lo: int, hi: int) -> str:
        """Name a range: its category, or else the largest categories inside it, side by side."""
        node = self._by_range.get((lo, hi))
        return node.label if node else " | ".join(_largest_inside(self.root, lo, hi))

    def children(self, lo: int, hi: int) -> tuple[int, ...] | None:
        """The borders between the children of this range's node, outer ones included; None for a leaf."""
        node = self._by_range.get((lo, hi))
        if node is None or not node.children:
            return None
        return (*(child.lo for child in node.children), hi)

    def _refuse_repeated_names(self) -> None:
        seen: set[str] = set()
        for node in self.nodes:
            if not node.label:
                raise SchemaError("a taxonomy name must not be empty", "Give every category a name.")
            if node.label in seen:
                raise SchemaError(
                    f"taxonomy name {node.label!r} must stand in one place only, and is repeated",
                    "Remove or rename one of the two.",
                )
            seen.add(node.label)


def _grow(label: str, nested: Nested, lo: int, depth: int) -> Node:
    if depth >= DEEPEST:
        raise SchemaError(f"a taxonomy must be at most {DEEPEST} levels deep", "Merge some of its levels.")
    children: list[Node] = []
    at = lo
    for item in nested:
        parts: list[tuple[str, Nested]] = [(item, [])] if isinstance(item, str) else list(item.items())
        for name, below in parts:
            child = _grow(name, below, at, depth + 1) if below else Node(name, at, at + 1, depth + 1)
            children.append(child)
            at = child.hi
    if not children:
        raise SchemaError("a taxonomy must have at least one leaf", "List the values the attribute can take.")
    return Node(label, lo, at, depth, tuple(children))


def _nested(node: Node) -> Nested:
    return [{child.label: _nested(child)} if child.children else child.label for child in node.children]


def _paths(node: Node) -> Iterator[tuple[str, ...]]:
    if not node.children:
        yield (node.label,)
    for child in node.children:
        for path in _paths(child):
            yield (node.label, *path)


def _largest_inside(node: Node, lo: int, hi: int) -> list[str]:
    if lo <= node.lo and node.hi <= hi:
        return [node.label]
    overlapping = [child for child in node.children if child.lo < hi and lo < child.hi]
    return [name for child in overlapping for name in _largest_inside(child, lo, hi)]


def _path(row: Sequence[str], number: int) -> list[str]:
    """One row of a hierarchy table from the root down, without repeated names."""
    names = [name.strip() for name in row]
    if not 2 <= len(names) <= DEEPEST or not all(names):
        raise SchemaError(
            f"row {number} of the hierarchy must have 2 to {DEEPEST} fields from leaf to root, none of them empty",
            "Write one row per leaf: leaf; parent; ...; root.",
        )
    path = [name for name, below in zip(names[1:], names, strict=False) if name != below]
    if not path:
        raise SchemaError(
            f"row {number} of the hierarchy must have a root that is not its leaf", "End every row with *, for example."
        )
    return [*reversed(path), names[0]]


def _nest(paths: Sequence[Sequence[str]]) -> Nested:
    """Group paths by their first name, in order of first appearance."""
    below: dict[str, list[Sequence[str]]] = {}
    for first, *rest in paths:
        below.setdefault(first, []).append(rest)
    for name, rests in below.items():
        if [] in rests and len(rests) > 1:
            raise SchemaError(
                f"taxonomy name {name!r} must be one leaf or one category, and is repeated",
                "Remove one of its rows.",
            )
    return [name if rests == [[]] else {name: _nest(rests)} for name, rests in below.items()]
