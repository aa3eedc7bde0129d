"""Whatever goes wrong with a table, nothing that is in it is said: not by errors, tracebacks, logs, warnings or reprs.

Canaries stand in the table: words, numbers and dates that occur nowhere else, and a number of rows that is a prime. All
commands that read rows, all methods and all kinds of tables get bad inputs, and all that is heard is searched.
"""

from __future__ import annotations

import datetime
import gzip
import json
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato
from command_line import SCHEMA, run
from sfumato import METHODS, WITHOUT_EPSILON, Account, Schema
from sfumato.cli.show import REFUSED
from sfumato.errors import SfumatoError

ROWS = 1009
WORD, NUMBER, DATE, HUGE = "QUETZAL", 73856.093, "1789-07-14", 2**70 + 5
CANARIES = (WORD, "73856", DATE, "1789", str(HUGE), "180591620717411", "1009", "1,009", "1008", "1,008")
GOOD = {"name": "x", "age": 30, "sex": "Female", "job": "Dancer", "planet": "Earth", "income": "low"}
OPTIONS = {
    "mondrian": ["--k", "5"],
    "tds": ["--k", "5"],
    "confidence": ["--sensitive", "income", "--statistics-from-data", "yes"],
    "dpcocgen": ["--epsilon", "1", "--attributes", "sex,job,income"],
    "laplace": ["--epsilon", "1", "--attributes", "sex,job,income"],
    "structurefirst": ["--epsilon", "1", "--largest", "20"],
}


def table(**changes: Any) -> dict[str, list[Any]]:
    """Give good rows, the last of them changed."""
    columns = {name: [value] * ROWS for name, value in GOOD.items()}
    for name, value in changes.items():
        columns[name][-1] = value
    return columns


NUMBERS = ("arrow decimal", "arrow span")
"""Types that are numbers in some formats, and then count in the nearest cell."""
BAD_ROWS = {
    "a word": {"sex": WORD},
    "a number for a word": {"sex": NUMBER},
    "a word for a number": {"age": WORD},
    "a date for a number": {"age": DATE},
    "a word for the class": {"income": WORD},
    "nothing": {"job": None},
    "infinity": {"age": "inf"},
    "a huge number": {"job": HUGE},
    "a line break": {"sex": f"{WORD}\n{WORD}"},
    "a quote": {"sex": f'{WORD}"{WORD}'},
    "a nul": {"sex": f"{WORD}\0"},
}


def csv_of(columns: dict[str, list[Any]]) -> bytes:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join("" if one is None else str(one) for one in row) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


