"""What a release leaves an adversary, from the release alone: what everyone who has it can compute.

In groups of exact counts it is the chance to find a person, with an epsilon the odds that it allows, and with capped
confidence what could be claimed about a person, beside what public knowledge alone tells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction

import numpy as np

from sfumato.arrays import Booleans, Codes, Integers
from sfumato.errors import QueryError, ReleaseError
from sfumato.geometry.regions import Regions
from sfumato.release.promises import Claims, ConfidenceCap
from sfumato.release.release import Release
from sfumato.schema.conditions import read_condition

SIZES = (1, 2, 5, 10, 20, 50, 100, 1000)
"""Where each class of group sizes begins."""
PRIORS = (0.01, 0.1, 0.5, 0.9)
"""What someone may have believed before the release, as probabilities."""


@dataclass(frozen=True)
class GroupRisk:
    """How well a person hides in the groups of a release with exact counts."""

    sizes: Integers
    """the records of every group that holds someone"""
    in_population: Integers | None
    """by group, the people of the population from which the records come that look the same, if it is known"""
    worst_confidence: float | None
    """the largest share that one class has of a group, times the chance of being drawn; None without a class"""
    certain: int
    """how many records lie in groups that have one class only"""
    sampling: float = 1.0
    """the probability that a person of the table was drawn to be published"""

    @property
    def prosecutor(self) -> float:
        """The chance to find a person who is known to be in the table: that of being drawn / the smallest group."""
        return self.sampling / int(self.sizes.min())

    @property
    def journalist(self) -> float:
        """The chance to find someone of the population, in the table or not: 1 / the fewest people who look the same.

        Without a population the records are all that is known of it, and the journalist is as well off as the
        prosecutor.
        """
        return self.prosecutor if self.in_population is None else 1 / int(self.in_population.min())

    @property
    def marketer(self) -> float:
        """The share of records that guesses find on average: the mean over records of 1 / group size."""
        return len(self.sizes) / int(self.sizes.sum())

    @property
    def distribution(self) -> list[tuple[str, int, int]]:
        """Groups and records by classes of group sizes."""
        which = np.searchsorted(SIZES, self.sizes, side="right") - 1
        groups, records = np.bincount(which), np.bincount(which, self.sizes)
        ends = [*(f"to {above - 1}" for above in SIZES[1:]), "and more"]
        return [
            (f"{SIZES[at]} {ends[at]}", int(groups[at]), int(records[at])) for at in range(len(groups)) if groups[at]
        ]


def group_risk(release: Release, population: Mapping[str, Codes] | int | None = None) -> GroupRisk:
    """Work out the risks of a release with exact counts.

    A population is a table of coded rows, whose people are counted in each group, or their number alone: then a group
    is taken to be as frequent among them as among the records.
    """
    if release.manifest.promise is None:
        raise ReleaseError("the release must have exact counts", "An epsilon has no groups to hide in.")
    counts = release.draft.final.counts
    held = np.flatnonzero(counts.any(axis=1))
    sizes = counts[held].sum(axis=1)
    largest = counts[held].max(axis=1)
    classes, sampling = release.schema.target is not None, float(release.manifest.sampling)
    return GroupRisk(
        sizes,
        _in_population(release, held, sizes, population),
        sampling * float((largest / sizes).max()) if classes else None,
        int(sizes[largest == sizes].sum()) if classes else 0,
        sampling,
    )


def _in_population(
    release: Release, held: Integers, sizes: Integers, population: Mapping[str, Codes] | int | None
) -> Integers | None:
    """Count the people of a population in each group that holds someone."""
    if population is None:
        return None
    if isinstance(population, int):
        people = np.asarray(sizes * population // sizes.sum())
    else:
        structure = release.draft.structure
        regions = structure.regions_of([population[name] for name in release.schema.predictors])
        people = np.asarray(np.bincount(regions, minlength=structure.regions)[held])
    if (people < sizes).any():
        raise ReleaseError(
            "the population must hold the people of the release", "Give a larger one, or the one that they come from."
        )
    return people


@dataclass(frozen=True)
class Odds:
    """By how much a release with an epsilon may multiply anyone's odds."""

    presence: float
    """the factor of the odds that a person is in the table"""
    value: float
    """the factor of the odds that a person in it has one value and not another: one record out, another in"""

    @property
    def beliefs(self) -> list[tuple[float, float, float]]:
        """What was believed before, and what may at most be believed after: of presence, and of a value."""
        return [(prior, believed_after(prior, self.presence), believed_after(prior, self.value)) for prior in PRIORS]


