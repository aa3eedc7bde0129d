"""A round is one scan: what DuckDB really runs is listed, and the scans and groupings of each plan are counted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Schema
from sfumato.engines.duckdb import duckdb_engine
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Partition, Tree
from sfumato.privacy.tally import Tally
from sfumato.tables.sources import open_table

WIDE, LEAVES = 3, 400
SCHEMA = Schema.parse(
    {"attributes": {f"a{place}": {"kind": "numeric", "lower": 0, "upper": LEAVES - 1} for place in range(WIDE)}}
)


class Watched:
    """A connection that notes the plan of every query before it runs it."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.plans = connection, []

    def execute(self, query: str, *given: Any) -> Any:
        self._note(query)
        return self.connection.execute(query, *given)

    def sql(self, query: str) -> Any:
        self._note(query)
        return self.connection.sql(query)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def _note(self, query: str) -> None:
        if query.lstrip().upper().startswith("SELECT"):
            ((_, plan),) = self.connection.execute(f"EXPLAIN (FORMAT json) {query}").fetchall()
            self.plans.append(Counter(operators(json.loads(plan))))


def operators(nodes: list[dict[str, Any]]) -> list[str]:
    """List what a plan does; scans with the name of the table, since small ones are scanned, too."""
    found = []
    for node in nodes:
        name, facts = node["name"].strip(), node.get("extra_info", {})
        name = f"{name} {str(facts.get('Table', '')).rsplit('.', 1)[-1]}" if "SCAN" in name else name
        found += [name, *operators(node["children"])]
    return found


def random_table(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({f"a{place}": rng.integers(0, LEAVES, rows) for place in range(WIDE)})


def grid(parts: int) -> Grid:
    return Grid.whole(SCHEMA.shape).refine(0, tuple(range(LEAVES // parts, LEAVES, LEAVES // parts)))


def tree(parts: int) -> Tree:
    borders = list(range(0, LEAVES + 1, LEAVES // parts))
    return Tree.whole(SCHEMA.shape).refine([0], [0], borders, [0, len(borders)])


def plans_of(asked: Tally, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Give all that runs for a tally."""
    from sfumato.engines import duckdb as module

    watched: list[Watched] = []
    connected = module._connected

    def watching(*given: Any) -> Any:
        watched.append(Watched(connected(*given)))
        return watched[-1]

    monkeypatch.setattr(module, "_connected", watching)
    with duckdb_engine(open_table(random_table(5000)), SCHEMA, memory=10**9, home=folder) as engine:
        watched[0].plans.clear()
        assert engine.tally(asked).by_place.sum() == 5000
    return sum(watched[0].plans, Counter())


@pytest.mark.parametrize("partition", [grid(2), grid(400), tree(2), tree(400)], ids=["2", "400", "tree 2", "tree 400"])
@pytest.mark.parametrize("attributes", [(0,), (0, 1, 2)])
def test_a_round_scans_the_rows_once(
    partition: Partition, attributes: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many regions there are: one scan of the coded rows, whose cells are grouped once for each attribute.

    (DuckDB itself divides grouping sets so, over rows that it has scanned once; a stream is not grouped at all.)
    """
    plan = plans_of(Tally(partition, 1, attributes), tmp_path, monkeypatch)
    groupings = sum(number for name, number in plan.items() if "GROUP_BY" in name)
    assert plan["SEQ_SCAN coded"] == 1, plan
    assert groupings <= len(attributes), plan
    assert groupings or isinstance(partition, Tree), plan


def test_scans_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count would see a query for each region."""
    from sfumato.engines import duckdb as module

    def twice(*given: Any) -> Any:
        found = asked_once(*given)
        return type(found)(f"{found.sql} UNION ALL SELECT c0, k FROM coded WHERE random() < 0", found.tables)

    asked_once = module.question_of
    monkeypatch.setattr(module, "question_of", twice)
    plan = plans_of(Tally(grid(2), 1, (0,)), tmp_path, monkeypatch)
    assert plan["SEQ_SCAN coded"] == 2
