"""One page about a release that opens without a network: its promise, its ledger, its shape and what it holds.

It is made from the release alone, and is as public as that. What the holder's own table adds is a section of its own,
and then the page is for the holder alone.
"""

from sfumato.report.page import Evaluated, report

__all__ = ["Evaluated", "report"]
