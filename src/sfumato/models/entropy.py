"""The distribution of largest entropy that agrees with what was measured, in proportion to its precision.

Among all distributions p, with y_m the measured shares of marginal m and M_m p its own, and b a product of tables that
is known to begin with,

    min over p of  KL(p | b) + sum over m of |M_m p - y_m|^2 / (2 r_m)

has a solution proportional to b exp(sum of theta_m), with as many parameters as there are measured cells: its dual,

    min over theta of  log Z(theta) - theta y + sum of r theta^2 / 2,

is smooth and convex, its gradient is M p - y + r theta, and log Z and M p follow from a junction tree. It is solved by
L-BFGS: steps along the gradient, bent by what the last ones have taught about the curvature, until the gradient is
small. A small r makes a marginal be met, a large one leaves it to the others.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.models.junction import Edge, JunctionTree, Variables

MEMORY = 10
"""How many steps are remembered,"""
SHORTEN = 0.4
"""by how much a step is shortened that goes too far,"""
TRIES = 25
"""how often at most,"""
DESCENT = 1e-4
"""and how much of what the slope promises it must gain."""
FLAT = 1e-14
"""Steps along which the slope does not change teach nothing."""

Slope = Callable[[Floats], tuple[float, Floats]]


@dataclass(frozen=True, eq=False)
class Target:
    """What a marginal should be: shares of cells, which are groups of states of some variables."""

    variables: Variables
    groups: tuple[Integers, ...]
    """for each variable, the group of each state"""
    shares: Floats
    """an axis for each variable"""
    slack: Floats
    """r, of the same shape"""

    @property
    def edges(self) -> set[Edge]:
        """The pairs of variables that it joins."""
        return {*itertools.combinations(self.variables, 2)}

    def cells(self) -> Integers:
        """The number of the cell of each combination of states."""
        found = np.zeros((1,) * len(self.variables), np.int64)
        for axis, (group, size) in enumerate(zip(self.groups, self.shares.shape, strict=True)):
            found = found * size + group.reshape([-1 if one == axis else 1 for one in range(len(self.groups))])
        return found


@dataclass(eq=False)
class Entropy:
    """A distribution fitted to targets; more may be added, and the fit then begins where it was."""

    sizes: tuple[int, ...]
    always: Edge | tuple[int, ...] = ()
    """variables that are to be in every clique"""
    base: list[tuple[Variables, Floats]] = field(default_factory=list)
    """the logarithms of the tables to begin with"""
    targets: list[Target] = field(default_factory=list)
    parameters: list[Floats] = field(default_factory=list)
    """theta, of each target"""
    tree: JunctionTree = field(init=False)
    beliefs: list[Floats] = field(init=False)
    evaluations: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Begin with the base alone."""
        self.tree = self.tree_with(())
        self.beliefs = self.tree.infer(self._base())[1]

    def _base(self) -> list[Floats]:
        """The logarithms of the base, clique by clique."""
        logs = [np.zeros(shape) for shape in self.tree.shapes]
        for variables, table in self.base:
            home = self.tree.home(variables)
            logs[home] = logs[home] + self._placed(table, variables, home)
        return logs

    def tree_with(self, variables: Sequence[int]) -> JunctionTree:
        """The junction tree that there would be if some variables more stood together in a marginal."""
        edges = {edge for target in self.targets for edge in target.edges}
        edges |= {edge for names, _ in self.base for edge in itertools.combinations(names, 2)}
        edges |= {*itertools.combinations(sorted({*variables, *self.always}), 2)} if variables else set()
        edges |= {(min(one, a), max(one, a)) for a in self.always for one in range(len(self.sizes)) if one != a}
        return JunctionTree.of(self.sizes, edges)

    def add(self, target: Target) -> None:
        """Take in another target."""
        self.targets.append(target)
        self.parameters.append(np.zeros(target.shares.shape))

    def fit(self, gradient: float, steps: int) -> None:
        """Fit until no cell of a target is missed by more than the gradient allows, or so many steps are done."""
        self.tree = self.tree_with(())
        homes = [self.tree.home(one.variables) for one in self.targets]
        cells, base = [one.cells() for one in self.targets], self._base()
        ends = np.cumsum([0, *(one.shares.size for one in self.targets)])
        wanted = np.concatenate([one.shares.ravel() for one in self.targets])
        slack = np.concatenate([one.slack.ravel() for one in self.targets])

        def slope(parameters: Floats) -> tuple[float, Floats]:
            logs = [one.copy() for one in base]
            for number, (target, home) in enumerate(zip(self.targets, homes, strict=True)):
                table = parameters[ends[number] : ends[number + 1]][cells[number]]
                logs[home] += self._placed(table, target.variables, home)
            scale, self.beliefs = self.tree.infer(logs)
            told = np.concatenate(
                [
                    np.bincount(cells[number].ravel(), self._of(target, home).ravel(), target.shares.size)
                    for number, (target, home) in enumerate(zip(self.targets, homes, strict=True))
                ]
            )
            self.evaluations += 1
            pull = slack * parameters
            value = scale - float(parameters @ wanted) + float(pull @ parameters) / 2
            return value, told - wanted + pull

        start = np.concatenate([one.ravel() for one in self.parameters])
        found = minimized(slope, start, gradient, steps, np.maximum(wanted, 0.0) + slack)
        slope(found)
        self.parameters = [
            found[ends[number] : ends[number + 1]].reshape(target.shares.shape)
            for number, target in enumerate(self.targets)
        ]

    def told(self, target: Target) -> Floats:
        """What the distribution says of a target's cells."""
        joint = self.tree.joint(self.beliefs, target.variables)
        found = np.bincount(target.cells().ravel(), joint.ravel(), target.shares.size)
        return np.asarray(found.reshape(target.shares.shape), np.float64)

    def _placed(self, table: Floats, variables: Variables, home: int) -> Floats:
        clique = self.tree.cliques[home]
        return table.reshape([self.sizes[one] if one in variables else 1 for one in clique])

    def _of(self, target: Target, home: int) -> Floats:
        clique = self.tree.cliques[home]
        return np.asarray(
            self.beliefs[home].sum(axis=tuple(at for at, one in enumerate(clique) if one not in target.variables))
        )


