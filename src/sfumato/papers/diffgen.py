"""DiffGen, section 5: accuracy over specializations and budgets, beside TDS, and time."""

from __future__ import annotations

import math
from functools import partial

from sfumato.evaluate.runs import Key
from sfumato.papers.figures import Between, Beyond, Claim, Effort, Evidence, Figure, Found, Paper, Parts, statement
from sfumato.papers.runs import (
    C45,
    DIFFGEN,
    DIFFGEN_GAIN,
    DIFFGEN_OURS,
    EPSILONS,
    RAW,
    STEPS,
    TDS_5,
    benefit,
    best_place,
    cost,
    learning_keys,
    levels,
    raw_keys,
)
from sfumato.pictures.canvas import Panel

NAME = "diffgen"
H, CA = "specializations h", "accuracy in %"
"""What axes are called."""
COMPARED = ("0.75", "1", "2", "3", "4")
"""The budgets of figure 4."""
MOST_STEPS = 15
"""The specializations of figure 4."""
FEW_STEPS = (4, 10, 13)
"""The specializations of a quick reproduction."""


def max_keys(effort: Effort) -> list[Key]:
    """The runs of the published Max and of ours over h at four budgets."""
    runs = effort.runs_of(10, 3)
    steps = effort.some(STEPS, FEW_STEPS)
    return [*learning_keys((DIFFGEN, DIFFGEN_OURS), EPSILONS, steps, runs), *raw_keys(runs)]


def gain_keys(effort: Effort) -> list[Key]:
    """The runs of InfoGain beside them."""
    runs, steps = effort.runs_of(10, 3), effort.some(STEPS, FEW_STEPS)
    return [*max_keys(effort), *learning_keys((DIFFGEN_GAIN,), EPSILONS, steps, runs)]


def fold_keys(effort: Effort) -> list[Key]:
    """The runs of ten folds, once; the paper repeats them ten times."""
    runs, epsilons = effort.runs_of(10, 3), effort.some(COMPARED, ("1", "2"))
    tds: list[Key] = [{"work": "runs.learnt", "protocol": "10-fold", "method": TDS_5, "run": run} for run in runs]
    ours = learning_keys((DIFFGEN, DIFFGEN_OURS, C45), epsilons, (MOST_STEPS,), runs, "10-fold")
    return [*ours, *tds, *raw_keys(runs, "10-fold")]


def accuracy_panels(found: Found, methods: tuple[str, ...]) -> list[Panel]:
    """Accuracy over h, a panel for each budget, with what the paper states."""
    drawn = []
    for epsilon in EPSILONS:
        curves = tuple(found.curve(method, "CA", "h", method=method, epsilon=epsilon) for method in methods)
        lines = levels(found)
        if DIFFGEN_GAIN not in methods:
            lines += {
                "0.1": (("stated: best h, about 78", 78.0),),
                "0.5": (("stated: at best 81.73", 81.73), ("stated: at worst 80.5", 80.5)),
            }.get(epsilon, ())
        spots = (("stated 82.24", 10.0, 82.24),) if epsilon == "1" and DIFFGEN_GAIN not in methods else ()
        drawn.append(Panel(f"ε = {epsilon}", H, CA, curves, lines, spots))
    return drawn


def comparison_panels(found: Found) -> list[Panel]:
    """Accuracy over the budget, TDS being a level."""
    curves = tuple(found.curve(name, "CA", "epsilon", method=name) for name in (DIFFGEN, DIFFGEN_OURS, C45))
    tds = float(found.values("CA", method=TDS_5).mean())
    lines = (*levels(found), (f"{TDS_5}: {tds:.1f}", tds))
    return [Panel(f"h = {MOST_STEPS}, 10-fold", "ε", CA, curves, lines)]


def time_panels(found: Found) -> list[Panel]:
    """The seconds of publishing over h."""
    curves = tuple(
        found.curve(name, "seconds", "h", method=name, epsilon="1") for name in (DIFFGEN, DIFFGEN_GAIN, DIFFGEN_OURS)
    )
    return [Panel("ε = 1", H, "processor seconds", curves, (("stated: at most 30", 30.0),), (), (False, True))]


def best_accuracy(found: Found, method: str) -> Evidence:
    """CA with the best h at the smallest budget."""
    best = best_place(found, method=method, epsilon="0.1")
    return {f"h = {best}": found.values("CA", method=method, epsilon="0.1", h=best)}


