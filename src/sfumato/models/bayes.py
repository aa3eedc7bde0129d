"""A network of families: every attribute given its parents, as their noisy counts say, one after the other.

The first measurements are the size of the table and one-way margins; the last ones the families, in the order of the
network: each has one attribute that none before it has, its child. All parents are at some level of their own parts.

* *Estimation*, along the network. A family's rows (combinations of parents) should hold as many people as the network
  before it expects there, and its columns as many as the child's margin says. Rows are projected to what both sources
  say of their sums, drawn towards the child's margin by one standard deviation of noise, and raked to rows and columns.
  As published, counts are clipped at 0 and rows divided by their sums (`ClippedBayesModel`).
* *Answers* are sums over a junction tree of the families where its cliques are small, and else means over a large
  sample that is drawn along the network with a fixed seed, whose own error is added.
* *Noise* of answers to several clauses is how far those of replicates are apart: networks estimated anew from the
  model's own families with fresh noise of the same rates.
* *Model*: two attributes in one family are told by its counts. Others are taken for independent given what lies between
  them, and may hang together beyond that, by a part of what `intervals` says of attributes of which nothing is told.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.arrays import NONE, Booleans, Codes, Floats, Integers
from sfumato.errors import ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.models.fitting import Size
from sfumato.models.intervals import CLASS, GAMMA, PAIR, TRIPLE, Clause, Clauses
from sfumato.models.junction import JunctionTree, drawn_rows
from sfumato.models.margins import Estimator, Margin, Spread, is_of_margin, margins_of, people_of
from sfumato.models.merged import Beside
from sfumato.models.model import (
    UNMEASURED,
    Answers,
    Description,
    Groups,
    Listing,
    Model,
    Nonnegative,
    Query,
    refuse_unknown,
)
from sfumato.privacy.measurements import Draft, Measurement, Question
from sfumato.schema.schema import Schema, variables_of

SAMPLE = 1 << 16
"""So many people are drawn along a network while it is estimated, and stand for it where cliques are large."""
REPLICATES = 8
REPLICATE = 1 << 13
"""So many networks are estimated anew, with so many people drawn along each."""
MOST_CELLS = 1 << 17
"""Sums are exact where the largest clique has no more cells."""
MODEL_ERROR = 0.1
"""The network before a family is taken to expect its rows' people up to this share."""
SWEEPS = 30
"""So often a family is raked to its rows and columns."""
HELD = 0.5
"""Attributes of different families may hang together by so much of what those may of which nothing is told."""
OFF = 4.0
"""Replicates of clipped families begin where clipping has left the network, and are off by about half as much more."""
LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class Member:
    """A child, its parents, and the noisy counts of their family: combinations of parents x parts of the child."""

    child: int
    parents: tuple[int, ...]
    groups: tuple[Integers, ...]
    """for each parent, the group of each of its own parts"""
    counts: Floats
    variance: float
    rate: float

    def rows(self, states: Sequence[Integers] | Integers) -> Integers:
        """The row of each person, given the parts of all attributes."""
        keys = np.zeros(len(states[self.child]), np.int64)
        for parent, group in zip(self.parents, self.groups, strict=True):
            keys = keys * (int(group.max()) + 1) + group[states[parent]]
        return keys

    def factor(self, given: Floats, sizes: Sequence[int]) -> Floats:
        """A conditional distribution (rows x parts of the child) with an axis for each parent's parts."""
        table = given.reshape(*(int(group.max()) + 1 for group in self.groups), -1)
        return np.asarray(table[np.ix_(*self.groups, np.arange(sizes[self.child]))])


@dataclass(frozen=True, eq=False)
class Network:
    """Conditional distributions of all members, and people drawn along them: variables x people."""

    given: tuple[Floats, ...]
    states: Integers


