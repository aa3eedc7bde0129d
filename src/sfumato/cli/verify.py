"""The command that holds a release against itself and against its account."""

from __future__ import annotations

from typing import Any

import click

from sfumato.cli.recipients import release_argument
from sfumato.cli.show import REFUSED, Show, reporting
from sfumato.release.verification import Verification
from sfumato.release.verification import verify as verified

MARKS = {True: "ok", False: "WRONG", None: "not checked"}


@click.command()
@release_argument
@click.option(
    "--ledger", type=click.Path(), help="The ledger of the table, to ask whether its account knows the release."
)
@reporting
def verify(release: str, ledger: str | None, show: Show) -> None:
    """Check that a release is what it says: seal, sum, files, records, promise and, with its ledger, account.

    Exit code 0 if nothing that was checked is wrong, 2 if something is: then each line marked WRONG names what.
    """
    found = verified(release, ledger)
    show.result(_plain(found), _text(found))
    if not found.verified:
        raise SystemExit(REFUSED)


def _plain(found: Verification) -> dict[str, Any]:
    checks = [{"about": one.about, "outcome": one.outcome, "says": one.says} for one in found.checks]
    return {"release": found.release, "verified": found.verified, "checks": checks}


def _text(found: Verification) -> str:
    width = max(len(mark) for mark in MARKS.values())
    lines = [f"{MARKS[one.passed].ljust(width)}  {one.about}: {one.says}" for one in found.checks]
    wrong = len(found.failures)
    told = "nothing is wrong with what was checked" if found.verified else f"NOT as published: {wrong} failed"
    return "\n".join([*lines, f"{found.release}: {told}"])
