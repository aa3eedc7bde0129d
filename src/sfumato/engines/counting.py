"""Choose who counts a table: this machine, in memory or beside it, or Spark for a table that lies there.

How much memory there is, is either what the user allowed or a share of what this machine has left.

All count alike, by one kernel, so a release does not tell where rows lay. It must not: whether they fit in memory
depends on their number. So neither the manifest nor a message says it. It can be guessed from how long a publication
takes, but only the holder sees that.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from sfumato.engines.local import local_engine
from sfumato.errors import MethodError
from sfumato.privacy.tally import CountEngine
from sfumato.schema.attributes import Identifier
from sfumato.schema.schema import Predictor, Schema
from sfumato.storage import private_folder
from sfumato.tables.frames import is_spark, spark_frame
from sfumato.tables.persons import KEY_BYTES, LEAST_SORTED
from sfumato.tables.sources import open_table
from sfumato.tables.streams import BATCH_ROWS

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


EngineName = Literal["auto", "local", "spark"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
SHARE = 2
"""If nothing is said, one part in so many of the memory that is left may be used."""
LEAST = 360 * 10**6
"""What a process needs besides the table: libraries, a batch, and the counts of a level."""
PER_VALUE = 64
"""The bytes that a value of a batch may take while it is read."""


@dataclass(frozen=True)
class Counting:
    """How a table is counted: by which engine, in how many bytes, and where rows go that do not fit."""

    engine: EngineName = "auto"
    memory: int | None = None
    master: str | None = None
    scratch: Path | None = None

    @classmethod
    def of(
        cls,
        engine: str = "auto",
        memory: str | int | None = None,
        master: str | None = None,
        scratch: str | Path | None = None,
    ) -> Counting:
        """Read what a user said; refuse what makes no sense for any table."""
        if engine not in ENGINES:
            raise MethodError(f"engine ({engine[:40]}) must be one of {', '.join(ENGINES)}", "Choose one, or none.")
        if master is not None and engine != "spark":
            raise MethodError("master must go with engine spark", "Leave it out, or give --engine spark.")
        size = None if memory is None else memory_of(memory)
        return cls(engine, size, master, None if scratch is None else Path(scratch))

    def refuse_other_than(self, engines: tuple[str, ...], method: str) -> None:
        """Refuse an engine that cannot count for a method."""
        if self.engine not in ("auto", *engines):
            raise MethodError(
                f"engine ({self.engine}) must be {' or '.join(engines)} for {method}, which works on single records",
                "Leave it out.",
            )

    def refuse_schema(self, schema: Schema) -> None:
        """Refuse less memory than the schema alone needs."""
        if self.memory is not None and self.memory < least_memory(schema):
            raise MethodError(
                f"memory ({in_words(self.memory)}) must be at least {in_words(least_memory(schema))} for this schema",
                "Allow more, or publish fewer attributes.",
            )

    @contextmanager
    def opened(self, source: Any, schema: Schema, key: bytes | None = None) -> Iterator[CountEngine]:
        """Read a table, refuse it if it does not fit its schema, and give its engine for as long as that is needed.

        The folder for rows beyond memory is there before it is known whether there are any. By the `key`, a fresh one
        if none is given, it is drawn which rows of a person count.
        """
        beside = self.scratch or Path(tempfile.gettempdir())
        key = os.urandom(KEY_BYTES) if key is None else key
        with private_folder(beside) as home, self._engine(source, schema, home, key) as engine:
            yield engine

    def _engine(self, source: Any, schema: Schema, home: Path, key: bytes) -> AbstractContextManager[CountEngine]:
        if self.engine == "spark" or (self.engine == "auto" and is_spark(source)):
            return self._spark(source, schema, home, key)
        room = max(self._allowed - least_memory(schema), 0)
        return local_engine(open_table(source), schema, memory=room, home=home, key=key)

    @property
    def _allowed(self) -> int:
        return available() // SHARE if self.memory is None else self.memory

    @contextmanager
    def _spark(self, source: Any, schema: Schema, home: Path, key: bytes) -> Iterator[CountEngine]:
        with spark_frame(source, self.master, home) as frame:
            from sfumato.engines.spark import spark_engine

            with spark_engine(frame, schema, key) as counted:
                yield counted


def least_memory(schema: Schema) -> int:
    """Give the bytes that any table of a schema takes."""
    columns = _read(schema).values()
    sorting = 0 if schema.person is None else LEAST_SORTED + PER_VALUE * BATCH_ROWS
    return LEAST + sorting + PER_VALUE * (BATCH_ROWS * len(columns) // 2 + sum(one.leaves for one in columns))


def _read(schema: Schema) -> dict[str, Predictor]:
    return {name: facts for name, facts in schema.attributes.items() if not isinstance(facts, Identifier)}
