"""One page about a release that opens without a network: its promise, its ledger, its shape and what it holds.

It is made from the release alone, and is as public as that; what the holder's own table adds is a section apart.
"""

from sfumato.report.page import Evaluated, report

__all__ = ["Evaluated", "report"]
