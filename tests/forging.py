"""What a forger does to a release on disk: change a file, and write digests that fit it again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.release.folder import FIELDS

Place = tuple[Any, ...]
"""The way to a value: names and numbers, from the outside in."""


def edit(folder: Path, **changes: object) -> None:
    """Change a manifest, and leave its digest as it is."""
    plain = json.loads((folder / "manifest.json").read_text()) | changes
    (folder / "manifest.json").write_text(json.dumps(plain))


def reseal(folder: Path, **changes: object) -> None:
    """Change a manifest, and write new digests of it and of all files."""
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
    files.pop("manifest.json")
    plain = json.loads((folder / "manifest.json").read_text()) | {"files": files} | changes
    plain.pop("digest", None)
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(plain | {"digest": digest}))


def forge_text(folder: Path, name: str, text: str) -> None:
    """Write another text to a file."""
    (folder / name).write_text(text)
    reseal(folder)


def structure_of(folder: Path) -> Any:
    return json.loads((folder / "structure.json").read_text())


def forge_structure(folder: Path, change: Callable[[Any], object]) -> None:
    """Change what structure.json says."""
    plain = structure_of(folder)
    change(plain)
    forge_text(folder, "structure.json", json.dumps(plain))


def forge_rows(folder: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change the rows of measurements.parquet; their types and how they are packed stay as they are."""
    table = change(pq.read_table(folder / "measurements.parquet"))
    columns = [pa.array(table[name].to_pylist(), pa.int64()) for name in FIELDS.names]
    pq.write_table(pa.table(columns, schema=FIELDS), folder / "measurements.parquet", compression="none")
    reseal(folder)


def forge_table(folder: Path, table: pa.Table, name: str = "measurements.parquet", **how: Any) -> None:
    """Put any table in the place of one."""
    pq.write_table(table, folder / name, **({"compression": "snappy"} | how))
    reseal(folder)


def with_value(table: pa.Table, name: str, row: int, value: object) -> pa.Table:
    """Put a value into a table."""
    values, at = table[name].to_pylist(), table.column_names.index(name)
    values[row] = value
    return table.set_column(at, table.schema.field(name), pa.array(values, table.schema.field(name).type))


def places(plain: Any, at: Place = ()) -> Iterator[Place]:
    """Give the way to every value."""
    parts = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    for key, value in parts:
        yield (*at, key)
        yield from places(value, (*at, key))


def inside(plain: Any, place: Place) -> Any:
    for key in place:
        plain = plain[key]
    return plain


def replaced(plain: Any, place: Place, value: object) -> Any:
    """Give a copy with another value in a place."""
    copy = json.loads(json.dumps(plain))
    inside(copy, place[:-1])[place[-1]] = value
    return copy
