"""What coding inside an engine is made of: kinds of columns, slots, dictionaries."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sfumato.attributes import Numeric
from sfumato.engines.dialect import Dialect
from sfumato.io import values as reading
from sfumato.schema import Predictor

NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"


class Kind(enum.Enum):
    """What the values of a column are, as far as their coding is concerned."""

    TEXT = enum.auto()
    TRUTH = enum.auto()
    WHOLE = enum.auto()
    """whole numbers of at most 64 bits, with a sign"""
    REAL = enum.auto()
    SINGLE = enum.auto()
    DECIMAL = enum.auto()
    """numbers that are exact, of any length"""
    DAY = enum.auto()
    MOMENT = enum.auto()
    """points in time without a zone"""
    NESTED = enum.auto()
    OTHER = enum.auto()


@dataclass(frozen=True)
class Dictionary:
    """A small public table: the slot of each key. Rows look up what `wanted` says."""

    alias: str
    wanted: str
    keys: pa.Array[Any]
    slots: tuple[int, ...]

    @property
    def slot(self) -> str:
        """What was found, in SQL; NULL if nothing was."""
        return f"{self.alias}.slot"


@dataclass(frozen=True)
class Coding:
    """How one column is coded: what is read of each value, where that is looked up, and the slot that follows."""

    leaves: int
    slot: str
    readings: dict[str, str] = field(default_factory=dict)
    dictionaries: tuple[Dictionary, ...] = ()

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return self.leaves + len(reading.REASONS)

    def reason(self, slot: int) -> int:
        """Tell why a slot is no leaf."""
        return slot - self.leaves + 1


@dataclass(frozen=True)
class Slots:
    """The slots of an attribute."""

    leaves: int
    missing: int

    @classmethod
    def of(cls, facts: Predictor) -> Slots:
        own = facts.cells if isinstance(facts, Numeric) and facts.missing is not None else None
        return cls(facts.leaves, facts.leaves + reading.MISSING - 1 if own is None else own)

    def misfit(self, reason: int) -> int:
        return self.leaves + reason - 1

    def found(self, code: int, reason: int) -> int:
        return code if reason == reading.FINE else self.misfit(reason)


def stripped(column: str, words: Dialect) -> str:
    """Read a column as text without the blanks around it."""
    return words.stripped(f"CAST({column} AS {words.text_type})")
