"""Mistakes that a meter could make, to plant in it: checks that let one live are worth nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sfumato.privacy.budget import GRAIN
from sfumato.privacy.meter import Charges, Meter
from sfumato.privacy.tally import Cells

Plant = Callable[[pytest.MonkeyPatch], None]


def children_inherit_nothing(patch: pytest.MonkeyPatch) -> None:
    real = Charges.grown_to

    def grown_to(charges, tally):
        known = real(charges, tally)
        if charges.grains is None or charges.common != known.common:
            return known
        old = len(charges.grains)
        return replace(known, grains=np.concatenate((known.grains[:old], 0 * known.grains[old:])))

    patch.setattr(Charges, "grown_to", grown_to)


def multiples_are_reversed_against_charges(patch: pytest.MonkeyPatch) -> None:
    real = Meter._price

    def price(meter, tally, places, spend, label):
        one = real(meter, tally, places, spend, label)
        return replace(one, multiples=one.multiples[::-1])

    patch.setattr(Meter, "_price", price)


def mechanisms_use_twice_what_is_charged(patch: pytest.MonkeyPatch) -> None:
    real = Meter._price

    def price(meter, tally, places, spend, label):
        one = real(meter, tally, places, spend, label)
        return replace(one, unit=one.unit * 2)

    patch.setattr(Meter, "_price", price)


def rounds_for_everyone_are_free_after_a_tree(patch: pytest.MonkeyPatch) -> None:
    real = Charges.after_everyone

    def after_everyone(charges, spend):
        return real(charges, spend if charges.tree is None else Fraction(0))

    patch.setattr(Charges, "after_everyone", after_everyone)


def an_unrelated_tree_has_paid_what_is_common(patch: pytest.MonkeyPatch) -> None:
    real = Charges.grown_to

    def grown_to(charges, tally):
        known = real(charges, tally)
        forgets = charges.tree is not None and not tally.partition.refines(charges.tree.stage)
        return replace(known, common=charges.common) if forgets else known

    patch.setattr(Charges, "grown_to", grown_to)


def the_most_is_the_median(patch: pytest.MonkeyPatch) -> None:
    def most(charges):
        if charges.tree is None:
            return charges.common
        return charges.common + int(np.median(charges.grains[charges.tree.ends])) * GRAIN

    patch.setattr(Charges, "most", property(most))


def groups_of_leaves_overlap(patch: pytest.MonkeyPatch) -> None:
    """Let every group count the next one's records, too."""
    real = Cells.read

    def read(cells, counts):
        found = real(cells, counts)
        return found if cells.borders is None else found + np.roll(found, 1, axis=1)

    patch.setattr(Cells, "read", read)


def only_the_finest_level_of_a_margin_is_paid(patch: pytest.MonkeyPatch) -> None:
    real = Meter._pay

    def pay(meter, price, debit):
        if not debit.label.startswith("margin in"):
            real(meter, price, debit)

    patch.setattr(Meter, "_pay", pay)
