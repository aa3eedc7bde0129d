"""What every point of a domain pays, worked out apart from the meter's own bookkeeping.

A point is a record without its class. Where it lies is looked up in boxes, which no engine uses to count, and what a
round costs it is read off the mechanism: the rate of its noise, or the stakes of its choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from replay import Call
from sfumato.geometry.tree import Tree
from sfumato.privacy.budget import GRAIN, Debit
from sfumato.privacy.families import FAMILY_SCORES
from sfumato.privacy.meter import Charges
from sfumato.privacy.scores import SCORES
from sfumato.privacy.tally import Tally

NOWHERE = -1


def points_of(shape: Sequence[int]) -> np.ndarray:
    """Give every point of a domain: points x attributes."""
    return np.array(list(np.ndindex(*shape)), np.int64)


def boxes_of(tally: Tally) -> np.ndarray:
    """Give the boxes of a tally's places."""
    partition = tally.partition
    if isinstance(partition, Tree):
        return partition.boxes[tally.ends_asked]
    return partition.boxes(0, partition.regions)


def places_of(boxes: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Give the box that holds each point, or NOWHERE."""
    inside = ((boxes[:, None, :, 0] <= points) & (points < boxes[:, None, :, 1])).all(axis=2)
    assert (inside.sum(axis=0) <= 1).all(), "a point lies in two places"
    return np.where(inside.any(axis=0), inside.argmax(axis=0), NOWHERE)


def used(debit: Debit, call: Call) -> list[Fraction]:
    """Give the epsilon that a mechanism uses in each of its places, or groups."""
    if call.kind == "noise":
        return [call.rates[index] for index in call.shape[1]]
    score = {**SCORES, **FAMILY_SCORES}[debit.mechanism.split("(")[1].split(")")[0]]
    sided = 1 if score.monotone and call.kind == "permute-and-flip" else 2
    return [call.rates[0] * stake * sided * debit.sensitivity / score.unit for stake in call.shape[1]]


def paid_by_points(tally: Tally, asked: np.ndarray, amounts: Sequence[Fraction], points: np.ndarray) -> list[Fraction]:
    """Give what a round costs each point, if the places asked pay these amounts; on a grid everyone is asked."""
    if not isinstance(tally.partition, Tree):
        return [max(amounts)] * len(points)
    by_place = dict(zip(asked.tolist(), amounts, strict=True))
    return [by_place.get(place, Fraction(0)) for place in places_of(boxes_of(tally), points).tolist()]


def charged(charges: Charges, points: np.ndarray) -> list[Fraction]:
    """Give what the meter holds that each point has paid."""
    if charges.tree is None or charges.grains is None:
        return [charges.common] * len(points)
    ends = charges.tree.ends
    nodes = ends[places_of(charges.tree.boxes[ends], points)]
    return [charges.common + int(grains) * GRAIN for grains in charges.grains[nodes]]
