"""How much memory there is, in public terms: what was allowed, or a share of what this machine has left.

Apart from those who use it because it reads the machine and nothing else.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sfumato.errors import MethodError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
GROUP = Path("/sys/fs/cgroup")
GROUP_FILES = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
LEAST_KNOWN = 2 * 10**9
"""What is assumed of a machine that does not tell."""


def memory_of(given: str | int) -> int:
    """Read a size such as 4GB, 512MB or 2GiB, in bytes.

    >>> memory_of("4GB"), memory_of("1.5 GiB"), memory_of(1000)
    (4000000000, 1610612736, 1000)
    """
    found = SIZE.fullmatch(str(given).strip())
    if found is None:
        raise MethodError(f"memory ({str(given)[:40]}) must be a size", "Give for example 4GB or 512MB.")
    number, unit, binary = found.groups()
    factor = 1024 ** list(UNITS).index(unit.lower()) if binary else UNITS[unit.lower()]
    size = int(float(number) * factor)
    if not 0 < size < 2**62:
        raise MethodError(f"memory ({str(given)[:40]}) must be more than nothing", "Give for example 4GB or 512MB.")
    return size


def in_words(size: int) -> str:
    """Write a size for people.

    >>> in_words(288_000_000), in_words(4_000_000_000)
    ('288 MB', '4 GB')
    """
    return f"{size / 1e9:.3g} GB" if size >= 10**9 else f"{-(-size // 10**6)} MB"


def available() -> int:
    """Give the bytes that this process can still have: the machine's, or its group's if that has fewer."""
    return min([_of_machine(), *_of_group()])


def _of_machine() -> int:
    try:
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
        return int(found[1]) * 1024 if found else LEAST_KNOWN
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (OSError, ValueError, AttributeError):
        return LEAST_KNOWN


def _of_group() -> list[int]:
    """Read what a container may still use; nothing if there is no limit."""
    for limit, used in GROUP_FILES:
        try:
            most = (GROUP / limit).read_text().strip()
            if most.isdigit():
                return [max(int(most) - int((GROUP / used).read_text()), 0)]
        except (OSError, ValueError):
            continue
    return []
