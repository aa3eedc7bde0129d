"""What the folder of a release over a tree holds besides: the nodes, and all counts exactly as they were measured.

Its records show estimates, from which the measurements cannot be read back; so `counts.parquet` keeps those of the
regions and `earlier.parquet` those bought on the way, each with the number of its rate in `geometry.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.consistency import Consistency
from sfumato.errors import ReleaseError
from sfumato.privacy.noisy import NodeCounts, Noisy
from sfumato.release.manifest import AGAIN
from sfumato.release.reading import read_columns, read_rate, whole_numbers
from sfumato.schema import Schema
from sfumato.tree import Tree

Integers = NDArray[np.int64]


def tree_geometry(counts: Noisy, earlier: Sequence[NodeCounts], consistency: Consistency) -> dict[str, Any]:
    """Give what is small enough for people to read: the rates of the regions' noise and of each earlier round's, and
    how all counts are made to agree.
    """
    return {
        "partition": {"kind": "tree"},
        "counts_rates": list(map(str, counts.rates)),
        "earlier_rates": [list(map(str, bought.noisy.rates)) for bought in earlier],
        "consistency": consistency,
    }


def read_consistency(geometry: Mapping[str, Any]) -> Consistency:
    """Read how counts are made to agree; before there was a choice, by least squares."""
    consistency: Consistency = geometry.get("consistency", "least squares")
    if consistency not in get_args(Consistency):
        raise ReleaseError(
            f"the release's consistency ({str(consistency)[:40]}) must be one of {', '.join(get_args(Consistency))}",
            "Upgrade Sfumato to read it.",
        )
    return consistency


def write_tree(staging: Path, schema: Schema, tree: Tree, counts: Noisy, earlier: Sequence[NodeCounts]) -> None:
    """Write nodes, counts and earlier counts."""
    nodes = {"parent": tree.parents, "attribute": tree.attributes, "low": tree.lows, "high": tree.highs}
    rounds = np.repeat(np.arange(len(earlier)), [len(bought.nodes) for bought in earlier])
    bought = [_columns(schema, one) for one in earlier]
    empty = dict.fromkeys(("node", "rate", *count_columns(schema)), np.zeros(0, np.int64))
    together = {name: np.concatenate([empty[name], *(one[name] for one in bought)]) for name in empty}
    _write(staging / "nodes.parquet", nodes)
    _write(staging / "counts.parquet", _columns(schema, NodeCounts(tree.leaves, counts)))
    _write(staging / "earlier.parquet", {"round": rounds} | together)


def _write(path: Path, columns: Mapping[str, NDArray[np.integer]]) -> None:
    table = pa.table({name: pa.array(one, pa.int64()) for name, one in columns.items()})
    pq.write_table(table, path, compression="zstd")


def count_columns(schema: Schema) -> list[str]:
    """Name the columns of the classes so that none is called like ours."""
    return [f"noisy_count {name}".rstrip() for name in schema.classes]


def _columns(schema: Schema, bought: NodeCounts) -> dict[str, Integers]:
    counts = dict(zip(count_columns(schema), bought.noisy.counts.T, strict=True))
    return {"node": bought.nodes, "rate": bought.noisy.rate_of} | counts


def read_tree(place: Path, schema: Schema, geometry: Mapping[str, Any]) -> tuple[Tree, Noisy, tuple[NodeCounts, ...]]:
    """Read a tree that partitions the schema's domain, and counts that fit it."""
    facts = ["parent", "attribute", "low", "high"]
    parents, attributes, lows, highs = _read(place / "nodes.parquet", facts, 4 * len(schema.shape))
    tree = Tree.of_nodes(schema.shape, parents, attributes, np.stack([lows, highs], axis=1))
    names = ["node", "rate", *count_columns(schema)]
    final = _bought(tree, _read(place / "counts.parquet", names), geometry["counts_rates"])
    if not np.array_equal(final.nodes, tree.leaves):
        raise ReleaseError("the release must have counts for every region", AGAIN)
    rates = geometry["earlier_rates"]
    rounds, *columns = _read(place / "earlier.parquet", ["round", *names])
    if not ((rounds >= 0) & (rounds < len(rates))).all():
        raise ReleaseError("the release's rounds must have rates", AGAIN)
    earlier = tuple(
        _bought(tree, [column[rounds == number] for column in columns], given) for number, given in enumerate(rates)
    )
    return tree, final.noisy, earlier


def _read(path: Path, names: Sequence[str], width: int = 0) -> list[Integers]:
    table = read_columns(path, names, width)
    return [whole_numbers(table[name]) for name in names]


def _bought(tree: Tree, columns: Sequence[Integers], rates: Sequence[str]) -> NodeCounts:
    """Put counts and rates together, refusing nodes and rates that there are not, and nodes that come twice."""
    nodes, rate, *counts = columns
    if not ((nodes >= 0) & (nodes < len(tree))).all() or len(np.unique(nodes)) < len(nodes):
        raise ReleaseError("the release's counts must be of different nodes of its tree", AGAIN)
    if not ((rate >= 0) & (rate < max(len(rates), 1))).all():
        raise ReleaseError("the release's counts must have rates", AGAIN)
    return NodeCounts(nodes, Noisy(np.stack(counts, axis=1), tuple(map(read_rate, rates)), rate))
