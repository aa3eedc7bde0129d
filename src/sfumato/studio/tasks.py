"""What the studio does in processes of its own: plain values in, plain values and pieces of pages out.

Each task is a few calls of the library. Pictures are those of the report. What is worked out from rows goes back to the
studio's memory for the holder's eyes, and is written nowhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import sfumato
from sfumato import METHODS, Z95, Account, Identifier, Method, Release, Schema, find_data, seeded_release
from sfumato.compare import Contestant, Results, carry_out_contest, open_contest
from sfumato.compare.advice import Stage, advise
from sfumato.compare.contest import MEASURES, Group
from sfumato.compare.results import panel_of
from sfumato.pictures.distributions import Counts, draw_bars, draw_steps
from sfumato.pictures.inline import draw_panel
from sfumato.report.asking import Bins, bins_of
from sfumato.report.distributions import distributions_section, queries_section
from sfumato.report.page import shape_section
from sfumato.report.promise import ledger_section, promise_section
from sfumato.studio.work import Watch

Facts = Mapping[str, Any]
DRAFT_HEAD = """\
# A draft from private data, NOT confirmed. A schema is public: what stands here is published with every release.
# No value that fewer than 20 rows have is written here, and bounds are rounded; what the rows have in common is your
# decision. Look at each column and its reason in the studio, or here, before it is confirmed.
"""
"""What a drafted schema file begins with."""
MOST_BINS = 20
"""The most parts of a column that are drawn."""
MOST_DRAWN = 60
"""The most columns that are drawn."""
SEEDS = (0, 1)
"""Seeds of the releases of made-up people by which errors are expected."""
SHOWN = (
    ("relative error, all (median)", "Error of range counts"),
    ("accuracy, tree on groups", "Accuracy of a tree on new rows"),
    ("accuracy, logistic regression", "Accuracy of logistic regression on new rows"),
    ("total variation, 2-way", "How far pairs of attributes are off"),
)
"""The measures of a comparison that are drawn, and what they are called."""
WIDE, NARROW = 460.0, 340.0
"""Widths of curves, in pixels."""


def draft_task(facts: Facts, watch: Watch) -> dict[str, Any]:
    """Draft a schema; its text comes back."""
    watch("reading the table", 0, 0)
    source = find_data(facts["table"])
    found = sfumato.draft(
        source.table,
        source.name,
        facts["target"] or None,
        decimal=facts["decimal"] or None,
        date_format=facts["date_format"] or None,
        codebook=facts["codebook"] or None,
        budget=facts["budget"] or None,
        watch=lambda step: watch(step, 0, 0),
    )
    return {"text": found.dump(DRAFT_HEAD)}


def look_task(facts: Facts, watch: Watch) -> dict[str, Any]:
    """Look at a table by its schema: what does not fit, what would betray, how values are distributed."""
    watch("reading the table", 0, 3)
    table, schema = find_data(facts["table"]).table, Schema.loads(facts["schema"])
    fit = sfumato.check(table, schema)
    watch("counting", 1, 3)
    coded = sfumato.coded(table, schema, misfits=True)
    watch("drawing", 2, 3)
    drawn: dict[str, str] = {}
    for name, column in itertools.islice(schema.attributes.items(), MOST_DRAWN):
        if not isinstance(column, Identifier):
            codes = np.asarray(coded.columns[name], np.int64)
            drawn[name] = _distribution(bins_of(name, column, MOST_BINS), codes[codes < column.leaves])
    return {
        "rows": fit.rows,
        "misfits": [{"column": one.column, "reason": one.reason, "rows": one.rows} for one in fit.misfits],
        "outside": dict(fit.outside),
        "undeclared": list(fit.undeclared),
        "findings": [
            {"columns": list(one.columns), "problem": one.problem, "remedy": one.remedy, "betrays": one.betrays}
            for one in fit.findings
        ],
        "pictures": drawn,
    }


def _distribution(bins: Bins, codes: Any) -> str:
    """Draw the exact counts of a column."""
    values = np.bincount(bins.of(codes), minlength=len(bins)).astype(np.float64)
    counts = Counts(bins.labels, values, values, values)
    told = itertools.islice(zip(bins.labels, values.tolist(), strict=True), 8)
    label = f"Rows by {bins.name}: " + "; ".join(f"{one} {value:,.0f}" for one, value in told)
    if bins.numeric and len(bins) > 3:
        return draw_steps(counts, bins.edges, label)
    return draw_bars(counts, [""] * len(bins), label)


def expect_task(facts: Facts, watch: Watch) -> dict[str, Any]:
    """Say how far answers to a holder's questions will be off, by releases of made-up people: no row is read."""
    schema, epsilon = Schema.loads(facts["schema"]), facts["epsilon"]
    method = _method(facts)
    watch("making people up", 0, 0)
    stage = Stage.of(schema, min(int(facts["rows"]), 100_000))
    halves: list[list[float]] = []
    for seed in SEEDS:
        watch("publishing made-up people", seed, len(SEEDS))
        release = seeded_release(stage.table, stage.schema, method, epsilon, seed)
        halves.append((Z95 * release.count_many(facts["questions"]).stddevs).tolist())
    typical = stage.expect(method, Fraction(epsilon))
    means = [float(np.mean(one)) for one in zip(*halves, strict=True)]
    return {
        "questions": [{"text": text, "half": half} for text, half in zip(facts["questions"], means, strict=True)],
        "typical": [Z95 * one for one in typical.errors],
        "refusal": typical.refusal,
    }


