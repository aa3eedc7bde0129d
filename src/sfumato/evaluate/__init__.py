"""Measures of what a release is worth. They read raw data, so their results are for the holder and never enter a
release.
"""

from sfumato.evaluate.card import Scorecard, scorecard

__all__ = ["Scorecard", "scorecard"]
