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
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from sfumato.arrays import Floats
from sfumato.errors import ReleaseError
from sfumato.progress import steps_watched
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
    work: Work, keys: Sequence[Key], kept: Kept, *, workers: int | None = None, watch: Watch | None = None
) -> list[Outcome]:
    """Do the runs that are not kept yet, several at a time, and return what came of all runs, in order.

    `watch` is told how many are done; without it, a notebook shows a bar.
    """
    kept.folder.mkdir(parents=True, exist_ok=True)
    missing = [key for key in keys if kept.outcome(key) is None]
    done = len(keys) - len(missing)
    with (
        steps_watched(watch, "runs") as tell,
        closing(_outcomes(work, missing, workers or os.cpu_count() or 1)) as outcomes,
    ):
        tell(done, len(keys))
        for key, outcome in outcomes:
            kept.keep(key, outcome)
            done += 1
            tell(done, len(keys))
    return [kept.outcome(key) or {} for key in keys]


def _outcomes(work: Work, keys: Sequence[Key], workers: int) -> Generator[tuple[Key, Outcome], None, None]:
    """Give runs with their outcomes, whichever is finished first. The first that fails ends all."""
    if workers == 1 or len(keys) < 2:
        for key in keys:
            yield key, _alone(work, key)
        return
    waiting, under_way = iter(keys), dict[Connection, Key]()

    def hand_out(line: Connection) -> None:
        for key in islice(waiting, 1):
            under_way[line] = key
            _tell(line, key)

    with _workers(work, min(workers, len(keys))) as lines:
        for line in lines:
            hand_out(line)
        while under_way:
            ready = wait(under_way)
            for line in [one for one in under_way if one in ready]:
                key, outcome = under_way.pop(line), _answer(line)
                hand_out(line)
                yield key, outcome


@contextmanager
def _workers(work: Work, number: int) -> Iterator[list[Connection]]:
    """Start processes that do one run after the other, and give a line to each. None of them outlives the block.

    There are no threads here, as there are in the pools of the standard library: an interrupt may come at any moment,
    and would leave theirs waiting for a lock, or writing to a pipe that is closed.
    """
    context = multiprocessing.get_context("spawn")
    resource_tracker.ensure_running()  # or else the first process starts it, and so hears interrupts again
    processes: list[SpawnProcess] = []
    lines: list[Connection] = []
    try:
        for _ in range(number):
            with _uninterrupted():
                line, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs,), daemon=True)
                process.start()
                theirs.close()
                processes.append(process)
                lines.append(line)
        for line in lines:
            _tell(line, work)
        yield lines
        for line in lines:
            line.close()
        for process in processes:
            process.join(PATIENCE)
    finally:
        with _uninterrupted():
            for process in processes:
                process.kill()
            for process in processes:
                process.join(PATIENCE)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold back an interrupt until the block is done; processes that are started in it never hear of any."""
    came: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    former = signal.signal(signal.SIGINT, lambda number, _: came.append(number)) if main else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if main:
            signal.signal(signal.SIGINT, former)
        if came:
            signal.raise_signal(signal.SIGINT)


def _tell(line: Connection, what: object) -> None:
    """Send something to a worker. That it is dead is found out when its answer is awaited."""
    with suppress(OSError):
        line.send(what)


def _answer(line: Connection) -> Outcome:
    """Give the outcome that a worker sends, or raise its error."""
    try:
        outcome, error = line.recv()
    except (EOFError, OSError):
        raise ReleaseError(
            "a run must come to its end, and the process of one died, perhaps for want of memory",
            "Start again, with fewer workers: finished runs are kept.",
        ) from None
    if error is not None:
        raise error
    return dict(outcome)


def _serve(line: Connection) -> None:
    """Do the work that comes first with every key that comes then, until the parent ends it or is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        work = line.recv()
        while True:
            line.send_bytes(_attempted(work, line.recv()))


def _attempted(work: Work, key: Key) -> bytes:
    """Write down the outcome, or the error and where it arose; of an error that cannot be written, its name."""
    try:
        return pickle.dumps((_alone(work, key), None))
    except BaseException as error:
        error.add_note(traceback.format_exc())
        with suppress(Exception):
            return pickle.dumps((None, error))
        return pickle.dumps((None, RuntimeError(type(error).__name__)))


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
