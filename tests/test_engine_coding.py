"""Values are coded wherever they are as a table is coded here: the same leaf, the same refusal, to the last bit."""

from __future__ import annotations

import datetime
import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_column import TENTHS, YEAR, names, numeric
from sfumato.engines.spark import coding_of, layout_of, shipped
from sfumato.schema.schema import Schema
from sfumato.tables.encode import encode
from sfumato.tables.sources import open_table
from sfumato.tables.streams import Table
from sfumato.tables.values import REASONS

ROWS = {"kind": "numeric", "lower": 1000, "upper": 1099}
FACTS: dict[str, dict[str, Any]] = {
    "names": names("a", "b", "NA", "none", "other", "true", "false", "é", missing="none", unseen="other"),
    "strict names": names("a", "b"),
    "numbers as names": names("1", "2.5", "1e3", "007", "-0.5", "0", "true", "inf", "9007199254740993", "1e22", "0.1"),
    "numbers as names, or others": names("1", "1.0", "2", "x", "gone", missing="gone", unseen="x"),
    "ages": numeric(0, 99),
    "gains": numeric(0, 1499, 500, points=[0, 700], missing="none"),
    "far": numeric(-(10**14), 10**14, 10**12, points=[7 * 10**12]),
    "tenths": TENTHS,
    "odd steps": numeric("-3.3", "12.7", "0.7", missing="none"),
    "year": YEAR,
    "weeks": numeric("1960-01-01", "2020-12-31", 7, missing="none"),
}
LONGEST = datetime.timedelta(days=10**8)
MISSING = {"missing_values": ["", "?", "NA", "-1", "5.0", "1900-01-01", "inf", "true"]}

texts = st.one_of(
    st.sampled_from(
        [
            "a",
            " b ",
            "\u2003a\xa0",
            "NA",
            "?",
            "",
            "true",
            "True",
            "1",
            "1.0",
            "+1",
            "01",
            "1e0",
            "10e-1",
            ".5",
            "5.",
            "-.5",
            "-0.50",
            "1e3",
            "1000",
            "7",
            "007",
            "0",
            "-0",
            "0e9",
            "1e400",
            "-1e400",
            "1e-400",
            "9" * 400,
            "1_0",
            "9007199254740993",
            "9007199254740993.0",
            "1e22",
            "0x1F",
            "1,5",
            "٣",
            "--1",
            "1e",
            ".",
            "nan",
            "NaN",
            "inf",
            "-Infinity",
            "1e99999999999999999999",
            "2020-01-01",
            "2020-02-30",
            "0000-01-01",
            "2020-01-01T10:00:00",
            "2020-01-01 10:00",
            "2020-01-01T1000Z",
            "2020-01-01T10:00:00.123+02:00",
            "2020-01-01T25:00",
            "1900-01-01",
            "2020-01-01Tx",
            "20200101",
            "é",
            "'",
            '"',
            "\\",
            "a\0",
            "\ufdd0not a single value",
            "-1",
            "-1.0",
            "5",
        ]
    ),
    st.floats(allow_nan=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(-10, 20, places=3).map(str),
    st.text(max_size=4),
    st.dates().map(str),
    st.datetimes().map(str),
)
reals = st.one_of(
    st.floats(),
    st.floats(-4, 13),
    st.integers(-40, 130).map(lambda number: number / 10),
    st.sampled_from([-0.0, 0.1, 0.3, 0.7, 1e22, 2.0**53, 1e300, float("nan"), float("inf"), -1.0, 5.0, 699.999999]),
)


def single(number: float) -> np.float32:
    """Round, to infinity if it must be."""
    with np.errstate(over="ignore"):
        return np.float32(number)


def half(number: float) -> np.float16:
    """Round, to infinity if it must be."""
    with np.errstate(over="ignore"):
        return np.float16(number)


COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "text": st.lists(st.none() | texts, min_size=1, max_size=50).map(lambda values: pa.array(values, pa.string())),
    "dictionary": st.lists(st.none() | texts, min_size=1, max_size=50).map(
        lambda values: pa.array(values, pa.string()).dictionary_encode()
    ),
    "double": st.lists(st.none() | reals, min_size=1, max_size=50).map(lambda values: pa.array(values, pa.float64())),
    "float": st.lists(st.none() | reals.map(single), min_size=1, max_size=50).map(
        lambda values: pa.array(values, pa.float32())
    ),
    "bigint": st.lists(
        st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 1500) | st.just(2**53 + 1),
        min_size=1,
        max_size=50,
    ).map(lambda values: pa.array(values, pa.int64())),
    "byte": st.lists(st.none() | st.integers(0, 255), min_size=1).map(lambda values: pa.array(values[:50], pa.uint8())),
    "unsigned": st.lists(st.none() | st.integers(0, 2**64 - 1), min_size=1, max_size=50).map(
        lambda values: pa.array(values, pa.uint64())
    ),
    "decimal": st.lists(
        st.none() | st.decimals(-(10**9), 10**9, places=4) | st.just(Decimal("0.7000")), min_size=1, max_size=50
    ).map(lambda values: pa.array(values, pa.decimal128(20, 4))),
    "long decimal": st.lists(
        st.integers(-(10**37), 10**37).map(lambda number: Decimal(number).scaleb(-30)), min_size=1, max_size=50
    ).map(lambda values: pa.array(values, pa.decimal128(38, 30))),
    "truth": st.lists(st.none() | st.booleans(), min_size=1, max_size=50).map(
        lambda values: pa.array(values, pa.bool_())
    ),
    "day": st.lists(st.none() | st.dates() | st.dates(datetime.date(2019, 12, 1)), min_size=1, max_size=50).map(
        lambda values: pa.array(values, pa.date32())
    ),
    "moment": st.lists(st.none() | st.datetimes(), min_size=1, max_size=50).map(
        lambda values: pa.array(values, pa.timestamp("us"))
    ),
    "second": st.lists(st.none() | st.datetimes(), min_size=1, max_size=50).map(
        lambda values: pa.array(values, pa.timestamp("s"))
    ),
    "zoned": st.lists(
        st.none() | st.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2030, 1, 1)), min_size=1
    ).map(lambda values: pa.array(values[:9], pa.timestamp("us", "UTC"))),
    "bytes": st.lists(st.none() | st.sampled_from([b"a", b"\xff", b"1.0"]), min_size=1, max_size=5).map(pa.array),
    "clock": st.lists(st.none() | st.times(), min_size=1, max_size=5).map(
        lambda values: pa.array(values, pa.time64("us"))
    ),
    "nested": st.lists(st.none() | st.lists(st.integers(0, 9), max_size=2), min_size=1, max_size=5).map(
        lambda values: pa.array(values, pa.list_(pa.int64()))
    ),
    "null": st.integers(1, 5).map(pa.nulls),
    "elsewhere": st.lists(
        st.none() | st.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2030, 1, 1)), min_size=1
    ).map(lambda values: pa.array(values[:9], pa.timestamp("us", "Asia/Tokyo"))),
    "nanosecond": st.lists(st.none() | st.integers(-(2**40), 2**62), min_size=1, max_size=50).map(
        lambda values: pa.array(values, pa.timestamp("ns"))
    ),
    "far day": st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=50).map(
        lambda values: pa.array(values, pa.int32()).cast(pa.date32())
    ),
    "far second": st.lists(st.none() | st.integers(-(2**62), 2**62), min_size=1, max_size=50).map(
        lambda values: pa.array(values, pa.timestamp("s"))
    ),
    "half": st.lists(st.none() | reals.map(half), min_size=1, max_size=50).map(
        lambda values: pa.array(values, pa.float16())
    ),
    "while": st.lists(st.none() | st.timedeltas(-LONGEST, LONGEST), min_size=1, max_size=9).map(
        lambda values: pa.array(values, pa.duration("us"))
    ),
}
Slots = dict[str, tuple[list[int], dict[str, int]]]
"""By attribute the codes, 0 where there is none, and how many there are not, by reason."""


