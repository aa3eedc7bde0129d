"""The protocols of the papers, by name: which rows a learner sees, and which it is tested on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

import numpy as np

from sfumato.errors import TableError
from sfumato.partition import Indices

Protocol = Literal["2/3", "4/5", "80/20", "10-fold"]
Split = tuple[Indices, Indices]
"""The rows to learn from and the rows to be tested on, both in increasing order."""


def held_out(parts: int, learnt: int, rows: int, seed: int) -> list[Split]:
    """Learn from so many of the parts of a random order of rows, and test on the others.

    >>> [(train, test)] = held_out(3, 2, 9, seed=0)
    >>> len(train), sorted([*train.tolist(), *test.tolist()])
    (6, [0, 1, 2, 3, 4, 5, 6, 7, 8])
    """
    order = np.random.default_rng(seed).permutation(rows)
    cut = learnt * rows // parts
    return [(np.sort(order[:cut]), np.sort(order[cut:]))]


def cross_validated(folds: int, rows: int, seed: int) -> list[Split]:
    """Cut a random order of rows into folds of almost equal size; test on each, and learn from all others."""
    parts = np.array_split(np.random.default_rng(seed).permutation(rows), folds)
    return [
        (np.sort(np.concatenate([*parts[:fold], *parts[fold + 1 :]])), np.sort(part)) for fold, part in enumerate(parts)
    ]


PROTOCOLS: dict[Protocol, Callable[[int, int], list[Split]]] = {
    "2/3": partial(held_out, 3, 2),
    "4/5": partial(held_out, 5, 4),
    "80/20": partial(held_out, 100, 80),
    "10-fold": partial(cross_validated, 10),
}
FEWEST_ROWS: dict[Protocol, int] = {"2/3": 2, "4/5": 2, "80/20": 2, "10-fold": 10}


def splits(protocol: Protocol, rows: int, seed: int = 0) -> list[Split]:
    """Split a number of rows by a protocol; 4/5 and 80/20 are two papers' names for one thing."""
    if protocol not in PROTOCOLS:
        raise TableError(f"protocol ({protocol}) must be one of {', '.join(get_args(Protocol))}", "Choose one of them.")
    if rows < FEWEST_ROWS[protocol]:
        raise TableError(
            f"a table must have {FEWEST_ROWS[protocol]} rows or more to be split by {protocol}",
            "Give more rows, or a test set where one can be given.",
        )
    return PROTOCOLS[protocol](rows, seed)
