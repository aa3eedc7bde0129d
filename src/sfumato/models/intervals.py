"""How far an answer may be from the truth: noise of what was measured, and what the model had to assume.

For a conjunction of clauses a, with p_a the model's one-way share of clause a and N the size of the table, the error of
the answer has these parts, added up as variances:

* *margins*: clause a's margin errs by e_a (a variance); in the answer that counts as the other clauses' shares say,
  g_a = the product of their p, or answer / (N p_a) if that is more (who satisfies a may satisfy the others more often);
* *regions*: what is left of the noise of their counts after shrinking, of the departures that the answer rests on;
* *model*: inside regions attributes are taken for independent. Two clauses may hang together there by
  sigma N (p_a q_a p_b q_b)^(GAMMA / 2), q = 1 - p, times the other clauses' p; of that the share 1 - (1 - u_a)(1 - u_b)
  is not told by the regions, u_a being the share of clause a's variance that lies inside regions: 0 where regions
  resolve it, 1 where they do not tell it apart at all. Three clauses may hang together beyond that, by as much times
  (p_c q_c)^(GAMMA / 2).

How strongly attributes hang together differs from pair to pair: most hardly, some are functions of each other. So the
model's error is not normal but has the tails of Student's t with two degrees of freedom. The error is taken for
Normal(0, V) + S t_2, V being the first two parts and S^2 the third.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sfumato.arrays import Floats

SIGMA = 0.1
"""How strongly two attributes hang together inside regions, typically; from the tables in docs/answers.md."""
STEPS = 1001
"""Quantiles are worked out with so many points of the t distribution,"""
RATIOS = np.concatenate([[0.0], 10.0 ** np.arange(-2.0, 3.01, 0.1)])
"""for these ratios of model to noise; between them they are interpolated."""
HALVINGS = 50
ROUNDING = 0.25
"""Counts are whole numbers: even where nothing errs, an answer may be off by rounding."""


def half_widths(level: float, noise: Floats, model: Floats) -> Floats:
    """Find how far from an answer the truth lies with a probability, at most: noise is V's root, model is S.

    >>> half_widths(0.95, np.array([10.0, 0.0]), np.array([0.0, 10.0])).round(1).tolist()
    [19.6, 43.0]
    """
    widths = _quantiles(level)
    scale = np.maximum(noise, model * 1e-3)
    ratio = model / np.where(scale > 0, scale, 1.0)
    return np.asarray(scale * np.interp(ratio, RATIOS, widths))


@lru_cache(maxsize=64)
def _quantiles(level: float) -> Floats:
    """Work out the half-widths of Z + r t_2 for all ratios r, by halving.

    With u uniform, (2 u - 1) / sqrt(2 u (1 - u)) has the t distribution with two degrees of freedom.
    """
    u = (np.arange(STEPS) + 0.5) / STEPS
    draws = (2 * u - 1) / np.sqrt(2 * u * (1 - u))
    low, high = np.zeros(len(RATIOS)), 60.0 * (1 + RATIOS)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        inside = (_normal(middle[:, None] - RATIOS[:, None] * draws) * 2 - 1).mean(axis=1)
        low, high = np.where(inside < level, middle, low), np.where(inside < level, high, middle)
    return high


def _normal(x: Floats) -> Floats:
    """The distribution function of the standard normal, to seven digits (Abramowitz and Stegun, 7.1.26)."""
    z = np.abs(x) / np.sqrt(2)
    t = 1 / (1 + 0.3275911 * z)
    terms = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
    tail = sum(term * t ** (power + 1) for power, term in enumerate(terms)) * np.exp(-(z**2))
    return np.asarray(np.where(x >= 0, 1 - tail / 2, tail / 2))
