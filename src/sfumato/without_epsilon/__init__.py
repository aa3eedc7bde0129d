"""The methods without epsilon, by name: they see exact counts, promise something else, and say so."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.without_epsilon.confidence import Confidence
from sfumato.without_epsilon.method import MethodWithoutEpsilon
from sfumato.without_epsilon.mondrian import Mondrian
from sfumato.without_epsilon.tds import TDS

WITHOUT_EPSILON: Mapping[str, type[MethodWithoutEpsilon]] = {one.name: one for one in (Confidence, Mondrian, TDS)}

__all__ = ["TDS", "WITHOUT_EPSILON", "Confidence", "MethodWithoutEpsilon", "Mondrian"]
