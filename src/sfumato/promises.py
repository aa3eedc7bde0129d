"""What a release without epsilon promises, as a value: said in words, written to manifests, and checked on the counts.

Public, because all sides speak of it: a method names its promise, the account holds the finished groups to it, and the
manifest states it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.boxes import Boxes, Regions
from sfumato.errors import MethodError
from sfumato.exact import read_whole

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

    def plain(self) -> dict[str, Any]:
        """Give it as plain values."""

    def refuse_table(self, counts: NDArray[np.int64]) -> None:
        """Refuse a table, all of it as one group of so many records by class, that no generalization can save."""

    def kept(self, regions: Regions, counts: NDArray[np.int64]) -> bool:
        """Tell whether it holds of all groups: the regions, and their counts by class."""


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
        if isinstance(regions, Boxes) or counts.ndim != 2 or len(counts) != regions.regions:
            return False
        return bool((counts >= 0).all() and (self.holds(counts) | (counts.sum(axis=-1) == 0)).all())

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