def costs_at_half(found: Found, method: str, *, best: bool) -> Evidence:
    """BA - CA at ε = 0.5 with the h that costs least or most."""
    means = found.means("CA", "h", method=method, epsilon="0.5")
    h = (max if best else min)(means, key=lambda one: means[one])
    return {f"h = {h}": cost(found, method=method, epsilon="0.5", h=h)[""]}


def below_max(found: Found, method: str) -> Evidence:
    """InfoGain's CA minus that of Max, at every budget and h."""
    return {
        f"ε = {epsilon}, h = {h}": found.values("CA", method=DIFFGEN_GAIN, epsilon=epsilon, h=h)
        - found.values("CA", method=method, epsilon=epsilon, h=h)
        for epsilon in EPSILONS
        for h in found.places("h", "CA", method=method, epsilon=epsilon)
    }


def above_both(found: Found, method: str) -> tuple[Evidence, Evidence]:
    """CA minus that of DiffP-C4.5, and of TDS, fold by fold, for the budgets up to 2."""
    budgets = [one for one in found.places("epsilon", "CA", method=method) if float(one) <= 2]
    own = {one: found.values("CA", method=method, epsilon=one) for one in budgets}
    tds = found.values("CA", method=TDS_5)
    return (
        {f"ε = {one}": own[one] - found.values("CA", method=C45, epsilon=one) for one in budgets},
        {f"ε = {one}": own[one] - tds for one in budgets},
    )


def slowest(found: Found, method: str) -> Evidence:
    """The seconds of the slowest run."""
    return {"the slowest run": found.values("seconds", method=method).max(keepdims=True)}


CLAIMS = (
    Claim.near(statement(NAME, "3a", "BA"), lambda found, method: {"": found.values("BA", method=method)}, RAW),
    Claim.near(statement(NAME, "3a", "LA"), lambda found, method: {"": found.values("LA", method=method)}, RAW),
    Claim.near(
        statement(NAME, "3a", "CA-LA"),
        lambda found, method: benefit(found, method=method, epsilon="1", h=10),
        DIFFGEN,
        DIFFGEN_OURS,
    ),
    Claim.near(
        statement(NAME, "3a", "BA-CA"),
        lambda found, method: cost(found, method=method, epsilon="1", h=10),
        DIFFGEN,
        DIFFGEN_OURS,
    ),
    Claim.near(statement(NAME, "3a", "BA-CA min"), partial(costs_at_half, best=True), DIFFGEN, DIFFGEN_OURS),
    Claim.near(statement(NAME, "3a", "BA-CA max"), partial(costs_at_half, best=False), DIFFGEN, DIFFGEN_OURS),
    Claim.near(statement(NAME, "3a", "CA"), best_accuracy, DIFFGEN, DIFFGEN_OURS),
    Claim(statement(NAME, "3b", "CA"), Beyond("below", "points"), below_max, DIFFGEN),
    Claim(
        statement(NAME, "4", "CA"),
        Parts({"above DiffP-C4.5": Beyond("above", "points"), "above TDS": Beyond("above", "points")}),
        above_both,
        DIFFGEN,
        DIFFGEN_OURS,
        "both judged for ε up to 2; DiffP-C4.5 has the score Max, and split points from the declared range",
    ),
    Claim(statement(NAME, "text", "seconds"), Between(-math.inf, 30, 30, "s"), slowest, DIFFGEN, DIFFGEN_OURS),
)
PAPER = Paper(
    NAME,
    (
        Figure(
            NAME,
            "3a",
            "DiffGen, figure 3a: accuracy with Max",
            max_keys,
            lambda found: accuracy_panels(found, (DIFFGEN, DIFFGEN_OURS)),
        ),
        Figure(
            NAME,
            "3b",
            "DiffGen, figure 3b: accuracy with InfoGain",
            gain_keys,
            lambda found: accuracy_panels(found, (DIFFGEN_GAIN, DIFFGEN, DIFFGEN_OURS)),
        ),
        Figure(NAME, "4", "DiffGen, figure 4: beside DiffP-C4.5 and TDS", fold_keys, comparison_panels),
        Figure(NAME, "text", "DiffGen, section 5: time", gain_keys, time_panels),
    ),
    CLAIMS,
)
