"""How far a ledger has come, noted in a small file beside it, so that an older copy put in its place is found out.

The ledger alone cannot tell: a restored backup is a perfect ledger of an earlier day. The note is written after each
commit, so it never runs ahead; it may lag by a commit, which errs on the safe side, since a publication whose last line
is forgotten holds all it reserved. Whoever replaces both files, or removes the note, is not found out.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import LedgerError

SUFFIX = ".head"


@dataclass(frozen=True)
class Witness:
    """The note beside a ledger: the most lines that the ledger was ever seen to have."""

    ledger: Path

    @property
    def path(self) -> Path:
        """Where the note is."""
        return self.ledger.with_name(self.ledger.name + SUFFIX)

    @property
    def seen(self) -> int:
        """The lines that were seen; 0 where nothing readable says so."""
        with suppress(OSError, UnicodeDecodeError):
            with self.path.open("rb") as file:
                text = file.read(20).decode("ascii").strip()
            if text.isdigit():
                return int(text)
        return 0

    def note(self, lines: int) -> None:
        """Note that there are so many lines. A note that cannot be written is left as it was: nothing rests on it."""
        if lines <= self.seen:
            return
        aside = self.path.with_name(f".{uuid.uuid4().hex[:12]}{SUFFIX}")
        with suppress(OSError):
            try:
                aside.write_text(f"{lines}\n", encoding="ascii")
                aside.replace(self.path)
            finally:
                aside.unlink(missing_ok=True)

    def refuse_older(self, lines: int) -> None:
        """Refuse a ledger that has fewer lines than were seen: something that was paid is not in it."""
        seen = self.seen
        if lines < seen:
            raise LedgerError(
                f"ledger {self.ledger} must have the {seen:,} lines that {self.path.name} has seen, and has {lines:,}: "
                "it was deleted, or an older copy was put in its place",
                "Put the newer one back. If it is lost, lower the budget by what was paid, and remove that file.",
            )
