"""Long work in a process of its own, that tells how far it is, and can be cancelled.

Work is known by a key, which says all that decides its outcome: who asks for the same gets the work that is under way,
or what came of it, so two tabs share it. What comes back is plain values in JSON. Processes are forked from one that
has the libraries loaded and nothing else, so that work begins at once.

To cancel is to interrupt: a publication keeps the debits that it has written and gives the rest back. What does not end
in time is killed; a publication that was killed holds what it reserved until a person settles it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import secrets
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from sfumato.errors import SfumatoError

Watch = Callable[[str, int, int], None]
"""Called with what is under way, the number of finished steps, and of all; 0 where that is not known."""
Task = Callable[[Mapping[str, Any], Watch], Any]
"""What a process does: from plain values to plain values."""
PATIENCE = 10
"""The seconds that cancelled work is given to end."""
MOST_KEPT = 60
"""The number of finished pieces of work whose outcome is remembered."""
PRELOADED = ["sfumato.studio.tasks"]


@dataclass
class Work:
    """One piece of work: where it stands, and what came of it."""

    key: str
    title: str
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    state: str = "working"
    """working, done, refused or cancelled"""
    step: str = ""
    finished: int = 0
    steps: int = 0
    result: Any = None
    problem: str = ""
    remedy: str = ""
    process: Any = field(default=None, repr=False)
    then: Callable[[Any], None] | None = field(default=None, repr=False)
    """what is done here with the result"""

    @property
    def working(self) -> bool:
        """Whether it is under way."""
        return self.state == "working"

    @property
    def share(self) -> float | None:
        """How much of it is done, where that is known."""
        return min(self.finished / self.steps, 1.0) if self.steps else None

    def told(self) -> dict[str, Any]:
        """Where it stands, for the page that waits."""
        return {"state": self.state, "step": self.step, "share": self.share}


class Office:
    """All work of one studio."""

    def __init__(self) -> None:
        """Begin without any."""
        self._all: dict[str, Work] = {}
        self._lock = threading.Lock()
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)

    def warm(self) -> None:
        """Load the libraries before the first work needs them."""
        with suppress(EOFError, OSError):  # the studio may end first
            process = self._context.Process(target=_nothing)
            process.start()
            process.join()

    def find(self, key: str) -> Work | None:
        """The work of a key, if it was begun."""
        with self._lock:
            return self._all.get(key)

    def by_id(self, id_: str) -> Work | None:
        """The work of an id."""
        with self._lock:
            return next((one for one in self._all.values() if one.id == id_), None)

    def begin(
        self,
        key: str,
        title: str,
        task: Task,
        facts: Mapping[str, Any],
        *,
        again: bool = False,
        then: Callable[[Any], None] | None = None,
    ) -> Work:
        """Begin work, unless the same is under way or done; `again` repeats what has ended. `then` takes its result."""
        with self._lock:
            known = self._all.get(key)
            if known is not None and (known.working or (known.state == "done" and not again)):
                return known
            work = self._all[key] = Work(key, title, then=then)
            self._forget()
        threading.Thread(target=self._carry_out, args=(work, task, dict(facts)), daemon=True).start()
        return work

    def _carry_out(self, work: Work, task: Task, facts: dict[str, Any]) -> None:
        """Start a process, which may take a moment, and follow it to its end."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, task, facts))
        process.start()
        theirs.close()
        with self._lock:
            work.process = process
        if not work.working:
            process.terminate()
        self._follow(work, ours)

    def under_way(self) -> list[Work]:
        """All work that has not ended."""
        with self._lock:
            return [one for one in self._all.values() if one.working]

    def cancel(self, work: Work) -> None:
        """Interrupt work; kill it if it does not end in time."""
        if not work.working:
            return
        with self._lock:
            work.state, work.problem, work.remedy = "cancelled", "the work was cancelled", "Begin it again."
        if work.process is not None:
            work.process.terminate()
            threading.Thread(target=_make_sure, args=(work.process,), daemon=True).start()

    def close(self) -> None:
        """Cancel all."""
        left = [one.process for one in self.under_way() if one.process is not None]
        for process in left:
            process.terminate()
        for process in left:
            _make_sure(process)

    def _forget(self) -> None:
        ended = [key for key, one in self._all.items() if not one.working]
        for key in ended[:-MOST_KEPT]:
            del self._all[key]

    def _follow(self, work: Work, line: Connection) -> None:
        """Note what a process tells, to its end."""
        ended = False
        with suppress(EOFError, OSError):
            while not ended:
                told = json.loads(line.recv_bytes())
                with self._lock:
                    ended = _note(work, told)
        line.close()
        work.process.join(PATIENCE)
        with self._lock:
            if work.working:
                work.state, work.problem = "refused", "the work must not end before it is done, and was killed"
                work.remedy = "Begin it again; what a publication holds is told by the account."


def _note(work: Work, told: Mapping[str, Any]) -> bool:
    """Note one message; whether it was the last."""
    if "step" in told:
        work.step, work.finished, work.steps = told["step"], told["finished"], told["steps"]
        return False
    if not work.working:
        return True
    work.result = told.get("result")
    work.problem, work.remedy = told.get("problem", ""), told.get("remedy", "")
    try:
        if "result" in told and work.then is not None:
            work.then(work.result)
    except SfumatoError as error:
        work.problem, work.remedy = error.problem, error.remedy
    work.state = "refused" if work.problem else "done"
    return True


def _make_sure(process: Any) -> None:
    process.join(PATIENCE)
    if process.is_alive():
        process.kill()


def _serve(line: Connection, task: Task, facts: Mapping[str, Any]) -> None:
    """Do the work in its process, and tell what came of it: errors in our words, or by their kind alone."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    os.environ.setdefault("OMP_NUM_THREADS", "1")

    def tell(message: Mapping[str, Any]) -> None:
        with suppress(OSError):  # a studio that is gone stops no publication
            line.send_bytes(json.dumps(message).encode())

    def watch(step: str, finished: int = 0, steps: int = 0) -> None:
        tell({"step": step, "finished": finished, "steps": steps})

    try:
        tell({"result": task(facts, watch)})
    except SfumatoError as error:
        tell({"problem": error.problem, "remedy": error.remedy})
    except KeyboardInterrupt:
        tell({"problem": "the work was cancelled", "remedy": "Begin it again."})
    except MemoryError:
        tell({"problem": "the table must fit in memory", "remedy": "Use a machine with more of it."})
    except Exception as error:
        kind = type(error).__name__
        tell({"problem": f"Sfumato must not fail like this ({kind})", "remedy": "Report it, without the data."})


def _nothing() -> None:
    """Do nothing."""


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
