"""Who is compared on which table, and by which measures: a list of runs, each known by all that decides its outcome.

A method that cannot publish the table, or not so that others can be held against it, is left out, with the reason.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import sfumato
from sfumato import Coded, Identifier, Method, MethodWithoutEpsilon, Schema, refuse_unconfirmed
from sfumato.errors import MethodError, SfumatoError, TableError
from sfumato.evaluate.coverage import KINDS, LEVELS
from sfumato.evaluate.fidelity import WAYS
from sfumato.evaluate.learning import LEARNERS, Learner, Protocol, splits

Group = Literal[
    "classification", "learners", "information", "marginals", "queries", "intervals", "known", "clusters", "cost"
]
"""A group of measures, which are measured together or not at all."""
GROUPS: dict[Group, str] = {
    "classification": "a tree on groups, regions, naive Bayes, logistic regression",
    "learners": "the other learners",
    "information": "discernibility, NCP, precision",
    "marginals": "Hellinger and total variation of 1-, 2- and 3-way marginals",
    "queries": "relative errors of random range counts",
    "intervals": "how many intervals hold the truth, their width and score",
    "known": "NIST's k-marginal score, pMSE, column shapes, pair trends, correlations, singling out",
    "clusters": "Match Point",
    "cost": "seconds and memory of publishing",
}
"""What each group of measures holds."""
LEAN: tuple[Group, ...] = ("classification", "information", "marginals", "queries", "intervals", "known", "cost")
"""The groups that are measured unless others are named: a few seconds for each run on a table like Adult."""
FEW: tuple[Learner, ...] = ("naive Bayes", "logistic regression")
"""The learners of the group `classification`."""
OTHERS: tuple[Learner, ...] = tuple(learner for learner in LEARNERS if learner not in FEW)
"""The learners of the group `learners`."""
SIZES = {"all": "all", "small (< 1 %)": "small", "large (> 10 %)": "large"}
"""Sizes of queries, and what they are called in names of measures."""
DISTANCES = ("Hellinger", "total variation")
"""The distances of marginals that are compared."""
MOST_RUNS = 10_000
"""The most runs of each method."""


@dataclass(frozen=True)
class Contestant:
    """A method with its parameters, and what the holder calls it."""

    label: str
    method: Method | MethodWithoutEpsilon

    def refusal(self, schema: Schema, epsilons: Sequence[Fraction]) -> str | None:
        """Why the method cannot publish such a table, or not so that others can be held against it; None if it can."""
        try:
            if not isinstance(self.method, MethodWithoutEpsilon):
                for epsilon in epsilons:
                    self.method.plan(schema, epsilon)
                return None
            narrowed = self.method.narrowed(schema)
            self.method.promise(narrowed)
        except SfumatoError as error:
            return error.problem
        if narrowed.target != schema.target:
            return f"it publishes {narrowed.target} in place of the class; make it the class of all with --target"
        if set(narrowed.attributes) != set(_read(schema)):
            return f"it publishes {', '.join(narrowed.attributes)} only; compare these with --attributes"
        return None


@dataclass(frozen=True)
class Run:
    """One run: a method at an epsilon, if it has one; or, without a method, what the raw rows teach."""

    label: str | None
    epsilon: Fraction | None
    number: int
    key: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Contest:
    """A table, and how it is published and measured."""

    table: Any
    schema: Schema
    contestants: tuple[Contestant, ...]
    """without those that are left out"""
    epsilons: tuple[Fraction, ...]
    number: int
    """how often each is run"""
    protocol: Protocol
    groups: tuple[Group, ...]
    digest: str
    """of the rows as the schema reads them"""
    left_out: tuple[str, ...]

    def runs(self) -> list[Run]:
        """All runs, the first of everyone before the second of anyone."""
        return [run for number in range(self.number) for run in self._runs(number)]

    def _runs(self, number: int) -> Iterator[Run]:
        if self.schema.target is not None and {"classification", "learners"} & set(self.groups):
            taught = [group for group in self.groups if group in ("classification", "learners")]
            yield Run(None, None, number, self._key(number) | {"what": "raw data", "measures": taught})
        for one in self.contestants:
            parameters = dict(one.method.parameters)
            key = self._key(number) | {"what": one.method.name, "parameters": parameters, "measures": [*self.groups]}
            for epsilon in [None] if isinstance(one.method, MethodWithoutEpsilon) else self.epsilons:
                yield Run(one.label, epsilon, number, key | {"epsilon": None if epsilon is None else str(epsilon)})

    def _key(self, number: int) -> dict[str, Any]:
        return {
            "sfumato": version("sfumato"),
            "table": self.digest,
            "schema": self.schema.digest,
            "attributes": _read(self.schema),
            "target": self.schema.target,
            "protocol": self.protocol,
            "run": number,
        }


def open_contest(
    table: Any,
    schema: Schema,
    contestants: Sequence[Contestant],
    epsilons: Sequence[Fraction],
    *,
    runs: int,
    protocol: Protocol = "2/3",
    groups: Sequence[Group],
) -> Contest:
    """Look at the table (a path or a frame) and at who can publish it; refuse what nobody could be compared by."""
    refuse_unconfirmed(schema)
    _refuse_uncountable(schema, contestants, runs)
    coded = sfumato.coded(table, schema)
    if not coded.rows:
        raise TableError("a table must have rows for methods to be compared on", "Give another table.")
    splits(protocol, coded.rows)
    refusals = {one.label: one.refusal(schema, epsilons) for one in contestants}
    left_out = [f"{label}: {why}." for label, why in refusals.items() if why is not None]
    taking_part = tuple(one for one in contestants if refusals[one.label] is None)
    if not taking_part:
        raise MethodError(f"a method must be able to publish this table, and none is: {left_out[0]}", "Name another.")
    if schema.target is None and {"classification", "learners"} & set(groups):
        left_out.append("Classification: the table has no class attribute; choose one with --target.")
    return Contest(
        *(table, schema, taking_part, tuple(dict.fromkeys(epsilons)), runs, protocol, tuple(groups)),
        *(digest_of(coded), tuple(left_out)),
    )


def digest_of(coded: Coded) -> str:
    """A fingerprint of coded rows: of all that a schema lets be seen of a table."""
    digest = hashlib.sha256()
    for name, column in coded.columns.items():
        codes: NDArray[Any] = np.ascontiguousarray(column)
        digest.update(f"{name!r} {codes.dtype} {len(codes)}\n".encode())
        digest.update(codes.data)
    return digest.hexdigest()


def _read(schema: Schema) -> list[str]:
    return [name for name, column in schema.attributes.items() if not isinstance(column, Identifier)]


def _refuse_uncountable(schema: Schema, contestants: Sequence[Contestant], runs: int) -> None:
    if not 1 <= runs <= MOST_RUNS:
        raise MethodError(f"runs ({runs}) must be a whole number from 1 to {MOST_RUNS:,}", "Ten are usual.")
    if not contestants:
        raise MethodError("methods must name one or more", "Write for example diffgen,diffmulti.")
    labels = [one.label for one in contestants]
    for label in labels:
        if labels.count(label) > 1:
            raise MethodError(f"methods ({label[:80]}) must be named once", "Leave the second out.")
    if not schema.predictors:
        raise TableError("a table must have an attribute beside the class to be compared on", "Name more attributes.")


@dataclass(frozen=True)
class Measure:
    """What is measured of every release: its name, what its axis says, which way is better, and how its numbers are
    written.
    """

    name: str
    group: Group
    axis: str
    better: Literal["higher", "lower", "nearer to the line"]
    written: str = ".3f"
    logarithmic: bool = False
    aim: float | None = None
    """what it should be, if neither more nor less is better"""
    panel: str = ""
    """what tells it from others that are drawn in the same picture, with which its name ends"""

    @property
    def picture(self) -> str:
        """What its picture is called."""
        return self.name.removesuffix(f", {self.panel}")

    @property
    def file(self) -> str:
        """The name of its picture, without the suffix.

        >>> Measure("relative error, all (mean)", "queries", "", "lower").file
        'relative-error-all-mean'
        >>> Measure("width, 2 attributes", "intervals", "", "lower", panel="2 attributes").file
        'width'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.picture.lower()).strip("-")


