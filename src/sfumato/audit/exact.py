"""The exact loss of whole publications: run a method on a table, replay its answers on a neighbour, and add up.

What the meter asks of the mechanisms is recorded with the answers, and the answers are given again on the neighbour, so
both tables have the same transcript T. The loss of T is log P(T | D) - log P(T | D'), the sum over its calls, because
each call is random by itself, given the answers before. It must lie between -paid and paid for *every* T that can
happen. Neighbours differ by one record or, where a schema names persons, by as many rows as count of one.

**Noise.** P(y | c) is proportional to exp(-rate |y - c|), so a count adds rate (|y - c'| - |y - c|): exact fractions.

**Permute-and-flip.** Flip a coin of probability p_i = exp(-rate deficit_i) for every candidate; the choice is uniform
among heads (`selection.permute_and_flip`). So P(i) = p_i E[1 / (1 + K)], K being the number of heads among the others.
The distribution of K is built coin by coin from sums of positive products, in doubles: each of n coins changes every
term by at most a few roundings, relatively, hence the logarithm is known to within DOUBT n; log p_i is exact.

**The exponential mechanism.** P(i) = p_i / (sum of all p_j), a sum of positive terms again.

What is proved about mechanisms is not believed here; that they draw as they should is: `tests/test_noise.py` and
`test_selection.py` hold their samples against the same probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import Call, DaringRecorder, Method, OtherwiseError, Recorder, Rehearsal, Replayer, Schema
from sfumato.arrays import Floats, Integers
from sfumato.audit.events import shape_of
from sfumato.errors import MethodError

DOUBT = 2.0**-49
"""By how much a candidate can make the logarithm of a probability wrong: sixteen roundings, and four are made."""
TRIES = 50
"""How many random schemas a method may refuse, one after the other."""
PERSONS = 0.3
"""How many of random schemas name persons."""
SIZES = (0, 1, 2, 5, 12, 60)
"""The numbers of rows of random tables."""
Table = NDArray[np.uint8]
"""Coded rows: a column for each attribute, the class last."""


@dataclass(frozen=True)
class Loss:
    """A difference of log probabilities: an exact part, a part in doubles, and how wrong that can be."""

    exact: Fraction = Fraction(0)
    rest: float = 0.0
    doubt: float = 0.0

    def __add__(self, other: Loss) -> Loss:
        """Add up independent calls."""
        return Loss(self.exact + other.exact, self.rest + other.rest, self.doubt + other.doubt)

    @property
    def size(self) -> Fraction:
        """How large it is, as far as it is known."""
        return abs(self.exact + Fraction(self.rest))


@dataclass(frozen=True)
class Transcript:
    """What one sequence of answers cost, and what was paid for it."""

    paid: Fraction
    lost: Loss
    rounds: int

    @property
    def ratio(self) -> float:
        """The loss as a share of what was paid."""
        return float(self.lost.size / self.paid) if self.paid else float(self.lost.size > 0)

    @property
    def broken(self) -> bool:
        """Whether more was lost than paid, beyond doubt."""
        return self.lost.size - Fraction(self.lost.doubt) > self.paid


def exact_loss(
    method: Method,
    schema: Schema,
    epsilon: Fraction,
    table: Table,
    neighbour: Table,
    *,
    unsafe_seed: int,
    daring: bool = False,
) -> Transcript:
    """Publish a table, replay the answers on another, and give the exact loss; refuse one that behaves otherwise.

    `daring` answers are improbable ones, in which losses add up. Tables are coded rows, the class last; where the
    schema names persons, the rows that count, so a neighbour may have as many more or fewer as count of a person.
    """
    rehearsal = Rehearsal(method, schema, epsilon)
    recorder = DaringRecorder(unsafe_seed) if daring else Recorder(unsafe_seed)
    told, debits = rehearsal.run(*_columns(table), recorder)
    replayer = Replayer(recorder)
    again, others = rehearsal.run(*_columns(neighbour), replayer)
    replayer.finish()
    if debits != others or shape_of(told, debits) != shape_of(again, others):
        raise OtherwiseError("the neighbour pays or tells otherwise")
    calls = list(zip(recorder.calls, replayer.calls, strict=True))
    lost = sum((loss_of(one, other) for one, other in calls), Loss())
    return Transcript(sum((debit.epsilon for debit in debits), Fraction(0)), lost, len(calls))


def _columns(table: Table) -> tuple[list[Table], Table]:
    *columns, classes = table.T
    return columns, classes


def loss_of(one: Call, other: Call) -> Loss:
    """Give the loss of one call, from what the mechanism was given on either table."""
    return _loss_of_noise(one, other) if one.kind == "noise" else _loss_of_choice(one, other)


def _loss_of_noise(one: Call, other: Call) -> Loss:
    moved = np.abs(one.answer - other.given) - np.abs(one.answer - one.given)
    by_rate = np.zeros(len(one.rates), np.int64)
    np.add.at(by_rate, np.array(one.shape[1], np.int64), moved.reshape(len(moved), -1).sum(axis=1))
    return Loss(sum((rate * int(times) for rate, times in zip(one.rates, by_rate, strict=True)), Fraction(0)))


def _loss_of_choice(one: Call, other: Call) -> Loss:
    """Add up the groups in which scores differ; in the others, choices have the same distribution."""
    ends, stakes = one.shape
    lost = Loss()
    for group, (start, end) in enumerate(pairwise(ends)):
        scores, others = one.given[start:end], other.given[start:end]
        if not np.array_equal(scores, others):
            rate, answer = one.rates[0] * stakes[group], int(one.answer[group])
            here, there = (log_chance(one.kind, given, rate, answer) for given in (scores, others))
            lost += Loss(here.exact - there.exact, here.rest - there.rest, here.doubt + there.doubt)
    return lost


def log_chance(selection: str, scores: Integers, rate: Fraction, answer: int) -> Loss:
    """Give the logarithm of the probability that a candidate is chosen by its score among others.

    >>> chances = [log_chance("permute-and-flip", np.array([3, 2]), Fraction(1), answer) for answer in (0, 1)]
    >>> round(sum(math.exp(one.exact + Fraction(one.rest)) for one in chances), 12)
    1.0
    """
    deficits = scores.max() - scores
    coins = np.exp(-float(rate) * deficits.astype(np.float64))
    own = -rate * int(deficits[answer])
    if selection == "exponential":
        rest = -math.log(float(coins.sum()))
    else:
        rest = math.log(mean_share(np.delete(coins, answer)))
    return Loss(own, rest, DOUBT * len(scores))


def mean_share(coins: Floats) -> float:
    """Give E[1 / (1 + K)], K being the number of heads of independent coins.

    >>> round(mean_share(np.array([0.5, 0.5])), 9)  # 1/4 * 1 + 1/2 * 1/2 + 1/4 * 1/3
    0.583333333
    """
    heads = np.zeros(len(coins) + 1)
    heads[0] = 1.0
    for number, coin in enumerate(coins, start=1):
        heads[1 : number + 1] = heads[1 : number + 1] * (1.0 - coin) + heads[:number] * coin
        heads[0] *= 1.0 - coin
    return float((heads / np.arange(1, len(heads) + 1)).sum())


@dataclass(frozen=True)
class ExactFinding:
    """What many transcripts of a method cost at most, as a share of what was paid."""

    method: str
    parameters: dict[str, Any]
    epsilon: Fraction
    transcripts: int
    rounds: int
    """the number of all calls of mechanisms"""
    largest: float
    """the largest ratio of loss to payment"""
    mean: float
    """the mean ratio among transcripts that were drawn as the mechanisms draw"""
    broken: int
    """the number of transcripts that lost more than was paid"""

    @property
    def refuted(self) -> bool:
        """Whether a transcript contradicts what is claimed."""
        return self.broken > 0


def search(
    method: Method,
    epsilon: Fraction,
    *,
    transcripts: int = 200,
    unsafe_seed: int = 0,
    watch: Callable[[str], None] | None = None,
) -> ExactFinding:
    """Give the losses of random transcripts on random neighbours of random schemas; every second is a daring one."""
    tell = watch or (lambda _: None)
    found: list[Transcript] = []
    for number in range(transcripts):
        rng = np.random.default_rng((unsafe_seed, number))
        schema = _random_schema(method, epsilon, rng)
        table, neighbour = random_neighbours(schema, rng)
        seed = int(rng.integers(2**62))
        found.append(exact_loss(method, schema, epsilon, table, neighbour, unsafe_seed=seed, daring=number % 2 == 1))
        tell(f"{method.name}: {number + 1:,} of {transcripts:,} transcripts")
    return ExactFinding(
        method=method.name,
        parameters=dict(method.parameters),
        epsilon=epsilon,
        transcripts=len(found),
        rounds=sum(one.rounds for one in found),
        largest=max(one.ratio for one in found),
        mean=float(np.mean([one.ratio for one in found[::2]])),
        broken=sum(one.broken for one in found),
    )


def _random_schema(method: Method, epsilon: Fraction, rng: np.random.Generator) -> Schema:
    """Draw schemas until the method takes one."""
    for _ in range(TRIES):
        schema = random_schema(rng)
        try:
            method.plan(schema, epsilon / schema.rows_per_person)
        except MethodError:
            continue
        return schema
    raise MethodError(f"{method.name} must take one of {TRIES} small random schemas", "Give it other parameters.")


def random_schema(rng: np.random.Generator) -> Schema:
    """Draw a small schema: a few attributes with taxonomies, ranges and missing values; perhaps a class, or persons."""
    columns: dict[str, Any] = {f"a{number}": _random_column(rng) for number in range(rng.integers(1, 4))}
    if rng.random() < 0.8:
        columns["class"] = {"kind": "class", "taxonomy": [f"c{leaf}" for leaf in range(rng.integers(2, 4))]}
    persons = {"person": "who", "rows_per_person": int(rng.integers(1, 4))} if rng.random() < PERSONS else {}
    return Schema.parse({"name": "random", "confirmed": True, "attributes": columns} | persons)


def _random_column(rng: np.random.Generator) -> dict[str, Any]:
    if rng.random() < 0.5:
        missing = {"missing": "Unknown"} if rng.random() < 0.5 else {}
        return {"kind": "numeric", "lower": "0", "upper": str(rng.integers(1, 13))} | missing
    leaves = [f"v{leaf}" for leaf in range(rng.integers(2, 7))]
    cut = int(rng.integers(1, len(leaves)))
    return {"kind": "categorical", "taxonomy": [{"some": leaves[:cut]}, *leaves[cut:]] if cut > 1 else leaves}


def random_neighbours(schema: Schema, rng: np.random.Generator) -> tuple[Table, Table]:
    """Draw a table and another with one record, or person, more or less; rows are spread out, or nearly alike."""
    sizes, own = (*schema.shape, len(schema.classes)), schema.rows_per_person
    rows = _random_rows(sizes, int(rng.choice(SIZES)) + own, rng)
    if rng.random() < 0.5:
        rows[:-own] = rows[0]
    if rng.random() < 0.5:
        rows[-own:] = rows[-1]
    tables = rows, rows[:-own]
    return tables if rng.random() < 0.5 else (tables[1], tables[0])


def _random_rows(sizes: Sequence[int], rows: int, rng: np.random.Generator) -> Table:
    return np.stack([rng.integers(0, size, rows) for size in sizes], axis=1).astype(np.uint8)
