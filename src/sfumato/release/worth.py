"""What a release is good for, by its own expected errors.

Questions are drawn with a fixed seed from the schema alone: so many attributes are restricted, each to an interval of
numbers or to a category. The release's own intervals say how far its answers may be off; of answers that are at least
one in a hundred people it is told by how much in relation to the answer. Whoever has the release finds the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfumato.arrays import Floats
from sfumato.models.intervals import half_widths
from sfumato.models.model import LEVEL, Answers
from sfumato.release.release import Release
from sfumato.schema.attributes import Categorical, Numeric
from sfumato.schema.schema import variables_of

QUESTIONS = 60
"""How many questions are asked about each number of attributes."""
MOST_TOGETHER = 3
"""The most attributes that a question restricts."""
LEAST_SHARE = 0.01
"""Smaller answers, in shares of all people, are not judged: their error is large in relation to them."""
FEWEST = 5
"""Of fewer questions nothing is said."""
GOOD, FAIR = 0.05, 0.2
"""Up to which relative error answers are good, and fair."""
SEED = 20
NUMBERS = {1: "one attribute", 2: "two attributes", 3: "three attributes"}
Verdict = Literal["good for", "fair for", "not for"]


@dataclass(frozen=True)
class Expected:
    """The error to expect of counts that restrict some attributes, relative to the count, by the release itself."""

    attributes: int
    questions: int
    typical: float
    """answers are as often nearer to the truth as farther: half of a 50 % interval, of the median question"""
    most: float
    """half of a 95 % interval, of the median question"""

    @property
    def kind(self) -> str:
        """What is asked, in words."""
        return f"counts by {NUMBERS[self.attributes]}"

    @property
    def verdict(self) -> Verdict:
        """What the release is for such questions."""
        return "good for" if self.typical <= GOOD else "fair for" if self.typical <= FAIR else "not for"

    @property
    def sentence(self) -> str:
        """The same as a sentence."""
        if not self.typical:
            return f"{self.kind}: exact, or nearly so"
        return f"{self.kind}: typically within {written(self.typical)}, and within {written(self.most)} at 95 %"


def written(share: float) -> str:
    """Write a relative error for people.

    >>> written(0.0432), written(0.000712), written(1.84)
    ('4.3 %', '0.071 %', '180 %')
    """
    percent = 100 * share
    return f"{percent:.0f} %" if 10 <= percent < 100 else f"{float(f'{percent:.2g}'):g} %"


def expected_errors(release: Release) -> list[Expected]:
    """Find the errors to expect of counts by one, two and three attributes, where there are enough to tell."""
    rng = np.random.default_rng(SEED)
    columns = {name: column for name, column in variables_of(release.schema).items() if column.leaves > 1}
    ways = range(1, min(MOST_TOGETHER, len(columns)) + 1)
    asked = [_question(columns, number, rng) for number in ways for _ in range(QUESTIONS)]
    answers = release.count_many(asked)
    found = [
        _expected(release, number, answers[at * QUESTIONS : (at + 1) * QUESTIONS]) for at, number in enumerate(ways)
    ]
    return [one for one in found if one is not None]


def _expected(release: Release, attributes: int, answers: Answers) -> Expected | None:
    judged = answers.values >= max(LEAST_SHARE * release.total, 1.0)
    if judged.sum() < FEWEST:
        return None
    halves = (half_widths(level, answers.noise, answers.untold)[judged] for level in (0.5, LEVEL))
    typical, most = (float(np.median(half / answers.values[judged])) for half in halves)
    return Expected(attributes, int(judged.sum()), typical, most)


def _question(
    columns: Mapping[str, Categorical | Numeric], attributes: int, rng: np.random.Generator
) -> dict[str, Floats]:
    names = list(columns)
    chosen = sorted(rng.choice(len(names), attributes, replace=False).tolist())
    return {names[at]: _part(columns[names[at]], rng) for at in chosen}


def _part(column: Categorical | Numeric, rng: np.random.Generator) -> Floats:
    """An interval between two borders of cells, or a category."""
    weights = np.zeros(column.leaves)
    if isinstance(column, Numeric):
        lo, hi = sorted(rng.choice(column.cells + 1, 2, replace=False).tolist()) if column.cells > 1 else (0, 1)
    else:
        nodes = [node for node in column.tree.nodes if (node.lo, node.hi) != (0, column.leaves)]
        node = nodes[int(rng.integers(len(nodes)))]
        lo, hi = node.lo, node.hi
    weights[lo:hi] = 1.0
    return weights
