"""Time and memory of work, measured where it is done."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from handmade import release_of
from sfumato.evaluate import card as cost
from sfumato.evaluate.card import cost_of, costs_of_use

MEGABYTES = 64


@pytest.mark.skipif(not cost.FORGET.exists(), reason="only Linux tells")
def test_the_peak_is_what_was_held_for_a_while() -> None:
    _, spent = cost_of(lambda: np.ones(MEGABYTES * 2**17).sum())
    _, nothing = cost_of(lambda: None)
    assert MEGABYTES * 0.9 <= spent.peak_megabytes <= MEGABYTES * 2
    assert nothing.peak_megabytes < MEGABYTES / 2


def test_sleep_takes_time_but_no_processor() -> None:
    result, spent = cost_of(lambda: time.sleep(0.2) or "done")
    assert result == "done"
    assert spent.processor_seconds < 0.2 <= spent.seconds


def test_memory_is_unknown_where_the_system_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "FORGET", Path("/nowhere/clear_refs"))
    assert cost_of(lambda: 1)[1].peak_megabytes is None


def test_a_release_is_read_asked_and_drawn_from() -> None:
    release = release_of()
    names = ["reading it", "answering 2 range counts", f"drawing {release.total:,} records"]
    assert [one.what for one in costs_of_use(release, ["", ""], 0)] == names
