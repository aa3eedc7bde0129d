"""What a release without epsilon promises, as a value: said in words, written to manifests, and checked on the counts.

Public, because all sides speak of it: a method names its promise, the account holds the finished groups to it, and the
manifest states it.

What everybody knows of the people in a table: how probable a generalized record is in the population.

Attributes are independent, each with the probabilities of its leaves, but for rules: among people of a condition, some
sensitive values have probabilities of their own. The other values share what is left there in proportion to their own
probabilities, and outside all conditions every value has what its overall probability leaves, so that all of it is one
distribution. With conditions c of probability P(c), and P(s | c) as the rules say,

    P(s | no condition) = (P(s) - sum of P(c) P(s | c)) / (1 - sum of P(c)),
    P(box, s) = P(box) P(s | no condition) + sum of P(box and c) (P(s | c) - P(s | no condition)).

The promise of the confidence-capped framework (Sattar, Li, Ding, Liu, Vincent): nobody can claim more about a person
from a record than one would expect of the record to be there by chance.

The **observed confidence** of a record is the sampling rate times the share of its sensitive value in its group. Its
**expected confidence** is the probability that such a record occurs among n drawn from public knowledge, 1 - (1 - P)^n,
where n is the number of published records. The first never exceeds the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, Self, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.errors import MethodError
from sfumato.exact import read_fraction, read_whole
from sfumato.geometry.regions import Regions

NOT_DIFFERENTIAL = "It is NOT differentially private: its counts are exact, and no epsilon bounds what they tell."


class Promise(Protocol):
    """What is said of the groups of a release, by class, and can be checked on them."""

    model: ClassVar[str]

    @property
    def quasi(self) -> tuple[str, ...]:
        """The attributes that an adversary may know: all that are published but one."""

    @property
    def sensitive(self) -> str | None:
        """The attribute that is published as it is, if there is one."""

    @property
    def sampling(self) -> Fraction:
        """The probability with which each record of the table was drawn to be published; 1 if all were."""

    @property
    def guarantee(self) -> str:
        """The promise in a sentence or two."""

    @property
    def adversary(self) -> str:
        """Whom it holds against, and whom it does not."""

    @property
    def headline(self) -> str:
        """The promise in a few letters."""

    @property
    def terms(self) -> Sequence[tuple[str, str]]:
        """Its numbers, and what they mean."""

    @property
    def knowledge(self) -> Knowledge | None:
        """The statistics that it takes for known."""

    def plain(self) -> dict[str, Any]:
        """Give it as plain values."""

    def refuse_table(self, counts: NDArray[np.int64]) -> None:
        """Refuse a table, all of it as one group of so many records by class, that no generalization can save."""

    def kept(self, regions: Regions, counts: NDArray[np.int64]) -> bool:
        """Tell whether it holds of all groups: the regions, and their counts by class."""

    def kept_by_records(self, sizes: NDArray[np.int64], values: NDArray[np.int64]) -> bool:
        """Tell whether it holds of records that show the same values of the quasi-identifiers: how many there are in
        each group, and how many different sensitive values they have.
        """


@dataclass(frozen=True)
class KAnonymity:
    """Every group has at least k records and, if asked for, l different sensitive values (distinct l-diversity).

    >>> KAnonymity(3, ("age", "sex")).guarantee.split(":")[0]
    'This release is 3-anonymous over age, sex'
    """

    model: ClassVar[str] = "k-anonymity"

    k: int
    quasi: tuple[str, ...]
    """the quasi-identifiers: what an adversary may know of a person"""
    sensitive: str | None = None
    """the attribute that is published as it is"""
    diversity: int = 1

    @property
    def guarantee(self) -> str:
        """Say k and over what, l and of what."""
        diverse = f" and at least {self.diversity} different values of {self.sensitive}" if self.diversity > 1 else ""
        return (
            f"This release is {self.k}-anonymous over {', '.join(self.quasi)}: records that share their generalized "
            f"values of these are groups of at least {self.k}{diverse}. {NOT_DIFFERENTIAL}"
        )

    @property
    def adversary(self) -> str:
        """Say what must not be known."""
        alike = "agrees on it" if self.diversity < 2 else "mostly agrees on it"
        open_end = "" if self.sensitive is None else f", nor hide {self.sensitive} where a group {alike}"
        return (
            f"Someone who knows a person's {', '.join(self.quasi)} and nothing else cannot tell which of at least "
            f"{self.k} records is theirs. It does not hold against someone who knows more, such as other members of a "
            "group or another release of the table, or who reasons about how groups were chosen: their borders follow "
            f"the records, so that someone may have the value next to one{open_end}."
        )

    @property
    def headline(self) -> str:
        """Say k, and l."""
        return f"k = {self.k:,}" + (f", l = {self.diversity}" if self.diversity > 1 else "")

    @property
    def terms(self) -> Sequence[tuple[str, str]]:
        """Say k, over what, and l."""
        terms = [("k, records in the smallest group", f"{self.k:,}"), ("quasi-identifiers", ", ".join(self.quasi))]
        diverse = [(f"l, different values of {self.sensitive}", f"{self.diversity:,}")]
        return terms + (diverse if self.diversity > 1 else [])

    @property
    def knowledge(self) -> Knowledge | None:
        """None: it speaks of groups alone."""
        return None

    def holds(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell of which groups it holds; classes are the last axis.

        >>> KAnonymity(3, ("age",), "income", 2).holds(np.array([[3, 0], [2, 1], [1, 1], [0, 0]])).tolist()
        [False, True, False, False]
        """
        large = counts.sum(axis=-1) >= self.k
        return np.asarray(large & ((counts > 0).sum(axis=-1) >= self.diversity) if self.diversity > 1 else large)

    def refuse_table(self, counts: NDArray[np.int64]) -> None:
        """Refuse fewer than k records, or fewer than l sensitive values."""
        if counts.sum() < self.k:
            raise MethodError(
                f"k ({self.k:,}) must be at most the number of the table's rows", "Use a smaller k, or a larger table."
            )
        if not self.holds(counts):
            raise MethodError(
                f"diversity ({self.diversity}) must be at most the number of values of {self.sensitive} in the table",
                "Use a smaller diversity, or another sensitive attribute.",
            )

    @property
    def sampling(self) -> Fraction:
        """All records."""
        return Fraction(1)

    def kept(self, regions: Regions, counts: NDArray[np.int64]) -> bool:
        """Tell whether it holds of every group; where nobody is, there is nothing to protect."""
        if not regions.disjoint or counts.ndim != 2 or len(counts) != regions.regions:
            return False
        return bool((counts >= 0).all() and (self.holds(counts) | (counts.sum(axis=-1) == 0)).all())

    def kept_by_records(self, sizes: Integers, values: Integers) -> bool:
        """Tell whether every group of equal records has k of them, and l sensitive values."""
        large = bool((sizes >= self.k).all())
        return large and (self.sensitive is None or bool((values >= self.diversity).all()))

    def plain(self) -> dict[str, Any]:
        """Give it as plain values; without a diversity none is mentioned."""
        plain: dict[str, Any] = {"model": self.model, "k": self.k, "quasi": list(self.quasi)}
        plain |= {"sensitive": self.sensitive} if self.sensitive is not None else {}
        return plain | ({"diversity": self.diversity} if self.diversity > 1 else {})

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Read it back, refusing what is none."""
        k, diversity = read_whole(plain["k"]), read_whole(plain.get("diversity", 1))
        sensitive, quasi = plain.get("sensitive"), tuple(plain["quasi"])
        named = all(isinstance(name, str) for name in quasi) and isinstance(sensitive, str | None)
        if k is None or diversity is None or not 1 <= diversity <= k or k < 2 or not named:
            raise ValueError("a promise must have a k of 2 or more, a diversity of at most k and names of attributes")
        return cls(k, quasi, sensitive, diversity)


Source = Literal["public", "the table itself"]

SLACK = 1e-9
"""Probabilities that differ by less are the same."""
MOST_RULES = 4096
"""More rules than this are none that anyone could have checked,"""
MOST_RULED = 2**25
"""and so many numbers of rules and leaves are held."""
MOST_AT_ONCE = 2**22
"""So many numbers of records and rules are held at a time."""


@dataclass(frozen=True)
class Rule:
    """Among people whose leaves lie in these ranges, by attribute, some sensitive values have these probabilities."""

    where: Mapping[int, tuple[tuple[int, int], ...]]
    chances: Mapping[int, float]
    """by the sensitive value's code"""

    def fits(self, shape: tuple[int, ...], values: int) -> bool:
        """Tell whether it speaks of leaves and sensitive values that there are."""
        known = all(
            0 <= at < len(shape) and all(0 <= lo < hi <= shape[at] for lo, hi in ranges)
            for at, ranges in self.where.items()
        )
        return known and all(0 <= value < values for value in self.chances)

    def leaves(self, attribute: int, count: int) -> NDArray[np.bool_]:
        """Tell which of an attribute's leaves the condition allows."""
        allowed = np.full(count, attribute not in self.where)
        for lo, hi in self.where.get(attribute, ()):
            allowed[lo:hi] = True
        return allowed


