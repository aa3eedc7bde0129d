"""DiffMulti, section 5: how general its groups are, who stays together in them, what is learnt from them, and time.

DiffGen and DiffMulti count specializations differently: as in the paper's figures, the n-th number of the one stands
beside the n-th of the other.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import chain

from sfumato.evaluate.runs import Key
from sfumato.papers.diffgen import CA, H
from sfumato.papers.figures import Between, Beyond, Claim, Effort, Evidence, Figure, Found, Paper, Parts, statement
from sfumato.papers.runs import (
    BAYES,
    CUBE,
    DIFFGEN,
    DIFFGEN_OURS,
    DIFFMULTI,
    DIFFMULTI_OURS,
    DM,
    DM_OURS,
    MONDRIAN,
    NCP,
    NCP_OURS,
    PARTITION,
    learning_keys,
    levels,
    raw_keys,
)
from sfumato.pictures.canvas import Panel

NAME = "diffmulti"
FEW, MANY = (4, 8, 12, 16), (1000, 4000, 7000, 10_000)
"""The specializations of DiffGen, and those of DiffMulti that stand beside them."""
QUICK_FEW, QUICK_MANY = (4, 12), (1000, 10_000)
"""The same for a quick reproduction."""
GENERAL = {DIFFMULTI: DM, DIFFMULTI_OURS: DM_OURS}
"""The general-purpose score that stands beside the score of the workload."""
CLUSTERED = (1000, 3000, 5000, 7000)
"""The specializations of figure 11."""
TIMED = (10_000, 40_000, 70_000, 100_000)
"""The specializations of figure 12."""
GROWN = (200_000, 600_000, 1_000_000)
"""The numbers of rows of figure 13."""
EPSILONS = ("0.1", "0.25", "0.5", "0.75", "1")
"""The budgets of figures 9 and 10."""
FOUR = ["workclass", "marital_status", "race", "sex", "income"]
"""The attributes of figure 9."""
ELEVEN = [
    *("age", "workclass", "education", "education_num", "marital_status", "occupation", "relationship", "race", "sex"),
    *("hours_per_week", "native_country", "income"),
]
"""The attributes of section 5.1. The paper says 11 attributes without naming them: without final weight, capital gain
and loss the raw rows give the accuracy that it states.
"""
BESIDE = "DiffGen beside it is the published Max; its h is at most 16 here, not 20"
"""What notes on claims say of DiffGen."""


def general_keys(effort: Effort, *methods: str) -> list[Key]:
    """The runs of the whole table by DiffGen and by DiffMulti with general scores, at ε = 1."""
    runs = effort.runs_of(5, 3)
    few, many = effort.some(FEW, QUICK_FEW), effort.some(MANY, QUICK_MANY)
    settings = chain(
        ((method, h) for method in (DIFFGEN, DIFFGEN_OURS) for h in few),
        ((method, h) for method in methods for h in many),
    )
    same = {"work": "runs.generalized", "epsilon": "1"}
    return [{**same, "method": method, "h": h, "run": run} for method, h in settings for run in runs]


def cluster_keys(effort: Effort) -> list[Key]:
    """The runs of Match Point with the workload's score and the general one."""
    same = {"work": "runs.matched", "epsilon": "1"}
    return [
        {**same, "method": method, "h": h, "run": run}
        for method in (DIFFMULTI, DM, DIFFMULTI_OURS, DM_OURS)
        for h in effort.some(CLUSTERED, (1000, 7000))
        for run in effort.runs_of(5, 3)
    ]


def time_keys(effort: Effort) -> list[Key]:
    """The runs of time over the number of specializations."""
    few, many = effort.some(FEW, QUICK_FEW), effort.some(TIMED, (10_000, 100_000))
    settings = chain(
        ((method, h) for method in (DIFFMULTI, DIFFMULTI_OURS) for h in many),
        ((DIFFGEN, h) for h in few),
    )
    same = {"work": "runs.generalized", "epsilon": "1"}
    runs = effort.runs_of(3, 1)
    return [{**same, "method": method, "h": h, "run": run} for method, h in settings for run in runs]


