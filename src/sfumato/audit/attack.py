"""The attack: find the most telling pair of tables and event on one half of the runs, test it on the other half.

One event is tested, on releases that had no say in choosing it, so its bound holds with the stated confidence, however
many were tried out before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.audit.bounds import epsilon_shown
from sfumato.audit.events import Hint, most_telling
from sfumato.audit.pairs import PAIRS, Pair
from sfumato.audit.trials import Trials
from sfumato.errors import MethodError
from sfumato.methods.base import Method

LEAST_RUNS = 200
"""Fewer show nothing."""
SCOUTING, LEARNING, TESTING = range(3)
"""An eighth of the runs finds the pair, three the event, one half tests it; each draws from streams of its own."""


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
    """Let fresh releases decide."""
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