class BayesModel(Model):
    """Families made to agree with each other and with margins."""

    clipped: ClassVar[bool] = False

    def __init__(self, schema: Schema, draft: Draft) -> None:
        """Read the network from the order of its families; refuse what is none."""
        super().__init__(schema, draft)
        shape = (*schema.shape, len(schema.classes))
        self._variables = [at for at, leaves in enumerate(shape) if leaves > 1]
        first = len(draft.measurements) - len(self._variables)
        before, families = draft.measurements[:first], draft.measurements[first:]
        levels = [one for one in before if one.question.attributes]
        if first < 1 or draft.structure != Grid.whole(schema.shape) or not all(map(is_of_margin, levels)):
            raise ReleaseError(*UNMEASURED)
        try:
            self._margins = {at: one for at, one in margins_of(levels).items() if isinstance(one, Margin)}
            self._members = self._read(families)
        except ValueError:
            raise ReleaseError(*UNMEASURED) from None
        self._everyone = [one for one in before if not one.question.attributes]
        if not self._everyone or len(self._margins) < len({one.question.attributes for one in levels}):
            raise ReleaseError(*UNMEASURED)

    @staticmethod
    def reads(question: Question) -> bool:
        """Read marginals."""
        return question.is_marginal()

    def _read(self, families: Sequence[Measurement]) -> tuple[Member, ...]:
        """Find each family's child and parents, and refuse what is none."""
        leaves = (*self.schema.shape, len(self.schema.classes))
        self._part_of: list[Integers] = [np.zeros(number, np.int64) for number in leaves]
        last, seen, members = len(self.schema.shape), set[int](), list[Member]()
        for one in families:
            grid = one.question.regions
            assert isinstance(grid, Grid)
            axes = [*grid.split_attributes, *([last] if one.question.classes > 1 else [])]
            new = [at for at in axes if at not in seen]
            if len(new) != 1 or len(one.noisy.rates) != 1:
                raise ValueError("a family must have one new attribute")
            (child,) = new
            own = np.arange(leaves[last]) if child == last else grid.part_of(child)
            self._part_of[child] = own
            seen.add(child)
            parents = tuple(at for at in axes if at != child)
            groups = tuple(self._groups(grid, at) for at in parents)
            table = one.counts.reshape([leaves[last] if at == last else grid.parts[at] for at in axes])
            table = np.moveaxis(table, axes.index(child), -1)
            counts = table.reshape(-1, table.shape[-1]).astype(np.float64)
            variance, rate = float(one.noisy.variances[0]), float(one.noisy.rates[0])
            members.append(Member(child, parents, groups, counts, variance, rate))
        if seen != {*self._variables}:
            raise ValueError("there must be a family of every attribute")
        return tuple(members)

    def _groups(self, grid: Grid, parent: int) -> Integers:
        """The group in which a family has each part of a parent; parts that it divides are refused."""
        own = self._part_of[parent]
        groups = np.arange(len(own)) if parent == len(self.schema.shape) else grid.part_of(parent)
        found = np.full(int(own.max()) + 1, NONE)
        found[own] = groups
        if not np.array_equal(found[own], groups):
            raise ValueError("a parent must be made of parts that it has as a child")
        return found

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        """The number of parts of each attribute, the class last."""
        return tuple(int(parts.max()) + 1 for parts in self._part_of)

    @cached_property
    def _size(self) -> Size:
        """The number of people, from everything that counts all of them; as published, from the size alone."""
        told = self._everyone if self.clipped else self.draft.measurements
        return Size.of((float(one.counts.sum()), one.counts.size * float(one.noisy.variances[0])) for one in told)

    @cached_property
    def _spreads(self) -> list[Spread]:
        """How people are spread over the leaves of each attribute inside its parts: by its margin, or evenly."""
        shape = self.schema.shape
        people = {at: people_of(margin, self._beside(at)) for at, margin in self._margins.items()}
        return [*(Spread.of(leaves, people.get(at)) for at, leaves in enumerate(shape)), Spread.of(self._classes)]

    @property
    def _classes(self) -> int:
        return len(self.schema.classes)

    def _beside(self, attribute: int) -> Beside:
        return Beside.everyone(self.schema.shape[attribute], self._size.value, self._size.variance)

    @cached_property
    def _estimators(self) -> Mapping[int, Estimator]:
        return {at: Estimator.of(margin, self._beside(at)) for at, margin in self._margins.items()}

    @cached_property
    def _within(self) -> list[Floats]:
        """The share that each leaf has of its part."""
        found = []
        for parts, spread in zip(self._part_of, self._spreads, strict=True):
            found.append(spread.mass / np.bincount(parts, spread.mass)[parts])
        return found

    @cached_property
    def _columns(self) -> Mapping[int, tuple[Floats, Floats]]:
        """What margins say of the parts of each attribute, and the variances of that."""
        if self.clipped:
            return {}
        found = {}
        for at, estimator in self._estimators.items():
            parts = self._part_of[at]
            people = np.bincount(parts, people_of(self._margins[at], self._beside(at)), self._sizes[at])
            which = (np.arange(self._sizes[at])[:, None] == parts).astype(np.float64)
            found[at] = (people.astype(np.float64), estimator.variances(which) + LEAST)
        told = [one for one in self._everyone if one.question.classes > 1]
        if told:
            weights = np.array([1 / float(one.noisy.variances[0]) for one in told])
            mean = np.sum([one.counts[0] * weight for one, weight in zip(told, weights, strict=True)], axis=0)
            variances = np.full(self._classes, 1 / weights.sum())
            found[len(self.schema.shape)] = (np.maximum(mean / weights.sum(), 0.0), variances)
        return found

    def _estimated(
        self,
        tables: Sequence[Floats],
        columns: Mapping[int, tuple[Floats, Floats]],
        people: int,
        rng: np.random.Generator,
    ) -> Network:
        """Estimate every family's conditional distribution from its counts, and draw people along the network."""
        states = np.zeros((len(self._sizes), people), np.int64)
        given = []
        for member, table in zip(self._members, tables, strict=True):
            rows = member.rows(states)
            if self.clipped:
                found = _clipped(table)
            else:
                share = np.bincount(rows, minlength=len(table)) / people
                found = consistent(table, member.variance, share, self._size.value, columns.get(member.child))
            states[member.child] = drawn_rows(found, rows, rng)
            given.append(found)
        return Network(tuple(given), states)

    @cached_property
    def _network(self) -> Network:
        """The network, with people drawn by a fixed seed, so that everyone who has the release has the same."""
        return self._estimated([one.counts for one in self._members], self._columns, SAMPLE, np.random.default_rng(0))

    @cached_property
    def _replicates(self) -> Integers:
        """People drawn along networks that were estimated from the model's own families with fresh noise."""
        drawn = []
        for seed in range(1, REPLICATES + 1):
            rng = np.random.default_rng(seed)
            tables = [self._renoised(member, rng) for member in self._members]
            columns = {
                at: (np.maximum(people + rng.normal(0.0, np.sqrt(variances)), 0.0), variances)
                for at, (people, variances) in self._columns.items()
            }
            drawn.append(self._estimated(tables, columns, REPLICATE, rng).states)
        return np.stack(drawn, axis=1)

    def _renoised(self, member: Member, rng: np.random.Generator) -> Floats:
        states = self._network.states
        cells = member.rows(states) * self._sizes[member.child] + states[member.child]
        people = np.bincount(cells, minlength=member.counts.size) * (self._size.value / SAMPLE)
        return np.asarray(people.reshape(member.counts.shape) + rng.laplace(0.0, 1 / member.rate, member.counts.shape))

    @cached_property
    def _tree(self) -> JunctionTree:
        edges = {pair for one in self._members for pair in itertools.combinations(sorted((one.child, *one.parents)), 2)}
        return JunctionTree.of(self._sizes, edges)

    @cached_property
    def _exact(self) -> list[Floats] | None:
        """The distribution of each clique; None if one is too large."""
        tree = self._tree
        if tree.largest > MOST_CELLS:
            return None
        logs = [np.zeros(shape) for shape in tree.shapes]
        for member, given in zip(self._members, self._network.given, strict=True):
            names = (*member.parents, member.child)
            home = tree.home(names)
            order = np.argsort(names)
            factor = np.transpose(np.log(np.maximum(member.factor(given, self._sizes), 1e-300)), order)
            logs[home] = logs[home] + factor.reshape(
                [self._sizes[at] if at in names else 1 for at in tree.cliques[home]]
            )
        return tree.infer(logs)[1]

    @cached_property
    def _conditionals(self) -> list[Floats]:
        """Each clique given its separator."""
        beliefs = self._exact
        assert beliefs is not None
        return [self._tree.conditional(beliefs, number) for number in range(len(beliefs))]

    def _share(self, weights: Mapping[int, Floats]) -> float:
        """The share of people that a query covers, given the weights of parts."""
        if self._exact is None:
            return float(_weighed(weights, self._network.states).mean())
        tree, told = self._tree, dict[int, list[tuple[Floats, tuple[int, ...]]]]()
        waiting = dict(weights)
        for number in range(len(tree.cliques) - 1, -1, -1):
            clique, separator = tree.cliques[number], tree.separators[number]
            own = {at: waiting.pop(at) for at in clique if at in waiting and at not in separator}
            if not own and number not in told and number:
                continue
            table = self._conditionals[number]
            for at, weight in own.items():
                table = table * weight.reshape([-1 if one == at else 1 for one in clique])
            for message, names in told.get(number, ()):
                table = table * message.reshape([self._sizes[one] if one in names else 1 for one in clique])
            if not number:
                return float(table.sum())
            message = table.sum(axis=tuple(axis for axis, one in enumerate(clique) if one not in separator))
            told.setdefault(tree.parents[number], []).append((message, separator))
        raise AssertionError

    @property
    def total(self) -> int:
        """The estimated number of people."""
        return max(round(self._size.value), 0)

    @property
    def groups(self) -> int:
        """One: a network has no groups but everyone."""
        return 1

    @property
    def regions(self) -> None:
        """None: people are told by a distribution, not counted in groups."""

    def bytes_for(self, query: Query) -> int:
        """Count the leaves of what the query restricts: queries are answered one by one."""
        return 64 * sum(self.schema.shape[at] for at in query.weights)

    def answer(self, queries: Sequence[Query]) -> Answers:
        """Sum over the network, query by query; then see how far that may err."""
        values, apart = np.zeros(len(queries)), np.zeros(len(queries))
        everyone = self._size.value
        for number, query in enumerate(queries):
            weights = self._weights(query)
            values[number] = everyone * self._share(weights)
            if weights:
                apart[number] = everyone**2 * self._variance(weights, values[number] / everyone)
        clauses, uneven = self._clauses(queries)
        margins = clauses.margin_noise(values, self._size.variance)
        alone = np.array([self._is_of_margin(query) for query in queries], np.bool_)
        noise = np.where(alone, margins, margins + apart)
        untold = np.hypot(self._untold(clauses), uneven)
        texts = tuple(query.text for query in queries)
        plain = np.array([all(((one == 0) | (one == 1)).all() for one in query.weights.values()) for query in queries])
        most = np.where(plain, clauses.most(), np.inf) if self._margins else np.full(len(queries), np.inf)
        return Answers(texts, values, np.sqrt(noise), untold, np.maximum(most, values), self.cause)

    def _weights(self, query: Query) -> dict[int, Floats]:
        """The weights of parts, of what a query restricts."""
        found: dict[int, Floats] = {
            at: np.bincount(self._part_of[at], self._within[at] * weight, self._sizes[at]).astype(np.float64)
            for at, weight in query.weights.items()
        }
        if (query.classes != 1).any():
            found[len(self.schema.shape)] = query.classes
        return found

    def _is_of_margin(self, query: Query) -> bool:
        """Tell whether a query restricts no more than one attribute whose margin was bought, or the class."""
        restricted = [*query.weights, *([len(self.schema.shape)] if (query.classes != 1).any() else [])]
        return len(restricted) == 1 and restricted[0] in self._columns

    def _variance(self, weights: Mapping[int, Floats], share: float) -> float:
        """How far replicates' shares are apart, less what is due to their being samples; how far off they are together,
        for clipping moves people to where there are none; and what the sample errs by.
        """
        of_people = _weighed(weights, self._replicates.reshape(len(self._sizes), -1))
        shares = of_people.reshape(REPLICATES, REPLICATE).mean(axis=1)
        spread = float(of_people.var())
        found = max(float(shares.var(ddof=1)) - spread / REPLICATE / 2, float(shares.var(ddof=1)) / 4)
        off = (float(shares.mean()) - share) ** 2 if self.clipped else 0.0
        return found + OFF * off + (0.0 if self._exact is not None else spread / SAMPLE)

    @cached_property
    def _one_way(self) -> list[Floats]:
        """The share of each part of each attribute."""
        if self._exact is None:
            return [
                np.bincount(states, minlength=size) / SAMPLE
                for states, size in zip(self._network.states, self._sizes, strict=True)
            ]
        return [self._tree.joint(self._exact, (at,)) for at in range(len(self._sizes))]

    def _clauses(self, queries: Sequence[Query]) -> tuple[Clauses, Floats]:
        """See what queries restrict each attribute and the class to, and how far evenness inside parts may err."""
        found, uneven = dict[int, Clause](), np.zeros(len(queries))
        last, everyone = len(self.schema.shape), self._size.value
        for at in self._variables:
            leaves = len(self._part_of[at])
            weights = [query.classes if at == last else query.weights.get(at) for query in queries]
            each = np.array([np.ones(leaves) if one is None else one for one in weights]).reshape(len(queries), leaves)
            restricting = (each != 1).any(axis=1)
            if not restricting.any():
                continue
            people = self._one_way[at][self._part_of[at]] * self._within[at]
            share = np.where(restricting, each @ people, 1.0)
            variance = np.where(restricting, np.maximum(each**2 @ people - share**2, 0.0), 0.0)
            error = np.zeros(len(queries))
            if at in self._estimators:
                error[restricting] = self._estimators[at].variances(each[restricting])
            elif at in self._columns:
                error = (each**2).sum(axis=1) * float(self._columns[at][1][0]) * restricting
            elif self._sizes[at] < leaves:
                parts = np.stack([np.bincount(self._part_of[at], one * self._within[at]) for one in each])
                lost = np.maximum(parts * (1 - parts), 0.0) @ self._one_way[at] ** 2
                uneven = np.hypot(uneven, everyone * np.sqrt(lost) / 2)
            found[CLASS if at == last else at] = Clause(
                each.T, restricting, share, variance, 0 * share, error, 0 * error
            )
        return Clauses(found, len(queries), max(everyone, 1.0)), uneven

    def _untold(self, clauses: Clauses) -> Floats:
        """How far clauses on attributes of different families may hang together beyond the network."""
        numbers = list(clauses.by_attribute)
        if len(numbers) < 2:
            return np.zeros(clauses.queries)
        shares = np.stack([np.maximum(np.abs(one.share), 1e-6) for one in clauses.by_attribute.values()], axis=1)
        reach = np.stack([one.variance**GAMMA for one in clauses.by_attribute.values()], axis=1) / shares**2
        apart = np.array([[self._apart(one, other) for other in numbers] for one in numbers], np.float64)
        pairs = np.einsum("qa,ab,qb->q", reach, apart, reach) / 2
        singles = reach.sum(axis=1)
        triples = np.maximum(singles * pairs - np.einsum("qa,ab,qb->q", reach**2, apart, reach), 0.0) / 3
        untold = HELD**2 * (PAIR**2 * pairs + TRIPLE**2 * triples)
        return np.asarray(clauses.size * shares.prod(axis=1) * np.sqrt(untold))

    def _apart(self, one: int, other: int) -> bool:
        """Tell whether two attributes are in no family together."""
        last = len(self.schema.shape)
        pair = {last if at == CLASS else at for at in (one, other)}
        return len(pair) == 2 and not any(pair <= {member.child, *member.parents} for member in self._members)

    def explain(self, query: Query) -> tuple[Mapping[str, Sequence[str]], Floats]:
        """Name everyone, if the query restricts no attribute; there are no other groups."""
        whole = not any((one != 1).any() for one in query.weights.values())
        return {}, self._by_class @ query.classes if whole else np.zeros(0)

    @property
    def _by_class(self) -> Floats:
        return np.asarray(self._size.value * self._one_way[-1].reshape(1, -1))

    def marginal(self, attributes: Sequence[int], *, by_class: bool) -> Floats:
        """Give the distribution of parts, and spread it over leaves."""
        names = (*attributes, *([len(self.schema.shape)] if by_class else []))
        if self._exact is None:
            keys = np.zeros(SAMPLE, np.int64)
            for at in names:
                keys = keys * self._sizes[at] + self._network.states[at]
            shape = [self._sizes[at] for at in names]
            table = np.bincount(keys, minlength=int(np.prod(shape))).reshape(shape) / SAMPLE
        else:
            table = self._tree.joint(self._exact, names) if names else np.ones(())
        for axis, at in enumerate(names):
            within = self._within[at].reshape([-1 if one == axis else 1 for one in range(len(names))])
            table = table.take(self._part_of[at], axis=axis) * within
        return np.asarray(self._size.value * (table if by_class else table[..., None]))

    def generalized(self, how: Nonnegative) -> Groups:
        """Make one group of everyone."""
        refuse_unknown(how)
        sides = [self.draft.structure.sides(at) for at in range(len(self.schema.shape))]
        running = np.rint(np.cumsum(self._by_class[0] * (self.total / max(self._size.value, 1.0)))).astype(np.int64)
        return Groups(sides, np.round(self._by_class, 3), np.diff(running, prepend=0).reshape(1, -1))

    def draw(self, size: int, rng: np.random.Generator, how: Nonnegative) -> tuple[Sequence[Integers], Integers]:
        """Draw along the network, then a leaf inside each part."""
        refuse_unknown(how)
        states = np.zeros((len(self._sizes), size), np.int64)
        for member, given in zip(self._members, self._network.given, strict=True):
            states[member.child] = drawn_rows(given, member.rows(states), rng)
        leaves = []
        for at in range(len(self.schema.shape)):
            first = np.searchsorted(self._part_of[at], np.arange(self._sizes[at] + 1))
            ranges = np.stack([first[states[at]], first[states[at] + 1]], axis=1)
            leaves.append(self._spreads[at].draw(ranges, rng))
        return leaves, states[-1]

    def classify(self, columns: Sequence[Codes]) -> Integers:
        """Take the most probable class, given all other attributes."""
        rows = len(columns[0]) if len(columns) else 0
        states = [
            *(part[column] for part, column in zip(self._part_of, columns, strict=False)),
            np.zeros(rows, np.int64),
        ]
        last = len(self.schema.shape)
        logs = np.zeros((rows, self._classes))
        for member, given in zip(self._members, self._network.given, strict=True):
            for label in range(self._classes if last in (member.child, *member.parents) else 0):
                states[last] = np.full(rows, label)
                logs[:, label] += np.log(np.maximum(given[member.rows(states), states[member.child]], 1e-300))
        return np.asarray(np.argmax(logs, axis=1))

    def describe(self) -> Description:
        """Tell the families."""
        names = list(variables_of(self.schema))
        rows = tuple(
            (
                names[one.child],
                ", ".join(self._named(names[at], group) for at, group in zip(one.parents, one.groups, strict=True)),
                f"{one.counts.size:,}",
            )
            for one in self._members
        )
        return Description(
            title="The network",
            words=f"Each of {len(rows)} attributes hangs on those that stand as its parents, in this order.",
            told_apart=tuple(at for at in self._variables if at < len(self.schema.shape)),
            caption="Families, in the order in which attributes were added.",
            listings=(Listing("Families", ("attribute", "parents", "cells"), rows, (2,)),),
        )

    @staticmethod
    def _named(name: str, group: Integers) -> str:
        parts = int(group.max()) + 1
        return name if parts == len(group) else f"{name} in {parts} parts"

    def own_query(self, rng: np.random.Generator) -> Mapping[int, Integers] | None:
        """Draw a cell of a family, the class apart."""
        member = self._members[int(rng.integers(len(self._members)))]
        found = {}
        for at, group in zip((*member.parents, member.child), (*member.groups, None), strict=True):
            own = self._part_of[at] if group is None else group[self._part_of[at]]
            cell = int(rng.integers(int(own.max()) + 1))
            if at < len(self.schema.shape):
                found[at] = np.flatnonzero(own == cell)
        return found or None


