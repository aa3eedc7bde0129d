"""Releases with known seeds, for those who measure methods: they carry no guarantee and are booked nowhere that lasts.

Apart from the account, which serves holders: a ledger is needed only because methods without epsilon write to one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from sfumato.account import Account
from sfumato.methods.base import Method
from sfumato.release.release import Release
from sfumato.schema import Schema
from sfumato.syntactic.base import SyntacticMethod


def seeded_release(
    table: Any,
    schema: Schema,
    method: Method | SyntacticMethod,
    epsilon: str | None,
    seed: int,
    out: str | Path | None = None,
) -> Release:
    """Publish a table with a known seed; the epsilon is for methods that have one."""
    with tempfile.TemporaryDirectory() as folder:
        account = Account(Path(folder) / "passing.ledger", schema)
        if isinstance(method, SyntacticMethod):
            return account.publish_without_epsilon(table, method, out=out, despite_budget=True, unsafe_seed=seed)
        return account.publish(table, method, str(epsilon), out=out, unsafe_seed=seed)
