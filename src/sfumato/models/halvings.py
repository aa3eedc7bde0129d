"""Least squares along the halving of an attribute's leaves: sums of parts were measured, and differences of halves.

Post-processing of released numbers, so floats are allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.geometry.contrasts import Halves
from sfumato.geometry.halving import families, height


@dataclass(frozen=True, eq=False)
class _Family:
    """The parts of one depth that have two halves: the nodes of parts, of first and of second halves; single leaves
    above the last depth have themselves for their only child.
    """

    heads: Integers
    first: Integers
    lone_heads: Integers
    lone: Integers

    @property
    def second(self) -> Integers:
        """The nodes of the second halves."""
        return self.first + 1


@dataclass(frozen=True, eq=False)
class HalvingSquares:
    """Weighted least squares for all nodes of a halving, in which a part is the sum of its halves.

    What is known of a node's people S from below is written as exp(-A S^2 / 2 + a S): A is a precision, a the mean
    times it, and A = 0 says nothing. Let L and R be two halves, (A, a) and (B, b) what is known of them, and let their
    difference be measured as d with precision c. With S = L + R and T = L - R, the exponent has the terms
    -(A + B)/8 (S^2 + T^2) - (A - B)/4 S T - c T^2 / 2 and (a + b)/2 S + ((a - b)/2 + c d) T. With q = (A + B)/4 + c:

    *Upward*, T integrated out, S has the precision (A B / 4 + c (A + B) / 4) / q and the linear term
    ((a B + b A) / 4 + c (a + b) / 2 - c d (A - B) / 4) / q; no two precisions are subtracted that could cancel.
    *Downward*, given S, the best T is ((a - b) / 2 + c d - (A - B) S / 4) / q.

    The root's people must be known from something. The same passes with other linear terms h solve (precision matrix)
    x = h for the leaves: that gives covariances.
    """

    leaves: int
    sums: Floats
    """by node: the precision of the measurement of its people; 0 if there is none"""
    differences: Floats
    """by node: the precision of the measurement of the difference of its halves"""

    @cached_property
    def _families(self) -> tuple[_Family, ...]:
        found = []
        for depth, level in enumerate(families(self.leaves)):
            first = Halves(self.leaves, depth).first
            two = level.sizes == 2
            found.append(
                _Family(level.heads[two], level.nodes[first], level.heads[~two], level.nodes[level.starts[~two]])
            )
        return tuple(found)

    @cached_property
    def _below(self) -> Floats:
        """The precision of each node's people by all that was measured of it and below."""
        known = self.sums.copy()
        for one in reversed(self._families):
            left, right, apart = known[one.first], known[one.second], self.differences[one.heads]
            whole = left + right + 4 * apart
            known[one.heads] += left * (right / whole) + apart * ((left + right) / whole)
            known[one.lone_heads] += known[one.lone]
        return known

    def solve(self, linear: Floats, apart: Floats) -> Floats:
        """Give the nodes' best values: nodes x columns of linear terms, of people and of differences."""
        given, known = linear.copy(), self._below[:, None]
        for one in reversed(self._families):
            left, right, between = known[one.first], known[one.second], self.differences[one.heads, None]
            mine, other = given[one.first], given[one.second]
            whole = left + right + 4 * between
            given[one.heads] += mine * (right / whole) + other * (left / whole)
            given[one.heads] += (mine + other) * (2 * between / whole) - apart[one.heads] * ((left - right) / whole)
            given[one.lone_heads] += given[one.lone]
        values = np.empty_like(given)
        values[0] = given[0] / known[0]
        for one in self._families:
            left, right, between = known[one.first], known[one.second], self.differences[one.heads, None]
            whole = left + right + 4 * between
            turned = (2 * (given[one.first] - given[one.second]) + 4 * apart[one.heads]) / whole
            turned -= (left - right) / whole * values[one.heads]
            values[one.first] = (values[one.heads] + turned) / 2
            values[one.second] = (values[one.heads] - turned) / 2
            values[one.lone] = values[one.lone_heads]
        return values

    def leaf_values(self, sums: Floats, differences: Floats) -> Floats:
        """Give the leaves' best values from what was measured of each node."""
        linear, apart = (self.sums * sums)[:, None], (self.differences * differences)[:, None]
        return np.asarray(self.solve(linear, apart)[-self.leaves :, 0])

    def covariances(self, weights: Floats) -> Floats:
        """Give the covariances of all leaves with weighted sums of leaves: leaves x sums, for sums x leaves."""
        linear = np.zeros((self.nodes, len(weights)))
        linear[-self.leaves :] = weights.T
        return self.solve(linear, np.zeros_like(linear))[-self.leaves :]

    @property
    def nodes(self) -> int:
        """The number of nodes; they are numbered level by level, the root is 0."""
        return (1 << height(self.leaves)) - 1 + self.leaves
