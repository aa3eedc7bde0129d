"""DiffMulti: multidimensional generalization, every region specialized in its own way (Al-Hussaeni, Fung et al.).

A tree of regions grows level by level, with one pass over the data and a fixed number of debits for each level; then
its ends are counted. There are two schedules: ours, which is adaptive (`AdaptiveGrowth`), and the paper's
(`PublishedGrowth`).

Privacy. The regions of a level hold different records, so a round that asks them all charges each record once, in its
own region (parallel composition); the rounds along a path add up (sequential composition). The meter keeps what each
path has paid and refuses to go beyond epsilon on any. Where to go on, and at what price, is decided from noisy counts
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.errors import BudgetError, MethodError
from sfumato.geometry.candidates import (
    NO_SPLIT,
    Candidates,
    Divisions,
    describe_level,
    longest_path,
    most_specializations_of_boxes,
)
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.methods.margins import WithMargins, buy_margins, margin_parts
from sfumato.methods.method import Method, number, one_of, optional, parameter
from sfumato.privacy.budget import GRAIN, Schedule, grains_of, payable
from sfumato.privacy.choices import Choices
from sfumato.privacy.measurements import Draft, Measurement, Noisy
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import (
    SCORES,
    Balance,
    BalancedMax,
    Beyond,
    CertaintyGain,
    Discernibility,
    Gini,
    Max,
    PenaltyLeft,
    Score,
    Selection,
    WeightedGain,
    sides,
)
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.attributes import Numeric
from sfumato.schema.schema import Predictor, Schema

ROOT_SHARE = Fraction(1, 50)
"""With the adaptive schedule, the share of the budget without margins for the class counts of the whole table."""
MOST_RANGES = 1_000_000
"""The specialized regions of a tree have at most so many ranges, one of each attribute: of a thousand attributes, a
thousand regions are specialized at most, which bounds memory."""
NUMERIC_HEIGHT = 7
"""The height that the paper assumes for the taxonomy of a numeric attribute: part of its depth g."""
DEEPEST = 60
"""The longest path of the adaptive schedule, where what is found decides how long a path is."""
PATHS = "choices, sizes and counts of each path"
"""The label of what the adaptive schedule leaves to each path."""

ScheduleName = Literal["adaptive", "paper"]
"""How choices are priced: by what the region's noisy counts call for, or the same on every level."""
Choice = Literal["joint", "separate"]
"""Whether value and split point are chosen at once, or a split point for each interval first, as in the paper."""
Distribution = Literal["fair", "even"]
"""How specializations are shared out among children: by noisy sizes, or evenly."""

OTHERS_SCORES = (WeightedGain.name, Beyond.name, Gini.name, Balance.name)
"""Scores that only other methods choose by."""

read_steps = number("Give for example 1000.")