def odds_of(release: Release) -> Odds:
    """What the epsilon of a release means: a factor of exp(epsilon) for each record that differs.

    One that was made with a known seed has none: whoever knows the seed takes the noise off.
    """
    if not release.manifest.secure:
        raise ReleaseError(
            "a release must have secure randomness to bound any odds, and this one was made with a known seed",
            "It carries NO GUARANTEE: publish the table without a seed.",
        )
    epsilon = release.manifest.epsilon
    assert isinstance(epsilon, Fraction)
    return Odds(math.exp(float(epsilon)), math.exp(2 * float(epsilon)))


def believed_after(prior: float, factor: float) -> float:
    """The most that one can believe after a release that multiplies odds by a factor at most.

    >>> round(believed_after(0.5, math.exp(1)), 3)
    0.731
    """
    return factor * prior / (factor * prior + 1 - prior)


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
    """The strongest claim about a sensitive value by any group in which a person could be, and what else is known."""

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


def claims_about(release: Release, record: str) -> PersonClaims:
    """What could be claimed about a person, told as `age=34,sex=Male`; what is not told may be anything."""
    promise, boxes, claims = capped_claims(release)
    known = _leaves(release, record, promise)
    possible = touching(boxes, known)
    counts = np.where(possible[:, None], release.draft.final.counts, 0)
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
    """The claim that comes nearest to its cap."""
    _, boxes, claims = capped_claims(release)
    return _claim(release, boxes, claims, int(np.argmin(claims.expected - claims.observed)))


def capped_claims(release: Release) -> tuple[ConfidenceCap, Regions, Claims]:
    """Both confidences of everything that is published; refuse a release that does not cap confidence."""
    promise, boxes = release.manifest.promise, release.draft.structure
    if not isinstance(promise, ConfidenceCap):
        raise ReleaseError(
            "the release must cap confidence, and promises something else", "See sfumato risk for other releases."
        )
    return promise, boxes, promise.claims(boxes, release.draft.final.counts)


def touching(boxes: Regions, leaves: Mapping[int, Booleans]) -> Booleans:
    """Which boxes hold, for each of some attributes, one of the named leaves."""
    found = np.ones(boxes.regions, np.bool_)
    for attribute, named in leaves.items():
        before = np.concatenate(([0], np.cumsum(named)))
        found &= before[boxes.ranges[:, attribute, 1]] > before[boxes.ranges[:, attribute, 0]]
    return found


def _claim(release: Release, boxes: Regions, claims: Claims, at: int) -> Claim:
    """The claim at a place of all claims, in words."""
    value, group = release.schema.classes[claims.values[at]], _label(release, boxes, int(claims.groups[at]))
    return Claim(value, group, float(claims.observed[at]), float(claims.expected[at]))


def _leaves(release: Release, record: str, promise: ConfidenceCap) -> Mapping[int, Booleans]:
    """Read what is known of a person: the possible leaves of each quasi-identifier."""
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


def _label(release: Release, boxes: Regions, group: int) -> str:
    """Write a group as people read it."""
    columns = release.schema.predictors.items()
    return ", ".join(
        f"{name} {column.label(*map(int, boxes.ranges[group, at]))}" for at, (name, column) in enumerate(columns)
    )
