"""Tables and numbers from files that anyone may have forged: whole numbers and positive fractions, or a refusal.

Apart, because every part of a release's folder is read with the same suspicion: also that a few bytes may stand for
more rows than any memory holds.

The file of a release's margins: the noisy count of every part of every measured level, for everyone to read.

The rates of the levels' noise are in `geometry.json`, as for all counts.

What the folder of a release over a tree holds besides: the nodes, and all counts exactly as they were measured.

Its records show estimates, from which the measurements cannot be read back; so `counts.parquet` keeps those of the
regions and `earlier.parquet` those bought on the way, each with the number of its rate in `geometry.json`.

What the folder of a release of groups holds besides, if they were made from a histogram of all single cells.

Its records show means of two counts, from which these cannot be read back; so `counts.parquet` keeps those of the
groups and `histogram.parquet` those of the cells, both as they were measured, in the order of regions and of codes.

What the folder of a release with overlapping groups holds besides: the ranges of every group, and who is in it.

`boxes.parquet` has a row for each group, `counts.parquet` one for each sensitive value that occurs in it: everyone can
check the promise from these and the statistics in the manifest.

The folder that a release is on disk: Parquet for counts, JSON for the rest, a manifest that seals them.

`records.parquet` is for everyone; the rest is what Sfumato needs to answer queries again, the same for every partition
but for what `tree_files` adds.
Reading executes nothing and believes nothing that the manifest's digests do not cover.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.exact import read_fraction, read_whole
from sfumato.geometry.boxes import Boxes, Regions
from sfumato.geometry.grid import Grid
from sfumato.geometry.halving import borders, height
from sfumato.geometry.tree import Tree
from sfumato.models.consistency import Consistency
from sfumato.privacy.measurements import Groups, Margin, NodeCounts, Noisy
from sfumato.release.manifest import AGAIN, Manifest
from sfumato.release.records import count_names
from sfumato.schema.attributes import Categorical, Numeric
from sfumato.schema.schema import Schema
from sfumato.storage import give_room, reason_of, refuse_special, sha256

MOST_VALUES = 1 << 24
"""A table of a release may have so many values, however short its file is."""
VALUES_PER_BYTE = 64
"""And so many more for each byte of it: noise cannot be packed closer."""
CODECS = {"ZSTD", "SNAPPY", "UNCOMPRESSED"}
"""What cannot make gigabytes out of kilobytes: zstd takes four bytes at least for each 128 kB."""


def read_columns(path: Path, names: Sequence[str], width: int = 0) -> pa.Table:
    """Read columns of a Parquet file, unless it would take far more memory than the file has bytes.

    `width` is how many values each row will take in memory, where that is more than the columns that are read.
    """
    with pq.ParquetFile(path, read_dictionary=list(names)) as file:
        facts = file.metadata
        values = facts.num_rows * max(len(names), width)
        groups = [facts.row_group(at) for at in range(facts.num_row_groups)]
        if values > MOST_VALUES + VALUES_PER_BYTE * path.stat().st_size:
            raise ReleaseError(f"{path.name} must not have more values than its size can hold", AGAIN)
        if any(group.column(at).compression not in CODECS for group in groups for at in range(facts.num_columns)):
            raise ReleaseError(f"{path.name} must be packed as Sfumato packs it", AGAIN)
        return file.read(columns=list(names))


def equal_to(column: pa.ChunkedArray, name: str) -> NDArray[np.bool_]:
    """Tell which values of a column are a name; however long the others are, each is compared once."""
    if not pa.types.is_dictionary(column.type) or column.null_count:
        raise ReleaseError("the release's margins must have the names of attributes", AGAIN)
    found = [np.zeros(0, np.bool_)]
    for chunk in column.chunks:
        same = np.array([one.as_py() == name for one in chunk.dictionary], np.bool_)
        found.append(same[chunk.indices.to_numpy()])
    return np.concatenate(found)


def whole_numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Read a column of 64-bit whole numbers without gaps."""
    if not pa.types.is_int64(column.type) or column.null_count:
        raise ReleaseError("the release's counts must be whole numbers", AGAIN)
    return np.asarray(column.to_numpy())


def read_rate(text: Any) -> Fraction:
    """Read the rate of a noise."""
    rate = read_fraction(text)
    if rate is None or rate <= 0:
        raise ReleaseError("the release's epsilons must be positive fractions", AGAIN)
    return rate


