"""The commands about a table's account: what was paid, what is left, and a person's decisions about it."""

from __future__ import annotations

from typing import Any

import click

from sfumato.cli.data import find_data
from sfumato.cli.show import Show, reporting, table
from sfumato.privacy.budget import Debit, NonPrivate, Total, epsilon_of
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.statement import Statement

data_argument = click.argument("data", type=click.Path())
ledger_option = click.option("--ledger", type=click.Path(), help="The ledger file [default: beside the data].")


def _open(data: str, ledger: str | None) -> Ledger:
    return Ledger.open(ledger or find_data(data).ledger_path)


@click.group()
def account() -> None:
    """Show and settle what a table has paid."""


@account.command()
@data_argument
@ledger_option
@reporting
def show(data: str, ledger: str | None, show: Show) -> None:
    """List every debit ever made on DATA, by release, and what is left."""
    statement = _open(data, ledger).statement()
    show.result(_plain(statement), _text(statement))


@account.command()
@data_argument
@click.argument("publication")
@ledger_option
@reporting
def settle(data: str, publication: str, ledger: str | None, show: Show) -> None:
    """End a PUBLICATION that died: it keeps what it paid and gives back what it held."""
    book = _open(data, ledger)
    book.settle(publication, "settled by hand")
    show.result(_plain(book.statement()), f"settled {publication}")


@account.command()
@data_argument
@click.option("--budget", required=True, help="The new lifetime budget, or none.")
@ledger_option
@reporting
def amend(data: str, budget: str, ledger: str | None, show: Show) -> None:
    """Change the lifetime budget. The old one stays on record."""
    book = _open(data, ledger)
    book.amend(None if budget == "none" else epsilon_of(budget))
    show.result(_plain(book.statement()), _text(book.statement()))


def _plain(statement: Statement) -> dict[str, Any]:
    return {
        "table": statement.name,
        "budget": statement.budget,
        "spent": _plain_total(statement.spent),
        "left": statement.left,
        "without_epsilon": [one.id for one in statement.without_epsilon],
        "publications": [
            {
                "id": one.id,
                "at": one.at,
                "method": one.method,
                "outcome": one.outcome,
                "reserved": _plain_total(one.reserved),
                "paid": _plain_total(one.paid),
                "debits": [
                    {"label": debit.label, "mechanism": _mechanism(debit), "epsilon": _plain_total(debit.epsilon)}
                    for debit in one.debits
                ],
            }
            for one in statement.publications
        ],
    }


def _text(statement: Statement) -> str:
    blocks = []
    for one in statement.publications:
        rows = [(debit.label, _mechanism(debit), f"{float(debit.epsilon):.5f}") for debit in one.debits]
        held = f"holds {_in_words(one.held)}" if one.outcome == "open" else f"paid {_in_words(one.paid)}"
        head = f"{one.at}  {one.method}  {one.outcome}, {held}  ({one.id})"
        blocks.append(head + ("\n" + table(rows, ("round", "mechanism", "epsilon"), (2,)) if rows else ""))
    left = (
        "no lifetime budget is declared" if statement.left is None else f"{statement.left} of {statement.budget} left"
    )
    number = len(statement.publications)
    many = f"{number} publication{'' if number == 1 else 's'}"
    blocks.append(f"{statement.name}: {_in_words(statement.spent)} spent in {many}, {left}")
    if statement.without_epsilon:
        blocks.append("Exact counts were published: no epsilon bounds what all releases of the table tell together.")
    return "\n\n".join(blocks)


def _mechanism(line: Debit | NonPrivate) -> str:
    return line.mechanism if isinstance(line, Debit) else f"exact counts ({line.reason})"


def _plain_total(total: Total) -> str:
    """Write an epsilon for programs: JSON knows no infinity."""
    return "infinite" if isinstance(total, float) else str(total)


def _in_words(total: Total) -> str:
    """Write an epsilon, or that there is none."""
    return "infinite epsilon" if isinstance(total, float) else str(total)
