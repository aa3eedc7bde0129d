"""Attack a method's claim, from outside and from inside.

`attack` publishes neighbouring tables many times and tries to tell them apart; it believes neither the meter's books
nor the proofs. `search` replays single publications on neighbours and adds up what their answers tell, exactly. Neither
reads anyone's table, only tiny ones of their own.
"""

from __future__ import annotations

from sfumato.audit.attack import Finding, attack
from sfumato.audit.events import PAIRS, Pair
from sfumato.audit.exact import ExactFinding, Transcript, exact_loss, search

__all__ = ["PAIRS", "ExactFinding", "Finding", "Pair", "Transcript", "attack", "exact_loss", "search"]
