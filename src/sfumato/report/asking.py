"""What the report asks of a release: parts of attributes, random questions, many at once.

Questions are drawn with
a fixed seed from what is public, the schema and the regions, so whoever has the release draws the same: some at the
release's own borders, where the model assumes nothing, some at any.

Answers and their errors are the release's own, as `count` gives them: squares of noise and model add up to the square
of the whole error, so the share of an error that is the model's is one of squares.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato import (
    Answers,
    Bins,
    Categorical,
    Condition,
    Numeric,
    Release,
    Schema,
    bins_of,
    every_bins,
    percent,
    read_condition,
)
from sfumato.arrays import Floats, Integers
from sfumato.errors import QueryError

__all__ = [
    "Asked",
    "Bins",
    "bins_of",
    "every_bins",
    "model_shares",
    "questions_to",
    "said_of",
    "together",
    "whose_error",
]

Leaves = Mapping[str, Integers]
"""By attribute, the leaves that are meant."""
LEAST_TOLD = 0.005
"""The least share of an error that is worth a word."""
MOST_RESTRICTED = 3
"""The most attributes that a question restricts."""
MOST_LISTED = 5
"""The most values that a written question lists."""
WORDS = ("and", "between", "in", "is", "missing", "not", "or")
"""Words of conditions, which a name must be quoted to be told from."""


def together(release: Release, groups: Sequence[Sequence[Condition]]) -> list[Answers]:
    """Answer groups of questions, all in one pass over the regions."""
    answers = release.count_many([one for group in groups for one in group])
    ends = list(itertools.accumulate(map(len, groups), initial=0))
    return [answers[start:end] for start, end in itertools.pairwise(ends)]


def model_shares(answers: Answers) -> Floats:
    """The share of each answer's squared error that is the model's; nothing of no error."""
    whole = answers.stddevs**2
    return np.asarray(np.where(whole > 0, answers.model**2 / np.where(whole > 0, whole, 1.0), 0.0))


def whose_error(answers: Answers) -> str:
    """Say whose the error of some answers is, all together."""
    whole, model = float((answers.stddevs**2).sum()), float((answers.model**2).sum())
    if not whole:
        return "Exact."
    share = model / whole
    if share < LEAST_TOLD:
        return f"All of the error is {answers.cause}."
    if share > 1 - LEAST_TOLD:
        return "All of the error is the model's."
    return f"Of the squared error {percent(share)} is the model's, the rest is {answers.cause}."


@dataclass(frozen=True, eq=False)
class Asked:
    """A question: the leaves that it allows."""

    leaves: Leaves
    schema: Schema

    @property
    def weights(self) -> dict[str, Floats]:
        """The question as weights of leaves."""
        return {
            name: np.isin(np.arange(self.schema.predictors[name].leaves), chosen).astype(np.float64)
            for name, chosen in self.leaves.items()
        }

    @property
    def words(self) -> str | None:
        """The question as a condition; None if that cannot be said, or would be long."""
        said = [said_of(self.schema, name, chosen) for name, chosen in self.leaves.items()]
        return None if None in said or len(said) > MOST_RESTRICTED else " and ".join(filter(None, said))


def questions_to(release: Release, count: int, seed: int) -> list[Asked]:
    """Draw so many questions, half of them at the release's own borders where it has any."""
    rng = np.random.default_rng(seed)
    schema = release.schema
    if not any(column.leaves > 1 for column in schema.predictors.values()):
        return []
    return [_question(release, rng, number % 2 == 0) for number in range(count)]


def _question(release: Release, rng: np.random.Generator, own: bool) -> Asked:
    names = list(release.schema.predictors)
    found = release.model.own_query(rng) if own else None
    if found is None:
        return Asked(_anywhere(release.schema, rng), release.schema)
    return Asked({names[at]: leaves for at, leaves in found.items()}, release.schema)


def _anywhere(schema: Schema, rng: np.random.Generator) -> Leaves:
    """Restrict one to three attributes: to an interval between two borders of cells, or to a category."""
    columns = {name: column for name, column in schema.predictors.items() if column.leaves > 1}
    return {name: _range(columns[name], rng) for name in _some(list(columns), rng)}


def _some(names: list[str], rng: np.random.Generator) -> list[str]:
    size = min(int(rng.integers(1, MOST_RESTRICTED + 1)), len(names))
    return [names[one] for one in sorted(rng.choice(len(names), size, replace=False).tolist())]


def _range(column: Categorical | Numeric, rng: np.random.Generator) -> Integers:
    if isinstance(column, Numeric):
        lo = int(rng.integers(column.cells))
        return np.arange(lo, int(rng.integers(lo + 1, column.cells + (lo > 0))) if column.cells > 1 else column.cells)
    lo, hi = 0, column.leaves
    for _ in range(int(rng.integers(1, 3))):
        if borders := column.children(lo, hi):
            pick = int(rng.integers(len(borders) - 1))
            lo, hi = borders[pick], borders[pick + 1]
    return np.arange(lo, hi)


def said_of(schema: Schema, name: str, leaves: Integers) -> str | None:
    """Write that an attribute has one of some leaves, if the grammar of conditions can say just that.

    >>> schema = Schema.loads("attributes: {age: {kind: numeric, lower: 17, upper: 90}}")
    >>> said_of(schema, "age", np.arange(3, 9)), said_of(schema, "age", np.arange(70, 74))
    ('age >= 20 and age < 26', 'age >= 87')
    """
    column = schema.predictors[name]
    quoted = name if name.isidentifier() and name.lower() not in WORDS else f'"{name}"'
    tried = (
        _number_words(quoted, column, leaves) if isinstance(column, Numeric) else _value_words(quoted, column, leaves)
    )
    for words in tried:
        try:
            said = read_condition(schema, words)
        except QueryError:
            continue
        if list(said) == [name] and np.array_equal(np.flatnonzero(said[name] > 0), leaves):
            return words
    return None


def _number_words(quoted: str, column: Numeric, leaves: Integers) -> list[str]:
    lo, hi = int(leaves[0]), int(leaves[-1]) + 1
    if hi > column.cells:
        return []
    above, below = f"{quoted} >= {column.edge(lo)}", f"{quoted} < {column.edge(hi)}"
    return [above if hi == column.cells and lo else below if not lo else f"{above} and {below}"]


def _value_words(quoted: str, column: Categorical, leaves: Integers) -> list[str]:
    names = [column.label(leaf, leaf + 1) for leaf in leaves.tolist()]
    listed = ", ".join(f"'{_doubled(one)}'" for one in names)
    whole = column.label(int(leaves[0]), int(leaves[-1]) + 1)
    return [f"{quoted} = '{_doubled(whole)}'", *([f"{quoted} in ({listed})"] if len(names) <= MOST_LISTED else [])]


def _doubled(text: str) -> str:
    return text.replace("'", "''")
