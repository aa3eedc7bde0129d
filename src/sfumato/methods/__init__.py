"""The methods, by name. A method sees a meter and public facts; never an engine, a row or a random source."""

from __future__ import annotations

from sfumato.methods.base import Draft, Method
from sfumato.methods.diffgen import DiffGen
from sfumato.methods.diffmulti import DiffMulti

METHODS: dict[str, type[DiffGen] | type[DiffMulti]] = {"diffgen": DiffGen, "diffmulti": DiffMulti}

__all__ = ["METHODS", "DiffGen", "DiffMulti", "Draft", "Method"]
