"""Questions to a model: conditions are read into queries, answered block by block, and put together again.

A condition that is one box is one query. Any other is a union of disjoint boxes, of which counts add up. How the errors
of their counts hang together only the model knows, and it need not tell: standard deviations of sums are at most sums
of standard deviations, and likewise the scales of what a model had to assume. The rest of the people is a union of
boxes, too, and everyone less these is the same number of people; the smaller of the two errors is told. So an interval
of a union holds the truth at least as often as it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Floats
from sfumato.errors import QueryError
from sfumato.models.intervals import half_widths
from sfumato.models.model import LEVEL, Answers, Model, Query
from sfumato.schema.conditions import Covered, read_covered
from sfumato.schema.schema import Schema, variables_of

Condition = str | Mapping[str, Floats]
"""A condition in words, or weights of leaves by attribute; an attribute left out is not restricted."""
BLOCK_BYTES = 2**29
"""The most memory that answering a block of conditions may take, unless it is a single one."""
MOST_IN_BLOCK = 2**14
"""The most queries of a block."""


@dataclass(frozen=True, eq=False)
class Question:
    """One question: disjoint boxes that make it up, and those that make up the rest, if there are several."""

    text: str
    inside: tuple[Query, ...]
    outside: tuple[Query, ...] = ()

    @classmethod
    def of(cls, schema: Schema, text: str, covered: Covered) -> Question:
        """Write what is covered as queries; of several boxes the rest, and everyone, are asked for, too."""
        inside = tuple(_query(schema, text, box) for box in covered.inside)
        rest = tuple(_query(schema, "", box) for box in covered.outside)
        return cls(text, inside, (_query(schema, "", {}), *rest) if len(inside) > 1 and rest else ())

    @property
    def queries(self) -> tuple[Query, ...]:
        """All that is to be asked."""
        return self.inside + self.outside


def answers(model: Model, conditions: Sequence[Condition], place: Callable[[int], str]) -> Answers:
    """Answer conditions block by block; a mistake in one is told with its place."""
    if isinstance(conditions, str | Mapping):
        raise QueryError("conditions must be a list of them, and are a single one", "Use count, or a list of one.")
    return answer_questions(model, _read(model.schema, conditions, place))


def answer_questions(model: Model, questions: Iterator[Question]) -> Answers:
    """Answer questions block by block."""
    return Answers.joined([_answered(model, block) for block in _blocks(model, questions)])


def _read(schema: Schema, conditions: Sequence[Condition], place: Callable[[int], str]) -> Iterator[Question]:
    for number, condition in enumerate(conditions):
        try:
            yield read_question(schema, condition)
        except QueryError as error:
            raise QueryError(f"{place(number)}{error.problem}", error.remedy) from None


def _blocks(model: Model, questions: Iterator[Question]) -> Iterator[list[Question]]:
    """Yield questions in blocks that fit into memory."""
    block: list[Question] = []
    size = queries = 0
    for question in questions:
        needed = sum(map(model.bytes_for, question.queries))
        if block and (size + needed > BLOCK_BYTES or queries + len(question.queries) > MOST_IN_BLOCK):
            yield block
            block, size, queries = [], 0, 0
        block.append(question)
        size += needed
        queries += len(question.queries)
    if block:
        yield block


def _answered(model: Model, block: Sequence[Question]) -> Answers:
    """Ask all queries of a block at once, and add up those of one question."""
    found = model.answer([query for question in block for query in question.queries])
    if len(found) == len(block):
        return found
    parts, at = [], 0
    for question in block:
        middle, end = at + len(question.inside), at + len(question.queries)
        parts.append(_sum(question.text, found[at:middle], found[middle:end]))
        at = end
    return Answers.joined(parts)


def _sum(text: str, inside: Answers, outside: Answers) -> Answers:
    """Add up the counts of disjoint boxes; the error is theirs, or that of everyone and the others, if that is less."""
    sides = [one for one in (inside, outside) if len(one)]
    errors = [np.array([[one.noise.sum()], [one.untold.sum()]]) for one in sides]
    noise, untold = min(errors, key=lambda one: float(half_widths(LEVEL, *one)[0]))
    values, most = (np.array([one.sum()]) for one in (inside.values, inside.most))
    return Answers((text,), values, noise, untold, most, inside.cause)


def read_question(schema: Schema, condition: Condition) -> Question:
    """Read a condition in words, or check weights."""
    if isinstance(condition, str):
        return Question.of(schema, condition, read_covered(schema, condition))
    if not isinstance(condition, Mapping):
        raise QueryError(
            f"a condition ({condition!r:.40}) must be text, or weights of leaves by attribute",
            "Write for example: age >= 40 and sex = 'Female'.",
        )
    weights = _checked(schema, condition)
    return Question("", (_query(schema, f"weights of {', '.join(weights) or 'nothing'}", weights),))


def _query(schema: Schema, text: str, weights: Mapping[str, Floats]) -> Query:
    """Number the attributes; one that is restricted to all of its leaves is not restricted."""
    everyone = np.ones(len(schema.classes))
    named = {at: weights[name] for at, name in enumerate(schema.predictors) if name in weights}
    numbered = {at: one for at, one in named.items() if not (one == 1).all()}
    return Query(text, numbered, weights.get(schema.target or "", everyone))


def _checked(schema: Schema, weights: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Read weights by attribute; refuse attributes that there are not."""
    leaves = {name: column.leaves for name, column in variables_of(schema).items()}
    for name in weights:
        if name not in leaves:
            known = f"It has {', '.join(list(leaves)[:20])}."
            raise QueryError(f"weights of {str(name)[:40]} must be of an attribute of this release", known)
    return {name: _finite(name, given, leaves[name]) for name, given in weights.items()}


def _finite(name: str, given: ArrayLike, leaves: int) -> Floats:
    """Read the weights of one attribute, a finite number for each leaf. Truth values are weights, too: 0 and 1."""
    try:
        found = np.asarray(given)
    except ValueError:
        found = np.empty((0, 0), object)
    if found.dtype.kind not in "biuf" or found.shape != (leaves,) or not np.isfinite(found).all():
        told = f" ({len(found):,} numbers)" if found.dtype.kind in "biufc" and found.ndim == 1 else ""
        raise QueryError(
            f"weights of {name[:40]}{told} must be {leaves:,} finite numbers, one for each leaf",
            "Give 1 for a leaf that is meant and 0 for others.",
        )
    return found.astype(np.float64)
