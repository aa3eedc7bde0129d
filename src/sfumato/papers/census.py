"""Census-like tables of any size, made from Adult's margins and the dependencies that matter.

An attribute is drawn given a few that were drawn before, with the frequencies that Adult has. Adult's fourteen
occupations are divided into fifty by education, and its two incomes into fifty classes of salary by education and age,
so that sensitive values are as many as in the census extracts of the papers. A seed says everything.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import datasets
from sfumato.papers.publishing import coded
from sfumato.schema import Schema

Codes = dict[str, NDArray[np.int64]]

QUASI = ("age", "sex", "education", "marital_status", "race", "native_country")
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
"""From what each attribute is drawn, in the order of drawing; a band is ten years of age."""
SALARIES, BAND = 50, 10


def census_schema(sensitive: str) -> Schema:
    """Give the schema of a table: Adult's quasi-identifiers, and fifty occupations or salaries."""
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
    """Fourteen times three, and eight more, are fifty."""
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


def _draw(rows: int, rng: np.random.Generator) -> Codes:
    """Draw attribute after attribute, each by Adult's frequencies given its parents; where Adult has nobody, evenly."""
    adult = datasets.adult()
    seen: Codes = {name: one.astype(np.int64) for name, one in coded(adult.table, adult.schema).items()}
    seen["band"] = seen["age"] // BAND
    sizes = {name: int(one.max()) + 1 for name, one in seen.items()}
    drawn: Codes = {}
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


def _occupation(drawn: Codes, rng: np.random.Generator) -> NDArray[np.int64]:
    """Divide an occupation: the more education, the later its parts."""
    kinds = np.array([_kinds(at) for at in range(14)])
    first = np.concatenate(([0], np.cumsum(kinds)[:-1]))
    rank = np.clip(drawn["education"] / 15 + rng.normal(0, 0.25, len(drawn["education"])), 0, 0.999)
    return np.asarray(first[drawn["occupation"]] + (rank * kinds[drawn["occupation"]]).astype(np.int64))


def _salary(drawn: Codes, rng: np.random.Generator) -> NDArray[np.int64]:
    """Give a class of salary: below 50,000 and above as the income says, more with education and with age up to 50."""
    age = 1 - np.abs(drawn["age"] - 33) / 60
    rank = np.clip(0.4 * drawn["education"] / 15 + 0.3 * age + rng.normal(0.1, 0.25, len(age)), 0, 0.999)
    return np.asarray(SALARIES // 2 * drawn["income"] + (rank * (SALARIES // 2)).astype(np.int64))
