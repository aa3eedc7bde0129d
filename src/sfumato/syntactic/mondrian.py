"""Mondrian: strict multidimensional k-anonymity (LeFevre, DeWitt, Ramakrishnan, ICDE 2006; with a class: KDD 2006).

Every region is split in its own way until no split leaves k records in each child. All regions of a level are split at
once: a pass for each level, whatever the number of regions. A categorical split that leaves all records in one child
costs nothing and tells more, so values narrow down to the lowest category of their group; intervals, at last, to what
its records fill.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np

from sfumato.counts.exact_counts import ExactCounts
from sfumato.counts.tally import Tally
from sfumato.errors import MethodError
from sfumato.methods.boxes import Divisions
from sfumato.methods.levels import describe_level
from sfumato.methods.parameters import parameter, read_number, read_truth, refuse_other
from sfumato.privacy.noisy import Noisy
from sfumato.promises import KAnonymity
from sfumato.schema import Schema
from sfumato.syntactic.base import KAnonymous, OpenDraft
from sfumato.syntactic.narrowing import narrow_intervals
from sfumato.syntactic.splits import LevelSplits, SplitScore
from sfumato.tree import Tree


@dataclass(frozen=True, kw_only=True)
class Mondrian(KAnonymous):
    """Multidimensional k-anonymity, for any use or, with score infogain, for classification."""

    name: ClassVar[str] = "mondrian"

    score: SplitScore = parameter(
        "median",
        "Split the widest attribute, intervals at their median (median), or where the class is told best (infogain).",
    )
    sensitive: str | None = parameter(
        None, "The attribute that is published as it is, in place of the class, which is then one like the others."
    )
    diversity: int = parameter(
        1, "l, how many different values of the sensitive attribute (or the class) every group has at least."
    )
    narrow: bool = parameter(
        True, "Whether intervals are narrowed to what the records of their group fill, as usual, or left as they split."
    )

    def __post_init__(self) -> None:
        """Read and refuse parameters."""
        super().__post_init__()
        refuse_other("score", self.score, get_args(SplitScore))
        object.__setattr__(self, "diversity", read_number("diversity", self.diversity, "Give for example 2."))
        object.__setattr__(self, "narrow", read_truth("narrow", self.narrow))
        if self.diversity > self.k:
            raise MethodError(f"diversity ({self.diversity}) must be at most k ({self.k})", "Use a larger k.")

    def narrowed(self, schema: Schema) -> Schema:
        """Put the sensitive attribute in the place of the class; refuse what has too few values to look at."""
        if self.sensitive is not None and self.sensitive in (self.quasi or ()):
            raise MethodError(
                f"sensitive ({self.sensitive}) must not be a quasi-identifier, too", "Leave it out of --quasi."
            )
        kept = super().narrowed(schema if self.sensitive is None else schema.with_target(self.sensitive))
        if self.score == "infogain" and len(kept.classes) < 2:
            raise MethodError(
                "score (infogain) must have a class attribute of two values or more",
                "Name one with --target or in the schema, or use score median.",
            )
        if self.diversity > len(kept.classes):
            raise MethodError(
                f"diversity ({self.diversity}) must be at most the number of values of the class or sensitive "
                f"attribute, {len(kept.classes)}",
                "Use a smaller diversity, or name an attribute with --sensitive.",
            )
        return kept

    def promise(self, schema: Schema) -> KAnonymity:
        """Say k and l."""
        return KAnonymity(self.k, tuple(schema.predictors), schema.target, self.diversity)

    def publish(self, counts: ExactCounts, schema: Schema) -> OpenDraft:
        """Split level by level, narrow the regions, and count them."""
        tree, steps = self._split(counts, schema)
        if self.narrow:
            tree = narrow_intervals(tree, counts, schema)
        groups = counts.tally(Tally(tree, len(schema.classes)), "counts of groups").by_place
        return OpenDraft(tree, Noisy.exact(groups), steps=tuple(steps))

    def _split(self, counts: ExactCounts, schema: Schema) -> tuple[Tree, list[str]]:
        attributes, steps = list(schema.predictors.values()), list[str]()
        along = tuple(index for index, leaves in enumerate(schema.shape) if leaves > 1)
        divisions, classes = Divisions(attributes), len(schema.classes)
        tree = Tree.whole(schema.shape)
        live = tree.leaves
        while True:
            tally = Tally(tree, classes, along, live)
            level = LevelSplits(
                attributes, tally, counts.tally(tally, "regions to split"), self.promise(schema), self.score
            )
            chosen = level.best(divisions, tree.boxes_of(live))
            if not len(chosen):
                return tree, steps
            steps.append(describe_level(len(steps) + 1, chosen, list(schema.predictors)))
            older = len(tree)
            tree = tree.refine(live[chosen.places], chosen.attributes, chosen.borders, chosen.starts)
            live = np.arange(older, len(tree))