FILE = "margins.parquet"
RATES = "margins_epsilon"
FIELDS = pa.schema(
    [
        ("attribute", pa.string()),
        ("level", pa.int64()),
        ("first_leaf", pa.int64()),
        ("value", pa.string()),
        ("noisy_count", pa.int64()),
    ]
)


def write_margins(staging: Path, schema: Schema, margins: Mapping[int, Margin]) -> None:
    """Write all counts, attribute by attribute and level by level, the coarsest first."""
    tables = [
        _table(*list(schema.predictors.items())[attribute], margin.leaves, groups)
        for attribute, margin in margins.items()
        for groups in margin.levels
    ]
    pq.write_table(pa.concat_tables([FIELDS.empty_table(), *tables]), staging / FILE, compression="zstd")


def _table(name: str, column: Categorical | Numeric, leaves: int, groups: Groups) -> pa.Table:
    ends = borders(leaves, groups.depth).tolist()
    return pa.table(
        [
            pa.array([name] * len(groups.counts)),
            pa.array([groups.depth] * len(groups.counts)),
            pa.array(ends[:-1]),
            pa.array([_value(column, lo, hi) for lo, hi in pairwise(ends)]),
            pa.array(groups.counts),
        ],
        schema=FIELDS,
    )


def _value(column: Categorical | Numeric, lo: int, hi: int) -> str:
    """Name a part; one of many categories by its first and last."""
    if isinstance(column, Numeric) or hi - lo == 1:
        return column.label(lo, hi)
    return f"{column.label(lo, lo + 1)} to {column.label(hi - 1, hi)}"


def margin_rates(schema: Schema, margins: Mapping[int, Margin]) -> dict[str, Any]:
    """Give the rates of each margin's levels, with their depths."""
    names = list(schema.predictors)
    return {
        RATES: {
            names[attribute]: [[groups.depth, str(groups.rate)] for groups in margin.levels]
            for attribute, margin in margins.items()
        }
    }


def read_margins(place: Path, schema: Schema, geometry: Mapping[str, Any]) -> dict[int, Margin]:
    """Read margins that fit the schema: every part of every level that has a rate is counted, and nothing else is."""
    names = ["attribute", "level", "first_leaf", "noisy_count"]
    table = read_columns(place / FILE, names)
    owners = table["attribute"]
    levels, firsts, counts = (whole_numbers(table[name]) for name in names[1:])
    margins, rows = {}, 0
    for attribute, name in enumerate(schema.predictors):
        if name in geometry[RATES]:
            own = equal_to(owners, name)
            given = geometry[RATES][name]
            margins[attribute] = _margin(schema.shape[attribute], given, levels[own], firsts[own], counts[own])
            rows += int(own.sum())
    if rows < len(owners):
        raise ReleaseError("the release's margins must be of attributes that have epsilons", AGAIN)
    return margins


def _margin(leaves: int, rates: Any, levels: Integers, firsts: Integers, counts: Integers) -> Margin:
    depths = [_depth(depth, leaves) for depth, _ in rates]
    starts = [borders(leaves, depth)[:-1] for depth in depths]
    if not (
        np.array_equal(levels, np.repeat(depths, [len(one) for one in starts]))
        and np.array_equal(firsts, np.concatenate(starts))
    ):
        raise ReleaseError("the release's margins must have a count for every part of every level", AGAIN)
    pieces = np.split(counts, np.cumsum([len(one) for one in starts])[:-1])
    groups = [
        Groups(depth, piece, read_rate(rate)) for depth, piece, (_, rate) in zip(depths, pieces, rates, strict=True)
    ]
    return Margin(leaves, tuple(groups))


def _depth(depth: Any, leaves: int) -> int:
    whole = read_whole(depth)
    if whole is None or not 0 <= whole <= height(leaves):
        raise ReleaseError("the levels of the release's margins must be those of its attributes", AGAIN)
    return whole


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
    _write_columns(staging / "nodes.parquet", nodes)
    _write_columns(staging / "counts.parquet", _columns(schema, NodeCounts(tree.leaves, counts)))
    _write_columns(staging / "earlier.parquet", {"round": rounds} | together)


