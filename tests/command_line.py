"""A small table of people, and commands run on it: they do what they should or refuse in one sentence."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from click.testing import CliRunner, Result

from sfumato.cli import main
from sfumato.cli.show import REFUSED

CANARIES = ("CANARY", "87654.321", "1899-09-09")
SCHEMA = """
name: people
confirmed: true
budget: 4
attributes:
  name: {kind: identifier}
  age: {kind: numeric, lower: 17, upper: 90}
  sex: {kind: categorical, taxonomy: [Female, Male]}
  job: {kind: categorical, root: Anyone, taxonomy: {White-collar: [Engineer, Lawyer], Artist: [Dancer, Writer]}}
  planet: {kind: categorical, taxonomy: [Earth]}
  income: {kind: class, taxonomy: [low, high]}
"""
HEADER = "name,age,sex,job,planet,income\n"
GOOD = "CANARY 1,30,Female,Dancer,Earth,low\n"
SPLIT = inspect.signature(CliRunner).parameters.get("mix_stderr")
RUNNER = CliRunner(**({"mix_stderr": False} if SPLIT else {}))


def people(rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(0)
    age = rng.integers(17, 91, rows)
    return pa.table(
        {
            "name": [f"CANARY {row}" for row in range(rows)],
            "age": age,
            "sex": np.where(rng.random(rows) < 0.5, "Female", "Male"),
            "job": np.array(["Engineer", "Lawyer", "Dancer", "Writer"])[rng.integers(0, 4, rows)],
            "planet": ["Earth"] * rows,
            "income": np.where(age > 50, "high", "low"),
        }
    )


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return path


def run(*arguments: object) -> Result:
    return RUNNER.invoke(main, list(map(str, arguments)))


def done(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr or result.exception
    assert result.stderr == ""
    return result.stdout


def done_json(*arguments: object) -> dict:
    return json.loads(done(*arguments, "--json"))


def contents() -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


def refused(*arguments: object) -> str:
    """Give the one sentence of a refusal, after making sure that it is one and that nothing else happened."""
    before = contents()
    result, as_json = run(*arguments), run(*arguments, "--json")
    for one in (result, as_json):
        assert isinstance(one.exception, SystemExit), repr(one.exception)
        assert one.exit_code == REFUSED
        assert one.stdout == ""
        assert not any(canary in one.stderr for canary in CANARIES)
        assert "must not fail like this" not in one.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    told = json.loads(as_json.stderr)["error"]
    assert result.stderr == f"error: {told['problem'].rstrip('.')}. {told['remedy']}\n"
    assert told["remedy"]
    assert contents() == before
    return result.stderr


def publish(*more: object, data: str = "people.csv") -> list[object]:
    """Write a good publish command; what comes later wins."""
    return ["publish", data, "--epsilon", "1", "--specializations", "3", "--out", "out", *more]
