"""The command that tells a person what could be claimed about them."""

from __future__ import annotations

from dataclasses import asdict

import click

from sfumato.cli.recipients import release_argument
from sfumato.cli.show import Show, reporting, table
from sfumato.release.claims import PersonClaims, claims_about
from sfumato.release.release import Release


@click.command()
@release_argument
@click.option("--record", required=True, help="What is known of a person, such as 'age=34,sex=Male'.")
@reporting
def explain(release: str, record: str, show: Show) -> None:
    """Tell what could be claimed about a person from a release with capped confidence, and without it."""
    opened = Release.load(release)
    found = claims_about(opened, record)
    show.result(asdict(found), _text(found, str(opened.schema.target)))


def _text(found: PersonClaims, sensitive: str) -> str:
    if not found.records:
        return "The person could be in no group: nothing can be claimed from this release."
    rows = [
        (one.value, _percent(one.observed), cap, _percent(one.together), _percent(one.public), one.group)
        for one in found.claims
        for cap in [_percent(one.expected) if one.group else ""]
    ]
    groups = "1 group, which has" if found.groups == 1 else f"{found.groups:,} groups, which have"
    header = (sensitive, "observed", "expected", "together", "public", "group that tells most")
    return "\n\n".join(
        [
            f"The person could be in {groups} {found.records:,} records.",
            table(rows, header, (1, 2, 3, 4)),
            "observed: what the group that tells most lets someone claim (sampling rate x share of the value in it);\n"
            "expected: its cap, the probability that such a record occurs among as many from public statistics;\n"
            "together: what all groups in which the person could be say together;\n"
            "public:   how probable the value is for such a person, without the release.",
        ]
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
