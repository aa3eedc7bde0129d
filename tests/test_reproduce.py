"""The papers' figures drawn again: every claim has a rule, every rule reaches every verdict, nothing is run twice."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pytest

from command_line import RUNNER
from sfumato.cli import main
from sfumato.cli.show import REFUSED
from sfumato.papers import reproduction as catalogue
from sfumato.papers.figures import (
    TITLES,
    Between,
    Beyond,
    Claim,
    Effort,
    Figure,
    Found,
    Paper,
    Parts,
    Stated,
    Verdict,
    stated,
)
from sfumato.papers.reproduction import NO_GUARANTEE
from sfumato.pictures.canvas import Panel

EVERY_FIGURE = [figure for paper in catalogue.PAPERS.values() for figure in paper.figures]
EVERY_CLAIM = [claim for paper in catalogue.PAPERS.values() for claim in paper.claims]


def places(**means: float) -> dict[str, np.ndarray]:
    """Give runs with the given means, whose standard error is 0.1."""
    return {place: np.array([mean - 0.1, mean + 0.1]) for place, mean in means.items()}


def test_every_statement_is_judged_once_and_shown_in_a_figure() -> None:
    assert len(stated()) == 35
    assert sorted(map(str, stated())) == sorted(str(claim.stated) for claim in EVERY_CLAIM)
    for name, paper in catalogue.PAPERS.items():
        shown = {figure.name for figure in paper.figures}
        assert name in TITLES
        assert all(set(claim.stated.figures) <= shown for claim in paper.claims)
    assert all(one.source for one in stated())


@pytest.mark.parametrize(
    ("mean", "verdict", "side"),
    [
        (6.74, Verdict.REPRODUCED, ""),
        (7.4, Verdict.REPRODUCED, ""),
        (8.0, Verdict.DIFFERENT, "above"),
        (5.5, Verdict.DIFFERENT, "below"),
        (9.1, Verdict.NOT, "above"),
    ],
)
def test_a_number_is_near_or_far(mean: float, verdict: Verdict, side: str) -> None:
    found = Between.near(6.74).judge(places(a=mean))
    assert (found.verdict, found.missed) == (verdict, side)


def test_the_place_that_misses_most_decides() -> None:
    rule = Between(-math.inf, 30, 30, "s")
    assert rule.judge(places(a=1, b=29)).verdict == Verdict.REPRODUCED
    assert rule.judge(places(a=1, b=45)).verdict == Verdict.DIFFERENT
    assert rule.judge(places(a=1, b=99)).verdict == Verdict.NOT


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ({"a": 1.0, "b": 0.05}, Verdict.REPRODUCED),
        ({"a": 1.0, "b": -0.05}, Verdict.DIFFERENT),
        ({"a": 0.05, "b": 0.05}, Verdict.NOT),
        ({"a": -1.0, "b": 0.5}, Verdict.NOT),
    ],
)
def test_one_method_is_above_another(means: dict[str, float], verdict: Verdict) -> None:
    assert Beyond("above").judge(places(**means)).verdict == verdict
    assert Beyond("below").judge(places(**{place: -mean for place, mean in means.items()})).verdict == verdict


def test_parts_are_judged_together() -> None:
    rule = Parts({"above": Beyond("above"), "few": Between(0, 1, 1)})
    good, middling, bad = places(a=1.0), places(a=2.0), places(a=9.0)
    assert rule.judge((good, good)).verdict == Verdict.REPRODUCED
    assert rule.judge((good, bad)).verdict == Verdict.DIFFERENT
    assert rule.judge((places(a=1.0, b=-0.5), middling)).verdict == Verdict.DIFFERENT
    assert rule.judge((places(a=-1.0), middling)).verdict == Verdict.NOT
    assert "at least 0 and at most 1" in rule.words


def test_every_figure_and_claim_can_do_with_any_numbers() -> None:
    effort, rng = Effort(quick=True, runs=2), np.random.default_rng(0)
    for paper in catalogue.PAPERS.values():
        found = {figure.name: invented(figure, effort, rng) for figure in paper.figures}
        for figure in paper.figures:
            panels = figure.panels(found[figure.name])
            assert panels
            assert all(curve.values for panel in panels for curve in panel.curves)
        for claim in paper.claims:
            both = Found(tuple(run for name in claim.stated.figures for run in found[name].runs))
            assert claim.judge(both).numbers
            assert set(claim.judge_others(both)) == {claim.ours, *claim.also} - {None}


class Anything(dict):
    """An outcome that has every measure."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def __contains__(self, measure: object) -> bool:
        return True

    def __missing__(self, measure: str) -> float:
        return self.value


