"""A tally as one query: where rows are found to lie by joins with small tables, and what they are counted by.

Every row has a column `c0`, `c1`, ... for each attribute and `k` for the class, `w` if it stands for several records,
and, once a tree was asked about, `node`. Places are found by arithmetic on these: on a grid the parts of the codes are
digits of the region's number; on a tree a row that stands on a split node steps to the child that holds it. The size
of a query follows from the number of attributes and the depth of a step, never from the number of regions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.tally import Breakdown, Counts, Integers, Tally
from sfumato.engines.dialect import Dialect
from sfumato.partition import Grid
from sfumato.tree import NONE, Tree

Columns = dict[str, NDArray[np.integer]]
"""A small table by column."""


@dataclass(frozen=True)
class Rows:
    """What a table of coded rows is called, and what columns it has."""

    table: str
    attributes: int
    weighted: bool

    @property
    def columns(self) -> list[str]:
        """The columns that never change."""
        return [*(f"c{attribute}" for attribute in range(self.attributes)), "k", *(["w"] if self.weighted else [])]


@dataclass(frozen=True)
class Question:
    """A query with the small tables that it reads: their names are marked in it as {name}."""

    sql: str
    tables: dict[str, Columns]


def question_of(tally: Tally, rows: Rows, words: Dialect, located: Question | None) -> Question:
    """Ask for every cell (place, leaf, class) of every attribute that holds someone, in one scan and one aggregation.

    `located` are the rows with the node of the tree on which each stands; without it places are regions of a grid.
    """
    inside = _by_region(tally.partition, rows) if located is None else _by_node(tally, rows, located)
    return Question(words.melted(cells_of(tally), f"({inside.sql})", weighted=rows.weighted), inside.tables)


def cells_of(tally: Tally) -> list[str]:
    """Write the cells of a row that lies in a place: one of each attribute, or that of its class."""
    cells = [
        f"{start} + (place * {tally.leaves(attribute)} + c{attribute}) * {tally.classes} + k"
        for attribute, start in zip(tally.attributes, _starts(tally), strict=False)
    ]
    wide = "BIGINT" if _starts(tally)[-1] >= 2**31 else "INT"
    return [f"CAST({cell} AS {wide})" for cell in cells or [f"place * {tally.classes} + k"]]


def counts_of(tally: Tally, cells: Integers, numbers: Integers) -> Counts:
    """Put the answer together."""
    order = np.argsort(cells, kind="stable")
    cells, numbers = cells[order], numbers[order]
    by_place = np.zeros((tally.places, tally.classes), np.int64)
    if not tally.attributes:
        by_place.reshape(-1)[cells] = numbers
        return Counts(by_place, {})
    starts = _starts(tally)
    found = np.searchsorted(cells, starts)
    by_leaf = {
        attribute: Breakdown.of_cells(
            tally.leaves(attribute), tally.classes, cells[begin:end] - start, numbers[begin:end]
        )
        for attribute, start, begin, end in zip(tally.attributes, starts, found, found[1:], strict=False)
    }
    some = by_leaf[tally.attributes[0]]
    np.add.at(by_place, some.keys // some.leaves, some.counts)
    return Counts(by_place, by_leaf)


def _starts(tally: Tally) -> list[int]:
    """Give where the cells of each attribute begin, and the end."""
    sizes = [tally.places * tally.leaves(attribute) * tally.classes for attribute in tally.attributes]
    return list(accumulate(sizes or [tally.places * tally.classes], initial=0))


def _by_region(grid: Grid | Tree, rows: Rows) -> Question:
    """Find regions of a grid: each attribute that is cut adds its part, in units of the parts that follow."""
    assert isinstance(grid, Grid)
    tables: dict[str, Columns] = {}
    joins = []
    for attribute in grid.split_attributes:
        later = math.prod(grid.parts[attribute + 1 :])
        offsets = grid.part_of(attribute) * later
        tables[f"part{attribute}"] = {"leaf": np.arange(len(offsets), dtype=np.int32), "offset": offsets}
        joins.append(f" JOIN {{part{attribute}}} AS p{attribute} ON p{attribute}.leaf = c{attribute}")
    place = " + ".join(f"p{attribute}.offset" for attribute in grid.split_attributes) or "CAST(0 AS BIGINT)"
    return Question(f"SELECT {', '.join(rows.columns)}, {place} AS place FROM {rows.table}{''.join(joins)}", tables)


def _by_node(tally: Tally, rows: Rows, located: Question) -> Question:
    """Keep the rows on the nodes that are asked for, which are numbered as places."""
    assert tally.leaves_asked is not None
    asked: Columns = {"number": tally.leaves_asked.astype(np.int32), "place": np.arange(tally.places)}
    sql = f"SELECT {', '.join(rows.columns)}, a.place FROM ({located.sql}) JOIN {{asked}} AS a ON a.number = node"
    return Question(sql, located.tables | {"asked": asked})


def standing(rows: Rows, *, located: bool) -> Question:
    """Give the rows where they stand: on the nodes that they remember, or on the root."""
    node = "node" if located else "CAST(0 AS INT) AS node"
    return Question(f"SELECT {', '.join([*rows.columns, node])} FROM {rows.table}", {})


def stepped(tree: Tree, known: int, steps: int, rows: Rows, stand: Question) -> Question:
    """Let rows step, so many times, from the nodes before a number to their children, where they have any."""
    if not steps:
        return stand
    splits, ways = splits_of(tree, known), ways_of(tree, known)
    along = np.unique(splits["attribute"]).tolist()
    code = "CASE s.attribute " + " ".join(f"WHEN {one} THEN CAST(c{one} AS INT)" for one in along) + " END"
    part = "CASE WHEN code >= border THEN 1 ELSE 0 END"
    join = ""
    if len(ways["way"]):
        part = f"CASE WHEN o.way IS NULL THEN {part} ELSE o.part END"
        join = " LEFT JOIN {ways} AS o ON o.way = t.way AND o.leaf = t.code"
    listed = ", ".join(rows.columns)
    sql = stand.sql
    for _ in range(steps):
        looked = f"SELECT {listed}, node, s.born, s.border, s.way, {code} AS code FROM ({sql})"
        looked += " LEFT JOIN {splits} AS s ON s.parent = node"
        node = f"CAST(CASE WHEN born IS NULL THEN node ELSE born + {part} END AS INT) AS node"
        sql = f"SELECT {listed}, {node} FROM ({looked}) AS t{join}"
    return Question(sql, stand.tables | {"splits": splits} | ({"ways": ways} if join else {}))


def _families(tree: Tree, known: int) -> tuple[Integers, Integers]:
    """Give the first child of each family from a number of nodes on, and how many children it has."""
    parents = tree.parents[known:]
    first = np.flatnonzero(np.diff(parents, prepend=NONE - 1))
    return known + first, np.diff(first, append=len(parents))


def splits_of(tree: Tree, known: int) -> Columns:
    """Give for each split node the attribute that divides it, its first child, and the border if there is only one.

    Children of one family have numbers side by side. Where there are more than two, the way they divide their parent
    has a number, which is the same for all parents that are divided alike: a taxonomy has few.
    """
    first, sizes = _families(tree, known)
    alike = _numbers_of_ways(tree, first, sizes)
    ways = [alike.get(_way(tree, one, size), NONE) for one, size in zip(first, sizes, strict=True)]
    return {
        "parent": tree.parents[first],
        "attribute": tree.attributes[first],
        "born": first.astype(np.int32),
        "border": np.where(sizes == 2, tree.highs[first], 0).astype(np.int32),
        "way": np.array(ways, np.int32),
    }


def ways_of(tree: Tree, known: int) -> Columns:
    """Give for each way to divide a range in more than two, leaf by leaf, which part it is in."""
    alike = _numbers_of_ways(tree, *_families(tree, known))
    columns: dict[str, list[NDArray[np.integer]]] = {"way": [], "leaf": [], "part": []}
    for (_, *borders), number in alike.items():
        widths = np.diff(borders)
        columns["way"].append(np.full(borders[-1] - borders[0], number))
        columns["leaf"].append(np.arange(borders[0], borders[-1]))
        columns["part"].append(np.repeat(np.arange(len(widths)), widths))
    return {name: np.concatenate([np.empty(0, np.int32), *pieces]).astype(np.int32) for name, pieces in columns.items()}


def _way(tree: Tree, first: int, size: int) -> tuple[int, ...]:
    """Give the attribute and the borders of a family."""
    return (int(tree.attributes[first]), *tree.lows[first : first + size].tolist(), int(tree.highs[first + size - 1]))


def _numbers_of_ways(tree: Tree, first: Integers, sizes: Integers) -> dict[tuple[int, ...], int]:
    many = np.flatnonzero(sizes > 2)
    ways = dict.fromkeys(_way(tree, int(first[one]), int(sizes[one])) for one in many)
    return {way: number for number, way in enumerate(ways)}
