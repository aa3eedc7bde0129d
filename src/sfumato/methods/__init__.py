"""The methods, by name. A method sees a meter and public facts; never an engine, a row or a random source."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.methods.cdiffgen import CDiffGen
from sfumato.methods.diffgen import DiffGen
from sfumato.methods.diffmulti import DiffMulti
from sfumato.methods.dpcocgen import DPCocGen
from sfumato.methods.laplace import Laplace
from sfumato.methods.method import Method

METHODS: Mapping[str, type[Method]] = {one.name: one for one in (DiffGen, CDiffGen, DiffMulti, DPCocGen, Laplace)}

__all__ = ["METHODS", "CDiffGen", "DPCocGen", "DiffGen", "DiffMulti", "Laplace", "Method"]
