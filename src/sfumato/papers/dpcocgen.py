"""DPCocGen, section 6: how near synthetic individuals of five attributes are to the table, and what they teach."""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np
import pyarrow as pa

from sfumato import Schema
from sfumato.arrays import CodedRows
from sfumato.evaluate.fidelity import floored_errors, hellinger, random_queries
from sfumato.evaluate.learning import auc, held_out
from sfumato.evaluate.runs import Key, Outcome
from sfumato.papers.figures import (
    Between,
    Beyond,
    Claim,
    Effort,
    Evidence,
    Figure,
    Found,
    Paper,
    Parts,
    Rule,
    statement,
)
from sfumato.papers.runs import (
    BAYES,
    COARSE,
    DPCOCGEN_OURS,
    EPSILONS,
    FINEST,
    LAPLACE,
    RAW,
    THOUSAND,
    VARIANTS,
    adult,
    coded,
    release_of,
)
from sfumato.pictures.canvas import Panel

NAME = "dpcocgen"
ATTRIBUTES = ("age", "workclass", "education", "relationship", "sex")
"""The attributes that the paper publishes."""
TARGETS = ("sex", "relationship")
"""What figures 4 and 5 predict."""
QUERIES = 100
"""The number of range counts of figure 3."""
GRANULARITIES = (FINEST, THOUSAND, COARSE)
"""The grid as published, from the finest to the coarsest; figures 3 to 5 have the finest."""
COMPARED = (LAPLACE, FINEST, THOUSAND, BAYES, DPCOCGEN_OURS)
"""The methods of figures 3 to 5."""
CLOSE = Between(-math.inf, 0.1, 0.2)
"""How near the errors of figure 3 must be to those of PrivBayes; stated before any was run."""
EXCEPTED = (COARSE, "0.5")
"""The granularity and the budget at which the paper says that the grid is too coarse."""


@cache
def people() -> tuple[pa.Table, Schema, CodedRows]:
    """The table, the schema of the five attributes, and their codes."""
    table = adult()[0]
    schema = adult()[1].only(ATTRIBUTES)
    return table, schema, coded(table, schema)


def individuals(key: Key, table: pa.Table, rows: int | None = None) -> CodedRows:
    """Publish a table and draw synthetic individuals."""
    release = release_of(key, table, people()[1])
    return release.sample_codes(rows, seed=key["run"], how=VARIANTS[key["method"]].how)


def distance(key: Key) -> Outcome:
    """The Hellinger distance of the joint distribution of one release's individuals."""
    table, _, rows = people()
    return {"Hellinger": hellinger(rows, individuals(key, table), ATTRIBUTES)}


def asked(key: Key) -> Outcome:
    """The average relative error of random range counts, of as many individuals as the table has rows."""
    table, schema, rows = people()
    drawn = individuals(key, table, table.num_rows)
    queries = random_queries(schema, QUERIES, seed=1, attributes=(1, len(ATTRIBUTES)))
    truths, answers = (np.array([query.truth(one) for query in queries], np.float64) for one in (rows, drawn))
    return {"error": float(floored_errors(answers, truths, table.num_rows).mean())}


def taught(key: Key) -> Outcome:
    """The AUC for sex and relationship on the other fifth, learnt from individuals or from the rows themselves."""
    table, schema, rows = people()
    ((train, test),) = held_out(100, 80, table.num_rows, key["run"])
    asked_of, seen = ({name: rows[name][which] for name in ATTRIBUTES} for which in (test, train))
    learnt = seen if key["method"] == RAW else individuals(key, table.take(train))
    return {target: auc(schema, learnt, asked_of, target) for target in TARGETS}


def keys(effort: Effort, work: str, methods: tuple[str, ...], full: int) -> list[Key]:
    """The runs of some methods over the budget."""
    return [
        {"work": f"dpcocgen.{work}", "method": method, "epsilon": epsilon, "run": run}
        for method in methods
        for epsilon in effort.some(EPSILONS, ("0.1", "0.5", "1"))
        for run in effort.runs_of(full, 5)
    ]


def taught_keys(effort: Effort) -> list[Key]:
    """The runs of figures 4 and 5, with those that see the rows themselves."""
    raw: list[Key] = [{"work": "dpcocgen.taught", "method": RAW, "run": run} for run in effort.runs_of(50, 5)]
    return [*keys(effort, "taught", COMPARED, 50), *raw]


