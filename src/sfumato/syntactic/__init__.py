"""The methods without epsilon, by name: they see exact counts, promise something else, and say so."""

from __future__ import annotations

from sfumato.syntactic.base import SyntacticMethod
from sfumato.syntactic.confidence import Confidence
from sfumato.syntactic.mondrian import Mondrian
from sfumato.syntactic.tds import TDS

SYNTACTIC: dict[str, type[Confidence] | type[Mondrian] | type[TDS]] = {
    method.name: method for method in (Confidence, Mondrian, TDS)
}

__all__ = ["SYNTACTIC", "TDS", "Confidence", "Mondrian", "SyntacticMethod"]