def accuracy_name(learner: str) -> str:
    """The name of a learner's accuracy."""
    return f"accuracy, {learner}"


def area_name(learner: str) -> str:
    """The name of the area under a learner's ROC curve."""
    return f"AUC, {learner}"


def distance_name(distance: str, ways: int) -> str:
    """The name of a distance of marginals."""
    return f"{distance}, {ways}-way"


def error_names(size: str) -> tuple[str, str]:
    """The names of the mean and the median error of queries of one size."""
    return f"relative error, {SIZES[size]} (mean)", f"relative error, {SIZES[size]} (median)"


def interval_names(level: float, questions_of: str) -> tuple[str, str, str]:
    """The names of coverage, width and score of intervals, for questions of one kind."""
    of = f"of {100 * level:g} % intervals, {questions_of}"
    return f"coverage {of}", f"width {of}", f"score {of}"


def match_name(clusters: int, after: str) -> str:
    """The name of the agreement of two clusterings."""
    return f"Match Point, {clusters} clusters, {after}"


TREE, REGIONS = accuracy_name("tree on groups"), accuracy_name("regions")
SHARE = "accuracy on new rows"
AREA = "area under the ROC curve"


def _of_intervals(level: float, questions_of: str) -> list[Measure]:
    coverage, width, score = interval_names(level, questions_of)
    held = "share of intervals that hold the truth"
    return [
        Measure(coverage, "intervals", held, "nearer to the line", aim=level, panel=questions_of),
        Measure(width, "intervals", "mean width, in shares of rows", "lower", ".4f", True, panel=questions_of),
        Measure(score, "intervals", "mean score, in shares of rows", "lower", ".4f", True, panel=questions_of),
    ]


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
        *(one for level in LEVELS for kind in KINDS for one in _of_intervals(level, kind)),
        Measure("k-marginal score", "known", "score, of 1000", "higher", ".0f"),
        Measure("pMSE ratio", "known", "pMSE over what chance gives", "lower", ".1f", True),
        Measure("column shapes", "known", "likeness of distributions", "higher"),
        Measure("pair trends", "known", "likeness of pairs", "higher"),
        Measure("correlation difference", "known", "mean difference of Cramér's V", "lower"),
        Measure("singling-out risk", "known", "share of guesses beyond the baseline", "lower"),
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
"""All measures, by name."""


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
    """The learners that drawn records teach."""
    return (*(FEW if "classification" in groups else ()), *(OTHERS if "learners" in groups else ()))
