"""The command that advises: which method, which epsilon, which columns, before anything is spent or looked at."""

from __future__ import annotations

import math
import re
from typing import Any

import click

from sfumato import Schema, find_data, named_only
from sfumato.cli.options import schema_option
from sfumato.cli.show import Show, reporting, table
from sfumato.compare.advice import Advice
from sfumato.compare.advice import advise as expected
from sfumato.errors import MethodError

PURPOSES = ("counts", "classification", "synthetic")
SUFFIXES = {"": 1, "k": 10**3, "m": 10**6}


@click.command()
@click.argument("data", type=click.Path())
@click.option("--epsilon", default="0.5,1,2", show_default=True, help="The epsilons to compare, such as 0.5,1,2.")
@click.option("--rows", required=True, help="About how many rows the table has, as publicly known, such as 50000.")
@click.option(
    "--for",
    "purpose",
    type=click.Choice(PURPOSES),
    default="counts",
    show_default=True,
    help="What the release is for.",
)
@click.option("--attributes", help="The attributes to publish, such as age,sex [default: all declared].")
@click.option("--target", help="The class attribute [default: the schema's].")
@schema_option
@reporting
def advise(
    data: str,
    epsilon: str,
    rows: str,
    purpose: str,
    attributes: str | None,
    target: str | None,
    schema_path: str | None,
    show: Show,
) -> None:
    """Tell what to expect of each method on a table like DATA, from its schema alone: nothing is read or spent.

    Errors are those of counts of one, two and three attributes, measured on made-up people of the same schema.
    """
    schema = named_only(find_data(data, schema_path).schema(), attributes)
    schema = schema.with_target(target) if target else schema
    with show.working() as watch:
        told = None if purpose == "synthetic" else purpose
        found = expected(schema, _number(rows), [one.strip() for one in epsilon.split(",")], told, watch)
    show.result(_plain(found, purpose, schema), _text(found, purpose, schema))


def _number(text: str) -> int:
    """Read an order of magnitude: 50000, 50,000, 50k, about 50000."""
    read = re.fullmatch(r"(?:about\s+)?([0-9][0-9,_' ]*)([kKmM]?)", text.strip())
    if read is None:
        raise MethodError(f"rows ({text[:40]}) must be a number of rows", "Give its order of magnitude, such as 50000.")
    return int(re.sub("[^0-9]", "", read[1])) * SUFFIXES[read[2].lower()]


def _choice(found: Advice, purpose: str, schema: Schema) -> str:
    """Which method for the purpose, and why."""
    able = {one.method for one in found.expected if one.errors}
    middle = list(dict.fromkeys(one.epsilon for one in found.expected))
    best = found.best(middle[len(middle) // 2])
    if best is None:
        return "No method can publish this table: use fewer attributes, or coarser ones."
    if purpose == "classification":
        if schema.target is None:
            return "For classification a class must be named: --target."
        return "For classification: diffmulti, whose regions follow the class (see docs/benchmarks.md)."
    if purpose == "synthetic" and "dpcocgen" in able:
        return "For synthetic records: dpcocgen, which keeps the structure of all attributes together."
    return (
        f"For {'synthetic records' if purpose == 'synthetic' else 'counts'}: {best.method}, with the smallest errors."
    )


def _odds(epsilon: float) -> str:
    believed = 1 / (1 + math.exp(-min(epsilon, 700)))
    return f"epsilon {epsilon:g}: who bets even odds that someone is in it may then believe {100 * believed:.0f} %"


def _plain(found: Advice, purpose: str, schema: Schema) -> dict[str, Any]:
    return {
        "rows": found.rows,
        "expected": [
            {
                "method": one.method,
                "epsilon": str(one.epsilon),
                "errors": [round(error, 1) for error in one.errors],
                "refusal": one.refusal or None,
            }
            for one in found.expected
        ],
        "advice": _choice(found, purpose, schema),
        "left_out": {name: round(share, 3) for name, share in found.saved.items()},
        "warnings": found.warnings,
    }


def _text(found: Advice, purpose: str, schema: Schema) -> str:
    able = [one for one in found.expected if one.errors]
    rows = [
        (f"{float(one.epsilon):g}", one.method, *(f"{error:,.0f}" for error in one.errors))
        for one in sorted(able, key=lambda one: (one.epsilon, one.typical))
    ]
    lines = [
        f"Expected standard error of counts of one, two and three attributes, in a table of about {found.rows:,} rows",
        table(rows, ("epsilon", "method", "one", "two", "three"), (0, 2, 3, 4)),
        _choice(found, purpose, schema),
        *(_odds(epsilon) for epsilon in dict.fromkeys(float(one.epsilon) for one in found.expected)),
    ]
    for name, share in found.saved.items():
        worth = f"typical errors fall by {100 * share:.0f} %" if share > 0.02 else "errors hardly change"
        lines.append(f"without {name}: {worth}")
    refused = {one.method: one.refusal for one in found.expected if one.refusal}
    lines += [f"{method} cannot: {refusal}" for method, refusal in refused.items()]
    return "\n".join([*lines, *found.warnings])
