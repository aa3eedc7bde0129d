"""The folder that a release is on disk, the same for every kind: what was measured, the structure, the schema, and a
manifest that seals them.

`records.parquet` is for everyone. `measurements.parquet` has a row for every count as it was measured, with the number
of its measurement, its place and its class; `structure.json` says which structure and which questions these numbers
refer to, with the exact rates of the noise.

Anyone may have forged such files. Reading executes nothing, believes nothing that the manifest's digests do not cover,
and takes no more memory than the files have bytes for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.arrays import Integers
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.exact import can_be_summed, read_fraction, read_json
from sfumato.geometry.contrasts import contrast_of
from sfumato.geometry.grid import Grid
from sfumato.geometry.regions import Boxes, Regions, refuse_some
from sfumato.geometry.tree import Tree
from sfumato.models import model_type
from sfumato.privacy.measurements import Draft, Measurement, Noisy, Question
from sfumato.release.manifest import AGAIN, Manifest
from sfumato.release.records import defused
from sfumato.schema.schema import Schema, fingerprint
from sfumato.storage import give_room, reason_of, refuse_special, sha256

RECORDS_FILE, MANIFEST_FILE, SCHEMA_FILE = "records.parquet", "manifest.json", "schema.json"
MEASUREMENTS_FILE, STRUCTURE_FILE = "measurements.parquet", "structure.json"
SIGNATURE_FILE = f"{MANIFEST_FILE}.sig"
"""Who made it, if that was signed; no part of what the manifest seals."""
FILES = {RECORDS_FILE, MEASUREMENTS_FILE, STRUCTURE_FILE, SCHEMA_FILE}
"""What a release is."""
EXPLAINING = ("README.md", "dictionary.csv", "croissant.json", "datapackage.json", "deployment.yaml")
"""What says in words and for machines what a release is; older ones have none of it."""
SYNTHETIC: Mapping[str, str] = {"parquet": "synthetic.parquet", "csv": "synthetic.csv"}
"""The file of synthetic people that a publisher may have added, by its kind."""
COLUMNS = ("measurement", "place", "class", "count", "rate")
FIELDS = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in COLUMNS])
BYTES_PER_CELL = 32
BYTES_PER_LEAF = 128
STRUCTURES: Mapping[str, type[Grid] | type[Tree] | type[Boxes]] = {one.kind: one for one in (Grid, Tree, Boxes)}
MOST_VALUES = 1 << 24
"""A table of a release may have so many values, however short its file is."""
VALUES_PER_BYTE = 64
"""And so many more for each byte of it: differences of neighbours that are all the same take a byte for 26 of them."""
CODECS = {"SNAPPY", "UNCOMPRESSED"}
"""What cannot make gigabytes out of kilobytes: snappy packs 64 bytes into 3 at best."""
BATCH = 1 << 16
"""So many rows are read at a time."""
LARGEST_SUM = 2**62
"""Counts that add up to more would wrap."""
UNREADABLE = (
    *(ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError),
    pa.ArrowException,
)
"""What reading something else than was expected raises."""


def space_for(cells: int, schema: Schema) -> int:
    """Bound the bytes that a release takes on disk: cells of dictionary codes, named leaves, and small change."""
    return (1 << 20) + cells * BYTES_PER_CELL + sum(schema.shape) * BYTES_PER_LEAF


def write_release(
    staging: Path,
    schema: Schema,
    draft: Draft,
    manifest: Manifest,
    records: Iterator[pa.RecordBatch],
    people: Mapping[str, pa.Table],
    explain: Callable[[Mapping[str, str]], Mapping[str, str]],
) -> Manifest:
    """Write all files into an empty folder, and the manifest that seals them.

    `people` are synthetic ones, by the name of their file. `explain` writes texts, by name, from the digests of the
    files that they explain.
    """
    give_room(staging)
    try:
        _write_records(staging / RECORDS_FILE, records)
        _write_measurements(staging / MEASUREMENTS_FILE, draft)
        _write_json(staging / SCHEMA_FILE, schema.plain())
        _write_json(staging / STRUCTURE_FILE, plain_draft(draft))
        for name, table in people.items():
            write_people(staging / name, table, Path(name).suffix)
        for name, text in explain(_digests(staging)).items():
            (staging / name).write_text(text, encoding="utf-8")
        sealed = manifest.with_files(_digests(staging))
        (staging / MANIFEST_FILE).write_text(sealed.dump(), encoding="utf-8")
    except (OSError, pa.ArrowException) as error:
        raise ReleaseError(
            f"the release must be writable ({reason_of(error)})", "Free some space or choose another place."
        ) from None
    return sealed


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path) for path in sorted(folder.iterdir())}


def write_people(place: Any, table: pa.Table, suffix: str) -> None:
    """Write synthetic people to a file or a buffer, as CSV, which no spreadsheet runs, or Parquet."""
    if suffix == ".csv":
        import pyarrow.csv as csv

        csv.write_csv(defused(table), place)
    else:
        pq.write_table(table, place, compression="snappy")


def _write_json(path: Path, plain: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(plain, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def _write_records(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    first = next(batches)
    with pq.ParquetWriter(path, first.schema, compression="snappy") as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


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


def _write_measurements(path: Path, draft: Draft) -> None:
    """Write a row for every count, measurement by measurement, place by place, class by class.

    As differences of neighbours, which noise aside are small or the same, and not compressed: so the file's length
    bounds what reading it takes.
    """
    parts = [_rows(number, one) for number, one in enumerate(draft.measurements)]
    columns = [pa.array(np.concatenate(column), pa.int64()) for column in zip(*parts, strict=True)]
    packing = dict.fromkeys(COLUMNS, "DELTA_BINARY_PACKED")
    table = pa.table(columns, schema=FIELDS)
    pq.write_table(table, path, compression="none", use_dictionary=False, column_encoding=packing)


def _rows(number: int, one: Measurement) -> tuple[Integers, ...]:
    places, classes = one.question.shape
    nodes = np.arange(places) if one.question.nodes is None else one.question.nodes
    return (
        np.full(places * classes, number),
        np.repeat(nodes, classes),
        np.tile(np.arange(classes), places),
        one.counts.ravel(),
        np.repeat(one.noisy.rate_of, classes),
    )


def read_release(folder: str | Path) -> tuple[Schema, Draft, Manifest]:
    """Read a release, checking that it is whole and as published."""
    place = Path(folder)
    try:
        manifest = Manifest.loads(read_text(place / MANIFEST_FILE))
        if not FILES <= manifest.files.keys() <= {*FILES, *EXPLAINING, *SYNTHETIC.values()}:
            raise ReleaseError("manifest.json must seal exactly the files of a release", AGAIN)
        for name, digest in manifest.files.items():
            if sha256(place / name) != digest:
                raise ReleaseError(f"{name} must be as it was published, and was changed", AGAIN)
        schema = _read_schema(place / SCHEMA_FILE, manifest)
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


def read_text(path: Path) -> str:
    """Read a file of the release as text."""
    refuse_special(path)
    return path.read_text(encoding="utf-8")


def _read_schema(path: Path, manifest: Manifest) -> Schema:
    """Read the schema, refusing another than the manifest's, and one that is written otherwise."""
    plain = read_json(read_text(path))
    schema = Schema.parse(plain)
    if not manifest.schema_digest == schema.digest == fingerprint(plain):
        raise ReleaseError("the release's schema must fit its manifest", AGAIN)
    if manifest.rows_per_person != schema.most_rows:
        raise ReleaseError("the manifest must be about the persons of the schema, and is not", AGAIN)
    return schema


