"""Work on stretches of rows, shared among the cores: every thread has results of its own, to be added up.

It stands apart because it knows nothing of counting. NumPy lets other threads run while it copies, looks up and counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

Item = TypeVar("Item")
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


def in_turns(items: Generator[Item, None, None], work: Callable[[Iterator[Item]], Result], most: int) -> list[Result]:
    """Let at most so many threads take the next of the items that come, in turns, and give what each found.

    If one of them fails, or the work is interrupted, nobody gets another item.
    """
    threads, turn = max(1, min(cores(), most)), Lock()

    def taken() -> Iterator[Item]:
        while True:
            with turn:
                item = next(items, None)
            if item is None:
                return
            yield item

    with ThreadPoolExecutor(threads) as pool:
        try:
            return [share.result() for share in [pool.submit(work, taken()) for _ in range(threads)]]
        finally:
            with turn:
                items.close()
