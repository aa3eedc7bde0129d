"""Conditions put to a release, one or a hundred thousand: read into weights, then answered block by block.

A block is as many conditions as fit into a given memory, whatever they restrict; one condition is a block of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Floats
from sfumato.errors import QueryError
from sfumato.models.model import Answers, Model, Query
from sfumato.schema.conditions import read_condition
from sfumato.schema.schema import Schema, variables_of

Condition = str | Mapping[str, Floats]
"""Words, or weights of leaves by attribute; an attribute left out is not restricted."""

BLOCK_BYTES = 2**29
MOST_IN_BLOCK = 2**14


def answers(model: Model, conditions: Sequence[Condition], place: Callable[[int], str]) -> Answers:
    """Answer conditions; a mistake in one is told with its place."""
    if isinstance(conditions, str | Mapping):
        raise QueryError("conditions must be a list of them, and are a single one", "Use count, or a list of one.")
    return Answers.joined([model.answer(block) for block in _blocks(model, conditions, place)])


def _blocks(model: Model, conditions: Sequence[Condition], place: Callable[[int], str]) -> Iterator[list[Query]]:
    """Read conditions until they fill a block."""
    block: list[Query] = []
    size = 0
    for number, condition in enumerate(conditions):
        try:
            query = read_query(model.schema, condition)
        except QueryError as error:
            raise QueryError(f"{place(number)}{error.problem}", error.remedy) from None
        needed = model.bytes_for(query)
        if block and (size + needed > BLOCK_BYTES or len(block) == MOST_IN_BLOCK):
            yield block
            block, size = [], 0
        block.append(query)
        size += needed
    if block:
        yield block


def read_query(schema: Schema, condition: Condition) -> Query:
    """Read words, or check weights."""
    if not isinstance(condition, str | Mapping):
        raise QueryError(
            f"a condition ({condition!r:.40}) must be text, or weights of leaves by attribute",
            "Write for example: age >= 40 and sex = 'Female'.",
        )
    weights = _checked(schema, read_condition(schema, condition) if isinstance(condition, str) else condition)
    text = condition if isinstance(condition, str) else f"weights of {', '.join(weights) or 'nothing'}"
    everyone = np.ones(len(schema.classes))
    numbered = {at: weights[name] for at, name in enumerate(schema.predictors) if name in weights}
    return Query(text, numbered, weights.get(schema.target or "", everyone))


def _checked(schema: Schema, weights: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Read weights as numbers, of which each leaf of an attribute has one."""
    leaves = {name: column.leaves for name, column in variables_of(schema).items()}
    for name in weights:
        if name not in leaves:
            known = f"It has {', '.join(list(leaves)[:20])}."
            raise QueryError(f"weights of {str(name)[:40]} must be of an attribute of this release", known)
    return {name: _finite(name, given, leaves[name]) for name, given in weights.items()}


def _finite(name: str, given: ArrayLike, leaves: int) -> Floats:
    """Read the weights of one attribute. Truth values are weights, too: 0 and 1."""
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
