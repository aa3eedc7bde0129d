"""The scores, by name: a method names one and cannot pass a function of its own."""

from __future__ import annotations

from typing import Literal

from sfumato.privacy.class_scores import BalancedMax, Deviation, InfoGain, Max, WeightedGain
from sfumato.privacy.general_scores import CertaintyGain, Discernibility, PenaltyLeft
from sfumato.privacy.score import Score

Selection = Literal["permute-and-flip", "exponential"]
"""How one of several scored candidates is chosen."""

SCORES: dict[str, type[Score]] = {
    Max.name: Max,
    BalancedMax.name: BalancedMax,
    InfoGain.name: InfoGain,
    WeightedGain.name: WeightedGain,
    Deviation.name: Deviation,
    Discernibility.name: Discernibility,
    CertaintyGain.name: CertaintyGain,
    PenaltyLeft.name: PenaltyLeft,
}


def sides(score: type[Score], selection: Selection) -> int:
    """Give how many sensitivities the gap between two scores may change by.

    One record moves two scores apart by two sensitivities, or by one if it moves all scores in one direction. The
    exponential mechanism is here to do what the papers do, and keeps the factor 2.
    """
    return 1 if score.monotone and selection == "permute-and-flip" else 2


__all__ = [
    "SCORES",
    "BalancedMax",
    "CertaintyGain",
    "Deviation",
    "Discernibility",
    "InfoGain",
    "Max",
    "PenaltyLeft",
    "Score",
    "Selection",
    "WeightedGain",
    "sides",
]
