"""Nothing that somebody else wrote makes Sfumato fall over, run code, leave its folder or fill the memory."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hostile
from hostile import TARGETS, attempt, seeds, workplace
from sfumato import Release, Schema, release
from sfumato.errors import QueryError, ReleaseError, SchemaError, SfumatoError
from sfumato.privacy.ledger import Ledger
from sfumato.release import folder as reading
from sfumato.release import sql

SLOW = {"sql", "release_file", "question_file"}


@pytest.fixture(scope="module")
def good() -> dict[str, list[bytes]]:
    return seeds()


@pytest.mark.parametrize("target", TARGETS)
def test_good_inputs_are_read(good: dict[str, list[bytes]], target: str) -> None:
    for data in good[target]:
        if target == "ledger_file":
            with pytest.raises(SfumatoError, match="must be open in the ledger"):
                TARGETS[target](data)
        elif target != "release_file" or b'"publication"' not in data:
            TARGETS[target](data)


PIECES = [b"", b"'", b"\x00", b"\xff", b"9" * 30, b"1e400", b"-1", b"[[", b"nan", b"\n", b"&a *a"]


@st.composite
def spoilt(draw: st.DrawFn, data: bytes) -> bytes:
    """Cut, flip, repeat and insert."""
    spoiled = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(spoiled) - 1, 0)))
        until = at + draw(st.sampled_from([0, 1, 2, 8, 100]))
        piece = draw(st.sampled_from(PIECES))
        spoiled[at:until] = piece * draw(st.sampled_from([1, 1, 2, 50])) or bytes(spoiled[at:until]) * 2
    return bytes(spoiled)


@pytest.mark.parametrize("target", TARGETS)
def test_spoilt_inputs_are_read_or_refused(good: dict[str, list[bytes]], target: str) -> None:
    @settings(max_examples=25 if target in SLOW else 80, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(good[target]).flatmap(spoilt) | st.binary(max_size=80))
    def holds(data: bytes) -> None:
        attempt(target, data)

    holds()


NESTED = {
    "schema_file": [
        b"[" * 50_000,
        b"{a: " * 20_000,
        b"attributes: {a: {kind: categorical, taxonomy: " + b"{x: [" * 5_000 + b"]}" * 5_000 + b"}}",
        b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nattributes: *c",
        b"attributes: {a: {kind: numeric, lower: 0, upper: 1e400}}",
        b"attributes: {a: {kind: numeric, lower: 0, upper: 1e14, step: 1e-9}}",
        b"attributes: {a: {kind: numeric, lower: 0, upper: 1, step: 1e-999999999}}",
        b"attributes: {a: {kind: numeric, lower: 0, upper: 1, intervals: [1e-999999, 1e999999]}}",
        b"budget: 1e999999999\nattributes: {a: {kind: numeric, lower: 0, upper: 1}}",
        b"sfumato: " + b"9" * 5_000 + b"\nattributes: {a: {kind: numeric, lower: 0, upper: 1}}",
        b"!!python/object/apply:os.system [touch stolen]",
        b"attributes: !!python/name:os.system",
    ],
    "manifest": [b"[" * 100_000, b'{"format": ' + b"9" * 10_000 + b"}", b'{"a":' * 50_000],
    "condition": [
        b"age = 1 and " * 8_000 + b"age = 1",
        b"age in (" + b"1," * 40_000 + b"1)",
        b"age = " + b"9" * 90_000,
    ],
    "sql": [
        b"select " + b"(" * 3_000,
        b"select " + b"not " * 1_000 + b"true",
        b"select 1" + b" union select 1" * 300,
    ],
    "taxonomy_file": [b"e;e", b";".join([b"x%d" % n for n in range(10_000)]), b'"' + b"x" * 200_000],
    "statistics_file": [b'attribute,value,probability\nage,"[1e999, 1e-999)",1e999\n', b'"' + b"x" * 200_000],
    "question_file": [b'condition\n"' + b"x" * 200_000, b"condition," * 30_000],
    "record": [b"age=" + b"9" * 90_000, b"age=1," * 10_000],
}


@pytest.mark.parametrize(("target", "data"), [(name, data) for name, many in NESTED.items() for data in many])
def test_deep_long_and_large_inputs_are_refused_or_read(target: str, data: bytes) -> None:
    attempt(target, data)


def test_yaml_makes_no_objects(tmp_path: Path) -> None:
    for tag in ("!!python/object/apply:pathlib.Path.touch", "!!python/object/new:os.system"):
        with pytest.raises(SchemaError):
            Schema.loads(f"attributes: {tag} ['{tmp_path}/stolen']")
    assert list(tmp_path.iterdir()) == []


# Memory.

MEASURE = """
import resource, sys
sys.path[:0] = {paths!r}
import hostile
hostile.folders()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
hostile.attempt({target!r}, open({path!r}, "rb").read())
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""
MOST_MEGABYTES = 600


