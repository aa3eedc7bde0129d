"""From a table to an engine that counts it: in memory if its codes fit there, else by DuckDB; by Spark where it lies.

All engines give the same counts, so a release does not tell which one was used. It must not: which it is depends on
the number of rows. So neither the manifest nor a message says it, and that it can be guessed from how long a
publication takes is one more thing that time tells the holder's terminal alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from sfumato.attributes import Identifier
from sfumato.counts.memory import MemoryEngine
from sfumato.counts.merging import merged
from sfumato.counts.tally import CountEngine, Domain
from sfumato.engines.duckdb_engine import duckdb_engine
from sfumato.engines.private_folder import private_folder
from sfumato.errors import MethodError, TableError
from sfumato.guard import guarded, too_large
from sfumato.io.encode import Coded, code_type, encode, refuse_misfits
from sfumato.io.frames import is_spark
from sfumato.io.spark import spark_frame
from sfumato.io.streams import BATCH_ROWS, LongerTable, Table
from sfumato.io.tables import open_table
from sfumato.memory_limit import available, in_words, memory_of
from sfumato.partition import Codes
from sfumato.schema import Predictor, Schema

EngineName = Literal["auto", "memory", "duckdb", "spark"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
SHARE = 2
"""If nothing is said, one part in so many of the memory that is left may be used."""
LEAST = 256 * 10**6
"""What a process needs besides the table: libraries, a batch, and the counts of a level."""
PER_VALUE = 64
"""The bytes that a value of a batch may take while it is read."""
NODE_BYTES = 4
"""Where a row stands in a tree."""


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

    def refuse_schema(self, schema: Schema) -> None:
        """Refuse less memory than the schema alone needs."""
        if self.memory is not None and self.memory < least_memory(schema):
            raise MethodError(
                f"memory ({in_words(self.memory)}) must be at least {in_words(least_memory(schema))} for this schema",
                "Allow more, or publish fewer attributes.",
            )

    @contextmanager
    def opened(self, source: Any, schema: Schema) -> Iterator[CountEngine]:
        """Read a table, refuse it if it does not fit its schema, and give its engine for as long as that is needed.

        The folder for rows beyond memory is there before it is known whether there are any.
        """
        with self._home() as home, self._engine(source, schema, home) as engine:
            yield engine

    def _home(self) -> AbstractContextManager[Path]:
        alone = self.engine == "memory"
        return nullcontext(Path()) if alone else private_folder(self.scratch or Path(tempfile.gettempdir()))

    def _engine(self, source: Any, schema: Schema, home: Path) -> AbstractContextManager[CountEngine]:
        if self.engine == "spark" or (self.engine == "auto" and is_spark(source)):
            return self._spark(source, schema, home)
        table = open_table(source)
        engine = None if self.engine == "duckdb" else self._in_memory(table, schema)
        return duckdb_engine(table, schema, memory=self._allowed, home=home) if engine is None else nullcontext(engine)

    def _in_memory(self, table: Table, schema: Schema) -> CountEngine | None:
        """Code a table in memory; give nothing if another engine should."""
        limited = self.engine == "auto" or self.memory is not None
        try:
            coded = encode(table.while_at_most(self._most_rows(schema)) if limited else table, schema)
        except LongerTable:
            if self.engine == "auto":
                return None
            raise TableError(
                f"the table's codes must fit in the memory that is allowed ({in_words(self._allowed)})",
                "Allow more, or use --engine duckdb.",
            ) from None
        refuse_misfits(coded)
        return guarded(lambda: memory_engine(coded, schema), too_large)

    @property
    def _allowed(self) -> int:
        return available() // SHARE if self.memory is None else self.memory

    def _most_rows(self, schema: Schema) -> int:
        """Work out how many rows' codes fit: all columns, one of them twice while they are put together, and a node."""
        sizes = [code_type(facts)().itemsize for facts in _read(schema).values()]
        return max(self._allowed - least_memory(schema), 0) // (sum(sizes) + max(sizes) + NODE_BYTES + 1)

    @contextmanager
    def _spark(self, source: Any, schema: Schema, home: Path) -> Iterator[CountEngine]:
        with spark_frame(source, self.master, home) as frame:
            from sfumato.engines.spark_engine import spark_engine

            with spark_engine(frame, schema) as counted:
                yield counted


def least_memory(schema: Schema) -> int:
    """Give the bytes that any table of a schema takes."""
    columns = _read(schema).values()
    return LEAST + PER_VALUE * (BATCH_ROWS * len(columns) // 4 + sum(one.leaves for one in columns))


def _read(schema: Schema) -> dict[str, Predictor]:
    return {name: facts for name, facts in schema.attributes.items() if not isinstance(facts, Identifier)}


def columns_of(coded: Coded, schema: Schema) -> tuple[list[Codes], Codes]:
    """Give what an engine holds: the coded columns of the predictors, and the classes."""
    target = schema.target
    classes = coded.columns[target] if target is not None else np.zeros(coded.rows, np.uint8)
    return [coded.columns[name] for name in schema.predictors], classes


def memory_engine(coded: Coded, schema: Schema) -> MemoryEngine:
    """Count coded columns in memory; rows that are the same are one row where that pays."""
    return MemoryEngine(*merged(*columns_of(coded, schema), Domain(schema.shape, len(schema.classes))))