def _write_columns(path: Path, columns: Mapping[str, NDArray[np.integer]]) -> None:
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
    parents, attributes, lows, highs = _read_columns_of(place / "nodes.parquet", facts, 4 * len(schema.shape))
    tree = Tree.of_nodes(schema.shape, parents, attributes, np.stack([lows, highs], axis=1))
    names = ["node", "rate", *count_columns(schema)]
    final = _bought(tree, _read_columns_of(place / "counts.parquet", names), geometry["counts_rates"])
    if not np.array_equal(final.nodes, tree.leaves):
        raise ReleaseError("the release must have counts for every region", AGAIN)
    rates = geometry["earlier_rates"]
    rounds, *columns = _read_columns_of(place / "earlier.parquet", ["round", *names])
    if not ((rounds >= 0) & (rounds < len(rates))).all():
        raise ReleaseError("the release's rounds must have rates", AGAIN)
    earlier = tuple(
        _bought(tree, [column[rounds == number] for column in columns], given) for number, given in enumerate(rates)
    )
    return tree, final.noisy, earlier


def _read_columns_of(path: Path, names: Sequence[str], width: int = 0) -> list[Integers]:
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


RATE = "histogram_epsilon"
HISTOGRAM_FILES = {"counts.parquet", "histogram.parquet"}


def write_histogram(staging: Path, schema: Schema, counts: Noisy, histogram: Noisy) -> dict[str, Any]:
    """Write both counts; give the rate of the histogram's noise for `geometry.json`."""
    _write_counts(staging / "counts.parquet", schema, counts)
    _write_counts(staging / "histogram.parquet", schema, histogram)
    (rate,) = histogram.rates
    return {RATE: str(rate)}


def _write_counts(path: Path, schema: Schema, noisy: Noisy) -> None:
    columns = dict(zip(count_columns(schema), noisy.counts.T, strict=True))
    pq.write_table(pa.table({name: pa.array(one) for name, one in columns.items()}), path, compression="zstd")


def read_histogram(place: Path, schema: Schema, geometry: Mapping[str, Any]) -> Noisy:
    """Read the histogram; whether it fits the domain is seen where it is used."""
    return Noisy.even(read_counts(place / "histogram.parquet", schema), read_rate(geometry[RATE]))


def read_counts(path: Path, schema: Schema) -> NDArray[np.int64]:
    """Read counts by class."""
    names = count_columns(schema)
    table = read_columns(path, names)
    return np.stack([whole_numbers(table[name]) for name in names], axis=1)


RANGES_FILE, COUNTS_FILE = "boxes.parquet", "counts.parquet"


def write_boxes(staging: Path, boxes: Boxes, counts: Noisy) -> None:
    """Write ranges, and the counts that are not 0."""
    ends = {f"{side} {at}": boxes.ranges[:, at, end] for at, end, side in _ends(len(boxes.shape))}
    groups, classes = np.nonzero(counts.counts)
    _write_box_columns(staging / RANGES_FILE, ends)
    _write_box_columns(
        staging / COUNTS_FILE, {"group": groups, "class": classes, "count": counts.counts[groups, classes]}
    )


def _ends(attributes: int) -> list[tuple[int, int, str]]:
    return [(at, end, side) for at in range(attributes) for end, side in enumerate(("low", "high"))]


def _write_box_columns(path: Path, columns: Mapping[str, Integers]) -> None:
    table = pa.table({name: pa.array(one, pa.int64()) for name, one in columns.items()})
    pq.write_table(table, path, compression="zstd")


def read_boxes(place: Path, schema: Schema, _: Mapping[str, Any]) -> tuple[Boxes, Noisy, tuple[NodeCounts, ...]]:
    """Read groups inside the schema's domain, each with someone in it."""
    sides = [f"{side} {at}" for at, _end, side in _ends(len(schema.shape))]
    ranges = read_columns(place / RANGES_FILE, sides, 4 * len(sides) + len(schema.classes))
    listed = read_columns(place / COUNTS_FILE, ["group", "class", "count"])
    ends = [whole_numbers(ranges[name]) for name in sides]
    boxes = Boxes(schema.shape, np.stack(ends, axis=1).reshape(-1, len(schema.shape), 2))
    groups, classes, counts = (whole_numbers(listed[name]) for name in ("group", "class", "count"))
    cells = groups * len(schema.classes) + classes
    inside = ((groups >= 0) & (groups < boxes.regions) & (classes >= 0) & (classes < len(schema.classes))).all()
    if not inside or len(np.unique(cells)) < len(cells) or not (counts > 0).all():
        raise ReleaseError("the release's counts must be of different cells of its groups, and positive", AGAIN)
    table = np.zeros((boxes.regions, len(schema.classes)), np.int64)
    table[groups, classes] = counts
    if not boxes.regions or not table.any(axis=1).all():
        raise ReleaseError("the release must have groups, and someone in each of them", AGAIN)
    return boxes, Noisy.exact(table), ()


