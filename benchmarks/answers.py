"""Counts that tell the truth: how often intervals hold it, how wide they are, and how far answers are from it.

Natural questions on one, two and three attributes (ranges between two people's values, values and categories that
someone has) to seeded releases of every private method, on three tables: Adult and a table made up, on which the
constants of `models/intervals` were chosen, and an excerpt of a census, to check them. Methods that cannot publish
all attributes publish a few. Beside them: *histograms*, a plain noisy histogram of each column with all of epsilon and
independence; *own margins*, what the margins that a release bought say alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from sfumato import METHODS, Answers, Categorical, Method, Model, Numeric, Rehearsal, Schema, coded, datasets
from sfumato.arrays import CodedRows
from sfumato.models import model_of
from sfumato.models.merged import Beside
from sfumato.models.regions import RegionModel
from sfumato.release.questions import answers

CENSUS = Path(__file__).resolve().parents[2] / "shared" / "data" / "acs2018.csv.gz"
DICTIONARY = CENSUS.with_name("acs.dictionary.json")
STEPS = {"PINCP": (-20_000, 200_000, 2_500), "POVPIP": (0, 501, 10), "AGEP": (0, 100, 1)}
LEFT_OUT = ("PWGTP", "WGTP", "INDP", "DENSITY")
FEW = {"adult": ("workclass", "marital_status", "race", "sex"), "census": ("SEX", "MSP", "RAC1P", "EDU")}
FEW["made up"] = ("town", "job", "status", "sex")
FLOOR = 0.001
"""An error is relative to the truth, or to this share of the rows if that is more."""
HEADER = (
    *("table", "epsilon", "method", "attributes", "95 % held", "50 % held", "half-width", "score", "error"),
    *("histograms", "own margins"),
)
Floats = NDArray[np.float64]
Question = dict[str, Floats]


@dataclass(frozen=True, eq=False)
class Table:
    """A table by its codes."""

    name: str
    schema: Schema
    rows: CodedRows

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.rows.values())))

    @property
    def leaves(self) -> dict[str, int]:
        """The leaves of each attribute that has several."""
        found = {name: _column(self.schema, name).leaves for name in self.rows}
        return {name: leaves for name, leaves in found.items() if leaves > 1}

    def some(self, names: tuple[str, ...]) -> Table:
        """Keep some attributes and the class."""
        plain = self.schema.plain()
        kept = [name for name in self.rows if name in names or name == self.schema.target]
        plain["attributes"] = {name: plain["attributes"][name] for name in kept}
        return Table(
            f"{self.name}, {len(kept)} attributes", Schema.parse(plain), {name: self.rows[name] for name in kept}
        )

    def first(self, rows: int) -> Table:
        """Keep rows by lot."""
        lot = np.random.default_rng(3).permutation(self.size)[:rows]
        return Table(
            f"{self.name}, {rows:,} rows", self.schema, {name: codes[lot] for name, codes in self.rows.items()}
        )


def _column(schema: Schema, name: str) -> Categorical | Numeric:
    column = schema.attributes[name]
    assert isinstance(column, Categorical | Numeric)
    return column


def adult() -> Table:
    """The bundled table."""
    found = datasets.adult()
    return Table("adult", found.schema, _coded(found.table, found.schema))


def _coded(table: pa.Table, schema: Schema) -> CodedRows:
    rows = coded(table, schema).columns
    return {name: rows[name] for name in schema.attributes if name in rows}


def census() -> Table:
    """The excerpt of a census by its codes."""
    table, schema = census_rows()
    return Table("census", schema, _coded(table, schema))


def census_rows() -> tuple[pa.Table, Schema]:
    """An excerpt of the American Community Survey of 2018; the class is the decile of income, and has eleven values."""
    with gzip.open(CENSUS) as file:
        table = pa.csv.read_csv(file, convert_options=pa.csv.ConvertOptions(strings_can_be_null=False))
    texts = {name: [str(one) for one in table[name].to_pylist()] for name in table.column_names if name not in LEFT_OUT}
    known = json.loads(DICTIONARY.read_text())
    attributes: dict[str, dict[str, object]] = {}
    for name, values in texts.items():
        said = known[name].get("values", {})
        if name in STEPS or "min" in said:
            lower, upper, step = STEPS.get(name, (0, 20, 1))
            attributes[name] = {"kind": "numeric", "lower": lower, "upper": upper, "step": step, "missing": "N"}
        else:
            kind = "class" if name == "PINCP_DECILE" else "categorical"
            missing = {"missing": "N"} if "N" in values else {}
            attributes[name] = {"kind": kind, "taxonomy": sorted(set(values)), **missing}
    schema = Schema.parse({"name": "census", "confirmed": True, "missing_values": ["", "N"], "attributes": attributes})
    return pa.table(texts), schema


def made_up(rows: int = 30_000) -> Table:
    """Strong dependencies: what is not seen drives all columns, and some are nearly functions of others."""
    draw = np.random.default_rng(5)
    kind = draw.choice(6, rows, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])
    town = np.where(draw.random(rows) < 0.7, kind * 3 + draw.integers(0, 3, rows), draw.integers(0, 18, rows))
    age = np.clip((20 + 9 * kind + draw.normal(0, 7, rows)).astype(int), 0, 89)
    job = np.where(draw.random(rows) < 0.8, (kind * 2 + (age > 40)) % 12, draw.integers(0, 12, rows))
    status = np.where(age < 22, 0, np.where(draw.random(rows) < 0.75, 1 + kind % 4, draw.integers(1, 5, rows)))
    pay = np.where(age < 18, 0, np.clip((30 * np.exp(draw.normal(0, 0.6, rows)) * (1 + job / 6)).astype(int), 0, 199))
    rent = np.where(status == 2, 0, np.clip((pay * 0.3 + draw.normal(0, 6, rows)).astype(int), 0, 99))
    sex, ward = draw.integers(0, 2, rows), draw.integers(0, 9, rows)
    rich = (pay > 60) | ((sex == 1) & (draw.random(rows) < 0.3))
    numbers = {"age": (age, 89), "pay": (pay, 199), "rent": (rent, 99)}
    values = {"town": (town, 18), "job": (job, 12), "status": (status, 5), "sex": (sex, 2), "ward": (ward, 9)}
    attributes: dict[str, dict[str, object]] = {
        name: {"kind": "numeric", "lower": 0, "upper": upper} for name, (_, upper) in numbers.items()
    }
    attributes |= {
        name: {"kind": "categorical", "taxonomy": [f"{name} {at}" for at in range(many)]}
        for name, (_, many) in values.items()
    }
    attributes["rich"] = {"kind": "class", "taxonomy": ["no", "yes"]}
    schema = Schema.parse({"name": "made up", "confirmed": True, "attributes": attributes})
    every = {name: codes for name, (codes, _) in (numbers | values).items()} | {"rich": rich.astype(int)}
    return Table("made up", schema, {name: codes.astype(np.uint8) for name, codes in every.items()})


def questions(table: Table, ways: int, number: int) -> tuple[list[Question], Floats]:
    """Draw natural questions that someone satisfies, and count the truth."""
    draw, names = np.random.default_rng(20 + ways), list(table.leaves)
    asked: list[Question] = []
    truths: list[int] = []
    while len(asked) < number:
        question = {names[at]: _clause(table, names[at], draw) for at in draw.choice(len(names), ways, replace=False)}
        inside = np.ones(table.size, np.bool_)
        for name, weights in question.items():
            inside &= weights[table.rows[name]] > 0
        if inside.any() and not any(weights.all() for weights in question.values()):
            asked.append(question)
            truths.append(int(inside.sum()))
    return asked, np.array(truths, np.float64)


def _clause(table: Table, name: str, draw: np.random.Generator) -> Floats:
    """Take a range between the values of two people; or a value, or a category above it, that someone has."""
    column, codes = _column(table.schema, name), table.rows[name]
    weights = np.zeros(column.leaves)
    if isinstance(column, Numeric):
        low, high = np.sort(codes[draw.integers(0, table.size, 2)]).tolist()
        weights[low : high + 1] = 1
        return weights
    leaf = int(codes[draw.integers(0, table.size)])
    above = [node for node in column.tree.nodes if node.lo <= leaf < node.hi and node.hi - node.lo < column.leaves]
    node = above[draw.integers(0, len(above))] if draw.random() < 0.35 and above else None
    weights[slice(leaf, leaf + 1) if node is None else slice(node.lo, node.hi)] = 1
    return weights


def histograms(table: Table, epsilon: float, seed: int) -> Callable[[Question], float]:
    """Measure every column with its part of epsilon; take several for independent."""
    draw, part = np.random.default_rng(seed), 1 - np.exp(-epsilon / len(table.leaves))
    counts = {}
    for name, leaves in table.leaves.items():
        noise = draw.geometric(part, leaves) - draw.geometric(part, leaves)
        counts[name] = np.bincount(table.rows[name], minlength=leaves) + noise
    total = np.mean([one.sum() for one in counts.values()])

    def answer(question: Question) -> float:
        if len(question) == 1:
            ((name, weights),) = question.items()
            return max(float(counts[name] @ weights), 0.0)
        people = {name: np.maximum(counts[name], 0) for name in question}
        return float(total * np.prod([people[name] @ one / people[name].sum() for name, one in question.items()]))

    return answer


@dataclass(frozen=True)
class Row:
    """How a method answers questions of one kind on one table."""

    table: str
    epsilon: str
    method: str
    ways: int
    held: float
    half_held: float
    width: float
    score: float
    error: float
    histograms: float
    own_margins: float


def released(table: Table, method: Method, epsilon: str, seed: int) -> Model:
    """Publish, and make the model."""
    classes = table.rows[table.schema.target] if table.schema.target else np.zeros(table.size, np.uint8)
    columns = [table.rows[name] for name in table.schema.predictors]
    draft, _ = Rehearsal(method, table.schema, Fraction(epsilon), seed).run(columns, classes)
    return model_of(table.schema, draft)


def measured(table: Table, name: str, epsilon: str, releases: int, number: int) -> Iterator[Row]:
    """Ask releases of a method."""
    models = [released(table, METHODS[name](), epsilon, 100 + seed) for seed in range(releases)]
    names = list(table.schema.predictors)
    for ways in (1, 2, 3):
        asked, truth = questions(table, ways, number)
        least = np.maximum(truth, FLOOR * table.size)
        found = [answers(model, asked, str) for model in models]
        alone = [histograms(table, float(epsilon), seed) for seed in range(releases)]
        others = np.stack([[one(question) for question in asked] for one in alone])
        own = [abs(one - truth[at]) / least[at] for at, one in _own_margins(models, names, asked)] if ways == 1 else []
        held, half, width, score = (np.mean(one) for one in zip(*(_judged(one, truth) for one in found), strict=True))
        yield Row(
            *(table.name, epsilon, name, ways, float(held), float(half), float(width), float(score)),
            float(np.median([np.abs(one.values - truth) / least for one in found])),
            float(np.median(np.abs(others - truth) / least)),
            float(np.median(own)) if own else float("nan"),
        )


def _own_margins(models: list[Model], names: list[str], asked: list[Question]) -> Iterator[tuple[int, float]]:
    """Answer one-way questions by what a release's margin of that attribute says alone."""
    for model in models:
        if not isinstance(model, RegionModel):
            continue
        people = {names[at]: one.people(Beside.everyone(one.leaves)) for at, one in model.margins.items()}
        for at, question in enumerate(asked):
            ((name, weights),) = question.items()
            if name in people:
                yield at, float(people[name] @ weights)


