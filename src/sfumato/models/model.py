"""What a model is: it answers from everything that was measured, and from nothing else.

A model is made from a structure and its measurements, so whoever has a release can make it again. It answers weighted
counts with their errors, tells marginals, draws people, classifies, and describes itself. A release asks it and does
not know what kind it is; there is one file for each kind.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, SupportsIndex, get_args, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Codes, Floats, Integers
from sfumato.errors import ReleaseError
from sfumato.geometry.regions import Regions, Sides
from sfumato.privacy.measurements import Draft, Question
from sfumato.schema.schema import Schema

Z95 = 1.959963984540054
Cause = Literal["noise", "sampling"]
Nonnegative = Literal["projection", "clamp"]
"""How negative counts become counts of people: by a projection that keeps the total, or clamped as in the papers."""


UNMEASURED = (
    "a release of regions must have counts of all of its regions, and has not",
    "Get the release again from its publisher.",
)
MISREAD = (
    "a release's counts must have noise, or none, as its model reads them",
    "Get the release again from its publisher.",
)


def percent(share: float) -> str:
    """Write a share for people."""
    return f"{100 * share:.0f} %" if share >= 0.0095 else f"{100 * share:.1f} %" if share >= 0.0005 else "0 %"


def refuse_unknown(how: str) -> None:
    """Refuse a way to make counts non-negative that there is not."""
    if how not in get_args(Nonnegative):
        raise ReleaseError(
            f"nonnegative ({how}) must be one of {', '.join(get_args(Nonnegative))}", "Choose one of them."
        )


@dataclass(frozen=True)
class Estimate:
    """A count, its standard deviation from noise, and how much of it rests on spreading people inside regions."""

    value: float
    stddev: float
    assumed: float
    """The part of the value that comes from regions which the condition covers only partly."""
    aligned: bool
    """Whether the condition covers every region wholly or not at all, so that nothing is assumed."""
    cause: Cause = "noise"
    """What the deviation comes from."""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval for the noise or the sampling, in the normal approximation."""
        return self.value - Z95 * self.stddev, self.value + Z95 * self.stddev

    def __str__(self) -> str:
        """Write value and half the 95 % interval, and what it leaves out."""
        spread = "" if self.aligned else f"; {self.assumed:,.0f} rests on spreading inside groups"
        if not self.stddev:
            return f"{self.value:,.0f} (no noise{spread})"
        named = " for sampling, no noise" if self.cause == "sampling" else " for noise" if spread else ""
        return f"{self.value:,.0f} ± {Z95 * self.stddev:,.0f} (95 %{named}{spread})"


@dataclass(frozen=True, eq=False)
class Answers:
    """Many estimates, in the order of their conditions."""

    conditions: tuple[str, ...]
    values: Floats
    stddevs: Floats
    assumed: Floats
    aligned: Booleans
    cause: Cause = "noise"

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        """Put answers one after the other."""
        arrays = ("values", "stddevs", "assumed", "aligned")
        joined = [np.concatenate([np.empty(0), *(getattr(part, name) for part in parts)]) for name in arrays]
        conditions = tuple(condition for part in parts for condition in part.conditions)
        cause = parts[0].cause if parts else "noise"
        return cls(conditions, joined[0], joined[1], joined[2], joined[3].astype(np.bool_), cause)

    def __len__(self) -> int:
        """Count them."""
        return len(self.values)

    @overload
    def __getitem__(self, number: SupportsIndex) -> Estimate: ...

    @overload
    def __getitem__(self, number: slice) -> Answers: ...

    def __getitem__(self, number: SupportsIndex | slice) -> Estimate | Answers:
        """Take one out, or those of a slice."""
        if isinstance(number, slice):
            arrays = (self.values[number], self.stddevs[number], self.assumed[number], self.aligned[number])
            return Answers(self.conditions[number], *arrays, self.cause)
        number = operator.index(number)
        value, stddev, assumed = (float(one[number]) for one in (self.values, self.stddevs, self.assumed))
        return Estimate(value, stddev, assumed, bool(self.aligned[number]), self.cause)

    def __iter__(self) -> Iterator[Estimate]:
        """Walk through them."""
        return (self[number] for number in range(len(self)))

    @property
    def table(self) -> pa.Table:
        """All of it as a table, with the 95 % interval for the noise."""
        return pa.table(
            {
                "condition": pa.array(self.conditions, pa.string()),
                "count": self.values,
                "stddev": self.stddevs,
                "low": self.values - Z95 * self.stddevs,
                "high": self.values + Z95 * self.stddevs,
                "assumed": self.assumed,
                "aligned": self.aligned,
            }
        )


@dataclass(frozen=True, eq=False)
class Query:
    """One condition as weights: of the leaves of attributes, by their number and in the order of codes, and of classes.

    An attribute that is left out is not restricted.
    """

    text: str
    weights: Mapping[int, Floats]
    classes: Floats


@dataclass(frozen=True, eq=False)
class Groups:
    """The generalized records of a release: groups, seen attribute by attribute, and their counts by class."""

    sides: Sequence[Sides]
    shown: NDArray[Any]
    """groups x classes: the best estimates, as records show them"""
    people: Integers
    """groups x classes: non-negative whole numbers of people"""


