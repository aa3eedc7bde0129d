"""The door: pay, then look; one number; many rounds on one pass."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from replay import Purse, Recorder
from sfumato.engines.local import MemoryEngine
from sfumato.errors import BudgetError, LedgerError
from sfumato.geometry.candidates import Candidates
from sfumato.geometry.grid import Grid
from sfumato.privacy.choices import Choices
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import SCORES, BalancedMax, InfoGain, Max
from sfumato.privacy.tally import Cells, Tally

WHOLE = Tally(Grid.whole((4, 47)), 2, (0, 1))
ASKED = Choices.of(WHOLE, [Candidates.splits(0, 1, 0, 47)])


class Spy:
    """An engine that tells when it is asked."""

    def __init__(self, engine: MemoryEngine, log: list[str]) -> None:
        self._engine, self._log = engine, log

    def tally(self, tally: Tally):
        self._log.append("look")
        return self._engine.tally(tally)


class Logged(Purse):
    """A purse that tells when it is opened."""

    def __init__(self, epsilon: Fraction, log: list[str]) -> None:
        super().__init__(epsilon)
        self._log = log

    def pay(self, debit) -> None:
        self._log.append("pay")
        super().pay(debit)


def metered(engine: MemoryEngine, epsilon: Fraction = Fraction(1)) -> tuple[Meter, Recorder, list[str]]:
    log: list[str] = []
    recorder = Recorder(0)
    return Meter(Spy(engine, log), Logged(epsilon, log), recorder, WHOLE.domain), recorder, log


def test_it_pays_then_looks_and_looks_once_for_many_rounds(paper_engine: MemoryEngine) -> None:
    meter, _, log = metered(paper_engine)
    meter.select(ASKED, Max(), Fraction(1, 4), "choice", "permute-and-flip")
    meter.measure(Cells(WHOLE), Fraction(1, 4), "size")
    meter.measure(Cells(WHOLE, 1), Fraction(1, 4), "margin")
    assert log == ["pay", "look", "pay", "pay"]
    assert meter.left == Fraction(1, 4)


def test_the_debited_epsilon_scales_the_noise(paper_engine: MemoryEngine) -> None:
    meter, recorder, _ = metered(paper_engine)
    meter.measure(Cells(WHOLE), Fraction(1, 7), "counts")
    meter.select(ASKED, Max(), Fraction(1, 7), "max", "permute-and-flip")
    meter.select(ASKED, Max(), Fraction(1, 7), "paper", "exponential")
    meter.select(ASKED, InfoGain(), Fraction(1, 7), "gain", "permute-and-flip")
    bits = InfoGain().sensitivity(2)
    rates = [Fraction(1, 7), Fraction(1, 7), Fraction(1, 14), InfoGain.unit / (14 * bits)]
    assert [call.rates[0] for call in recorder.calls] == rates


@pytest.mark.parametrize("spend", [Fraction(0), Fraction(-1, 2), Fraction(3, 2), Fraction(1, 2**40)])
def test_what_cannot_be_paid_is_not_looked_at(paper_engine: MemoryEngine, spend: Fraction) -> None:
    meter, _, log = metered(paper_engine)
    with pytest.raises(BudgetError, match="must cost"):
        meter.measure(Cells(WHOLE), spend, "counts")
    with pytest.raises(BudgetError, match="must cost"):
        meter.select(ASKED, Max(), spend, "choice", "permute-and-flip")
    assert log == []


def test_a_ledger_that_refuses_stops_the_look(paper_engine: MemoryEngine) -> None:
    class Broken(Purse):
        def pay(self, debit) -> None:  # noqa: ARG002
            raise LedgerError("the disk must have room", "Free some.")

    log: list[str] = []
    meter = Meter(Spy(paper_engine, log), Broken(Fraction(1)), Recorder(0), WHOLE.domain)
    with pytest.raises(LedgerError):
        meter.measure(Cells(WHOLE), Fraction(1, 2), "counts")
    assert log == []
    assert meter.debits == ()


def test_noise_of_whole_and_margin_reads_the_right_cells(paper_engine: MemoryEngine) -> None:
    meter, recorder, _ = metered(paper_engine)
    meter.measure(Cells(WHOLE), Fraction(1, 4), "size")
    meter.measure(Cells(WHOLE, 0), Fraction(1, 4), "margin job")
    assert recorder.calls[0].given.tolist() == [[4, 4]]
    assert recorder.calls[1].given.tolist() == [[2, 2, 2, 2]]


@pytest.mark.parametrize("name", SCORES)
def test_rates_stay_small_enough_to_sample_exactly(name: str) -> None:
    score = BalancedMax(np.ones((1, 2), np.int64)) if name == "balanced" else SCORES[name]()
    for classes in (2, 3, 1000):
        rate = Fraction(1, 2**31 - 1) * score.unit / (2 * score.sensitivity(classes))
        assert rate.denominator <= 2**49
