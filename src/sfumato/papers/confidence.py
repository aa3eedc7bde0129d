"""The confidence framework, section 6, beside Mondrian and DiffGen: suppression, range counts, accuracy, and time.

As in the paper, statistics are the table's own, sampling is 0.9 and the distortion limit 0.6. Max.k is the least k of a
ladder at which every record of Mondrian's groups satisfies the criterion, Avg.k the mean size of our groups.

The census tables of the paper are not public in the form that it used, so ours are drawn: census-like tables of any
size, made from Adult's margins and the dependencies that matter. An attribute is drawn given a few that were drawn
before, with the frequencies that Adult has. Adult's fourteen occupations are divided into fifty by education, and its
two incomes into fifty classes of salary by education and age, so that sensitive values are as many as in the census
extracts of the papers. A seed says everything.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pyarrow as pa

from sfumato import (
    Boxes,
    Confidence,
    ConfidenceCap,
    MethodWithoutEpsilon,
    Mondrian,
    Release,
    Schema,
    SplitScore,
    datasets,
)
from sfumato.arrays import CodedRows, Floats, Integers
from sfumato.evaluate.fidelity import LARGE, SMALL, RangeQuery, leaves_of
from sfumato.evaluate.learning import LEARNERS, teach
from sfumato.evaluate.runs import Key, Outcome
from sfumato.papers.diffgen import CA
from sfumato.papers.figures import (
    Between,
    Beyond,
    Claim,
    Effort,
    Evidence,
    Figure,
    Found,
    Paper,
    Parts,
    mean_and_doubt,
    statement,
)
from sfumato.papers.runs import (
    DIFFGEN,
    DIFFGEN_GAIN,
    DIFFGEN_OURS,
    RAW,
    adult,
    coded,
    divided,
    learning_keys,
    published,
    timed,
)
from sfumato.pictures.canvas import Curve, Panel

CensusCodes = dict[str, Integers]
"""The codes of a census-like table, by attribute."""
NAME = "confidence"
QUASI = ("age", "sex", "education", "marital_status", "race", "native_country")
"""The quasi-identifiers."""
PARENTS: dict[str, tuple[str, ...]] = {
    "sex": (),
    "band": ("sex",),
    "age": ("band", "sex"),
    "marital_status": ("band", "sex"),
    "education": ("band",),
    "race": (),
    "native_country": ("race",),
    "occupation": ("education", "sex"),
    "income": ("education", "marital_status", "occupation"),
}
"""The attributes given which each attribute is drawn, in the order of drawing; a band is ten years of age."""
SALARIES, BAND = 50, 10
"""The number of classes of salary, and the years of a band of age."""
CONFIDENCE, AVERAGE_K, MAX_K, INTERACTIVE = "confidence", "Mondrian, Avg.k", "Mondrian, Max.k", "Laplace, interactive"
"""The methods of runs."""
LADDER = (5, 10, 20, 30, 50, 70, 90, 120, 150, 200, 300, 500)
"""Every k that is tried for Max.k."""
LIMIT = Fraction(3, 5)
"""The distortion limit of the paper."""
TOLERANCE = 1e-9
"""How much an observed confidence may exceed the expected one, by rounding."""
TAUGHT = ("pruned tree", "naive Bayes", "logistic regression", "linear SVM")
"""The learners of figures 5 and 9: J48, NB, LR and SVM."""
SENSITIVE = ("salary", "occupation")
SIZES = (25_000, 75_000, 150_000)
LIMITS = ("0.2", "0.3", "0.4", "0.5", "0.6", "0.8", "1")
"""The distortion limits of figure 2."""
STATED_LIMIT = "0.6"
"""The distortion limit at which the paper states that nobody is suppressed."""
QUERIES = 1000
"""The number of range counts."""
QUERY_SIZES = ("small", "large", "all")
GROWN = (100_000, 200_000, 500_000, 1_000_000)
"""The numbers of rows of figure 10."""
MONDRIAN = "Mondrian, k = 10"
"""The method beside ours in figure 10."""
CENSUS = "the census tables are drawn from Adult's frequencies"
"""What notes on claims say of the tables."""


def census_schema(sensitive: str) -> Schema:
    """The schema of a table: Adult's quasi-identifiers, and fifty occupations or salaries."""
    plain = datasets.adult().schema.plain()
    attributes = {name: plain["attributes"][name] for name in QUASI}
    taxonomy = _occupations() if sensitive == "occupation" else [f"{step}k" for step in range(2, 2 * SALARIES + 1, 2)]
    attributes[sensitive] = {"kind": "class", "taxonomy": taxonomy}
    return Schema.parse({"name": f"census, {sensitive}", "confirmed": True, "attributes": attributes})


