"""What is measured of every release in a comparison, by name: what stands on the axis, and which way is better."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from sfumato.errors import MethodError
from sfumato.evaluate.learners import LEARNERS, Learner
from sfumato.evaluate.marginals import WAYS

Group = Literal["classification", "learners", "information", "marginals", "queries", "clusters", "cost"]
GROUPS: dict[Group, str] = {
    "classification": "a tree on groups, regions, naive Bayes, logistic regression",
    "learners": "the other learners",
    "information": "discernibility, NCP, precision",
    "marginals": "Hellinger and total variation of 1-, 2- and 3-way marginals",
    "queries": "relative errors of random range counts",
    "clusters": "Match Point",
    "cost": "seconds and memory of publishing",
}
"""What a group holds."""
LEAN: tuple[Group, ...] = ("classification", "information", "marginals", "queries", "cost")
"""Measured unless said otherwise: a few seconds for each run on a table like Adult."""
FEW: tuple[Learner, ...] = ("naive Bayes", "logistic regression")
OTHERS: tuple[Learner, ...] = tuple(learner for learner in LEARNERS if learner not in FEW)
SIZES = {"all": "all", "small (< 1 %)": "small", "large (> 10 %)": "large"}
DISTANCES = ("Hellinger", "total variation")


@dataclass(frozen=True)
class Measure:
    """A name, what its axis says, and how its numbers are written."""

    name: str
    group: Group
    axis: str
    better: Literal["higher", "lower"]
    written: str = ".3f"
    logarithmic: bool = False

    @property
    def file(self) -> str:
        """The name of its picture, without the suffix.

        >>> Measure("relative error, all (mean)", "queries", "", "lower").file
        'relative-error-all-mean'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def accuracy_name(learner: str) -> str:
    """Name the accuracy of a learner."""
    return f"accuracy, {learner}"


def area_name(learner: str) -> str:
    """Name the area under a learner's ROC curve."""
    return f"AUC, {learner}"


def distance_name(distance: str, ways: int) -> str:
    """Name a distance of marginals."""
    return f"{distance}, {ways}-way"


def error_names(size: str) -> tuple[str, str]:
    """Name the mean and the median error of queries of one size."""
    return f"relative error, {SIZES[size]} (mean)", f"relative error, {SIZES[size]} (median)"


def match_name(clusters: int, after: str) -> str:
    """Name the agreement of two clusterings."""
    return f"Match Point, {clusters} clusters, {after}"


TREE, REGIONS = accuracy_name("tree on groups"), accuracy_name("regions")
SHARE = "accuracy on new rows"
AREA = "area under the ROC curve"


def _of_learners(group: Group, learners: tuple[Learner, ...]) -> list[Measure]:
    return [
        Measure(name, group, axis, "higher")
        for learner in learners
        for name, axis in ((accuracy_name(learner), SHARE), (area_name(learner), AREA))
    ]


MEASURES: dict[str, Measure] = {
    one.name: one
    for one in (
        Measure(TREE, "classification", SHARE, "higher"),
        Measure(REGIONS, "classification", SHARE, "higher"),
        *_of_learners("classification", FEW),
        *_of_learners("learners", OTHERS),
        Measure("discernibility", "information", "sum of squared group sizes", "lower", ",.0f", True),
        Measure("NCP", "information", "normalized certainty penalty", "lower"),
        Measure("precision", "information", "precision", "higher"),
        *(
            Measure(distance_name(distance, ways), "marginals", "mean distance of marginals", "lower")
            for distance in DISTANCES
            for ways in WAYS
        ),
        *(
            Measure(name, "queries", "relative error of range counts", "lower", logarithmic=True)
            for size in SIZES
            for name in error_names(size)
        ),
        *(
            Measure(match_name(clusters, after), "clusters", "share of pairs that agree", "higher")
            for clusters in (2, 5)
            for after in ("generalized rows", "drawn records")
        ),
        Measure("processor seconds", "cost", "processor seconds of publishing", "lower", ".2f", True),
        Measure("seconds", "cost", "seconds of publishing", "lower", ".2f", True),
        Measure("peak MB", "cost", "megabytes that publishing added", "lower", ".0f"),
    )
}


def read_groups(text: str | None) -> tuple[Group, ...]:
    """Read groups of measures, separated by commas: `all`, or the lean ones if none are named."""
    if text is None:
        return LEAN
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in (*GROUPS, "all"):
            raise MethodError(
                f"measures ({word[:40]}) must be one of all, {', '.join(GROUPS)}", "Leave it out for the usual ones."
            )
    return tuple(group for group in GROUPS if group in words or "all" in words)


def learners_of(groups: tuple[Group, ...]) -> tuple[Learner, ...]:
    """Give the learners that drawn records teach."""
    return (*(FEW if "classification" in groups else ()), *(OTHERS if "learners" in groups else ()))