def minimized(slope: Slope, start: Floats, gradient: float, steps: int, curvature: Floats) -> Floats:
    """Find where a convex function is least, by L-BFGS: it tells its value and its gradient. Steps begin with a guess
    of its curvature along each axis.

    >>> bowl = lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3))
    >>> minimized(bowl, np.zeros(2), 1e-9, 50, np.ones(2)).round(6).tolist()
    [3.0, 3.0]
    """
    at, past = start, deque[tuple[Floats, Floats]](maxlen=MEMORY)
    value, down = slope(at)
    for _ in range(steps):
        if float(np.abs(down).max(initial=0.0)) <= gradient:
            break
        direction = -_bent(down, past, curvature)
        promised = float(down @ direction)
        if promised >= 0:
            direction, promised = -down, -float(down @ down)
        length, found = 1.0, None
        for _ in range(TRIES):
            ahead = at + length * direction
            then, turned = slope(ahead)
            if np.isfinite(then) and then <= value + DESCENT * length * promised:
                found = ahead
                break
            length *= SHORTEN
        if found is None:
            break
        moved, changed = found - at, turned - down
        if float(moved @ changed) > FLAT:
            past.append((moved, changed))
        at, value, down = found, then, turned
    return at


def _bent(down: Floats, past: deque[tuple[Floats, Floats]], curvature: Floats) -> Floats:
    """Multiply a gradient with an estimate of the inverse curvature, from the last steps (the two-loop recursion)."""
    bent, parts = down.copy(), []
    for moved, changed in reversed(past):
        part = float(moved @ bent) / float(moved @ changed)
        parts.append(part)
        bent -= part * changed
    bent = bent / curvature
    if past:
        moved, changed = past[-1]
        bent *= float(moved @ changed) / float(changed @ (changed / curvature))
    for (moved, changed), part in zip(past, reversed(parts), strict=True):
        bent += (part - float(changed @ bent) / float(moved @ changed)) * moved
    return bent
