"""What the folder of a release with overlapping groups holds besides: the ranges of every group, and who is in it.

`boxes.parquet` has a row for each group, `counts.parquet` one for each sensitive value that occurs in it: everyone can
check the promise from these and the statistics in the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.boxes import Boxes
from sfumato.errors import ReleaseError
from sfumato.privacy.noisy import NodeCounts, Noisy
from sfumato.release.manifest import AGAIN
from sfumato.release.reading import read_columns, whole_numbers
from sfumato.schema import Schema

Integers = NDArray[np.int64]

RANGES_FILE, COUNTS_FILE = "boxes.parquet", "counts.parquet"


def write_boxes(staging: Path, boxes: Boxes, counts: Noisy) -> None:
    """Write ranges, and the counts that are not 0."""
    ends = {f"{side} {at}": boxes.ranges[:, at, end] for at, end, side in _ends(len(boxes.shape))}
    groups, classes = np.nonzero(counts.counts)
    _write(staging / RANGES_FILE, ends)
    _write(staging / COUNTS_FILE, {"group": groups, "class": classes, "count": counts.counts[groups, classes]})


def _ends(attributes: int) -> list[tuple[int, int, str]]:
    return [(at, end, side) for at in range(attributes) for end, side in enumerate(("low", "high"))]


def _write(path: Path, columns: Mapping[str, Integers]) -> None:
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
