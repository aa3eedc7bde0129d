"""Publishing tiny tables over and over: the real method, meter, engine and mechanisms, without a ledger.

Runs are made in pieces that each have a stream of their own, so that what a seed gives does not depend on the number of
processes.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.audit.observations import NUMBERS, Observations, observed
from sfumato.audit.pairs import SCHEMA, Pair, engine_of
from sfumato.counts.meter import Meter
from sfumato.counts.tally import Domain
from sfumato.methods.base import Method
from sfumato.privacy.budget import Debit
from sfumato.privacy.mechanisms import Exact
from sfumato.privacy.stream import SeededStream

PIECE = 250
"""Runs made at a time."""


@dataclass(frozen=True)
class Free:
    """A payer that writes no debit down: the tables are nobody's."""

    epsilon: Fraction

    def pay(self, debit: Debit) -> None:
        """Let it be."""


@dataclass(frozen=True)
class Piece:
    """Some runs on one table of a pair."""

    method: Method
    epsilon: Fraction
    pair: Pair
    complete: bool
    runs: int
    seed: int | None

    def run(self) -> Observations:
        """Publish so often, and look."""
        mechanisms = Exact(None if self.seed is None else SeededStream(self.seed))
        schedule = self.method.plan(SCHEMA, self.epsilon)
        domain = Domain(SCHEMA.shape, len(SCHEMA.classes))
        table = self.pair.table(complete=self.complete)
        numbers, shapes = np.empty((self.runs, len(NUMBERS))), []
        for run in range(self.runs):
            meter = Meter(engine_of(table), Free(self.epsilon), mechanisms, domain)
            draft = self.method.publish(meter, SCHEMA, schedule)
            numbers[run], shape = observed(draft, meter.debits, self.pair)
            shapes.append(shape)
        return Observations(numbers, tuple(shapes))


@dataclass(frozen=True)
class Trials:
    """How to publish: by which method and at what price, from which randomness, in how many processes."""

    method: Method
    epsilon: Fraction
    unsafe_seed: int | None
    processes: int
    watch: Callable[[str], None]

    def all_of(self, wanted: Sequence[tuple[Pair, int]], stage: int) -> list[tuple[Observations, Observations]]:
        """Publish both tables of each pair so often; give what was seen with the record, and without."""
        pieces = list(self._pieces(wanted, stage))
        done = self._watched(pieces)
        found = []
        for pair, _ in wanted:
            both = [
                _joined([seen for piece, seen in zip(pieces, done, strict=True) if (piece.pair, piece.complete) == key])
                for key in ((pair, True), (pair, False))
            ]
            found.append((both[0], both[1]))
        return found

    def _pieces(self, wanted: Sequence[tuple[Pair, int]], stage: int) -> Iterator[Piece]:
        """Cut the runs up; no two pieces of an attack have the same seed."""
        number = 0
        for pair, runs in wanted:
            for complete in (True, False):
                for start in range(0, runs, PIECE):
                    seed = None if self.unsafe_seed is None else (self.unsafe_seed << 32) + 3 * number + stage
                    yield Piece(self.method, self.epsilon, pair, complete, min(PIECE, runs - start), seed)
                    number += 1

    def _watched(self, pieces: Sequence[Piece]) -> list[Observations]:
        """Run all pieces, telling how far it is."""
        done: list[Observations] = []
        total, made = sum(piece.runs for piece in pieces), 0
        for seen in self._run(pieces):
            done.append(seen)
            made += len(seen)
            self.watch(f"{made:,} of {total:,} publications")
        return done

    def _run(self, pieces: Sequence[Piece]) -> Iterable[Observations]:
        if self.processes == 1:
            yield from map(Piece.run, pieces)
            return
        with ProcessPoolExecutor(self.processes, multiprocessing.get_context("spawn")) as pool:
            yield from pool.map(Piece.run, pieces)


def _joined(parts: Sequence[Observations]) -> Observations:
    return Observations(
        np.concatenate([part.numbers for part in parts]), tuple(shape for part in parts for shape in part.shapes)
    )
