"""Classification on the bundled table: what is learnt from a release of some rows, tested on the others.

As in the papers, the learner sees the released groups, and a test row as the group in which it falls. BA is the
accuracy of the same kind of learner on raw rows, LA that of always saying their most frequent class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from sfumato.evaluate.classification import accuracy
from sfumato.evaluate.learners import teach
from sfumato.evaluate.lessons import majority_accuracy
from sfumato.evaluate.runs import Key, Outcome
from sfumato.papers.figures import Found
from sfumato.papers.publishing import VARIANTS, adult, coded, divided, release_of, timed
from sfumato.papers.verdicts import Evidence
from sfumato.schema import Schema

EPSILONS = ("0.1", "0.25", "0.5", "1")
STEPS = (4, 7, 10, 13, 16)
RAW = "raw rows"


def tables(key: Key) -> tuple[pa.Table, pa.Table, Schema]:
    """Give the rows to publish, the rows to test on and their schema: all attributes, or those of the run."""
    train, test = divided(key["protocol"], key["run"])
    schema = adult()[1]
    return train, test, schema.only(key["attributes"]) if "attributes" in key else schema


def learnt(key: Key) -> Outcome:
    """Publish and learn: CA in per cent, the number of groups, and the processor seconds of publishing."""
    train, test, schema = tables(key)
    release, seconds = timed(lambda: release_of(key, train, schema))
    right = accuracy(release, coded(test, schema), VARIANTS[key["method"]].how, key.get("learner", "pruned tree"))
    return {"CA": 100 * right, "groups": release.groups, "seconds": seconds}


def raw(key: Key) -> Outcome:
    """Learn from the raw rows: BA and LA in per cent."""
    train, test, schema = tables(key)
    seen, asked = coded(train, schema), coded(test, schema)
    pupil = teach(key.get("learner", "pruned tree"), schema, seen)
    right = float((pupil.predict(asked) == asked[str(schema.target)]).mean())
    return {"BA": 100 * right, "LA": 100 * majority_accuracy(seen, asked, str(schema.target))}


def learning_keys(
    methods: Iterable[str],
    epsilons: Sequence[str],
    steps: Sequence[int],
    runs: range,
    protocol: str = "2/3",
    **more: Any,
) -> list[Key]:
    """Give the runs of methods over budgets and numbers of specializations."""
    same = {"work": "accuracy.learnt", "protocol": protocol, **more}
    return [
        {**same, "method": method, "epsilon": epsilon, "h": h, "run": run}
        for method in methods
        for epsilon in epsilons
        for h in steps
        for run in runs
    ]


def raw_keys(runs: range, protocol: str = "2/3", **more: Any) -> list[Key]:
    """Give the runs on the raw rows of the same splits."""
    return [{"work": "accuracy.raw", "protocol": protocol, **more, "method": RAW, "run": run} for run in runs]


def levels(found: Found) -> tuple[tuple[str, float], ...]:
    """Give BA and LA as horizontal lines."""
    return tuple(
        (f"{name} {found.values(name, method=RAW).mean():.1f}", float(found.values(name, method=RAW).mean()))
        for name in ("BA", "LA")
    )


def cost(found: Found, **setting: object) -> Evidence:
    """Give BA - CA by run."""
    return {"": found.values("BA", method=RAW) - found.values("CA", **setting)}


def benefit(found: Found, **setting: object) -> Evidence:
    """Give CA - LA by run."""
    return {"": found.values("CA", **setting) - found.values("LA", method=RAW)}


def best_place(found: Found, **setting: object) -> int:
    """Give the number of specializations with the largest mean CA."""
    means = found.means("CA", "h", **setting)
    return int(max(means, key=lambda h: means[h]))
