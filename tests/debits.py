"""Debits to pay from a ledger."""

from __future__ import annotations

from fractions import Fraction

from sfumato.privacy.budget import Debit

ROUND = Debit("count", "discrete Laplace", Fraction(1, 3), Fraction(1), 12)


def debit(epsilon: Fraction) -> Debit:
    return Debit("count", "discrete Laplace", epsilon, Fraction(1), 12)
