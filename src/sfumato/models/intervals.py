"""How far an answer may be from the truth: noise of what was measured, and what the model had to assume.

For a conjunction of clauses a, with p_a the model's one-way share of clause a, q_a = 1 - p_a and N the size of the
table, the error of the answer has these parts, added up as variances:

* *margins*: clause a's margin errs by e_a (a variance); in the answer that counts as the other clauses' shares say,
  g_a = the product of their p, or answer / (N p_a) if that is more (who satisfies a may satisfy the others more often);
* *regions*: what is left of the noise of their counts after shrinking, of the departures that the answer rests on;
* *model*: inside regions attributes are taken for independent. Two clauses may hang together there by
  PAIR N (p_a q_a p_b q_b)^(GAMMA / 2) times the other clauses' p, and of that the share 1 - (1 - u_a)(1 - u_b) is not
  told by the regions: u_a is the share of clause a's variance that lies inside regions, 0 where regions resolve it, 1
  where they do not tell it apart at all. Three clauses may hang together beyond that, by
  TRIPLE N (p_a q_a p_b q_b p_c q_c)^(GAMMA / 2), of which 1 - (1 - u_a)(1 - u_b)(1 - u_c) is not told.

How strongly attributes hang together differs from pair to pair: most hardly, some are functions of each other. Over the
natural questions of a table, what is counted less what independence says, over N (p q p q)^(GAMMA / 2), follows
Student's t with two degrees of freedom closely, and its scale is much the same for all tables that were looked at
(docs/answers.md). So the error is taken for Normal(0, V) + S t_2, V being the first two parts and S^2 the third.

With r = (p q)^GAMMA and x = r / p^2, sums over pairs and triples of clauses, each times the other clauses' p^2, are the
product of all p^2 times elementary symmetric polynomials of the x: linear in the number of attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np

from sfumato.arrays import Booleans, Floats

GAMMA = 1.6
"""How far two parts of shares p and q may depart from independence: as N (p (1 - p) q (1 - q))^(GAMMA / 2). With 2 all
parts would depart by the same share of what is expected, with 1 by the most that their sizes allow."""
PAIR = 0.16
"""How strongly two attributes hang together: the scale of t_2, from Adult and a table made up."""
TRIPLE = 0.1
"""How strongly three do, beyond what their pairs say."""
LEAST = 1e-9
"""A share that is divided by is no less."""
ROUNDING = 0.25
"""Counts are whole numbers: even where nothing errs, an answer may be off by rounding, as a variance."""
ALONE = 1.17
"""Where a single margin tells, few counts are added up, and their noise is nearer to Laplace's than to a normal one:
its 95 % interval reaches 2.12 standard deviations and not 1.96, the square of which is more by this factor."""
STEPS = 500
"""Quantiles are worked out with so many points of the t distribution,"""
RATIOS = np.concatenate([[0.0], 10.0 ** np.arange(-2.0, 2.01, 0.1)])
"""for these ratios of model to noise; between them they are interpolated."""
HALVINGS = 32
LEVEL = 0.95
"""How probable it is that an interval holds the truth, if nothing else is said."""
Z95 = 1.959963984540054
CLASS = -1
"""The number of the class among attributes."""


@dataclass(frozen=True, eq=False)
class Clause:
    """What queries restrict one attribute, or the class, to."""

    shares: Floats
    """ranges x queries: the share of each range's people; all of them where a query does not restrict it"""
    restricting: Booleans
    share: Floats
    """queries: the share of all people, p"""
    variance: Floats
    """queries: the variance of the weight of a person; p q where weights are 0 or 1"""
    inside: Floats
    """queries: the share of that variance which lies inside regions, u"""
    error: Floats
    """queries: the variance of the margin's own answer, e"""
    untold: Floats
    """queries: how far that may be off by what the margin merged, as a scale"""