def _judged(found: Answers, truth: Floats) -> tuple[float, float, float, float]:
    """How often intervals of 95 % and of 50 % hold the truth, half the width of the first, and its score (Gneiting and
    Raftery: the width, and 2 / 0.05 times what is missed).
    """
    low, high = found.between(0.95)
    inner, outer = found.between(0.5)
    missed = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return (
        float(((low <= truth) & (truth <= high)).mean()),
        float(((inner <= truth) & (truth <= outer)).mean()),
        float(np.median((high - low) / 2 / truth)),
        float((high - low + 40 * missed).mean()),
    )


def tables() -> Mapping[str, Callable[[], Table]]:
    """All tables, those with few attributes and few rows too."""
    made: dict[str, Callable[[], Table]] = {"adult": adult, "made up": made_up}
    if CENSUS.exists():
        made["census"] = census
    else:
        print(f"no census: {CENSUS} is not there")
    return made


def cases(small: bool) -> Iterator[tuple[Callable[[], Table], str]]:
    """Pair tables with the methods that can publish them."""
    for name, make in tables().items():
        for method in ("marginals", "diffgen", "cdiffgen", "diffmulti"):
            yield make, method
            if small:
                yield partial(_few_rows, make), method
        for method in METHODS:
            yield partial(_few_attributes, make, name), method


