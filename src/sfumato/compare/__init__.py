"""Compare methods on one table: each is published again and again with known seeds, and measured by raw rows.

Nothing here is private, and no release is kept: what is found is for the holder, who has a method to choose.
"""

from sfumato.compare.contest import Contest, Contestant, open_contest
from sfumato.compare.results import Results, carry_out_contest

__all__ = ["Contest", "Contestant", "Results", "carry_out_contest", "open_contest"]
