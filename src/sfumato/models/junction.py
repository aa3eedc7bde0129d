"""Junction trees: exact sums over a distribution of many variables that is a product of tables of a few each.

Variables that stand in one table are joined by an edge. The graph is filled in until its cliques hang together as a
tree: a variable that two cliques share is in every clique between them (its *separators*). Messages along the tree then
give the distribution of each clique, and from these follow that of any few variables, and people drawn one clique after
the other. A distribution is kept as the tables of its cliques; all sums to 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.arrays import Floats, Integers

Edge = tuple[int, int]
Variables = tuple[int, ...]
"""Numbers of variables, ascending: the axes of a table."""
TINY = 1e-300
"""A probability that is divided by is no less."""


@dataclass(frozen=True, eq=False)
class JunctionTree:
    """Cliques in an order in which each follows one that it shares its separator with."""

    sizes: tuple[int, ...]
    """the number of states of each variable"""
    cliques: tuple[Variables, ...]
    parents: tuple[int, ...]
    """the clique that each one hangs on; -1 for the first"""
    separators: tuple[Variables, ...]
    """the variables that each shares with its parent"""

    @classmethod
    def of(cls, sizes: Sequence[int], edges: Iterable[Edge]) -> JunctionTree:
        """Make the tree of a graph; every variable is in some clique.

        >>> tree = JunctionTree.of((2, 3, 2, 2), [(0, 1), (1, 2), (2, 3), (0, 3)])
        >>> tree.cliques, tree.separators
        (((0, 2, 3), (0, 1, 2)), ((), (0, 2)))
        """
        found = _cliques(sizes, edges)
        order, parents, separators = [0], [-1], [()]
        waiting = {*range(1, len(found))}
        while waiting:
            _, child, place = max(
                (len({*found[one]} & {*found[other]}), -one, -place)
                for one in waiting
                for place, other in enumerate(order)
            )
            waiting.remove(-child)
            order.append(-child)
            parents.append(-place)
            separators.append(tuple(sorted({*found[-child]} & {*found[order[-place]]})))
        return cls(tuple(sizes), tuple(found[one] for one in order), tuple(parents), tuple(separators))

    @property
    def largest(self) -> int:
        """The number of cells of the largest clique."""
        return max(math.prod(shape) for shape in self.shapes)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each clique's table."""
        return tuple(tuple(self.sizes[one] for one in clique) for clique in self.cliques)

    def home(self, variables: Iterable[int]) -> int:
        """Find the smallest clique that has some variables."""
        wanted = {*variables}
        having = [number for number, clique in enumerate(self.cliques) if wanted <= {*clique}]
        return min(having, key=lambda number: math.prod(self.shapes[number]))

    def infer(self, logs: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Sum the product of tables, given as logarithms: the logarithm of the sum, and each clique's distribution."""
        scale, beliefs = 0.0, []
        for one in logs:
            most = float(one.max())
            scale += most
            beliefs.append(np.exp(one - most))
        told: list[Floats] = [np.ones(1)] * len(beliefs)
        for number in range(len(beliefs) - 1, 0, -1):
            inner, outer = self._steps[number]
            message = beliefs[number].sum(axis=inner)
            most = float(message.max())
            scale += math.log(max(most, TINY))
            told[number] = message / max(most, TINY)
            above = self.parents[number]
            beliefs[above] = beliefs[above] * _placed(told[number], self.cliques[above], self.separators[number])
        total = float(beliefs[0].sum())
        beliefs[0] = beliefs[0] / max(total, TINY)
        for number in range(1, len(beliefs)):
            inner, outer = self._steps[number]
            message = beliefs[self.parents[number]].sum(axis=outer) / np.maximum(told[number], TINY)
            belief = beliefs[number] * _placed(message, self.cliques[number], self.separators[number])
            beliefs[number] = belief / max(float(belief.sum()), TINY)
        return scale + math.log(max(total, TINY)), beliefs

    @cached_property
    def _steps(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The axes that are summed out on the way to each separator: of the clique, and of its parent."""
        found = []
        for number, separator in enumerate(self.separators):
            above = self.cliques[self.parents[number]] if number else ()
            found.append((_others(self.cliques[number], separator), _others(above, separator)))
        return found

    def conditional(self, beliefs: Sequence[Floats], number: int) -> Floats:
        """The distribution of a clique given its separator; of the first, its own."""
        if not number:
            return beliefs[0]
        below = beliefs[number].sum(axis=self._steps[number][0], keepdims=True)
        return np.asarray(beliefs[number] / np.maximum(below, TINY))

    def joint(self, beliefs: Sequence[Floats], variables: Variables) -> Floats:
        """The distribution of any few variables, ascending: cliques that do not matter are left out, then all others
        are summed out from the ends of the tree inwards.
        """
        wanted = {*variables}
        for number, clique in enumerate(self.cliques):
            if wanted <= {*clique}:
                return np.asarray(beliefs[number].sum(axis=_others(clique, variables)))
        kept = self._needed(wanted)
        first = min(kept)
        tables: dict[int, list[tuple[Floats, Variables]]] = {number: [] for number in kept}
        for number in sorted(kept, reverse=True):
            own = beliefs[number] if number == first else self.conditional(beliefs, number)
            clique = self.cliques[number]
            held = {*clique}.union(*(names for _, names in tables[number]))
            rest = wanted & held if number == first else (wanted & held) | {*self.separators[number]}
            names = tuple(sorted(rest))
            table = _product([(own, clique), *tables[number]], names)
            if number == first:
                return table
            tables[self._above(number, kept)].append((table, names))
        raise AssertionError

    def _above(self, number: int, kept: set[int]) -> int:
        above = self.parents[number]
        assert above in kept
        return above

    def _needed(self, wanted: set[int]) -> set[int]:
        """The cliques between those that have the variables: ends that add nothing to their neighbour are left out."""
        kept = {*range(len(self.cliques))}
        while True:
            children = {number: [one for one in kept if self.parents[one] == number] for number in kept}
            idle = {one for one in kept if not children[one] and one != min(kept)}
            idle = {one for one in idle if wanted & {*self.cliques[one]} <= {*self.separators[one]}}
            top = min(kept)
            if len(children[top]) == 1 and wanted & {*self.cliques[top]} <= {*self.separators[children[top][0]]}:
                idle.add(top)
            if not idle:
                return kept
            kept -= idle

    def pairs(self, beliefs: Sequence[Floats], always: Variables) -> Mapping[Edge, Floats]:
        """The distributions of all pairs of variables, together with a few that are in every clique.

        From each variable's clique outwards, its joint table with one separator after the other is carried along.
        """
        others = [one for one in range(len(self.sizes)) if one not in always]
        found: dict[Edge, Floats] = {}
        neighbours = self._neighbours
        for one in others:
            home = self.home((one, *always))
            reached = [(home, -1, beliefs[home], self.cliques[home])]
            while reached:
                number, before, table, names = reached.pop()
                for other in set(self.cliques[number]) - {one, *always}:
                    pair = (one, other)
                    if one < other and pair not in found and other in names:
                        found[pair] = _product([(table, names)], tuple(sorted({one, other, *always})))
                for then, separator in neighbours[number]:
                    if then == before or not self._beyond(then, number, one, found, always):
                        continue
                    kept = tuple(sorted({one, *separator}))
                    carried = _product([(table, names)], kept)
                    if one in self.cliques[then]:
                        reached.append((then, number, beliefs[then], self.cliques[then]))
                        continue
                    clique = self.cliques[then]
                    below = beliefs[then].sum(axis=_others(clique, separator), keepdims=True)
                    given = beliefs[then] / np.maximum(below, TINY)
                    every = tuple(sorted({one, *clique}))
                    reached.append((then, number, _product([(carried, kept), (given, clique)], every), every))
        return found

    def _beyond(self, then: int, number: int, one: int, found: Mapping[Edge, Floats], always: Variables) -> bool:
        """Tell whether some later variable lies beyond an edge of the tree, of which the pair is not known yet."""
        return any(other > one and (one, other) not in found for other in self._sides[number, then] - {*always})

    @cached_property
    def _neighbours(self) -> list[list[tuple[int, Variables]]]:
        found: list[list[tuple[int, Variables]]] = [[] for _ in self.cliques]
        for number, above in enumerate(self.parents):
            if number:
                found[number].append((above, self.separators[number]))
                found[above].append((number, self.separators[number]))
        return found

    @cached_property
    def _sides(self) -> dict[Edge, set[int]]:
        """The variables beyond each edge of the tree, by the cliques on this side and on that."""
        found: dict[Edge, set[int]] = {}
        below: list[set[int]] = [{*clique} for clique in self.cliques]
        for number in range(len(self.cliques) - 1, 0, -1):
            below[self.parents[number]] |= below[number]
        everything = set(range(len(self.sizes)))
        for number in range(1, len(self.cliques)):
            inside = below[number] - {*self.separators[number]}
            found[self.parents[number], number] = inside
            found[number, self.parents[number]] = everything - inside
        return found

    def draw(self, beliefs: Sequence[Floats], size: int, rng: np.random.Generator) -> Integers:
        """Draw people, variables x people: clique after clique, in even steps among people who share a separator."""
        drawn = np.zeros((len(self.sizes), size), np.int64)
        for number, clique in enumerate(self.cliques):
            separator = self.separators[number]
            new = tuple(one for one in clique if one not in separator)
            axes = [clique.index(one) for one in (*separator, *new)]
            shape = [self.sizes[one] for one in separator]
            rows = np.transpose(beliefs[number], axes).reshape(math.prod(shape), -1)
            keys = np.zeros(size, np.int64)
            for one in separator:
                keys = keys * self.sizes[one] + drawn[one]
            states = drawn_rows(rows, keys, rng)
            for one in reversed(new):
                states, drawn[one] = np.divmod(states, self.sizes[one])
        return drawn

    def log_probabilities(self, beliefs: Sequence[Floats], states: Integers, variable: int) -> Floats:
        """The logarithms of the probabilities that one variable has each state, given all others, up to a constant:
        people x states. States are variables x people.
        """
        found = np.zeros((states.shape[1], self.sizes[variable]))
        for number, clique in enumerate(self.cliques):
            if variable not in clique:
                continue
            conditional = np.log(np.maximum(self.conditional(beliefs, number), TINY))
            at = clique.index(variable)
            others = tuple(states[one] for one in clique if one != variable)
            table = np.moveaxis(conditional, at, -1)
            found += table[others] if others else table[None]
        return found


def even_steps(keys: Integers, rng: np.random.Generator) -> Floats:
    """Uniform numbers, one for each key, in even steps of random order among equal keys."""
    order = rng.permutation(len(keys))
    order = order[np.argsort(keys[order], kind="stable")]
    grouped = keys[order]
    starts = np.flatnonzero(np.diff(grouped, prepend=-1))
    sizes = np.diff(starts, append=len(keys))
    rank = np.arange(len(keys)) - np.repeat(starts, sizes)
    found = np.empty(len(keys))
    found[order] = (rank + rng.random(len(keys))) / np.repeat(sizes, sizes)
    return np.minimum(found, 1 - 1e-12)


def drawn_rows(rows: Floats, keys: Integers, rng: np.random.Generator) -> Integers:
    """Draw for every key a column of its row, in proportion to the row's entries; evenly where they are all 0.

    >>> np.bincount(drawn_rows(np.array([[1.0, 0, 3]]), np.array([0, 0, 0, 0]), np.random.default_rng())).tolist()
    [1, 0, 3]
    """
    some = rows.sum(axis=1, keepdims=True) > 0
    running = np.cumsum(np.where(some, rows, 1.0), axis=1)
    running = running / running[:, -1:]
    running[:, -1] = 1.0
    borders = (running + np.arange(len(rows))[:, None]).ravel()
    found = np.searchsorted(borders, keys + even_steps(keys, rng), side="right") - keys * rows.shape[1]
    last = rows.shape[1] - 1 - np.argmax((np.where(some, rows, 1.0) > 0)[:, ::-1], axis=1)
    return np.asarray(np.clip(found, 0, last[keys]))


def _cliques(sizes: Sequence[int], edges: Iterable[Edge]) -> list[Variables]:
    """Eliminate variables one after the other, the one of the smallest clique first; keep cliques inside no other."""
    neighbours: dict[int, set[int]] = {one: set() for one in range(len(sizes))}
    for one, other in edges:
        neighbours[one].add(other)
        neighbours[other].add(one)
    weights = {one: _weight(sizes, one, neighbours[one]) for one in neighbours}
    found: list[set[int]] = []
    while weights:
        one = min(weights, key=lambda each: (weights[each], each))
        clique = neighbours[one] | {one}
        if not any(clique <= other for other in found):
            found.append(clique)
        for a, b in itertools.combinations(sorted(neighbours[one]), 2):
            neighbours[a].add(b)
            neighbours[b].add(a)
        del weights[one]
        for other in neighbours[one]:
            neighbours[other].discard(one)
            weights[other] = _weight(sizes, other, neighbours[other])
    return [tuple(sorted(clique)) for clique in found]


def _weight(sizes: Sequence[int], one: int, neighbours: set[int]) -> float:
    return sizes[one] * math.prod(float(sizes[other]) for other in neighbours)


def _others(names: Variables, kept: Iterable[int]) -> tuple[int, ...]:
    """The axes of a table that are not kept."""
    wanted = {*kept}
    return tuple(axis for axis, name in enumerate(names) if name not in wanted)


def _placed(table: Floats, names: Variables, own: Variables) -> Floats:
    """Give a table of some variables the axes of more."""
    sizes = dict(zip(own, table.shape, strict=True))
    return table.reshape([sizes.get(one, 1) for one in names])


def _product(tables: Sequence[tuple[Floats, Variables]], kept: Variables) -> Floats:
    """Multiply tables and sum out all variables but some."""
    names = {name: number for number, name in enumerate(sorted({name for _, each in tables for name in each}))}
    operands: list[Any] = []
    for table, each in tables:
        operands += [table, [names[name] for name in each]]
    return np.asarray(np.einsum(*operands, [names[name] for name in kept], optimize=len(tables) > 2))