def growth_keys(effort: Effort) -> list[Key]:
    """The runs of time over the number of rows, from file to file."""
    return [
        {"work": "runs.grown", "epsilon": "1", "h": 100_000, "method": method, "rows": rows, "run": 0}
        for method in (DIFFMULTI, DIFFMULTI_OURS)
        for rows in effort.some(GROWN, GROWN[::2])
    ]


def tree_keys(effort: Effort) -> list[Key]:
    """The runs of accuracy by C4.5 at ε = 1, beside Mondrian."""
    runs = effort.runs_of(10, 3)
    few, many = effort.some(FEW, QUICK_FEW), effort.some(MANY, QUICK_MANY)
    mondrian: list[Key] = [{"work": "runs.learnt", "protocol": "2/3", "method": MONDRIAN, "run": run} for run in runs]
    return [
        *learning_keys((DIFFGEN, DIFFGEN_OURS), ("1",), few, runs),
        *learning_keys((DIFFMULTI, DIFFMULTI_OURS), ("1",), many, runs),
        *mondrian,
        *raw_keys(runs),
    ]


def id3_keys(effort: Effort) -> list[Key]:
    """The runs of accuracy by ID3 on four attributes; the rows are always the same, the noise is not."""
    runs, epsilons = effort.runs_of(10, 3), effort.some(EPSILONS, ("0.1", "1"))
    more = {"learner": "ID3", "attributes": FOUR}
    return [
        *learning_keys((DIFFMULTI, DIFFMULTI_OURS, CUBE), epsilons, (1000,), runs, "files", **more),
        *raw_keys(runs, "files", **more),
    ]


def svm_keys(effort: Effort) -> list[Key]:
    """The runs of accuracy by a linear SVM."""
    runs, epsilons = effort.runs_of(10, 3), effort.some(EPSILONS, ("0.1", "1"))
    return [
        *learning_keys((DIFFMULTI, DIFFMULTI_OURS, BAYES), epsilons, (10_000,), runs, "4/5", learner="linear SVM"),
        *raw_keys(runs, "4/5", learner="linear SVM"),
    ]


def eleven_keys(effort: Effort) -> list[Key]:
    """The runs of accuracy on eleven attributes in five folds."""
    runs = effort.runs_of(5, 5)
    return [
        *learning_keys((DIFFMULTI, DIFFMULTI_OURS, PARTITION), ("1",), (1000,), runs, "5-fold", attributes=ELEVEN),
        *raw_keys(runs, "5-fold", attributes=ELEVEN),
    ]


def beside(found: Found, measure: str, method: str) -> dict[str, tuple[dict[str, object], dict[str, object]]]:
    """Pair the n-th number of DiffMulti's specializations with the n-th of DiffGen's, as published."""
    many, few = (found.places("h", measure, method=one) for one in (method, DIFFGEN))
    return {
        f"h = {more:,} beside {less}": ({"method": method, "h": more}, {"method": DIFFGEN, "h": less})
        for more, less in zip(many, few, strict=False)
    }


def ratios(found: Found, method: str) -> Evidence:
    """DiffGen's discernibility divided by DiffMulti's."""
    return {
        place: found.values("discernibility", **less) / found.values("discernibility", **more)
        for place, (more, less) in beside(found, "discernibility", method).items()
    }


def differences(found: Found, method: str, measure: str) -> Evidence:
    """DiffMulti's measure minus DiffGen's."""
    return {
        place: found.values(measure, **more) - found.values(measure, **less)
        for place, (more, less) in beside(found, measure, method).items()
    }


def matches(found: Found, method: str) -> tuple[Evidence, Evidence]:
    """Match Point, and by how much it exceeds that of the general-purpose score."""
    places = found.places("h", "match", method=method)
    own = {f"h = {h:,}": found.values("match", method=method, h=h) for h in places}
    other = {f"h = {h:,}": found.values("match", method=GENERAL[method], h=h) for h in places}
    return own, {place: own[place] - other[place] for place in own}


