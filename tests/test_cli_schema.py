"""From a file to a confirmed schema on the command line: drafts with reasons, other encodings, help one can read."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from click.testing import CliRunner

from command_line import done, done_json, refused
from holders import TABLES
from sfumato import ENGINES, METHODS, Release
from sfumato.cli import main
from sfumato.schema.schema import Schema

LOCAL = [engine for engine in ENGINES if engine != "spark"]
"""The engines that need no cluster."""


def confirm(path: Path) -> None:
    path.write_text(path.read_text().replace("confirmed: false", "confirmed: true"))


@pytest.mark.parametrize("name", TABLES)
def test_from_a_file_to_a_release_without_a_correction(here: Path, name: str) -> None:
    held = TABLES[name](rows=1500)
    pyarrow.csv.write_csv(held.table, here / "table.csv")
    told = done("draft", "table.csv").replace(str(here), "")
    text = Path("table.schema.yaml").read_text()
    assert [canary for canary in held.canaries if canary in told + text] == []
    done("check", "table.csv", "--strict")
    confirm(here / "table.schema.yaml")
    done("publish", "table.csv", "--epsilon", "1", "--out", "out")
    release = Release.load(here / "out")
    assert release.manifest.method == "marginals"
    schema = (here / "out" / "schema.json").read_text()
    assert [canary for canary in held.canaries if canary in schema] == []


def test_reasons_are_shown_and_written(here: Path) -> None:
    pyarrow.csv.write_csv(TABLES["bank"](rows=500).table, here / "bank.csv")
    plain = done_json("draft", "bank.csv")
    assert plain["reasons"]["email"].endswith(": not read")
    assert plain["attributes"]["geboren"] == "numeric"
    assert "# days, written as DD.MM.YYYY" in Path("bank.schema.yaml").read_text()


def test_an_imported_taxonomy_keeps_the_warnings_of_a_draft(here: Path) -> None:
    pyarrow.csv.write_csv(TABLES["bank"](rows=500).table, here / "bank.csv")
    done("draft", "bank.csv")
    Path("beruf.csv").write_text("Angestellte;Erwerb;*\nArbeiter;Erwerb;*\nBeamte;Erwerb;*\nRentner;Rente;*\n")
    done("taxonomy", "import", "bank.schema.yaml", "beruf", "beruf.csv", "--out", "new.yaml")
    before, after = Path("bank.schema.yaml").read_text(), Path("new.yaml").read_text()
    assert after.startswith("# A draft from private data, NOT confirmed.")
    assert [line for line in after.splitlines() if "#" in line] == [line for line in before.splitlines() if "#" in line]
    facts = Schema.load(here / "new.yaml").attributes["beruf"]
    assert facts.model_dump()["taxonomy"] == [
        {"Erwerb": ["Angestellte", "Arbeiter", "Beamte"]},
        {"Rente": ["Rentner"]},
        "Other",
    ]


def test_a_file_in_another_encoding(here: Path) -> None:
    rows = "".join(f"{'Käse' if n % 2 else 'Öl'};{n % 40},5\n" for n in range(200))
    Path("old.csv").write_bytes(("stück;größe\n" + rows).encode("cp1252"))
    assert "or say what it is with --encoding" in refused("draft", "old.csv")
    assert "must be one that Python knows" in refused("draft", "old.csv", "--encoding", "klingon")
    assert "must go with a CSV or TSV file" in refused("check", "adult", "--encoding", "cp1252")
    done("draft", "old.csv", "--encoding", "cp1252")
    confirm(here / "old.schema.yaml")
    assert "Everything fits" in done("check", "old.csv", "--encoding", "cp1252")
    records = []
    for engine in LOCAL:
        options = ("--epsilon", "1", "--engine", engine, "--unsafe-seed", "7")
        done("publish", "old.csv", "--encoding", "cp1252", *options, "--out", engine)
        records.append(Release.load(here / engine).records().to_pydict())
    assert all(one == records[0] for one in records)


@pytest.mark.parametrize("name", TABLES)
def test_every_engine_reads_what_a_draft_declares_alike(here: Path, name: str) -> None:
    pyarrow.csv.write_csv(TABLES[name](rows=400).table, here / "table.csv")
    done("draft", "table.csv")
    confirm(here / "table.schema.yaml")
    records = []
    for engine in LOCAL:
        method = ("--method", "diffmulti", "--specializations", "30")
        options = (*method, "--epsilon", "1", "--engine", engine, "--unsafe-seed", "7")
        done("publish", "table.csv", *options, "--out", engine)
        records.append(Release.load(here / engine).records().to_pydict())
    assert all(one == records[0] for one in records)


@pytest.mark.parametrize("method", METHODS)
def test_a_table_without_a_class_is_published_or_the_way_out_is_told(here: Path, method: str) -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"a": rng.choice(["x", "y"], 100), "n": rng.integers(0, 20, 100)})
    pyarrow.csv.write_csv(table, here / "plain.csv")
    done("draft", "plain.csv")
    confirm(here / "plain.schema.yaml")
    command = ("publish", "plain.csv", "--method", method, "--epsilon", "1", "--out", "out")
    if method in ("diffgen", "cdiffgen"):
        assert "or use --method diffmulti, which needs none" in refused(*command)
    elif method == "diffp-c45":
        assert "must have a class attribute of two values or more. Name one with --target" in refused(*command)
    elif method == "structurefirst":
        done(*command, "--largest", "100")
    else:
        done(*command)


def test_help_shows_what_people_use_and_help_all_the_rest() -> None:
    short, full = (CliRunner().invoke(main, ["publish", option]).output for option in ("--help", "--help-all"))
    options = [line for line in short.splitlines() if line.startswith(("  --", "  -h"))]
    assert len(options) == 14
    assert "--specializations" not in short
    assert "--help-all" in short
    for name, method in METHODS.items():
        assert f"Options of {name}:" in full or not fields(method)
    for option in ("--specializations", "--despite-budget", "--encoding", "--scratch", "--workload"):
        assert option in full
