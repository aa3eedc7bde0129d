"""The confidence framework, section 6, beside Mondrian and DiffGen: suppression, range counts, accuracy, and time.

The census tables of the paper are not public in the form that it used: ours are drawn from the bundled table's
frequencies, with fifty occupations or salaries.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from sfumato.evaluate.runs import Key
from sfumato.papers.accuracy import RAW, learning_keys
from sfumato.papers.capping import AVERAGE_K, CONFIDENCE, INTERACTIVE, MAX_K, TAUGHT
from sfumato.papers.census import QUASI
from sfumato.papers.diffgen import CA
from sfumato.papers.figures import Claim, Effort, Figure, Found, Paper
from sfumato.papers.publishing import DIFFGEN, DIFFGEN_GAIN, DIFFGEN_OURS
from sfumato.papers.stated import statement
from sfumato.papers.verdicts import Between, Beyond, Evidence, Parts, mean_and_doubt
from sfumato.pictures.curves import Curve, Panel

NAME = "confidence"
SENSITIVE = ("salary", "occupation")
SIZES = (25_000, 75_000, 150_000)
LIMITS = ("0.2", "0.3", "0.4", "0.5", "0.6", "0.8", "1")
STATED_LIMIT = "0.6"
QUERY_SIZES = ("small", "large", "all")
GROWN = (100_000, 200_000, 500_000, 1_000_000)
MONDRIAN = "Mondrian, k = 10"
CENSUS = "the census tables are drawn from Adult's frequencies"


def suppressed_keys(effort: Effort) -> list[Key]:
    """All tables over the distortion limit."""
    tables = [("census", sensitive, rows) for sensitive in SENSITIVE for rows in effort.some(SIZES, SIZES[:1])]
    tables += [("adult", "income", 45_222), ("adult", "occupation", 45_222)]
    same = {"work": "capping.suppressed", "method": CONFIDENCE}
    return [
        {**same, "source": source, "sensitive": sensitive, "rows": rows, "distortion": limit, "run": run}
        for source, sensitive, rows in tables
        for limit in effort.some(LIMITS, ("0.4", STATED_LIMIT, "0.8"))
        for run in effort.runs_of(3, 1)
    ]


def query_keys(effort: Effort, *methods: str) -> list[Key]:
    """Range counts on the census-like tables."""
    return [
        {
            "work": "capping.asked",
            "source": "census",
            "sensitive": sensitive,
            "rows": rows,
            "method": method,
            "run": run,
        }
        | ({"epsilon": "0.1"} if method == INTERACTIVE else {})
        for sensitive in SENSITIVE
        for rows in effort.some(SIZES, SIZES[:2])
        for method in methods
        for run in effort.runs_of(5, 3)
    ]


def taught_keys(effort: Effort, *methods: str) -> list[Key]:
    """Learners on ten folds."""
    return [
        {"work": "capping.taught", "method": method, "run": run} for method in methods for run in effort.runs_of(10, 3)
    ]


def private_keys(effort: Effort) -> list[Key]:
    """DiffGen on the same folds and attributes, over the budget."""
    epsilons = effort.some(("0.1", "0.25", "0.5", "1"), ("0.1", "1"))
    methods = (DIFFGEN, DIFFGEN_GAIN, DIFFGEN_OURS)
    attributes = [*QUASI, "income"]
    private = learning_keys(methods, epsilons, (10,), effort.runs_of(10, 3), "10-fold", attributes=attributes)
    return [*private, *taught_keys(effort, CONFIDENCE, RAW)]


def growth_keys(effort: Effort) -> list[Key]:
    """Time over the number of rows."""
    return [
        {"work": "capping.grown", "method": method, "rows": rows, "k": 10, "run": run}
        for method in (CONFIDENCE, MONDRIAN)
        for rows in effort.some(GROWN, (100_000, 1_000_000))
        for run in effort.runs_of(3, 1)
    ]


def suppressed_at_limit(found: Found, method: str) -> Evidence:
    """Give the percentage suppressed at the stated limit in every table."""
    tables = {(key["source"], key["sensitive"], key["rows"]) for key, _ in found.runs}
    return {
        f"{source}, {sensitive}, {rows:,} rows": found.values(
            "suppressed", method=method, source=source, sensitive=sensitive, rows=rows, distortion=STATED_LIMIT
        )
        for source, sensitive, rows in sorted(tables)
    }


def errors_beside(found: Found, method: str, others: tuple[str, ...], sizes: tuple[str, ...]) -> Evidence:
    """Give query errors minus those of others, for every table and size of query."""
    return {
        f"{sensitive}, {rows:,} rows, {size} queries, {other}": found.values(
            size, method=method, sensitive=sensitive, rows=rows
        )
        - found.values(size, method=other, sensitive=sensitive, rows=rows)
        for sensitive in SENSITIVE
        for rows in found.places("rows", "all", method=method)
        for size in sizes
        for other in others
    }


def above_and_near(found: Found, method: str) -> tuple[Evidence, Evidence]:
    """Give CA minus that of Mondrian, and BA - CA, for every learner."""
    above = {
        f"{learner}, {other}": found.values(learner, method=method) - found.values(learner, method=other)
        for learner in TAUGHT
        for other in (AVERAGE_K, MAX_K)
    }
    near = {learner: found.values(learner, method=RAW) - found.values(learner, method=method) for learner in TAUGHT}
    return above, near


def above_private(found: Found, method: str) -> Evidence:
    """Give CA minus that of DiffGen as published at ε = 0.1, fold by fold."""
    own = found.values(TAUGHT[0], method=method)
    return {name: own - found.values("CA", method=name, epsilon="0.1") for name in (DIFFGEN, DIFFGEN_GAIN)}


def growth(found: Found, method: str) -> tuple[Evidence, Evidence]:
    """Give the exponent of time over rows, and the time of the framework over that of Mondrian."""
    first, *_, last = found.places("rows", "seconds", method=method)
    ends = [found.values("seconds", method=method, rows=rows) for rows in (first, last)]
    exponent = np.log(ends[1] / ends[0]) / math.log(last / first)
    ratio = ends[1] / found.values("seconds", method=MONDRIAN, rows=last)
    return {f"{first:,} to {last:,} rows": exponent}, {f"{last:,} rows": ratio}


def suppressed_panels(found: Found) -> list[Panel]:
    """Draw the share suppressed over the limit, a panel for each kind of table."""
    drawn = []
    for source, sensitive in dict.fromkeys((key["source"], key["sensitive"]) for key, _ in found.runs):
        setting = {"source": source, "sensitive": sensitive}
        curves = tuple(
            found.curve(f"{rows:,} rows", "suppressed", "distortion", rows=rows, **setting)
            for rows in found.places("rows", "suppressed", **setting)
        )
        stated = (("stated: none", float(STATED_LIMIT), 0.0),)
        drawn.append(Panel(f"{source}, {sensitive}", "distortion limit", "% suppressed", curves, stated=stated))
    return drawn


def query_panels(found: Found, *methods: str) -> list[Panel]:
    """Draw query errors over rows, a panel for each table and size of query."""
    return [
        Panel(
            f"{sensitive}, {size} queries",
            "rows in thousands",
            "average relative error in %",
            tuple(_by_thousand(found, name, size, sensitive) for name in methods),
            logarithmic=(False, True),
        )
        for sensitive in SENSITIVE
        for size in QUERY_SIZES
    ]


def _by_thousand(found: Found, method: str, size: str, sensitive: str) -> Curve:
    curve = found.curve(method, size, "rows", method=method, sensitive=sensitive)
    return Curve(curve.name, tuple(rows / 1000 for rows in curve.at), curve.values, curve.errors)


def taught_panels(found: Found) -> list[Panel]:
    """Draw the accuracy of every learner."""
    curves = []
    for name in (CONFIDENCE, AVERAGE_K, MAX_K, RAW):
        means, errors = zip(*(mean_and_doubt(found.values(learner, method=name)) for learner in TAUGHT), strict=True)
        curves.append(Curve(name, tuple(map(float, range(len(TAUGHT)))), means, errors))
    return [Panel("Adult, six quasi-identifiers, 10-fold", "", CA, tuple(curves), places=TAUGHT)]


def private_panels(found: Found) -> list[Panel]:
    """Draw DiffGen's accuracy over the budget, the framework being a level."""
    curves = tuple(found.curve(name, "CA", "epsilon", method=name) for name in (DIFFGEN, DIFFGEN_GAIN, DIFFGEN_OURS))
    means = {name: float(found.values(TAUGHT[0], method=name).mean()) for name in (CONFIDENCE, RAW)}
    lines = ((f"confidence {means[CONFIDENCE]:.1f}", means[CONFIDENCE]), (f"BA {means[RAW]:.1f}", means[RAW]))
    return [Panel("six attributes, h = 10, 10-fold; stated at ε = 0.1", "ε", CA, curves, lines)]


