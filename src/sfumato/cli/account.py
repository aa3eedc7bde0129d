"""The commands about a table's account: what was paid, what is left, and a person's decisions about it."""

from __future__ import annotations

from typing import Any

import click

from sfumato.cli.data import find_data
from sfumato.cli.show import Show, reporting, table
from sfumato.privacy.budget import epsilon_of
from sfumato.privacy.ledger import Ledger, Statement

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
        "spent": statement.spent,
        "left": statement.left,
        "publications": [
            {
                "id": one.id,
                "at": one.at,
                "method": one.method,
                "outcome": one.outcome,
                "reserved": one.reserved,
                "paid": one.paid,
                "debits": [
                    {"label": debit.label, "mechanism": debit.mechanism, "epsilon": debit.epsilon}
                    for debit in one.debits
                ],
            }
            for one in statement.publications
        ],
    }


def _text(statement: Statement) -> str:
    blocks = []
    for one in statement.publications:
        rows = [(debit.label, debit.mechanism, f"{float(debit.epsilon):.5f}") for debit in one.debits]
        held = f"holds {one.held}" if one.outcome == "open" else f"paid {one.paid}"
        head = f"{one.at}  {one.method}  {one.outcome}, {held}  ({one.id})"
        blocks.append(head + ("\n" + table(rows, ("round", "mechanism", "epsilon"), (2,)) if rows else ""))
    left = (
        "no lifetime budget is declared" if statement.left is None else f"{statement.left} of {statement.budget} left"
    )
    number = len(statement.publications)
    many = f"{number} publication{'' if number == 1 else 's'}"
    blocks.append(f"{statement.name}: {statement.spent} spent in {many}, {left}")
    return "\n\n".join(blocks)
