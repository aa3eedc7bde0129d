"""A tally as one Spark query that reads nothing but rows: small tables are constants in it, looked up by position.

A join would send each small table round the cluster in a job of its own, and on Spark a job costs more than a level's
arithmetic. Codes and nodes count from 0, so a table of theirs is an array. It is written as one text, which Spark reads
once, when it plans: the number of expressions follows from the attributes and the steps, never from the regions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.tally import Tally
from sfumato.engines.dialect import SparkDialect
from sfumato.engines.questions import Rows, cells_of
from sfumato.engines.steps import splits_of, ways_of
from sfumato.partition import Grid
from sfumato.tree import NONE, Tree

WORDS = SparkDialect()
BY_WAY = 0
"""No border is 0: this one says that a node has more than two children."""


def grid_query(tally: Tally, rows: Rows) -> str:
    """Count by the regions of a grid: each attribute that is cut adds its part, in units of the parts that follow."""
    grid = tally.partition
    assert isinstance(grid, Grid)
    parts = [
        _looked_up(grid.part_of(attribute) * math.prod(grid.parts[attribute + 1 :]), f"c{attribute}")
        for attribute in grid.split_attributes
    ]
    place = f"CAST({' + '.join(parts) or 0} AS BIGINT)"
    return _counting(tally, rows, f"SELECT {', '.join(rows.columns)}, {place} AS place FROM {rows.table}")


def tree_query(tally: Tally, rows: Rows, located: str) -> str:
    """Count by the nodes that are asked for, of rows that know theirs."""
    place = f"CAST({_looked_up(tally.place_of_node, 'node')} AS BIGINT)"
    placed = f"SELECT {', '.join(rows.columns)}, {place} AS place FROM ({located})"
    return _counting(tally, rows, f"SELECT * FROM ({placed}) WHERE place >= 0")


def stepped(tree: Tree, known: int, steps: int, rows: Rows, sql: str) -> str:
    """Let rows step, so many times, from the nodes before a number to their children, where they have any."""
    splits, ways = splits_of(tree, known), ways_of(tree, known)
    along, born, border, way = (np.full(len(tree), NONE, np.int64) for _ in range(4))
    along[splits["parent"]], born[splits["parent"]] = splits["attribute"], splits["born"]
    border[splits["parent"]] = splits["border"]
    part = f"CASE WHEN code >= {_looked_up(border, 'node')} THEN 1 ELSE 0 END"
    if len(ways["way"]):
        numbers, starts = np.unique(ways["way"], return_index=True)
        begins = np.zeros(len(numbers) + 1, np.int64)
        begins[numbers] = starts - ways["leaf"][starts]
        way[splits["parent"]] = begins[splits["way"]]
        by_way = _looked_up(ways["part"], f"{_looked_up(way, 'node')} + code")
        part = f"CASE {_looked_up(border, 'node')} WHEN {BY_WAY} THEN {by_way} ELSE {part} END"
    codes = " ".join(f"WHEN {one} THEN CAST(c{one} AS INT)" for one in np.unique(splits["attribute"]).tolist())
    code = f"CASE {_looked_up(along, 'node')} {codes} END"
    node = _found_once(f"CASE WHEN code IS NULL THEN node ELSE {_looked_up(born, 'node')} + {part} END")
    listed = ", ".join(rows.columns)
    for _ in range(steps):
        sql = f"SELECT {listed}, {node} AS node FROM (SELECT {listed}, node, {code} AS code FROM ({sql}))"
    return sql


def _counting(tally: Tally, rows: Rows, placed: str) -> str:
    return WORDS.melted(cells_of(tally), f"({placed})", weighted=rows.weighted)


def _found_once(number: str) -> str:
    """Add 0, in words that depend on where a row lies: such a number Spark may neither find twice nor elsewhere.

    Otherwise a condition on it is tried before it is found, by finding it there as well; each step needs the node
    before it several times, so that the work for a few steps would be that of hundreds.
    """
    return f"{number} + least(spark_partition_id(), 0)"


def _looked_up(numbers: NDArray[np.integer], position: str) -> str:
    """Look a number up in a constant array; there is none beyond its ends."""
    wide = "BIGINT" if np.abs(numbers).max() >= 2**31 else "INT"
    return f"get(CAST(split('{','.join(map(str, numbers.tolist()))}', ',') AS ARRAY<{wide}>), {position})"
