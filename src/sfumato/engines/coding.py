"""From values to leaf codes inside an engine: the rules of `io.encode`, written as SQL from the public schema.

A row's codes must be the same on every engine, to the last bit of a float, or releases would differ and, worse, the
proof that one record moves one row would be about another program. So names are looked up in dictionaries that the one
and only finder of leaves has filled, numbers meet the same comparisons in the same order, and where a column's type
is too odd for SQL there is no coding here, and the engine must do otherwise.

What comes out is a *slot*: a leaf's code or, from the number of leaves on, the reason why there is none.
"""

from __future__ import annotations

from sfumato.attributes import Categorical, Numeric
from sfumato.engines.codes import Coding, Kind, Slots
from sfumato.engines.coding_grids import DayCoding, NumberCoding
from sfumato.engines.coding_names import NameCoding
from sfumato.engines.dialect import Dialect
from sfumato.io import values as reading
from sfumato.io.encode import absent_of
from sfumato.io.wording import UNREADABLE_TEXT
from sfumato.schema import Predictor


def coding_of(facts: Predictor, missing: list[str], kind: Kind, column: str, at: int, words: Dialect) -> Coding | None:
    """Write the coding of a column, whose SQL is given, as the one at some place; None if SQL cannot do it."""
    if kind is Kind.OTHER:
        return None
    absent = absent_of(facts, missing)
    if kind is Kind.NESTED:
        slots = Slots.of(facts)
        told = (
            f"CASE WHEN {column} IS NULL THEN {slots.misfit(reading.MISSING)} ELSE {slots.misfit(reading.NESTED)} END"
        )
        return Coding(facts.leaves, f"r{at}", {f"r{at}": told})
    if kind is Kind.DAY and not (isinstance(facts, Numeric) and facts.is_date):
        kind, column = Kind.TEXT, _written_day(column, words)
    if isinstance(facts, Categorical):
        return NameCoding(facts, absent, column, at, words).coding(kind)
    if facts.is_date:
        return DayCoding(facts, absent, column, at, words).coding(kind)
    return NumberCoding(facts, absent, column, at, words).coding(kind)


def _written_day(day: str, words: Dialect) -> str:
    """Write a day as Python does, which knows four digits of a year; engines know more, and days without end."""
    known = f"{day} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
    written = f"CAST({day} AS {words.text_type})"
    return f"CASE WHEN {known} THEN {written} WHEN {day} IS NOT NULL THEN {words.literal(UNREADABLE_TEXT)} END"
