"""A release as a folder on disk, the same for every kind: what was measured, the structure, the schema, the records for
people to read, and a manifest that seals them.

`measurements.parquet` has a row for every count as it was measured, with the number of its measurement, its place and
its class; `structure.json` says which structure and which questions these numbers refer to, with the exact rates of the
noise. `records.parquet` is for everyone.

Anyone may have forged such files. Reading executes nothing, believes nothing that the manifest's digests do not cover,
and takes no more memory than the files have bytes for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.arrays import Integers
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.exact import read_fraction
from sfumato.geometry.grid import Grid
from sfumato.geometry.regions import Boxes, Regions
from sfumato.geometry.tree import Tree
from sfumato.models import model_of
from sfumato.privacy.measurements import Draft, Measurement, Noisy, Question
from sfumato.release.manifest import AGAIN, Manifest
from sfumato.schema.schema import Schema
from sfumato.storage import give_room, reason_of, refuse_special, sha256

RECORDS_FILE, MANIFEST_FILE, SCHEMA_FILE = "records.parquet", "manifest.json", "schema.json"
MEASUREMENTS_FILE, STRUCTURE_FILE = "measurements.parquet", "structure.json"
FILES = {RECORDS_FILE, MEASUREMENTS_FILE, STRUCTURE_FILE, SCHEMA_FILE}
"""The files that a manifest seals."""
COLUMNS = ("measurement", "place", "class", "count", "rate")
"""The columns of `measurements.parquet`."""
STRUCTURES: Mapping[str, type[Grid] | type[Tree] | type[Boxes]] = {one.kind: one for one in (Grid, Tree, Boxes)}
"""The kinds of structures, by name."""

BYTES_PER_CELL = 32
"""How many bytes on disk a cell takes at most."""
BYTES_PER_LEAF = 128
"""How many bytes on disk the name of a leaf takes at most."""
MOST_VALUES = 1 << 24
"""How many values a table of a release may have, however short its file is."""
VALUES_PER_BYTE = 64
"""How many more values a table may have for each byte of its file: noise cannot be packed closer."""
CODECS = {"ZSTD", "SNAPPY", "UNCOMPRESSED"}
"""The codecs that cannot make gigabytes out of kilobytes: zstd takes four bytes at least for each 128 kB."""
UNREADABLE = (
    *(ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError),
    pa.ArrowException,
)
"""What reading raises where a file is something else than was expected."""


def write_release(
    staging: Path, schema: Schema, draft: Draft, manifest: Manifest, records: Iterator[pa.RecordBatch]
) -> Manifest:
    """Write all files into an empty folder, and the manifest that seals them."""
    give_room(staging)
    try:
        _write_records(staging / RECORDS_FILE, records)
        _write_measurements(staging / MEASUREMENTS_FILE, draft)
        _write_json(staging / SCHEMA_FILE, schema.plain())
        _write_json(staging / STRUCTURE_FILE, plain_draft(draft))
        sealed = manifest.with_files({path.name: sha256(path) for path in sorted(staging.iterdir())})
        (staging / MANIFEST_FILE).write_text(sealed.dump(), encoding="utf-8")
    except (OSError, pa.ArrowException) as error:
        raise ReleaseError(
            f"the release must be writable ({reason_of(error)})", "Free some space or choose another place."
        ) from None
    return sealed


def _write_records(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    first = next(batches)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


def _write_measurements(path: Path, draft: Draft) -> None:
    """Write a row for every count, measurement by measurement, place by place, class by class."""
    fields = pa.schema([(name, pa.int64()) for name in COLUMNS])
    with pq.ParquetWriter(path, fields, compression="zstd") as writer:
        for number, one in enumerate(draft.measurements):
            places, classes = one.question.shape
            nodes = np.arange(places) if one.question.nodes is None else one.question.nodes
            columns = (
                np.full(places * classes, number),
                np.repeat(nodes, classes),
                np.tile(np.arange(classes), places),
                one.counts.ravel(),
                np.repeat(one.noisy.rate_of, classes),
            )
            writer.write_table(pa.table([pa.array(column, pa.int64()) for column in columns], schema=fields))


def plain_draft(draft: Draft) -> dict[str, Any]:
    """Write in plain values what is not a count: the model, the structure, and every question with its rates."""
    return {
        "model": draft.model,
        "structure": {"kind": draft.structure.kind} | draft.structure.plain(),
        "measurements": [
            {"label": one.label} | one.question.plain(draft.structure) | {"rates": list(map(str, one.noisy.rates))}
            for one in draft.measurements
        ],
    }


def _write_json(path: Path, plain: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(plain, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def space_for(cells: int, schema: Schema) -> int:
    """Bound the bytes that a release takes on disk: cells of dictionary codes, named leaves, and a megabyte."""
    return (1 << 20) + cells * BYTES_PER_CELL + sum(schema.shape) * BYTES_PER_LEAF


def read_release(folder: str | Path) -> tuple[Schema, Draft, Manifest]:
    """Read a release, checking that it is whole and as published."""
    place = Path(folder)
    try:
        manifest = Manifest.loads(read_text(place / MANIFEST_FILE))
        if manifest.files.keys() != FILES:
            raise ReleaseError("manifest.json must seal exactly the files of a release", AGAIN)
        for name, digest in manifest.files.items():
            if sha256(place / name) != digest:
                raise ReleaseError(f"{name} must be as it was published, and was changed", AGAIN)
        schema = Schema.parse(json.loads(read_text(place / SCHEMA_FILE)))
        draft = _read_draft(place, schema)
        _refuse_contradictions(manifest, schema, draft)
    except SfumatoError:
        raise
    except (OSError, UnicodeDecodeError):
        problem = f"{place} must be a release folder, with manifest.json and its files"
        raise ReleaseError(problem, "Name the folder that publish wrote.") from None
    except UNREADABLE:
        raise ReleaseError(f"{place} must be a Sfumato release, and its files do not fit together", AGAIN) from None
    return schema, draft, manifest


def _read_draft(place: Path, schema: Schema) -> Draft:
    """Read the structure, then every measurement that it speaks of; none may be left over."""
    plain = json.loads(read_text(place / STRUCTURE_FILE))
    kind = plain["structure"]["kind"]
    if kind not in STRUCTURES:
        raise ReleaseError(
            "the release's structure must be of a kind that this version knows", "Upgrade Sfumato to read it."
        )
    _refuse_swollen(place / STRUCTURE_FILE, len(plain["structure"].get("parent", ())) * len(schema.shape))
    structure = STRUCTURES[kind].of_plain(schema.shape, plain["structure"])
    table = read_columns(place / MEASUREMENTS_FILE, COLUMNS)
    columns = {name: whole_numbers(table[name]) for name in COLUMNS}
    questions = plain["measurements"]
    ends = np.searchsorted(columns["measurement"], np.arange(len(questions) + 1))
    if (np.diff(columns["measurement"]) < 0).any() or ends[0] != 0 or ends[-1] != len(columns["measurement"]):
        raise ReleaseError("the release's counts must be those of its measurements, in their order", AGAIN)
    measurements = tuple(
        _read_measurement(schema, structure, one, {name: column[begin:end] for name, column in columns.items()})
        for one, begin, end in zip(questions, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    )
    return Draft(structure, measurements, str(plain["model"]))


def _read_measurement(
    schema: Schema, structure: Regions, plain: Mapping[str, Any], columns: Mapping[str, Integers]
) -> Measurement:
    """Put a question and its counts together; refuse places and rates that there are not, and repeated places."""
    classes = len(schema.classes) if plain["by_class"] is True else 1
    if len(columns["count"]) % classes:
        raise ReleaseError("the release's counts must be those of its measurements, in their order", AGAIN)
    places, rate_of = columns["place"][::classes], columns["rate"][::classes]
    question = _question(schema, structure, plain["of"], places, classes)
    rates = tuple(map(read_rate, plain["rates"]))
    in_order = np.array_equal(columns["place"], np.repeat(places, classes)) and np.array_equal(
        columns["class"], np.tile(np.arange(classes), len(places))
    )
    known = ((rate_of >= 0) & (rate_of < max(len(rates), 1))).all()
    if not in_order or not np.array_equal(columns["rate"], np.repeat(rate_of, classes)) or not known:
        raise ReleaseError("the release's counts must have a place, a class and a rate each", AGAIN)
    noisy = Noisy(columns["count"].reshape(-1, classes), rates, rate_of)
    return Measurement(str(plain["label"]), question, noisy)


def _question(schema: Schema, structure: Regions, of: Any, places: Integers, classes: int) -> Question:
    regions = structure if of == "structure" else Grid.of_plain(schema.shape, of)
    try:
        return Question(regions, regions.nodes_at(places), classes)
    except ValueError:
        raise ReleaseError(
            "the release's counts must be of all regions, or of different nodes of a tree", AGAIN
        ) from None


def _refuse_contradictions(manifest: Manifest, schema: Schema, draft: Draft) -> None:
    """Refuse files that contradict each other.

    The schema must have its digest, the promise its attributes, and the counts their noise or none; the model must be
    able to read them, and the groups must keep the promise.
    """
    promise = manifest.promise
    if manifest.schema_digest != schema.digest:
        raise ReleaseError("the release's schema must fit its manifest", AGAIN)
    if promise is not None and (promise.quasi, promise.sensitive) != (tuple(schema.predictors), schema.target):
        raise ReleaseError("the release's promise must be about its own attributes", AGAIN)
    exact = [one.noisy.is_exact for one in draft.measurements if one.question.places]
    if not exact or any(one == (promise is None) for one in exact):
        raise ReleaseError("the release's counts must have the noise that its manifest tells of", AGAIN)
    model_of(schema, draft)
    if promise is not None and not promise.kept(draft.structure, draft.final.counts):
        raise ReleaseError("the release's groups must be as its manifest promises", AGAIN)


def read_text(path: Path) -> str:
    """Read a file of the release as text."""
    refuse_special(path)
    return path.read_text(encoding="utf-8")


def read_columns(path: Path, names: Sequence[str]) -> pa.Table:
    """Read columns of a Parquet file, unless it would take far more memory than the file has bytes."""
    with pq.ParquetFile(path, read_dictionary=list(names)) as file:
        facts = file.metadata
        groups = [facts.row_group(at) for at in range(facts.num_row_groups)]
        _refuse_swollen(path, facts.num_rows * len(names))
        if any(group.column(at).compression not in CODECS for group in groups for at in range(facts.num_columns)):
            raise ReleaseError(f"{path.name} must be packed as Sfumato packs it", AGAIN)
        return file.read(columns=list(names))


def _refuse_swollen(path: Path, values: int) -> None:
    """Refuse a file of which a few bytes stand for more values than any memory holds."""
    if values > MOST_VALUES + VALUES_PER_BYTE * path.stat().st_size:
        raise ReleaseError(f"{path.name} must not have more values than its size can hold", AGAIN)


def whole_numbers(column: pa.ChunkedArray) -> Integers:
    """Read a column of 64-bit whole numbers without gaps."""
    if not pa.types.is_int64(column.type) or column.null_count:
        raise ReleaseError("the release's counts must be whole numbers", AGAIN)
    return np.concatenate([np.zeros(0, np.int64), *map(_numbers, column.chunks)])


def _numbers(chunk: pa.Array) -> Integers:
    """View an array's own memory as numbers; pyarrow's way would import pandas first, where it is installed."""
    return np.frombuffer(chunk.buffers()[1], np.int64)[chunk.offset : chunk.offset + len(chunk)]


def read_rate(text: Any) -> Fraction:
    """Read the rate of noise: a positive fraction."""
    rate = read_fraction(text)
    if rate is None or rate <= 0:
        raise ReleaseError("the release's epsilons must be positive fractions", AGAIN)
    return rate
