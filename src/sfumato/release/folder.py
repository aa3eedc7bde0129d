"""The folder that a release is on disk: Parquet for counts, JSON for the rest, a manifest that seals them.

`records.parquet` is for everyone; the rest is what Sfumato needs to answer queries again, the same for every partition
but for what `tree_files` adds.
Reading executes nothing and believes nothing that the manifest's digests do not cover.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.boxes import Boxes, Regions
from sfumato.consistency import Consistency
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.partition import Grid
from sfumato.privacy.noisy import Margin, NodeCounts, Noisy
from sfumato.release.box_files import COUNTS_FILE, RANGES_FILE, read_boxes, write_boxes
from sfumato.release.histogram_files import FILES as HISTOGRAM_FILES
from sfumato.release.histogram_files import read_counts, read_histogram, write_histogram
from sfumato.release.manifest import AGAIN, Manifest
from sfumato.release.margin_files import FILE as MARGINS_FILE
from sfumato.release.margin_files import margin_rates, read_margins, write_margins
from sfumato.release.reading import read_columns, read_rate, whole_numbers
from sfumato.release.records import count_names
from sfumato.release.tree_files import read_consistency, read_tree, tree_geometry, write_tree
from sfumato.schema import Schema
from sfumato.storage import give_room, reason_of, refuse_special, sha256
from sfumato.tree import Tree

RECORDS_FILE, MANIFEST_FILE = "records.parquet", "manifest.json"
GRID_FILES = {RECORDS_FILE, MARGINS_FILE, "schema.json", "geometry.json"}
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