def invented(figure: Figure, effort: Effort, rng: np.random.Generator) -> Found:
    keys = {json.dumps(key, sort_keys=True): key for key in figure.keys(effort)}
    return Found(tuple((key, Anything(float(rng.uniform(1, 2)))) for key in keys.values()))


def test_runs_of_the_quick_effort_are_among_all() -> None:
    for figure in EVERY_FIGURE:
        few, many = (
            {json.dumps(key, sort_keys=True) for key in figure.keys(Effort(quick=quick))} for quick in (True, False)
        )
        assert len(few) <= len(many)


SMALL = {"source": "census", "sensitive": "salary", "rows": 3000, "run": 0}
WORKS = [
    {"work": "runs.learnt", "protocol": "2/3", "method": "DiffGen, ours", "epsilon": "1", "h": 4, "run": 0},
    {"work": "runs.learnt", "protocol": "10-fold", "method": "TDS, k = 5", "run": 11},
    {
        "work": "runs.raw",
        "protocol": "5-fold",
        "attributes": ["age", "sex", "income"],
        "method": "raw rows",
        "run": 0,
    },
    {
        "work": "runs.learnt",
        "protocol": "files",
        "learner": "linear SVM",
        "attributes": ["sex", "income"],
        "method": "DiffMulti, ours",
        "epsilon": "1",
        "h": 100,
        "run": 0,
    },
    {"work": "runs.generalized", "method": "DiffMulti NCP, ours", "epsilon": "1", "h": 50, "run": 0},
    {"work": "runs.matched", "method": "DiffMulti, ours", "epsilon": "1", "h": 50, "run": 0},
    {"work": "runs.grown", "method": "DiffMulti, ours", "epsilon": "1", "h": 50, "rows": 60_000, "run": 0},
    {"work": "dpcocgen.distance", "method": "Laplace baseline", "epsilon": "1", "run": 0},
    {"work": "dpcocgen.asked", "method": "DPCocGen, ours", "epsilon": "1", "run": 0},
    {"work": "dpcocgen.taught", "method": "raw rows", "run": 0},
    {"work": "confidence.suppressed", "method": "confidence", "distortion": "0.6", **SMALL},
    {"work": "confidence.asked", "method": "Mondrian, Max.k", **SMALL},
    {"work": "confidence.asked", "method": "Laplace, interactive", "epsilon": "0.1", **SMALL},
    {"work": "confidence.grown", "method": "Mondrian, k = 10", "rows": 5000, "k": 10, "run": 0},
]


