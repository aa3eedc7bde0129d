"""What a method without epsilon is: a frozen value that names its promise and drafts a release from exact counts.

It is no `Method`: it plans no spending and never meets a meter, and a `Method` never meets exact counts. The account
holds the draft to the promise before there is a release.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.errors import MethodError
from sfumato.geometry.boxes import Regions
from sfumato.methods.method import parameter, plain_parameters, read_number, required
from sfumato.privacy.exact_counts import ExactCounts
from sfumato.privacy.measurements import Noisy
from sfumato.release.promises import KAnonymity, Promise
from sfumato.schema.schema import Schema


@dataclass(frozen=True)
class OpenDraft:
    """What a method found: groups, their exact counts by class, and how it got there."""

    partition: Regions
    counts: Noisy
    steps: tuple[str, ...] = ()
    """what everyone may know of that"""
    notes: tuple[str, ...] = ()
    """what only the holder may: never written to a release"""


class SyntacticMethod(ABC):
    """A way to publish exact counts under a promise about their groups. Validated at birth."""

    name: ClassVar[str]
    reason: ClassVar[str]
    """why it looks at exact counts, for the ledger"""
    sampling: Fraction = Fraction(1)
    """with what probability each record is drawn to be looked at at all; the account draws"""
    engines: ClassVar[tuple[str, ...]] = ("memory",)
    """what can count for it: listing the combinations that occur is work on single records, which memory alone does"""

    @property
    @abstractmethod
    def parameters(self) -> Mapping[str, Any]:
        """Give the parameters as plain values, for the manifest."""

    @abstractmethod
    def narrowed(self, schema: Schema) -> Schema:
        """Give what will be published: attributes that are not in it are not even read. Or refuse the schema."""

    @abstractmethod
    def promise(self, schema: Schema) -> Promise:
        """Say what will hold of a release of a narrowed schema."""

    def informed(self, counts: ExactCounts, schema: Schema) -> SyntacticMethod:  # noqa: ARG002
        """Give the method as it is when it has looked up what its promise speaks of: here there is nothing."""
        return self

    @abstractmethod
    def publish(self, counts: ExactCounts, schema: Schema) -> OpenDraft:
        """Count and draft a release of a narrowed schema."""


@dataclass(frozen=True, kw_only=True)
class KAnonymous(SyntacticMethod):
    """What methods for k-anonymity have in common: k, and over which attributes."""

    reason: ClassVar[str] = "k-anonymity: groups are formed and counted exactly"

    k: int = required("How many records every group has at least.")
    quasi: tuple[str, ...] | None = parameter(
        None,
        "The quasi-identifiers, separated by commas: they are generalized and, with the class (or the sensitive "
        "attribute), alone published. All attributes but the class, if not given.",
    )

    def __post_init__(self) -> None:
        """Read parameters that came as text; refuse those that make no sense for any table."""
        remedy = "k = 1 protects nobody; common values are 5 to 100."
        object.__setattr__(self, "k", read_number("k", self.k, remedy, least=2))
        if self.quasi is not None:
            object.__setattr__(self, "quasi", read_names("quasi", self.quasi))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Give the parameters as plain values."""
        return {name: list(one) if isinstance(one, tuple) else one for name, one in plain_parameters(self).items()}

    def narrowed(self, schema: Schema) -> Schema:
        """Keep the quasi-identifiers and the class."""
        return keep_quasi(self.name, self.quasi, schema)

    def promise(self, schema: Schema) -> KAnonymity:
        """Say k, over everything that is published but the class."""
        return KAnonymity(self.k, tuple(schema.predictors), schema.target)


def keep_quasi(method: str, named: tuple[str, ...] | None, schema: Schema) -> Schema:
    """Keep the quasi-identifiers, all attributes but the class if none are named, and the class."""
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


def read_names(what: str, value: object) -> tuple[str, ...]:
    """Read names separated by commas, or given one by one."""
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if not (isinstance(names, list | tuple) and names and all(isinstance(name, str) and name for name in names)):
        raise MethodError(f"{what} ({str(value)[:40]}) must be names of attributes", "Write for example age,sex.")
    if len(set(names)) < len(names):
        raise MethodError(f"{what} ({', '.join(names)[:80]}) must name every attribute once", "Leave out the second.")
    return tuple(names)