def slowest(found: Found, method: str) -> Evidence:
    """The seconds where they are most."""
    over = "rows" if found.places("rows", "seconds", method=method) else "h"
    most = found.places(over, "seconds", method=method)[-1]
    return {f"{over} = {most:,}": found.values("seconds", method=method, **{over: most})}


def above_and_near(found: Found, method: str) -> tuple[Evidence, Evidence]:
    """What figure 8 is about: CA minus DiffGen's, and minus Mondrian's at the largest h."""
    most = found.places("h", "CA", method=method)[-1]
    behind = found.values("CA", method=method, h=most) - found.values("CA", method=MONDRIAN)
    return differences(found, method, "CA"), {f"h = {most:,}": behind}


def above(found: Found, method: str, rival: str) -> Evidence:
    """CA minus that of a rival at every budget."""
    return {
        f"ε = {epsilon}": found.values("CA", method=method, epsilon=epsilon)
        - found.values("CA", method=rival, epsilon=epsilon)
        for epsilon in found.places("epsilon", "CA", method=method)
    }


def beside_partition(found: Found, method: str) -> tuple[Evidence, Evidence, Evidence]:
    """CA, that of RPS, and by how much the one exceeds the other."""
    own, rival = found.values("CA", method=method), found.values("CA", method=PARTITION)
    return {"": own}, {"": rival}, {"": own - rival}


def over_h(
    found: Found, measure: str, label: str, *methods: str, logarithmic: tuple[bool, bool] = (True, False)
) -> list[Panel]:
    """A measure over h, on an axis on which both methods have room."""
    curves = tuple(found.curve(name, measure, "h", method=name) for name in methods)
    return [Panel("ε = 1", H, label, curves, logarithmic=logarithmic)]


def time_panels(found: Found) -> list[Panel]:
    """Seconds over h."""
    curves = tuple(found.curve(name, "seconds", "h", method=name) for name in (DIFFGEN, DIFFMULTI, DIFFMULTI_OURS))
    stated = (("stated: about 30", 100_000.0, 30.0),)
    return [Panel("ε = 1", H, "processor seconds", curves, (), stated, (True, True))]


def growth_panels(found: Found) -> list[Panel]:
    """Seconds over rows."""
    curves = tuple(found.curve(name, "seconds", "rows", method=name) for name in (DIFFMULTI, DIFFMULTI_OURS))
    stated = (("stated: less than 120", 1_000_000.0, 120.0),)
    return [Panel("ε = 1, h = 100,000", "rows", "processor seconds", curves, (), stated, (False, True))]


def tree_panels(found: Found) -> list[Panel]:
    """Accuracy by C4.5, Mondrian being a level."""
    (panel,) = over_h(found, "CA", CA, DIFFGEN, DIFFMULTI, DIFFGEN_OURS, DIFFMULTI_OURS)
    mondrian = float(found.values("CA", method=MONDRIAN).mean())
    lines = (*levels(found), (f"{MONDRIAN}: {mondrian:.1f}", mondrian))
    return [replace(panel, levels=lines)]


def budget_panels(found: Found, title: str, rival: str) -> list[Panel]:
    """Accuracy over the budget."""
    curves = tuple(found.curve(name, "CA", "epsilon", method=name) for name in (DIFFMULTI, DIFFMULTI_OURS, rival))
    return [Panel(title, "ε", CA, curves, levels(found))]


def eleven_panels(found: Found) -> list[Panel]:
    """Accuracy fold by fold."""
    curves = tuple(found.curve(name, "CA", "run", method=name) for name in (DIFFMULTI, DIFFMULTI_OURS, PARTITION))
    stated = (("stated 81.54", 81.54), ("stated, RPS: 79", 79.0))
    folds = tuple(str(fold + 1) for fold in range(len(curves[0].at)))
    return [Panel("ε = 1, h = 1,000", "fold", CA, curves, (*levels(found), *stated), places=folds)]