BROKEN = {
    "too many fields": f"{WORD},{NUMBER},{DATE},{WORD},{WORD},{WORD},{WORD},{WORD}\n".encode(),
    "too few fields": f"{WORD},{NUMBER}\n".encode(),
    "an open quote": f'x,30,"{WORD},{DATE},Earth,low\n'.encode(),
    "a quote inside": f'x,30,{WORD}"{WORD},Dancer,Earth,low\n'.encode(),
    "other bytes": b"x,30,\xff\xfe" + WORD.encode() + b",Dancer,Earth,low\n",
    "utf-16": f"x,30,{WORD},Dancer,Earth,low\n".encode("utf-16"),
    "nul": f"x,30,{WORD}\0,Dancer,Earth,low\n".encode(),
    "a long line": f"x,30,{WORD * 20_000},Dancer,Earth,low\n".encode(),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write every bad table in every format that can hold it."""
    place, found = tmp_path_factory.mktemp("bad"), {}

    def put(name: str, content: bytes) -> None:
        found[name] = place / name
        found[name].write_bytes(content)

    for number, (what, changes) in enumerate(BAD_ROWS.items()):
        columns = table(**changes)
        put(f"{number}.csv", csv_of(columns))
        if what in ("a word", "a word for a number"):
            put(f"{number}.csv.gz", gzip.compress(csv_of(columns)))
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        put(f"{number}.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    for number, line in enumerate(BROKEN.values()):
        put(f"broken{number}.csv", csv_of(table()) + line)
    put("broken.jsonl", csv_of(table()) + b'{"' + WORD.encode())
    put("half.jsonl", json.dumps(GOOD).encode() + b'\n{"age": "' + WORD.encode())
    put("deep.jsonl", json.dumps(GOOD | {"sex": [WORD], "job": {WORD: 1}}).encode())
    put("no.parquet", b"PAR1" + WORD.encode() * 100)
    for name, frame in frames().items():
        if isinstance(frame, pa.Table) and name not in NUMBERS:
            found[name] = place / f"{name.replace(' ', '-')}.parquet"
            pq.write_table(frame, found[name])
    return found


def frames() -> dict[str, Any]:
    """Give bad tables as frames of every library, with columns of every type."""
    words = [WORD if row == ROWS - 1 else "Female" for row in range(ROWS)]
    days = [datetime.date.fromisoformat(DATE)] * ROWS
    good = pa.table(table())

    def arrow(name: str, array: pa.Array) -> pa.Table:
        return good.set_column(good.column_names.index(name), name, array)

    return {
        "arrow words": arrow("sex", pa.array(words)),
        "arrow dictionary": arrow("sex", pa.array(words).dictionary_encode()),
        "arrow list": arrow("sex", pa.array([[word] for word in words])),
        "arrow struct": arrow("sex", pa.array([{WORD: word} for word in words])),
        "arrow binary": arrow("sex", pa.array([word.encode() + b"\xff" for word in words])),
        "arrow day": arrow("age", pa.array(days)),
        "arrow time": arrow("age", pa.array([datetime.datetime.fromisoformat(DATE)] * ROWS, pa.timestamp("us", "UTC"))),
        "arrow decimal": arrow("age", pa.array([Decimal(str(HUGE))] * ROWS)),
        "arrow span": arrow("age", pa.array([73856093] * ROWS, pa.duration("s"))),
        "pandas mixed": pd.DataFrame(
            table() | {"age": [WORD, NUMBER, None, [WORD], {WORD: 1}, HUGE] + [1] * (ROWS - 6)}
        ),
        "pandas categories": pd.DataFrame(table() | {"sex": pd.Categorical(words)}),
        "pandas objects": pd.DataFrame(table() | {"sex": [Odd()] * ROWS}),
        "pandas twice": pd.DataFrame(np.full((ROWS, 2), WORD), columns=["age", "age"]),
        "polars words": pl.DataFrame(table() | {"sex": words}),
        "polars categories": pl.DataFrame(table()).with_columns(pl.Series("sex", words, pl.Categorical)),
        "polars lazy": pl.LazyFrame(table()).with_columns(pl.lit(WORD).cast(pl.Int64).alias("age")),
        "no frame": [WORD, NUMBER],
    }


class Odd:
    """A value that tells itself when it is looked at."""

    def __str__(self) -> str:
        """Fail with what it holds."""
        raise ValueError(WORD)

    __repr__ = __str__


def heard(text: str) -> list[str]:
    return [canary for canary in CANARIES if canary in text]


@pytest.fixture
def listening(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], str]]:
    """Hear every log line and warning."""
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield lambda: caplog.text + " ".join(str(one.message) for one in warned)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.schema.yaml").write_text(SCHEMA.replace("budget: 4\n", ""))
    return tmp_path


def commands(data: Path, method: str) -> list[list[Any]]:
    """Give every command that reads rows."""
    known = ["--schema", "people.schema.yaml"]
    spent = OPTIONS.get(method, ["--epsilon", "1"])
    return [
        ["publish", data, "--method", method, *spent, *known, "--ledger", "people.ledger", "--out", "out"],
        ["cocluster", data, *known],
        ["check", data, *known],
        ["draft", data, "--out", "drafted.yaml"],
    ]


def silent(arguments: list[Any], listened: Callable[[], str]) -> None:
    for result in (run(*arguments), run(*arguments, "--json")) if arguments[0] == "publish" else (run(*arguments),):
        said = result.stderr + (result.stdout if arguments[0] == "publish" else "") + listened()
        assert heard(said) == [], (arguments, said[:300])
        assert "must not fail like this" not in result.stderr, (arguments, result.stderr)
        assert result.exit_code in (0, REFUSED)
        if arguments[0] == "publish":
            assert result.exit_code == REFUSED, arguments


def test_no_command_says_what_a_bad_table_holds(files: dict[str, Path], here: Path, listening) -> None:
    assert here.exists()
    for number, path in enumerate(files.values()):
        for arguments in commands(path, "diffgen")[: 4 if number % 3 == 0 else 1]:
            silent(arguments, listening)
            Path("drafted.yaml").unlink(missing_ok=True)
    assert len(files) > 40


@pytest.mark.parametrize("method", [*METHODS, *WITHOUT_EPSILON])
def test_no_method_says_what_a_bad_table_holds(files: dict[str, Path], here: Path, listening, method: str) -> None:
    for name in ("0.csv", "4.csv", "5.jsonl", "broken0.csv", "broken2.csv", "arrow dictionary", "no.parquet"):
        silent(commands(files[name], method)[0], listening)
    assert not (here / "out").exists()
    assert not (here / "people.ledger").exists()


@pytest.mark.parametrize("command", ["evaluate", "risk"])
def test_commands_about_a_release_say_nothing_of_a_bad_table(
    files: dict[str, Path], here: Path, listening, command
) -> None:
    (here / "people.csv").write_bytes(csv_of({name: values[:60] for name, values in table().items()}))
    options = ["--method", "mondrian", "--k", "5"] if command == "risk" else ["--epsilon", "1"]
    assert run("publish", "people.csv", *options, "--out", "release").exit_code == 0
    for name in ("0.csv", "2.csv", "5.jsonl", "broken0.csv", "broken4.csv", "arrow dictionary", "no.parquet"):
        arguments = ["release", files[name]] if command == "evaluate" else ["release", "--population", files[name]]
        result = run(command, *arguments)
        assert heard(result.stderr + listening()) == [], result.stderr


@pytest.mark.parametrize("name", list(frames()))
def test_no_error_of_the_library_holds_what_it_saw(tmp_path: Path, listening, name: str) -> None:
    frame, schema = frames()[name], Schema.loads(SCHEMA)
    account = Account(tmp_path / "people.ledger", schema)
    attempts: list[Callable[[], Any]] = [
        lambda: account.publish(frame, sfumato.DiffGen(specializations=2), 1),
        lambda: account.publish(frame, sfumato.Mondrian(k=5), despite_budget=True),
        lambda: sfumato.check(frame, schema),
        lambda: sfumato.cocluster(frame, schema),
        lambda: sfumato.draft(frame),
    ]
    for attempt in attempts:
        try:
            told = repr(attempt()) if attempt is attempts[0] else ""
        except SfumatoError as error:
            told = "".join(traceback.format_exception(error)) + repr(error) + repr(error.__context__)
        assert heard(told.replace(__file__, "") + listening()) == [], told
    assert name in NUMBERS or not (tmp_path / "people.ledger").exists()


@pytest.mark.parametrize("method", METHODS)
def test_neighbours_leave_the_same_exit_code(here: Path, method: str) -> None:
    """No table that fits is refused, however small: that would tell it from its neighbour."""
    codes = []
    for rows in (0, 1, 2):
        (here / f"{rows}.csv").write_bytes(csv_of({name: values[:rows] for name, values in table().items()}))
        arguments = commands(Path(f"{rows}.csv"), method)[0]
        codes.append(run(*arguments[:-1], f"out{rows}").exit_code)
    assert codes == [0, 0, 0]
