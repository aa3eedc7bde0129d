"""The confidence-capped framework (Sattar, Li, Ding, Liu, Vincent): a sample of the records, each generalized just as
far as it needs.

A record is published when what its group lets an adversary claim is no more believable than it is to be expected that
such a record occurs at all. One that is not so at any generalization within the distortion limit is suppressed.

What is expected follows from public knowledge, which its holder writes down in two tables.
`attribute,value,probability`: the values of one attribute are leaves, categories or intervals such as `[20, 25)` that
hold every leaf once; inside one, leaves are equally probable. `condition,value,probability`: how probable a sensitive
value is among people of a condition.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from sfumato.arrays import NONE, Booleans, Floats, Integers, row_keys
from sfumato.errors import MethodError, QueryError
from sfumato.exact import read_fraction
from sfumato.geometry.grid import Grid
from sfumato.geometry.regions import Boxes
from sfumato.methods.method import names, optional, parameter, required, truth, words
from sfumato.privacy.exact_counts import ExactCounts
from sfumato.privacy.measurements import Draft
from sfumato.privacy.tally import Combinations, Tally
from sfumato.release.promises import ConfidenceCap, Knowledge, Rule, Source, expected_confidence
from sfumato.schema.attributes import Categorical, Identifier, Numeric
from sfumato.schema.conditions import read_condition
from sfumato.schema.hierarchy import Hierarchy
from sfumato.schema.schema import Predictor, Schema
from sfumato.without_epsilon.method import MethodWithoutEpsilon, keep_quasi

SLACK = 1e-9
"""Distortions that differ by less than this are the same."""
TIE = 1e-12
"""Confidences that differ by less than this are the same: floating point must not decide."""
TOLERANCE = Fraction(1, 1000)
"""By how much the probabilities of an attribute may miss one: they are rounded when they are written down."""
STEPS = (100, 50, 20, 10, 5, 2)
"""Into how many steps shares may be rounded, the finest first."""
WORTH = 20
"""How many records a step is worth at least: to within so many, nobody learns how many have a value."""

HOW = "records climb one by one until each is safe, or are left out; how many is told to the holder alone"
"""What a release tells of how it was made."""
GENERAL = "fully general and still unsafe"
"""Why a record is suppressed that has no step left."""
DISTORTED = "unsafe within the distortion limit"
"""Why a record is suppressed that has steps left, but none within the limit."""


def _rate(_: str, value: Any) -> Fraction:
    """Read a sampling rate."""
    rate = read_fraction(value)
    if rate is None or not 0 < rate <= 1 or rate.denominator > 10**9:
        raise MethodError(
            f"sampling ({str(value)[:40]}) must be a rate greater than 0 and at most 1", "Give for example 0.9."
        )
    return rate


def _limit(_: str, value: Any) -> Fraction:
    """Read a limit of distortion."""
    limit = read_fraction(value)
    if limit is None or not 0 <= limit <= 1:
        raise MethodError(f"distortion ({str(value)[:40]}) must be a number from 0 to 1", "Give for example 0.6.")
    return limit


@dataclass(frozen=True, kw_only=True)
class Confidence(MethodWithoutEpsilon):
    """Observed confidence capped by expected confidence, record by record."""

    name: ClassVar[str] = "confidence"
    order: ClassVar[int] = 1
    suits: ClassVar[str] = "a sample of records, each as fine as public knowledge lets it be"
    arithmetic: ClassVar[str] = "no epsilon: a cap on what a group lets someone claim"
    unsuited: ClassVar[str] = "as mondrian; for classification by groups, which overlap"
    summary: ClassVar[str] = (
        "capped confidence, **no epsilon**: samples the records and generalizes each just as far as it needs, so that "
        "nobody can claim more from it than public statistics lead to expect (Sattar et al.)"
    )
    additions: ClassVar[str] = (
        "records that fare alike climb together: a million in a second; rules that agree with the statistics; "
        "`sfumato explain`"
    )
    reason: ClassVar[str] = "confidence cap: records are generalized and counted exactly"
    model: ClassVar[str] = "boxes"
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"sensitive": "class", "statistics_from_data": True, "distortion": 1},
    )

    sensitive: str = required("The attribute in which confidence is capped; it is published as it is.", read=words)
    quasi: tuple[str, ...] | None = parameter(
        None,
        "The quasi-identifiers, separated by commas: they are generalized and, with the sensitive attribute, alone "
        "published. All others, if not given.",
        read=optional(names),
    )
    sampling: Fraction = parameter(
        Fraction(9, 10), "With what probability each record is drawn to be published.", read=_rate
    )
    distortion: Fraction = parameter(
        Fraction(3, 5),
        "How far a record may be generalized, from 0 (not at all) to 1 (wholly); others are suppressed.",
        read=_limit,
    )
    statistics: str | None = parameter(
        None, "A CSV file of public statistics: attribute, value, probability.", read=words, file=True
    )
    rules: str | None = parameter(
        None,
        "A CSV file of public rules: condition, value (of the sensitive attribute), probability.",
        read=words,
        file=True,
    )
    statistics_from_data: bool = parameter(
        False,
        "Whether the table's own margins, rounded, take the place of public statistics, which leaks them.",
        read=truth,
    )

    @property
    def drawn(self) -> Fraction:
        """The sampling rate."""
        return self.sampling

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters as plain values; the statistics themselves are in the promise."""
        return dict(super().parameters) | {"statistics": "of the promise"}

    def narrowed(self, schema: Schema) -> Schema:
        """Put the sensitive attribute in the place of the class; refuse to do without statistics, or with two."""
        if self.sensitive in (self.quasi or ()):
            raise MethodError(
                f"sensitive ({self.sensitive}) must not be a quasi-identifier, too", "Leave it out of --quasi."
            )
        if self.statistics is None and not self.statistics_from_data:
            raise MethodError(
                "confidence must have public statistics to tell what is expected",
                "Give --statistics public.csv or, if the table's own may be published, --statistics-from-data yes.",
            )
        if self.statistics is not None and self.statistics_from_data:
            raise MethodError(
                "statistics must be public or the table's own, and not both", "Leave out --statistics-from-data."
            )
        return keep_quasi(self.name, self.quasi, schema.with_target(self.sensitive))

    def promise(self, schema: Schema) -> ConfidenceCap:
        """Promise what is capped, and by what knowledge."""
        known = None if self.statistics is None else self._knowledge(schema)
        return ConfidenceCap(tuple(schema.predictors), self.sensitive, self.sampling, known)

    def informed(self, counts: ExactCounts, schema: Schema) -> Confidence:
        """The method with statistics of the table, if that is allowed: no finer than what is published, and rounded."""
        if not self.statistics_from_data:
            return self
        everything = Tally(Grid.whole(schema.shape), len(schema.classes), tuple(range(len(schema.shape))))
        found = counts.tally(everything, "margins, in place of public statistics")
        leaves = {name: found.by_leaf[at].dense(1)[0].sum(axis=1).tolist() for at, name in enumerate(schema.predictors)}
        own = {name: _rounded(leaves[name], column) for name, column in schema.predictors.items()}
        classes = schema.attributes[self.sensitive]
        assert isinstance(classes, Categorical)
        own[self.sensitive] = _rounded(found.by_place[0].tolist(), classes.model_copy(update={"finest": None}))
        return replace(self, statistics=write_statistics(own))

    def publish(self, counts: ExactCounts, schema: Schema) -> Draft:
        """List the records at the finest values that may be published, and let them climb."""
        hierarchies = [Hierarchy.of(column) for column in schema.predictors.values()]
        grid = Grid(tuple(hierarchy.finest for hierarchy in hierarchies))
        found = counts.combinations(grid, len(schema.classes), "combinations of values")
        climb = Climb.of(found, hierarchies, self._knowledge(schema), float(self.sampling), float(self.distortion))
        climb.run()
        if not len(climb.counts):
            raise MethodError(
                "at least one record must be publishable, and every one would be suppressed",
                "Allow more distortion, sample less, or look at the statistics.",
            )
        boxes, groups = climb.groups()
        return self.draft(
            replace(boxes, sampling=self.sampling), groups, (HOW,), tuple(_described(climb, list(schema.predictors)))
        )

    def _knowledge(self, schema: Schema) -> Knowledge:
        """Read the statistics and rules."""
        source: Source = "the table itself" if self.statistics_from_data else "public"
        return read_knowledge(self.statistics or "", self.rules, schema, source)