@dataclass(frozen=True, eq=False)
class Knowledge:
    """The probabilities of the leaves of each quasi-identifier and of the sensitive values, and rules between them."""

    marginals: tuple[Floats, ...]
    sensitive: Floats
    rules: tuple[Rule, ...] = ()
    source: Source = "public"

    def __post_init__(self) -> None:
        """Refuse what is no distribution."""
        for probabilities in (*self.marginals, self.sensitive):
            if probabilities.ndim != 1 or not (probabilities >= 0).all() or abs(probabilities.sum() - 1) > SLACK:
                raise ValueError("probabilities must be at least 0 and sum to one")
        if not all(rule.fits(self.shape, len(self.sensitive)) for rule in self.rules):
            raise ValueError("rules must be about the attributes that have probabilities")
        if len(self.rules) > MOST_RULES or len(self.rules) * sum(self.shape) > MOST_RULED:
            raise MethodError(
                f"there must be at most {MOST_RULES:,} rules, and {MOST_RULED:,} leaves in all of them together",
                "Give fewer rules, or coarser attributes.",
            )
        self._refuse_overlaps()
        self._refuse_contradictions()

    def _refuse_overlaps(self) -> None:
        meeting = np.triu(np.ones((len(self.rules), len(self.rules)), np.bool_), 1)
        for at in sorted({at for rule in self.rules for at in rule.where}):
            allowed = np.stack([self._allowed(rule, at) for rule in self.rules]).astype(np.float32)
            meeting &= allowed @ allowed.T > 0
        if meeting.any():
            raise MethodError(
                "the conditions of rules must not overlap, unless they are the same", "Make them narrower."
            )

    def _refuse_contradictions(self) -> None:
        if (self._given < -SLACK).any() or (np.abs(self._given.sum(axis=1) - 1) > SLACK).any():
            raise MethodError(
                "the probabilities of a rule's condition must sum to one at most, and to one if it names every value",
                "Correct the rules.",
            )
        if (self.sensitive - self._conditions @ self._given < -SLACK).any():
            raise MethodError(
                "rules must agree with the statistics, and give some value more people than there are",
                "Lower their probabilities, or correct the statistics.",
            )

    def _allowed(self, rule: Rule, attribute: int) -> NDArray[np.bool_]:
        return rule.leaves(attribute, len(self.marginals[attribute]))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of leaves of each quasi-identifier."""
        return tuple(map(len, self.marginals))

    @cached_property
    def _given(self) -> Floats:
        """The probabilities of the sensitive values under each rule's condition: rules x values."""
        table = np.tile(self.sensitive, (len(self.rules), 1))
        for row, rule in zip(table, self.rules, strict=True):
            own = list(rule.chances)
            others = row.sum() - row[own].sum()
            left = 1 - sum(rule.chances.values())
            row *= left / others if others > SLACK else 0.0
            row[own] = list(rule.chances.values())
        return table

    @cached_property
    def _conditions(self) -> Floats:
        """The probability of each rule's condition."""
        whole = [self.masses(at, np.array([[0, leaves]]))[0] for at, leaves in enumerate(self.shape)]
        return np.asarray(np.prod(whole, axis=0)[1:])

    @cached_property
    def _otherwise(self) -> Floats:
        """The probabilities of the sensitive values where no rule applies."""
        rest = 1 - self._conditions.sum()
        if rest <= SLACK:
            return self.sensitive
        return np.asarray((self.sensitive - self._conditions @ self._given) / rest)

    @cached_property
    def _contrasts(self) -> Floats:
        """What a box's mass, and its masses inside conditions, give each sensitive value: (1 + rules) x values."""
        return np.concatenate([self._otherwise[None], self._given - self._otherwise])

    @cached_property
    def _running(self) -> list[Floats]:
        """By attribute, running sums over its leaves: of all, and of those that each rule allows."""
        found = []
        for attribute, probabilities in enumerate(self.marginals):
            allowed = [probabilities, *(probabilities * self._allowed(rule, attribute) for rule in self.rules)]
            found.append(np.concatenate([np.zeros((1, len(allowed))), np.cumsum(np.stack(allowed, axis=1), axis=0)]))
        return found

    def masses(self, attribute: int, ranges: Integers) -> Floats:
        """Give the probability of ranges of one attribute, alone and together with each rule: ranges x (1 + rules)."""
        running = self._running[attribute]
        return np.asarray(np.maximum(running[ranges[:, 1]] - running[ranges[:, 0]], 0.0))

    def joined(self, masses: Sequence[Floats], values: Integers) -> Floats:
        """Give the probability of records from the masses of their ranges, by attribute, and their sensitive values."""
        product = np.ones((len(values), 1 + len(self.rules)))
        for mass in masses:
            product *= mass
        return np.asarray(np.clip((product * self._contrasts.T[values]).sum(axis=1), 0.0, 1.0))

    def probability(self, boxes: Integers, values: Integers) -> Floats:
        """Give the probability of generalized records: boxes x attributes x 2, and a sensitive value for each.

        >>> ages, sexes, diseases = np.array([0.15, 0.85]), np.array([0.5, 0.5]), np.array([0.05, 0.95])
        >>> female = np.array([[[0, 1], [0, 1]]])
        >>> Knowledge((ages, sexes), diseases).probability(female, np.array([0])).round(9).tolist()
        [0.00375]
        """
        most = MOST_AT_ONCE // (1 + len(self.rules))
        pieces = np.split(np.arange(len(boxes)), np.arange(most, len(boxes), most))
        return np.concatenate([self._probability(boxes[piece], values[piece]) for piece in pieces])

    def _probability(self, boxes: Integers, values: Integers) -> Floats:
        return self.joined([self.masses(at, boxes[:, at]) for at in range(len(self.marginals))], values)

    def about(self, leaves: Mapping[int, NDArray[np.bool_]]) -> Floats:
        """Give the probabilities of the sensitive values for someone whose leaves of some attributes are known."""
        product = np.ones(1 + len(self.rules))
        for attribute, probabilities in enumerate(self.marginals):
            own = probabilities * leaves.get(attribute, np.ones(len(probabilities)))
            product *= [own.sum(), *(own[self._allowed(rule, attribute)].sum() for rule in self.rules)]
        return np.asarray(product @ self._contrasts / product[0]) if product[0] else np.zeros(len(self.sensitive))

    def plain(self) -> dict[str, Any]:
        """Give it as plain values; attributes and sensitive values by number."""
        rules = [
            {
                "where": {str(at): [list(one) for one in ranges] for at, ranges in rule.where.items()},
                "chances": {str(value): chance for value, chance in rule.chances.items()},
            }
            for rule in self.rules
        ]
        plain = {"source": self.source, "marginals": [one.tolist() for one in self.marginals]}
        return plain | {"sensitive": self.sensitive.tolist()} | ({"rules": rules} if rules else {})

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Read it back, refusing what is none."""
        if plain["source"] not in get_args(Source):
            raise ValueError("statistics must be public, or those of the table")
        rules = tuple(
            Rule(
                {int(at): tuple((int(lo), int(hi)) for lo, hi in ranges) for at, ranges in rule["where"].items()},
                {int(value): float(chance) for value, chance in rule["chances"].items()},
            )
            for rule in plain.get("rules", ())
        )
        marginals = tuple(np.array(one, np.float64) for one in plain["marginals"])
        return cls(marginals, np.array(plain["sensitive"], np.float64), rules, plain["source"])


ROUNDING = 2e-12
"""On another machine logarithms may round otherwise; the method itself passes over half of it."""
LEAK = (
    "Public statistics were NOT given: what is expected was taken from the sampled records themselves, suppressed ones "
    "included. Their margins are published with it, rounded down to steps of at least 1 % and 20 records: a leak, and "
    "no public knowledge. Where fewer people are published than a step says, some were suppressed."
)


def expected_confidence(probability: Floats, records: int) -> Floats:
    """Give the probability that a record occurs at least once among so many.

    >>> expected_confidence(np.array([0.00375]), 100).round(3), expected_confidence(np.array([0.00375]), 1000).round(3)
    (array([0.313]), array([0.977]))
    """
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(records * np.log1p(-probability)))


@dataclass(frozen=True, eq=False)
class Claims:
    """What the published records let someone claim: of every group and sensitive value that occurs in it."""

    groups: Integers
    values: Integers
    observed: Floats
    expected: Floats


@dataclass(frozen=True, eq=False)
class ConfidenceCap:
    """No record's observed confidence exceeds its expected confidence."""

    model: ClassVar[str] = "confidence cap"

    quasi: tuple[str, ...]
    sensitive: str
    sampling: Fraction
    knowledge: Knowledge | None
    """None before the table was asked for its own statistics"""

    def __eq__(self, other: object) -> bool:
        """Compare what is said."""
        return isinstance(other, ConfidenceCap) and self.plain() == other.plain()

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash((self.quasi, self.sensitive, self.sampling))

    @property
    def _own(self) -> bool:
        return self.knowledge is None or self.knowledge.source != "public"

    @property
    def guarantee(self) -> str:
        """Say what is capped by what."""
        return (
            f"This release caps confidence in {self.sensitive}: of no record does the observed confidence (sampling "
            f"rate {self.sampling} times the share of its value in its group) exceed the expected confidence, "
            "the probability that such a record occurs among as many drawn from public statistics. "
            f"{LEAK + ' ' if self._own else ''}{NOT_DIFFERENTIAL}"
        )

    @property
    def adversary(self) -> str:
        """Say what must not be known, and what is not said."""
        return (
            f"Someone who knows a person's {', '.join(self.quasi)}, that the person is in the table, the statistics "
            "and the group in which the person's record would lie. It does not hold against someone who knows who was "
            "sampled, other members of a group or another release of the table, or who weighs several groups together. "
            "Expected is that such a record is there at all, which in a large table is nearly certain: then a group "
            f"may agree on {self.sensitive}, up to the sampling rate."
        )

    @property
    def headline(self) -> str:
        """Say what it is."""
        return "capped confidence"

    @property
    def terms(self) -> Sequence[tuple[str, str]]:
        """Say nothing more: the statistics are told apart."""
        return ()

    def claims(self, regions: Regions, counts: Integers) -> Claims:
        """Work out both confidences from the groups and their counts by sensitive value."""
        if self.knowledge is None:
            raise ValueError("the statistics must be known")
        groups, values = np.nonzero(counts)
        observed = float(self.sampling) * counts[groups, values] / counts.sum(axis=1)[groups]
        probability = self.knowledge.probability(regions.ranges[groups], values)
        return Claims(groups, values, observed, expected_confidence(probability, int(counts.sum())))

    def refuse_table(self, counts: Integers) -> None:
        """Refuse a table in which everyone has the same sensitive value: each group would agree on it."""
        if (counts > 0).sum() < 2:
            raise MethodError(
                f"sensitive ({self.sensitive}) must have two values or more in the table, and has fewer",
                "Choose another attribute, or a larger table.",
            )

    def kept(self, regions: Regions, counts: Integers) -> bool:
        """Tell whether it holds of every record."""
        if regions.disjoint or regions.sampling != self.sampling:
            return False
        if self.knowledge is None or self.knowledge.shape != regions.shape:
            return False
        if (counts < 0).any() or counts.shape != (regions.regions, len(self.knowledge.sensitive)):
            return False
        claims = self.claims(regions, counts)
        return bool((claims.observed <= claims.expected + ROUNDING).all())

    def kept_by_records(self, sizes: Integers, values: Integers) -> bool:  # noqa: ARG002
        """Hold: what records show is less than what the groups' ranges and counts were checked for."""
        return True

    def plain(self) -> dict[str, Any]:
        """Give it as plain values; statistics that were not looked at yet are left out."""
        plain: dict[str, Any] = {
            "model": self.model,
            "quasi": list(self.quasi),
            "sensitive": self.sensitive,
            "sampling": str(self.sampling),
        }
        return plain if self.knowledge is None else plain | {"statistics": self.knowledge.plain()}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Read it back, refusing what is none."""
        sampling, quasi, sensitive = read_fraction(plain["sampling"]), tuple(plain["quasi"]), plain["sensitive"]
        if sampling is None or not 0 < sampling <= 1 or not all(isinstance(one, str) for one in (*quasi, sensitive)):
            raise ValueError("a confidence cap must have names of attributes and a sampling rate")
        return cls(quasi, sensitive, sampling, Knowledge.of_plain(plain["statistics"]))
