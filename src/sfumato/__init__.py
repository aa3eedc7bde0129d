"""Publish a table about people so that analysts can use it and nobody can find a person in it."""

from __future__ import annotations

from importlib.metadata import version

from sfumato import datasets
from sfumato.account import Account
from sfumato.errors import SfumatoError
from sfumato.holder import check, cocluster, draft
from sfumato.methods import METHODS, CDiffGen, DiffGen, DiffMulti, DPCocGen, Laplace
from sfumato.release.answers import Estimate
from sfumato.release.release import Release
from sfumato.release.verification import verify
from sfumato.schema import Schema
from sfumato.syntactic import SYNTACTIC, TDS, Confidence, Mondrian
from sfumato.taxonomy import Taxonomy

__version__ = version("sfumato")

__all__ = [
    "METHODS",
    "SYNTACTIC",
    "TDS",
    "Account",
    "CDiffGen",
    "Confidence",
    "DPCocGen",
    "DiffGen",
    "DiffMulti",
    "Estimate",
    "Laplace",
    "Mondrian",
    "Release",
    "Schema",
    "SfumatoError",
    "Taxonomy",
    "__version__",
    "check",
    "cocluster",
    "datasets",
    "draft",
    "verify",
]
