"""The methods without epsilon, by name: they see exact counts, promise something else, and say so."""

from __future__ import annotations

from sfumato.without_epsilon.confidence import Confidence
from sfumato.without_epsilon.method import SyntacticMethod
from sfumato.without_epsilon.mondrian import Mondrian
from sfumato.without_epsilon.tds import TDS

SYNTACTIC: dict[str, type[Confidence] | type[Mondrian] | type[TDS]] = {
    method.name: method for method in (Confidence, Mondrian, TDS)
}

__all__ = ["SYNTACTIC", "TDS", "Confidence", "Mondrian", "SyntacticMethod"]
