"""The methods without epsilon, by name: they see exact counts, and promise something else than an epsilon.

To add one, write its file and import its class here.
"""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.methods.method import registered
from sfumato.without_epsilon.confidence import Confidence as Confidence
from sfumato.without_epsilon.method import MethodWithoutEpsilon as MethodWithoutEpsilon
from sfumato.without_epsilon.mondrian import Mondrian as Mondrian
from sfumato.without_epsilon.tds import TDS as TDS

WITHOUT_EPSILON: Mapping[str, type[MethodWithoutEpsilon]] = registered(globals().values(), MethodWithoutEpsilon)