def here(table: Any, schema: Schema) -> Slots:
    """Code a table."""
    coded = encode(open_table(table), schema)
    reasons: dict[str, dict[str, int]] = {name: {} for name in coded.columns}
    for misfit in coded.misfits:
        reasons[misfit.column][misfit.reason] = misfit.rows
    return {name: (coded.columns[name].tolist(), reasons[name]) for name in schema.predictors}


def row_by_row(table: Any, schema: Schema) -> Slots:
    """Code each row in a batch of its own."""
    batches = [batch for at in range(table.num_rows) for batch in table.slice(at, 1).to_batches()]
    alone = Table(table.column_names, lambda asked: (batch.select(list(asked)) for batch in batches))
    coded = encode(alone, schema)
    assert coded.rows == table.num_rows
    reasons: dict[str, dict[str, int]] = {name: {} for name in coded.columns}
    for misfit in coded.misfits:
        reasons[misfit.column][misfit.reason] = misfit.rows
    return {name: (coded.columns[name].tolist(), reasons[name]) for name in schema.predictors}


def on_an_executor(table: Any, schema: Schema) -> Slots:
    """Code as an executor does, by a coder that has travelled."""
    task = pickle.loads(pickle.dumps(coding_of(table.column_names, schema)))
    return slots_of(task(iter(table.select(list(task.coder.encoders)).combine_chunks().to_batches())), schema)


def slots_of(batches: Iterable[pa.RecordBatch], schema: Schema) -> Slots:
    """Take codes and reasons out of what executors give."""
    codes: dict[str, list[int]] = {name: [] for name in schema.predictors}
    reasons: dict[str, Counter[str]] = {name: Counter() for name in schema.predictors}
    for block, told in (row.values() for batch in batches for row in batch.to_pylist()):
        if told is not None:
            for name, reason, rows in json.loads(told):
                reasons[name][REASONS[reason]] += rows
        else:
            unpacked = layout_of(schema).unpacked(block)
            for name, column in zip(codes, unpacked.columns, strict=True):
                codes[name] += column.tolist()
    return {name: (codes[name], dict(reasons[name])) for name in codes}