RECORDS_FILE, MANIFEST_FILE = "records.parquet", "manifest.json"
GRID_FILES = {RECORDS_FILE, FILE, "schema.json", "geometry.json"}
FILES = {
    "grid": GRID_FILES,
    "groups": GRID_FILES | HISTOGRAM_FILES,
    "tree": GRID_FILES | {"nodes.parquet", "counts.parquet", "earlier.parquet"},
    "boxes": GRID_FILES | {RANGES_FILE, COUNTS_FILE},
}
BYTES_PER_CELL = 24
BYTES_PER_LEAF = 128

Contents = tuple[
    Schema, Regions, Noisy, Mapping[int, Margin], Manifest, tuple[NodeCounts, ...], Consistency, Noisy | None
]


def space_for(cells: int, schema: Schema) -> int:
    """Bound the bytes that a release takes on disk: cells of dictionary codes, named leaves, and small change."""
    return (1 << 20) + cells * BYTES_PER_CELL + sum(schema.shape) * BYTES_PER_LEAF


def write_release(staging: Path, contents: Contents, records: Iterator[pa.RecordBatch]) -> Manifest:
    """Write all files into an empty folder; give the manifest that seals them."""
    schema, partition, counts, margins, manifest, earlier, consistency, histogram = contents
    give_room(staging)
    try:
        _write_records(staging / RECORDS_FILE, records)
        write_margins(staging, schema, margins)
        _write_json(staging / "schema.json", schema.plain())
        if isinstance(partition, Tree):
            write_tree(staging, schema, partition, counts, earlier)
            geometry = tree_geometry(counts, earlier, consistency)
        elif isinstance(partition, Boxes):
            write_boxes(staging, partition, counts)
            geometry = {"partition": {"kind": "boxes"}}
        elif histogram is None:
            geometry = _grid_geometry("grid", schema, partition, counts)
        else:
            geometry = _grid_geometry("groups", schema, partition, counts)
            geometry |= write_histogram(staging, schema, counts, histogram)
        _write_json(staging / "geometry.json", geometry | margin_rates(schema, margins))
        sealed = manifest.with_files({path.name: sha256(path) for path in sorted(staging.iterdir())})
        (staging / MANIFEST_FILE).write_text(sealed.dump(), encoding="utf-8")
    except (OSError, pa.ArrowException) as error:
        raise ReleaseError(
            f"the release must be writable ({reason_of(error)})", "Free some space or choose another place."
        ) from None
    return sealed


def _write_json(path: Path, plain: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(plain, indent=1, ensure_ascii=False), encoding="utf-8")


def _grid_geometry(kind: str, schema: Schema, grid: Grid, counts: Noisy) -> dict[str, Any]:
    (rate,) = counts.rates
    orders = {name: order for name, order in zip(schema.predictors, grid.orders, strict=False) if order is not None}
    partition = {"kind": kind, "cuts": dict(zip(schema.predictors, grid.cuts, strict=True))}
    return {"partition": partition | ({"orders": orders} if orders else {}), "counts_epsilon": str(rate)}


def _write_records(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    first = next(batches)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


def read_release(folder: str | Path) -> Contents:
    """Read a release, checking that it is whole and as published."""
    place = Path(folder)
    try:
        manifest = Manifest.loads(read_text(place / MANIFEST_FILE))
        if manifest.files.keys() not in FILES.values():
            raise ReleaseError("manifest.json must seal exactly the files of a release", AGAIN)
        for name, digest in manifest.files.items():
            if sha256(place / name) != digest:
                raise ReleaseError(f"{name} must be as it was published, and was changed", AGAIN)
        return _read(place, manifest)
    except SfumatoError:
        raise
    except (OSError, UnicodeDecodeError):
        problem = f"{place} must be a release folder, with manifest.json and its files"
        raise ReleaseError(problem, "Name the folder that publish wrote.") from None
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        pa.ArrowException,
        ArithmeticError,
        RecursionError,
    ):
        raise ReleaseError(f"{place} must be a Sfumato release, and its files do not fit together", AGAIN) from None


