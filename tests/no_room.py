"""Publications that run where there is too little room on the disk: what they say, and what they leave."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb

from sfumato.privacy.ledger import Ledger, Publication

PROGRAM = "from sfumato.cli import main; main()"
NO_ROOM = (
    "error: the coded rows must fit in memory, or in the folder for what is beyond it. Allow more, or free the disk.\n"
)


def people(folder: Path, rows: int, attributes: int) -> Path:
    """Write a table of numbers below a thousand, two bytes each when coded; all rows are different."""
    columns = ", ".join(f"(range // {1000 ** (place % 3)} * 7919) % 1000 AS a{place}" for place in range(attributes))
    path = folder / "people.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns} FROM range({rows})) TO '{path}' (COMPRESSION zstd)")
    declared = "".join(f"  a{place}: {{kind: numeric, lower: 0, upper: 999}}\n" for place in range(attributes))
    path.with_suffix(".schema.yaml").write_text(f"name: people\nconfirmed: true\nbudget: 4\nattributes:\n{declared}")
    return path


def published(table: Path, *options: str, largest_file: int | None = None) -> subprocess.CompletedProcess[str]:
    """Publish in a process of its own, which can write no file beyond a size."""

    def limit() -> None:
        if largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

    command = ["publish", table.name, "--method", "diffmulti", "--specializations", "20", "--epsilon", "1"]
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *command, "--out", "out", *options],
        cwd=table.parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def spent(table: Path) -> list[Publication]:
    """List the publications from a table that the ledger knows; nothing, if there is none."""
    path = table.with_suffix(".ledger")
    return list(Ledger.open(path).statement().publications) if path.exists() else []


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path | None]:
    """Mount a file system of a size; nothing, if that is not allowed here."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    try:
        yield None if mounted.returncode else folder
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", str(folder)], check=True)
