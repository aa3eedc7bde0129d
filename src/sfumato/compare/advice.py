"""Advice before anything is spent: what error counts will have by each method, without a look at the table.

How. From the schema and the order of magnitude of the number of rows, both public, a population is made up: people of a
few kinds, each kind with its own habits, so that attributes depend on each other as they do in tables about people.
Every method publishes it with known seeds, random counts of one, two and three attributes are asked, and their errors
are what to expect. Noise, structure and estimation are those of a real publication; only the people are invented. So
nothing is paid, and the advice follows the methods when they change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction

import numpy as np
import pyarrow as pa

from sfumato import METHODS, Categorical, Identifier, Method, Numeric, Predictor, Schema, epsilon_of, seeded_release
from sfumato.arrays import Floats, Integers
from sfumato.errors import MethodError, SfumatoError

WAYS = (1, 2, 3)
"""Counts of so many attributes are asked."""
ASKED = 120
"""So many of each."""
KINDS = 6
"""So many kinds of people are made up."""
OWN = 0.6
"""The share of a kind's habits that is its own."""
FOLLOWING, CLOSELY = 5, 0.8
"""One attribute in so many follows from another, as age groups do from ages, in this share of people."""
MOST_ROWS = 100_000
"""No more people are made up. In a larger table noise is the same, and a model is off by the same share."""
MOST_ATTRIBUTES = 200
"""Advice on more would take too long."""
RUNS = 2
"""Each method publishes them so many times."""
LARGE_EPSILON = 10
"""A larger epsilon promises next to nothing."""
USELESS = 0.1
"""If counts of one attribute are off by this share of all rows, nothing useful can be expected."""
LEFT_OUT = 3
"""For so many attributes, those with most values, it is told what leaving them out would buy."""
SEED = 20_111
"""What is made up is the same for everyone who asks."""

Watch = Callable[[str], None]
Weights = Mapping[str, Floats]


@dataclass(frozen=True)
class Expected:
    """The error to expect of counts by one method at one epsilon; or why it cannot publish the table."""

    method: str
    epsilon: Fraction
    errors: tuple[float, ...] = ()
    """root mean square errors, of counts of one, two and three attributes"""
    refusal: str = ""

    @property
    def typical(self) -> float:
        """One number for all: the geometric mean."""
        return math.exp(float(np.mean(np.log(np.maximum(self.errors, 0.5))))) if self.errors else math.inf


@dataclass(frozen=True)
class Advice:
    """What to expect of each method at each epsilon, and what leaving out an attribute would buy."""

    rows: int
    expected: tuple[Expected, ...]
    saved: Mapping[str, float]
    """by attribute, the share by which the typical error falls if it is left out"""

    def best(self, epsilon: Fraction) -> Expected | None:
        """The method that answers counts best at an epsilon."""
        able = [one for one in self.expected if one.epsilon == epsilon and one.errors]
        return min(able, key=lambda one: one.typical, default=None)

    @property
    def warnings(self) -> list[str]:
        """What should be known before anything is spent."""
        told = []
        for epsilon in dict.fromkeys(one.epsilon for one in self.expected):
            best = self.best(epsilon)
            if epsilon > LARGE_EPSILON:
                told.append(f"epsilon {float(epsilon):g} promises next to nothing: odds may change by any factor.")
            if best is None or best.errors[0] > USELESS * self.rows:
                told.append(
                    f"nothing useful can be expected at epsilon {float(epsilon):g}: use more, or fewer attributes."
                )
        return told


