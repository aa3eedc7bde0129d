"""The tables of a ledger's file, which refuse to change what they hold, and how epsilons are read from them.

Apart from the ledger because it is all words: what stands here is what every ledger that was ever begun has.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from sfumato.exact import read_fraction
from sfumato.privacy.budget import INFINITE, Total

APPLICATION = 0x5F0A70
"""The mark of a ledger in the file's header."""
REFUSE = "begin select raise(abort, 'the ledger is append-only'); end"
TABLES = {
    "account": "format integer not null, name text not null, opened text not null",
    "budget": "at text not null, epsilon text",
    "publication": "id text primary key, at text not null, method text not null, epsilon text not null",
    "debit": """publication text not null references publication(id), at text not null, label text not null,
        mechanism text not null, epsilon text not null, sensitivity text not null, cells integer not null""",
    "settlement": """publication text primary key references publication(id), at text not null,
        outcome text not null check (outcome in ('published', 'failed', 'settled by hand')), digest text""",
}
ONCE = [*((table, "rowid") for table in TABLES), ("publication", "id"), ("settlement", "publication")]
"""What no second row may have: inserting it would replace the first."""
LAST = " union all ".join(f"select max(rowid) as last from {table}" for table in TABLES)
LINES = f"select coalesce(sum(last), 0) from ({LAST})"
"""How many rows there are: nothing is ever deleted, so the last one's number says it."""


def layout() -> Iterator[str]:
    """Give the statements that begin a ledger."""
    yield f"pragma application_id = {APPLICATION}"
    for table, columns in TABLES.items():
        yield f"create table {table} ({columns})"
        for change in ("update", "delete"):
            yield f"create trigger {table}_{change} before {change} on {table} {REFUSE}"
    for table, key in ONCE:
        same = f"when exists (select 1 from {table} where {key} = new.{key})"
        yield f"create trigger {table}_{key}_once before insert on {table} {same} {REFUSE}"


def total_of(text: str) -> Total:
    """Read what a publication reserved or paid."""
    return INFINITE if text == str(INFINITE) else fraction_of(text)


def fraction_of(text: str) -> Fraction:
    """Read an epsilon; one that was not written by us could be of any size."""
    fraction = read_fraction(text)
    if fraction is None or fraction < 0:
        raise ValueError("an epsilon must be a fraction")
    return fraction
