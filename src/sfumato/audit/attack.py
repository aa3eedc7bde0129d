"""The attack: find the most telling pair of tables and event on one half of the runs, and test it on the other half.

One event is tested, on releases that had no say in choosing it, so its bound holds with the stated confidence, however
many were tried out before. What publishes is the real method, meter, engine and mechanisms, without a ledger. Runs are
made in pieces that each have a stream of their own, so that what a seed gives does not depend on the number of
processes.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato import Method, Rehearsal
from sfumato.audit.events import NUMBERS, PAIRS, SCHEMA, Hint, Observations, Pair, epsilon_shown, most_telling, observed
from sfumato.errors import MethodError

PIECE = 250
"""The number of runs that are made at a time."""
LEAST_RUNS = 200
"""The fewest runs of an attack: fewer show nothing."""
SCOUTING, LEARNING, TESTING = range(3)
"""The stages of an attack, each with streams of its own: an eighth of the runs finds the pair, three eighths find the
event, and one half tests it.
"""


@dataclass(frozen=True)
class Finding:
    """What an attack found: the event that told most, how often it happened, and the epsilon that this shows."""

    method: str
    claimed: Fraction
    confidence: float
    pair: str
    event: str
    complete: bool
    """whether the event was taken for a sign of the record"""
    more: int
    less: int
    tested: int
    shown: float
    hints: tuple[tuple[str, float], ...]
    """by pair, about what its best event seemed to show in the eighth that chose the pair"""

    @property
    def refuted(self) -> bool:
        """Whether what was found contradicts what is claimed."""
        return self.shown > self.claimed


def attack(
    method: Method,
    epsilon: Fraction,
    *,
    runs: int = 20_000,
    confidence: float = 0.95,
    pairs: Sequence[Pair] = PAIRS,
    unsafe_seed: int | None = None,
    processes: int = 1,
    watch: Callable[[str], None] | None = None,
) -> Finding:
    """Publish tables with the record and tables without it, `runs` times each, and bound epsilon from below."""
    if runs < LEAST_RUNS:
        raise MethodError(f"runs ({runs}) must be at least {LEAST_RUNS}", "Give for example 20000.")
    trials = Trials(method, epsilon, unsafe_seed, processes, watch or (lambda _: None))
    scouts = trials.all_of([(pair, runs // 8 // len(pairs)) for pair in pairs], SCOUTING)
    hints = [most_telling(*both) for both in scouts]
    best = max(range(len(pairs)), key=lambda index: hints[index].epsilon)
    (learnt,) = trials.all_of([(pairs[best], 3 * runs // 8)], LEARNING)
    return _tested(trials, pairs[best], most_telling(*learnt), runs // 2, confidence, _by_name(pairs, hints))


def _by_name(pairs: Sequence[Pair], hints: Sequence[Hint]) -> tuple[tuple[str, float], ...]:
    return tuple((pair.name, max(hint.epsilon, 0.0)) for pair, hint in zip(pairs, hints, strict=True))


def _tested(
    trials: Trials, pair: Pair, hint: Hint, runs: int, confidence: float, hints: tuple[tuple[str, float], ...]
) -> Finding:
    """Test the event on fresh releases."""
    ((complete, without),) = trials.all_of([(pair, runs)], TESTING)
    times = [int(hint.event.happens(seen).sum()) for seen in (complete, without)]
    more, less = times if hint.event.complete else reversed(times)
    return Finding(
        method=trials.method.name,
        claimed=trials.epsilon,
        confidence=confidence,
        pair=pair.name,
        event=hint.event.words,
        complete=hint.event.complete,
        more=more,
        less=less,
        tested=runs,
        shown=epsilon_shown(more, less, runs, confidence),
        hints=hints,
    )


@dataclass(frozen=True)
class Trials:
    """How to publish: by which method and at what price, from which randomness, in how many processes."""

    method: Method
    epsilon: Fraction
    unsafe_seed: int | None
    processes: int
    watch: Callable[[str], None]

    def all_of(self, wanted: Sequence[tuple[Pair, int]], stage: int) -> list[tuple[Observations, Observations]]:
        """Publish both tables of each pair so often; by pair, return what was seen with the record and without it."""
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
        """Run all pieces, and tell how far it is."""
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
        """Publish so often, and look at each release."""
        rehearsal = Rehearsal(self.method, SCHEMA, self.epsilon, self.seed)
        *columns, classes = self.pair.table(complete=self.complete).T
        numbers, shapes = np.empty((self.runs, len(NUMBERS))), []
        for run in range(self.runs):
            draft, debits = rehearsal.run(columns, classes)
            numbers[run], shape = observed(draft, debits, self.pair)
            shapes.append(shape)
        return Observations(numbers, tuple(shapes))


def _joined(parts: Sequence[Observations]) -> Observations:
    return Observations(
        np.concatenate([part.numbers for part in parts]), tuple(shape for part in parts for shape in part.shapes)
    )