def table_of(column: Any, facts: dict[str, dict[str, Any]], more: dict[str, Any]) -> tuple[Any, Schema]:
    """Give a table of the same column under every name, and its schema."""
    rows = pa.array(range(1000, 1000 + len(column)), pa.int64())
    table = pa.table(dict.fromkeys(facts, column) | {"row": rows})
    return table, Schema.parse({"attributes": facts | {"row": ROWS}} | more)


def assert_alike(
    code: Callable[[Any, Schema], Slots], column: Any, facts: dict[str, dict[str, Any]], more: dict[str, Any]
) -> None:
    table, schema = table_of(column, facts, more)
    found, expected = code(table, schema), here(table, schema)
    for name in facts:
        assert found[name] == expected[name], name


@pytest.mark.parametrize("kind", list(COLUMNS))
@pytest.mark.parametrize("more", [{}, MISSING], ids=["plain", "missing"])
@pytest.mark.parametrize("code", [row_by_row, on_an_executor])
def test_a_row_is_coded_by_itself_wherever_it_is(
    kind: str, more: dict[str, Any], code: Callable[[Any, Schema], Slots]
) -> None:
    @settings(max_examples=3, database=None)
    @given(COLUMNS[kind])
    def check(column: Any) -> None:
        assert_alike(code, column, FACTS, more)

    check()


NAMED: dict[str, dict[str, Any]] = {
    "x": names("0", "1", "100", "infinity", "1e99999999999999999999", "rest", unseen="rest"),
    "y": numeric(0, 99, missing="none"),
    "z": numeric("1960-01-01", "2020-12-31", missing="none"),
}
ODD: dict[str, Any] = {
    "dotless": pa.array(["1", "\u0131nf", "\u0130nf", "INF\u0130NITY", "inf"]),
    "exponents": pa.array(["10e9223372036854775807", "1e-9223372036854775808", "0e99999999999999999999", "1e0002"]),
    "beyond": pa.array([2**64 - 1, 10**19, 2**63, 2**63 - 1, 5], pa.uint64()),
    "before 1970": pa.array([-1, 0, 1], pa.timestamp("ns")),
    "in Tokyo": pa.array([20 * 3600, 0, None], pa.timestamp("s", "Asia/Tokyo")),
    "odd clocks": pa.array(
        ["2000-12-13T12:30 Z", "1994-03-01T12:30:15.+01", "2000-12-13T12:30Z", "2000-12-13 1230+0130"]
    ),
    "endless": pa.array([2**31 - 1, 1 - 2**31, 0], pa.int32()).cast(pa.date32()),
    "latin": pa.array([b"1", b"\xe9", b"0"]).cast(pa.string(), safe=False),
}


@pytest.mark.parametrize("name", list(ODD))
@pytest.mark.parametrize("missing", [[], ["inf"], ["1e19", "1970-01-01"]], ids=["none", "inf", "far"])
@pytest.mark.parametrize("code", [row_by_row, on_an_executor])
def test_odd_values_too(name: str, missing: list[str], code: Callable[[Any, Schema], Slots]) -> None:
    table, schema = table_of(ODD[name], NAMED, {"missing_values": missing})
    assert code(table, schema) == here(table, schema)


def test_batches_may_be_of_different_types() -> None:
    """Each is coded by its own."""
    schema = Schema.parse({"attributes": {"x": names("a", "b", "other", unseen="other"), "row": ROWS}})
    columns = [pa.array(["a"]), pa.array(["b"], pa.large_string()), pa.array(["b"]).dictionary_encode(), pa.array([1])]
    batches = [pa.record_batch({"x": column, "row": [1000 + place]}) for place, column in enumerate(columns)]
    table = Table(["x", "row"], lambda asked: (batch.select(list(asked)) for batch in batches))
    assert encode(table, schema).columns["x"].tolist() == [0, 1, 1, 2]


EXECUTOR = """
import pickle, sys
sys.modules.update(dict.fromkeys(["pydantic", "duckdb", "narwhals", "yaml", "click"]))
run, table = pickle.loads(sys.stdin.buffer.read())
batches = list(run(iter(table.to_batches())))
assert not [name for name in sys.modules if name.startswith("sfumato")]
sys.stdout.buffer.write(pickle.dumps(batches))
"""


def test_an_executor_needs_nothing_of_ours_but_numpy_and_arrow(tmp_path: Path) -> None:
    """A process that can import neither this package nor what it needs does a task that came along with its text."""
    cloudpickle = pytest.importorskip("cloudpickle", reason="Spark has its own")
    table, schema = table_of(pa.array(["a", " b ", "x"]), {"x": names("a", "b"), "y": numeric(0, 9)}, {})
    sent = cloudpickle.dumps((shipped(coding_of(table.column_names, schema), cloudpickle), table))
    bare = [path for path in sys.path if path.endswith("site-packages")]
    ran = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path += {bare!r}\n{EXECUTOR}"],
        input=sent,
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
    )
    assert ran.returncode == 0, ran.stderr.decode()
    assert slots_of(pickle.loads(ran.stdout), schema) == here(table, schema)
