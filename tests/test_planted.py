"""Every planted mistake is found, by replay, by the attack or by both; honest methods pass both."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import sfumato
from planted import BUGS, CUT, HONEST, LONE, Bug, audited, check_by_replay, found_by_replay, planted
from sfumato import Account
from sfumato.audit.events import SCHEMA
from sfumato.errors import PrivacyError

TABLE = pd.DataFrame({"job": ["Clerk", "Farmer"] * 5, "age": [0, 3] * 5, "class": ["Yes", "No"] * 5})
METHODS = sorted((Path(sfumato.__file__).parent / "methods").glob("*.py"))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.words)
def test_replay_finds_what_it_can(bug: Bug) -> None:
    check_by_replay(bug)
    assert found_by_replay(bug) == bug.replay


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.audit], ids=lambda bug: bug.words)
def test_the_attack_refutes_what_changes_a_distribution(bug: Bug) -> None:
    finding = planted(bug, audited)
    assert finding.refuted, finding


@pytest.mark.parametrize("bug", [HONEST, replace(HONEST, method=CUT, pair=LONE, runs=200)], ids=["laplace", "diffgen"])
def test_the_attack_does_not_refute_the_honest(bug: Bug) -> None:
    assert not audited(bug).refuted


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.account], ids=lambda bug: bug.words)
def test_the_account_seals_no_such_release(bug: Bug, tmp_path: Path) -> None:
    """What was paid stays paid, and there is no release."""
    account = Account(tmp_path / "people.ledger", SCHEMA)
    with pytest.raises(PrivacyError, match=bug.account):
        planted(bug, lambda bug: account.publish(TABLE, bug.method, 1, out=tmp_path / "release"))
    (publication,) = account.statement().publications
    assert (publication.outcome, publication.paid) == ("failed", 1)
    assert not (tmp_path / "release").exists()
    assert account.publish(TABLE, bug.method, 1, out=tmp_path / "release").manifest.epsilon == 1


def test_nothing_planted_escapes_both() -> None:
    assert all(bug.replay or bug.audit for bug in BUGS)


def strangers_secrets(source: str) -> list[str]:
    """List the private attributes that code reads of others than itself."""
    own = {"self", "cls"}
    return [
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id in own)
    ]


@pytest.mark.parametrize("path", METHODS, ids=lambda path: path.stem)
def test_a_method_reads_nobody_elses_private_attributes(path: Path) -> None:
    assert strangers_secrets(path.read_text()) == []


def test_a_method_that_reads_the_rows_for_free_would_be_seen() -> None:
    assert strangers_secrets("rows = len(meter._engine._classes)") == ["_classes", "_engine"]
