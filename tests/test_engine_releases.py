"""With the same noise a release is the same on every engine, to the byte."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from contracts import SOME_OF_EACH
from engines_under_test import ENGINES, Open, in_memory, on_disk
from replay import domain_of
from sfumato import DiffGen, datasets
from sfumato.account import Unbooked, certificate, sealed
from sfumato.engines import kernel
from sfumato.errors import MethodError
from sfumato.methods.method import Method
from sfumato.privacy.mechanisms import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.noise import SeededStream
from sfumato.privacy.tally import CountEngine, Counts, Tally
from sfumato.schema.schema import Schema
from sfumato.tables import streams

ADULT = datasets.adult().schema
FEW = ADULT.only(["age", "marital_status", "sex", "income"])


def schema_for(method: Method) -> Schema:
    """Take all attributes of Adult, or a few for a method that puts noise on every combination."""
    try:
        method.plan(ADULT, Fraction(1))
    except MethodError:
        return FEW
    return ADULT


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
    sealed(draft, schema, blank, meter).save(folder)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@cache
def expected(method: Method) -> dict[str, bytes]:
    """Publish from memory."""
    schema = schema_for(method)
    with in_memory(people(), schema) as engine, tempfile.TemporaryDirectory() as folder:
        return published(method, schema, engine, Path(folder) / "release")


@ENGINES
@SOME_OF_EACH
def test_a_release_is_byte_identical(open_engine: Open, method: Method, tmp_path: Path) -> None:
    schema = schema_for(method)
    with open_engine(people(), schema) as engine:
        assert published(method, schema, engine, tmp_path / "release") == expected(method)


@ENGINES
def test_diffgen_passes_twice_over_the_rows(open_engine: Open, tmp_path: Path) -> None:
    with open_engine(people(), ADULT) as engine:
        counted = Counted(engine)
        published(DiffGen(), ADULT, counted, tmp_path / "release")
    assert counted.passes == 2


@SOME_OF_EACH
def test_batches_and_order_do_not_matter_to_a_release(
    method: Method, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that come in several batches and lie in several blocks, each of which steps down the tree by itself."""
    monkeypatch.setattr(streams, "BATCH_ROWS", 2048)
    monkeypatch.setattr(kernel, "BLOCK", 1000)
    schema, shuffled = schema_for(method), people().take(pa.array(np.random.default_rng(2).permutation(6000)))
    with on_disk(shuffled, schema) as engine:
        assert published(method, schema, engine, tmp_path / "release") == expected(method)


def test_a_row_that_an_engine_loses_would_be_seen(tmp_path: Path) -> None:
    method = DiffGen(specializations=3)
    with in_memory(people().slice(1), ADULT) as engine:
        assert published(method, ADULT, engine, tmp_path / "release") != expected(method)