@dataclass(frozen=True)
class Ribbon:
    """An attribute cut into parts, each with its share of people."""

    attribute: str
    parts: tuple[tuple[str, float], ...]
    """what each is called, and its share; nothing if there are too many to tell"""
    number: int
    """how many parts there are"""


@dataclass(frozen=True)
class Branch:
    """A node of a tree laid out in a picture: from which share of people to which, and along what it is cut further."""

    level: int
    begin: float
    end: float
    attribute: str
    """the attribute along which it was cut out; none for the root"""
    name: str
    people: float
    split_by: str


@dataclass(frozen=True)
class Listing:
    """A table of text beside a picture."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]
    """the columns that are numbers"""


@dataclass(frozen=True)
class Description:
    """What a model says of itself, for `inspect` and the report, whatever its kind."""

    title: str
    words: str
    told_apart: tuple[int, ...]
    """the attributes that the structure tells apart"""
    branches: tuple[Branch, ...] = ()
    ribbons: tuple[Ribbon, ...] = ()
    caption: str = ""
    textures: bool = False
    """whether parts of ribbons are kinds of values, told apart by texture, and not values"""
    listings: tuple[Listing, ...] = field(default=())


class Model(ABC):
    """Answers from a structure and all that was measured."""

    cause: ClassVar[Cause] = "noise"
    """what answers err by"""
    exact: ClassVar[bool] = False
    """whether it reads counts without noise, and only such"""

    def __init__(self, schema: Schema, draft: Draft) -> None:
        """Read what was measured; refuse what does not fit the structure, rather than leave it out."""
        self.schema, self.draft = schema, draft
        reader = self.reader()
        for one in draft.measurements:
            reader.refuse(one.question)
            if one.question.places and one.noisy.is_exact != self.exact:
                raise ReleaseError(*MISREAD)

    @classmethod
    def reader(cls) -> Reader:
        """Begin to look at questions, one after the other, of which this model can read the answers."""
        return Reader(cls)

    @staticmethod
    @abstractmethod
    def reads(question: Question) -> bool:
        """Tell whether the model knows what to do with the answer to a question."""

    @property
    @abstractmethod
    def total(self) -> int:
        """The estimated number of people, which whole people made from estimates add up to."""

    @property
    @abstractmethod
    def groups(self) -> int:
        """The number of groups of generalized records; of exact counts, those that hold someone."""

    @property
    def regions(self) -> Regions | None:
        """The groups' geometry, if the structure is one of regions."""
        return self.draft.structure

    @abstractmethod
    def bytes_for(self, query: Query) -> int:
        """Estimate the memory that a query takes among others."""

    @abstractmethod
    def answer(self, queries: Sequence[Query]) -> Answers:
        """Answer a block of queries that fits in memory."""

    @abstractmethod
    def explain(self, query: Query) -> tuple[Mapping[str, Sequence[str]], Floats]:
        """List the fewest groups that make up what a query covers wholly: what they are called, and their estimates."""

    @abstractmethod
    def marginal(self, attributes: Sequence[int], *, by_class: bool) -> Floats:
        """Estimate all cells of some attributes, in ascending order: leaves x leaves ... x classes (1 if by none)."""

    @abstractmethod
    def generalized(self, how: Nonnegative) -> Groups:
        """Make generalized records."""

    @abstractmethod
    def draw(self, size: int, rng: np.random.Generator, how: Nonnegative) -> tuple[Sequence[Integers], Integers]:
        """Draw people: the leaf codes of each attribute, and the classes."""

    @abstractmethod
    def classify(self, columns: Sequence[Codes]) -> Integers:
        """Predict the class of coded rows."""

    def margin_variances(self, attribute: int, borders: Integers) -> Floats | None:  # noqa: ARG002
        """Bound the variance that an attribute's own margin has in each part between borders; None without one."""
        return None

    @abstractmethod
    def describe(self) -> Description:
        """Say what the structure is."""

    @abstractmethod
    def own_query(self, rng: np.random.Generator) -> Mapping[int, Integers] | None:
        """Draw a question whose answer assumes nothing, as leaves by attribute; None if there is no such."""


class Reader:
    """Refuses what a model could not read, question by question: a meter asks before it lets a method pay."""

    def __init__(self, model: type[Model]) -> None:
        """Begin."""
        self._model = model
        self._grown: Any = None

    def refuse(self, question: Question) -> None:
        """Refuse a question that the model cannot read, or of a tree that has not grown from those asked before."""
        if not self._model.reads(question):
            raise ReleaseError(
                "what is measured must be what the release's model can read, and is not",
                "Nothing was looked at. Report this: it is a mistake of the method.",
            )
        if question.nodes is not None:
            tree: Any = question.regions
            if self._grown is not None and not tree.refines(self._grown.stage):
                raise ReleaseError(
                    "what is measured must be nodes of one tree that grows",
                    "Nothing was looked at. Report this: it is a mistake of the method.",
                )
            self._grown = tree
