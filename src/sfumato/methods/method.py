"""What a method is: a frozen value that plans its spending from public facts and drafts a release through a meter.

A method drafts and does not seal: the account joins the draft with the ledger, so a method cannot write its own
certificate. Its parameters are fields that declare how they are read, so that a value that came as text from the
command line and one that came from Python are the same, and what makes no sense for any table is refused at birth.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, ClassVar, Self

from sfumato.errors import MethodError
from sfumato.exact import read_fraction, read_whole
from sfumato.privacy.budget import Schedule
from sfumato.privacy.measurements import Draft
from sfumato.privacy.meter import Meter
from sfumato.schema.schema import Schema

Read = Callable[[str, Any], Any]
"""How a parameter is read: from its name and what was given for it to its value, or a refusal."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """A frozen value whose fields are parameters: each is read as it declares, when the value is made."""

    name: ClassVar[str]
    """what users call the method"""
    summary: ClassVar[str]
    """what it does, in one clause, for tables of methods"""
    order: ClassVar[int]
    """where it stands in lists: methods that others build on come first"""
    suits: ClassVar[str] = ""
    """what it is for"""
    arithmetic: ClassVar[str] = ""
    """how epsilon is shared, in one line"""
    unsuited: ClassVar[str] = ""
    """when not to use it"""
    additions: ClassVar[str] = ""
    """what we add to the method as published"""
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]]
    """parameters that are worth testing, the cheapest first: every contract is tested with each of them"""
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    """the same for the method as published: arguments of `as_published`"""

    def __post_init__(self) -> None:
        """Read every parameter; `check` then looks at them together."""
        for one in fields(self):
            object.__setattr__(self, one.name, one.metadata["read"](one.name, getattr(self, one.name)))
        self.check()

    def check(self) -> None:
        """Refuse parameters that make no sense together."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters as plain values, for the manifest."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Make the method with each set of parameters that is worth testing, those as published last."""
        published = getattr(cls, "as_published", cls)
        return (*(cls(**one) for one in cls.EXAMPLES), *(published(**one) for one in cls.PUBLISHED))


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Fraction) else value


@dataclass(frozen=True, kw_only=True)
class Method(Parameters, ABC):
    """A way to publish with an epsilon. After data is opened nothing fails because of a parameter."""

    @property
    @abstractmethod
    def model(self) -> str:
        """The name of the model that reads the drafts of this method."""

    @abstractmethod
    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Say what every round will cost, from public facts alone, or refuse."""

    @abstractmethod
    def expected_cells(self, schema: Schema) -> int:
        """Estimate generously, from public facts, how many cells a release will have, to set disk space aside."""

    @abstractmethod
    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Ask the meter and draft a release."""


def registered(found: Iterable[Any], kind: Any) -> dict[str, Any]:
    """List the methods of a kind among the names of a module, by what users call them, in their order."""
    methods: list[Any] = [one for one in found if isinstance(one, type) and issubclass(one, kind) and one is not kind]
    return {one.name: one for one in sorted(methods, key=lambda one: one.order)}


def parameter(default: Any, says: str, *, read: Read, file: bool = False, option: str = "") -> Any:
    """Declare a parameter: its default, what it says to those who set it, and how it is read.

    `file` tells that it is so long a text that the command line takes the file that holds it; `option` is what it is
    called there, if not by its name.
    """
    return field(default=default, metadata={"says": says, "read": read, "file": file, "option": option})


def required(says: str, *, read: Read) -> Any:
    """Declare a parameter that must be given."""
    return field(metadata={"says": says, "read": read, "file": False, "option": ""})


def number(remedy: str, least: int = 1, most: int = 10**9) -> Read:
    """A reader of whole numbers between bounds."""

    def read(name: str, value: Any) -> int:
        text = isinstance(value, str) and re.fullmatch(r"[0-9]{1,40}", value)
        found = int(value) if text else read_whole(value)
        if found is None or not least <= found <= most:
            raise MethodError(f"{name} ({str(value)[:40]}) must be a whole number from {least} to {most:,}", remedy)
        return found

    return read


def share(least: Fraction = Fraction(0), most: Fraction = Fraction(9, 10)) -> Read:
    """A reader of shares, of a budget for example, with at most three decimals."""

    def read(name: str, value: Any) -> Fraction:
        found = read_fraction(value)
        if found is None or not least <= found <= most or found.denominator > 1000:
            raise MethodError(
                f"{name} ({str(value)[:40]}) must be a share from {float(least):g} to {float(most):g} with at most "
                "three decimals",
                "Give for example 0.2.",
            )
        return found

    return read


def truth(name: str, value: Any) -> bool:
    """Read yes or no."""
    known = {"yes": True, "true": True, "no": False, "false": False}
    found = known.get(str(value).lower())
    if found is None:
        raise MethodError(f"{name} ({str(value)[:40]}) must be yes or no", "Choose one of them.")
    return found


def one_of(choices: Collection[str]) -> Read:
    """A reader of words, each of which must be one of some choices."""

    def read(name: str, value: Any) -> Any:
        if value not in choices:
            raise MethodError(f"{name} ({str(value)[:40]}) must be one of {', '.join(choices)}", "Choose one of them.")
        return value

    return read


def names(name: str, value: Any) -> tuple[str, ...]:
    """Read names of attributes, separated by commas or given one by one."""
    found = [one.strip() for one in value.split(",")] if isinstance(value, str) else value
    if not (isinstance(found, list | tuple) and found and all(isinstance(one, str) and one for one in found)):
        raise MethodError(f"{name} ({str(value)[:40]}) must be names of attributes", "Write for example age,sex.")
    if len(set(found)) < len(found):
        raise MethodError(f"{name} ({', '.join(found)[:80]}) must name every attribute once", "Leave out the second.")
    return tuple(found)


def words(_: str, value: Any) -> Any:
    """Take text as it is."""
    return value


def optional(read: Read) -> Read:
    """A reader of what may be left out: None stays None."""
    return lambda name, value: None if value is None else read(name, value)