def advise_task(facts: Facts, watch: Watch) -> dict[str, Any]:
    """Say what to expect of each method, by releases of made-up people: no row is read."""
    steps = itertools.count()
    total = len(METHODS) + 3
    found = advise(
        Schema.loads(facts["schema"]),
        int(facts["rows"]),
        [facts["epsilon"]],
        "counts",
        lambda step: watch(step, next(steps), total),
    )
    ranked = sorted(found.expected, key=lambda one: one.typical)
    return {
        "methods": [
            {"method": one.method, "errors": [Z95 * error for error in one.errors], "refusal": one.refusal}
            for one in ranked
        ],
        "saved": dict(found.saved),
        "warnings": found.warnings,
    }


def compare_task(facts: Facts, watch: Watch) -> dict[str, Any]:
    """Publish a table with known seeds by several methods, and measure; finished runs are kept."""
    watch("reading the table", 0, 0)
    schema = Schema.loads(facts["schema"])
    groups: tuple[Group, ...] = (
        ("queries", "marginals", "classification") if schema.target else ("queries", "marginals")
    )
    contest = open_contest(
        find_data(facts["table"]).table,
        schema,
        [Contestant(name, METHODS[name]()) for name in facts["methods"]],
        [Fraction(one) for one in facts["epsilons"]],
        runs=facts["runs"],
        groups=groups,
    )
    results = carry_out_contest(
        contest, Path(facts["folder"]), watch=lambda done, every: watch(f"run {done} of {every}", done, every)
    )
    return {
        "pictures": _curves(results),
        "words": recommendation(results),
        "left_out": list(results.left_out),
    }


def _curves(results: Results) -> list[dict[str, str]]:
    means, drawn = results.means(), []
    for name, title in SHOWN:
        if name in results.measures:
            panel = panel_of(results, MEASURES[name], [one for one in means if one.measure == name])
            told = "; ".join(f"{one.method} at {one.epsilon} {one.mean:.3g}" for one in means if one.measure == name)
            svg = "".join(draw_panel(panel, width, f"{title}: {told}", of) for width, of in _SIZES)
            drawn.append({"title": title, "svg": svg})
    return drawn


_SIZES = ((NARROW, "narrow"), (WIDE, "wide"))


