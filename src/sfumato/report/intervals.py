"""How far noise may have moved the parts of one attribute: that of the regions' counts, and that of its margin.

`count` covers the noise of the regions' counts exactly. Where people are spread inside regions by a margin, its noise
moves the parts, too. What a part's own leaves, or the groups of them that were bought, would err by is added in
that measure in which the answer rests on spreading: a little too much, since reading the margin takes some noise out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.halving import borders
from sfumato.privacy.noisy import Margin, variance_of
from sfumato.release.answers import Z95, Answers
from sfumato.release.release import Release
from sfumato.report.bins import Bins

Floats = NDArray[np.float64]


def margin_of(release: Release, name: str) -> Margin | None:
    """Give the margin by which an attribute's people are spread inside regions, if one was bought."""
    names = list(release.schema.predictors)
    return release.margins.get(names.index(name)) if name in names else None


def half_widths(release: Release, bins: Bins, answers: Answers) -> Floats:
    """Give half the 95 % interval of every part."""
    margin = margin_of(release, bins.name)
    if margin is None:
        return np.asarray(Z95 * answers.stddevs)
    resting = np.minimum(np.abs(answers.assumed) / np.maximum(np.abs(answers.values), 1.0), 1.0)
    resting = np.where((answers.assumed != 0) & (np.abs(answers.values) < 1), 1.0, resting)
    return np.asarray(Z95 * np.sqrt(answers.stddevs**2 + resting**2 * _variances(margin, bins)))


def _variances(margin: Margin, bins: Bins) -> Floats:
    """Give for every part the least variance that its leaves have together, or groups inside it and other leaves."""
    leaf = variance_of(margin.levels[-1].rate)
    begins, ends = bins.borders[:-1], bins.borders[1:]
    best = (ends - begins) * leaf
    for level in margin.levels[:-1]:
        marks = np.asarray(borders(margin.leaves, level.depth))
        first, last = np.searchsorted(marks, begins, side="left"), np.searchsorted(marks, ends, side="right") - 1
        groups = np.maximum(last - first, 0)
        inside = marks[first + groups] - marks[first]
        best = np.minimum(best, groups * variance_of(level.rate) + (ends - begins - inside) * leaf)
    return np.asarray(best, np.float64)
