"""What everybody knows of the people in a table: how probable a generalized record is in the population.

Attributes are independent, each with the probabilities of its leaves, but for rules: among people of a condition, some
sensitive values have probabilities of their own. The other values share what is left there in proportion to their own
probabilities, and outside all conditions every value has what its overall probability leaves, so that all of it is one
distribution. With conditions c of probability P(c), and P(s | c) as the rules say,

    P(s | no condition) = (P(s) - sum of P(c) P(s | c)) / (1 - sum of P(c)),
    P(box, s) = P(box) P(s | no condition) + sum of P(box and c) (P(s | c) - P(s | no condition)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import MethodError
from sfumato.partition import Indices

Floats = NDArray[np.float64]
Source = Literal["public", "the table itself"]

SLACK = 1e-9
"""Probabilities that differ by less are the same."""


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
        self._refuse_overlaps()
        self._refuse_contradictions()

    def _refuse_overlaps(self) -> None:
        for one, other in combinations(self.rules, 2):
            shared = [self._allowed(one, at) & self._allowed(other, at) for at in range(len(self.marginals))]
            if all(both.any() for both in shared):
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

    def masses(self, attribute: int, ranges: Indices) -> Floats:
        """Give the probability of ranges of one attribute, alone and together with each rule: ranges x (1 + rules)."""
        running = self._running[attribute]
        return np.asarray(np.maximum(running[ranges[:, 1]] - running[ranges[:, 0]], 0.0))

    def joined(self, masses: Sequence[Floats], values: Indices) -> Floats:
        """Give the probability of records from the masses of their ranges, by attribute, and their sensitive values."""
        product = np.ones((len(values), 1 + len(self.rules)))
        for mass in masses:
            product *= mass
        return np.asarray(np.clip((product * self._contrasts.T[values]).sum(axis=1), 0.0, 1.0))

    def probability(self, boxes: Indices, values: Indices) -> Floats:
        """Give the probability of generalized records: boxes x attributes x 2, and a sensitive value for each.

        >>> ages, sexes, diseases = np.array([0.15, 0.85]), np.array([0.5, 0.5]), np.array([0.05, 0.95])
        >>> female = np.array([[[0, 1], [0, 1]]])
        >>> Knowledge((ages, sexes), diseases).probability(female, np.array([0])).round(9).tolist()
        [0.00375]
        """
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
