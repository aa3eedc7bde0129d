"""The coding of a whole table as one query, and the refusal of what does not fit, as the memory path refuses it.

It stands apart because every engine codes, checks and refuses alike: before the first debit, naming columns and
numbers of rows, to the holder, and no value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sfumato.engines.codes import Coding, Dictionary
from sfumato.engines.dialect import Dialect
from sfumato.io.encode import Coded, Misfit, refuse_misfits
from sfumato.io.values import REASONS
from sfumato.schema import Predictor, Schema

CLASS = "k"


@dataclass(frozen=True)
class TableCoding:
    """The codings of the columns that are read, by what the coded column is called."""

    codings: Mapping[str, Coding]
    names: Mapping[str, str]
    """the column of the table behind each coded one"""

    @classmethod
    def of(cls, schema: Schema, code: Callable[[str, Predictor, int], Coding]) -> TableCoding:
        """Code the predictors as c0, c1, ... and the class as k, each by a rule for its name, facts and place."""
        columns: dict[str, tuple[str, Predictor]] = {
            f"c{place}": (name, facts) for place, (name, facts) in enumerate(schema.predictors.items())
        }
        if schema.target is not None:
            target = schema.attributes[schema.target]
            assert target.kind == "class"
            columns[CLASS] = (schema.target, target)
        return cls(
            {column: code(name, facts, place) for place, (column, (name, facts)) in enumerate(columns.items())},
            {column: name for column, (name, _) in columns.items()},
        )

    @property
    def dictionaries(self) -> list[Dictionary]:
        """All small tables in which something is looked up."""
        return [one for coding in self.codings.values() for one in coding.dictionaries]

    def query(self, source: str, words: Dialect, tables: Mapping[str, str]) -> str:
        """Code every row of a source; dictionaries have the given names."""
        readings = ", ".join(
            f"{told} AS {alias}" for coding in self.codings.values() for alias, told in coding.readings.items()
        )
        slots = [
            f"CAST({coding.slot} AS {words.code_type(coding.slots)}) AS {column}"
            for column, coding in self.codings.items()
        ]
        if CLASS not in self.codings:
            slots.append(f"CAST(0 AS {words.code_type(1)}) AS {CLASS}")
        joins = "".join(
            f" LEFT JOIN {tables[one.alias]} AS {one.alias} ON {one.alias}.key = {one.wanted}"
            for one in self.dictionaries
        )
        return f"SELECT {', '.join(slots)} FROM (SELECT {readings} FROM {source}) AS readings{joins}"

    def misfits_query(self, rows: str) -> str:
        """Count, for each column and reason, the rows that have no leaf: one scan and one row."""
        asked = [
            f"count(CASE WHEN {column} = {slot} THEN 1 END)"
            for column, coding in self.codings.items()
            for slot in range(coding.leaves, coding.slots)
        ]
        return f"SELECT {', '.join(asked)} FROM {rows}"

    def refuse(self, counted: list[int]) -> None:
        """Refuse a table of which some rows have no leaf, by these counts."""
        places = [
            (self.names[column], coding.reason(slot))
            for column, coding in self.codings.items()
            for slot in range(coding.leaves, coding.slots)
        ]
        found = sorted(zip(places, counted, strict=True))
        misfits = [Misfit(name, REASONS[reason], rows) for (name, reason), rows in found if rows]
        refuse_misfits(Coded({}, 0, tuple(misfits)))
