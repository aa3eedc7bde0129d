"""A scorecard laid out as tables of text, for whoever shows it: on a terminal or on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.evaluate.card import Scorecard


@dataclass(frozen=True)
class ScoreTable:
    """One table: what it is about, its columns, its rows, and which columns hold numbers."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    numbers: Sequence[int]


def tables_of(card: Scorecard, target: str | None) -> Iterator[ScoreTable]:
    """Give the tables that the card has something to tell in."""
    if card.lessons:
        yield _lessons(card, str(target))
    information = [
        (name, f"{value:,}" if isinstance(value, int) else f"{value:.4f}") for name, value in card.information.items()
    ]
    yield ScoreTable("Information", ("measure", "value"), information, (1,))
    if card.marginals:
        yield _marginals(card)
    queries = [(one.size, f"{one.queries:,}", f"{one.mean:.3f}", f"{one.median:.3f}") for one in card.queries]
    yield ScoreTable("Relative error of range counts", ("size", "queries", "mean", "median"), queries, (1, 2, 3))
    if card.clusters:
        clusters = [(one.clusters, one.after, _percent(one.match_point)) for one in card.clusters]
        yield ScoreTable("Clusters", ("clusters", "after", "Match Point"), clusters, (0, 2))


def _lessons(card: Scorecard, target: str) -> ScoreTable:
    rows = [
        (
            *(one.learner, one.taught_by, *map(_percent, (one.ba, one.ca, one.cost, one.benefit))),
            *("" if area is None else f"{area:.3f}" for area in (one.auc_raw, one.auc)),
        )
        for one in card.lessons
    ]
    header = ("learner", "taught by", "BA (raw)", "CA", "cost", "benefit", "AUC (raw)", "AUC")
    lower = _percent(card.lessons[0].la)
    title = f"Classification of {target}; LA, always saying the most frequent class: {lower}"
    return ScoreTable(title, header, rows, range(2, 8))


def _marginals(card: Scorecard) -> ScoreTable:
    rows = [
        (
            *(f"{one.ways}-way", one.distance, f"{one.mean:.4f}", f"{one.worst:.4f}", ", ".join(one.worst_of)),
            f"{one.measured:,} of {one.of:,}",
        )
        for one in card.marginals
    ]
    header = ("marginals", "distance", "mean", "worst", "worst of", "measured")
    return ScoreTable("Fidelity of drawn records", header, rows, (2, 3))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
