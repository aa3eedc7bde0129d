"""With the same noise a release is the same on every engine, to the byte."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from engines_under_test import ENGINES, Open, by_duckdb, in_memory
from replay import domain_of
from sfumato import CDiffGen, DiffGen, DiffMulti, DPCocGen, Laplace, datasets
from sfumato.account import Unbooked, certificate, sealed
from sfumato.methods.method import Method
from sfumato.privacy.mechanisms import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.noise import SeededStream
from sfumato.privacy.tally import CountEngine, Counts, Tally
from sfumato.schema.schema import Schema
from sfumato.tables import streams

FEW = ["age", "marital_status", "sex", "income"]
METHODS: dict[str, tuple[Method, list[str] | None]] = {
    "diffgen": (DiffGen(), None),
    "cdiffgen": (CDiffGen(), None),
    "diffmulti": (DiffMulti(specializations=300), None),
    "diffmulti as published": (DiffMulti.as_published(specializations=50), None),
    "dpcocgen": (DPCocGen(), FEW),
    "laplace": (Laplace(), FEW),
}


@cache
def people() -> pa.Table:
    """Some rows of Adult, a few of them many times."""
    rows = np.random.default_rng(1).integers(0, 4000, 6000)
    return datasets.adult().table.take(pa.array(rows))


class Counted:
    """An engine that knows how often it was asked."""

    def __init__(self, engine: CountEngine) -> None:
        self.engine, self.passes = engine, 0

    def tally(self, tally: Tally) -> Counts:
        self.passes += 1
        return self.engine.tally(tally)


def published(method: Method, schema: Schema, engine: CountEngine, folder: Path) -> dict[str, bytes]:
    """Publish with known noise; give every file of the release."""
    epsilon = Fraction(1)
    meter = Meter(engine, Unbooked(epsilon), Exact(SeededStream(7)), domain_of(schema))
    draft = method.publish(meter, schema, method.plan(schema, epsilon))
    blank = certificate(method, "unbooked", schema, draft.steps, secure=False)
    sealed(draft, schema, blank, meter.debits).save(folder)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@ENGINES
@pytest.mark.parametrize("name", list(METHODS))
def test_a_release_is_byte_identical(open_engine: Open, name: str, tmp_path: Path) -> None:
    method, attributes = METHODS[name]
    schema = datasets.adult().schema if attributes is None else datasets.adult().schema.only(attributes)
    with in_memory(people(), schema) as reference:
        expected = published(method, schema, reference, tmp_path / "reference")
    with open_engine(people(), schema) as engine:
        counted = Counted(engine)
        found = published(method, schema, counted, tmp_path / "release")
    assert found.keys() == expected.keys()
    assert found == expected
    if name == "diffgen":
        assert counted.passes == 2


@pytest.mark.parametrize("name", ["diffmulti", "diffmulti as published"])
def test_batches_and_order_do_not_matter_to_a_release(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that DuckDB streams in several batches, each of which steps down the tree by itself."""
    method, schema = METHODS[name][0], datasets.adult().schema
    with in_memory(people(), schema) as reference:
        expected = published(method, schema, reference, tmp_path / "reference")
    monkeypatch.setattr(streams, "BATCH_ROWS", 2048)
    with by_duckdb(people().take(pa.array(np.random.default_rng(2).permutation(6000))), schema) as engine:
        assert published(method, schema, engine, tmp_path / "release") == expected
