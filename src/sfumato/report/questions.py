"""Questions to show a release by: some at its own borders, where noise is all that can be wrong, some at any.

They are drawn with a fixed seed from what is public, the schema and the regions, so whoever has the release draws the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes import Categorical, Numeric
from sfumato.conditions import read_condition
from sfumato.errors import QueryError
from sfumato.partition import Grid, Indices
from sfumato.release.release import Release
from sfumato.schema import Schema
from sfumato.tree import Tree

Leaves = Mapping[str, Indices]
"""By attribute, the leaves that are meant."""

MOST_RESTRICTED = 3
MOST_LISTED = 5
SHALLOW = 4
"""Half of the nodes of a tree that are asked for have so many cuts at most on the way."""
WORDS = ("and", "between", "in")


@dataclass(frozen=True, eq=False)
class Asked:
    """A question: the leaves that it allows, and whether it was drawn at the release's own borders."""

    leaves: Leaves
    own: bool
    schema: Schema

    @property
    def weights(self) -> dict[str, NDArray[np.float64]]:
        """Give it as weights of leaves."""
        return {
            name: np.isin(np.arange(self.schema.predictors[name].leaves), chosen).astype(np.float64)
            for name, chosen in self.leaves.items()
        }

    @property
    def words(self) -> str | None:
        """Write it as a condition; None if that cannot be said, or would be long."""
        said = [said_of(self.schema, name, chosen) for name, chosen in self.leaves.items()]
        return None if None in said or len(said) > MOST_RESTRICTED else " and ".join(filter(None, said))


def questions_to(release: Release, count: int, seed: int) -> list[Asked]:
    """Draw so many questions, half of them at the release's own borders where it has any."""
    rng = np.random.default_rng(seed)
    schema = release.schema
    if not any(column.leaves > 1 for column in schema.predictors.values()):
        return []
    own = _at_borders(release)
    return [
        Asked(own(rng), True, schema)
        if own is not None and number % 2 == 0
        else Asked(_anywhere(schema, rng), False, schema)
        for number in range(count)
    ]


def _anywhere(schema: Schema, rng: np.random.Generator) -> Leaves:
    """Restrict one to three attributes: to an interval between two borders of cells, or to a category."""
    columns = {name: column for name, column in schema.predictors.items() if column.leaves > 1}
    return {name: _range(columns[name], rng) for name in _some(list(columns), rng)}


def _some(names: list[str], rng: np.random.Generator) -> list[str]:
    size = min(int(rng.integers(1, MOST_RESTRICTED + 1)), len(names))
    return [names[one] for one in sorted(rng.choice(len(names), size, replace=False).tolist())]


def _range(column: Categorical | Numeric, rng: np.random.Generator) -> Indices:
    if isinstance(column, Numeric):
        lo = int(rng.integers(column.cells))
        return np.arange(lo, int(rng.integers(lo + 1, column.cells + (lo > 0))) if column.cells > 1 else column.cells)
    lo, hi = 0, column.leaves
    for _ in range(int(rng.integers(1, 3))):
        if borders := column.children(lo, hi):
            pick = int(rng.integers(len(borders) - 1))
            lo, hi = borders[pick], borders[pick + 1]
    return np.arange(lo, hi)


def _at_borders(release: Release) -> Callable[[np.random.Generator], Leaves] | None:
    """Give what draws unions of whole regions: parts of a grid's attributes, or nodes of a tree; boxes have none."""
    partition, names = release.partition, list(release.schema.predictors)
    if not partition.split_attributes or not isinstance(partition, Grid | Tree):
        return None
    if isinstance(partition, Tree):
        tree, shallow = partition, np.flatnonzero(partition.depths <= SHALLOW)[1:]

        def node(rng: np.random.Generator) -> Leaves:
            which = int(rng.choice(shallow)) if rng.random() < 0.5 else int(rng.integers(1, len(tree)))
            box = tree.boxes_of(np.array([which]))[0].tolist()
            whole = [[0, leaves] for leaves in tree.shape]
            return {names[at]: np.arange(*box[at]) for at in range(len(names)) if box[at] != whole[at]}

        return node
    grid = partition

    def parts(rng: np.random.Generator) -> Leaves:
        chosen = _some([names[at] for at in grid.split_attributes], rng)
        return {name: _run(grid, names.index(name), rng) for name in chosen}

    return parts


def _run(grid: Grid, attribute: int, rng: np.random.Generator) -> Indices:
    """Give the leaves of one part, or of parts side by side where there are many and the leaves are in their order."""
    cut, parts = grid.cuts[attribute], grid.parts[attribute]
    first = int(rng.integers(parts))
    last = first + 1
    if not grid.orders and parts > 2:
        last = int(rng.integers(first + 1, parts + (first > 0)))
    return np.sort(grid.order_of(attribute)[cut[first] : cut[last]])


def said_of(schema: Schema, name: str, leaves: Indices) -> str | None:
    """Write that an attribute has one of some leaves, if the grammar of conditions can say just that.

    >>> schema = Schema.loads("attributes: {age: {kind: numeric, lower: 17, upper: 90}}")
    >>> said_of(schema, "age", np.arange(3, 9)), said_of(schema, "age", np.arange(70, 74))
    ('age >= 20 and age < 26', 'age >= 87')
    """
    column = schema.predictors[name]
    quoted = name if name.isidentifier() and name.lower() not in WORDS else f'"{name}"'
    tried = (
        _number_words(quoted, column, leaves) if isinstance(column, Numeric) else _value_words(quoted, column, leaves)
    )
    for words in tried:
        try:
            said = read_condition(schema, words)
        except QueryError:
            continue
        if list(said) == [name] and np.array_equal(np.flatnonzero(said[name] > 0), leaves):
            return words
    return None


def _number_words(quoted: str, column: Numeric, leaves: Indices) -> list[str]:
    lo, hi = int(leaves[0]), int(leaves[-1]) + 1
    if hi > column.cells:
        return []
    above, below = f"{quoted} >= {column.edge(lo)}", f"{quoted} < {column.edge(hi)}"
    return [above if hi == column.cells and lo else below if not lo else f"{above} and {below}"]


def _value_words(quoted: str, column: Categorical, leaves: Indices) -> list[str]:
    names = [column.label(leaf, leaf + 1) for leaf in leaves.tolist()]
    listed = ", ".join(f"'{_doubled(one)}'" for one in names)
    whole = column.label(int(leaves[0]), int(leaves[-1]) + 1)
    return [f"{quoted} = '{_doubled(whole)}'", *([f"{quoted} in ({listed})"] if len(names) <= MOST_LISTED else [])]


def _doubled(text: str) -> str:
    return text.replace("'", "''")
