"""What a ledger says about its table: every publication, what is gone, what is left, and what that forbids.

Apart from the ledger because these are values: they are read in one transaction, decided on, and shown to people.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from sfumato.errors import BudgetError
from sfumato.privacy.budget import INFINITE, Debit, NonPrivate, Total


@dataclass(frozen=True)
class Publication:
    """One release, made or attempted: what it reserved, what it paid, how it ended."""

    id: str
    at: str
    method: str
    reserved: Total
    outcome: str
    debits: tuple[Debit | NonPrivate, ...] = field(default=())
    digest: str | None = None
    """the manifest's, if the release was written by the publication itself"""

    @property
    def paid(self) -> Total:
        """What its rounds cost: infinity, if one had no epsilon."""
        return sum((debit.epsilon for debit in self.debits), Fraction(0))

    @property
    def held(self) -> Total:
        """What it takes from the lifetime budget: all it reserved while open, what it paid once settled.

        One that was published without epsilon takes everything, whatever was noted.
        """
        unbounded = self.reserved == INFINITE and self.outcome == "published"
        return self.reserved if self.outcome == "open" or unbounded else self.paid


@dataclass(frozen=True)
class Statement:
    """Everything the ledger knows about its table."""

    name: str
    budget: Fraction | None
    publications: tuple[Publication, ...]

    @property
    def spent(self) -> Total:
        """What is gone or held: infinity, once something was published without epsilon."""
        return sum((publication.held for publication in self.publications), Fraction(0))

    @property
    def without_epsilon(self) -> tuple[Publication, ...]:
        """The publications that no epsilon bounds."""
        return tuple(publication for publication in self.publications if publication.held == INFINITE)

    @property
    def left(self) -> Fraction | None:
        """What may still be spent; None without a lifetime budget."""
        if self.budget is None:
            return None
        spent = self.spent
        return Fraction(0) if isinstance(spent, float) else max(self.budget - spent, Fraction(0))

    def refuse_disclosure(self, *, despite_budget: bool) -> None:
        """Refuse to publish without epsilon a table with a lifetime budget, unless the holder says so."""
        if self.budget is not None and not despite_budget:
            raise BudgetError(
                f"table {self.name} must be published with an epsilon: it has a lifetime budget "
                f"({self.budget}), and a method without one spends all of it at once",
                "Use a differentially private method, or say --despite-budget: from then on the table's total is "
                "infinite.",
            )

    def refuse_beyond(self, epsilon: Fraction) -> None:
        """Refuse an epsilon that the lifetime budget cannot pay."""
        if self.left is not None and self.without_epsilon:
            raise BudgetError(
                f"epsilon ({epsilon}) must be at most the 0 left of the lifetime budget {self.budget}: the table was "
                f"published without epsilon ({self.without_epsilon[0].method})",
                "Nothing can bound the total any more; `sfumato account amend --budget none` gives the bound up.",
            )
        if self.left is not None and epsilon > self.left:
            raise BudgetError(
                f"epsilon ({epsilon}) must be at most the {self.left} left of the lifetime budget {self.budget}",
                "Use a smaller epsilon, or see `sfumato account show`.",
            )