@dataclass(frozen=True, eq=False)
class Clauses:
    """The clauses of queries, by attribute, and what they make of errors."""

    by_attribute: Mapping[int, Clause]
    queries: int
    size: float

    @cached_property
    def _shares(self) -> dict[int, Floats]:
        """Each clause's share, a standard deviation of its margin up: what may be, not what is estimated."""
        return {
            at: np.where(one.restricting, np.clip(np.abs(one.share) + np.sqrt(one.error) / self.size, LEAST, 1.0), 1.0)
            for at, one in self.by_attribute.items()
        }

    @cached_property
    def _reach(self) -> dict[int, Floats]:
        """The x of each clause: 0 where a query does not restrict the attribute."""
        found = {}
        for at, one in self.by_attribute.items():
            variance = one.variance + np.sqrt(one.error) / self.size
            found[at] = np.where(one.restricting, np.minimum(variance, 0.25) ** GAMMA / self._shares[at] ** 2, 0.0)
        return found

    @cached_property
    def _together(self) -> Floats:
        """The product of all shares."""
        return np.asarray(np.prod([np.ones(self.queries), *self._shares.values()], axis=0))

    @cached_property
    def several(self) -> Booleans:
        """Which queries restrict two attributes or more; what one alone restricts is told by its margin."""
        number = np.sum([np.zeros(self.queries), *(one.restricting for one in self.by_attribute.values())], axis=0)
        return np.asarray(number > 1)

    def others(self, *but: int) -> Floats:
        """Multiply the shares of all clauses but some."""
        return np.asarray(self._together / np.prod([np.ones(self.queries), *(self._shares[at] for at in but)], axis=0))

    def restricted(self, *attributes: int) -> Booleans:
        """Tell which queries restrict all of some attributes."""
        everyone = np.ones(self.queries, np.bool_)
        found = [self.by_attribute[at].restricting if at in self.by_attribute else ~everyone for at in attributes]
        return np.asarray(np.logical_and.reduce([everyone, *found]))

    def margin_noise(self, values: Floats, total: float) -> Floats:
        """Add up how far margins move answers; who is not restricted at all is counted by the size, of a variance."""
        noise = np.full(self.queries, ROUNDING)
        alone = np.ones(self.queries, np.bool_)
        for at, one in self.by_attribute.items():
            noise = noise + np.where(one.restricting, self._reached(at, values) ** 2 * one.error, 0.0)
            alone &= ~one.restricting
        return np.where(alone, total, np.where(self.several, noise, ALONE * noise))

    def margin_untold(self, values: Floats) -> Floats:
        """Add up how far what margins merged may move answers, as scales."""
        squares = [
            np.where(one.restricting, self._reached(at, values) * one.untold, 0.0) ** 2
            for at, one in self.by_attribute.items()
        ]
        return np.asarray(np.sqrt(np.sum([np.zeros(self.queries), *squares], axis=0)))

    def _reached(self, attribute: int, values: Floats) -> Floats:
        """By how much an error of one clause's margin counts in answers: g."""
        one = self.by_attribute[attribute]
        people = np.maximum(np.maximum(self.size * np.abs(one.share), np.sqrt(one.error)), 1.0)
        return np.maximum(self.others(attribute), np.minimum(np.abs(values) / people, 1.0))

    def model_error(self) -> Floats:
        """Say how far clauses may hang together where regions do not tell: S."""
        pairs, triples = _symmetric(self._reach.values(), self.queries)
        told = (reach * (1 - self.by_attribute[at].inside) for at, reach in self._reach.items())
        told_pairs, told_triples = _symmetric(told, self.queries)
        untold = PAIR**2 * (pairs - told_pairs) + TRIPLE**2 * (triples - told_triples)
        return np.asarray(self.size * self._together * np.sqrt(np.maximum(untold, 0.0)))

    def most(self) -> Floats:
        """Bound answers to several clauses by the smallest that one alone allows."""
        bounds = [
            np.where(
                one.restricting,
                self.size * one.share + half_widths(LEVEL, np.sqrt(one.error + ROUNDING), one.untold),
                np.inf,
            )
            for one in self.by_attribute.values()
        ]
        return np.where(self.several, np.min([np.full(self.queries, np.inf), *bounds], axis=0), np.inf)


def _symmetric(each: Iterable[Floats], queries: int) -> tuple[Floats, Floats]:
    """Sum the products of all pairs and of all triples.

    >>> [one.tolist() for one in _symmetric([np.array([1.0]), np.array([2.0]), np.array([3.0])], 1)]
    [[11.0], [6.0]]
    """
    singles, pairs, triples = (np.zeros(queries) for _ in range(3))
    for one in each:
        triples, pairs, singles = triples + one * pairs, pairs + one * singles, singles + one
    return pairs, triples


def half_widths(level: float, noise: Floats, model: Floats) -> Floats:
    """Find how far from an answer the truth lies with a probability, at most: noise is V's root, model is S.

    >>> half_widths(0.95, np.array([10.0, 0.0]), np.array([0.0, 10.0])).round(1).tolist()
    [19.6, 43.1]
    """
    widths = _quantiles(level)
    scale = np.maximum(noise, model * 1e-2)
    ratio = model / np.where(scale > 0, scale, 1.0)
    return np.asarray(scale * np.interp(ratio, RATIOS, widths))


@lru_cache(maxsize=64)
def _quantiles(level: float) -> Floats:
    """Work out the half-widths of Z + r t_2 for all ratios r, by halving.

    With u uniform, (2 u - 1) / sqrt(2 u (1 - u)) has the t distribution with two degrees of freedom. The points u =
    (1 - cos(pi x)) / 2, x in even steps, are dense where its tails are; each stands for sin(pi x) pi / 2 of a step.
    """
    x = (np.arange(STEPS) + 0.5) / STEPS
    u, weights = (1 - np.cos(np.pi * x)) / 2, np.sin(np.pi * x) * np.pi / 2 / STEPS
    draws = (2 * u - 1) / np.sqrt(2 * u * (1 - u))
    low, high = np.zeros(len(RATIOS)), 60.0 * (1 + RATIOS)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        inside = (_normal(middle[:, None] - RATIOS[:, None] * draws) * 2 - 1) @ weights
        low, high = np.where(inside < level, middle, low), np.where(inside < level, high, middle)
    high[0] = NormalDist().inv_cdf((1 + level) / 2)
    return np.asarray(np.maximum(high, high[0]))


def _normal(x: Floats) -> Floats:
    """The distribution function of the standard normal, to seven digits (Abramowitz and Stegun, 7.1.26)."""
    z = np.abs(x) / np.sqrt(2)
    t = 1 / (1 + 0.3275911 * z)
    terms = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
    tail = sum(term * t ** (power + 1) for power, term in enumerate(terms)) * np.exp(-(z**2))
    return np.asarray(np.where(x >= 0, 1 - tail / 2, tail / 2))
