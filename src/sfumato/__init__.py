"""Publish a table about people so that analysts can use it and nobody can find a person in it."""

from __future__ import annotations

from importlib.metadata import version

from sfumato import datasets
from sfumato.account import Account
from sfumato.errors import SfumatoError
from sfumato.holder import check, cocluster, draft
from sfumato.methods import METHODS, CDiffGen, DiffGen, DiffMulti, DPCocGen, Laplace
from sfumato.models.model import Estimate
from sfumato.release.release import Release
from sfumato.release.verify import verify
from sfumato.schema.schema import Schema
from sfumato.schema.taxonomy import Taxonomy
from sfumato.without_epsilon import TDS, WITHOUT_EPSILON, Confidence, Mondrian

__version__ = version("sfumato")

__all__ = [
    "METHODS",
    "TDS",
    "WITHOUT_EPSILON",
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