def recommendation(results: Results) -> list[str]:
    """Say in words which method did best at the middle epsilon, by what was measured."""
    epsilons = sorted({one.epsilon for one in results.found if one.epsilon is not None}, key=Fraction)
    if not epsilons:
        return []
    middle, words = epsilons[len(epsilons) // 2], []
    for name, title in SHOWN:
        able = [one for one in results.means() if one.measure == name and one.epsilon == middle]
        if not able:
            continue
        sign = -1 if MEASURES[name].better == "higher" else 1
        best, *others = sorted(able, key=lambda one: sign * one.mean)
        text = f"{title}, at epsilon {middle}: {best.method}, {_told(name, best.mean)}"
        text += f", is best; next is {others[0].method}, {_told(name, others[0].mean)}" if others else ""
        near = others and best.standard_error is not None and abs(best.mean - others[0].mean) < 2 * best.standard_error
        words.append(text + (", but the two can hardly be told apart." if near else "."))
    return words


def _told(measure: str, value: float) -> str:
    return f"{100 * value:.1f} %" if measure.startswith("accuracy") else f"{value:.3g}"


def publish_task(facts: Facts, watch: Watch) -> dict[str, Any]:
    """Publish: the one thing that spends."""
    schema, method = Schema.loads(facts["schema"]), _method(facts)
    account = Account(facts["ledger"], schema)
    rounds = len(account.plan(method, facts["epsilon"]).parts) + 2
    steps = itertools.count()
    release = account.publish(
        find_data(facts["table"]).table,
        method,
        facts["epsilon"],
        out=facts["out"],
        watch=lambda step: watch(step, min(next(steps), rounds - 1), rounds),
    )
    return {"extent": release.extent, "guarantee": release.manifest.guarantee, "warnings": [*release.manifest.warnings]}


def release_task(facts: Facts, watch: Watch) -> dict[str, Any]:
    """Draw what a release holds, and say what it is good for."""
    watch("opening the release", 0, 3)
    release = Release.load(facts["release"])
    good = good_for(release)
    watch("drawing distributions", 1, 3)
    held = distributions_section(release)
    watch("asking questions", 2, 3)
    parts = [one(release) for one in (promise_section, ledger_section, shape_section, queries_section)]
    about = f"{release.extent}, about {max(release.total, 0):,} people"
    return {
        "about": about,
        "good": good,
        "held": held.replace("<h4", '<h3 class="label"').replace("</h4>", "</h3>"),
        "parts": parts,
    }


def good_for(release: Release) -> dict[str, list[str]]:
    """Sort questions about single values and pairs of values by how well the release answers them."""
    everyone = max(release.count().value, 1.0)
    sizes = {"10 %": 0.1, "1 %": 0.01, "0.1 %": 0.001}
    rng = np.random.default_rng(0)
    columns = {**release.schema.predictors}
    names = [name for name, column in columns.items() if column.leaves > 1]
    asked: list[dict[str, Any]] = []
    for _ in range(200 if names else 0):
        chosen = rng.choice(names, min(int(rng.integers(1, 3)), len(names)), replace=False)
        parts = {str(name): bins_of(str(name), columns[str(name)], 8) for name in chosen}
        weights = {name: bins.weights() for name, bins in parts.items()}
        asked.append({name: several[int(rng.integers(len(several)))][name] for name, several in weights.items()})
    if not asked:
        return {"yes": [], "no": ["There is nothing to ask: no attribute has two values."]}
    answers = release.count_many(asked)
    halves = Z95 * answers.stddevs
    yes: list[str] = []
    no: list[str] = []
    for written, share in sizes.items():
        near = (answers.values > everyone * share / 3) & (answers.values < everyone * share * 3)
        if near.sum() >= 5:
            typical = float(np.median(halves[near]))
            relative = typical / (everyone * share)
            line = f"Counts of about {everyone * share:,.0f} people ({written} of all): ± {typical:,.0f}, typically."
            (yes if relative < 0.25 else no).append(line)
    if release.schema.target is not None:
        yes.append(f"Classifying by {release.schema.target}, and synthetic records to try programs on.")
    no.append("Finding out about one person: that is what it is made to prevent.")
    return {"yes": yes, "no": no}


def verify_task(facts: Facts, watch: Watch) -> dict[str, Any]:
    """Check a release, and that its account knows it, where there is one."""
    watch("reading every file", 0, 0)
    found = sfumato.verify(facts["release"], facts["ledger"])
    checks = [{"about": one.about, "outcome": one.outcome, "says": one.says} for one in found.checks]
    return {"verified": found.verified, "checks": checks}


def _method(facts: Facts) -> Method:
    found: Method = METHODS[facts["method"]](**facts["parameters"])
    return found