FIGURES = (
    Figure(
        NAME,
        "5",
        "DiffMulti, figure 5: discernibility",
        lambda effort: general_keys(effort, DM, DM_OURS),
        lambda found: over_h(
            found, "discernibility", "discernibility", DIFFGEN, DM, DIFFGEN_OURS, DM_OURS, logarithmic=(True, True)
        ),
    ),
    Figure(
        NAME,
        "6",
        "DiffMulti, figure 6: NCP",
        lambda effort: general_keys(effort, NCP, NCP_OURS),
        lambda found: over_h(found, "NCP", "NCP", DIFFGEN, NCP, DIFFGEN_OURS, NCP_OURS),
    ),
    Figure(NAME, "8", "DiffMulti, figure 8: accuracy by C4.5", tree_keys, tree_panels),
    Figure(
        NAME,
        "9",
        "DiffMulti, figure 9: accuracy by ID3",
        id3_keys,
        lambda found: budget_panels(found, "four attributes, 30,162 rows to learn from", CUBE),
    ),
    Figure(
        NAME,
        "10",
        "DiffMulti, figure 10: accuracy by SVM",
        svm_keys,
        lambda found: budget_panels(found, "h = 10,000, 4/5 to learn from", BAYES),
    ),
    Figure(
        NAME,
        "11",
        "DiffMulti, figure 11: clusters",
        cluster_keys,
        lambda found: over_h(
            found, "match", "Match Point in %", DIFFMULTI, DM, DIFFMULTI_OURS, DM_OURS, logarithmic=(False, False)
        ),
    ),
    Figure(NAME, "12", "DiffMulti, figure 12: time", time_keys, time_panels),
    Figure(NAME, "13", "DiffMulti, figure 13: time over rows", growth_keys, growth_panels),
    Figure(NAME, "text", "DiffMulti, section 5.1: eleven attributes in five folds", eleven_keys, eleven_panels),
)
CLAIMS = (
    Claim(
        statement(NAME, "5", "discernibility"),
        Between(10, math.inf, 9, "times"),
        ratios,
        DM,
        DM_OURS,
        BESIDE,
    ),
    Claim(
        statement(NAME, "6", "NCP"),
        Beyond("below"),
        lambda found, method: differences(found, method, "NCP"),
        NCP,
        NCP_OURS,
        BESIDE,
    ),
    Claim(
        statement(NAME, "8", "CA"),
        Parts(
            {
                "above DiffGen": Beyond("above", "points"),
                "at most 2 points below Mondrian": Between(-2, math.inf, 1, "points"),
            }
        ),
        above_and_near,
        DIFFMULTI,
        DIFFMULTI_OURS,
    ),
    Claim(
        statement(NAME, "9", "CA"),
        Beyond("above", "points"),
        partial(above, rival=CUBE),
        DIFFMULTI,
        DIFFMULTI_OURS,
    ),
    Claim(
        statement(NAME, "10", "CA"),
        Beyond("above", "points"),
        partial(above, rival=BAYES),
        DIFFMULTI,
        DIFFMULTI_OURS,
        "PrivBayes has θ = 4 and a noisy size; the learner sees as many synthetic people as it counts",
    ),
    Claim(
        statement(NAME, "11", "Match Point"),
        Parts(
            {
                "at least 90 %": Between(90, math.inf, 10, "%"),
                "above the general-purpose score": Beyond("above", "points"),
            }
        ),
        matches,
        DIFFMULTI,
        DIFFMULTI_OURS,
    ),
    Claim(statement(NAME, "12", "seconds"), Between(-math.inf, 30, 30, "s"), slowest, DIFFMULTI, DIFFMULTI_OURS),
    Claim(statement(NAME, "13", "seconds"), Between(-math.inf, 120, 120, "s"), slowest, DIFFMULTI, DIFFMULTI_OURS),
    Claim(
        statement(NAME, "text", "CA"),
        Parts(
            {
                "CA": Between.near(81.54),
                "CA of RPS": Between.near(79),
                "above RPS": Beyond("above", "points"),
            }
        ),
        beside_partition,
        DIFFMULTI,
        DIFFMULTI_OURS,
        "RPS takes its depth from a noisy size and classifies by its own regions",
    ),
)
PAPER = Paper(NAME, FIGURES, CLAIMS)
