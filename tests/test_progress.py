"""What is told while a publication runs: rounds, their number and the time; nothing that was counted."""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from command_line import SCHEMA, people
from sfumato import Account, DiffGen, DiffMulti, Schema
from sfumato.privacy.budget import Schedule
from sfumato.progress import STEPS, Progress, steps_watched


def test_rounds_beyond_the_plan_are_told_without_their_number() -> None:
    told: list[str] = []
    plan = Schedule({"size of the table": Fraction(1, 9), "the rest": Fraction(8, 9)}, "the rest")
    progress = Progress(told.append, plan, clock=iter([0.0, 1.0, 2.0, 3700.0]).__next__)
    for label in ("reading the table", "size of the table", "choice 1", "sizes 1"):
        progress(label)
    assert told == [
        "reading the table",
        "round 1 of 1 planned: size of the table (0:01 so far)",
        "round 2: choice 1 (0:02 so far, about 1.0 s a round)",
        "round 3: sizes 1 (1:01:40 so far, about 1849.5 s a round)",
    ]


def lines(table: pa.Table, method: DiffGen | DiffMulti, folder: Path) -> list[str]:
    """Publish with a known seed; give what is told, the time left out."""
    told: list[str] = []
    account = Account(folder / "people.ledger", Schema.loads(SCHEMA.replace("budget: 4\n", "")))
    progress = Progress(told.append, account.plan(method, 1))
    account.publish(table, method, 1, unsafe_seed=1, watch=progress)
    return [re.sub(r" \(.*\)", "", line) for line in told]


def test_every_round_of_a_plan_is_told_and_nothing_that_was_counted(tmp_path: Path) -> None:
    method = DiffGen(specializations=3)
    told = lines(people(300), method, tmp_path)
    plan = list(method.plan(Schema.loads(SCHEMA), 1).parts)
    rounds = [line for line in told if line not in STEPS]
    assert [line.split(": ")[0] for line in rounds] == [
        f"round {number} of {len(plan)}" for number in range(1, len(plan) + 1)
    ]
    assert sorted(line.split(": ")[1] for line in rounds) == sorted(plan)
    assert told == lines(people(299), method, tmp_path), "one person more or less is not told"


class Notebook:
    """Stands for IPython in a notebook: what is shown, and what it changes to."""

    def __init__(self, kernel: object) -> None:
        self.shown: list[str] = []
        self._shell, self.display = SimpleNamespace(kernel=kernel), SimpleNamespace(display=self.begin)

    def get_ipython(self) -> SimpleNamespace:
        return self._shell

    def begin(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> Notebook:
        return self.update(bundle, raw=raw and display_id)

    def update(self, bundle: dict[str, str], *, raw: bool) -> Notebook:
        assert raw
        self.shown.append(bundle["text/html"])
        return self


def test_a_notebook_shows_a_bar_without_being_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    account = Account(tmp_path / "people.ledger", Schema.loads(SCHEMA.replace("budget: 4\n", "")))
    account.publish(people(300), DiffGen(specializations=3), 1, unsafe_seed=1)
    assert "reading the table" in notebook.shown[0]
    assert any('<progress value="0.' in one and "round 2 of" in one for one in notebook.shown)
    assert notebook.shown[-1] == "", "it goes away"
    before = len(notebook.shown)
    account.publish(people(300), DiffGen(specializations=3), 1, unsafe_seed=1, watch=lambda _: None)
    with steps_watched(lambda _done, _all: None, "runs") as tell:
        tell(1, 2)
    assert len(notebook.shown) == before, "whoever watches is told instead"
    with steps_watched(None, "runs") as tell:
        tell(1, 2)
    assert notebook.shown[before:] == ['<progress value="0.5000" max="1"></progress> <span>runs: 1 of 2</span>', ""]


def test_a_terminal_shows_no_bar_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Notebook(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", terminal)
    with steps_watched(None, "runs") as tell:
        tell(1, 2)
    assert not terminal.shown
