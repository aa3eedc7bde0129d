"""Find bounds of numbers and days privately: selected among round numbers that are the same for every table, and paid.

The candidates are public: for numbers those of one significant digit up to 10^15 in size, for days the first days of
decades. For each end of each column one round selects the cell in which the row lies that is r rows from the end (the
score `Beyond`), and the bound is where that cell ends. Each round is a debit in the table's ledger, written before
anyone looks.

How many rows. With m candidates and epsilon e, candidates whose score is worse than the best by s or more are selected
with probability at most m exp(-e s / 2) together. The best has 0 or more, and one with nobody in its cell or beyond,
10^15 for instance, has -r. With r = 4 ln(m) / e such a one is selected with probability 1/m at most. So a bound leaves
out r rows at most, about, and a table must have far more rows than that.
"""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.engines.counting import Counting
from sfumato.errors import BudgetError, LedgerError
from sfumato.geometry.candidates import WHOLE, Candidates
from sfumato.geometry.grid import Grid
from sfumato.privacy.budget import payable
from sfumato.privacy.choices import Choices
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.mechanisms import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.noise import SeededStream
from sfumato.privacy.scores import Beyond
from sfumato.privacy.tally import Domain, Tally
from sfumato.schema.attributes import EPOCH, LARGEST, Numeric
from sfumato.schema.schema import Schema

METHOD = "draft"
"""What the ledger calls it."""
FIRST_YEAR, LAST_YEAR, DECADE = 1800, 2100, 10

Bounds = tuple[datetime.date | Decimal, datetime.date | Decimal]


def public_grid(column: Numeric) -> Numeric:
    """The grid of candidates for a column: the same for all columns of numbers, and for all of days."""
    if not column.is_date:
        ends = Decimal(1 - LARGEST), Decimal(LARGEST - 1)
        return Numeric(lower=ends[0], upper=ends[1], grid="log", written=column.written, missing=column.missing)
    first, last = datetime.date(FIRST_YEAR, 1, 1), datetime.date(LAST_YEAR, 1, 1)
    decades: list[datetime.date | Decimal] = [
        datetime.date(year, 1, 1) for year in range(FIRST_YEAR + DECADE, LAST_YEAR, DECADE)
    ]
    return Numeric(lower=first, upper=last, borders=decades, written=column.written, missing=column.missing)


def candidates_of(attribute: int, cells: int) -> Candidates:
    """Each inner cell of a grid, with what lies below it and above it."""
    return Candidates.join([Candidates.one(WHOLE, attribute, (0, at, at + 1, cells)) for at in range(1, cells - 1)])


def rows_beyond(epsilon: Fraction, candidates: int) -> int:
    """How many rows a bound leaves out at most, about: what makes a bound beyond everybody improbable."""
    return math.ceil(4 * math.log(candidates) / epsilon)


def private_bounds(
    table: Any,
    columns: Mapping[str, Numeric],
    epsilon: Fraction,
    ledger: Ledger,
    missing_values: list[str],
    *,
    person: str | None = None,
    rows_per_person: int = 1,
    watch: Callable[[str], None] = lambda _: None,
    unsafe_seed: int | None = None,
) -> dict[str, tuple[Bounds, int]]:
    """The bounds of columns, and how many rows each leaves out, about; what was paid stands in the ledger.

    Where a column tells the `person`, so many rows of each count at most, and epsilon is spent on persons.
    `unsafe_seed` is for tests: such bounds are not private.
    """
    spend = payable(epsilon / rows_per_person / (2 * len(columns)))
    if spend <= 0:
        raise BudgetError("epsilon must be large enough to be shared among the bounds", "Use a larger epsilon.")
    grids = {name: public_grid(column) for name, column in columns.items()}
    schema = Schema(
        name="bounds",
        confirmed=True,
        missing_values=missing_values,
        person=person,
        rows_per_person=rows_per_person,
        attributes=dict(grids),
    )
    mechanisms = Exact(None if unsafe_seed is None else SeededStream(unsafe_seed))
    counting = Counting.of("auto", None, None, Path(ledger.path).resolve().parent)
    counting.refuse_schema(schema)
    ledger.refuse_beyond(epsilon, schema.unit)
    watch("reading the table")
    with counting.opened(table, schema) as engine:
        payer = ledger.reserve(METHOD, epsilon, schema.unit)
        try:
            domain, told = Domain(schema.shape, 1), lambda debit: watch(debit.label)
            meter = Meter(engine, payer, mechanisms, domain, told, records=rows_per_person)
            found = _selected(meter, grids, schema, spend)
        except BaseException:
            with contextlib.suppress(LedgerError):
                payer.settle("failed")
            raise
        payer.settle("published")
    return found


def _selected(
    meter: Meter, grids: Mapping[str, Numeric], schema: Schema, spend: Fraction
) -> dict[str, tuple[Bounds, int]]:
    tally = Tally(Grid.whole(schema.shape), 1, tuple(range(len(grids))))
    found: dict[str, tuple[Bounds, int]] = {}
    for attribute, (name, grid) in enumerate(grids.items()):
        rows = rows_beyond(spend, grid.cells - 2)
        choices = Choices.of(tally, [candidates_of(attribute, grid.cells)])
        ends = []
        for side, border in (("lower", 1), ("upper", 2)):
            score = Beyond(rows, side == "upper")
            chosen = meter.select(choices, score, spend, f"{side} bound of {name}", "permute-and-flip")
            ends.append(_value(grid, int(chosen[0].borders[border])))
        found[name] = ((ends[0], ends[1]), rows)
    return found


def _value(grid: Numeric, cell: int) -> datetime.date | Decimal:
    """Where a cell begins."""
    edge = int(grid.edges[cell])
    return EPOCH + datetime.timedelta(days=edge) if grid.is_date else Decimal(edge)