def _occupations() -> list[dict[str, list[str]]]:
    """Divide each of Adult's fourteen occupations in three or four."""
    names = datasets.adult().schema.attributes["occupation"].tree.leaves  # type: ignore[union-attr]
    return [{name: [f"{name} {part + 1}" for part in range(_kinds(at))]} for at, name in enumerate(names)]


def _kinds(occupation: int) -> int:
    """In how many an occupation is divided: fourteen times three, and eight more, are fifty."""
    return 4 if occupation < 8 else 3


def census(sensitive: str, rows: int, seed: int = 0) -> pa.Table:
    """Draw a table."""
    rng = np.random.default_rng(seed)
    drawn = _draw(rows, rng)
    schema = census_schema(sensitive)
    own = _occupation(drawn, rng) if sensitive == "occupation" else _salary(drawn, rng)
    columns = {
        name: np.asarray(schema.predictors[name].tree.leaves)[drawn[name]]  # type: ignore[union-attr]
        for name in QUASI
        if name != "age"
    }
    return pa.table({"age": drawn["age"] + 17} | columns | {sensitive: np.asarray(schema.classes)[own]})


def _draw(rows: int, rng: np.random.Generator) -> CensusCodes:
    """Draw attribute after attribute, each by Adult's frequencies given its parents; where Adult has nobody, evenly."""
    adult = datasets.adult()
    seen: CensusCodes = {name: one.astype(np.int64) for name, one in coded(adult.table, adult.schema).items()}
    seen["band"] = seen["age"] // BAND
    sizes = {name: int(one.max()) + 1 for name, one in seen.items()}
    drawn: CensusCodes = {}
    for name, parents in PARENTS.items():
        shape = [sizes[one] for one in parents]
        keys, given = (
            np.ravel_multi_index([table[one] for one in parents], shape) if parents else np.zeros(length, np.int64)
            for table, length in ((seen, adult.table.num_rows), (drawn, rows))
        )
        counts = np.zeros((int(np.prod(shape)), sizes[name]))
        np.add.at(counts, (keys, seen[name]), 1.0)
        counts[counts.sum(axis=1) == 0] = 1.0
        running = np.cumsum(counts, axis=1)
        at = rng.random(rows) * running[given, -1]
        drawn[name] = (running[given] <= at[:, None]).sum(axis=1)
    return drawn


def _occupation(drawn: CensusCodes, rng: np.random.Generator) -> Integers:
    """Divide an occupation: the more education, the later its parts."""
    kinds = np.array([_kinds(at) for at in range(14)])
    first = np.concatenate(([0], np.cumsum(kinds)[:-1]))
    rank = np.clip(drawn["education"] / 15 + rng.normal(0, 0.25, len(drawn["education"])), 0, 0.999)
    return np.asarray(first[drawn["occupation"]] + (rank * kinds[drawn["occupation"]]).astype(np.int64))


