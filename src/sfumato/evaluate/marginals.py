"""One-, two- and three-way marginals: how far drawn records are from the table in all of them, on average and at worst.

Where a table has more marginals of one size than are measured, a seeded selection stands for them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.attributes import Identifier
from sfumato.evaluate.fidelity import (
    Codes,
    city_block,
    hellinger_distance,
    joint_counts,
    kullback_leibler,
    total_variation,
)
from sfumato.schema import Schema

WAYS = (1, 2, 3)
MOST_MARGINALS = 200
"""So many marginals of one size are measured at most."""


@dataclass(frozen=True)
class MarginalDistance:
    """One distance over the marginals of one size."""

    ways: int
    distance: str
    mean: float
    worst: float
    worst_of: tuple[str, ...]
    """the attributes of the marginal that is farthest"""
    measured: int
    """how many marginals were measured"""
    of: int
    """how many there are"""


def chosen_marginals(names: Sequence[str], ways: int, most: int, seed: int) -> list[tuple[str, ...]]:
    """Give all sets of so many names, or `most` of them drawn by lot, each set at most once.

    >>> chosen_marginals("abc", 2, 9, seed=0)
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    if math.comb(len(names), ways) <= most:
        return list(itertools.combinations(names, ways))
    rng, chosen = np.random.default_rng(seed), set[tuple[int, ...]]()
    while len(chosen) < most:
        chosen.add(tuple(sorted(rng.choice(len(names), ways, replace=False).tolist())))
    return [tuple(names[one] for one in each) for each in sorted(chosen)]


def distances(schema: Schema, table: Codes, drawn: Codes, names: Sequence[str]) -> dict[str, float]:
    """Give every distance of one marginal."""
    leaves = {name: column.leaves for name, column in schema.attributes.items() if not isinstance(column, Identifier)}
    mine, theirs = joint_counts(table, drawn, names)
    return {
        "Hellinger": hellinger_distance(mine, theirs),
        "Kullback-Leibler": kullback_leibler(mine, theirs, math.prod(leaves[name] for name in names)),
        "city-block": city_block(mine, theirs),
        "total variation": total_variation(mine, theirs),
    }


def marginal_distances(schema: Schema, table: Codes, drawn: Codes, seed: int = 0) -> list[MarginalDistance]:
    """Measure every size of marginals that the table has; the class is an attribute like the others."""
    names = [name for name, column in schema.attributes.items() if not isinstance(column, Identifier)]
    found = []
    for ways in WAYS[: len(names)]:
        marginals = chosen_marginals(names, ways, MOST_MARGINALS, seed)
        measured = [distances(schema, table, drawn, each) for each in marginals]
        for distance in measured[0]:
            far = np.array([one[distance] for one in measured])
            found.append(
                MarginalDistance(
                    *(ways, distance, float(far.mean()), float(far.max()), marginals[int(far.argmax())]),
                    *(len(marginals), math.comb(len(names), ways)),
                )
            )
    return found
