"""The papers by name, and where the work of their runs is done."""

from __future__ import annotations

import time
from importlib import import_module

from sfumato.errors import MethodError
from sfumato.evaluate.runs import Key, Outcome
from sfumato.papers import cdiffgen, confidence, diffgen, diffmulti, dpcocgen
from sfumato.papers.figures import Figure, Paper

PAPERS: dict[str, Paper] = {
    paper.name: paper for paper in (diffgen.PAPER, cdiffgen.PAPER, diffmulti.PAPER, dpcocgen.PAPER, confidence.PAPER)
}
ALL = "all"
TOOK = "took"
"""The processor seconds of a run, all of it."""


def perform(key: Key) -> Outcome:
    """Do the work of a run: `accuracy.learnt` is a function of a module beside this one; and tell how long it took."""
    module, function = key["work"].split(".")
    work = getattr(import_module(f"sfumato.papers.{module}"), function)
    start = time.process_time()
    outcome: Outcome = work(key)
    return outcome | {TOOK: time.process_time() - start}


def chosen(paper: str, figure: str | None = None) -> list[Figure]:
    """Give the figures of a paper, or of all, or the one that was named; refuse what there is not."""
    if paper not in (*PAPERS, ALL):
        raise MethodError(f"paper ({paper[:50]}) must be one of {', '.join([*PAPERS, ALL])}", "Choose one of them.")
    if paper == ALL:
        if figure is not None:
            raise MethodError("figure must come with one paper", "Name the paper instead of all.")
        return [one for each in PAPERS.values() for one in each.figures]
    figures = {one.name: one for one in PAPERS[paper].figures}
    if figure is None:
        return list(figures.values())
    if figure not in figures:
        raise MethodError(
            f"figure ({figure[:50]}) must be one of those of {paper} that are reproduced: {', '.join(figures)}",
            "Choose one of them.",
        )
    return [figures[figure]]
