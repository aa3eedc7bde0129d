"""Attack a method's claim: it publishes neighbouring tables many times, and someone tries to tell them apart.

The attack reads no one's table, only tiny ones of its own, and believes neither the meter's books nor the proofs.
"""

from __future__ import annotations

from sfumato.audit.attack import Finding, attack
from sfumato.audit.events import PAIRS, Pair

__all__ = ["PAIRS", "Finding", "Pair", "attack"]
