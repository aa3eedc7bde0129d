"""Many runs on the cores of one machine, each kept when it is finished, so that no finished run is repeated.

A run is known by all that decides its outcome, as plain values: its key. What came of it lies in a file named after
the key's digest, which appears whole or not at all; whoever is killed loses what was under way and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import ReleaseError
from sfumato.evaluate.threads import one_thread
from sfumato.storage import staged_file

Key = Mapping[str, Any]
"""Plain values that JSON can hold."""
Outcome = dict[str, Any]
Work = Callable[[Key], Outcome]
"""What a run does, a function of a module, since other processes must find it."""
Watch = Callable[[int, int], None]
"""Told how many runs are finished, of how many."""


@dataclass(frozen=True)
class Kept:
    """A folder of finished runs."""

    folder: Path

    def outcome(self, key: Key) -> Outcome | None:
        """Give what came of a run, if it was finished."""
        path = self._path(key)
        if not path.exists():
            return None
        try:
            kept = json.loads(path.read_text("utf-8"))
            if kept["key"] == json.loads(_text(key)):
                return dict(kept["outcome"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        raise ReleaseError(f"{str(path)[:200]} must hold a finished run", "Remove the file; the run will be repeated.")

    def keep(self, key: Key, outcome: Outcome) -> None:
        """Keep what came of a run; one that was kept meanwhile stays."""
        path = self._path(key)
        if not path.exists():
            with staged_file(path) as staging:
                staging.write_text(json.dumps({"key": key, "outcome": outcome}, ensure_ascii=False), "utf-8")

    def _path(self, key: Key) -> Path:
        return self.folder / f"{hashlib.sha256(_text(key).encode()).hexdigest()[:24]}.json"


def carry_out(
    work: Work, keys: Sequence[Key], kept: Kept, *, workers: int | None = None, watch: Watch = lambda _done, _all: None
) -> list[Outcome]:
    """Give what came of every run, in order; those that are not kept yet are done first, several at a time."""
    kept.folder.mkdir(parents=True, exist_ok=True)
    missing = [key for key in keys if kept.outcome(key) is None]
    done = len(keys) - len(missing)
    watch(done, len(keys))
    for key, outcome in _outcomes(work, missing, workers or os.cpu_count() or 1):
        kept.keep(key, outcome)
        done += 1
        watch(done, len(keys))
    return [kept.outcome(key) or {} for key in keys]


def _outcomes(work: Work, keys: Sequence[Key], workers: int) -> Iterator[tuple[Key, Outcome]]:
    """Give runs with their outcomes, whichever is finished first. The first that fails ends all."""
    if workers == 1 or len(keys) < 2:
        for key in keys:
            yield key, _alone(work, key)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(keys)), mp_context=context) as pool:
        waiting: dict[Future[Outcome], Key] = {pool.submit(_alone, work, key): key for key in keys}
        try:
            while waiting:
                for finished in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(finished), finished.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _alone(work: Work, key: Key) -> Outcome:
    with one_thread():
        return work(key)


def _text(key: Key) -> str:
    return json.dumps(key, sort_keys=True, ensure_ascii=False)
