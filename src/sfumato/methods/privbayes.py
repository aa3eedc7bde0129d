"""PrivBayes: a network of attributes, each with a few parents, and noisy counts of each family (Zhang et al. 2014).

Attributes are added one after the other: the first by lot, every other with the parents that it hangs together with
most, chosen privately among all parent sets, at any level of their taxonomies, whose cells hold enough people beside
the noise (usefulness theta). Then the family of each attribute is counted: d marginals. A synthetic person is drawn
along the network; counts are sums over it (`models/bayes.py`).

Privacy. One debit for the size of the table, which decides what is useful; one for each choice after the first; one for
each family. Candidates follow from the schema, the noisy size and earlier choices. As published, the size is taken for
public and costs nothing: here it is always noisy, and paid for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from sfumato.errors import MethodError
from sfumato.geometry.grid import Grid
from sfumato.geometry.halving import borders, height
from sfumato.methods.margins import buy_margins, margin_parts
from sfumato.methods.method import Method, number, one_of, parameter, share
from sfumato.privacy.budget import Schedule, payable
from sfumato.privacy.families import CLASS, BinaryFit, Dependence, Families, Family
from sfumato.privacy.measurements import Draft
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import Selection
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.attributes import Numeric
from sfumato.schema.schema import Predictor, Schema, variables_of

SIZE = Fraction(1, 50)
"""The share of the budget without margins for the noisy size of the table."""
Encoding = Literal["hierarchical", "vanilla"]
"""Whether parents may stand at any level of their taxonomy, or whole alone."""
Estimation = Literal["consistent", "clipped"]
"""How noisy families become a network: made to agree with each other, or clipped at 0, as published."""
Cut = tuple[int, ...]
"""Borders of the parts of an attribute, outer ones included."""
Parents = tuple[tuple[int, Cut], ...]
"""Attributes (or CLASS), each with a level."""


@dataclass(frozen=True, kw_only=True)
class PrivBayes(Method):
    """A Bayesian network of noisy marginals."""

    name: ClassVar[str] = "privbayes"
    order: ClassVar[int] = 13
    suits: ClassVar[str] = "synthetic people and counts of many attributes"
    arithmetic: ClassVar[str] = (
        "a fifth for margins; of the rest a fiftieth for the size, three tenths for d - 1 choices, the others for "
        "d families"
    )
    unsuited: ClassVar[str] = (
        "for predicting one class; below about ten thousand people times epsilon families are tiny"
    )
    summary: ClassVar[str] = (
        "learns a network in which every attribute has a few parents, and counts these families, for synthetic people "
        "of many attributes (Zhang et al. 2014)"
    )
    additions: ClassVar[str] = (
        "a noisy size, permute-and-flip, families made to agree with each other and with one-way margins, and all that "
        "the choices leave over"
    )
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"candidates": 60},
        {"parents": "vanilla", "margins": 0, "theta": 1, "degree": 2, "candidates": 20},
        {"bins": 4, "theta": 1, "network": "0.5", "candidates": 30},
    )
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = ({"degree": 2},)

    theta: int = parameter(
        4,
        "Usefulness: a family's cells must hold on average so many times the scale of their noise.",
        read=number("Four is usual.", most=1000),
    )
    degree: int = parameter(3, "The most parents of an attribute.", read=number("Give for example 3.", most=6))
    parents: Encoding = parameter(
        "hierarchical",
        "Whether parents stand at any level of their taxonomy, or whole alone (vanilla).",
        read=one_of(get_args(Encoding)),
    )
    bins: int = parameter(
        16, "Numeric attributes are told in at most so many parts.", read=number("Sixteen is usual.", 2, 1024)
    )
    network: Fraction = parameter(
        Fraction(3, 10),
        "The share of epsilon, without margins, for choosing the network; as published, a half.",
        read=share(least=Fraction(1, 20)),
    )
    margins: Fraction = parameter(
        Fraction(1, 5),
        "The share of epsilon spent on one-way margins, which the network agrees with; 0 is the paper's way.",
        read=share(),
    )
    selection: Selection = parameter(
        "permute-and-flip", "How families are chosen; exponential is the paper's.", read=one_of(get_args(Selection))
    )
    estimation: Estimation = parameter(
        "consistent",
        "Whether families are made to agree with each other (consistent), or clipped at 0 each for itself.",
        read=one_of(get_args(Estimation)),
    )
    candidates: int = parameter(
        600,
        "The most families from which one is chosen; of more, these are drawn by lot.",
        read=number("Give for example 600.", most=100_000),
    )

    @classmethod
    def as_published(cls, *, degree: int | str = 3, parents: Encoding = "hierarchical") -> PrivBayes:
        """Make the method as published, but for the size, which is noisy and paid for."""
        return cls(
            degree=number("Give for example 3.", most=6)("degree", degree),
            parents=parents,
            network=Fraction(1, 2),
            margins=Fraction(0),
            selection="exponential",
            estimation="clipped",
        )

    @property
    def model(self) -> str:
        """The model of a network of families."""
        return "network of families" if self.estimation == "consistent" else "network of clipped families"

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Share epsilon among margins, the size, d - 1 choices and d families."""
        names = Variables(schema, self.bins).names
        if len(names) < 2:
            raise MethodError(
                f"{self.name} must have two attributes or more with different values, the class included",
                "Publish more of them.",
            )
        parts = dict(margin_parts(schema, epsilon * self.margins, "best"))
        rest = epsilon - sum(parts.values(), Fraction(0))
        parts["size"] = rest * SIZE
        choices = [f"choice {step}" for step in range(2, len(names) + 1)]
        parts |= dict.fromkeys(choices, rest * (self.network - SIZE) / len(choices))
        families = [f"family of {name}" for name in names.values()]
        return Schedule(parts | dict.fromkeys(families, rest * (1 - self.network) / len(families)))

    def expected_cells(self, schema: Schema) -> int:
        """Estimate the cells: a thousand for each family, and the margins."""
        return 1000 * (len(schema.shape) + 1) + sum(schema.shape)

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Measure margins and size, choose the network, count its families."""
        whole = Tally(Grid.whole(schema.shape), len(schema.classes), tuple(range(len(schema.shape))))
        margins = buy_margins(meter, schema, schedule, whole, "best")
        size = meter.measure(Cells(whole), schedule["size"], "size")
        variables = Variables(schema, self.bins)
        per_family = schedule[f"family of {variables.names[variables.every[0]]}"]
        most = max(int(size.counts.sum()), 1) * float(per_family) / self.theta
        chosen = self._network(meter, variables, schedule, most)
        left = payable(meter.left / len(chosen))
        counts = []
        for child, parents in chosen:
            grid, by_class = variables.grid(child, parents)
            cells = Cells(Tally(grid, len(schema.classes)), "class" if by_class else "place")
            counts.append(meter.measure(cells, left, f"family of {variables.names[child]}"))
        steps = tuple(variables.describe(child, parents) for child, parents in chosen)
        return Draft(Grid.whole(schema.shape), (*margins, size, *counts), self.model, steps)

    def _network(
        self, meter: Meter, variables: Variables, schedule: Schedule, most: float
    ) -> list[tuple[int, Parents]]:
        """Add the first attribute by lot, and every other with the parents that are chosen for it."""
        waiting = list(variables.every)
        first = waiting.pop(int(meter.lots(1)[0] % len(waiting)))
        chosen: list[tuple[int, Parents]] = [(first, ())]
        while waiting:
            known = [child for child, _ in chosen]
            offered = [
                (child, parents)
                for child in waiting
                for parents in variables.parent_sets(child, known, most, self.degree, self.parents == "vanilla")
            ]
            if len(offered) > self.candidates:
                drawn = np.argsort(meter.lots(len(offered)), kind="stable")[: self.candidates]
                offered = [offered[at] for at in np.sort(drawn).tolist()]
            chosen.append(self._choose(meter, variables, offered, schedule, f"choice {len(chosen) + 1}"))
            waiting.remove(chosen[-1][0])
        return chosen

    def _choose(
        self,
        meter: Meter,
        variables: Variables,
        offered: Sequence[tuple[int, Parents]],
        schedule: Schedule,
        label: str,
    ) -> tuple[int, Parents]:
        """Let the meter choose a family; where none has a parent there is nothing to choose by, and the lot decides."""
        if not any(parents for _, parents in offered):
            return offered[int(meter.lots(1)[0] % len(offered))]
        if len(offered) == 1:
            return offered[0]
        grids: dict[Grid, int] = {}
        families = []
        for child, parents in offered:
            grid, by_class = variables.grid(child, parents)
            families.append(Family(child, grids.setdefault(grid, len(grids)), by_class))
        schema = variables.schema
        tally = Tally(Grid.whole(schema.shape), len(schema.classes), (), None, tuple(grids))
        score = BinaryFit.name if variables.binary else Dependence.name
        return offered[meter.select_family(Families(tally, families, score), schedule[label], label, self.selection)]


@dataclass(frozen=True, eq=False)
class Variables:
    """The attributes of a network, the class among them, and the levels at which each may stand."""

    schema: Schema
    bins: int

    @cached_property
    def names(self) -> Mapping[int, str]:
        """The attributes that have more than one value, by number; the class is CLASS."""
        columns = {
            CLASS if name == self.schema.target else at: (name, column)
            for at, (name, column) in enumerate(variables_of(self.schema).items())
        }
        return {at: name for at, (name, column) in columns.items() if column.leaves > 1}

    @property
    def every(self) -> Sequence[int]:
        """Their numbers."""
        return list(self.names)

    @cached_property
    def levels(self) -> Mapping[int, Sequence[Cut]]:
        """The levels of each attribute, the finest first; the class has one."""
        columns = list(self.schema.predictors.values())
        classes = len(self.schema.classes)
        return {
            at: [tuple(range(classes + 1))] if at == CLASS else levels_of(columns[at], self.bins) for at in self.names
        }

    @property
    def binary(self) -> bool:
        """Whether all attributes have two values."""
        return all(len(levels[0]) == 3 for levels in self.levels.values())

    def parent_sets(
        self, child: int, known: Sequence[int], most: float, degree: int, vanilla: bool
    ) -> Iterator[Parents]:
        """List the sets of parents that leave a family at most so many cells and cannot be made finer or larger.

        Without any such set the child stands alone.
        """
        room = most / (len(self.levels[child][0]) - 1)
        levels = {at: self.levels[at][:1] if vanilla else self.levels[at] for at in known}
        found = False
        for number_of in range(min(degree, len(known)), 0, -1):
            for members in itertools.combinations(known, number_of):
                for parents in _level_sets([(at, levels[at]) for at in members], room):
                    free = room / math.prod(len(cut) - 1 for _, cut in parents)
                    more = number_of < degree and any(
                        len(levels[at][-1]) - 1 <= free for at in known if at not in members
                    )
                    if not more:
                        found = True
                        yield parents
        if not found:
            yield ()

    def grid(self, child: int, parents: Parents) -> tuple[Grid, bool]:
        """The marginal of a family, and whether it is by class."""
        cuts = dict(((child, self.levels[child][0]), *parents))
        by_class = cuts.pop(CLASS, None) is not None
        return Grid.marginal(self.schema.shape, cuts), by_class

    def describe(self, child: int, parents: Parents) -> str:
        """A family as a line for people."""
        told = [
            self.names[at] if cut == self.levels[at][0] else f"{self.names[at]} in {len(cut) - 1} parts"
            for at, cut in parents
        ]
        return f"{self.names[child]}: {', '.join(told) if told else 'no parents'}"


def _level_sets(members: Sequence[tuple[int, Sequence[Cut]]], room: float) -> Iterator[Parents]:
    """List the combinations of levels with room for all their cells, none of whose parents could be finer."""
    for levels in itertools.product(*(range(len(each)) for _, each in members)):
        cuts = [each[level] for (_, each), level in zip(members, levels, strict=True)]
        cells = math.prod(len(cut) - 1 for cut in cuts)
        finer = (
            cells // (len(cut) - 1) * (len(each[level - 1]) - 1)
            for (_, each), level, cut in zip(members, levels, cuts, strict=True)
            if level
        )
        if cells <= room and all(each > room for each in finer):
            yield tuple((at, cut) for (at, _), cut in zip(members, cuts, strict=True))


def levels_of(column: Predictor, bins: int) -> list[Cut]:
    """The levels of an attribute, the finest first: of a number, halvings of at most so many parts; of a category, the
    levels of its taxonomy.

    >>> from sfumato.schema.attributes import Categorical
    >>> levels_of(Categorical(taxonomy=[{"A": ["a", "b"]}, "c"]), 16)
    [(0, 1, 2, 3), (0, 2, 3)]
    >>> levels_of(Numeric(lower=0, upper=9), 4)
    [(0, 2, 5, 7, 10), (0, 5, 10)]
    """
    if isinstance(column, Numeric):
        deepest = min(bins.bit_length() - 1, height(column.leaves))
        found = [tuple(borders(column.leaves, depth).tolist()) for depth in range(deepest, 0, -1)]
    else:
        cut: Cut = (0, column.leaves)
        found = list[Cut]()
        while (finer := _one_level_down(column, cut)) != cut:
            cut = finer
            found.insert(0, cut)
    return [cut for at, cut in enumerate(found) if len(cut) > 2 and cut not in found[:at]]


def _one_level_down(column: Predictor, cut: Cut) -> Cut:
    """Divide every range of a cut as the taxonomy says."""
    inner = (column.children(lo, hi) or (lo, hi) for lo, hi in pairwise(cut))
    return tuple(sorted({*cut, *itertools.chain.from_iterable(inner)}))
