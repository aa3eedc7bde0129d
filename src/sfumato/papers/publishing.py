"""The variants of the methods that the figures show, by name, and releases of the bundled table by them.

Releases are seeded by the number of the run, so they carry no guarantee.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato import datasets
from sfumato.evaluate.classification import Codes
from sfumato.evaluate.runs import Key
from sfumato.evaluate.splits import cross_validated, held_out
from sfumato.io.encode import encode
from sfumato.io.tables import open_table
from sfumato.methods import CDiffGen, DiffGen, DiffMulti, DPCocGen, Laplace, Method
from sfumato.release.projection import Nonnegative
from sfumato.release.release import Release
from sfumato.schema import Schema
from sfumato.seeded import seeded_release
from sfumato.syntactic import TDS, Mondrian, SyntacticMethod

FIRST_SEED = 10_000
MOST_CELLS = 2_000_000
"""The same for DiffGen and CDiffGen, so that a seed leads both to the same cuts."""


@dataclass(frozen=True)
class Variant:
    """A method given the settings of a run, and how its counts become people."""

    make: Callable[[Key], Method | SyntacticMethod]
    how: Nonnegative = "projection"


def _published(method: Any, score: str) -> Variant:
    return Variant(lambda key: method.as_published(specializations=key["h"], score=score), "clamp")


def _multi(score: str) -> Variant:
    return Variant(lambda key: DiffMulti(specializations=key["h"], score=score))


DIFFGEN, DIFFGEN_GAIN, DIFFGEN_OURS = "DiffGen Max, as published", "DiffGen InfoGain, as published", "DiffGen, ours"
CDIFFGEN, CDIFFGEN_GAIN, CDIFFGEN_OURS = (
    "CDiffGen Max, as published",
    "CDiffGen InfoGain, as published",
    "CDiffGen, ours",
)
DIFFMULTI, DIFFMULTI_OURS = "DiffMulti Max, as published", "DiffMulti, ours"
DM, DM_OURS = "DiffMulti discernibility, as published", "DiffMulti discernibility, ours"
NCP, NCP_OURS = "DiffMulti NCP, as published", "DiffMulti NCP, ours"
MONDRIAN, TDS_5 = "InfoGain Mondrian, k = 60", "TDS, k = 5"
LAPLACE = "Laplace baseline"
FINEST, THOUSAND, COARSE = "as published, finest", "as published, 1,000 cells", "as published, 144 cells"
DPCOCGEN_OURS = "DPCocGen, ours"
VARIANTS: Mapping[str, Variant] = {
    DIFFGEN: _published(DiffGen, "max"),
    DIFFGEN_GAIN: _published(DiffGen, "gain"),
    DIFFGEN_OURS: Variant(lambda key: DiffGen(specializations=key["h"], max_cells=MOST_CELLS)),
    CDIFFGEN: _published(CDiffGen, "max"),
    CDIFFGEN_GAIN: _published(CDiffGen, "gain"),
    CDIFFGEN_OURS: Variant(lambda key: CDiffGen(specializations=key["h"], max_cells=MOST_CELLS)),
    DIFFMULTI: _published(DiffMulti, "max"),
    DIFFMULTI_OURS: _multi("auto"),
    DM: _published(DiffMulti, "discernibility"),
    DM_OURS: _multi("discernibility"),
    NCP: _published(DiffMulti, "ncp"),
    NCP_OURS: _multi("ncp"),
    MONDRIAN: Variant(lambda _key: Mondrian(k=60, score="infogain")),
    TDS_5: Variant(lambda _key: TDS(k=5)),
    LAPLACE: Variant(lambda _key: Laplace(), "clamp"),
    FINEST: Variant(lambda _key: DPCocGen.as_published(), "clamp"),
    THOUSAND: Variant(lambda _key: DPCocGen.as_published(cells=1000), "clamp"),
    COARSE: Variant(lambda _key: DPCocGen.as_published(cells=144), "clamp"),
    DPCOCGEN_OURS: Variant(lambda _key: DPCocGen()),
}


@cache
def adult() -> tuple[pa.Table, Schema]:
    """Give the 45,222 complete rows and their schema."""
    found = datasets.adult()
    return found.table, found.schema


def coded(table: pa.Table, schema: Schema) -> Codes:
    """Give a table's leaf codes by attribute."""
    return encode(open_table(table), schema).columns


TRAINING_FILE = 30_162
"""So many of the rows come first, from the file that the repository names for training."""


@lru_cache(maxsize=8)
def divided(protocol: str, run: int) -> tuple[pa.Table, pa.Table]:
    """Divide the table by a protocol: the rows that are published, and those for the test.

    With `10-fold` a run is a fold, and every ten runs the rows are shuffled anew; `5-fold` is of the training file
    alone; `files` are the training file and the rest; `2/3` and `4/5` are drawn by lot.
    """
    table = adult()[0]
    if protocol == "files":
        return table.slice(0, TRAINING_FILE), table.slice(TRAINING_FILE)
    if protocol == "5-fold":
        table = table.slice(0, TRAINING_FILE)
    if protocol.endswith("-fold"):
        folds = int(protocol.removesuffix("-fold"))
        train, test = cross_validated(folds, table.num_rows, run // folds)[run % folds]
    else:
        learnt, parts = map(int, protocol.split("/"))
        ((train, test),) = held_out(parts, learnt, table.num_rows, run)
    return table.take(train), table.take(test)


def release_of(key: Key, table: Any, schema: Schema, out: Path | None = None) -> Release:
    """Publish a table by the variant, the epsilon and the number of a run."""
    return published(VARIANTS[key["method"]].make(key), table, schema, key.get("epsilon"), key["run"], out)


def published(
    method: Method | SyntacticMethod, table: Any, schema: Schema, epsilon: str | None, run: int, out: Path | None = None
) -> Release:
    """Publish a table with the seed of a run."""
    return seeded_release(table, schema, method, epsilon, FIRST_SEED + run, out)


def timed(work: Callable[[], Release]) -> tuple[Release, float]:
    """Do some work and take its processor seconds."""
    start = time.process_time()
    done = work()
    return done, time.process_time() - start