def read_text(path: Path) -> str:
    """Read a file of the release as text."""
    refuse_special(path)
    return path.read_text(encoding="utf-8")


def _read(place: Path, manifest: Manifest) -> Contents:
    schema = Schema.parse(json.loads(read_text(place / "schema.json")))
    geometry = json.loads(read_text(place / "geometry.json"))
    kind = geometry["partition"]["kind"]
    if kind not in FILES:
        raise ReleaseError(
            "the release's regions must be of a kind that this version knows", "Upgrade Sfumato to read it."
        )
    if manifest.files.keys() != FILES[kind]:
        raise ReleaseError(f"manifest.json must seal exactly the files of a {kind}", AGAIN)
    partition, counts, earlier = READERS[kind](place, schema, geometry)
    if partition.shape != schema.shape or manifest.schema_digest != schema.digest:
        raise ReleaseError("the release's schema must fit its manifest", AGAIN)
    _refuse_other_promise(manifest, schema)
    _refuse_other_noise(manifest, partition, counts, earlier)
    margins = read_margins(place, schema, geometry)
    histogram = read_histogram(place, schema, geometry) if kind == "groups" else None
    _refuse_other_histogram(schema, histogram)
    return schema, partition, counts, margins, manifest, earlier, read_consistency(geometry), histogram


def _refuse_other_histogram(schema: Schema, histogram: Noisy | None) -> None:
    if histogram is not None and len(histogram.counts) != math.prod(schema.shape):
        raise ReleaseError("the release's histogram must have a count for every cell", AGAIN)


def _refuse_other_promise(manifest: Manifest, schema: Schema) -> None:
    """Refuse a promise that speaks of attributes which the release has not, or is silent about some that it has."""
    promise = manifest.promise
    if promise is not None and (promise.quasi, promise.sensitive) != (tuple(schema.predictors), schema.target):
        raise ReleaseError("the release's promise must be about its own attributes", AGAIN)


def _refuse_other_noise(manifest: Manifest, partition: Regions, counts: Noisy, earlier: Sequence[NodeCounts]) -> None:
    """Refuse exact counts under an epsilon, noisy ones under another promise, and counts that break that promise."""
    if counts.is_exact == (manifest.promise is None) or any(one.noisy.is_exact and len(one.nodes) for one in earlier):
        raise ReleaseError("the release's counts must have the noise that its manifest tells of", AGAIN)
    if manifest.promise is not None and not manifest.promise.kept(partition, counts.counts):
        raise ReleaseError("the release's groups must be as its manifest promises", AGAIN)


def _read_grid(place: Path, schema: Schema, geometry: Mapping[str, Any]) -> tuple[Grid, Noisy, tuple[NodeCounts, ...]]:
    """Read a grid whose records show its counts as they were measured."""
    column = count_names(schema)[0]
    noisy = whole_numbers(read_columns(place / RECORDS_FILE, [column])[column])
    return _counted(schema, geometry, noisy)


def _read_groups(
    place: Path, schema: Schema, geometry: Mapping[str, Any]
) -> tuple[Grid, Noisy, tuple[NodeCounts, ...]]:
    """Read a grid whose counts have a file of their own."""
    return _counted(schema, geometry, read_counts(place / "counts.parquet", schema))


def _counted(
    schema: Schema, geometry: Mapping[str, Any], counts: NDArray[np.int64]
) -> tuple[Grid, Noisy, tuple[NodeCounts, ...]]:
    given = geometry["partition"]
    orders = dict(given.get("orders", {}))
    grid = Grid(
        tuple(tuple(map(int, given["cuts"][name])) for name in schema.predictors),
        tuple(tuple(map(int, orders[name])) if name in orders else None for name in schema.predictors),
    )
    shaped = counts.reshape(grid.regions, len(schema.classes))
    return grid, Noisy.even(shaped, read_rate(geometry["counts_epsilon"])), ()


READERS: Mapping[str, Callable[[Path, Schema, Mapping[str, Any]], tuple[Regions, Noisy, tuple[NodeCounts, ...]]]] = {
    "grid": _read_grid,
    "groups": _read_groups,
    "tree": read_tree,
    "boxes": read_boxes,
}
"""How regions of each kind, their counts and earlier counts are read."""
