"""DiffMulti, section 5: how general its groups are, who stays together in them, and time.

DiffGen and DiffMulti count specializations differently: as in the paper's figures, the n-th number of the one stands
beside the n-th of the other.
"""

from __future__ import annotations

import math
from itertools import chain

from sfumato.evaluate.runs import Key
from sfumato.papers.diffgen import H
from sfumato.papers.figures import Claim, Effort, Figure, Found
from sfumato.papers.publishing import (
    DIFFGEN,
    DIFFGEN_OURS,
    DIFFMULTI,
    DIFFMULTI_OURS,
    DM,
    DM_OURS,
    NCP,
    NCP_OURS,
)
from sfumato.papers.stated import statement
from sfumato.papers.verdicts import Between, Beyond, Evidence, Parts
from sfumato.pictures.curves import Panel

NAME = "diffmulti"
FEW, MANY = (4, 8, 12, 16), (1000, 4000, 7000, 10_000)
QUICK_FEW, QUICK_MANY = (4, 12), (1000, 10_000)
GENERAL = {DIFFMULTI: DM, DIFFMULTI_OURS: DM_OURS}
"""The general-purpose score beside that of the workload."""
CLUSTERED = (1000, 3000, 5000, 7000)
TIMED = (10_000, 40_000, 70_000, 100_000)
GROWN = (200_000, 600_000, 1_000_000)
BESIDE = "DiffGen beside it is the published Max; its h is at most 16 here, not 20"


def general_keys(effort: Effort, *methods: str) -> list[Key]:
    """The whole table by DiffGen and by DiffMulti with general scores, at ε = 1."""
    runs = effort.runs_of(5, 3)
    few, many = effort.some(FEW, QUICK_FEW), effort.some(MANY, QUICK_MANY)
    settings = chain(
        ((method, h) for method in (DIFFGEN, DIFFGEN_OURS) for h in few),
        ((method, h) for method in methods for h in many),
    )
    same = {"work": "generality.generalized", "epsilon": "1"}
    return [{**same, "method": method, "h": h, "run": run} for method, h in settings for run in runs]


def cluster_keys(effort: Effort) -> list[Key]:
    """Match Point with the workload's score and the general one."""
    same = {"work": "generality.matched", "epsilon": "1"}
    return [
        {**same, "method": method, "h": h, "run": run}
        for method in (DIFFMULTI, DM, DIFFMULTI_OURS, DM_OURS)
        for h in effort.some(CLUSTERED, (1000, 7000))
        for run in effort.runs_of(5, 3)
    ]


def time_keys(effort: Effort) -> list[Key]:
    """Time over the number of specializations."""
    few, many = effort.some(FEW, QUICK_FEW), effort.some(TIMED, (10_000, 100_000))
    settings = chain(
        ((method, h) for method in (DIFFMULTI, DIFFMULTI_OURS) for h in many),
        ((DIFFGEN, h) for h in few),
    )
    same = {"work": "generality.generalized", "epsilon": "1"}
    runs = effort.runs_of(3, 1)
    return [{**same, "method": method, "h": h, "run": run} for method, h in settings for run in runs]


def growth_keys(effort: Effort) -> list[Key]:
    """Time over the number of rows, from file to file."""
    return [
        {"work": "generality.grown", "epsilon": "1", "h": 100_000, "method": method, "rows": rows, "run": 0}
        for method in (DIFFMULTI, DIFFMULTI_OURS)
        for rows in effort.some(GROWN, GROWN[::2])
    ]


def beside(found: Found, measure: str, method: str) -> dict[str, tuple[dict[str, object], dict[str, object]]]:
    """Pair the n-th number of DiffMulti's specializations with the n-th of DiffGen's, as published."""
    many, few = (found.places("h", measure, method=one) for one in (method, DIFFGEN))
    return {
        f"h = {more:,} beside {less}": ({"method": method, "h": more}, {"method": DIFFGEN, "h": less})
        for more, less in zip(many, few, strict=False)
    }


def ratios(found: Found, method: str) -> Evidence:
    """Give how many times DiffGen's discernibility is DiffMulti's."""
    return {
        place: found.values("discernibility", **less) / found.values("discernibility", **more)
        for place, (more, less) in beside(found, "discernibility", method).items()
    }


def differences(found: Found, method: str, measure: str) -> Evidence:
    """Give DiffMulti's measure minus DiffGen's."""
    return {
        place: found.values(measure, **more) - found.values(measure, **less)
        for place, (more, less) in beside(found, measure, method).items()
    }


def matches(found: Found, method: str) -> tuple[Evidence, Evidence]:
    """Give Match Point, and by how much it exceeds that of the general-purpose score."""
    places = found.places("h", "match", method=method)
    own = {f"h = {h:,}": found.values("match", method=method, h=h) for h in places}
    other = {f"h = {h:,}": found.values("match", method=GENERAL[method], h=h) for h in places}
    return own, {place: own[place] - other[place] for place in own}


def slowest(found: Found, method: str) -> Evidence:
    """Give the seconds where they are most."""
    over = "rows" if found.places("rows", "seconds", method=method) else "h"
    most = found.places(over, "seconds", method=method)[-1]
    return {f"{over} = {most:,}": found.values("seconds", method=method, **{over: most})}


def over_h(
    found: Found, measure: str, label: str, *methods: str, logarithmic: tuple[bool, bool] = (True, False)
) -> list[Panel]:
    """Draw a measure over h, on an axis on which both methods have room."""
    curves = tuple(found.curve(name, measure, "h", method=name) for name in methods)
    return [Panel("ε = 1", H, label, curves, logarithmic=logarithmic)]


def time_panels(found: Found) -> list[Panel]:
    """Draw seconds over h."""
    curves = tuple(found.curve(name, "seconds", "h", method=name) for name in (DIFFGEN, DIFFMULTI, DIFFMULTI_OURS))
    stated = (("stated: about 30", 100_000.0, 30.0),)
    return [Panel("ε = 1", H, "processor seconds", curves, (), stated, (True, True))]


def growth_panels(found: Found) -> list[Panel]:
    """Draw seconds over rows."""
    curves = tuple(found.curve(name, "seconds", "rows", method=name) for name in (DIFFMULTI, DIFFMULTI_OURS))
    stated = (("stated: less than 120", 1_000_000.0, 120.0),)
    return [Panel("ε = 1, h = 100,000", "rows", "processor seconds", curves, (), stated, (False, True))]


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
)
