"""What a publication would cost or promise, before it is made: options that do not fit a method, and dry runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.cli.show import table
from sfumato.errors import MethodError
from sfumato.methods import Method
from sfumato.privacy.budget import Schedule, epsilon_of
from sfumato.schema import Schema
from sfumato.syntactic import SyntacticMethod


def refuse_unfit_options(method: Method | SyntacticMethod, options: Mapping[str, Any]) -> None:
    """Refuse an epsilon where there is none, and to do without where there must be one."""
    if isinstance(method, SyntacticMethod):
        _refuse(method.name, options, ("epsilon",), "a differentially private method")
        if options["engine"] not in ("auto", *method.engines):
            raise MethodError(
                f"engine ({options['engine']}) must be {' or '.join(method.engines)} for {method.name}, which works on "
                "single records",
                "Leave it out.",
            )
        _refuse(method.name, options, ("memory", "master", "scratch"), "a method that only counts")
        if method.sampling == 1:
            _refuse(method.name, options, ("unsafe_seed",), "a method that draws at random")
    else:
        _refuse(method.name, options, ("despite_budget",), "a method without epsilon")
        if options["epsilon"] is None:
            raise MethodError(f"{method.name} must have an epsilon to spend", "Give for example --epsilon 1.")


def _refuse(method: str, options: Mapping[str, Any], names: tuple[str, ...], owner: str) -> None:
    for name in names:
        if options[name] not in (None, False):
            raise MethodError(
                f"option --{name.replace('_', '-')} must go with {owner}, and {method} is none", "Leave it out."
            )


def plan_shown(method: Method | SyntacticMethod, schema: Schema, epsilon: str) -> tuple[dict[str, Any], str]:
    """Show the schedule of debits, or what would be promised instead: as plain values and as text."""
    if isinstance(method, SyntacticMethod):
        kept = method.narrowed(schema)
        promise = method.promise(kept)
        plain = {"promise": promise.plain(), "adversary": promise.adversary, "published": list(kept.attributes)}
        published = f"Published, and alone read: {', '.join(kept.attributes)}"
        return plain, f"{promise.guarantee}\n\n{promise.adversary}\n\n{published}"
    schedule = method.plan(schema, epsilon_of(epsilon))
    return {"schedule": {label: str(part) for label, part in schedule.parts.items()}}, _schedule_text(schedule)


def _schedule_text(schedule: Schedule) -> str:
    rows = [(label, str(part), f"{float(part):.6f}") for label, part in schedule.parts.items()]
    return table(
        [*rows, ("total", str(schedule.total), f"{float(schedule.total):.6f}")], ("round", "epsilon", "about"), (1, 2)
    )
