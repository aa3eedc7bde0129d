"""What an adversary could claim about a person from a release with capped confidence, and from public knowledge alone.

For the person to whom it may matter, and for the holder who has to answer for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.boxes import Boxes
from sfumato.conditions import read_condition
from sfumato.confidence_cap import Claims, ConfidenceCap
from sfumato.errors import QueryError, ReleaseError
from sfumato.release.release import Release


@dataclass(frozen=True)
class Claim:
    """How confident a group lets someone be that one of its people has a sensitive value, and the cap of that."""

    value: str
    group: str
    observed: float
    """sampling rate x share of the value in the group"""
    expected: float
    """the probability that a record of that group and value occurs among as many from public knowledge"""


@dataclass(frozen=True)
class PersonClaim(Claim):
    """The strongest claim that any group in which a person could be makes about a sensitive value, and others."""

    together: float
    """sampling rate x share of the value in all groups in which the person could be"""
    public: float
    """the probability of the value from public knowledge about the person, without the release"""


@dataclass(frozen=True)
class PersonClaims:
    """All claims about a person, and in how many groups with how many records the person could be."""

    groups: int
    records: int
    claims: tuple[PersonClaim, ...]


def capped_claims(release: Release) -> tuple[ConfidenceCap, Boxes, Claims]:
    """Give both confidences of everything that is published, or refuse a release that caps none."""
    promise, boxes = release.manifest.promise, release.partition
    if not isinstance(promise, ConfidenceCap) or not isinstance(boxes, Boxes):
        raise ReleaseError(
            "the release must cap confidence, and promises something else", "See sfumato risk for other releases."
        )
    return promise, boxes, promise.claims(boxes, release.counts.counts)


def claims_about(release: Release, record: str) -> PersonClaims:
    """Work out what could be claimed about a person, told as `age=34,sex=Male`; what is not told may be anything."""
    promise, boxes, claims = capped_claims(release)
    known = _leaves(release, record, promise)
    possible = boxes.touching(known)
    counts = np.where(possible[:, None], release.counts.counts, 0)
    total = int(counts.sum())
    assert promise.knowledge is not None
    public = promise.knowledge.about(known)
    found = []
    for value, name in enumerate(release.schema.classes):
        own = np.flatnonzero(possible[claims.groups] & (claims.values == value))
        claim = Claim(name, "", 0.0, 0.0)
        if len(own):
            claim = _claim(release, boxes, claims, int(own[np.argmax(claims.observed[own])]))
        together = float(promise.sampling) * float(counts[:, value].sum()) / max(total, 1)
        found.append(PersonClaim(**asdict(claim), together=together, public=float(public[value])))
    found.sort(key=lambda claim: -claim.observed)
    return PersonClaims(int((counts.sum(axis=1) > 0).sum()), total, tuple(found))


def nearest_claim(release: Release) -> Claim:
    """Give the claim that comes nearest to its cap."""
    _, boxes, claims = capped_claims(release)
    return _claim(release, boxes, claims, int(np.argmin(claims.expected - claims.observed)))


def _claim(release: Release, boxes: Boxes, claims: Claims, at: int) -> Claim:
    value, group = release.schema.classes[claims.values[at]], _label(release, boxes, int(claims.groups[at]))
    return Claim(value, group, float(claims.observed[at]), float(claims.expected[at]))


def _leaves(release: Release, record: str, promise: ConfidenceCap) -> Mapping[int, NDArray[np.bool_]]:
    """Read what is known of a person: the leaves of each quasi-identifier that are possible."""
    told = [part.partition("=") for part in record.split(",") if part.strip()]
    if not all(sign and not ("=" in value and " and " in value) for _, sign, value in told):
        raise QueryError(
            f"record ({record[:60]}) must be names and values, separated by commas",
            "Write for example age=34,sex=Male.",
        )
    quoted = [(name.strip(), value.strip().replace("'", "''")) for name, _, value in told]
    if promise.sensitive in dict(quoted):
        raise QueryError(f"the record must not tell {promise.sensitive}, which is what is asked", "Leave it out.")
    weights = read_condition(release.schema, " and ".join(f"\"{name}\" = '{value}'" for name, value in quoted))
    names = list(release.schema.predictors)
    for name, leaves in weights.items():
        if not leaves.any():
            raise QueryError(f"{name} of the record must lie within the declared range", "See sfumato inspect.")
    return {names.index(name): leaves > 0 for name, leaves in weights.items()}


def _label(release: Release, boxes: Boxes, group: int) -> str:
    """Write a group as people read it."""
    columns = release.schema.predictors.items()
    return ", ".join(
        f"{name} {column.label(*map(int, boxes.ranges[group, at]))}" for at, (name, column) in enumerate(columns)
    )
