"""Marginals, scored as every method is: Adult by UCI's split, and ten demographic features of a census excerpt.

Adult: a boosted classifier and a tree learn from 100,000 synthetic records and are tested on UCI's test rows; two times
1,000 range counts on three attributes are compared with the training rows (mean, mean of questions that take their ends
from rows, median of these). education_num is left out, as the scores put it back from education. Census: NIST's
k-marginal score of as many records as the release has. The scoring scripts and both tables lie beside the project, in
`../shared`; the schema of Adult is the bundled one.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sfumato import Marginals, Release, Schema, datasets, seeded_release

SHARED = Path(__file__).resolve().parents[2] / "shared"
RECORDS = 100_000
ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "no pairs": {"rounds": 0},
    "for counts: the class does not come first": {"purpose": "counts"},
    "exponential mechanism": {"selection": "exponential"},
    "bins of 2 standard deviations": {"heavy": 2},
    "bins of 15 standard deviations": {"heavy": 15},
}


def scoring(name: str) -> Any:
    """Import a scoring script."""
    sys.path.insert(0, str(SHARED / "scoring"))
    return importlib.import_module(name)


def adult_schema(target: str) -> Schema:
    """The bundled schema without education_num, with another class if wanted."""
    plain = datasets.adult().schema.plain()
    attributes = {name: dict(one) for name, one in plain["attributes"].items() if name != "education_num"}
    attributes["income"]["kind"] = "categorical"
    attributes[target]["kind"] = "class"
    return Schema.parse(plain | {"attributes": attributes})


def adult(epsilon: str, seed: int, method: Marginals, target: str = "income") -> dict[str, float]:
    """Publish Adult's training rows and score synthetic records."""
    yardstick, schema = scoring("adult"), adult_schema(target)
    train, _ = yardstick.split()
    begun = time.process_time()
    release = seeded_release(train[list(schema.attributes)], schema, method, epsilon, seed)
    seconds = time.process_time() - begun
    found: dict[str, float] = yardstick.score(release.sample(RECORDS, "pandas", seed=seed))
    return found | {"seconds": seconds}


def census_schema(table: Any, columns: list[str], dictionary: Mapping[str, Any], target: str | None) -> Schema:
    """The demographic features by their data dictionary; ages are numbers, all else are values."""
    attributes: dict[str, Any] = {}
    for name in columns:
        values = dictionary[name].get("values", {})
        if name == "AGEP":
            attributes[name] = {"kind": "numeric", "lower": 0, "upper": 99}
            continue
        known = sorted(table[name].unique()) if "min" in values else sorted({*values, *table[name].unique()})
        attributes[name] = {"kind": "class" if name == target else "categorical", "taxonomy": known}
        if "N" in known:
            attributes[name]["missing"] = "N"
    return Schema.parse({"name": "census", "confirmed": True, "missing_values": ["", "N"], "attributes": attributes})


def census(epsilon: str, seed: int, method: Marginals, target: str | None = None) -> dict[str, float]:
    """Publish the census excerpt and score as many synthetic records."""
    import pandas as pd

    yardstick = scoring("kmarginal")
    table = pd.read_csv(SHARED / "data" / "acs2018.csv.gz", dtype=str, keep_default_na=False)
    columns = list(yardstick.DEMOGRAPHIC)
    schema = census_schema(table, columns, yardstick.DICTIONARY, target)
    release: Release = seeded_release(table[columns], schema, method, epsilon, seed)
    drawn = release.sample(None, "pandas", seed=seed).astype(object)
    drawn = drawn.where(drawn.notna(), "N").map(str)
    return {"k-marginal": float(yardstick.kmarginal(table, drawn[columns], columns))}


def _both(method: Marginals, seed: int) -> dict[str, float]:
    return adult("1", seed, method) | census("1", seed, method)


def measured(run: Callable[[int], dict[str, float]], seeds: int) -> str:
    """Give means over seeds."""
    every = [run(seed) for seed in range(seeds)]
    means = {name: float(np.mean([one[name] for one in every])) for name in every[0]}
    return " | ".join(f"{value:.4g}" for value in means.values())


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", default="0.1,0.5,1")
    parser.add_argument("--ablations", action="store_true")
    given = parser.parse_args()
    if not SHARED.exists():
        print(f"nothing to score with: {SHARED} is not there")
        return
    print("| table | class | epsilon | tree | boosted | mean | by rows | median | seconds |\n|" + " --- |" * 9)
    for target in ("income", "sex"):
        for epsilon in given.epsilons.split(","):
            row = measured(partial(adult, epsilon, method=Marginals(), target=target), given.seeds)
            print(f"| adult | {target} | {epsilon} | {row} |", flush=True)
    print("\n| table | class | epsilon | k-marginal |\n|" + " --- |" * 4)
    for other in (None, "SEX", "PINCP_DECILE"):
        for epsilon in given.epsilons.split(","):
            row = measured(partial(census, epsilon, method=Marginals(), target=other), given.seeds)
            print(f"| census | {other or 'none'} | {epsilon} | {row} |", flush=True)
    if given.ablations:
        print("\n| epsilon 1 | tree | boosted | mean | by rows | median | seconds | k-marginal |\n|" + " --- |" * 8)
        for words, parameters in ABLATIONS.items():
            row = measured(partial(_both, Marginals(**parameters)), given.seeds)
            print(f"| {words} | {row} |", flush=True)


if __name__ == "__main__":
    main()
