"""The other door: it is noted before it is opened, differentially private methods do not pass, and totals tell."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from contracts import EVERY_OPEN_METHOD, ONE_OF_EACH, ONE_OF_EACH_OPEN
from handmade import assert_same_draft
from open_tables import SMALL, Fuse, Notes, Rows, exact, rows
from sfumato import METHODS, WITHOUT_EPSILON, Account, Mondrian
from sfumato.errors import BudgetError, LedgerError, MethodError, PrivacyError
from sfumato.geometry.grid import Grid
from sfumato.methods.method import Method
from sfumato.privacy.budget import INFINITE, NonPrivate
from sfumato.privacy.exact_counts import ExactCounts
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.measurements import Draft
from sfumato.privacy.tally import Domain, Tally
from sfumato.without_epsilon import MethodWithoutEpsilon
from test_account import SCHEMA, TABLE, Schema

WHOLE = Tally(Grid.whole(SMALL.shape), 3)
DOMAIN = Domain(SMALL.shape, 3)
LINE = NonPrivate("groups", "a reason")


class Broken:
    """A notebook that cannot be written."""

    def note(self, line: NonPrivate) -> None:
        """Refuse."""
        raise LedgerError(f"{line.label} must be writable", "Free the disk.")


def test_nothing_is_looked_at_before_it_is_noted() -> None:
    with pytest.raises(LedgerError):
        ExactCounts(Fuse(), Broken(), DOMAIN, "test").tally(WHOLE, "groups")


def test_a_line_tells_the_reason_once() -> None:
    counts = exact([(0, 0, 0, 0)] * 3)
    assert counts.tally(WHOLE, "groups").by_place.tolist() == [[3, 0, 0]]
    counts.tally(WHOLE, "groups")
    counts.tally(WHOLE, "more")
    assert counts.lines == (NonPrivate("groups", "test"), NonPrivate("more", "test"))


def test_a_question_about_another_table_is_refused_unnoted() -> None:
    notes = Notes()
    with pytest.raises(PrivacyError):
        ExactCounts(Fuse(), notes, DOMAIN, "test").tally(Tally(Grid.whole((2,)), 3), "groups")
    assert notes.lines == []


def test_combinations_are_noted_and_listed_once() -> None:
    counts = exact([(0, 0, 0, 0), (8, 4, 2, 1), (1, 0, 0, 0), (0, 0, 0, 2)])
    grid = Grid.whole(SMALL.shape).refine(0, (5,)).refine(2, (1, 2))
    found = counts.combinations(grid, 3, "combinations")
    listed = np.stack([*found.parts, found.classes, found.counts], axis=1)
    assert sorted(map(tuple, listed.tolist())) == [(0, 0, 0, 0, 2), (0, 0, 0, 2, 1), (1, 0, 2, 1, 1)]
    assert counts.lines == (NonPrivate("combinations", "test"),)
    assert repr(found) == "Combinations(...)"
    with pytest.raises(LedgerError):
        ExactCounts(Fuse(), Broken(), DOMAIN, "test").combinations(grid, 3, "groups")
    with pytest.raises(PrivacyError):
        counts.combinations(Grid.whole((2,)), 3, "combinations")


def test_a_look_makes_the_total_infinite(path: Path) -> None:
    ledger = Ledger(path, "people", None)
    ledger.reserve("diffgen", Fraction(1)).settle("published")
    disclosure = ledger.disclose("mondrian", despite_budget=False)
    assert ledger.statement().spent == math.inf
    disclosure.note(LINE)
    disclosure.settle("published")
    statement = Ledger.open(path).statement()
    assert statement.spent == INFINITE
    assert statement.left is None
    assert [one.method for one in statement.without_epsilon] == ["mondrian"]
    assert statement.publications[1].debits == (LINE,)


def test_a_publication_that_failed_before_it_looked_holds_nothing(path: Path) -> None:
    ledger = Ledger(path, "people", None)
    ledger.disclose("mondrian", despite_budget=False).settle("failed")
    assert ledger.statement().spent == 0
    noted = ledger.disclose("mondrian", despite_budget=False)
    noted.note(LINE)
    noted.settle("failed")
    assert ledger.statement().spent == math.inf


def test_a_lifetime_budget_refuses_until_told_otherwise_and_is_then_gone(ledger: Ledger) -> None:
    for refuse in (ledger.refuse_disclosure, lambda **how: ledger.disclose("mondrian", **how)):
        with pytest.raises(BudgetError, match=r"lifetime budget \(2\).*--despite-budget"):
            refuse(despite_budget=False)
    ledger.disclose("mondrian", despite_budget=True).note(LINE)
    assert ledger.statement().left == 0
    with pytest.raises(BudgetError, match=r"published without epsilon \(mondrian\).*amend --budget none"):
        ledger.reserve("diffgen", Fraction(1, 100))
    ledger.amend(None)
    ledger.reserve("diffgen", Fraction(1))
    assert ledger.statement().spent == math.inf


def test_a_reservation_of_epsilon_takes_no_look_without(ledger: Ledger) -> None:
    reservation = ledger.reserve("diffgen", Fraction(1))
    with pytest.raises(PrivacyError, match="must belong to a publication without epsilon"):
        ledger.note(reservation.id, LINE)
    assert ledger.statement().spent == 1


@pytest.fixture
def account(path: Path) -> Account:
    return Account(path, Schema.loads(SCHEMA.replace("budget: 2\n", "")))


@ONE_OF_EACH
def test_a_private_method_without_an_epsilon_sees_nothing(account: Account, path: Path, method: Method) -> None:
    with pytest.raises(BudgetError, match=f"{method.name} must have an epsilon"):
        account.publish(TABLE, method)
    assert not path.exists()


@ONE_OF_EACH
def test_a_private_method_is_not_excused_from_the_budget(account: Account, path: Path, method: Method) -> None:
    with pytest.raises(MethodError, match="despite_budget must go with a method without epsilon"):
        account.publish(TABLE, method, 1, despite_budget=True)
    assert not path.exists()


def test_no_method_is_of_both_kinds() -> None:
    assert not any(issubclass(method, MethodWithoutEpsilon) for method in METHODS.values())
    assert not any(hasattr(method, "plan") for method in WITHOUT_EPSILON.values())
    assert not METHODS.keys() & WITHOUT_EPSILON.keys()


@ONE_OF_EACH_OPEN
def test_a_method_without_epsilon_is_refused_a_meter(
    account: Account, path: Path, method: MethodWithoutEpsilon
) -> None:
    for refused in (lambda: account.publish(TABLE, method, "1"), lambda: account.plan(method, "1")):
        with pytest.raises(MethodError, match=f"{method.name} must be published without epsilon"):
            refused()
    assert not path.exists()


@EVERY_OPEN_METHOD
def test_the_account_publishes_and_remembers(account: Account, tmp_path: Path, method: MethodWithoutEpsilon) -> None:
    release = account.publish(TABLE, method, out=tmp_path / "out")
    (publication,) = account.statement().publications
    assert (publication.outcome, publication.paid) == ("published", math.inf)
    assert release.manifest.looks == publication.debits
    assert {line.reason for line in release.manifest.looks} == {method.reason}
    assert release.manifest.promise.kept(release.draft.structure, release.draft.final.counts)
    assert release.draft.is_exact
    assert 40 <= release.draft.final.counts.sum() <= 60


@EVERY_OPEN_METHOD
@settings(max_examples=10)
@given(table=rows(40), chance=st.randoms(use_true_random=False))
def test_a_promise_is_kept_on_any_table_and_the_order_of_rows_tells_nothing(
    method: MethodWithoutEpsilon, table: Rows, chance: Random
) -> None:
    def drafted() -> Draft:
        schema, counts = method.narrowed(SMALL), exact(table)
        method.promise(schema).refuse_table(np.bincount([row[-1] for row in table], minlength=3))
        knowing = method.informed(counts, schema)
        draft = knowing.publish(counts, schema)
        assert knowing.promise(schema).kept(draft.structure, draft.final.counts)
        return draft

    try:
        draft = drafted()
    except MethodError:
        assume(False)
    chance.shuffle(table)
    assert_same_draft(draft, drafted())


def test_a_budget_is_kept_from_the_start(tmp_path: Path, path: Path) -> None:
    account = Account(path, Schema.loads(SCHEMA))
    with pytest.raises(BudgetError, match="must be published with an epsilon"):
        account.publish(TABLE, Mondrian(k=5), out=tmp_path / "out")
    assert not path.exists()
    assert not (tmp_path / "out").exists()
    account.publish(TABLE, Mondrian(k=5), despite_budget=True)
    assert account.statement().left == 0


@pytest.mark.parametrize(
    ("method", "table", "told"),
    [
        (Mondrian(k=61), TABLE, r"k \(61\) must be at most the number of the table's rows"),
        (Mondrian(k=5), TABLE.head(0), "must be at most the number"),
        (
            Mondrian(k=5, diversity=2),
            TABLE.assign(**{"class": "Y"}),
            r"diversity \(2\) must be at most the number of val",
        ),
    ],
)
def test_a_table_that_nothing_can_save_is_refused_and_not_booked(
    account: Account, path: Path, method: Mondrian, table, told: str
) -> None:
    with pytest.raises(MethodError, match=told):
        account.publish(table, method)
    assert not path.exists()


def test_a_broken_promise_is_no_release(account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = Mondrian.publish

    def careless(_: Mondrian, counts: ExactCounts, schema: Schema) -> Draft:
        return really(Mondrian(k=2), counts, schema)

    monkeypatch.setattr(Mondrian, "publish", careless)
    with pytest.raises(PrivacyError, match="every group must have the promised k-anonymity"):
        account.publish(TABLE.head(9), Mondrian(k=4), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (publication,) = account.statement().publications
    assert publication.outcome == "failed"