class ClippedBayesModel(BayesModel):
    """Families as published: counts clipped at 0, and rows divided by their sums."""

    clipped: ClassVar[bool] = True


def _weighed(weights: Mapping[int, Floats], states: Integers) -> Floats:
    """The product of the weights of each person's parts."""
    product = np.ones(states.shape[1])
    for at, weight in weights.items():
        product *= weight[states[at]]
    return product


def _clipped(table: Floats) -> Floats:
    """Clip at 0 and divide rows by their sums; a row without anyone is even.

    >>> _clipped(np.array([[3.0, -1, 1], [-2, 0, 0]])).tolist()
    [[0.75, 0.0, 0.25], [0.3333333333333333, 0.3333333333333333, 0.3333333333333333]]
    """
    positive = np.maximum(table, 0.0)
    empty: Booleans = positive.sum(axis=1) <= 0
    positive[empty] = 1.0
    return np.asarray(positive / positive.sum(axis=1, keepdims=True))


def consistent(
    table: Floats, variance: float, share: Floats, size: float, column: tuple[Floats, Floats] | None
) -> Floats:
    """Estimate a conditional distribution (rows x parts) from noisy counts, the shares that the network expects of the
    rows, and the people that a margin has in the columns, with variances.
    """
    parts = table.shape[1]
    expected = size * share
    doubt = (MODEL_ERROR * expected) ** 2 + expected + 1.0
    own, of_own = table.sum(axis=1), parts * variance
    people = np.maximum((own / of_own + expected / doubt) / (1 / of_own + 1 / doubt), 0.0) + LEAST
    people *= size / people.sum()
    sums, of_sums = table.sum(axis=0), np.full(parts, len(table) * variance)
    if column is not None:
        sums = (sums / of_sums + column[0] / column[1]) / (1 / of_sums + 1 / column[1])
    margin = _projected(sums[None], np.array([size]))[0] + LEAST
    margin *= size / margin.sum()
    drawn = np.sqrt(variance)
    cells = _projected(table, people) + drawn * margin / size + LEAST
    for _ in range(SWEEPS):
        cells *= margin / cells.sum(axis=0)
        cells *= (people / cells.sum(axis=1))[:, None]
    return np.asarray(cells / cells.sum(axis=1, keepdims=True))


def _projected(rows: Floats, sums: Floats) -> Floats:
    """Find the nearest rows of non-negative numbers that have these sums.

    >>> _projected(np.array([[5.0, 1, -3]]), np.array([5.0])).tolist()
    [[4.5, 0.5, 0.0]]
    """
    falling = -np.sort(-rows, axis=1)
    beyond = (np.cumsum(falling, axis=1) - sums[:, None]) / np.arange(1, rows.shape[1] + 1)
    kept = np.maximum((falling > beyond).sum(axis=1), 1)
    return np.asarray(np.maximum(rows - beyond[np.arange(len(rows)), kept - 1][:, None], 0.0))
