"""Count on one machine: blocks in memory as long as they fit, else in a private file; threads over blocks.

A table is read and coded once, whatever its size. Its blocks are kept in memory until they are more than is allowed;
then all of them go to a file in a private folder, and those that follow go there, too. A pass reads each block once,
into memory of the thread that counts it. So no more than a few blocks are held at a time, and a disk that fails is an
error that can be told; a file that is mapped into memory would end the process.

Rows remember the node of the tree on which they stood, four bytes for each, beside the blocks: a tree that grew by a
level costs them one step.

`MemoryListing` is the engine behind exact counts: it can also list what occurs. The engine behind the meter is another
class, which has no such verb to be asked by mistake.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Codes, Integers, packed_rows, row_keys, unpacked_rows
from sfumato.engines.kernel import BLOCK, Block, Layout, Round, Sums, count, gathered, merged
from sfumato.engines.rounds import Answer, Asked
from sfumato.errors import CountError, SfumatoError, TableError, guarded, too_large
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Stage, Tree
from sfumato.geometry.walk import Nodes
from sfumato.privacy.tally import Combinations, CountEngine, Counts, Tally
from sfumato.schema.schema import Schema
from sfumato.tables.encode import Reading, cores, refuse_misfits
from sfumato.tables.persons import Draw, PackedRows
from sfumato.tables.streams import Table

OWN = 1 << 24
"""The threads may have so many sums of their own, in all."""
NODE = np.dtype(np.int32)
MERGED_BYTES = 64
"""What a merged row takes while rows are merged."""

Result = TypeVar("Result")


class Rows(Protocol):
    """Blocks that can be read again and again, and where their rows stand; threads use it, each for its own blocks."""

    def __len__(self) -> int:
        """The number of blocks."""

    def block(self, at: int) -> Block:
        """One of them."""

    def stood(self, at: int) -> Nodes:
        """The nodes that were kept for its rows, to be changed."""

    def keep(self, at: int, nodes: Nodes) -> None:
        """Keep the nodes of its rows."""


class MemoryRows:
    """Blocks in memory."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        """Hold some blocks."""
        self._blocks = list(blocks)
        self._nodes: dict[int, Nodes] = {}

    def __len__(self) -> int:
        """The number of blocks."""
        return len(self._blocks)

    def block(self, at: int) -> Block:
        """One of them."""
        return self._blocks[at]

    def stood(self, at: int) -> Nodes:
        """The nodes that were kept for its rows."""
        return self._nodes[at]

    def keep(self, at: int, nodes: Nodes) -> None:
        """Keep the nodes of its rows."""
        self._nodes[at] = nodes


class FileRows:
    """Blocks in a file, and nodes in another; both are for their owner alone."""

    def __init__(self, home: Path, layout: Layout) -> None:
        """Make the files in a private folder."""
        self._layout = layout
        self._places: list[tuple[int, int]] = []
        """of each block: where it begins, and how many bytes it has"""
        self._numbers: list[tuple[int, int]] = []
        """the same of its nodes"""
        self._end = self._rows = 0
        self._blocks, self._nodes = (_made(home / name) for name in (BLOCKS, NODES))

    def close(self) -> None:
        """Let the files go; the folder in which they lie is removed with them."""
        os.close(self._blocks)
        os.close(self._nodes)

    def __len__(self) -> int:
        """The number of blocks."""
        return len(self._places)

    def add(self, block: Block) -> None:
        """Write one more block."""
        packed = block.packed()
        _write(self._blocks, memoryview(packed), self._end)
        self._places.append((self._end, len(packed)))
        self._end += len(packed)
        self._numbers.append((self._rows * NODE.itemsize, len(block) * NODE.itemsize))
        self._rows += len(block)

    def block(self, at: int) -> Block:
        """One of them."""
        return self._layout.unpacked(guarded(lambda: _read(self._blocks, *self._places[at]), _uncounted))

    def stood(self, at: int) -> Nodes:
        """The nodes that were kept for its rows."""
        return guarded(lambda: _read(self._nodes, *self._numbers[at]), _uncounted).view(NODE)

    def keep(self, at: int, nodes: Nodes) -> None:
        """Keep the nodes of its rows."""
        guarded(lambda: _write(self._nodes, nodes.view(np.uint8).data, self._numbers[at][0]), _uncounted)


BLOCKS, NODES = "blocks", "nodes"
"""The names of the files."""


def _made(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)


def _read(file: int, start: int, size: int) -> NDArray[np.uint8]:
    """Read so many bytes; fewer are an error."""
    found = np.empty(size, np.uint8)
    left = found.data
    while left:
        if not (got := os.preadv(file, [left], start)):
            raise EOFError
        left, start = left[got:], start + got
    return found


def _write(file: int, left: memoryview, start: int) -> None:
    while left:
        put = os.pwrite(file, left, start)
        left, start = left[put:], start + put


class LocalEngine:
    """Coded rows on this machine."""

    def __init__(self, rows: Rows) -> None:
        """Count some rows."""
        self._rows = rows
        self._stage: Stage | None = None
        """the moment of a tree at which nodes were kept"""
        self._last: Answer | None = None

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return f"{type(self).__name__}(...)"

    def tally(self, tally: Tally) -> Counts:
        """Count everything the tally asks for in one pass.

        Until it has come to its end, some rows have stepped and others have not: none is known to stand anywhere.
        """
        asked, stage = Asked.of(tally, self._last, self._stage), self._stage
        steps = asked.round.steps
        if steps is not None and steps.number:
            self._stage, stage = None, tally.partition.stage if isinstance(tally.partition, Tree) else None
        counts = asked.counts(self._summed(asked.round))
        self._stage = stage
        if tally.attributes or self._last is None:
            self._last = Answer(tally, counts)
        return counts

    def _summed(self, asked: Round) -> Sums:
        """Count every block once; every thread has sums of its own, which are added up."""
        rows, steps = self._rows, asked.steps

        def work(numbers: Iterator[int]) -> Sums:
            sums = Sums.none(asked)
            for at in numbers:
                block = rows.block(at)
                nodes = asked.located(block, rows.stood(at) if steps is not None and steps.grown else None)
                if nodes is not None and steps is not None and steps.number:
                    rows.keep(at, nodes)
                count(asked, block, nodes, sums)
            return sums

        first, *others = in_turns(len(rows), work, OWN // max(asked.held, 1))
        for other in others:
            first.include(other)
        return first


class MemoryEngine(LocalEngine):
    """Coded columns that are in memory already."""

    def __init__(self, columns: Sequence[Codes], classes: Codes, weights: Integers | None = None) -> None:
        """Count columns; `classes` has one code per row, all 0 for a table without a class.

        With weights, a row stands for so many records.
        """
        cuts = [slice(start, start + BLOCK) for start in range(0, len(classes), BLOCK)]
        super().__init__(
            MemoryRows(
                Block(tuple(column[cut] for column in columns), classes[cut], None if weights is None else weights[cut])
                for cut in cuts
            )
        )


class MemoryListing(MemoryEngine):
    """Coded columns that can be listed."""

    def combinations(self, grid: Grid, classes: int) -> Combinations:
        """List what occurs, by sorting."""
        blocks = [self._rows.block(at) for at in range(len(self._rows))]
        parts = [
            np.concatenate(
                [np.empty(0, np.int64), *(grid.part_of(attribute)[one.columns[attribute]] for one in blocks)]
            )
            for attribute in range(len(grid.shape))
        ]
        labels = np.concatenate([np.empty(0, np.int64), *(one.classes for one in blocks)]).astype(np.int64)
        keys = row_keys([*parts, labels], [*grid.parts, classes])
        _, rows, counts = np.unique(keys, return_index=True, return_counts=True)
        return Combinations(tuple(part[rows] for part in parts), labels[rows], counts)


def in_turns(number: int, work: Callable[[Iterator[int]], Result], most: int) -> list[Result]:
    """Let at most so many threads take the next of some numbers, in turns, and give what each found.

    If one of them fails, or the work is interrupted, nobody gets another number.
    """
    threads, turns, over, one_by_one = max(1, min(cores(), most, number)), iter(range(number)), Event(), Lock()

    def taken() -> Iterator[int]:
        while not over.is_set():
            with one_by_one:
                at = next(turns, None)
            if at is None:
                return
            yield at

    def share() -> Result:
        try:
            return work(taken())
        except BaseException:
            over.set()
            raise

    if threads == 1:
        return [share()]
    with ThreadPoolExecutor(threads) as pool:
        try:
            return [one.result() for one in [pool.submit(share) for _ in range(threads)]]
        finally:
            over.set()


@contextmanager
def local_engine(table: Table, schema: Schema, *, memory: int, home: Path, key: bytes = b"") -> Iterator[CountEngine]:
    """Read a table and give an engine that counts it; when the block ends, nothing is left of either.

    `memory` is how many bytes the rows may take; if they are more, they go to `home`, which only its owner may enter.
    By the `key` it is drawn which rows of a person count.
    """
    kept = Kept(memory, home)
    try:
        yield LocalEngine(kept.read(table, schema, key))
    finally:
        kept.close()


class Kept:
    """The blocks of a table that is read: in memory while there is room, then in a file."""

    def __init__(self, room: int, home: Path) -> None:
        """Begin with nothing, and room for so many bytes."""
        self._room, self._home = room, home
        self._blocks: list[Block] = []
        self._file: FileRows | None = None
        self._held = self._rows = 0

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "Kept(...)"

    def read(self, table: Table, schema: Schema, key: bytes) -> Rows:
        """Code the whole table, refuse it if it does not fit its schema, and merge rows that are alike if that pays.

        Of persons, rows are drawn; half of the memory is for that.
        """
        reading = Reading(table, schema, schema.person)
        parts = _coded(reading, schema)
        if schema.person is not None:
            self._room //= 2
            parts = _drawn(parts, Draw(schema.rows_per_person, key, self._home, self._room))
        blocks = gathered(codes for codes, _ in parts)
        while (block := guarded(lambda: next(blocks, None), _unkept)) is not None:
            guarded(partial(self._add, block), _unkept)
        refuse_misfits(reading.told())
        return guarded(lambda: self._merged(schema), _unkept)

    def _add(self, block: Block) -> None:
        self._rows += len(block)
        self._held += block.size + len(block) * NODE.itemsize
        if self._file is None and self._held > self._room:
            self._file = FileRows(self._home, Layout.of(block))
            while self._blocks:
                self._file.add(self._blocks.pop())
        if self._file is None:
            self._blocks.append(block)
        else:
            self._file.add(block)

    def _merged(self, schema: Schema) -> Rows:
        rows: Rows = MemoryRows(self._blocks) if self._file is None else self._file
        blocks = (rows.block(at) for at in range(len(rows)))
        free = self._room - (self._held if self._file is None else 0)
        fewer = merged(blocks, self._rows, (*schema.shape, len(schema.classes)), free // MERGED_BYTES)
        return rows if fewer is None else MemoryRows(fewer)

    def close(self) -> None:
        """Let the file go, if there is one."""
        if self._file is not None:
            self._file.close()


Coded = tuple[Sequence[Codes], Any]
"""The codes of some rows, the classes last; and whom each is about."""


def _coded(reading: Reading, schema: Schema) -> Iterator[Coded]:
    """The codes of a table, part by part."""
    names = [*schema.predictors, *([] if schema.target is None else [schema.target])]
    for batch in reading.batches():
        codes = [batch.columns[name] for name in names]
        yield codes if schema.target is not None else [*codes, np.zeros(batch.rows, np.uint8)], batch.persons


def _drawn(parts: Iterator[Coded], draw: Draw) -> Iterator[Coded]:
    """The codes of the rows that count; whom they are about is of no more use."""
    kinds: list[str] = []

    def packed() -> Iterator[tuple[Any, PackedRows]]:
        for codes, persons in parts:
            kinds[:] = [one.dtype.str for one in codes]
            yield persons, packed_rows(codes)

    for rows in draw.rows(packed()):
        yield unpacked_rows(rows, kinds), None


def _unkept(error: BaseException) -> SfumatoError:
    """Say why coded rows cannot be kept; nothing is paid yet."""
    return too_large(error) if isinstance(error, MemoryError) else _no_room(TableError)


def _uncounted(_: BaseException) -> SfumatoError:
    """Say that a round failed, in words that are the same whatever was seen."""
    return _no_room(CountError)


def _no_room(kind: type[SfumatoError]) -> SfumatoError:
    return kind(
        "the coded rows must fit in memory, or in the folder for what is beyond it", "Allow more, or free the disk."
    )