def _read_draft(place: Path, schema: Schema) -> Draft:
    """Read the structure, then every measurement that it speaks of; nothing may be left over, of either file."""
    path = place / STRUCTURE_FILE
    plain = read_json(read_text(path))
    kind, questions = plain["structure"]["kind"], plain["measurements"]
    if kind not in STRUCTURES:
        raise ReleaseError(
            "the release's structure must be of a kind that this version knows", "Upgrade Sfumato to read it."
        )
    _refuse_swollen(path, len(plain["structure"].get("parent", ())) * len(schema.shape), path.stat().st_size)
    _refuse_swollen(path, len(questions) * len(schema.shape))
    structure = STRUCTURES[kind].of_plain(schema.shape, plain["structure"])
    columns = _read_counts(place / MEASUREMENTS_FILE)
    numbers = columns["measurement"]
    ends = np.searchsorted(numbers, np.arange(len(questions) + 1))
    if (numbers[1:] < numbers[:-1]).any() or ends[0] != 0 or ends[-1] != len(numbers):
        raise ReleaseError("the release's counts must be those of its measurements, in their order", AGAIN)
    measurements = tuple(
        _read_measurement(schema, structure, one, {name: column[begin:end] for name, column in columns.items()})
        for one, begin, end in zip(questions, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    )
    if not can_be_summed(rate for one in measurements for rate in one.noisy.rates):
        raise ReleaseError("the release's epsilons must be positive fractions", AGAIN)
    if len({one.label for one in measurements}) < len(measurements):
        raise ReleaseError("the release's measurements must have labels of their own", AGAIN)
    draft = Draft(structure, measurements, str(plain["model"]))
    if plain_draft(draft) != plain:
        raise ReleaseError("structure.json must say what is read from it, and nothing else", AGAIN)
    return draft


def _read_counts(path: Path) -> dict[str, Integers]:
    """Read the columns of all counts: 64-bit whole numbers without gaps."""
    table = read_table(path, FIELDS)
    columns = {name: np.concatenate([np.zeros(0, np.int64), *map(_numbers, table[name].chunks)]) for name in COLUMNS}
    if np.abs(columns["count"].astype(np.float64)).sum() >= LARGEST_SUM:
        raise ReleaseError("the release's counts must be numbers that can be added up", AGAIN)
    return columns


def _numbers(chunk: pa.Array) -> Integers:
    """See an array's own memory as numbers; pyarrow's way would import pandas first, where it is installed."""
    if chunk.null_count:
        raise ReleaseError("the release's counts must be whole numbers", AGAIN)
    return np.frombuffer(chunk.buffers()[1], np.int64)[chunk.offset : chunk.offset + len(chunk)]


def _read_measurement(
    schema: Schema, structure: Regions, plain: Mapping[str, Any], columns: Mapping[str, Integers]
) -> Measurement:
    """Put a question and its counts together, refusing places and rates that there are not, and places that come
    twice.
    """
    if type(plain["by_class"]) is not bool:
        raise ValueError("a question must be by class or not")
    classes = len(schema.classes) if plain["by_class"] else 1
    if not len(columns["count"]) or len(columns["count"]) % classes:
        raise ReleaseError("the release's counts must be those of its measurements, in their order", AGAIN)
    places, rate_of = columns["place"][::classes], columns["rate"][::classes]
    question = _question(schema, structure, plain, places, classes)
    rates = tuple(map(read_rate, plain["rates"]))
    in_order = np.array_equal(columns["place"], np.repeat(places, classes)) and np.array_equal(
        columns["class"], np.tile(np.arange(classes), len(places))
    )
    known = ((rate_of >= 0) & (rate_of < max(len(rates), 1))).all()
    if not in_order or not np.array_equal(columns["rate"], np.repeat(rate_of, classes)) or not known:
        raise ReleaseError("the release's counts must have a place, a class and a rate each", AGAIN)
    noisy = Noisy(columns["count"].reshape(-1, classes), rates, rate_of)
    return Measurement(str(plain["label"]), question, noisy)


def _question(schema: Schema, structure: Regions, plain: Mapping[str, Any], places: Integers, classes: int) -> Question:
    of = plain["of"]
    regions = structure if of == "structure" else Grid.of_plain(schema.shape, of)
    try:
        if "contrast" in plain:
            (attribute,) = regions.split_attributes
            found = Question(regions, None, classes, contrast_of(schema.shape[attribute], plain["contrast"]))
            refuse_some(places, found.places)
            return found
        return Question(regions, regions.nodes_at(places), classes)
    except ValueError:
        raise ReleaseError("the release must have a count for every place that was measured", AGAIN) from None


def _refuse_contradictions(manifest: Manifest, schema: Schema, draft: Draft) -> None:
    """Refuse files that contradict each other: the promise's attributes, noise that is missing or should not be there,
    and counts that the model cannot read.
    """
    promise = manifest.promise
    if promise is not None and (promise.quasi, promise.sensitive) != (tuple(schema.predictors), schema.target):
        raise ReleaseError("the release's promise must be about its own attributes", AGAIN)
    exact = {one.noisy.is_exact for one in draft.measurements}
    if exact != {promise is not None}:
        raise ReleaseError("the release's counts must have the noise that its manifest tells of", AGAIN)
    kind = model_type(draft.model)
    try:
        kind(schema, draft)
    except ReleaseError as error:
        raise ReleaseError(error.problem, AGAIN) from None
    if promise is not None and not promise.kept(draft.structure, draft.final.counts):
        raise ReleaseError("the release's groups must be as its manifest promises", AGAIN)


def read_table(path: Path, fields: pa.Schema) -> pa.Table:
    """Read a Parquet file of these columns, unless it would take far more memory than the file has bytes."""
    with _opened(path, fields) as file:
        _refuse_swollen(path, _rows_of(file) * len(fields), path.stat().st_size)
        return file.read()


def read_batches(path: Path, fields: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read a Parquet file of these columns, a batch at a time."""
    with _opened(path, fields) as file:
        yield from file.iter_batches(BATCH)


@contextmanager
def _opened(path: Path, fields: pa.Schema) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, refusing other columns or types, and pages that a few bytes could fill.

    Names are read as codes, so that a long one is there once.
    """
    refuse_special(path)
    with pq.ParquetFile(path, read_dictionary=fields.names) as file:
        if not file.schema_arrow.equals(fields):
            raise ReleaseError(f"{path.name} must have the columns of a release, of their types", AGAIN)
        groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
        if any(group.column(at).compression not in CODECS for group in groups for at in range(len(fields))):
            raise ReleaseError(f"{path.name} must be packed as Sfumato packs it", AGAIN)
        yield file


def _rows_of(file: pq.ParquetFile) -> int:
    """Count the rows that would be read: those of all groups, whatever the file says of their sum."""
    return sum(abs(file.metadata.row_group(at).num_rows) for at in range(file.metadata.num_row_groups))


def _refuse_swollen(path: Path, values: int, size: int = 0) -> None:
    """Refuse a file of which a few bytes stand for more values than any memory holds."""
    if values > MOST_VALUES + VALUES_PER_BYTE * size:
        raise ReleaseError(f"{path.name} must not have more values than its size can hold", AGAIN)


def read_rate(text: Any) -> Fraction:
    """Read the rate of a noise."""
    rate = read_fraction(text) if isinstance(text, str) else None
    if rate is None or rate <= 0:
        raise ReleaseError("the release's epsilons must be positive fractions", AGAIN)
    return rate
