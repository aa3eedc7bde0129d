"""Attacking a method's claim: it publishes neighbouring tables many times, and someone tries to tell them apart.

It stands apart because it is no part of publishing: it reads no one's table, only tiny ones of its own, and it believes
neither the meter's books nor the proofs.
"""

from __future__ import annotations

from sfumato.audit.attack import Finding, attack
from sfumato.audit.events import PAIRS, Pair

__all__ = ["PAIRS", "Finding", "Pair", "attack"]
