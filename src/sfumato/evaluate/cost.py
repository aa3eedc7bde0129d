"""What work costs: seconds of the processor and of the clock, and how much memory it added at its peak.

Costs depend on the data, so they are told to the holder and never stand in a release.
"""

from __future__ import annotations

import ctypes
import gc
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

Result = TypeVar("Result")

STATUS, FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
PEAK_ONLY = "5"
"""What Linux is told to forget the peak and nothing else."""


@dataclass(frozen=True)
class Cost:
    """What some work cost this process."""

    processor_seconds: float
    seconds: float
    peak_megabytes: float | None
    """the most that it held beyond what was held before; unknown on systems that do not tell"""


def cost_of(work: Callable[[], Result]) -> tuple[Result, Cost]:
    """Do some work; give what came of it and what it cost."""
    _give_back()
    before = _held()
    processor, clock = time.process_time(), time.perf_counter()
    result = work()
    spent = time.process_time() - processor, time.perf_counter() - clock
    peak = None if before is None else _kilobytes("VmHWM") - before
    return result, Cost(*spent, None if peak is None else max(peak, 0) / 1024)


def _give_back() -> None:
    """Give memory that is free but still held back to the system, so that work cannot use it unseen."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _held() -> int | None:
    """Let the system forget the peak so far; give the kilobytes that are held, if it tells."""
    try:
        FORGET.write_text(PEAK_ONLY)
        return _kilobytes("VmRSS")
    except OSError:
        return None


def _kilobytes(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    return int(found[1]) if found else 0
