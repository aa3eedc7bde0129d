"""Public knowledge as its holder writes it down: tables of probabilities, and of rules.

`attribute,value,probability`: the values of one attribute are leaves, categories or intervals such as `[20, 25)` that
hold every leaf once; inside one, leaves are equally probable. `condition,value,probability`: how probable a sensitive
value is among people of a condition.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato.errors import MethodError, QueryError
from sfumato.exact import read_fraction
from sfumato.release.promises import Knowledge, Rule, Source
from sfumato.schema.attributes import Identifier, Numeric
from sfumato.schema.conditions import read_condition
from sfumato.schema.schema import Predictor, Schema

Part = tuple[NDArray[np.bool_], Fraction]
"""Leaves, and what is the probability of all of them."""

INTERVAL = re.compile(r"\[\s*([^,\s]+)\s*,\s*([^,\s]+)\s*([)\]])")
TOLERANCE = Fraction(1, 1000)
"""By so much may the probabilities of an attribute miss one, since they are rounded when they are written down."""


def read_knowledge(statistics: str, rules: str | None, schema: Schema, source: Source) -> Knowledge:
    """Read probabilities of all leaves of a narrowed schema, and rules."""
    columns = {name: column for name, column in schema.attributes.items() if not isinstance(column, Identifier)}
    found: dict[str, list[Part]] = {name: [] for name in columns}
    for row, (name, value, chance) in _rows("statistics", statistics, ("attribute", "value", "probability")):
        if name in found:
            found[name].append((_leaves(schema, name, value, row), _probability("statistics", row, chance)))
    marginals = {name: _marginal(name, column, found[name]) for name, column in columns.items()}
    sensitive = marginals.pop(str(schema.target))
    return Knowledge(tuple(marginals.values()), sensitive, tuple(_rules(rules or "", schema)), source)


def write_statistics(marginals: Mapping[str, Sequence[tuple[str, Fraction]]]) -> str:
    """Write probabilities of named values, as they are read."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("attribute", "value", "probability"))
    writer.writerows((name, value, str(chance)) for name, parts in marginals.items() for value, chance in parts)
    return text.getvalue()


def _rows(what: str, text: str, names: tuple[str, str, str]) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """Give the rows of a CSV text with their numbers."""
    try:
        rows = list(csv.DictReader(io.StringIO(text), skipinitialspace=True))
    except csv.Error:
        raise MethodError(f"the {what} must be a CSV file, and are none", "Write it as UTF-8, with commas.") from None
    for row, fields in enumerate(rows, start=2):
        first, second, third = (fields.get(name) for name in names)
        if first is None or second is None or third is None:
            raise MethodError(
                f"row {row} of the {what} must have the columns {', '.join(names)}",
                "Begin the file with a row of these names.",
            )
        yield row, (first.strip(), second.strip(), third.strip())


def _probability(what: str, row: int, text: str) -> Fraction:
    chance = read_fraction(text)
    if chance is None or not 0 <= chance <= 1:
        raise MethodError(
            f"row {row} of the {what}: probability ({text[:40]}) must be a number from 0 to 1", "Correct it."
        )
    return chance


def _leaves(schema: Schema, name: str, value: str, row: int) -> NDArray[np.bool_]:
    """Find the leaves that a value of an attribute means."""
    interval = INTERVAL.fullmatch(value) if isinstance(schema.attributes[name], Numeric) else None
    quoted = value.replace("'", "''")
    condition = f"\"{name}\" = '{quoted}'"
    if interval:
        condition = f'"{name}" >= {interval[1]} and "{name}" {"<" if interval[3] == ")" else "<="} {interval[2]}'
    try:
        weights = read_condition(schema, condition)[name]
    except QueryError as error:
        raise MethodError(f"row {row} of the statistics: {error.problem}", error.remedy) from None
    return _whole(weights, f"row {row} of the statistics: value ({value[:40]})")


def _whole(weights: Floats, what: str) -> NDArray[np.bool_]:
    """Take weights of leaves for leaves, refusing parts of one, and none at all."""
    if not np.isin(weights, (0.0, 1.0)).all() or not weights.any():
        raise MethodError(f"{what} must be made of leaves of the schema", "Follow the borders of its grid.")
    return weights > 0


def _marginal(name: str, column: Predictor, parts: Sequence[Part]) -> Floats:
    """Put the probabilities of an attribute's values together."""
    covered = np.zeros(column.leaves, np.int64)
    for leaves, _ in parts:
        covered += leaves
    for wrong, what in ((covered == 0, "a probability"), (covered > 1, "one probability only")):
        if wrong.any():
            leaf = int(np.argmax(wrong))
            raise MethodError(
                f"every leaf of {name} must have {what} in the statistics ({column.label(leaf, leaf + 1)})",
                "Add or remove its row.",
            )
    total = sum((chance for _, chance in parts), Fraction(0))
    if abs(total - 1) > TOLERANCE:
        raise MethodError(
            f"the probabilities of {name} ({float(total):.6g}) must sum to one", "Correct the statistics."
        )
    return np.asarray(np.sum([leaves * float(chance / total / int(leaves.sum())) for leaves, chance in parts], axis=0))


def _rules(text: str, schema: Schema) -> list[Rule]:
    """Read rules, those of one condition together."""
    chances: dict[str, dict[int, float]] = {}
    for row, (condition, value, chance) in _rows("rules", text, ("condition", "value", "probability")):
        if value not in schema.classes:
            raise MethodError(
                f"row {row} of the rules: value ({value[:40]}) must be a value of {schema.target}",
                f"It has {', '.join(schema.classes[:20])}.",
            )
        own = chances.setdefault(condition, {})
        if schema.classes.index(value) in own:
            raise MethodError(f"row {row} of the rules must not repeat another", "Leave one of the two out.")
        own[schema.classes.index(value)] = float(_probability("rules", row, chance))
    return [Rule(_where(condition, schema), own) for condition, own in chances.items()]


def _where(condition: str, schema: Schema) -> dict[int, tuple[tuple[int, int], ...]]:
    """Read a condition on quasi-identifiers as ranges of leaves."""
    what = f"condition ({condition[:60]}) of the rules"
    try:
        covered = read_condition(schema, condition)
    except QueryError as error:
        raise MethodError(f"{what}: {error.problem}", error.remedy) from None
    if schema.target in covered:
        raise MethodError(f"{what} must not be about {schema.target}", "Use quasi-identifiers alone.")
    places = {name: at for at, name in enumerate(schema.predictors)}
    return {places[name]: _ranges(_whole(weights, what)) for name, weights in covered.items()}


def _ranges(leaves: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """Write leaves as ranges."""
    ends = np.flatnonzero(np.diff(leaves, prepend=False, append=False)).tolist()
    return tuple((lo, hi) for at, (lo, hi) in enumerate(pairwise(ends)) if at % 2 == 0)
