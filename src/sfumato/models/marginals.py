"""The model of a network: margins and pairs of attributes, and the one distribution that was fitted to them.

A person's leaf lies in its bin as the margin of its attribute and class says; bins and class hang together as the
network says. So a query asks each bin for the share that it covers, and the network for the mean of the product of
these shares. Errors have the parts of `intervals`: noise of margins; what is left of the noise of pairs; and, where a
pair was not measured, or inside the groups of one that was, how far attributes may hang together beyond the network.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Booleans, Codes, Floats, Integers
from sfumato.errors import ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.geometry.regions import Sides
from sfumato.models.fitting import Size
from sfumato.models.intervals import ALONE, GAMMA, LEAST, PAIR, ROUNDING, Z95
from sfumato.models.junction import drawn_rows
from sfumato.models.model import (
    UNMEASURED,
    Answers,
    Description,
    Groups,
    Listing,
    Model,
    Nonnegative,
    Query,
    Ribbon,
    refuse_unknown,
)
from sfumato.models.network import MISFIT, Network, Pair, columns_of
from sfumato.privacy.measurements import Draft, Question
from sfumato.schema.schema import Schema

UNTOLD = 0.05
"""How far two attributes may hang together beyond a network that could ask for them, the scale of t_2: this, and"""
UNSEEN = 10.0
"""so many times the noise of a pair's count, as a share of people: what noise hides was not asked for. It is no more
than without a network."""
TRIPLES = 0.8
"""How far three may beyond their pairs, as a part of that."""
MOST_CELLS = 1 << 16
"""Of so many cells the distribution of some attributes is kept; of more, every query is summed by itself."""
AT_ONCE = 1 << 22
"""So many numbers are held at a time."""
BYTES = 16
MOST_RECORDS = 100_000
"""Generalized records stand for people in so many groups at most."""
MOST_PARTS = 30
GOLDEN = (math.sqrt(5) - 1) / 2


class NetworkModel(Model):
    """Answers from a network of attributes."""

    def __init__(self, schema: Schema, draft: Draft) -> None:
        """Fit the network again, from what was measured alone."""
        super().__init__(schema, draft)
        if not isinstance(draft.structure, Grid) or draft.structure.shape != schema.shape:
            raise ReleaseError(*UNMEASURED)
        self.grid = draft.structure
        self.classes = len(schema.classes)
        self.bins = tuple(self.grid.part_of(at) for at in range(len(schema.shape)))
        self.singles = [one for one in draft.measurements if len(one.question.attributes) == 1]
        self.measured_pairs = [one for one in draft.measurements if len(one.question.attributes) == 2]
        odd = (one.question.classes not in (1, self.classes) or len(one.noisy.rates) != 1 for one in draft.measurements)
        if not self.singles or any(odd):
            raise ReleaseError(*UNMEASURED)
        self.pairs = [Pair.of(one, self.bins) for one in self.measured_pairs]
        self.columns = columns_of(schema, self.singles)
        for column, bins in zip(self.columns, self.bins, strict=True):
            if len(np.unique(np.stack([column.part_of, bins]), axis=1).T) != column.parts:
                raise ReleaseError(*MISFIT)

    @staticmethod
    def reads(question: Question) -> bool:
        """Read marginals of at most two attributes."""
        return isinstance(question.regions, Grid) and question.nodes is None and len(question.attributes) <= 2

    @cached_property
    def size(self) -> Size:
        """The number of people, by all that was measured of everyone."""
        whole = [one for one in self.draft.measurements if len(one.question.attributes) != 1]
        totals = [(float(one.counts.sum()), float(one.noisy.variances[0]) * one.counts.size) for one in whole]
        return Size.of([*totals, *(total for column in self.columns for total in column.totals())])

    @cached_property
    def network(self) -> Network:
        """The distribution."""
        found = Network(self.classes, self.size, self.columns, self.bins)
        for pair in self.pairs:
            found.add(pair)
        if self.pairs:
            found.fit()
            found.reconsider()
        return found

    @cached_property
    def untold(self) -> float:
        """How far two attributes may hang together where no pair tells: the scale of t_2."""
        noise = math.sqrt(min((pair.variance for pair in self.pairs), default=math.inf))
        return min(UNTOLD + UNSEEN * noise / self.size.value, PAIR)

    @cached_property
    def within(self) -> tuple[Floats, ...]:
        """Of each attribute, the share of its bin that each leaf has, by class."""
        return tuple(self.network.within(at) for at in range(len(self.schema.shape)))

    @property
    def total(self) -> int:
        """The estimated number of people."""
        return round(self.size.value)

    @property
    def regions(self) -> None:
        """None: people are told by a distribution, not counted in groups."""

    @cached_property
    def _records(self) -> tuple[Integers, Integers]:
        """Bins of all attributes and classes, variables x groups, and how many people each stands for.

        They are drawn from the network in even steps, by a fixed seed, so that whoever has the release has the same.
        """
        total = max(self.total, 0)
        states = self._states(min(total, MOST_RECORDS), np.random.default_rng(0))
        distinct, held = np.unique(states, axis=1, return_counts=True)
        ends = np.round(np.cumsum(held) * (total / max(int(held.sum()), 1))).astype(np.int64)
        return distinct, np.diff(ends, prepend=0)

    @property
    def groups(self) -> int:
        """The number of generalized records, whatever their class."""
        return len(self._grouped[0])

    @cached_property
    def _grouped(self) -> tuple[Integers, Integers]:
        """The generalized records by their bins alone, groups x attributes, and people, groups x classes."""
        states, people = self._records
        distinct, of = np.unique(states[: len(self.bins)], axis=1, return_inverse=True)
        found = np.zeros((distinct.shape[1], self.classes), np.int64)
        np.add.at(found, (of.ravel(), states[-1] if self.classes > 1 else np.zeros(len(people), np.int64)), people)
        return distinct.T, found

    def generalized(self, how: Nonnegative) -> Groups:
        """Make records of bins, drawn from the network."""
        refuse_unknown(how)
        parts, people = self._grouped
        sides = []
        for at in range(len(self.bins)):
            own = self.grid.sides(at)
            sides.append(Sides(own.ranges, parts[:, at].__getitem__, own.order))
        return Groups(sides, people, people)

    def _states(self, size: int, rng: np.random.Generator) -> Integers:
        """Draw bins and classes: variables x people. The class is drawn last, in steps of the golden ratio along people
        who are alike, so that luck hardly adds to its rates.
        """
        entropy = self.network.entropy
        states = entropy.tree.draw(entropy.beliefs, size, rng)
        if self.classes == 1 or not size:
            return states
        logs = entropy.tree.log_probabilities(entropy.beliefs, states, len(self.bins))
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        running = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)
        alike = np.lexsort([rng.random(size), *(states[at] for at in self._by_importance)])
        luck = np.empty(size)
        luck[alike] = (np.arange(size) * GOLDEN + rng.random()) % 1
        states[-1] = np.minimum((running < luck[:, None]).sum(axis=1), self.classes - 1)
        return states

    @cached_property
    def _by_importance(self) -> list[int]:
        """The attributes, those that tell most of the class last."""
        told = []
        for at in range(len(self.bins)):
            joint = self._joint((at,))
            apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
            told.append(float(np.sum(joint * np.log(np.maximum(joint, 1e-300) / np.maximum(apart, 1e-300)))))
        return [int(at) for at in np.argsort(told, kind="stable")]

    def draw(self, size: int, rng: np.random.Generator, how: Nonnegative) -> tuple[Sequence[Integers], Integers]:
        """Draw bins and classes from the network, then leaves inside bins."""
        refuse_unknown(how)
        states = self._states(size, rng)
        classes = states[-1] if self.classes > 1 else np.zeros(size, np.int64)
        leaves = []
        for at, bins in enumerate(self.bins):
            rows = np.zeros(((int(bins.max()) + 1) * self.classes, len(bins)))
            for label in range(self.classes):
                rows[bins * self.classes + label, np.arange(len(bins))] = self.within[at][:, label]
            leaves.append(drawn_rows(rows, states[at] * self.classes + classes, rng))
        return leaves, classes

    def classify(self, columns: Sequence[Codes]) -> Integers:
        """Predict the likeliest class, given all attributes."""
        rows = len(columns[0]) if columns else 0
        if self.classes == 1:
            return np.zeros(rows, np.int64)
        states = np.stack([*(bins[column] for bins, column in zip(self.bins, columns, strict=True)), np.zeros(rows)])
        entropy = self.network.entropy
        logs = entropy.tree.log_probabilities(entropy.beliefs, states.astype(np.int64), len(self.bins))
        for at, column in enumerate(columns):
            logs += np.log(self.within[at])[column]
        return np.asarray(np.argmax(logs, axis=1))

    @cached_property
    def _kept(self) -> dict[tuple[int, ...], Floats]:
        return {}

    def _joint(self, attributes: tuple[int, ...]) -> Floats:
        """The distribution of the bins of some attributes, and of the class: the last axis."""
        if attributes not in self._kept:
            entropy, number = self.network.entropy, len(self.bins)
            variables = (*attributes, number) if self.classes > 1 else attributes
            found = entropy.tree.joint(entropy.beliefs, variables) if variables else np.ones(())
            self._kept[attributes] = found if self.classes > 1 else found[..., None]
        return self._kept[attributes]

    def marginal(self, attributes: Sequence[int], *, by_class: bool) -> Floats:
        """Spread the people of bins over leaves."""
        cells = self.size.value * self._joint(tuple(attributes))
        for axis, at in enumerate(attributes):
            shares = self.within[at].reshape(
                [-1 if one == axis else 1 for one in range(len(attributes))] + [self.classes]
            )
            cells = cells.take(self.bins[at], axis=axis) * shares
        return cells if by_class else np.asarray(cells.sum(axis=-1, keepdims=True))

    def bytes_for(self, query: Query) -> int:
        """Count the leaves of what the query restricts."""
        return sum(BYTES * self.schema.shape[at] for at in query.weights) + BYTES

    def answer(self, queries: Sequence[Query]) -> Answers:
        """Answer queries that restrict the same attributes together."""
        found = np.zeros((4, len(queries)))
        by_attributes: dict[tuple[int, ...], list[int]] = {}
        for number, query in enumerate(queries):
            by_attributes.setdefault(tuple(sorted(query.weights)), []).append(number)
        for attributes, numbers in by_attributes.items():
            asked = Asked.of(self, attributes, [queries[number] for number in numbers])
            found[:, numbers] = asked.answer()
        texts = tuple(query.text for query in queries)
        return Answers(texts, found[0], np.sqrt(found[1]), found[2], found[3], self.cause)

    def means(self, attributes: tuple[int, ...], covered: Sequence[Floats], classes: Floats) -> Floats:
        """The mean of the product of what queries cover of bins (queries x bins x classes) and weights of classes."""
        cells = math.prod(one.shape[1] for one in covered) * self.classes
        if cells <= MOST_CELLS:
            return _contracted(self._joint(attributes), covered, classes)
        found = np.empty(len(classes))
        most = max(1, AT_ONCE // self.network.entropy.tree.largest)
        for start in range(0, len(classes), most):
            some = slice(start, start + most)
            weights = {at: one[some] for at, one in zip(attributes, covered, strict=True)}
            found[some] = self._summed(weights, classes[some])
        return found

    def _summed(self, covered: Mapping[int, Floats], classes: Floats) -> Floats:
        """Sum over all cliques, from the ends of the tree inwards, for each query by itself."""
        entropy, number = self.network.entropy, len(self.bins)
        tree, homes = entropy.tree, {at: entropy.tree.home((at,)) for at in covered}
        told: list[list[Floats]] = [[] for _ in tree.cliques]
        for clique in range(len(tree.cliques) - 1, -1, -1):
            names, queries = tree.cliques[clique], len(classes)
            table = tree.conditional(entropy.beliefs, clique)[None]
            for message in told[clique]:
                table = table * message
            for at, weights in covered.items():
                if homes[at] == clique:
                    table = table * _axes(weights, names, (at, number), self.classes)
            if clique == 0 and self.classes > 1:
                table = table * _axes(classes, names, (number,), self.classes)
            table = np.broadcast_to(table, (queries, *table.shape[1:]))
            if clique == 0:
                return np.asarray(table.reshape(queries, -1).sum(axis=1))
            separator = tree.separators[clique]
            message = table.sum(axis=tuple(1 + at for at, one in enumerate(names) if one not in separator))
            sizes = dict(zip(separator, message.shape[1:], strict=True))
            above = tree.cliques[tree.parents[clique]]
            told[tree.parents[clique]].append(message.reshape(queries, *(sizes.get(one, 1) for one in above)))
        raise AssertionError

    def explain(self, query: Query) -> tuple[Mapping[str, Sequence[str]], Floats]:
        """List the combinations of bins that a query covers wholly."""
        attributes = tuple(sorted(query.weights))
        table = self.size.value * self._joint(attributes) @ query.classes
        named, chosen = {}, []
        for at in attributes:
            untouched = np.unique(self.bins[at][query.weights[at] != 1])
            chosen.append(np.setdiff1d(np.arange(self.grid.parts[at]), untouched))
        places = np.meshgrid(*chosen, indexing="ij")
        for at, place in zip(attributes, places, strict=True):
            name, column = list(self.schema.predictors.items())[at]
            labels = self.grid.sides(at).names(column)
            named[name] = [labels[one] for one in place.ravel().tolist()]
        return named, np.asarray(table[np.ix_(*chosen)].ravel() if attributes else table.ravel())

    def own_query(self, rng: np.random.Generator) -> Mapping[int, Integers] | None:
        """Draw bins of one attribute side by side: margins tell them, and nothing is assumed."""
        several = [at for at, parts in enumerate(self.grid.parts) if parts > 1]
        if not several:
            return None
        at = several[int(rng.integers(len(several)))]
        first = int(rng.integers(self.grid.parts[at]))
        return {at: np.flatnonzero(self.bins[at] == first)}

    def describe(self) -> Description:
        """Tell the bins of attributes, and which pairs were measured."""
        names = list(self.schema.predictors)
        told = tuple(at for at, parts in enumerate(self.grid.parts) if parts > 1)
        rows = []
        for one, pair in zip(self.measured_pairs, self.pairs, strict=True):
            a, b = pair.attributes
            by = f" by {self.schema.target}" if pair.by_class else ""
            rows.append((f"{names[a]} and {names[b]}{by}", f"{one.counts.size:,}", f"{math.sqrt(pair.variance):,.1f}"))
        return Description(
            title="The network",
            words=f"Margins of {len(self.singles):,} attributes and levels, and {len(self.pairs):,} pairs of "
            "attributes, were measured; one distribution over bins of all attributes was fitted to all of it.",
            told_apart=told,
            ribbons=tuple(self._ribbon(at) for at in told),
            caption="Bins of each attribute, as wide as their shares of people.",
            listings=(Listing("Pairs, in the order of measuring", ("pair", "cells", "noise"), tuple(rows), (1, 2)),),
        )

    def _ribbon(self, at: int) -> Ribbon:
        name, column = list(self.schema.predictors.items())[at]
        parts = self.grid.parts[at]
        if parts > MOST_PARTS:
            return Ribbon(name, (), parts)
        shares = self._joint((at,)).sum(axis=1).tolist()
        return Ribbon(name, tuple(zip(self.grid.sides(at).names(column), shares, strict=True)), parts)

    def pairs_of(self, a: int, b: int) -> Iterator[tuple[Pair, Floats]]:
        """The measured pairs of two attributes, and what is left of their noise."""
        for pair, left in zip(self.network.pairs, self.network.left, strict=True):
            if pair.attributes == (a, b):
                yield pair, left


def _axes(weights: Floats, names: Sequence[int], own: Sequence[int], classes: int) -> Floats:
    """Give weights of queries x some variables the axes of a clique."""
    sizes = dict(zip(own, weights.shape[1:], strict=False))
    if classes == 1 and len(own) == 2:
        weights, sizes = weights[:, :, 0], {own[0]: weights.shape[1]}
    return weights.reshape(len(weights), *(sizes.get(one, 1) for one in names))


def _contracted(joint: Floats, covered: Sequence[Floats], classes: Floats) -> Floats:
    """Weigh a joint table (bins x ... x classes) axis by axis, for each query."""
    queries = len(classes)
    if not covered:
        return np.asarray(classes @ joint)
    most = max(1, AT_ONCE // max(joint.size // joint.shape[0], 1))
    found = np.empty(queries)
    for start in range(0, queries, most):
        some = slice(start, start + most)
        table = np.einsum("qbc,brc->qrc", covered[0][some], joint.reshape(joint.shape[0], -1, joint.shape[-1]))
        for one in covered[1:]:
            table = np.einsum("qbc,qbrc->qrc", one[some], table.reshape(len(table), one.shape[1], -1, one.shape[2]))
        found[some] = np.einsum("qc,qc->q", table[:, 0], classes[some])
    return found


@dataclass(frozen=True, eq=False)
class Side:
    """What queries ask of one attribute, or of the class."""

    share: Floats
    """queries: the mean weight of a person, p"""
    variance: Floats
    """queries: the variance of the weight, p q where weights are 0 or 1"""
    error: Floats
    """queries: the variance of the margin's own answer"""


