"""What a command needs is imported when it is called; the list of commands says of each what it says itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from command_line import CANARIES, done, publish
from sfumato import METHODS, WITHOUT_EPSILON
from sfumato.cli import main
from sfumato.cli.main import COMMANDS
from sfumato.cli.show import REFUSED

HEAVY = {"numpy", "pyarrow", "pydantic", "duckdb", "sklearn", "pandas", "matplotlib", "yaml", "sqlite3"}
NOT_TO_ASK = {"pandas", "duckdb", "sklearn", "sqlite3", "yaml", "matplotlib"}
NOT_TO_PUBLISH = {"sklearn", "matplotlib"}
TELL = "\nimport json, sys; print('\\n' + json.dumps(sorted(sys.modules)))"
LIGHT = {"sfumato", "sfumato.errors", "sfumato.cli", "sfumato.cli.main", "sfumato.cli.show"}


def program(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)


def loaded(code: str, *arguments: object) -> set[str]:
    """Run a program, and give the modules that it has imported in the end."""
    done = program(code + TELL, *arguments)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def loaded_by(*arguments: object) -> set[str]:
    """Run a command, and give the modules that it has imported in the end."""
    return loaded("from sfumato.cli import main; main()", *arguments)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_of_a_command_what_it_says_itself(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.name == name
    assert COMMANDS[name][1] == command.get_short_help_str(limit=1000)


def test_importing_the_package_imports_nothing_else() -> None:
    modules = loaded("import sfumato")
    assert {one for one in modules if one.startswith("sfumato")} == {"sfumato"}
    assert not modules & {*HEAVY, "click"}


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("nothing",), ()], ids=str)
def test_help_answers_without_importing_a_command(arguments: tuple[str, ...]) -> None:
    wrong = "from sfumato.cli import main\ntry: main()\nexcept SystemExit: pass"
    modules = loaded(wrong, *arguments)
    assert {one for one in modules if one.startswith("sfumato")} == LIGHT
    assert not modules & HEAVY
    assert "click" in modules


@pytest.mark.usefixtures("here")
def test_a_query_imports_no_more_than_it_needs() -> None:
    done(*publish())
    modules = loaded_by("query", "out", "age < 30 and sex = 'Female'")
    assert "sfumato.release.release" in modules
    assert not modules & NOT_TO_ASK


@pytest.mark.usefixtures("here")
def test_publishing_needs_neither_learners_nor_pictures() -> None:
    modules = loaded_by(*publish())
    assert Path("out/manifest.json").exists()
    assert not modules & NOT_TO_PUBLISH


def test_an_import_is_noticed() -> None:
    assert HEAVY & loaded("import sfumato; sfumato.Schema") >= {"numpy", "pydantic"}


BROKEN = f"""
import sfumato
from sfumato.cli import main
def fail(_): raise RuntimeError("{CANARIES[0]}")
sfumato.Release.load = fail
main()
"""


@pytest.mark.parametrize("command", [("query", "out"), ("inspect", "out"), ("risk", "out")], ids=str)
def test_an_unexpected_failure_is_one_sentence(command: tuple[str, ...]) -> None:
    failed = program(BROKEN, *command)
    assert failed.returncode == REFUSED
    assert failed.stdout == ""
    assert failed.stderr == (
        "error: Sfumato must not fail like this (RuntimeError). Report it, without the data; see sfumato --debug.\n"
    )
    as_json = program(BROKEN, *command, "--json")
    assert "must not fail like this" in json.loads(as_json.stderr)["error"]["problem"]


def test_a_traceback_is_shown_to_those_who_ask() -> None:
    failed = program(BROKEN, "--debug", "query", "out")
    assert failed.returncode not in (0, REFUSED)
    assert failed.stderr.startswith("Traceback")
    assert failed.stderr.endswith(f"RuntimeError: {CANARIES[0]}\n")
    refused = program("from sfumato.cli import main; main()", "--debug", "query", "nowhere")
    assert refused.returncode == REFUSED
    assert refused.stderr.startswith("error: ")


def test_helps_name_the_methods_that_are_registered() -> None:
    told = {
        name: " ".join(done(name, said).split()) for name, said in (("publish", "--help-all"), ("compare", "--help"))
    }
    *first, last = WITHOUT_EPSILON
    others = f"{', '.join(first)} and {last}"
    assert f"for all methods but {others}, which have none" in told["publish"]
    assert f"{others} work on single records, in memory only" in told["publish"]
    assert f"({', '.join([*METHODS, *WITHOUT_EPSILON])}; all: those with an epsilon)" in told["compare"]
    assert "[default: all]" in told["compare"]
