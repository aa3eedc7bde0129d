"""Runs are done once, several at a time, and what was finished survives whoever is killed."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from sfumato.errors import ReleaseError
from sfumato.evaluate.runs import Kept, carry_out

KEYS = [{"run": run, "epsilon": "1/2"} for run in range(5)]


def squared(key):
    """Leave a trace for every time that it is called."""
    with Path(key.get("trace", "/dev/null")).open("a") as trace:
        trace.write("x")
    return {"square": key["run"] ** 2}


def failing(key):
    if key["run"] == 3:
        raise ReleaseError("a run must succeed", "Try again.")
    return squared(key)


def dying(key):
    if key["run"] == 3:
        os._exit(9)
    return squared(key)


@pytest.mark.parametrize("workers", [1, 2])
def test_outcomes_come_in_order(tmp_path, workers):
    found = carry_out(squared, KEYS, Kept(tmp_path), workers=workers)
    assert [one["square"] for one in found] == [0, 1, 4, 9, 16]


def test_finished_runs_are_not_repeated(tmp_path):
    keys = [key | {"trace": str(tmp_path / "trace")} for key in KEYS]
    told = []
    carry_out(squared, keys[:3], Kept(tmp_path / "runs"), workers=1)
    carry_out(squared, keys, Kept(tmp_path / "runs"), workers=1, watch=lambda *said: told.append(said))
    assert (tmp_path / "trace").read_text() == "x" * 5
    assert told == [(3, 5), (4, 5), (5, 5)]


def test_a_failure_keeps_what_was_finished(tmp_path):
    with pytest.raises(ReleaseError, match="must succeed"):
        carry_out(failing, KEYS, Kept(tmp_path), workers=1)
    assert len(list(tmp_path.glob("*.json"))) == 3


def test_a_process_that_dies_is_told_and_nothing_waits_for_it(tmp_path):
    with pytest.raises(ReleaseError, match="the process of one died"):
        carry_out(dying, KEYS, Kept(tmp_path), workers=2)
    assert not remaining_children()


def remaining_children():
    """Give the children that stay. The pool's own thread may reap one first and write that down a moment later."""
    deadline = time.monotonic() + 10
    while (found := multiprocessing.active_children()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def test_what_another_process_kept_meanwhile_stays(tmp_path):
    kept = Kept(tmp_path)
    kept.keep(KEYS[0], {"square": 1})
    kept.keep(KEYS[0], {"square": 2})
    assert kept.outcome(KEYS[0]) == {"square": 1}


def test_a_spoilt_file_is_named(tmp_path):
    carry_out(squared, KEYS[:1], Kept(tmp_path), workers=1)
    (spoilt,) = tmp_path.glob("*.json")
    spoilt.write_text("{")
    with pytest.raises(ReleaseError, match="must hold a finished run"):
        carry_out(squared, KEYS[:1], Kept(tmp_path), workers=1)
