"""Work on stretches of rows, shared among the cores: every thread has results of its own, to be added up.

It stands apart because it knows nothing of counting. NumPy lets other threads run while it copies, looks up and counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def stretches(rows: int, size: int) -> list[slice]:
    """Cut rows into stretches of a size."""
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def cores() -> int:
    """Tell how many cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def in_shares(parts: Sequence[slice], work: Callable[[Sequence[slice]], Result], most: int) -> list[Result]:
    """Let at most so many threads do some of the parts each, and give what each found."""
    threads = max(1, min(cores(), most, len(parts)))
    if threads == 1:
        return [work(parts)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, [parts[thread::threads] for thread in range(threads)]))
