"""The two-way distributions of a release: the pairs of attributes that hang together most strongly in it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.pictures.distributions import Cells, draw_heat_map
from sfumato.release.answers import Z95, Answers
from sfumato.release.questions import Condition
from sfumato.release.release import Release
from sfumato.report.asking import rests, together
from sfumato.report.bins import Bins, every_bins
from sfumato.report.html import Html, details, figure, paragraph, shortened, table, tag

MOST_BINS = 8
MOST_ATTRIBUTES = 40
"""Of more attributes the first so many are compared."""
PAIRS = 6
MOST_DRAWN = 20_000
"""So many records are drawn from the release to see which attributes hang together."""
THRICE = 3
"""No attribute is in more pairs than this, so that one does not fill all."""
WEAK, FEWEST = 0.1, 2
"""Pairs that hang together less than this are shown only if there would be fewer than so many."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two attributes and how strongly they hang together in the release."""

    down: Bins
    across: Bins
    strength: float

    @classmethod
    def of(cls, one: Bins, other: Bins, strength: float) -> Pair:
        """Lay two attributes out, the one with longer names down the side."""
        down, across = sorted((one, other), key=lambda bins: -max(map(len, bins.labels)))
        return cls(down, across, strength)

    @property
    def names(self) -> tuple[str, str]:
        """What the attributes are called."""
        return self.down.name, self.across.name

    @property
    def questions(self) -> list[Condition]:
        """Ask for every cell, row by row."""
        rows, columns = self.down.weights(), self.across.weights()
        return [{**row, **column} for row in rows for column in columns]


def strongest_pairs(release: Release, most: int = PAIRS) -> list[Pair]:
    """Choose pairs by Cramér's V in records drawn from the release with a fixed seed, corrected for chance.

    With V² = χ² / (n min(r - 1, c - 1)), and χ² about (r - 1)(c - 1) by chance alone, which is taken off.
    """
    size = min(max(release.total, 0), MOST_DRAWN)
    if not size:
        return []
    drawn = release.sample_codes(size, seed=0)
    bins = [one for one in every_bins(release.schema, MOST_BINS)[:MOST_ATTRIBUTES] if len(one) > 1]
    held = {one.name: one.of(drawn[one.name]) for one in bins}
    found = [
        Pair.of(one, other, association(held[one.name], held[other.name], (len(one), len(other))))
        for one, other in itertools.combinations(bins, 2)
    ]
    chosen: list[Pair] = []
    for pair in sorted(found, key=lambda pair: -pair.strength):
        used = [name for other in chosen for name in other.names]
        if max(map(used.count, pair.names)) < THRICE and pair.strength > 0:
            chosen.append(pair)
    return [pair for at, pair in enumerate(chosen[:most]) if pair.strength >= WEAK or at < FEWEST]


def association(one: NDArray[np.int64], other: NDArray[np.int64], shape: tuple[int, int]) -> float:
    """Give Cramér's V of two coded columns, corrected for chance; values that nobody has do not count.

    >>> same = np.array([0, 1, 2] * 20)
    >>> round(association(same, same, (3, 3)), 2), association(np.arange(40) % 2, np.arange(40) // 20, (2, 2))
    (0.98, 0.0)
    """
    counts = np.bincount(one * shape[1] + other, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    freedom = [size - 1 for size in counts.shape]
    if not min(freedom, default=0):
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    chi = float(((counts - expected) ** 2 / expected).sum()) - freedom[0] * freedom[1]
    return float(np.sqrt(max(chi, 0.0) / (counts.sum() * min(freedom))))


def pairs_shown(release: Release, everyone: float) -> list[Html]:
    """Show the pairs, in shares of everyone."""
    pairs = strongest_pairs(release)
    if not pairs:
        return [paragraph("No two attributes hang together in this release.", class_="note")]
    answers = together(release, [pair.questions for pair in pairs])
    drawn = [_heat_map(pair, found, max(everyone, 1.0)) for pair, found in zip(pairs, answers, strict=True)]
    return [
        tag("h3", "Two attributes at a time"),
        paragraph(
            "The pairs that hang together most strongly in the release itself (Cramér's V of records drawn from it, no "
            "attribute more than three times). Numbers are percent of all people; the more, the darker. "
            "Hatched: the 95 % interval for the regions' counts reaches 0, so there may be nobody."
        ),
        tag("div", *drawn, class_="multiples"),
    ]


def _heat_map(pair: Pair, answers: Answers, total: float) -> Html:
    down, across = pair.down, pair.across
    shape = (len(down), len(across))
    values, halves = answers.values.reshape(shape), Z95 * answers.stddevs.reshape(shape)
    cells = Cells(down.labels, across.labels, values / total, (values - halves <= 0))
    names = (shortened(down.name, 30), shortened(across.name, 30))
    label = f"People by {names[0]} and {names[1]}, in percent of all"
    rows = [
        (
            one,
            *(
                f"{value:,.0f} ± {half:,.0f}" if half else f"{value:,.0f}"
                for value, half in zip(line, errors, strict=True)
            ),
        )
        for one, line, errors in zip(down.labels, values.tolist(), halves.tolist(), strict=True)
    ]
    numbers = table((f"{names[0]} \\ {names[1]}", *across.labels), rows, range(1, len(across) + 1))
    return figure(
        Html(draw_heat_map(cells, names, label)),
        caption=f"Cramér's V {pair.strength:.2f}. {rests(answers)}",
        below=details("Numbers", numbers),
    )
