"""Many runs on the cores of one machine, each kept when it is finished, so that no finished run is repeated.

A run is known by all that decides its outcome, as plain values: its key. What came of it lies in a file named after the
key's digest, which appears whole or not at all; whoever is killed loses what was under way and nothing else.

Each run has one thread: threads of learners wait for each other longer than they work, and results do not depend on
cores. On a busy machine with two cores, Adult's scorecard took 35 seconds with two threads and 12 with one.
"""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from sfumato.arrays import Floats
from sfumato.errors import ReleaseError
from sfumato.storage import staged_file

Key = Mapping[str, Any]
"""What decides a run: plain values that JSON can hold."""
Outcome = dict[str, Any]
"""What came of a run, as plain values."""
Work = Callable[[Key], Outcome]
"""What a run does: a function of a module, since other processes must find it."""
Watch = Callable[[int, int], None]
"""Called with the number of finished runs, and of all."""
PATIENCE = 10
"""The seconds that a process is given to be gone."""


@dataclass(frozen=True)
class Kept:
    """A folder of finished runs."""

    folder: Path

    def outcome(self, key: Key) -> Outcome | None:
        """What came of a run; None if it was not finished."""
        path = self._path(key)
        if not path.exists():
            return None
        try:
            kept = json.loads(path.read_text("utf-8"))
            if kept["key"] == json.loads(text_of(key)):
                return dict(kept["outcome"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        raise ReleaseError(f"{str(path)[:200]} must hold a finished run", "Remove the file; the run will be repeated.")

    def keep(self, key: Key, outcome: Outcome) -> None:
        """Keep what came of a run; one that was kept meanwhile stays."""
        path = self._path(key)
        try:
            with staged_file(path) as staging:
                staging.write_text(json.dumps({"key": key, "outcome": outcome}, ensure_ascii=False), "utf-8")
        except ReleaseError:
            if not path.exists():
                raise

    def _path(self, key: Key) -> Path:
        return self.folder / f"{hashlib.sha256(text_of(key).encode()).hexdigest()[:24]}.json"


def carry_out(
    work: Work, keys: Sequence[Key], kept: Kept, *, workers: int | None = None, watch: Watch = lambda _done, _all: None
) -> list[Outcome]:
    """Do the runs that are not kept yet, several at a time, and return what came of all runs, in order."""
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
    """Do runs, and yield them with their outcomes, whichever is finished first. The first that fails ends all."""
    if workers == 1 or len(keys) < 2:
        for key in keys:
            yield key, _alone(work, key)
        return
    context = multiprocessing.get_context("spawn")
    others = {child.pid for child in multiprocessing.active_children()}
    pool = ProcessPoolExecutor(min(workers, len(keys)), mp_context=context, initializer=_serve)
    try:
        waiting: dict[Future[Outcome], Key] = {pool.submit(_alone, work, key): key for key in keys}
        while waiting:
            for finished in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(finished), finished.result()
        pool.shutdown()
    except BrokenProcessPool:
        raise ReleaseError(
            "a run must come to its end, and the process of one died, perhaps for want of memory",
            "Start again, with fewer workers: finished runs are kept.",
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        ours = [child for child in multiprocessing.active_children() if child.pid not in others]
        for child in ours:
            child.terminate()
        for child in ours:
            child.join(PATIENCE)


def _serve() -> None:
    """Prepare a worker: an interrupt is for the parent alone, and a process that has lost its parent must not stay."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _alone(work: Work, key: Key) -> Outcome:
    with one_thread():
        return work(key)


def text_of(key: Key) -> str:
    """Write a key down: the same text for the same values, in whatever order."""
    return json.dumps(key, sort_keys=True, ensure_ascii=False)


def one_thread() -> AbstractContextManager[object]:
    """Keep numerical libraries to one thread for a while."""
    limits: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limits


def mean_and_error(values: Sequence[float] | Floats) -> tuple[float, float | None]:
    """The mean, and its standard error if there is more than one value.

    >>> mean_and_error([1.0, 3.0]), mean_and_error([5.0])
    ((2.0, 1.0), (5.0, None))
    """
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None
    return float(np.mean(values)), error
