"""What the report asks of a release: parts of attributes, random questions, many at once.

The parts of an attribute (`Bins`) are few enough to be read, and decided by the schema alone. Questions are drawn with
a fixed seed from what is public, the schema and the regions, so whoever has the release draws the same: some at the
release's own borders, where the model assumes nothing, some at any.

Answers and their errors are the release's own, as `count` gives them: squares of noise and model add up to the square
of the whole error, so the share of an error that is the model's is one of squares.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato import Answers, Categorical, Condition, Identifier, Numeric, Release, Schema, percent, read_condition
from sfumato.arrays import Floats, Integers
from sfumato.errors import QueryError
from sfumato.report.html import shortened

Leaves = Mapping[str, Integers]
"""By attribute, the leaves that are meant."""
LEAST_TOLD = 0.005
"""The least share of an error that is worth a word."""
LONGEST_LABEL = 40
"""The most letters of a part's name."""
MOST_RESTRICTED = 3
"""The most attributes that a question restricts."""
MOST_LISTED = 5
"""The most values that a written question lists."""
WORDS = ("and", "between", "in")
"""Words of conditions, which a name must be quoted to be told from."""


def together(release: Release, groups: Sequence[Sequence[Condition]]) -> list[Answers]:
    """Answer groups of questions, all in one pass over the regions."""
    answers = release.count_many([one for group in groups for one in group])
    ends = list(itertools.accumulate(map(len, groups), initial=0))
    return [answers[start:end] for start, end in itertools.pairwise(ends)]


def model_shares(answers: Answers) -> Floats:
    """The share of each answer's squared error that is the model's; nothing of no error."""
    whole = answers.stddevs**2
    return np.asarray(np.where(whole > 0, answers.model**2 / np.where(whole > 0, whole, 1.0), 0.0))


def whose_error(answers: Answers) -> str:
    """Say whose the error of some answers is, all together."""
    whole, model = float((answers.stddevs**2).sum()), float((answers.model**2).sum())
    if not whole:
        return "Exact."
    share = model / whole
    if share < LEAST_TOLD:
        return f"All of the error is {answers.cause}."
    if share > 1 - LEAST_TOLD:
        return "All of the error is the model's."
    return f"Of the squared error {percent(share)} is the model's, the rest is {answers.cause}."


@dataclass(frozen=True, eq=False)
class Bins:
    """Ranges of an attribute's leaves, side by side, and what they are called."""

    name: str
    column: Categorical | Numeric
    borders: Integers

    def __len__(self) -> int:
        """The number of parts."""
        return len(self.borders) - 1

    @property
    def numeric(self) -> bool:
        """Whether the parts follow one another like numbers."""
        return isinstance(self.column, Numeric)

    @property
    def labels(self) -> list[str]:
        """What the parts are called."""
        return [self._label(lo, hi) for lo, hi in itertools.pairwise(self.borders.tolist())]

    def _label(self, lo: int, hi: int) -> str:
        """Name a range as the attribute does, or by its first and last leaf where that would name all of them."""
        name = self.column.label(lo, hi)
        if isinstance(self.column, Categorical) and hi - lo > 1 and len(name) > LONGEST_LABEL:
            name = f"{self.column.label(lo, lo + 1)} … {self.column.label(hi - 1, hi)}"
        return shortened(name, LONGEST_LABEL)

    @property
    def edges(self) -> list[str]:
        """The numbers at which parts begin and end."""
        assert isinstance(self.column, Numeric)
        column = self.column
        written = [column.edge(cell) for cell in self.borders.tolist() if cell <= column.cells]
        missing = [] if column.missing is None else [shortened(column.missing, 12)]
        return [one if column.is_date else compact(one) for one in written] + missing

    def weights(self) -> list[Mapping[str, Floats]]:
        """Each part as weights of leaves."""
        leaves = np.arange(self.column.leaves)
        return [
            {self.name: ((leaves >= lo) & (leaves < hi)).astype(np.float64)}
            for lo, hi in zip(self.borders[:-1], self.borders[1:], strict=True)
        ]

    def of(self, codes: NDArray[np.integer]) -> Integers:
        """The part that holds each coded value."""
        return np.searchsorted(self.borders, codes, side="right") - 1


def bins_of(name: str, column: Categorical | Numeric, most: int) -> Bins:
    """Cut an attribute into so many parts at most.

    Cells of a grid are joined, as many in each part; missing values stay apart. Of a taxonomy the widest category is
    opened, again and again, as long as there is room; what is too wide to be opened is cut like a grid.

    >>> bins_of("age", Numeric(kind="numeric", lower=17, upper=90, missing="?"), 8).labels[-2:]
    ['[83, 91)', '?']
    >>> jobs = Categorical(taxonomy=[{"Artist": ["Dancer", "Writer"]}, {"Office": ["Clerk", "Boss"]}])
    >>> bins_of("job", jobs, 3).labels, bins_of("job", jobs, 2).labels
    (['Dancer', 'Writer', 'Office'], ['Artist', 'Office'])
    """
    if isinstance(column, Numeric):
        apart = column.missing is not None
        cells = _even(column.cells, max(most - apart, 1))
        return Bins(name, column, np.concatenate([cells, [column.leaves]]) if apart else cells)
    borders = {0, column.leaves}
    shut: set[tuple[int, int]] = set()
    while opened := [one for one in _ranges(borders) if one[1] - one[0] > 1 and one not in shut]:
        widest = max(opened, key=lambda one: one[1] - one[0])
        inner = {*(column.children(*widest) or ())} | {*widest}
        if len(borders | inner) - 1 <= most and len(inner) > 2:
            borders |= inner
        else:
            shut.add(widest)
    if len(borders) == 2:
        return Bins(name, column, _even(column.leaves, most))
    return Bins(name, column, np.array(sorted(borders), np.int64))