def _rounded(leaves: Sequence[int], column: Any) -> list[tuple[str, Fraction]]:
    """The shares of the finest values that may be published, in coarse steps.

    Exact shares would count the people of each value, and taking away those who are published would leave the
    suppressed. So shares are rounded down to the step below, and what is left over, which is known from the rest, goes
    to all values alike: a value that is too rare for a step cannot be told from one that nobody has, nor one that
    nearly everyone has from one that all have.
    """
    total = max(sum(leaves), 1)
    steps = next((one for one in STEPS if total >= one * WORTH), 1)
    values = list(pairwise(Hierarchy.of(column).finest))
    floors = [max(sum(leaves[lo:hi]) * steps - 1, 0) // total for lo, hi in values]
    even = Fraction(steps - sum(floors), len(values))
    return [(column.label(lo, hi), (floor + even) / steps) for (lo, hi), floor in zip(values, floors, strict=True)]


def _described(climb: Climb, names: Sequence[str]) -> Iterator[str]:
    """Say what every round of the climb did, and how many records were suppressed for what reason."""
    for number, went in enumerate(climb.steps, start=1):
        along = ", ".join(f"{names[at]} {records:,}" for at, records in Counter(went).most_common())
        yield f"round {number}: {sum(went.values()):,} records one step up ({along})"
    yield f"published: {int(climb.counts.sum()):,} records"
    for reason, records in climb.suppressed.items():
        yield f"suppressed: {records:,} records, {reason}"


@dataclass(eq=False)
class Climb:
    """Bottom-up local recoding: records climb their hierarchies, one step of one attribute at a time, until safe.

    Records with the same generalized values and the same sensitive value are of one kind. They fare alike, so they
    climb together, all that are unsafe in one round, and the order of records does not matter. A group that loses
    members is looked at again in the next round, also by those who stayed: the rounds end when everyone is safe in the
    groups as they then are. They do end, because every round takes someone up or out.
    """

    hierarchies: Sequence[Hierarchy]
    knowledge: Knowledge
    sampling: float
    limit: float
    """the most distortion that a record may have"""
    nodes: list[Integers]
    """by attribute, the value of its hierarchy that each kind has"""
    values: Integers
    """the sensitive value of each kind"""
    counts: Integers
    """how many records there are of each kind"""
    suppressed: Counter[str] = field(default_factory=lambda: Counter({GENERAL: 0, DISTORTED: 0}))
    """how many records were left out, by reason"""
    steps: list[Counter[int]] = field(default_factory=list)
    """for each round in which someone went up, how many records did so along each attribute"""

    @classmethod
    def of(
        cls,
        found: Combinations,
        hierarchies: Sequence[Hierarchy],
        knowledge: Knowledge,
        sampling: float,
        limit: float,
    ) -> Climb:
        """Begin with every record at the finest values that may be published."""
        nodes = [one.starts[part] for one, part in zip(hierarchies, found.parts, strict=True)]
        return cls(hierarchies, knowledge, sampling, limit, nodes, found.classes, found.counts)

    def run(self) -> None:
        """Take unsafe records up, round after round, or out where there is no step left."""
        self._masses = [self.knowledge.masses(at, one.ranges) for at, one in enumerate(self.hierarchies)]
        self._probability = self._probabilities(np.arange(len(self.counts)))
        self._gather()
        unsafe = np.flatnonzero(self._unsafe() | (distortion(self.hierarchies, self.nodes) > self.limit + SLACK))
        while len(unsafe):
            self._lift(unsafe)
            self._gather()
            unsafe = np.flatnonzero(self._unsafe())

    def groups(self) -> tuple[Boxes, Integers]:
        """The groups, and their counts by sensitive value."""
        starts = self._starts
        ranges = [one.ranges[node[starts]] for one, node in zip(self.hierarchies, self.nodes, strict=True)]
        counts = np.zeros((len(starts), len(self.knowledge.sensitive)), np.int64)
        counts[np.repeat(np.arange(len(starts)), self._kinds()), self.values] = self.counts
        return Boxes(self.knowledge.shape, np.stack(ranges, axis=1)), counts

    def _gather(self) -> None:
        """Put kinds of the same group side by side, and add up those that have become the same."""
        values = len(self.knowledge.sensitive)
        keys = row_keys([*self.nodes, self.values], [*(len(one.ranges) for one in self.hierarchies), values])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        first = np.flatnonzero(np.diff(keys, prepend=NONE))
        self.counts = np.add.reduceat(self.counts[order], first) if len(first) else self.counts
        self._keep(order[first])
        self._starts = np.flatnonzero(np.diff(keys[first] // values, prepend=NONE))

    def _keep(self, kinds: Integers) -> None:
        """Keep some kinds, in this order; their counts are kept by the caller."""
        self.nodes = [node[kinds] for node in self.nodes]
        self.values, self._probability = self.values[kinds], self._probability[kinds]

    def _probabilities(self, kinds: Integers) -> Floats:
        """How probable records of some kinds are by public knowledge."""
        masses = [mass[node[kinds]] for mass, node in zip(self._masses, self.nodes, strict=True)]
        return self.knowledge.joined(masses, self.values[kinds])

    def _unsafe(self) -> Booleans:
        """Which kinds have an observed confidence above the expected one."""
        sizes = np.repeat(np.add.reduceat(self.counts, self._starts), self._kinds()) if len(self.counts) else 1
        observed = self.sampling * self.counts / sizes
        return np.asarray(observed > expected_confidence(self._probability, int(self.counts.sum())) + TIE)

    def _kinds(self) -> Integers:
        """Count the kinds of each group."""
        return np.diff(self._starts, append=len(self.counts))

    def _lift(self, unsafe: Integers) -> None:
        """Take kinds one step up; those for which there is none, out."""
        along = self._chosen([node[unsafe] for node in self.nodes])
        went: Counter[int] = Counter()
        for attribute, hierarchy in enumerate(self.hierarchies):
            kinds = unsafe[along == attribute]
            self.nodes[attribute][kinds] = hierarchy.parents[self.nodes[attribute][kinds]]
            went[attribute] = int(self.counts[kinds].sum())
        if +went:
            self.steps.append(+went)
        self._probability[unsafe] = self._probabilities(unsafe)
        self._suppress(unsafe[along == NONE])

    def _chosen(self, nodes: Sequence[Integers]) -> Integers:
        """The attribute along which each kind goes one step up; NONE where no step stays within the distortion limit.

        It is the one of the largest left domain size, the first of equals.
        """
        along, largest = np.full(len(nodes[0]), NONE), np.zeros(len(nodes[0]), np.int64)
        now = distortion(self.hierarchies, nodes)
        for attribute, (hierarchy, node) in enumerate(zip(self.hierarchies, nodes, strict=True)):
            above = hierarchy.parents[node]
            after = now + (hierarchy.distortions[above] - hierarchy.distortions[node]) / len(nodes)
            left = np.where((above != NONE) & (after <= self.limit + SLACK), hierarchy.left_domain_sizes[node], 0)
            along[left > largest] = attribute
            largest = np.maximum(left, largest)
        return along

    def _suppress(self, kinds: Integers) -> None:
        """Leave kinds out, and count their records by reason."""
        general = np.ones(len(kinds), np.bool_)
        for hierarchy, node in zip(self.hierarchies, self.nodes, strict=True):
            general &= hierarchy.parents[node[kinds]] == NONE
        for reason, which in ((GENERAL, general), (DISTORTED, ~general)):
            self.suppressed[reason] += int(self.counts[kinds[which]].sum())
        kept = np.ones(len(self.counts), np.bool_)
        kept[kinds] = False
        self.counts = self.counts[kept]
        self._keep(np.flatnonzero(kept))


def distortion(hierarchies: Sequence[Hierarchy], nodes: Sequence[Integers]) -> Floats:
    """The mean over attributes of how far each record's values have climbed."""
    return np.asarray(np.mean([one.distortions[node] for one, node in zip(hierarchies, nodes, strict=True)], axis=0))


INTERVAL = re.compile(r"\[\s*([^,\s]+)\s*,\s*([^,\s]+)\s*([)\]])")
"""An interval as it is written in statistics: `[20, 25)` or `[20, 24]`."""
Part = tuple[Booleans, Fraction]
"""Some leaves, and the probability of all of them together."""


def read_knowledge(statistics: str, rules: str | None, schema: Schema, source: Source) -> Knowledge:
    """Read the probabilities of all leaves of a narrowed schema, and rules."""
    columns = {name: column for name, column in schema.attributes.items() if not isinstance(column, Identifier)}
    found: dict[str, list[Part]] = {name: [] for name in columns}
    for row, (name, value, chance) in _rows("statistics", statistics, ("attribute", "value", "probability")):
        if name in found:
            found[name].append((_leaves(schema, name, value, row), _probability("statistics", row, chance)))
    marginals = {name: _marginal(name, column, found[name]) for name, column in columns.items()}
    sensitive = marginals.pop(str(schema.target))
    return Knowledge(tuple(marginals.values()), sensitive, tuple(_rules(rules or "", schema)), source)


def write_statistics(marginals: Mapping[str, Sequence[tuple[str, Fraction]]]) -> str:
    """Write probabilities of named values as `read_knowledge` reads them."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("attribute", "value", "probability"))
    writer.writerows((name, value, str(chance)) for name, parts in marginals.items() for value, chance in parts)
    return text.getvalue()


def _rows(what: str, text: str, names: tuple[str, str, str]) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """Read three columns of a CSV text: each row with its number."""
    try:
        rows = list(csv.DictReader(io.StringIO(text), skipinitialspace=True))
    except csv.Error:
        raise MethodError(f"the {what} must be a CSV file, and are none", "Write it as UTF-8, with commas.") from None
    for row, fields in enumerate(rows, start=2):
        first, second, third = (fields.get(name) for name in names)
        if first is None or second is None or third is None:
            raise MethodError(
                f"row {row} of the {what} must have the columns {', '.join(names)}",
                "Begin the file with a row of these names.",
            )
        yield row, (first.strip(), second.strip(), third.strip())


def _probability(what: str, row: int, text: str) -> Fraction:
    chance = read_fraction(text)
    if chance is None or not 0 <= chance <= 1:
        raise MethodError(
            f"row {row} of the {what}: probability ({text[:40]}) must be a number from 0 to 1", "Correct it."
        )
    return chance


def _leaves(schema: Schema, name: str, value: str, row: int) -> Booleans:
    """Mark the leaves that a value of an attribute means."""
    interval = INTERVAL.fullmatch(value) if isinstance(schema.attributes[name], Numeric) else None
    quoted = value.replace("'", "''")
    condition = f"\"{name}\" = '{quoted}'"
    if interval:
        condition = f'"{name}" >= {interval[1]} and "{name}" {"<" if interval[3] == ")" else "<="} {interval[2]}'
    try:
        weights = read_condition(schema, condition)[name]
    except QueryError as error:
        raise MethodError(f"row {row} of the statistics: {error.problem}", error.remedy) from None
    return _whole(weights, f"row {row} of the statistics: value ({value[:40]})")


def _whole(weights: Floats, what: str) -> Booleans:
    """Mark the leaves that have weight 1; refuse parts of a leaf, and no leaf at all."""
    if not np.isin(weights, (0.0, 1.0)).all() or not weights.any():
        raise MethodError(f"{what} must be made of leaves of the schema", "Follow the borders of its grid.")
    return weights > 0


def _marginal(name: str, column: Predictor, parts: Sequence[Part]) -> Floats:
    """Put the probabilities of an attribute's values together: one for each leaf."""
    named = np.zeros(column.leaves, np.int64)
    for leaves, _ in parts:
        named += leaves
    for wrong, what in ((named == 0, "a probability"), (named > 1, "one probability only")):
        if wrong.any():
            leaf = int(np.argmax(wrong))
            raise MethodError(
                f"every leaf of {name} must have {what} in the statistics ({column.label(leaf, leaf + 1)})",
                "Add or remove its row.",
            )
    total = sum((chance for _, chance in parts), Fraction(0))
    if abs(total - 1) > TOLERANCE:
        raise MethodError(
            f"the probabilities of {name} ({float(total):.6g}) must sum to one", "Correct the statistics."
        )
    return np.asarray(np.sum([leaves * float(chance / total / int(leaves.sum())) for leaves, chance in parts], axis=0))


def _rules(text: str, schema: Schema) -> list[Rule]:
    """Read rules, those of one condition together."""
    chances: dict[str, dict[int, float]] = {}
    for row, (condition, value, chance) in _rows("rules", text, ("condition", "value", "probability")):
        if value not in schema.classes:
            raise MethodError(
                f"row {row} of the rules: value ({value[:40]}) must be a value of {schema.target}",
                f"It has {', '.join(schema.classes[:20])}.",
            )
        own = chances.setdefault(condition, {})
        if schema.classes.index(value) in own:
            raise MethodError(f"row {row} of the rules must not repeat another", "Leave one of the two out.")
        own[schema.classes.index(value)] = float(_probability("rules", row, chance))
    return [Rule(_where(condition, schema), own) for condition, own in chances.items()]


def _where(condition: str, schema: Schema) -> dict[int, tuple[tuple[int, int], ...]]:
    """Read a condition on quasi-identifiers as ranges of leaves."""
    what = f"condition ({condition[:60]}) of the rules"
    try:
        asked = read_condition(schema, condition)
    except QueryError as error:
        raise MethodError(f"{what}: {error.problem}", error.remedy) from None
    if schema.target in asked:
        raise MethodError(f"{what} must not be about {schema.target}", "Use quasi-identifiers alone.")
    places = {name: at for at, name in enumerate(schema.predictors)}
    return {places[name]: _ranges(_whole(weights, what)) for name, weights in asked.items()}


def _ranges(leaves: Booleans) -> tuple[tuple[int, int], ...]:
    """Write leaves as ranges."""
    ends = np.flatnonzero(np.diff(leaves, prepend=False, append=False)).tolist()
    return tuple((lo, hi) for at, (lo, hi) in enumerate(pairwise(ends)) if at % 2 == 0)
