"""What runs on the executors of a Spark cluster: code batches into blocks, move rows down a tree, count, add up.

Each is a function from batches of Arrow records to such batches, given to Spark's `mapInArrow`. Blocks, nodes and sums
pass between them as bytes. Nothing is needed but NumPy and Arrow. What fails is told in our own words or not at all:
what a library says may hold a value.
"""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.arrays import Codes, packed_rows, unpacked_rows
from sfumato.engines.kernel import Block, Layout, Round, Sums, count, gathered, merged
from sfumato.errors import SfumatoError
from sfumato.tables.coders import BatchCoder, CodedBatch

Batches = Iterator[pa.RecordBatch]

CODED = "block binary, told binary"
"""The columns of coded rows: a block, or what there is to tell of a part of the table."""
OF_PERSONS = "person binary, codes binary, told binary"
"""The columns of coded rows that know whom they are about; or what there is to tell."""
STANDING = "block binary, nodes binary"
"""The columns of blocks that know their nodes."""
SUMMED = "piece int, sums binary"
"""The columns of what was counted: some of the cells."""
TOGETHER = 16
"""So many blocks are tried at a time whether many of their rows are alike."""


@dataclass(frozen=True)
class CodeRows:
    """Codes the rows of a part of a table into blocks."""

    coder: BatchCoder
    names: tuple[str, ...]
    """the columns of the attributes, then that of the classes, if there is one"""
    has_classes: bool
    sizes: tuple[int, ...]
    """the numbers of leaves of the attributes, and of classes"""

    def __call__(self, batches: Batches) -> Batches:
        """Give blocks and, last, how many rows of which columns do not fit, and why; or what our own code refuses."""
        misfits: Counter[tuple[str, int]] = Counter()
        try:
            yield from self._given(self._coded(batches, misfits))
            told: Any = [[*where, rows] for where, rows in misfits.items()]
        except SfumatoError as error:
            told = {"problem": error.problem, "remedy": error.remedy}
        if told:
            nothing: list[list[Any]] = [[None]] * (len(self.columns.split(", ")) - 1)
            yield _records(self.columns, *nothing, [json.dumps(told).encode()])

    @property
    def columns(self) -> str:
        """The columns of what it gives."""
        return CODED if self.coder.person is None else OF_PERSONS

    def _given(self, coded: Iterator[tuple[list[Codes], Any]]) -> Batches:
        """Blocks or, where it is drawn later which rows count, rows and whom they are about."""
        if self.coder.person is None:
            for block in _fewer(gathered(codes for codes, _ in coded), self.sizes):
                yield _records(CODED, [block.packed()], [None])
            return
        for codes, persons in coded:
            rows = [one.tobytes() for one in packed_rows(codes)]
            yield _records(OF_PERSONS, persons.to_pylist(), rows, [None] * len(rows))

    def _coded(self, batches: Batches, misfits: Counter[tuple[str, int]]) -> Iterator[tuple[list[Codes], Any]]:
        for batch in batches:
            coded: CodedBatch = self.coder.code(batch)
            misfits.update(coded.misfits)
            columns = [coded.columns[name] for name in self.names]
            yield columns if self.has_classes else [*columns, np.zeros(coded.rows, np.uint8)], coded.persons


@dataclass(frozen=True)
class GatherRows:
    """Puts coded rows that were drawn together to blocks."""

    kinds: tuple[str, ...]
    """the types of the columns and of the classes"""
    sizes: tuple[int, ...]

    def __call__(self, batches: Batches) -> Batches:
        """Give blocks."""
        for block in _fewer(gathered(map(self._columns, batches)), self.sizes):
            yield _records(CODED, [block.packed()], [None])

    def _columns(self, batch: pa.RecordBatch) -> list[Codes]:
        rows = np.frombuffer(b"".join(batch.columns[0].to_pylist()), np.uint8).reshape(batch.num_rows, -1)
        return unpacked_rows(rows, self.kinds)


def _fewer(blocks: Iterator[Block], sizes: tuple[int, ...]) -> Iterator[Block]:
    """Merge rows that are alike, some blocks at a time, where that pays."""
    while some := list(islice(blocks, TOGETHER)):
        rows = sum(map(len, some))
        yield from merged(some, rows, sizes, rows) or some


@dataclass(frozen=True)
class MoveRows:
    """Moves rows to their nodes, which are then kept beside the blocks."""

    round: Round
    layout: Layout

    def __call__(self, batches: Batches) -> Batches:
        """Give the same blocks with their nodes."""
        for batch in batches:
            for packed, block, stood in _blocks(batch, self.layout):
                nodes = self.round.located(block, stood)
                assert nodes is not None
                yield _records(STANDING, [packed], [nodes.tobytes()])


@dataclass(frozen=True)
class CountBlocks:
    """Counts the blocks of a part for a round."""

    round: Round
    layout: Layout
    pieces: int

    def __call__(self, batches: Batches) -> Batches:
        """Give the sums of the part, in pieces."""
        sums = Sums.none(self.round)
        for batch in batches:
            for _, block, stood in _blocks(batch, self.layout):
                count(self.round, block, self.round.located(block, stood), sums)
        for piece, some in enumerate(sums.cut(self.pieces)):
            yield _records(SUMMED, [piece], [pickle.dumps(some, protocol=5)])


class AddSums:
    """Adds up the same pieces of different parts."""

    def __call__(self, batches: Batches) -> Batches:
        """Give the sum of each piece."""
        found: dict[int, Sums] = {}
        for batch in batches:
            for piece, packed in zip(*batch.to_pydict().values(), strict=True):
                sums = pickle.loads(packed)
                if piece in found:
                    found[piece].include(sums)
                else:
                    found[piece] = sums
        for piece, sums in found.items():
            yield _records(SUMMED, [piece], [pickle.dumps(sums, protocol=5)])


def _blocks(batch: pa.RecordBatch, layout: Layout) -> Iterator[tuple[Any, Block, Any]]:
    """The blocks of a batch, packed and unpacked, and a copy of the nodes on which rows stood, if those are known."""
    packed, *others = batch.columns
    for at, one in enumerate(packed):
        if one.is_valid:
            nodes = np.frombuffer(others[0][at].as_buffer(), np.int32).copy() if others else None
            yield one, layout.unpacked(one.as_buffer()), nodes


def _records(schema: str, *columns: Iterable[Any]) -> pa.RecordBatch:
    kinds = {"binary": pa.binary(), "int": pa.int32()}
    fields = [one.split() for one in schema.split(", ")]
    arrays = [pa.array(column, kinds[kind]) for column, (_, kind) in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in fields])