@dataclass(frozen=True, kw_only=True)
class DiffMulti(WithMargins, Method):
    """Multidimensional generalization, for classification or for any use."""

    name: ClassVar[str] = "diffmulti"
    order: ClassVar[int] = 3
    suits: ClassVar[str] = "classification, and tables without a class; dense regions become precise"
    arithmetic: ClassVar[str] = "each path pays for its own choices and counts; margins first"
    unsuited: ClassVar[str] = "where records must be generalized alike: every region has cuts of its own"
    summary: ClassVar[str] = (
        "splits every region in its own way, level by level, so that dense regions become precise (Al-Hussaeni et al.)"
    )
    additions: ClassVar[str] = (
        "prices by path: each choice pays what its region's noisy counts call for, and each end's counts get all that "
        "its path left; a monotone score that balances the classes; consistency with the counts bought on the way"
    )
    MARGINS: ClassVar[Fraction] = Fraction(1, 10)
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {},
        {"score": "max", "distribution": "even", "specializations": 7},
        {"score": "deviation", "margins": 0},
        {"score": "gain", "depth": 2},
        {"score": "ncp"},
        {"score": "discernibility", "selection": "exponential"},
        {"score": "max", "schedule": "paper", "depth": 4},
        {"selection": "exponential", "distribution": "even", "margins": "0.5"},
        {"score": "ncp-left", "depth": 3},
        {"score": "deviation", "schedule": "paper", "choice": "separate", "depth": 2, "distribution": "even"},
    )
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"specializations": 9},
        {"specializations": 9, "score": "ncp"},
        {"specializations": 9, "score": "discernibility"},
    )

    specializations: int = parameter(
        100_000,
        "h, how many regions may be specialized; the adaptive schedule stops by itself, and very many attributes "
        "allow fewer.",
        read=read_steps,
    )
    score: str = parameter(
        "auto",
        "What a good specialization is: balanced (ours), max (the paper's), deviation or gain with a class attribute; "
        "ncp, discernibility or ncp-left (ncp as the paper has it) with or without one; auto is balanced or ncp.",
        read=one_of(["auto", *(name for name in SCORES if name not in OTHERS_SCORES)]),
    )
    schedule: ScheduleName = parameter(
        "adaptive",
        "Pay for each choice what the region's noisy counts call for (adaptive), or the same on every level (paper).",
        read=one_of(get_args(ScheduleName)),
    )
    choice: Choice = parameter(
        "joint",
        "Choose value and split point at once (joint), or first a split point for each interval (separate; only with "
        "schedule paper).",
        read=one_of(get_args(Choice)),
    )
    selection: Selection = parameter(
        "permute-and-flip", "How candidates are chosen; exponential is the paper's.", read=one_of(get_args(Selection))
    )
    distribution: Distribution = parameter(
        "fair",
        "Share out specializations by noisy sizes (fair), or evenly (even).",
        read=one_of(get_args(Distribution)),
    )
    depth: int | None = parameter(
        None,
        "The longest path allowed; the paper's schedule takes the sum of the taxonomies' heights.",
        read=optional(number("Give for example 16.", most=1000)),
    )

    @classmethod
    def as_published(cls, *, specializations: int | str = 1000, score: str = "max") -> DiffMulti:
        """Make the method as the paper has it: with its scores max, discernibility or ncp."""
        one_of((Max.name, Discernibility.name, CertaintyGain.name))("score", score)
        return cls(
            specializations=read_steps("specializations", specializations),
            score=PenaltyLeft.name if score == CertaintyGain.name else score,
            schedule="paper",
            choice="separate",
            selection="exponential",
            margins=Fraction(0),
        )

    def check(self) -> None:
        """Refuse a choice or a score that goes with the other schedule only."""
        if self.schedule == "adaptive" and self.choice == "separate":
            raise MethodError("choice (separate) must go with the paper's schedule", "Give --schedule paper.")
        if self.schedule == "paper" and self.score == BalancedMax.name:
            raise MethodError(
                "score (balanced) must go with the adaptive schedule, which buys the class counts that it needs",
                "Use max or deviation, or the adaptive schedule.",
            )

    @property
    def model(self) -> str:
        """The model of a tree: groups are its ends."""
        return "tree"

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Share epsilon: level by level with the paper's schedule; with ours, each path spends its part as it needs."""
        self._refuse_schema(schema)
        parts = dict(margin_parts(schema, epsilon * self.margin_share, self.margins_by))
        rest = epsilon - sum(parts.values(), Fraction(0))
        if self.schedule == "adaptive":
            parts["size of the table"] = rest * ROOT_SHARE
        else:
            parts |= dict.fromkeys(rounds := self._rounds(schema), rest / 2 / len(rounds))
        _refuse_crumbs(parts)
        grows = PATHS if self.schedule == "adaptive" else None
        last = grows or "counts"
        return Schedule(parts | {last: rest / 2}, grows).in_grains(last, epsilon)

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Measure the margins, grow the tree, count its ends."""
        every = tuple(range(len(schema.shape)))
        histograms = Tally(Grid.whole(schema.shape), len(schema.classes), every)
        margins = buy_margins(meter, schema, schedule, histograms, self.margins_by)
        if self.schedule == "adaptive":
            grown = AdaptiveGrowth(
                meter=meter,
                schema=schema,
                score=self.score_for(schema),
                selection=self.selection,
                fair=self.distribution == "fair",
                depth=self.depth_for(schema),
                budget=schedule[PATHS],
            ).grow(self.steps_for(schema), schedule["size of the table"])
        else:
            grown = PublishedGrowth(
                meter=meter,
                schema=schema,
                score=SCORES[self.score_for(schema)](),
                selection=self.selection,
                fair=self.distribution == "fair",
                prices=schedule.parts,
                separate=self.choice == "separate",
            ).grow(self.steps_for(schema), self.depth_for(schema))
        return Draft(grown.tree, (*margins, *grown.measured), self.model, grown.steps)

    def score_for(self, schema: Schema) -> str:
        """The name of the score on this schema."""
        if self.score != "auto":
            return self.score
        if len(schema.classes) < 2:
            return CertaintyGain.name
        return BalancedMax.name if self.schedule == "adaptive" else Max.name

    def depth_for(self, schema: Schema) -> int:
        """The longest path allowed on this schema: g."""
        if self.depth is not None:
            return self.depth
        if self.schedule == "adaptive":
            return DEEPEST
        return longest_path(list(schema.predictors.values()), NUMERIC_HEIGHT)

    def steps_for(self, schema: Schema) -> int:
        """How many regions may be specialized on this schema: each holds a range of every attribute in memory."""
        return min(self.specializations, max(MOST_RANGES // max(len(schema.shape), 1), 1))

    def expected_cells(self, schema: Schema) -> int:
        """Estimate the cells: four children for each specialization, up to what is common."""
        most = most_specializations_of_boxes(list(schema.predictors.values()))
        return 4 * min(self.steps_for(schema), most, 1 << 18) * len(schema.classes)

    def _rounds(self, schema: Schema) -> list[str]:
        """Name the paper's rounds: split points of the numeric attributes, then those of each level."""
        names = [name for name, column in schema.predictors.items() if column.kind == "numeric" and column.leaves > 1]
        first = [f"first split of {name}" for name in names] if self.choice == "separate" else []
        levels = range(1, self.depth_for(schema) + 1)
        return first + [label for level in levels for label in rounds_of_level(level, self.choice)]

    def _refuse_schema(self, schema: Schema) -> None:
        if not any(leaves > 1 for leaves in schema.shape):
            raise MethodError(
                "diffmulti must have an attribute besides the class that can be specialized",
                "Declare more attributes.",
            )
        name = self.score_for(schema)
        if SCORES[name].needs_classes and len(schema.classes) < 2:
            raise MethodError(
                f"score ({name}) must have a class attribute of two values or more: it looks at the classes alone",
                "Name one with --target or in the schema, or use score ncp or discernibility.",
            )


