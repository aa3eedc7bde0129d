"""What a release costs those who use it: the time and memory of reading it, of asking it, and of drawing from it.

What publishing cost cannot be told from a release: it depends on the rows, so it must not stand there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from sfumato.evaluate.cost import Cost, cost_of
from sfumato.release.questions import Condition
from sfumato.release.release import Release


@dataclass(frozen=True)
class Use(Cost):
    """What one use cost."""

    what: str


def costs_of_use(release: Release, asked: Sequence[Condition], seed: int) -> list[Use]:
    """Read the release anew, as everyone must who has its folder; then ask it and draw from it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "release"
        release.save(folder)
        opened, reading = cost_of(lambda: Release.load(folder))
    _, answering = cost_of(partial(opened.count_many, asked))
    drawn, drawing = cost_of(partial(opened.sample, seed=seed))
    return [
        Use(**asdict(reading), what="reading it"),
        Use(**asdict(answering), what=f"answering {len(asked):,} range counts"),
        Use(**asdict(drawing), what=f"drawing {drawn.num_rows:,} records"),
    ]