@pytest.mark.parametrize("key", WORKS, ids=lambda key: f"{key['work']} {key['method']}")
def test_works_give_numbers_and_leave_nothing_behind(key, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = catalogue.perform(key)
    assert len(outcome) > 1
    assert all(math.isfinite(value) for value in outcome.values())
    assert not list(tmp_path.iterdir())


@pytest.fixture
def tiny(monkeypatch) -> list[dict]:
    """Put one small paper in the place of all; give the runs that are made."""
    made: list[dict] = []

    def perform(key):
        made.append(key)
        return {"CA": 80.0 + key["run"] + (key["method"] == "ours"), "took": 1.0}

    figure = Figure(
        "diffgen",
        "3a",
        "a tiny figure",
        lambda effort: [
            {"method": method, "h": h, "run": run}
            for method in ("published", "ours")
            for h in effort.some((4, 7, 10), (4,))
            for run in effort.runs_of(3, 2)
        ],
        lambda found: [
            Panel(
                "all of it",
                "h",
                "CA",
                tuple(found.curve(name, "CA", "h", method=name) for name in ("published", "ours")),
                (("LA", 75.0),),
                (("stated", 4.0, 81.0),),
            )
        ],
    )
    claim = Claim.near(
        Stated("diffgen", "3a", "anything", "CA", 80.5, "about", "nowhere"),
        lambda found, method: {"h = 4": found.values("CA", method=method, h=4)},
        "published",
        "ours",
    )
    monkeypatch.setattr(catalogue, "PAPERS", {"diffgen": Paper("diffgen", (figure,), (claim,))})
    monkeypatch.setattr(catalogue, "perform", perform)
    return made


def reproduced(*words: object):
    return RUNNER.invoke(main, ["reproduce", *map(str, words), "--workers", "1"])


def test_a_reproduction_draws_judges_and_keeps(tiny, tmp_path) -> None:
    out = tmp_path / "again"
    result = reproduced("diffgen", "--quick", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "REPRODUCED: 80.50 (0.50) at h = 4 points" in result.stdout
    assert NO_GUARANTEE in result.stdout
    assert (out / "diffgen-3a.png").read_bytes().startswith(b"\x89PNG")
    assert "all of it,published,h,4,CA,80.5,0.5" in (out / "diffgen-3a.csv").read_text()
    page = (out / "verdicts.md").read_text()
    assert "**reproduced**" in page
    assert "the mean over runs is at least 80 and at most 81 points" in page
    assert len(tiny) == 4
    again = json.loads(reproduced("diffgen", "--figure", "3a", "--runs", 3, "--quick", "--out", out, "--json").stdout)
    assert len(tiny) == 6
    assert again["claims"][0]["verdict"] == "reproduced"
    assert again["claims"][0]["others"]["ours"]["verdict"] == "reproduced"
    assert again["processor_seconds"] == 6.0
    assert not list(tmp_path.rglob("*.ledger"))


def test_claims_of_dpcocgen_about_privbayes_are_judged_beside_it() -> None:
    told = {one.stated.figure: "PrivBayes" in one.rule.words for one in EVERY_CLAIM if one.stated.paper == "dpcocgen"}
    assert told == {"2": False, "3": True, "4": True, "5": True}


def test_better_than_stated_is_said_so(tiny, tmp_path) -> None:
    result = reproduced("all", "--runs", 30, "--quick", "--out", tmp_path / "again")
    assert "NOT REPRODUCED" in result.stdout
    assert "(better than stated)" in result.stdout
    assert len(tiny) == 60


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tarot",), "must be one of diffgen, cdiffgen, diffmulti, dpcocgen, confidence, all"),
        (("diffgen", "--figure", "99"), "3a, 3b, 4, text"),
        (("all", "--figure", "3a"), "must come with one paper"),
        (("diffgen", "--runs", "0"), "0 is not in the range"),
        (("diffgen", "--out", "file"), "must be a folder"),
        (("diffgen", "--out", "file/below"), "must be writable (not a directory)"),
        (("diffgen", "--out", "."), "must be empty, or hold an earlier reproduction"),
    ],
)
def test_refusals(words, said, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    result = reproduced(*words)
    assert result.exit_code == REFUSED
    assert said in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(("missing", "named"), [("matplotlib", "matplotlib"), ("sklearn.tree", "scikit-learn")])
def test_extras_that_are_missing_are_named(missing, named, tmp_path, monkeypatch) -> None:
    for module in [name for name in sys.modules if name.startswith(("sfumato.papers", "sfumato.evaluate"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, missing, None)
    result = reproduced("diffgen", "--out", tmp_path / "again")
    assert result.exit_code == REFUSED
    assert f"must have {named}" in result.stderr
    assert "sfumato[evaluate,pictures]" in result.stderr
