"""The methods, by name. A method sees a meter and public facts; never an engine, a row or a random source."""

from __future__ import annotations

from sfumato.methods.base import Draft, Method
from sfumato.methods.diffgen import DiffGen

METHODS: dict[str, type[DiffGen]] = {"diffgen": DiffGen}

__all__ = ["METHODS", "DiffGen", "Draft", "Method"]
