"""One page about a release that opens without a network: what it holds and is good for, its promise, its shape.

It is made from the release alone, and is as public as that. What the holder's own table adds is a section of its own,
and then the page is for the holder alone.
"""

from sfumato.report.page import Evaluated, evaluation_page, holders_page, report

__all__ = ["Evaluated", "evaluation_page", "holders_page", "report"]
