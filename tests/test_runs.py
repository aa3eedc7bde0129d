"""Runs are done once, several at a time, and what was finished survives whoever is killed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from pathlib import Path

import pytest

from sfumato.errors import ReleaseError
from sfumato.evaluate.runs import Kept, _attempted, _uninterrupted, carry_out

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


def wrong(_):
    raise ValueError("wrong")


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
    assert not multiprocessing.active_children()


def test_an_error_of_a_worker_tells_where_it_arose(tmp_path):
    with pytest.raises(ValueError, match="wrong") as caught:
        carry_out(wrong, KEYS, Kept(tmp_path), workers=2)
    assert "in wrong\n" in caught.value.__notes__[0]


def test_an_error_that_cannot_travel_is_named():
    class OutOfReachError(Exception):
        pass

    def out_of_reach(_):
        raise OutOfReachError("CANARY")

    outcome, error = pickle.loads(_attempted(out_of_reach, {}))
    assert outcome is None
    assert repr(error) == "RuntimeError('OutOfReachError')"


def test_an_interrupt_leaves_neither_processes_nor_threads(tmp_path):
    before = threading.enumerate()

    def interrupted(done, _):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(squared, KEYS, Kept(tmp_path), workers=2, watch=interrupted)
    assert not multiprocessing.active_children()
    assert threading.enumerate() == before
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_an_interrupt_that_is_held_back_comes_afterwards():
    seen = []

    def interrupted():
        with _uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            seen.append("all")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert seen == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


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
