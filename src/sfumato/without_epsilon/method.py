"""What a method without epsilon is: a frozen value that names its promise and drafts a release from exact counts.

It is no `Method`: it plans no spending and never meets a meter, and a `Method` never meets exact counts. The account
holds the draft to the promise before there is a release.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from sfumato.arrays import Integers
from sfumato.errors import MethodError
from sfumato.geometry.regions import Regions
from sfumato.methods.method import Parameters, names, number, optional, parameter, required
from sfumato.privacy.exact_counts import ExactCounts
from sfumato.privacy.measurements import Draft, Measurement, Noisy, Question
from sfumato.release.promises import KAnonymity, Promise
from sfumato.schema.schema import Schema

COUNTED = "counts of groups"
"""The label of the measurement in a draft."""


@dataclass(frozen=True, kw_only=True)
class MethodWithoutEpsilon(Parameters, ABC):
    """A way to publish exact counts under a promise about their groups. Validated at birth."""

    reason: ClassVar[str]
    """why it looks at exact counts, for the ledger"""
    model: ClassVar[str]
    """the name of the model that reads its drafts"""
    engines: ClassVar[tuple[str, ...]] = ("local",)
    """what can count for it: listing the combinations that occur works on single records, on one machine alone"""

    @property
    def drawn(self) -> Fraction:
        """The probability with which each record is drawn to be looked at at all; the account draws."""
        return Fraction(1)

    @abstractmethod
    def narrowed(self, schema: Schema) -> Schema:
        """Narrow a schema to what will be published, or refuse it: other attributes are not even read."""

    @abstractmethod
    def promise(self, schema: Schema) -> Promise:
        """The promise that a release of a narrowed schema will keep."""

    def informed(self, counts: ExactCounts, schema: Schema) -> Self:  # noqa: ARG002
        """The method with what its promise takes from the table; here there is nothing to take."""
        return self

    @abstractmethod
    def publish(self, counts: ExactCounts, schema: Schema) -> Draft:
        """Form groups, count them, and draft a release of a narrowed schema."""

    def draft(
        self, groups: Regions, counts: Integers, steps: tuple[str, ...] = (), notes: tuple[str, ...] = ()
    ) -> Draft:
        """Draft groups with their exact counts by class; notes are for the holder alone."""
        question = Question(groups, groups.region_nodes, counts.shape[1])
        counted = Measurement(COUNTED, question, Noisy.exact(counts))
        return Draft(groups, (counted,), self.model, steps, notes)


@dataclass(frozen=True, kw_only=True)
class KAnonymous(MethodWithoutEpsilon):
    """What methods for k-anonymity have in common: k, and over which attributes."""

    reason: ClassVar[str] = "k-anonymity: groups are formed and counted exactly"
    model: ClassVar[str] = "exact tree"

    k: int = required(
        "How many records every group has at least.",
        read=number("k = 1 protects nobody; common values are 5 to 100.", least=2),
    )
    quasi: tuple[str, ...] | None = parameter(
        None,
        "The quasi-identifiers, separated by commas: they are generalized and, with the class (or the sensitive "
        "attribute), alone published. All attributes but the class, if not given.",
        read=optional(names),
    )

    def narrowed(self, schema: Schema) -> Schema:
        """Keep the quasi-identifiers and the class."""
        return keep_quasi(self.name, self.quasi, schema)

    def promise(self, schema: Schema) -> KAnonymity:
        """Promise k, over everything that is published but the class."""
        return KAnonymity(self.k, tuple(schema.predictors), schema.target)


def keep_quasi(method: str, named: tuple[str, ...] | None, schema: Schema) -> Schema:
    """Keep the quasi-identifiers, all attributes but the class if none are named, and the class.

    Persons are refused: groups have so many rows, and all rows of a group could be one person's.
    """
    if schema.person is not None:
        raise MethodError(
            f"a schema with person ({schema.person[:40]}) must be published with an epsilon, and {method} has none: "
            "its groups are counted in rows, and all rows of a group could be one person's",
            "Make a table in which each person is one row, and leave `person` out of its schema.",
        )
    quasi = tuple(schema.predictors) if named is None else named
    for name in quasi:
        if name == schema.target:
            raise MethodError(
                f"quasi-identifier ({name}) must not be the class or sensitive attribute, which is published as it is",
                "Leave it out, or choose another with --target.",
            )
        if name not in schema.predictors:
            raise MethodError(
                f"quasi-identifier ({name[:40]}) must be an attribute of the schema",
                f"Choose from {', '.join(list(schema.predictors)[:20])}.",
            )
    if not quasi:
        raise MethodError(f"{method} must have a quasi-identifier besides the class", "Declare more attributes.")
    return schema.only({*quasi, *([] if schema.target is None else [schema.target])})
