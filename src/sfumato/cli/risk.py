"""The commands for those who answer for a release: what it leaves an adversary, what could be claimed about a person,
and whether it is what it says.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
import numpy as np

import sfumato
from sfumato import (
    GroupRisk,
    PersonClaims,
    Release,
    Verification,
    claims_about,
    find_data,
    group_risk,
    nearest_claim,
    odds_of,
)
from sfumato import sign as signed
from sfumato import verify as verified
from sfumato.cli.show import REFUSED, Show, release_argument, reporting, table
from sfumato.errors import ReleaseError

MARKS = {True: "ok", False: "WRONG", None: "not checked"}
"""What is written before a check that passed, failed or could not be made."""


@click.command()
@release_argument
@click.option(
    "--population",
    help="For releases with exact counts: the number of people from whom the records come, or a table of them. "
    "[default: the records themselves]",
)
@reporting
def risk(release: str, population: str | None, show: Show) -> None:
    """Tell what a release leaves an adversary: risks of exact groups, or what its epsilon means in odds."""
    opened = show.opened(release)
    if opened.manifest.promise is None:
        if population is not None:
            raise ReleaseError("population must go with a release of exact counts", "Leave it out.")
        show.result(_plain_odds(opened), _odds_text(opened))
        return
    found = group_risk(opened, _population(population, opened))
    plain, text = _plain_risk(found), _risk_text(found, opened)
    if not opened.disjoint:
        claim = nearest_claim(opened)
        plain |= {"nearest_to_cap": asdict(claim)}
        text += (
            f"\n\nNearest to its cap: {opened.schema.target} {claim.value} in {claim.group}, observed "
            f"{_percent(claim.observed)}, expected {_percent(claim.expected)}. Groups overlap: a person may have been "
            "generalized into any of several."
        )
    show.result(plain, text)


def _population(given: str | None, release: Release) -> Any:
    """Read a number of people, or the rows of a table."""
    if given is None or given.isdecimal():
        return None if given is None else int(given)
    coded = sfumato.coded(find_data(given).table, release.schema.only(release.schema.predictors))
    return coded.columns


def _plain_risk(found: GroupRisk) -> dict[str, Any]:
    return {
        "groups": len(found.sizes),
        "records": int(found.sizes.sum()),
        "smallest": int(found.sizes.min()),
        "median": float(np.median(found.sizes)),
        "largest": int(found.sizes.max()),
        "distribution": [
            {"sizes": name, "groups": groups, "records": rows} for name, groups, rows in found.distribution
        ],
        "prosecutor": found.prosecutor,
        "journalist": found.journalist,
        "population": "the records" if found.in_population is None else "given",
        "marketer": found.marketer,
        "worst_class_confidence": found.worst_confidence,
        "records_with_certain_class": found.certain,
    }


def _risk_text(found: GroupRisk, release: Release) -> str:
    sizes = found.sizes
    rows = [(name, f"{groups:,}", f"{records:,}") for name, groups, records in found.distribution]
    assumed = "; no population is given, so the records are taken for it" if found.in_population is None else ""
    risks = [
        (
            "prosecutor",
            _percent(found.prosecutor),
            f"finds someone who is known to be in the table ({found.sampling:g} / smallest group)",
        ),
        ("journalist", _percent(found.journalist), f"finds someone of the population{assumed}"),
        ("marketer", _percent(found.marketer), "of all records are found by guessing, on average (groups / records)"),
    ]
    blocks = [
        release.manifest.guarantee,
        f"{len(sizes):,} groups of {sizes.min():,} to {sizes.max():,} records, median {np.median(sizes):,.0f}\n"
        + table(rows, ("size", "groups", "records"), (1, 2)),
        "At worst\n" + table(risks, ("who", "chance", "what"), (1,)),
    ]
    if found.worst_confidence is not None:
        blocks.append(
            f"Worst confidence in a value of {release.schema.target}: {_percent(found.worst_confidence)} "
            f"({found.certain:,} records lie in groups that have one value only)"
        )
    return "\n\n".join(blocks)


def _plain_odds(release: Release) -> dict[str, Any]:
    odds = odds_of(release)
    return {
        "epsilon": str(release.manifest.epsilon),
        "unit": release.manifest.unit,
        "secure": release.manifest.secure,
        "odds_of_presence": odds.presence,
        "odds_of_value": odds.value,
        "believed_after": [
            {"before": before, "presence": presence, "value": value} for before, presence, value in odds.beliefs
        ],
    }


def _odds_text(release: Release) -> str:
    odds = odds_of(release)
    rows = [tuple(map(_percent, beliefs)) for beliefs in odds.beliefs]
    unit = release.manifest.unit
    swapped, more = {
        "record": ("it is taken out and another put in", " Someone with k records has k times epsilon."),
        "person": ("all rows of the person are taken out and another's put in", ""),
    }[unit]
    words = (
        f"Whatever someone knows, this release multiplies their odds that a {unit} is in the table by at most "
        f"exp(epsilon) = {odds.presence:,.3g}. Odds that a {unit} in it has one value and not another, by at most "
        f"exp(2 epsilon) = {odds.value:,.3g}: {swapped}.{more}"
    )
    header = ("believed before", f"that a {unit} is in the table", f"that a {unit} has a value")
    return "\n\n".join([release.manifest.guarantee, words, "At most believed after\n" + table(rows, header, (0, 1, 2))])


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


@click.command()
@release_argument
@click.option("--record", required=True, help="What is known of a person, such as 'age=34,sex=Male'.")
@reporting
def explain(release: str, record: str, show: Show) -> None:
    """Tell what could be claimed about a person from a release with capped confidence, and without it."""
    opened = show.opened(release)
    found = claims_about(opened, record)
    show.result(asdict(found), _claims_text(found, str(opened.schema.target)))


def _claims_text(found: PersonClaims, sensitive: str) -> str:
    if not found.records:
        return "The person could be in no group: nothing can be claimed from this release."
    rows = [
        (one.value, _tenths(one.observed), cap, _tenths(one.together), _tenths(one.public), one.group)
        for one in found.claims
        for cap in [_tenths(one.expected) if one.group else ""]
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


def _tenths(share: float) -> str:
    return f"{100 * share:.1f} %"


@click.command()
@release_argument
@click.option("--key", type=click.Path(), required=True, help="Your private OpenSSH key, or a public one in an agent.")
@reporting
def sign(release: str, key: str, show: Show) -> None:
    """Sign a release with an OpenSSH key, so that others can tell who made it.

    Writes manifest.json.sig, which `sfumato verify --signers` checks, and ssh-keygen -Y verify -n sfumato as well.
    """
    place = signed(release, key)
    show.result({"release": release, "signature": str(place)}, f"wrote {place}")


@click.command()
@release_argument
@click.option(
    "--ledger", type=click.Path(), help="The ledger of the table, to ask whether its account knows the release."
)
@click.option(
    "--signers", type=click.Path(), help="A file of allowed signers (ssh-keygen's): one of them must have signed it."
)
@click.option("--allow-seeded", is_flag=True, help="Accept a release that was made with a known seed, for tests.")
@reporting
def verify(release: str, ledger: str | None, signers: str | None, allow_seeded: bool, show: Show) -> None:
    """Check that a release is what it says: seal, sum, files, records, promise, author, account.

    Exit code 0 if nothing that was checked is wrong, 2 if something is: then each line marked WRONG names what.
    """
    found = verified(release, ledger, signers=signers, allow_seeded=allow_seeded)
    show.result(_plain_checks(found), _checks_text(found))
    if not found.verified:
        raise SystemExit(REFUSED)


def _plain_checks(found: Verification) -> dict[str, Any]:
    checks = [{"about": one.about, "outcome": one.outcome, "says": one.says} for one in found.checks]
    return {"release": found.release, "verified": found.verified, "checks": checks}


def _checks_text(found: Verification) -> str:
    width = max(len(mark) for mark in MARKS.values())
    lines = [f"{MARKS[one.passed].ljust(width)}  {one.about}: {one.says}" for one in found.checks]
    wrong = len(found.failures)
    told = "nothing is wrong with what was checked" if found.verified else f"NOT as published: {wrong} failed"
    return "\n".join([*lines, f"{found.release}: {told}"])