def megabytes(target: str, path: Path) -> int:
    """Read a file in a process of its own; give by how much that raised its peak of memory."""
    paths = [str(Path(hostile.__file__).parent), str(Path(release.__file__).parents[2])]
    program = MEASURE.format(paths=paths, target=target, path=str(path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    return int(done.stdout)


def parquet(columns: dict[str, pa.Array], times: int, codec: str = "zstd") -> bytes:
    """Write the same rows again and again."""
    table, file = pa.table(columns), io.BytesIO()
    with pq.ParquetWriter(file, table.schema, compression=codec) as writer:
        for _ in range(times):
            writer.write_table(table)
    return file.getvalue()


def forged(folder: str, name: str, content: bytes) -> bytes:
    """Say in which file of which release the content stands."""
    (kind,) = (at for at, one in enumerate(hostile.folders()) if one.name == folder)
    names = sorted(path.name for path in hostile.folders()[kind].iterdir())
    return bytes([kind, names.index(name)]) + content


def zeros(*names: str) -> dict[str, pa.Array]:
    return dict.fromkeys(names, pa.array(np.zeros(1 << 20, np.int64)))


def wide() -> bytes:
    """Declare 200 attributes of a million leaves each."""
    lines = (f"  a{at}: {{kind: numeric, lower: 0, upper: 999990}}" for at in range(200))
    return "\n".join(["attributes:", *lines]).encode()


def long_names() -> bytes:
    """Repeat one long name."""
    own = {"attribute": pa.array(["x" * 100_000]).dictionary_encode().take(pa.array(np.zeros(1 << 20, np.int32)))}
    return parquet(own | zeros("level", "first_leaf", "noisy_count"), 1)


NODES = ("parent", "attribute", "low", "high")
BOMBS = {
    "a schema of 200 million leaves": ("schema_file", wide),
    "many counts": ("release_file", lambda: forged("grid", "records.parquet", parquet(zeros("noisy_count"), 24))),
    "long names": ("release_file", lambda: forged("grid", "margins.parquet", long_names())),
    "many nodes": ("release_file", lambda: forged("tree", "nodes.parquet", parquet(zeros(*NODES), 8))),
}
"""Small inputs that stand for much: a gigabyte or more, if they were believed."""


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_does_not_fill_the_memory(tmp_path: Path, name: str) -> None:
    target, made = BOMBS[name]
    (tmp_path / "bomb").write_bytes(made())
    assert megabytes(target, tmp_path / "bomb") < MOST_MEGABYTES


def test_a_table_that_its_file_cannot_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"x": [0] * 100_000}), tmp_path / "x.parquet", compression="zstd")
    assert reading.read_columns(tmp_path / "x.parquet", ["x"]).num_rows == 100_000
    monkeypatch.setattr(reading, "MOST_VALUES", 10)
    monkeypatch.setattr(reading, "VALUES_PER_BYTE", 10)
    with pytest.raises(ReleaseError, match="more values than its size can hold"):
        reading.read_columns(tmp_path / "x.parquet", ["x"])
    pq.write_table(pa.table({"x": [0]}), tmp_path / "y.parquet", compression="brotli")
    with pytest.raises(ReleaseError, match="must be packed as Sfumato packs it"):
        reading.read_columns(tmp_path / "y.parquet", ["x"])


def test_attributes_together_have_a_bound() -> None:
    six = {f"a{n}": {"kind": "numeric", "lower": 0, "upper": 999_990} for n in range(6)}
    with pytest.raises(SchemaError, match="all attributes together must have at most 5,000,000 leaves"):
        Schema.parse({"attributes": six})


# Paths.


