"""The command that attacks a method's claim: how well can two neighbouring tables be told apart by its releases?"""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

import click

from sfumato import METHODS
from sfumato.audit import PAIRS, Finding, attack
from sfumato.audit.pairs import SCHEMA
from sfumato.cli.methods import make_method, options_of
from sfumato.cli.show import Show, reporting, table
from sfumato.exact import write_fraction
from sfumato.methods import Method
from sfumato.methods.cutting import Cutting
from sfumato.privacy.budget import epsilon_of
from sfumato.syntactic import SyntacticMethod

REFUTED = 1
"""The exit code of a claim that was found to be wrong."""
FEW_STEPS = "2"
"""As many specializations suit the tiny domain, where the methods' own default would be too many."""


@click.command()
@click.option(
    "--method", type=click.Choice(list(METHODS)), default="diffgen", show_default=True, help="What to attack."
)
@click.option("--epsilon", default="1", show_default=True, help="The epsilon that is claimed, such as 1, 0.5 or 1/3.")
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=20_000,
    show_default=True,
    help="How often tables with the record, and tables without it, are published: half of it to find out how they are "
    "told apart best, half to test that.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 1, max_open=True),
    default=0.95,
    show_default=True,
    help="With what probability the bound must be right.",
)
@options_of(METHODS)
@click.option("--as-published", is_flag=True, help="Exactly the paper's method.")
@click.option("--processes", type=click.IntRange(1, 64), default=2, show_default=True, help="How many work at a time.")
@click.option(
    "--unsafe-seed", type=click.IntRange(min=0), help="Reproducible noise [default: the real, unpredictable one]."
)
@reporting
def audit(
    method: str,
    epsilon: str,
    runs: int,
    confidence: float,
    as_published: bool,
    processes: int,
    unsafe_seed: int | None,
    show: Show,
    **options: Any,
) -> None:
    """Attack a method: publish neighbouring tables many times and bound its epsilon from below.

    No table of yours is read: the tables are tiny ones of its own. The exit code is 1 if the claim is refuted.
    """
    attacked = _fit_for_few(method, options, as_published)
    claimed = epsilon_of(epsilon)
    attacked.plan(SCHEMA, claimed)
    with show.working() as watch:
        found = attack(
            attacked,
            claimed,
            runs=runs,
            confidence=confidence,
            unsafe_seed=unsafe_seed,
            processes=processes,
            watch=watch,
        )
    show.result(_plain(found), _text(found))
    if found.refuted:
        sys.exit(REFUTED)


def _fit_for_few(name: str, options: dict[str, Any], as_published: bool) -> Method:
    """Make the method, with few specializations unless told otherwise."""
    few = {"specializations": FEW_STEPS} if issubclass(METHODS[name], Cutting) else {}
    given = {key: value for key, value in options.items() if value is not None}
    made = make_method(name, few | given, as_published=as_published)
    assert not isinstance(made, SyntacticMethod)
    return made


def _plain(found: Finding) -> dict[str, Any]:
    return asdict(found) | {"claimed": str(found.claimed), "hints": dict(found.hints), "refuted": found.refuted}


def _text(found: Finding) -> str:
    sides = ("with the record", "without it") if found.complete else ("without the record", "with it")
    verdict = (
        f"REFUTED: {found.method} claims epsilon {write_fraction(found.claimed)}, and it is at least {found.shown:.3f}"
        if found.refuted
        else f"{found.method} claims epsilon {write_fraction(found.claimed)}; this attack shows that it is at least "
        f"{found.shown:.3f}, which is no contradiction"
    )
    event = (
        f"Pair: {found.pair}\nEvent: {found.event}\nIt happened in {found.more:,} of {found.tested:,} releases "
        f"{sides[0]} and in {found.less:,} of {found.tested:,} {sides[1]} (confidence {100 * found.confidence:g} %)."
    )
    rows = [(name, f"{hint:.2f}") for name, hint in found.hints]
    scouted = table(rows, ("pairs that were tried", "seemed to show"), (1,))
    return "\n\n".join([verdict, event, scouted, _LIMITS])


_LIMITS = f"""\
What this can show: that a claim is wrong. The event was chosen on other releases than those it was tested on, so a
true claim is refuted with a probability of at most 1 - confidence. What it cannot show: that a claim is right.
{len(PAIRS)} pairs of tiny tables and thresholds on some numbers are few; a rare event, a larger table or a cleverer
reader may tell more. That a claim holds for all tables follows from the proofs (docs/privacy.md), not from this."""
