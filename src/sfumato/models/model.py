"""What a model is: it answers from everything that was measured, and from nothing else.

A model is made from a structure and its measurements, so whoever has a release can make it again. It answers weighted
counts with their errors, tells marginals, draws people, classifies, and describes itself. A release asks it and does
not know what kind it is; there is one file for each kind.
"""

from __future__ import annotations

import itertools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, SupportsIndex, get_args, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Codes, Floats, Integers
from sfumato.errors import ReleaseError
from sfumato.frames import Frame, as_frame
from sfumato.geometry.regions import Regions, Sides
from sfumato.markup import joined, table, tag
from sfumato.models.intervals import LEVEL as LEVEL
from sfumato.models.intervals import Z95, half_widths
from sfumato.privacy.measurements import Draft, Question
from sfumato.schema.schema import Schema

MOST_SHOWN = 20
"""The most answers that a notebook shows."""
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
    """A count and how far it may be from the truth: by noise, by sampling, and by what the model had to assume."""

    value: float
    noise: float
    """the standard deviation that comes from what was measured with noise"""
    sampling: float = 0.0
    """the one that comes from the luck of a draw, where records were sampled"""
    untold: float = 0.0
    """how far the model may be off, as the scale of Student's t with two degrees of freedom"""
    most: float = math.inf
    """more than this cannot be: one clause alone allows no more"""

    @property
    def stddev(self) -> float:
        """The standard deviation of the whole error: that of a normal one with the same 95 % interval."""
        return float(half_widths(LEVEL, np.array([self._measured]), np.array([self.untold]))[0] / Z95)

    @property
    def model(self) -> float:
        """The part of it that is the model's: squares of noise, sampling and model add up to that of the whole."""
        return math.sqrt(max(self.stddev**2 - self._measured**2, 0.0))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval for the whole error."""
        return self.between(LEVEL)

    def between(self, level: float) -> tuple[float, float]:
        """The interval that holds the truth with a probability; below 0 or above what is possible there is nobody."""
        half = float(half_widths(level, np.array([self._measured]), np.array([self.untold]))[0])
        return max(self.value - half, min(self.value, 0.0)), max(min(self.value + half, self.most), self.value)

    @property
    def _measured(self) -> float:
        return math.hypot(self.noise, self.sampling)

    def _repr_html_(self) -> str:
        low, high = self.interval
        return joined([tag("strong", str(self)), f": between {low:,.0f} and {high:,.0f}"])

    def __str__(self) -> str:
        """Write value and half the 95 % interval."""
        half = Z95 * self.stddev
        return f"{self.value:,.0f} ± {half:,.0f} (95 %)" if half else f"{self.value:,.0f} (exact)"


@dataclass(frozen=True, eq=False)
class Answers:
    """Many estimates, in the order of their conditions."""

    conditions: tuple[str, ...]
    values: Floats
    noise: Floats
    """standard deviations from noise or, where records were sampled, from that"""
    untold: Floats
    """how far the model may be off: scales of Student's t with two degrees of freedom"""
    most: Floats
    cause: Cause = "noise"

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        """Put answers one after the other."""
        arrays = ("values", "noise", "untold", "most")
        joined = [np.concatenate([np.empty(0), *(getattr(part, name) for part in parts)]) for name in arrays]
        conditions = tuple(condition for part in parts for condition in part.conditions)
        cause: Cause = parts[0].cause if parts else "noise"
        return cls(conditions, joined[0], joined[1], joined[2], joined[3], cause)

    def __len__(self) -> int:
        """Count them."""
        return len(self.values)

    @overload
    def __getitem__(self, number: SupportsIndex) -> Estimate: ...

    @overload
    def __getitem__(self, number: slice) -> Answers: ...

    def __getitem__(self, number: SupportsIndex | slice) -> Estimate | Answers:
        """Take one out, or those of a slice."""
        arrays = (self.values, self.noise, self.untold, self.most)
        if isinstance(number, slice):
            values, noise, untold, most = (one[number] for one in arrays)
            return Answers(self.conditions[number], values, noise, untold, most, self.cause)
        value, error, scale, bound = (float(one[operator.index(number)]) for one in arrays)
        sampled = self.cause == "sampling"
        return Estimate(value, 0.0 if sampled else error, error if sampled else 0.0, scale, bound)

    def __iter__(self) -> Iterator[Estimate]:
        """Walk through them."""
        return (self[number] for number in range(len(self)))

    @cached_property
    def stddevs(self) -> Floats:
        """The standard deviations of the whole errors."""
        return half_widths(LEVEL, self.noise, self.untold) / Z95

    @property
    def model(self) -> Floats:
        """The parts of them that are the model's."""
        return np.asarray(np.sqrt(np.maximum(self.stddevs**2 - self.noise**2, 0.0)))

    def between(self, level: float) -> tuple[Floats, Floats]:
        """The ends of intervals that hold the truth with a probability."""
        half = half_widths(level, self.noise, self.untold)
        low = np.maximum(self.values - half, np.minimum(self.values, 0.0))
        return low, np.maximum(np.minimum(self.values + half, self.most), self.values)

    @property
    def table(self) -> pa.Table:
        """All of it as a table, with the 95 % interval, and the parts of the error as standard deviations."""
        low, high = self.between(LEVEL)
        return pa.table(
            {
                "condition": pa.array(self.conditions, pa.string()),
                "value": self.values,
                "low": low,
                "high": high,
                "stddev": self.stddevs,
                self.cause: self.noise,
                "model": self.model,
            }
        )

    def _repr_html_(self) -> str:
        low, high = self.between(LEVEL)
        shown = zip(self.conditions, self.values.tolist(), low.tolist(), high.tolist(), strict=True)
        rows = [(name, *(f"{one:,.0f}" for one in numbers)) for name, *numbers in itertools.islice(shown, MOST_SHOWN)]
        more = [f"... and {len(self) - MOST_SHOWN:,} more"] if len(self) > MOST_SHOWN else []
        return joined([table(("condition", "value", "low", "high"), rows, (1, 2, 3)), *more])

    def frame(self, library: Frame = "pandas") -> Any:
        """All of it as a frame: `value`, `low` and `high` of each condition, and what the error is made of."""
        return as_frame(self.table, library)


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