def _few_rows(make: Callable[[], Table]) -> Table:
    return make().first(3_000)


def _few_attributes(make: Callable[[], Table], name: str) -> Table:
    return make().some(FEW[name])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--epsilons", default="0.1,1")
    parser.add_argument("--small", action="store_true", help="Also tables of 3,000 rows.")
    given = parser.parse_args()
    print(f"| {' | '.join(HEADER)} |\n|{' --- |' * len(HEADER)}")
    for make, method in cases(given.small):
        table = make()
        for epsilon in given.epsilons.split(","):
            for row in measured(table, method, epsilon, given.releases, given.questions):
                own = "" if np.isnan(row.own_margins) else f"{row.own_margins:.4f}"
                print(
                    f"| {row.table} | {row.epsilon} | {row.method} | {row.ways} | {100 * row.held:.0f} | "
                    f"{100 * row.half_held:.0f} | {row.width:.3f} | {row.score:,.0f} | {row.error:.4f} | "
                    f"{row.histograms:.4f} | {own} |",
                    flush=True,
                )
    print(speed())


def speed() -> str:
    """Time fitting Adult's releases, and 10,000 questions."""
    table, lines = adult(), []
    asked = [one for ways in (1, 2, 3) for one in questions(table, ways, 3_334)[0]][:10_000]
    for method in ("marginals", "diffgen", "cdiffgen", "diffmulti"):
        model = released(table, METHODS[method](), "1", 1)
        begun = time.process_time()
        answers(model, asked[:1], str)
        fitted = time.process_time() - begun
        begun = time.process_time()
        answers(model, asked, str)
        lines.append(f"{method}: fitted in {fitted:.2f} s, 10,000 questions in {time.process_time() - begun:.2f} s")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
