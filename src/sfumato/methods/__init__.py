"""The methods, by name. A method sees a meter and public facts; never an engine, a row or a random source."""

from __future__ import annotations

from sfumato.methods.cdiffgen import CDiffGen
from sfumato.methods.diffgen import DiffGen
from sfumato.methods.diffmulti import DiffMulti
from sfumato.methods.dpcocgen import DPCocGen
from sfumato.methods.laplace import Laplace
from sfumato.methods.method import Draft, Method

METHODS: dict[str, type[DiffGen] | type[CDiffGen] | type[DiffMulti] | type[DPCocGen] | type[Laplace]] = {
    method.name: method for method in (DiffGen, CDiffGen, DiffMulti, DPCocGen, Laplace)
}

__all__ = ["METHODS", "CDiffGen", "DPCocGen", "DiffGen", "DiffMulti", "Draft", "Laplace", "Method"]