def _salary(drawn: CensusCodes, rng: np.random.Generator) -> Integers:
    """Draw a class of salary: below 50,000 and above as the income says, more with education and with age up to 50."""
    age = 1 - np.abs(drawn["age"] - 33) / 60
    rank = np.clip(0.4 * drawn["education"] / 15 + 0.3 * age + rng.normal(0.1, 0.25, len(age)), 0, 0.999)
    return np.asarray(SALARIES // 2 * drawn["income"] + (rank * (SALARIES // 2)).astype(np.int64))


def varied(rows: int) -> pa.Table:
    """Variations of a table of 100,000 records: a fifth of all values are replaced by those of others."""
    table, rng = census("occupation", 100_000), np.random.default_rng(0)
    base, others = rng.integers(0, table.num_rows, rows), rng.integers(0, table.num_rows, (table.num_columns, rows))
    return pa.table(
        {
            name: table[name].take(pa.array(np.where(rng.random(rows) < 0.2, other, base)))
            for name, other in zip(table.column_names, others, strict=True)
        }
    )


def capped(sensitive: str, distortion: Fraction = LIMIT) -> Confidence:
    """The framework as the paper sets it."""
    return Confidence(sensitive=sensitive, quasi=QUASI, distortion=distortion, statistics_from_data=True)


def mondrian(sensitive: str, k: int, score: SplitScore = "median") -> Mondrian:
    """Mondrian over the same quasi-identifiers."""
    return Mondrian(k=k, sensitive=sensitive, quasi=QUASI, score=score)


@cache
def table_of(source: str, sensitive: str, rows: int, seed: int) -> tuple[pa.Table, Schema]:
    """A census-like table, or the bundled one, with its schema."""
    if source == "adult":
        return adult()
    return census(sensitive, rows, seed=rows + seed), census_schema(sensitive)


def _table(key: Key) -> tuple[pa.Table, Schema]:
    return table_of(key["source"], key["sensitive"], key["rows"], key["run"])


def suppressed(key: Key) -> Outcome:
    """The share of the sampled records that are suppressed, in per cent."""
    table, schema = _table(key)
    release = published(capped(key["sensitive"], Fraction(key["distortion"])), table, schema, None, key["run"])
    kept, *lost = (int(line.split(": ")[1].split(" ")[0].replace(",", "")) for line in release.notes[-3:])
    return {"suppressed": 100 * sum(lost) / (kept + sum(lost))}


def unsafe_share(release: Release, own: ConfidenceCap) -> float:
    """The share of Mondrian's records that do not satisfy the criterion, all of them being published."""
    counts = release.draft.final.counts
    held = counts.any(axis=1)
    sides = [release.regions.sides(at).of(np.flatnonzero(held)) for at in range(len(release.schema.shape))]
    boxes = Boxes(release.schema.shape, np.stack(sides, axis=1))
    claims = ConfidenceCap(own.quasi, own.sensitive, Fraction(1), own.knowledge).claims(boxes, counts[held])
    unsafe = claims.observed > claims.expected + TOLERANCE
    return float(counts[held][claims.groups[unsafe], claims.values[unsafe]].sum() / counts.sum())


def least_k(table: pa.Table, schema: Schema, own: Release, sensitive: str, score: SplitScore = "median") -> int:
    """The least k of the ladder at which everyone satisfies the criterion; the last if there is none."""
    cap = own.manifest.promise
    assert isinstance(cap, ConfidenceCap)
    for k in LADDER[:-1]:
        if not unsafe_share(published(mondrian(sensitive, k, score), table, schema, None, 0), cap):
            return k
    return LADDER[-1]


def mean_size(own: Release) -> int:
    """The mean size of the framework's groups."""
    return max(round(int(own.draft.final.counts.sum()) / own.groups), 2)


def asked(key: Key) -> Outcome:
    """The average relative errors of range counts in per cent: small, large and all; and the k of Mondrian."""
    table, schema = _table(key)
    sensitive, run = key["sensitive"], key["run"]
    narrowed = mondrian(sensitive, LADDER[0]).narrowed(schema)
    rows = coded(table, narrowed)
    queries, truths = satisfied_queries(narrowed, rows, seed=run)
    if key["method"] == INTERACTIVE:
        noise = np.random.default_rng(run).laplace(scale=1 / float(Fraction(key["epsilon"])), size=len(truths))
        return _errors(truths + noise, truths, table.num_rows)
    release = published(capped(sensitive), table, schema, None, run)
    told: Outcome = {}
    if key["method"] != CONFIDENCE:
        k = mean_size(release) if key["method"] == AVERAGE_K else least_k(table, schema, release, sensitive)
        release, told = published(mondrian(sensitive, k), table, schema, None, run), {"k": k}
    answers = release.count_many([query.weights(release.schema) for query in queries]).values
    return _errors(answers, truths, table.num_rows) | told


def _errors(answers: Floats, truths: Floats, rows: int) -> Outcome:
    wrong = 100 * np.abs(answers - truths) / truths
    small, large = truths < SMALL * rows, truths > LARGE * rows
    return {name: float(wrong[of].mean()) for name, of in (("small", small), ("large", large), ("all", truths > 0))}


def satisfied_queries(schema: Schema, rows: CodedRows, seed: int) -> tuple[list[RangeQuery], Floats]:
    """Draw ranges on one to three quasi-identifiers and on the sensitive attribute that someone satisfies."""
    rng = np.random.default_rng(seed)
    queries, truths = list[RangeQuery](), list[int]()
    while len(queries) < QUERIES:
        names = [*rng.choice(list(schema.predictors), int(rng.integers(1, 4)), replace=False), str(schema.target)]
        ends = {str(name): np.sort(rng.choice(leaves_of(schema, name) + 1, 2, replace=False)) for name in names}
        query = RangeQuery({name: (int(lo), int(hi)) for name, (lo, hi) in ends.items()})
        if truth := query.truth(rows):
            queries.append(query)
            truths.append(truth)
    return queries, np.array(truths, np.float64)


def taught(key: Key) -> Outcome:
    """The accuracy of each learner in per cent: it sees records drawn from a release of nine folds, or their rows, and
    is tested on the tenth.
    """
    train, test = divided("10-fold", key["run"])
    schema = mondrian("income", LADDER[0]).narrowed(adult()[1])
    seen = coded(train, schema) if key["method"] == RAW else _drawn(key, train)
    asked_of = coded(test, schema)
    truth = asked_of[str(schema.target)]
    return {
        learner: 100 * float((teach(learner, schema, seen).predict(asked_of) == truth).mean())
        for learner in LEARNERS
        if learner in TAUGHT
    }


def _drawn(key: Key, train: pa.Table) -> CodedRows:
    own = published(capped("income"), train, adult()[1], None, key["run"])
    if key["method"] != CONFIDENCE:
        k = mean_size(own) if key["method"] == AVERAGE_K else _least_k_of_adult()
        own = published(mondrian("income", k, "infogain"), train, adult()[1], None, key["run"])
    return own.sample_codes(seed=key["run"])


@cache
def _least_k_of_adult() -> int:
    table, schema = adult()
    return least_k(table, schema, published(capped("income"), table, schema, None, 0), "income", "infogain")


def grown(key: Key) -> Outcome:
    """The processor seconds of publishing a census-like table blown up to so many rows."""
    ours = key["method"] == CONFIDENCE
    method: MethodWithoutEpsilon = capped("occupation") if ours else mondrian("occupation", key["k"])
    table, schema = varied(key["rows"]), census_schema("occupation")
    release, seconds = timed(lambda: published(method, table, schema, None, key["run"]))
    return {"seconds": seconds, "groups": release.groups}


def suppressed_keys(effort: Effort) -> list[Key]:
    """The runs of all tables over the distortion limit."""
    tables = [("census", sensitive, rows) for sensitive in SENSITIVE for rows in effort.some(SIZES, SIZES[:1])]
    tables += [("adult", "income", 45_222), ("adult", "occupation", 45_222)]
    same = {"work": "confidence.suppressed", "method": CONFIDENCE}
    return [
        {**same, "source": source, "sensitive": sensitive, "rows": rows, "distortion": limit, "run": run}
        for source, sensitive, rows in tables
        for limit in effort.some(LIMITS, ("0.4", STATED_LIMIT, "0.8"))
        for run in effort.runs_of(3, 1)
    ]


def query_keys(effort: Effort, *methods: str) -> list[Key]:
    """The runs of range counts on the census-like tables."""
    return [
        {
            "work": "confidence.asked",
            "source": "census",
            "sensitive": sensitive,
            "rows": rows,
            "method": method,
            "run": run,
        }
        | ({"epsilon": "0.1"} if method == INTERACTIVE else {})
        for sensitive in SENSITIVE
        for rows in effort.some(SIZES, SIZES[:2])
        for method in methods
        for run in effort.runs_of(5, 3)
    ]


def taught_keys(effort: Effort, *methods: str) -> list[Key]:
    """The runs of learners on ten folds."""
    return [
        {"work": "confidence.taught", "method": method, "run": run}
        for method in methods
        for run in effort.runs_of(10, 3)
    ]


def private_keys(effort: Effort) -> list[Key]:
    """The runs of DiffGen on the same folds and attributes, over the budget."""
    epsilons = effort.some(("0.1", "0.25", "0.5", "1"), ("0.1", "1"))
    methods = (DIFFGEN, DIFFGEN_GAIN, DIFFGEN_OURS)
    attributes = [*QUASI, "income"]
    private = learning_keys(methods, epsilons, (10,), effort.runs_of(10, 3), "10-fold", attributes=attributes)
    return [*private, *taught_keys(effort, CONFIDENCE, RAW)]


def growth_keys(effort: Effort) -> list[Key]:
    """The runs of time over the number of rows."""
    return [
        {"work": "confidence.grown", "method": method, "rows": rows, "k": 10, "run": run}
        for method in (CONFIDENCE, MONDRIAN)
        for rows in effort.some(GROWN, (100_000, 1_000_000))
        for run in effort.runs_of(3, 1)
    ]


def suppressed_at_limit(found: Found, method: str) -> Evidence:
    """The percentage suppressed at the stated limit in every table."""
    tables = {(key["source"], key["sensitive"], key["rows"]) for key, _ in found.runs}
    return {
        f"{source}, {sensitive}, {rows:,} rows": found.values(
            "suppressed", method=method, source=source, sensitive=sensitive, rows=rows, distortion=STATED_LIMIT
        )
        for source, sensitive, rows in sorted(tables)
    }


def errors_beside(found: Found, method: str, others: tuple[str, ...], sizes: tuple[str, ...]) -> Evidence:
    """Query errors minus those of others, for every table and size of query."""
    return {
        f"{sensitive}, {rows:,} rows, {size} queries, {other}": found.values(
            size, method=method, sensitive=sensitive, rows=rows
        )
        - found.values(size, method=other, sensitive=sensitive, rows=rows)
        for sensitive in SENSITIVE
        for rows in found.places("rows", "all", method=method)
        for size in sizes
        for other in others
    }


def above_and_near(found: Found, method: str) -> tuple[Evidence, Evidence]:
    """CA minus that of Mondrian, and BA - CA, for every learner."""
    above = {
        f"{learner}, {other}": found.values(learner, method=method) - found.values(learner, method=other)
        for learner in TAUGHT
        for other in (AVERAGE_K, MAX_K)
    }
    near = {learner: found.values(learner, method=RAW) - found.values(learner, method=method) for learner in TAUGHT}
    return above, near


def above_private(found: Found, method: str) -> Evidence:
    """CA minus that of DiffGen as published at ε = 0.1, fold by fold."""
    own = found.values(TAUGHT[0], method=method)
    return {name: own - found.values("CA", method=name, epsilon="0.1") for name in (DIFFGEN, DIFFGEN_GAIN)}


def growth(found: Found, method: str) -> tuple[Evidence, Evidence]:
    """The exponent of time over rows, and the time of the framework over that of Mondrian."""
    first, *_, last = found.places("rows", "seconds", method=method)
    ends = [found.values("seconds", method=method, rows=rows) for rows in (first, last)]
    exponent = np.log(ends[1] / ends[0]) / math.log(last / first)
    ratio = ends[1] / found.values("seconds", method=MONDRIAN, rows=last)
    return {f"{first:,} to {last:,} rows": exponent}, {f"{last:,} rows": ratio}


def suppressed_panels(found: Found) -> list[Panel]:
    """The share suppressed over the limit, a panel for each kind of table."""
    drawn = []
    for source, sensitive in dict.fromkeys((key["source"], key["sensitive"]) for key, _ in found.runs):
        setting = {"source": source, "sensitive": sensitive}
        curves = tuple(
            found.curve(f"{rows:,} rows", "suppressed", "distortion", rows=rows, **setting)
            for rows in found.places("rows", "suppressed", **setting)
        )
        stated = (("stated: none", float(STATED_LIMIT), 0.0),)
        drawn.append(Panel(f"{source}, {sensitive}", "distortion limit", "% suppressed", curves, stated=stated))
    return drawn


def query_panels(found: Found, *methods: str) -> list[Panel]:
    """Query errors over rows, a panel for each table and size of query."""
    return [
        Panel(
            f"{sensitive}, {size} queries",
            "rows in thousands",
            "average relative error in %",
            tuple(_by_thousand(found, name, size, sensitive) for name in methods),
            logarithmic=(False, True),
        )
        for sensitive in SENSITIVE
        for size in QUERY_SIZES
    ]


def _by_thousand(found: Found, method: str, size: str, sensitive: str) -> Curve:
    curve = found.curve(method, size, "rows", method=method, sensitive=sensitive)
    return Curve(curve.name, tuple(rows / 1000 for rows in curve.at), curve.values, curve.errors)


def taught_panels(found: Found) -> list[Panel]:
    """The accuracy of every learner."""
    curves = []
    for name in (CONFIDENCE, AVERAGE_K, MAX_K, RAW):
        means, errors = zip(*(mean_and_doubt(found.values(learner, method=name)) for learner in TAUGHT), strict=True)
        curves.append(Curve(name, tuple(map(float, range(len(TAUGHT)))), means, errors))
    return [Panel("Adult, six quasi-identifiers, 10-fold", "", CA, tuple(curves), places=TAUGHT)]


def private_panels(found: Found) -> list[Panel]:
    """DiffGen's accuracy over the budget, the framework being a level."""
    curves = tuple(found.curve(name, "CA", "epsilon", method=name) for name in (DIFFGEN, DIFFGEN_GAIN, DIFFGEN_OURS))
    means = {name: float(found.values(TAUGHT[0], method=name).mean()) for name in (CONFIDENCE, RAW)}
    lines = ((f"confidence {means[CONFIDENCE]:.1f}", means[CONFIDENCE]), (f"BA {means[RAW]:.1f}", means[RAW]))
    return [Panel("six attributes, h = 10, 10-fold; stated at ε = 0.1", "ε", CA, curves, lines)]


def growth_panels(found: Found) -> list[Panel]:
    """Seconds over rows."""
    curves = tuple(found.curve(name, "seconds", "rows", method=name) for name in (CONFIDENCE, MONDRIAN))
    return [Panel("census-like, occupation", "rows", "processor seconds", curves)]


PAPER = Paper(
    NAME,
    (
        Figure(NAME, "2", "Confidence, figure 2: records suppressed", suppressed_keys, suppressed_panels),
        Figure(
            NAME,
            "4",
            "Confidence, figure 4: 1,000 range counts beside Mondrian",
            lambda effort: query_keys(effort, CONFIDENCE, AVERAGE_K, MAX_K),
            lambda found: query_panels(found, CONFIDENCE, AVERAGE_K, MAX_K),
        ),
        Figure(
            NAME,
            "5",
            "Confidence, figure 5: accuracy beside Mondrian",
            lambda effort: taught_keys(effort, CONFIDENCE, AVERAGE_K, MAX_K, RAW),
            taught_panels,
        ),
        Figure(
            NAME,
            "7",
            "Confidence, figure 7: 1,000 range counts beside interactive answers at ε = 0.1",
            lambda effort: query_keys(effort, CONFIDENCE, INTERACTIVE),
            lambda found: query_panels(found, CONFIDENCE, INTERACTIVE),
        ),
        Figure(NAME, "9", "Confidence, figure 9: accuracy beside DiffGen", private_keys, private_panels),
        Figure(NAME, "10", "Confidence, figure 10: time over rows", growth_keys, growth_panels),
    ),
    (
        Claim(
            statement(NAME, "2", "suppressed records"),
            Between(-math.inf, 0, 1, "%"),
            suppressed_at_limit,
            CONFIDENCE,
            note=f"{CENSUS}; every record that is published satisfies the criterion",
        ),
        Claim(
            statement(NAME, "4", "relative error"),
            Beyond("below", "%"),
            partial(errors_beside, others=(AVERAGE_K, MAX_K), sizes=QUERY_SIZES),
            CONFIDENCE,
            note=CENSUS,
        ),
        Claim(
            statement(NAME, "5", "CA"),
            Parts(
                {
                    "above Mondrian": Beyond("above", "points"),
                    "close to the raw rows: BA - CA": Between(-math.inf, 1, 1, "points"),
                }
            ),
            above_and_near,
            CONFIDENCE,
        ),
        Claim(
            statement(NAME, "7", "relative error"),
            Beyond("below", "%"),
            partial(errors_beside, others=(INTERACTIVE,), sizes=("small",)),
            CONFIDENCE,
            note=f"{CENSUS}; interactive answers are the truth with Laplace noise of scale 10, each at ε = 0.1",
        ),
        Claim(statement(NAME, "9", "CA"), Beyond("above", "points"), above_private, CONFIDENCE),
        Claim(
            statement(NAME, "10", "seconds"),
            Parts(
                {
                    "quadratic: exponent of time over rows": Between(1.75, 2.25, 0.25),
                    "slightly above Mondrian: times its seconds": Between(1, 2, 0.5, "times"),
                }
            ),
            growth,
            CONFIDENCE,
            note=f"{CENSUS}; Mondrian has k = 10; to be faster counts as not reproduced",
        ),
    ),
)