@pytest.mark.parametrize("name", ["../stolen", "/etc/passwd", "a/../records.parquet", "", ".", "records.parquet\0"])
def test_a_manifest_reaches_no_other_files(name: str) -> None:
    place = workplace() / "escaping"
    hostile.release().save(place)
    try:
        plain = json.loads((place / "manifest.json").read_text())
        plain["files"][name] = "0" * 64
        (place / "manifest.json").write_text(json.dumps(plain))
        with pytest.raises(ReleaseError, match=r"was edited"):
            Release.load(place)
        found = hostile.verify(place)
        assert not found.verified
        assert any("must be a file in the folder, and is missing" in one.says for one in found.failures)
    finally:
        shutil.rmtree(place)


# SQL.

FORBIDDEN = [
    "select * from query('select 1')",
    "select * from query_table('release')",
    "select * from sniff_csv('people.csv')",
    "select * from parquet_metadata('people.csv')",
    "select * from read_blob('/etc/passwd')",
    "select * from read_json('http://localhost/')",
    "select count(*) from release where (select count(*) from read_text('/etc/passwd')) > 0",
    "select count(*) from release where age in (from range(3))",
    'select * from "/etc/passwd"',
    "from 'https://localhost/x.parquet'",
    "copy release to 'stolen.csv'",
    "export database 'stolen'",
    "attach ':memory:' as x",
    "install httpfs",
    "load httpfs",
    "set memory_limit = '100GB'",
    "reset enable_external_access",
    "pragma enable_profiling",
    "set variable a = 1",
    "call pragma_version()",
    "create macro f(x) as x",
    "create secret (type s3)",
    "insert into release values (1)",
    "drop view release",
    "prepare a as select 1",
    "explain analyze select count(*) from release",
    "select count(*) from release; copy (select 1) to 'stolen.csv'",
    "describe release",
    "show all tables",
    "use memory",
    "checkpoint",
    "select * from duckdb_secrets()",
    "select * from pg_catalog.pg_settings",
    "select * from json_execute_serialized_sql(json_serialize_sql('select 1'))",
    "select current_setting('memory_limit'), count(*) from release",
    "select getvariable('a'), count(*) from release",
    "select getenv('HOME'), count(*) from release",
    "select write_log('x'), count(*) from release",
    "select nextval('x'), count(*) from release",
    "select pg_sleep(100), count(*) from release",
    "select * from arrow_scan(1, 2, 3)",
    "select * from pandas_scan(1)",
    "select len(range(1000000000)), count(*) from release",
    "select count(*) from release where len(repeat('x', 1000000000)) > 1",
    "select lpad('a', 2000000000, 'x'), count(*) from release",
    "select list_resize([1], 1000000000), count(*) from release",
    "select format('{:1000000000}', 1), count(*) from release",
]


@pytest.mark.parametrize("query", FORBIDDEN)
def test_sql_reaches_nothing_but_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("secret\n1\n")
    with pytest.raises(QueryError):
        hostile.release().sql(query)
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


ENDLESS = "select * from (values " + ", ".join(f"({one})" for one in range(100)) + ") t(x)"
CROSS = f"with a as ({ENDLESS}) select sum(b.x * c.x * d.x * e.x * f.x) from a b, a c, a d, a e, a f"


def test_sql_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "MOST_SECONDS", 1.0)
    with pytest.raises(QueryError, match="must take at most"):
        hostile.release().sql(CROSS)


def test_an_answer_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "MOST_BYTES", 1000)
    with pytest.raises(QueryError, match="must have at most"):
        hostile.release().sql(f"with a as ({ENDLESS}) select a.x, b.x from a a, a b")


# Ledgers.


def test_a_forged_ledger_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for table, row in {
        "budget": ("now", "1e999999999"),
        "publication": ("id", "now", "diffgen", "x"),
        "debit": ("id", "now", "x", "x", "1/0", "1", 1),
    }.items():
        path = tmp_path / f"{table}.ledger"
        Ledger(path, "people", None).begin()
        with sqlite3.connect(path) as db:
            db.execute(f"insert into {table} values ({', '.join('?' * len(row))})", row)
        db.close()
        with pytest.raises(SfumatoError, match="its lines are not those of a ledger"):
            Ledger.open(path).statement()