def beside_baseline(found: Found, method: str, measure: str) -> Evidence:
    """A measure minus that of the baseline; as published, at every granularity that was run."""
    methods = [one for one in GRANULARITIES if found.places("epsilon", measure, method=one)]
    shown = {method: method.removeprefix("as published, ") for method in methods} if method == FINEST else {method: ""}
    return {
        ", ".join(part for part in (f"ε = {epsilon}", name) if part): found.values(measure, method=one, epsilon=epsilon)
        - found.values(measure, method=LAPLACE, epsilon=epsilon)
        for one, name in shown.items()
        for epsilon in found.places("epsilon", measure, method=one)
        if (one, epsilon) != EXCEPTED
    }


def beside(found: Found, method: str, measure: str, other: str = LAPLACE) -> Evidence:
    """A measure minus that of another method, the baseline if none is named, at every budget."""
    return {
        f"ε = {epsilon}": found.values(measure, method=method, epsilon=epsilon)
        - found.values(measure, method=other, epsilon=epsilon)
        for epsilon in found.places("epsilon", measure, method=method)
    }


def below_and_near(found: Found, method: str) -> tuple[Evidence, ...]:
    """The error minus that of the baseline, and minus that of PrivBayes."""
    return tuple(beside(found, method, "error", other) for other in (LAPLACE, BAYES))


def above_and_near(found: Found, method: str, measure: str) -> tuple[Evidence, ...]:
    """AUC minus that of the baseline, that of the rows themselves minus AUC, and AUC minus that of PrivBayes."""
    near = {
        f"ε = {epsilon}": found.values(measure, method=RAW) - found.values(measure, method=method, epsilon=epsilon)
        for epsilon in found.places("epsilon", measure, method=method)
    }
    return beside(found, method, measure), near, beside(found, method, measure, BAYES)


def panels(found: Found, measure: str, label: str, *methods: str, logarithmic: bool = False) -> list[Panel]:
    """A measure over the budget."""
    curves = tuple(found.curve(one, measure, "epsilon", method=one) for one in methods)
    raw = found.values(measure, method=RAW)
    lines = ((f"{RAW} {raw.mean():.3f}", float(raw.mean())),) if len(raw) else ()
    return [Panel("age, workclass, education, relationship, sex", "ε", label, curves, lines, (), (False, logarithmic))]


def _prediction(figure: str, target: str) -> Claim:
    parts: dict[str, Rule] = {
        "above the baseline": Beyond("above"),
        "close to the rows themselves": Between(-math.inf, 0.02, 0.03),
        f"above {BAYES}": Beyond("above"),
    }
    return Claim(
        statement(NAME, figure, "AUC"),
        Parts(parts),
        partial(above_and_near, measure=target),
        FINEST,
        DPCOCGEN_OURS,
        "the model is naive Bayes, which the paper does not name",
        also=(THOUSAND,),
    )


def _prediction_figure(figure: str, target: str) -> Figure:
    return Figure(
        NAME,
        figure,
        f"DPCocGen, figure {figure}: predicting {target}",
        taught_keys,
        lambda found: panels(found, target, f"AUC for {target}", *COMPARED),
    )


PAPER = Paper(
    NAME,
    (
        Figure(
            NAME,
            "2",
            "DPCocGen, figure 2: distance of the joint distribution",
            partial(keys, work="distance", methods=(LAPLACE, *GRANULARITIES, DPCOCGEN_OURS), full=50),
            lambda found: panels(found, "Hellinger", "Hellinger distance", LAPLACE, *GRANULARITIES, DPCOCGEN_OURS),
        ),
        Figure(
            NAME,
            "3",
            "DPCocGen, figure 3: 100 random range counts",
            partial(keys, work="asked", methods=COMPARED, full=15),
            lambda found: panels(found, "error", "average relative error", *COMPARED, logarithmic=True),
        ),
        _prediction_figure("4", "sex"),
        _prediction_figure("5", "relationship"),
    ),
    (
        Claim(
            statement(NAME, "2", "Hellinger"),
            Beyond("below"),
            partial(beside_baseline, measure="Hellinger"),
            FINEST,
            DPCOCGEN_OURS,
        ),
        Claim(
            statement(NAME, "3", "relative error"),
            Parts({"below the baseline": Beyond("below"), f"close to {BAYES}, or below": CLOSE}),
            below_and_near,
            FINEST,
            DPCOCGEN_OURS,
            also=(THOUSAND,),
        ),
        _prediction("4", "sex"),
        _prediction("5", "relationship"),
    ),
)
