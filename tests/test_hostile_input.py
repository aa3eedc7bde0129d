"""Nothing that somebody else wrote makes Sfumato fall over, run code, leave its folder or fill the memory."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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
from sfumato.release import sql
from sfumato.release.folder import FIELDS

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
        b'attributes: {a: {kind: categorical, codes: "' + b"(A)" * 20_000 + b'"}}',
        b'attributes: {a: {kind: categorical, codes: "' + b"[A-Z0-9]" * 12 + b'"}}',
        b"attributes: {a: {kind: numeric, lower: -1e14, upper: 1e14, borders: [" + b"1, " * 50_000 + b"2]}}",
        b"attributes: {a: {kind: numeric, lower: 0, upper: 1, written: " + b"DD" * 50_000 + b"}}",
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
    "code_book": [
        b"\0" + b"[" * 100_000,
        b'\0{"fields": [{"name": "a", "categories": ["x", "x", {}]}]}',
        b"\1" + b"a;" * 90_000,
    ],
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


# Memory and time.

MEASURE = """
import pathlib, resource, sys, time
sys.path[:0] = {paths!r}
import hostile
hostile.folders()
for path in sorted(pathlib.Path({place!r}).iterdir(), key=lambda path: int(path.name.split()[0])):
    target, data = path.suffix[1:], path.read_bytes()
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    hostile.attempt(target, data)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    print(path.stem, more, round(time.process_time() - began), sep=";")
"""
MOST_MEGABYTES = 600
MOST_SECONDS = 20


def parquet(columns: Mapping[str, pa.Array] | pa.Table, times: int = 1, codec: str = "snappy") -> bytes:
    """Write the same rows again and again."""
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    file = io.BytesIO()
    with pq.ParquetWriter(file, table.schema, compression=codec) as writer:
        for _ in range(times):
            writer.write_table(table)
    return file.getvalue()


def forged(folder: str, name: str, content: bytes) -> bytes:
    """Say in which file of which release the content stands."""
    (kind,) = (at for at, one in enumerate(hostile.folders()) if one.name == folder)
    names = sorted(path.name for path in hostile.folders()[kind].iterdir())
    return bytes([kind, names.index(name)]) + content


def structure(folder: str, change: Callable[[Any], object]) -> bytes:
    """Change the structure of a release."""
    (place,) = (one for one in hostile.folders() if one.name == folder)
    plain = json.loads((place / "structure.json").read_text())
    change(plain)
    return forged(folder, "structure.json", json.dumps(plain).encode())


ZEROS = pa.array(np.zeros(1 << 20, np.int64))


def counts(zeros: pa.Array = ZEROS) -> pa.Table:
    return pa.table([zeros] * len(FIELDS), schema=FIELDS)


def wide() -> bytes:
    """Declare 200 attributes of a million leaves each."""
    lines = (f"  a{at}: {{kind: numeric, lower: 0, upper: 999990}}" for at in range(200))
    return "\n".join(["attributes:", *lines]).encode()


def long_name() -> bytes:
    """Call each of many groups by one long name."""
    (place,) = (one for one in hostile.folders() if one.name == "grid")
    fields = pq.read_schema(place / "records.parquet")
    name = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1 << 16, np.int32)), pa.array(["x" * 30_000]))
    rows = pa.array(np.zeros(1 << 16, np.int64))
    columns = [name if pa.types.is_dictionary(field.type) else rows.cast(field.type) for field in fields]
    return forged("grid", "records.parquet", parquet(pa.table(columns, schema=fields)))


def long_path(cuts: int = 40_000) -> bytes:
    """Cut one leaf off after the other: a tree that is a single path."""

    def grow(plain: Any) -> None:
        nodes = [(2 * at, at, at + 1) for at in range(cuts)]
        plain["structure"] |= {
            "parent": [head for head, _, _ in nodes for _ in (0, 1)],
            "attribute": [0] * (2 * cuts),
            "low": [end for _, low, high in nodes for end in (low, high)],
            "high": [end for _, _, high in nodes for end in (high, cuts + 1)],
        }

    return structure("tree", grow)


def many_rules() -> bytes:
    """Speak of thousands of rules between many leaves."""
    (place,) = (one for one in hostile.folders() if one.name == "boxes")
    plain = json.loads((place / "manifest.json").read_text())
    leaves, rules = 100_000, 5000
    plain["promise"]["statistics"]["marginals"] = [[1 / leaves] * leaves]
    plain["promise"]["statistics"]["rules"] = [
        {"where": {"0": [[at, at + 1]]}, "chances": {"0": 0.5}} for at in range(rules)
    ]
    del plain["digest"]
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    return json.dumps(plain | {"digest": digest}).encode()


def many_questions(plain: Any) -> None:
    plain["measurements"] *= 30_000


def endless_rates(plain: Any) -> None:
    plain["measurements"][-1]["rates"] = [f"1/{10**18 + 2 * number + 1}" for number in range(30_000)]


def a_long_text_among_numbers(plain: Any) -> None:
    plain["structure"]["parent"] = ["x" * 1_000_000, *["a"] * 1_000]


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a schema of 200 million leaves": ("schema_file", wide),
    "many counts": ("release_file", lambda: forged("grid", "measurements.parquet", parquet(counts(), 24))),
    "one long text": (
        "release_file",
        lambda: forged("grid", "measurements.parquet", parquet({"count": pa.array(["x" * (1 << 28)])}, codec="zstd")),
    ),
    "columns of one name": (
        "release_file",
        lambda: forged(
            "grid",
            "measurements.parquet",
            parquet(pa.Table.from_arrays([ZEROS] * 300, [*FIELDS.names[:-1], *["rate"] * 296])),
        ),
    ),
    "many records": (
        "release_file",
        lambda: forged("boxes", "records.parquet", parquet({"count": ZEROS}, 24)),
    ),
    "a long name": ("release_file", long_name),
    "a long text among numbers": ("release_file", lambda: structure("tree", a_long_text_among_numbers)),
    "many questions": ("release_file", lambda: structure("grid", many_questions)),
    "a long path": ("release_file", long_path),
    "rates that nobody can add up": ("release_file", lambda: structure("tree", endless_rates)),
    "many rules": ("manifest", many_rules),
}
"""Small inputs that stand for much: a gigabyte or more, or minutes, if they were believed."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, int]]:
    """Read all of them in a process of its own; by how many megabytes each raised the peak, and its seconds."""
    place = tmp_path_factory.mktemp("bombs")
    for number, (name, (target, made)) in enumerate(BOMBS.items()):
        (place / f"{number} {name}.{target}").write_bytes(made())
    paths = [str(Path(hostile.__file__).parent), str(Path(release.__file__).parents[2])]
    program = MEASURE.format(paths=paths, place=str(place))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    lines = (line.split(";") for line in done.stdout.splitlines())
    return {name.split(" ", 1)[1]: (int(megabytes), int(seconds)) for name, megabytes, seconds in lines}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_takes_little_memory_and_time(measured: dict[str, tuple[int, int]], name: str) -> None:
    megabytes, seconds = measured[name]
    assert megabytes < MOST_MEGABYTES
    assert seconds < MOST_SECONDS


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
        Ledger(path, f"people and {table}", None).begin()
        with sqlite3.connect(path) as db:
            db.execute(f"insert into {table} values ({', '.join('?' * len(row))})", row)
        db.close()
        with pytest.raises(SfumatoError, match="its lines are not those of a ledger"):
            Ledger.open(path).statement()
