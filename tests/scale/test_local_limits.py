"""One machine at its limits: less memory than rows, no room on the disk, a process that is killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from sfumato.engines.counting import least_memory
from sfumato.engines.local import BLOCKS, NODES, local_engine
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.tally import CountEngine, Tally
from sfumato.schema.schema import Schema
from sfumato.storage import private_folder
from sfumato.tables import streams

ROWS = 8_000_000
WIDE = {f"a{place}": {"kind": "numeric", "lower": 0, "upper": 999} for place in range(6)}
SCHEMA = Schema.parse({"attributes": WIDE})
LIMIT = 64_000_000
"""Less than the 17 bytes that each of the rows has."""

SCRIPT = """
import resource, sys
from pathlib import Path
sys.path[:0] = {path!r}
from test_local_limits import LIMIT, SCHEMA, opened
from sfumato.privacy.tally import Tally
from sfumato.errors import SfumatoError
from sfumato.geometry.tree import Tree
if {file_size}:
    resource.setrlimit(resource.RLIMIT_FSIZE, ({file_size}, {file_size}))
try:
    with opened(LIMIT, Path({folder!r})) as engine:
        print("ready", flush=True)
        tree = Tree.whole(SCHEMA.shape).refine([0], [0], [0, 100, 500, 1000], [0, 4])
        engine.tally(Tally(tree, 1, tuple(range(6))))
except SfumatoError as error:
    print(type(error).__name__, error, flush=True)
"""


@contextmanager
def opened(memory: int, folder: Path, rows: int = ROWS) -> Iterator[CountEngine]:
    """Count such rows with so much memory; what is more goes to a private folder."""
    inner = {name: streams.quoted(name) for name in WIDE}
    table = streams.table("numbers", source(rows), inner)
    with private_folder(folder) as home, local_engine(table, SCHEMA, memory=memory, home=home) as engine:
        yield engine


def source(rows: int) -> str:
    """Give rows that are all different and can be counted by hand: digits of their number, mixed."""
    mixed = "(row * {odd} + row // 1000 * {place} + row // 1000000 * {square}) % 1000 AS a{place}"
    columns = ", ".join(mixed.format(odd=2 * place + 1, place=place, square=place**2) for place in range(6))
    return f"(SELECT {columns} FROM range({rows}) AS numbers(row))"


def started(folder: Path, file_size: int = 0) -> subprocess.Popen[str]:
    code = SCRIPT.format(path=sys.path, folder=str(folder), file_size=file_size)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_rows_beyond_memory_are_counted_from_disk(tmp_path: Path) -> None:
    with opened(LIMIT, tmp_path) as engine:
        (blocks,) = tmp_path.rglob(BLOCKS)
        assert blocks.stat().st_size >= ROWS * 13, "rows are on disk"
        counts = engine.tally(Tally(Grid.whole(SCHEMA.shape), 1, (0, 1)))
        tree = Tree.whole(SCHEMA.shape).refine([0], [0], [0, 100, 500, 1000], [0, 4])
        tree = tree.refine([2], [1], [0, 300, 1000], [0, 3])
        by_node = engine.tally(Tally(tree, 1, (0,)))
    assert counts.by_place.tolist() == [[ROWS]]
    assert (counts.by_leaf[0].counts == ROWS // 1000).all()
    row = np.arange(ROWS)
    first, second = row % 1000, (row * 3 + row // 1000 + row // 1000000) % 1000
    middle = (first >= 100) & (first < 500)
    expected = [
        (first < 100).sum(),
        (first >= 500).sum(),
        (middle & (second < 300)).sum(),
        (middle & (second >= 300)).sum(),
    ]
    assert by_node.by_place[:, 0].tolist() == expected
    assert list(tmp_path.iterdir()) == []


def test_what_a_process_killed_in_the_middle_of_a_round_left_is_gone_after_the_next(tmp_path: Path) -> None:
    process = started(tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    (home,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    moved = 0
    while not moved:
        assert process.poll() is None
        time.sleep(0.001)
        moved = (home / NODES).stat().st_size
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert (home / NODES).stat().st_size < ROWS * 4, "a round was under way: not every row had stepped to its node"
    assert (home / BLOCKS).stat().st_size >= ROWS * 13, "rows are on disk"
    assert home.stat().st_mode & 0o077 == 0
    with opened(10**9, tmp_path, 10):
        assert not home.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_room_is_told_in_one_sentence(tmp_path: Path) -> None:
    told, trouble = started(tmp_path, file_size=10_000_000).communicate(timeout=600)
    assert "TableError the coded rows must fit in memory, or in the folder" in told, trouble
    assert list(tmp_path.iterdir()) == []


PEAK = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from test_local_limits import SCHEMA, opened
from sfumato.geometry.tree import Tree
from sfumato.privacy.tally import Tally
with opened({memory}, Path({folder!r})) as engine:
    tree = Tree.whole(SCHEMA.shape)
    for border in (100, 50, 25):
        end = int(tree.ends[tree.boxes[tree.ends, 0, 0] == 0][0])
        tree = tree.refine([end], [0], [0, border, int(tree.boxes[end, 0, 1])], [0, 3])
        engine.tally(Tally(tree, 1, tuple(range(6))))
(peak,) = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
print(int(peak) * 1024)
"""


@pytest.mark.parametrize("memory", [0, LIMIT])
def test_a_limit_on_memory_is_kept(memory: int, tmp_path: Path) -> None:
    """Codes and nodes take 136 MB; whatever of them is allowed in memory, a process takes no more than is told."""
    code = PEAK.format(path=sys.path, folder=str(tmp_path), memory=memory)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < least_memory(SCHEMA) + memory
    assert list(tmp_path.iterdir()) == []
