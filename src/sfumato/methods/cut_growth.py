"""Growing the cuts of a grid: the loop of propose, choose and refine that DiffGen and CDiffGen share.

All choices are rounds on the one-dimensional class histograms of the whole table, so they cost one pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sfumato.counts.choices import Choices, Specialization, Ways
from sfumato.counts.meter import Meter
from sfumato.counts.tally import Tally
from sfumato.methods.cuts import WHOLE, Interval, intervals, regions_after, taxonomy_candidates
from sfumato.partition import Grid
from sfumato.privacy.scores import Score, Selection
from sfumato.schema import Predictor


@dataclass(kw_only=True)
class CutGrowth:
    """One growth: what it may do and pay, and how far it has come."""

    meter: Meter
    attributes: Mapping[str, Predictor]
    histograms: Tally
    prices: Mapping[str, Fraction]
    score: Score
    selection: Selection
    separate: bool
    most_regions: int
    grid: Grid = field(init=False)
    steps: list[Specialization] = field(default_factory=list, init=False)
    chosen_splits: dict[Interval, Specialization] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Begin with one region that holds everything."""
        self.grid = Grid.whole([attribute.leaves for attribute in self.attributes.values()])

    def run(self) -> None:
        """Specialize until the prices are paid or nothing is left to specialize."""
        if self.separate:
            names = list(self.attributes)
            for interval in list(self._intervals):
                self._choose_splits([interval], f"first split of {names[interval[0]]}")
        step = 0
        while f"choice {step + 1}" in self.prices and len(candidates := self._candidates()):
            step += 1
            self._specialize(self._choose([candidates], f"choice {step}")[0], step)

    @property
    def _intervals(self) -> list[Interval]:
        return list(intervals(list(self.attributes.values()), self.grid))

    def _candidates(self) -> Ways:
        """Give all that may be chosen: categorical values, and intervals with every split or with their chosen one."""
        numeric = [
            Ways.one(WHOLE, interval[0], self.chosen_splits[interval].borders)
            if self.separate
            else Ways.splits(WHOLE, *interval)
            for interval in self._intervals
        ]
        found = Ways.join([*taxonomy_candidates(list(self.attributes.values()), self.grid), *numeric])
        return found.take(regions_after(self.grid, found) <= self.most_regions)

    def _specialize(self, chosen: Specialization, step: int) -> None:
        self.grid = self.grid.refine(chosen.attribute, chosen.borders)
        self.steps.append(chosen)
        if self.separate:
            new = [interval for interval in self._intervals if interval not in self.chosen_splits]
            if new:
                self._choose_splits(new, f"split {step}")

    def _choose_splits(self, new: list[Interval], label: str) -> None:
        chosen = self._choose([Ways.splits(WHOLE, *interval) for interval in new], label)
        self.chosen_splits |= zip(new, chosen, strict=True)

    def _choose(self, groups: list[Ways], label: str) -> list[Specialization]:
        choices = Choices.of(self.histograms, groups)
        chosen = self.meter.select(choices, self.score, self.prices[label], label, self.selection)
        return [chosen[group] for group in range(len(chosen))]