def growth_panels(found: Found) -> list[Panel]:
    """Draw seconds over rows."""
    curves = tuple(found.curve(name, "seconds", "rows", method=name) for name in (CONFIDENCE, MONDRIAN))
    return [Panel("census-like, occupation", "rows", "processor seconds", curves)]


PAPER = Paper(
    NAME,
    (
        Figure(NAME, "2", "Confidence, figure 2: records suppressed", suppressed_keys, suppressed_panels),
        Figure(
            NAME,
            "4",
            "Confidence, figure 4: 1,000 range counts beside Mondrian",
            lambda effort: query_keys(effort, CONFIDENCE, AVERAGE_K, MAX_K),
            lambda found: query_panels(found, CONFIDENCE, AVERAGE_K, MAX_K),
        ),
        Figure(
            NAME,
            "5",
            "Confidence, figure 5: accuracy beside Mondrian",
            lambda effort: taught_keys(effort, CONFIDENCE, AVERAGE_K, MAX_K, RAW),
            taught_panels,
        ),
        Figure(
            NAME,
            "7",
            "Confidence, figure 7: 1,000 range counts beside interactive answers at ε = 0.1",
            lambda effort: query_keys(effort, CONFIDENCE, INTERACTIVE),
            lambda found: query_panels(found, CONFIDENCE, INTERACTIVE),
        ),
        Figure(NAME, "9", "Confidence, figure 9: accuracy beside DiffGen", private_keys, private_panels),
        Figure(NAME, "10", "Confidence, figure 10: time over rows", growth_keys, growth_panels),
    ),
    (
        Claim(
            statement(NAME, "2", "suppressed records"),
            Between(-math.inf, 0, 1, "%"),
            suppressed_at_limit,
            CONFIDENCE,
            note=f"{CENSUS}; every record that is published satisfies the criterion",
        ),
        Claim(
            statement(NAME, "4", "relative error"),
            Beyond("below", "%"),
            partial(errors_beside, others=(AVERAGE_K, MAX_K), sizes=QUERY_SIZES),
            CONFIDENCE,
            note=CENSUS,
        ),
        Claim(
            statement(NAME, "5", "CA"),
            Parts(
                {
                    "above Mondrian": Beyond("above", "points"),
                    "close to the raw rows: BA - CA": Between(-math.inf, 1, 1, "points"),
                }
            ),
            above_and_near,
            CONFIDENCE,
        ),
        Claim(
            statement(NAME, "7", "relative error"),
            Beyond("below", "%"),
            partial(errors_beside, others=(INTERACTIVE,), sizes=("small",)),
            CONFIDENCE,
            note=f"{CENSUS}; interactive answers are the truth with Laplace noise of scale 10, each at ε = 0.1",
        ),
        Claim(statement(NAME, "9", "CA"), Beyond("above", "points"), above_private, CONFIDENCE),
        Claim(
            statement(NAME, "10", "seconds"),
            Parts(
                {
                    "quadratic: exponent of time over rows": Between(1.75, 2.25, 0.25),
                    "slightly above Mondrian: times its seconds": Between(1, 2, 0.5, "times"),
                }
            ),
            growth,
            CONFIDENCE,
            note=f"{CENSUS}; Mondrian has k = 10; to be faster counts as not reproduced",
        ),
    ),
)