def every_bins(schema: Schema, most: int) -> list[Bins]:
    """The parts of every attribute, the class included."""
    return [
        bins_of(name, column, most) for name, column in schema.attributes.items() if not isinstance(column, Identifier)
    ]


def _ranges(borders: set[int]) -> list[tuple[int, int]]:
    ordered = sorted(borders)
    return list(itertools.pairwise(ordered))


def _even(leaves: int, most: int) -> Integers:
    """Borders of parts with as many leaves each, the last perhaps fewer."""
    step = -(-leaves // most)
    return np.append(np.arange(0, leaves, step), leaves).astype(np.int64)


def compact(number: str) -> str:
    """A large number in few letters.

    >>> compact("17"), compact("9500"), compact("1280000"), compact("-43500"), compact("0.25")
    ('17', '9,500', '1.28M', '-43.5k', '0.25')
    """
    value = float(number)
    for least, unit, letter in ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / unit:.3g}{letter}"
    return f"{value:,.0f}" if value.is_integer() else f"{value:.4g}"


@dataclass(frozen=True, eq=False)
class Asked:
    """A question: the leaves that it allows."""

    leaves: Leaves
    schema: Schema

    @property
    def weights(self) -> dict[str, Floats]:
        """The question as weights of leaves."""
        return {
            name: np.isin(np.arange(self.schema.predictors[name].leaves), chosen).astype(np.float64)
            for name, chosen in self.leaves.items()
        }

    @property
    def words(self) -> str | None:
        """The question as a condition; None if that cannot be said, or would be long."""
        said = [said_of(self.schema, name, chosen) for name, chosen in self.leaves.items()]
        return None if None in said or len(said) > MOST_RESTRICTED else " and ".join(filter(None, said))


def questions_to(release: Release, count: int, seed: int) -> list[Asked]:
    """Draw so many questions, half of them at the release's own borders where it has any."""
    rng = np.random.default_rng(seed)
    schema = release.schema
    if not any(column.leaves > 1 for column in schema.predictors.values()):
        return []
    return [_question(release, rng, number % 2 == 0) for number in range(count)]


def _question(release: Release, rng: np.random.Generator, own: bool) -> Asked:
    names = list(release.schema.predictors)
    found = release.model.own_query(rng) if own else None
    if found is None:
        return Asked(_anywhere(release.schema, rng), release.schema)
    return Asked({names[at]: leaves for at, leaves in found.items()}, release.schema)


def _anywhere(schema: Schema, rng: np.random.Generator) -> Leaves:
    """Restrict one to three attributes: to an interval between two borders of cells, or to a category."""
    columns = {name: column for name, column in schema.predictors.items() if column.leaves > 1}
    return {name: _range(columns[name], rng) for name in _some(list(columns), rng)}


def _some(names: list[str], rng: np.random.Generator) -> list[str]:
    size = min(int(rng.integers(1, MOST_RESTRICTED + 1)), len(names))
    return [names[one] for one in sorted(rng.choice(len(names), size, replace=False).tolist())]


def _range(column: Categorical | Numeric, rng: np.random.Generator) -> Integers:
    if isinstance(column, Numeric):
        lo = int(rng.integers(column.cells))
        return np.arange(lo, int(rng.integers(lo + 1, column.cells + (lo > 0))) if column.cells > 1 else column.cells)
    lo, hi = 0, column.leaves
    for _ in range(int(rng.integers(1, 3))):
        if borders := column.children(lo, hi):
            pick = int(rng.integers(len(borders) - 1))
            lo, hi = borders[pick], borders[pick + 1]
    return np.arange(lo, hi)


def said_of(schema: Schema, name: str, leaves: Integers) -> str | None:
    """Write that an attribute has one of some leaves, if the grammar of conditions can say just that.

    >>> schema = Schema.loads("attributes: {age: {kind: numeric, lower: 17, upper: 90}}")
    >>> said_of(schema, "age", np.arange(3, 9)), said_of(schema, "age", np.arange(70, 74))
    ('age >= 20 and age < 26', 'age >= 87')
    """
    column = schema.predictors[name]
    quoted = name if name.isidentifier() and name.lower() not in WORDS else f'"{name}"'
    tried = (
        _number_words(quoted, column, leaves) if isinstance(column, Numeric) else _value_words(quoted, column, leaves)
    )
    for words in tried:
        try:
            said = read_condition(schema, words)
        except QueryError:
            continue
        if list(said) == [name] and np.array_equal(np.flatnonzero(said[name] > 0), leaves):
            return words
    return None


def _number_words(quoted: str, column: Numeric, leaves: Integers) -> list[str]:
    lo, hi = int(leaves[0]), int(leaves[-1]) + 1
    if hi > column.cells:
        return []
    above, below = f"{quoted} >= {column.edge(lo)}", f"{quoted} < {column.edge(hi)}"
    return [above if hi == column.cells and lo else below if not lo else f"{above} and {below}"]


def _value_words(quoted: str, column: Categorical, leaves: Integers) -> list[str]:
    names = [column.label(leaf, leaf + 1) for leaf in leaves.tolist()]
    listed = ", ".join(f"'{_doubled(one)}'" for one in names)
    whole = column.label(int(leaves[0]), int(leaves[-1]) + 1)
    return [f"{quoted} = '{_doubled(whole)}'", *([f"{quoted} in ({listed})"] if len(names) <= MOST_LISTED else [])]


def _doubled(text: str) -> str:
    return text.replace("'", "''")
