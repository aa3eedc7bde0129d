"""The methods, by name. A method sees a meter and public facts; never an engine, a row or a random source.

To add one, write its file and import its class here.
"""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.methods.cdiffgen import CDiffGen as CDiffGen
from sfumato.methods.diffgen import DiffGen as DiffGen
from sfumato.methods.diffmulti import DiffMulti as DiffMulti
from sfumato.methods.diffp_c45 import DiffPC45 as DiffPC45
from sfumato.methods.dpcocgen import DPCocGen as DPCocGen
from sfumato.methods.dpcube import DPCube as DPCube
from sfumato.methods.efpa import EFPA as EFPA
from sfumato.methods.hay import Hay as Hay
from sfumato.methods.laplace import Laplace as Laplace
from sfumato.methods.marginals import Marginals as Marginals
from sfumato.methods.method import Method as Method
from sfumato.methods.method import registered
from sfumato.methods.noisefirst import NoiseFirst as NoiseFirst
from sfumato.methods.phpartition import PHPartition as PHPartition
from sfumato.methods.privbayes import PrivBayes as PrivBayes
from sfumato.methods.privelet import Privelet as Privelet
from sfumato.methods.rps import RPS as RPS
from sfumato.methods.structurefirst import StructureFirst as StructureFirst
from sfumato.schema.schema import Schema

METHODS: Mapping[str, type[Method]] = registered(globals().values(), Method)
WITH_CLASS, WITHOUT_CLASS = DiffGen.name, Marginals.name
"""The methods where none is named: of those that can publish any table, one that tells the class and counts, and the
one that answers counts best (docs/marginals.md)."""


def usual_method(schema: Schema) -> str:
    """Name the method for a schema where none is named."""
    return WITHOUT_CLASS if schema.target is None else WITH_CLASS