@dataclass(frozen=True, eq=False)
class Asked:
    """Queries that restrict the same attributes."""

    model: NetworkModel
    attributes: tuple[int, ...]
    weights: Mapping[int, Floats]
    """queries x leaves"""
    classes: Floats
    """queries x classes"""

    @classmethod
    def of(cls, model: NetworkModel, attributes: tuple[int, ...], queries: Sequence[Query]) -> Asked:
        """Stack weights."""
        weights = {at: np.stack([query.weights[at] for query in queries]) for at in attributes}
        return cls(model, attributes, weights, np.stack([query.classes for query in queries]))

    def answer(self) -> Floats:
        """Give values, variances of noise, scales of the model's error, and bounds: 4 x queries."""
        size = self.model.size
        covered = [self._covered(at, self.weights[at]) for at in self.attributes]
        values = size.value * self.model.means(self.attributes, covered, self.classes)
        sides = self._sides()
        number = np.sum([np.zeros(len(self.classes)), *(one.variance > 0 for one in sides.values())], axis=0)
        noise = np.where(number == 0, (self.classes.mean(axis=1)) ** 2 * size.variance, ROUNDING)
        shares, bound = {}, np.full(len(values), np.inf)
        for at, one in sides.items():
            shares[at] = np.clip(np.abs(one.share) + np.sqrt(one.error) / size.value, LEAST, 1.0)
            plain = (one.variance > 0) & (number > 1) & self._is_plain
            most = size.value * one.share + Z95 * np.sqrt(one.error + ROUNDING)
            bound = np.where(plain, np.minimum(bound, most), bound)
        together = np.prod([np.ones(len(values)), *shares.values()], axis=0)
        for at, one in sides.items():
            people = np.maximum(np.maximum(size.value * np.abs(one.share), np.sqrt(one.error)), 1.0)
            reach = np.maximum(together / shares[at], np.minimum(np.abs(values) / people, 1.0))
            noise = noise + np.where(one.variance > 0, reach**2 * one.error, 0.0)
        noise = np.where(number == 1, ALONE * noise, noise)
        pair_noise, untold = self._hanging_together(sides, shares, together)
        return np.stack([values, noise + pair_noise, size.value * np.sqrt(untold), bound])

    @property
    def _is_plain(self) -> Booleans:
        """Which queries count people, with weights between 0 and 1."""
        between = [(one >= 0).all(axis=1) & (one <= 1).all(axis=1) for one in (self.classes, *self.weights.values())]
        return np.asarray(np.logical_and.reduce(between))

    def _covered(self, at: int, weights: Floats) -> Floats:
        """What queries cover of the bins of an attribute: queries x bins x classes."""
        within, bins, parts = self.model.within[at], self.model.bins[at], self.model.grid.parts[at]
        found = np.zeros((parts, len(weights), self.model.classes))
        np.add.at(found, bins, weights.T[:, :, None] * within[:, None, :])
        return np.swapaxes(found, 0, 1)

    def _sides(self) -> dict[int, Side]:
        """What is asked of each attribute that a query restricts, and of the class."""
        found, everyone = {}, np.ones_like(self.classes)
        for at, weights in self.weights.items():
            mean = self.model.means((at,), [self._covered(at, weights)], everyone)
            square = self.model.means((at,), [self._covered(at, weights**2)], everyone)
            restricting = (weights != weights[:, :1]).any(axis=1)
            error = np.where(restricting, self.model.columns[at].errors(weights, self.model.size.variance), 0.0)
            found[at] = Side(mean, np.where(restricting, np.maximum(square - mean**2, LEAST), 0.0), error)
        if self.model.classes > 1:
            shares, column = self.model._joint(()), self.model.columns
            mean, square = self.classes @ shares, self.classes**2 @ shares
            restricting = (self.classes != self.classes[:, :1]).any(axis=1)
            precision = sum(1 / (one.variance * one.parts) for one in column)
            spread = (self.classes - self.classes.mean(axis=1, keepdims=True)) ** 2
            error = np.where(restricting, spread.sum(axis=1) / max(precision, LEAST), 0.0)
            variance = np.where(restricting, np.maximum(square - mean**2, LEAST), 0.0)
            found[len(self.model.bins)] = Side(mean, variance, error)
        return found

    def _hanging_together(
        self, sides: Mapping[int, Side], shares: Mapping[int, Floats], together: Floats
    ) -> tuple[Floats, Floats]:
        """Add up what is left of the noise of measured pairs, and the squares of what the network may not know."""
        size, queries = self.model.size.value, len(self.classes)
        noise, untold = np.zeros(queries), np.zeros(queries)
        reach = {
            at: np.minimum(one.variance + np.sqrt(one.error) / size * (one.variance > 0), 0.25) ** GAMMA
            for at, one in sides.items()
        }
        for a, b in itertools.combinations(sides, 2):
            others = together / (shares[a] * shares[b])
            left, unknown = self._pair(a, b, sides)
            noise += others**2 * left
            untold += (self.model.untold * others) ** 2 * reach[a] * reach[b] * unknown
        for a, b, c in itertools.combinations(sides, 3):
            others = together / (shares[a] * shares[b] * shares[c])
            untold += (TRIPLES * self.model.untold * others) ** 2 * reach[a] * reach[b] * reach[c]
        return noise, untold

    def _pair(self, a: int, b: int, sides: Mapping[int, Side]) -> tuple[Floats, Floats]:
        """What is left of the noise of the best measurement of two attributes, and the share of what they may have to
        do with each other that it does not tell.
        """
        queries = len(self.classes)
        best, unknown = np.zeros(queries), np.ones(queries)
        if b == len(self.model.bins):
            return best, self._inside(a, self.model.columns[a].part_of, sides[a])
        for pair, left in self.model.pairs_of(a, b):
            inside, reached = [], []
            for at, groups in zip((a, b), pair.groups, strict=True):
                of_leaf = groups[self.model.bins[at]]
                inside.append(self._inside(at, of_leaf, sides[at]))
                people = self.model.network.people[at].sum(axis=1)
                masses = np.bincount(of_leaf, people)
                covered = np.stack([np.bincount(of_leaf, people * one) for one in self.weights[at]]) / masses
                reached.append((covered - covered.mean(axis=1, keepdims=True)) ** 2)
            now = 1 - (1 - inside[0]) * (1 - inside[1])
            noise = np.einsum("qa,ab,qb->q", reached[0], left, reached[1])
            best, unknown = np.where(now < unknown, noise, best), np.minimum(now, unknown)
        return best, unknown

    def _inside(self, at: int, groups: Integers, side: Side) -> Floats:
        """The share of the variance of an attribute's weights that lies inside groups of its leaves."""
        people = self.model.network.people[at].sum(axis=1)
        masses, weights = np.bincount(groups, people), self.weights[at]
        means = np.stack([np.bincount(groups, people * one) for one in weights]) / masses
        squares = np.stack([np.bincount(groups, people * one**2) for one in weights]) / masses
        spread = ((squares - means**2) * masses).sum(axis=1) / masses.sum()
        return np.asarray(np.clip(spread / np.maximum(side.variance, LEAST), 0.0, 1.0))