def advise(
    schema: Schema, rows: int, epsilons: Sequence[str], purpose: str | None = None, watch: Watch = lambda _: None
) -> Advice:
    """What to expect of every method on a table of this schema and about so many rows, which is not read.

    Methods that can be told the `purpose` of a release (`counts` or `classification`) are.
    """
    if rows < 1:
        raise MethodError(f"rows ({rows}) must be greater than 0", "Give the table's order of magnitude.")
    if len(variables(schema)) > MOST_ATTRIBUTES:
        raise MethodError(
            f"the schema must have at most {MOST_ATTRIBUTES} attributes for advice, and has {len(variables(schema))}",
            "Name some with --attributes.",
        )
    rows = min(rows, MOST_ROWS)
    prices = [epsilon_of(one) for one in epsilons]
    stage = Stage.of(schema, rows)
    expected = []
    for price in prices:
        for method in filter(_needs_nothing, METHODS.values()):
            watch(f"{method.name} at epsilon {float(price):g}")
            expected.append(stage.expect(_made(method, purpose), price))
    first = Advice(rows, tuple(expected), {})
    middle = prices[len(prices) // 2]
    best = first.best(middle)
    return first if best is None else Advice(rows, tuple(expected), _saved(schema, rows, best, purpose, watch))


def _needs_nothing(method: type[Method]) -> bool:
    """Tell whether a method has no parameter that someone must give."""
    return all(one.default is not MISSING for one in fields(method))


def _made(method: type[Method], purpose: str | None) -> Method:
    told = purpose is not None and any(one.name == "purpose" for one in fields(method))
    return method(**({"purpose": purpose} if told else {}))


def _saved(schema: Schema, rows: int, best: Expected, purpose: str | None, watch: Watch) -> dict[str, float]:
    predictors = schema.predictors
    longest = sorted(predictors, key=lambda name: -predictors[name].leaves)[:LEFT_OUT] if len(predictors) > 2 else []
    saved = {}
    for name in longest:
        watch(f"without {name}")
        less = schema.only([other for other in (*predictors, *filter(None, [schema.target])) if other != name])
        without = Stage.of(less, rows).expect(_made(METHODS[best.method], purpose), best.epsilon)
        saved[name] = 1 - without.typical / best.typical
    return saved


@dataclass(frozen=True, eq=False)
class Stage:
    """Made-up people of a schema, and counts to ask about them."""

    schema: Schema
    table: pa.Table
    asked: tuple[tuple[Weights, ...], ...]
    """by the number of attributes"""
    true: tuple[Floats, ...]

    @classmethod
    def of(cls, schema: Schema, rows: int) -> Stage:
        """Make people up; where the schema is of persons, each has as many rows as may count."""
        rng = np.random.default_rng(SEED)
        made, columns = rows, variables(schema)
        kinds = rng.choice(KINDS, made, p=_falling(KINDS))
        codes: dict[str, Integers] = {}
        for place, (name, column) in enumerate(columns.items()):
            codes[name] = _habits(column, kinds, rng)
            if place % FOLLOWING == FOLLOWING - 1:
                other = list(columns)[int(rng.integers(0, place))]
                follows = rng.random(made) < CLOSELY
                scaled = codes[other] * column.leaves // columns[other].leaves
                codes[name] = np.where(follows, scaled, codes[name])
        values = {name: values_of(column, codes[name]) for name, column in columns.items()}
        if schema.person is not None:
            values[schema.person] = pa.array(np.arange(made) // schema.rows_per_person)
        asked = tuple(tuple(questions(schema, ways, ASKED, rng)) for ways in WAYS)
        true = tuple(np.array([count(codes, one) for one in every]) for every in asked)
        plain = {name: written_plainly(column) for name, column in schema.attributes.items()}
        facts = {one: getattr(schema, one) for one in Schema.model_fields} | {"attributes": plain, "confirmed": True}
        confirmed = Schema(**facts)
        return cls(confirmed, pa.table(values), asked, true)

    def expect(self, method: Method, epsilon: Fraction) -> Expected:
        """Publish the made-up people and measure."""
        squares: list[list[float]] = [[] for _ in WAYS]
        for seed in range(RUNS):
            try:
                release = seeded_release(self.table, self.schema, method, str(epsilon), seed)
            except SfumatoError as error:
                return Expected(method.name, epsilon, refusal=str(error))
            for place, (every, true) in enumerate(zip(self.asked, self.true, strict=True)):
                squares[place] += ((release.count_many(every).values - true) ** 2).tolist()
        return Expected(method.name, epsilon, tuple(math.sqrt(float(np.mean(one))) for one in squares))


def variables(schema: Schema) -> dict[str, Predictor]:
    """All attributes that are published, the class among them."""
    found = dict(schema.predictors)
    if schema.target is not None:
        target = schema.attributes[schema.target]
        assert isinstance(target, Categorical)
        found[schema.target] = target
    return found


def questions(schema: Schema, ways: int, number: int, rng: np.random.Generator) -> list[dict[str, Floats]]:
    """Random counts: of each of some attributes, a quarter of a grid or one category."""
    columns = variables(schema)
    told = [name for name, column in columns.items() if column.leaves > 1]
    found = []
    for _ in range(number):
        chosen = rng.choice(told, min(ways, len(told)), replace=False)
        found.append({str(name): _part(columns[str(name)], rng) for name in chosen})
    return found


def _part(column: Predictor, rng: np.random.Generator) -> Floats:
    weights = np.zeros(column.leaves)
    wide = max(column.leaves // 4, 1) if isinstance(column, Numeric) else max(column.leaves // 8, 1)
    start = int(rng.integers(0, column.leaves - wide + 1))
    weights[start : start + wide] = 1
    return weights


def count(codes: Mapping[str, Integers], asked: Weights) -> float:
    """How many coded rows a condition is true of."""
    inside = [weights[codes[name]] for name, weights in asked.items()]
    return float(np.prod(inside, axis=0).sum())


def _falling(number: int) -> Floats:
    """Shares that fall, none of them to nothing."""
    shares = 1 / np.arange(1, number + 1)
    return np.asarray(shares / shares.sum())


def _habits(column: Predictor, kinds: Integers, rng: np.random.Generator) -> Integers:
    """Draw the leaves of people of several kinds, whose habits are partly the same."""
    common = _shape(column, rng)
    codes = np.zeros(len(kinds), np.int64)
    for kind in range(KINDS):
        people = np.flatnonzero(kinds == kind)
        shares = (1 - OWN) * common + OWN * _shape(column, rng)
        codes[people] = rng.choice(column.leaves, len(people), p=shares / shares.sum())
    return codes


def _shape(column: Predictor, rng: np.random.Generator) -> Floats:
    """Shares of leaves: a bump of numbers, or categories of which few are frequent."""
    if isinstance(column, Categorical):
        return np.asarray(rng.permutation(_falling(column.leaves) ** 1.5)) + 1e-9
    centre, width = rng.uniform(0.1, 0.7) * column.cells, rng.uniform(0.05, 0.3) * column.cells + 1
    bump = np.exp(-(((np.arange(column.leaves) - centre) / width) ** 2) / 2) + 1e-9
    bump[column.cells :] = 0.02 * bump.sum()
    return np.asarray(bump / bump.sum())


def written_plainly(column: Categorical | Numeric | Identifier) -> Categorical | Numeric | Identifier:
    """The attribute without a way of writing of its own: made-up values are numbers and days, and not texts."""
    return column.model_copy(update={"written": None}) if isinstance(column, Numeric) else column


def values_of(column: Predictor, codes: Integers) -> pa.Array:
    """Values that have these leaves."""
    if isinstance(column, Categorical):
        return pa.array(column.tree.leaves, pa.string()).take(pa.array(codes))
    missing = codes >= column.cells
    begins = column.edges[np.minimum(codes, column.cells - 1)]
    if column.is_date:
        return pa.array(begins.astype(np.int32), pa.int32(), mask=missing).cast(pa.date32())
    return pa.array(begins, mask=missing)