def _refuse_crumbs(parts: Mapping[str, Fraction]) -> None:
    for label, part in parts.items():
        if part < GRAIN:
            raise BudgetError(
                f"the part of epsilon for {label} must be at least {float(GRAIN):g}, and is less",
                "Use a larger epsilon, no margins or, with the paper's schedule, a smaller depth.",
            )


SHARPNESS = 2
"""A choice should tell gains of one part in so many of a region's mass apart: any even specialization gains a half."""
SHARPNESS_OF_CLASSES = 8
"""The same for scores that look at classes: a specialization separates classes only a little."""
PATIENCE = Fraction(3, 4)
"""A choice may cost at most this share of what its path has left."""
RESERVE = Fraction(1, 5)
"""A choice must leave this share of the budget for the counts."""
SIZE_PRECISION = 10
"""The noise of children's class counts should be about one part in so many of their parent's mass."""
SIZE_SHARE = Fraction(1, 5)
"""Children's class counts may cost at most this share of what their path has left."""


@dataclass(frozen=True, kw_only=True)
class AdaptiveGrowth:
    """Our schedule: a tree grows as far as its budget can tell.

    On every level: price, choose, refine, measure. Every region pays for its choice what the choice needs, and no more.
    Let `mass` be the records that a specialization could still put right: outside the majority class for scores that
    look at classes, all of them for the others; a noisy count plus one standard deviation, so that noise alone ends no
    branch. Among N candidates, permute-and-flip loses more than ln(N) / rate with small probability, so a rate of

        SHARPNESS * ln(N) / mass

    tells gains of 1 / SHARPNESS of the mass apart (twice that for scores which are not monotone). Masses shrink along a
    path, so prices grow, and a region stops when its price is more than PATIENCE of what its path has left, or would
    touch the RESERVE for its counts, which all the rest then buys. Depth, size and purity need no parameters: they
    follow from n, epsilon and what was found. The class counts that are bought on the way decide prices and weights,
    and make the final counts more precise.
    """

    meter: Meter
    schema: Schema
    score: str
    selection: Selection
    fair: bool
    """whether specializations are shared out by noisy sizes"""
    depth: int
    budget: Fraction
    """what each path may spend on choices, sizes and counts"""

    def grow(self, specializations: int, root: Fraction) -> Grown:
        """Grow until no region can pay for another choice, or may have one; the rest of each path buys the counts."""
        level = Level.first(self.schema, specializations)
        measured = [self.meter.measure(Cells(level.tally), root, "size of the table")]
        known = Known.of(measured[0].noisy)
        steps: list[str] = []
        for at in range(1, self.depth + 1):
            candidates, prices = self._affordable(level, known)
            if not len(candidates):
                break
            choices = Choices.by_place(level.tally, candidates)
            chosen = self.meter.select(choices, self._score(known), prices, f"choice {at}", self.selection)
            steps.append(describe_level(at, chosen, list(self.schema.predictors)))
            finer, parents = level.refined(chosen)
            prices = self._size_prices(finer.tally, known, parents)
            measured.append(self.meter.measure(Cells(finer.tally), prices, f"sizes {at}"))
            known = known.of_children(parents, measured[-1].noisy)
            lots = self.meter.lots(finer.tally.places)
            level = replace(finer, shares=level.shared(chosen, self._sizes(known), lots))
        counts = self.meter.measure_with_rest(Cells(Tally(level.tree, level.tally.classes)), "counts")
        return Grown(level.tree, (*measured, counts), tuple(steps))

    def _affordable(self, level: Level, known: Known) -> tuple[Candidates, Integers]:
        """List the candidates of the places that can and may be specialized, and price the choice of each place."""
        live = np.flatnonzero(level.shares > 0)
        candidates = self._divisions.candidates(level.boxes[live], live)
        offered = np.bincount(candidates.places, candidates.each, level.tally.places)
        score = SCORES[self.score]
        sharpness = sides(score, self.selection) * (SHARPNESS_OF_CLASSES if score.needs_classes else SHARPNESS)
        prices = self._in_grains(sharpness * np.log(np.maximum(offered, 2)) / self._mass(known))
        rest = self.meter.rest(level.tally)
        going = (offered > 0) & (prices <= rest * PATIENCE.numerator // PATIENCE.denominator)
        going &= prices <= rest - self._reserve
        return candidates.take(going[candidates.places]), prices[going]

    def _size_prices(self, tally: Tally, known: Known, parents: Integers) -> Integers:
        """Price the class counts of children, in grains."""
        wanted = self._in_grains(SIZE_PRECISION / self._mass(known))[parents]
        limit = self.meter.rest(tally) * SIZE_SHARE.numerator // SIZE_SHARE.denominator
        return np.minimum(wanted, limit)

    def _mass(self, known: Known) -> Floats:
        """The records of each place that a specialization could still put right."""
        return known.outside_majority if SCORES[self.score].needs_classes else known.sizes

    @staticmethod
    def _in_grains(prices: Floats) -> Integers:
        return np.asarray(np.ceil(prices / float(GRAIN)), np.int64)

    @property
    def _reserve(self) -> int:
        return grains_of(self.budget * RESERVE)

    def _score(self, known: Known) -> Score:
        """The score of a level's candidates; `balanced` weighs classes by what is known of them."""
        if self.score != BalancedMax.name:
            return SCORES[self.score]()
        return BalancedMax.halfway(np.maximum(known.counts, np.sqrt(known.variances)[:, None]))

    def _sizes(self, known: Known) -> Integers:
        """The sizes by which specializations are shared out."""
        return np.asarray(np.rint(known.sizes) if self.fair else np.ones(len(known.counts)), np.int64)

    @cached_property
    def _divisions(self) -> Divisions:
        return Divisions(list(self.schema.predictors.values()))


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the places of a level: noisy counts by class, all of a place with one variance."""

    counts: Floats
    variances: Floats

    @classmethod
    def of(cls, noisy: Noisy) -> Known:
        """What a measurement alone tells."""
        return cls(noisy.counts.astype(np.float64), noisy.variances)

    def of_children(self, parents: Integers, noisy: Noisy) -> Known:
        """Combine children's own counts with their parents': the discrepancy is shared in proportion to variance.

        With D = parent - sum of children, of variance w = v_parent + sum of v, child c moves by D v_c / w, and its
        variance falls by v_c^2 / w: the best linear estimate.
        """
        own = Known.of(noisy)
        sums = np.zeros_like(self.counts)
        np.add.at(sums, parents, own.counts)
        spread = self.variances + np.bincount(parents, own.variances, len(self.variances))
        part = own.variances / spread[parents]
        return Known(own.counts + (self.counts - sums)[parents] * part[:, None], own.variances - own.variances * part)

    @property
    def sizes(self) -> Floats:
        """The number of records, plus one standard deviation, at least 1."""
        deviations = np.sqrt(self.variances * self.counts.shape[1])
        return np.asarray(np.maximum(np.maximum(self.counts.sum(axis=1), 0) + deviations, 1.0))

    @property
    def outside_majority(self) -> Floats:
        """The number of records outside the majority class, plus one standard deviation, at least 1."""
        outside = self.counts.sum(axis=1) - self.counts.max(axis=1)
        return np.asarray(np.maximum(np.maximum(outside, 0) + np.sqrt(self.variances), 1.0))


@dataclass(frozen=True, kw_only=True)
class PublishedGrowth:
    """The paper's schedule: the same price on every level, down to a depth fixed before.

    On every level: choose, refine, measure sizes, find split points. Two things differ from the paper's algorithm,
    because it would leak: noisy sizes alone share out specializations (equation 10 asks whether a child is empty and
    divides by exact sizes), and split points are grid points of the declared range. As in its experiments, the counts
    of the ends also get what the longest path did not use.
    """

    meter: Meter
    schema: Schema
    score: Score
    selection: Selection
    fair: bool
    """whether specializations are shared out by noisy sizes"""
    prices: Mapping[str, Fraction]
    """the epsilon of each round"""
    separate: bool
    """whether split points are chosen before values"""

    def grow(self, specializations: int, depth: int) -> Grown:
        """Grow to the depth, or until no region can or may be specialized; the longest path's rest buys the counts."""
        level = Level.first(self.schema, specializations)
        splits = self._first_splits(level)
        steps: list[str] = []
        for at in range(1, depth + 1):
            live = np.flatnonzero(level.shares > 0)
            own = splits[live] if self.separate else None
            candidates = self._divisions.candidates(level.boxes[live], live, own)
            if not len(candidates):
                break
            chosen = self._choose(level.tally, candidates, f"choice {at}")
            steps.append(describe_level(at, chosen, list(self.schema.predictors)))
            finer, parents = level.refined(chosen)
            sizes, lots = self._sizes(finer.tally, at), self.meter.lots(finer.tally.places)
            level = replace(finer, shares=level.shared(chosen, sizes, lots))
            splits = self._inherited(splits[parents], chosen, level, at)
        counts = self.meter.measure(Cells(Tally(level.tree, level.tally.classes)), payable(self.meter.left), "counts")
        return Grown(level.tree, (counts,), tuple(steps))

    def _first_splits(self, level: Level) -> Integers:
        """Choose a split point for every numeric attribute of the root, if split points are chosen separately."""
        splits = np.full((1, len(self._attributes)), NO_SPLIT, np.int64)
        for index, (name, attribute) in enumerate(self.schema.predictors.items()):
            if self.separate and isinstance(attribute, Numeric) and attribute.leaves > 1:
                every = Candidates.splits(0, index, 0, attribute.leaves)
                splits[0, index] = self._choose(level.tally, every, f"first split of {name}").borders[1]
        return splits

    def _inherited(self, splits: Integers, chosen: Candidates, level: Level, number: int) -> Integers:
        """Let children keep their parents' split points; for intervals that were just divided, choose new ones."""
        if not self.separate:
            return splits
        places = np.arange(level.tally.places)
        divided = np.repeat(chosen.attributes, chosen.children)
        splits[places, divided] = NO_SPLIT
        numeric = np.array([isinstance(attribute, Numeric) for attribute in self._attributes])
        ranges = level.boxes[places, divided].astype(np.int64)
        new = np.flatnonzero(numeric[divided] & (ranges[:, 1] - ranges[:, 0] > 1) & (level.shares > 0))
        label = f"split {number + 1}"
        if len(new) and label in self.prices:
            candidates = Candidates(new, divided[new], ranges[new].ravel(), np.arange(len(new) + 1) * 2)
            splits[new, divided[new]] = self._choose(level.tally, candidates, label).borders[1::3]
        return splits

    def _choose(self, tally: Tally, candidates: Candidates, label: str) -> Candidates:
        return self.meter.select(
            Choices.by_place(tally, candidates), self.score, self.prices[label], label, self.selection
        )

    def _sizes(self, tally: Tally, number: int) -> Integers:
        """Measure the sizes by which specializations are shared out; ones, if evenly."""
        if not self.fair:
            return np.ones(tally.places, np.int64)
        label = f"size {number}"
        return self.meter.measure(Cells(tally, "place"), self.prices[label], label).counts[:, 0]

    @cached_property
    def _divisions(self) -> Divisions:
        return Divisions(self._attributes)

    @property
    def _attributes(self) -> Sequence[Predictor]:
        return list(self.schema.predictors.values())


def rounds_of_level(number: int, choice: str) -> tuple[str, ...]:
    """Name the rounds of a level of the paper's schedule."""
    rounds = (f"choice {number}", f"size {number}")
    return (f"split {number}", *rounds) if choice == "separate" else rounds


@dataclass(frozen=True, eq=False)
class Level:
    """The newest nodes of a tree, which are the places of one tally."""

    tree: Tree
    """the tree so far"""
    nodes: Integers
    tally: Tally
    shares: Integers
    """how many specializations each place may have, itself and below"""

    @classmethod
    def first(cls, schema: Schema, specializations: int) -> Level:
        """The level of the root: one region that holds everything."""
        tree, every = Tree.whole(schema.shape), tuple(range(len(schema.shape)))
        return cls(tree, tree.ends, Tally(tree, len(schema.classes), every, tree.ends), np.array([specializations]))

    @cached_property
    def boxes(self) -> NDArray[np.int32]:
        """The ranges of the places."""
        return self.tree.boxes_of(self.nodes)

    def refined(self, chosen: Candidates) -> tuple[Level, Integers]:
        """Specialize places as chosen; return the level of the children, without shares yet, and the parent of each."""
        tree = self.tree.refine(self.nodes[chosen.places], chosen.attributes, chosen.borders, chosen.starts)
        children = np.arange(len(self.tree), len(tree))
        tally = Tally(tree, self.tally.classes, self.tally.attributes, children)
        finer = Level(tree, children, tally, np.zeros(len(children), np.int64))
        return finer, np.repeat(chosen.places, chosen.children)

    def shared(self, chosen: Candidates, sizes: Integers, lots: Integers) -> Integers:
        """Share out the specializations left to the chosen places among their children, in proportion to sizes."""
        families = np.repeat(np.arange(len(chosen)), chosen.children)
        return share_out(self.shares[chosen.places] - 1, families, sizes, lots)


@dataclass(frozen=True, eq=False)
class Grown:
    """A grown tree, what was measured of its nodes (the ends last), and a line for each level."""

    tree: Tree
    measured: tuple[Measurement, ...]
    steps: tuple[str, ...]


def share_out(shares: Integers, families: Integers, sizes: Integers, lots: Integers) -> Integers:
    """Share out each family's specializations among its children in proportion to noisy sizes (equation 10).

    Child i belongs to family `families[i]` (in increasing order), which shares `shares[family]` specializations in
    proportion to the children's noisy `sizes`, negative ones counting as 0; if all are 0, evenly. Parts are rounded
    down, and what that leaves goes by lot to children whose part was rounded, so that none are lost.

    >>> share_out(np.array([20]), np.array([0, 0]), np.array([8, 2]), np.array([0, 1])).tolist()
    [16, 4]
    """
    weights = np.maximum(sizes, 0)
    totals = np.bincount(families, weights, len(shares)).astype(np.int64)
    weights = np.where(totals[families] > 0, weights, 1)
    totals = np.maximum(np.where(totals > 0, totals, np.bincount(families, minlength=len(shares))), 1)
    parts, rests = np.divmod(shares[families] * weights, totals[families])
    left = shares - np.bincount(families, parts, len(shares)).astype(np.int64)
    order = np.lexsort((lots, rests == 0, families))
    rank = np.empty(len(families), np.int64)
    rank[order] = np.arange(len(families)) - np.searchsorted(families, families[order])
    return np.asarray(parts + ((rank < left[families]) & (rests > 0)))
