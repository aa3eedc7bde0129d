"""The screens on which a holder decides and spends: Plan, Compare, Publish and Account.

Until the last button of Publish nothing is spent: a plan is judged by made-up people, methods are compared by releases
with known seeds that are dropped. What is published is what was shown: a plan or a schema that another tab has changed
meanwhile is refused.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import threading
from dataclasses import fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from starlette.responses import Response

import sfumato
from sfumato import METHODS, Ledger, Method, Numeric, Schedule, Schema, Statement, epsilon_of, refuse_unconfirmed
from sfumato.errors import MethodError, SchemaError, SfumatoError
from sfumato.pictures.inline import Purchase, draw_ledger
from sfumato.studio.desk import Found, Plan, made_method, read_schema
from sfumato.studio.pages import Asked, Studio, command, go, literal, page, piece, screen
from sfumato.studio.tasks import advise_task, compare_task, expect_task, publish_task
from sfumato.studio.work import Work

STOPS = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "4", "5", "7", "10")
"""The epsilons of the slider."""
VERDICTS = {
    0.1: "very strong protection",
    1.0: "strong protection",
    3.0: "moderate protection",
    math.inf: "weak protection: use less if you can",
}
"""What an epsilon up to so much is called."""
ROWS = "10000"
"""How many rows a table is taken to have until its holder says so."""
MOST_QUESTIONS = 50
MOST_RUNS = 20
MOST_SHOWN = 30
"""The most publications on the time line, the latest."""
DRAWING = threading.Lock()
"""Settings of drawing are shared by all threads."""


def odds(epsilon: Fraction) -> str:
    """What an epsilon means, in plain words."""
    believed = 1 / (1 + math.exp(-min(float(epsilon), 700)))
    words = (
        f"Someone who thought it even odds that a given person is in the table may, having seen the release and "
        f"everything else there is, believe it at most {100 * believed:.3g} %."
    )
    if epsilon <= Fraction(1, 10):
        return f"{words} That is very strong protection."
    if epsilon <= 1:
        return f"{words} That is strong protection."
    return (
        f"{words} {'That is moderate protection.' if epsilon <= 3 else 'That is weak protection: use less if you can.'}"
    )


def plan(studio: Studio, asked: Asked) -> Response:
    """Show the plan, what its epsilon means, and what to expect."""
    found = studio.desk.find(asked.data)
    facts, kept = found.schema(), studio.desk.plan(found)
    if asked.query.get("method") in METHODS:
        kept = replace(kept, method=asked.query["method"], parameters={})
    statement = found.statement()
    return page(
        "plan.html",
        studio,
        asked,
        screen="plan",
        found=found,
        facts=facts,
        plan=kept,
        methods=METHODS,
        parameters=_parameters(kept),
        stops=[(one, odds(Fraction(one))) for one in STOPS],
        odds=odds(epsilon_of(kept.epsilon)),
        statement=statement,
        rows=kept.rows or ROWS,
        example=_example(facts),
        expected=_expected(studio, found, kept),
        advised=studio.office.find(studio.latest.get(("advise", found.word), "")),
        same=_same(found, kept),
    )


def _parameters(kept: Plan) -> list[dict[str, Any]]:
    """The parameters of the method, each with what it does, its default, and what the plan says."""
    return [
        {
            "name": one.name,
            "says": one.metadata["says"],
            "default": "" if one.default is None else one.default,
            "value": kept.parameters.get(one.name, ""),
        }
        for one in fields(METHODS[kept.method])
        if not one.metadata["file"]
    ]


def _example(facts: Schema) -> str:
    """A question that this schema can be asked."""
    for name, column in facts.predictors.items():
        if name.isidentifier() and isinstance(column, Numeric) and column.leaves > 1:
            return f"{name} < {column.edge(column.cells // 2)}"
    return next((f"{name} = '{column.label(0, 1)}'" for name, column in facts.predictors.items()), "")


def _same(found: Found, kept: Plan) -> tuple[str, str]:
    """The plan as a command and as Python."""
    given = {name: value for name, value in kept.parameters.items() if value}
    options = [part for name, value in given.items() for part in (_option(kept.method, name), value)]
    method = METHODS[kept.method].__name__
    written = ", ".join(f"{name}={literal(value)}" for name, value in given.items())
    line = command(
        *("publish", found.word, "--method", kept.method, "--epsilon", kept.epsilon, *options, "--out", kept.out)
    )
    return (
        f"{command('advise', found.word, '--rows', kept.rows or ROWS, '--epsilon', kept.epsilon)}\n{line}",
        f"account = sfumato.Account({literal(found.ledger_path.name)}, source.schema())\n"
        f"release = account.publish(\n    source.table, sfumato.{method}({written}), epsilon={literal(kept.epsilon)}, "
        f"out={literal(kept.out)}\n)",
    )


def _option(method: str, name: str) -> str:
    declared = next(one for one in fields(METHODS[method]) if one.name == name)
    return f"--{declared.metadata['option'] or name.replace('_', '-')}"


def _expected(studio: Studio, found: Found, kept: Plan) -> Work | str:
    """Begin to work out what to expect of a plan; or say why that cannot be."""
    try:
        if found.schema().budget is not None or found.ledger_path.exists():
            found.statement().refuse_beyond(epsilon_of(kept.epsilon))
        made, questions = kept.made(), kept.asked[:MOST_QUESTIONS]
        for one in questions:
            sfumato.read_condition(found.schema(), one)
        _schedule(str(found.text), made, kept.epsilon)
        facts = _facts(found, kept) | {"questions": questions, "rows": _whole(kept.rows or ROWS)}
    except SfumatoError as error:
        return str(error)
    return studio.office.begin(f"expect {_digest(facts)}", "Working out what to expect", expect_task, facts)


def _facts(found: Found, kept: Plan) -> dict[str, Any]:
    given = {name: value for name, value in kept.parameters.items() if value}
    return {"schema": found.text, "method": kept.method, "parameters": given, "epsilon": kept.epsilon}


def _whole(text: str) -> int:
    digits = re.sub(r"[,_' ]", "", text)
    if not digits.isascii() or not digits.isdigit() or not 0 < int(digits[:15]) <= 10**12:
        raise MethodError(f"rows ({text[:40]}) must be a number of rows", "Give its order of magnitude, such as 50000.")
    return int(digits)


def _digest(facts: Any) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def save_plan(studio: Studio, asked: Asked) -> Response:
    """Keep a plan, and show what to expect of it."""
    found, form = studio.desk.find(asked.data), asked.form
    method = form.get("method", "")
    known = {one.name for one in fields(METHODS[method])} if method in METHODS else set()
    kept = Plan(
        method=method,
        epsilon=form.get("epsilon", "").strip()[:40],
        parameters={name: form[f"p-{name}"].strip() for name in known if form.get(f"p-{name}", "").strip()},
        rows=form.get("rows", "").strip()[:40],
        questions="\n".join(form.get("questions", "")[:100_000].splitlines()),
        out=form.get("out", "").strip(),
    )
    kept.made()
    epsilon_of(kept.epsilon)
    studio.desk.place(kept.out)
    studio.desk.keep(found, kept)
    if asked.piece:
        return _expected_piece(studio, found, kept)
    return go("/publish" if form.get("next") else "/plan", data=asked.data)


def expected(studio: Studio, asked: Asked) -> Response:
    """What to expect of the plan that was kept."""
    found = studio.desk.find(asked.data)
    return _expected_piece(studio, found, studio.desk.plan(found))


def _expected_piece(studio: Studio, found: Found, kept: Plan) -> Response:
    return piece(
        "expected.html",
        "plan",
        expected=_expected(studio, found, kept),
        odds=odds(epsilon_of(kept.epsilon)),
        rows=kept.rows or ROWS,
        same=_same(found, kept),
        data=found.word,
    )


def advise(studio: Studio, asked: Asked) -> Response:
    """Begin to work out what to expect of every method."""
    found = studio.desk.find(asked.data)
    kept = studio.desk.plan(found)
    facts = {"schema": found.text, "rows": _whole(kept.rows or ROWS), "epsilon": kept.epsilon}
    key = f"advise {_digest(facts)}"
    studio.latest["advise", found.word] = key
    studio.office.begin(key, "Trying every method on made-up people", advise_task, facts)
    return go("/plan", data=asked.data)


def compare(studio: Studio, asked: Asked) -> Response:
    """Show methods side by side, or how to compare them."""
    found = studio.desk.find(asked.data)
    facts, kept = found.schema(), studio.desk.plan(found)
    able = {name: _refusal(name, str(found.text), kept.epsilon) for name in METHODS}
    names = [name for name, why in able.items() if not why]
    same = (
        command("compare", found.word, "--methods", ",".join(names), "--epsilon", "0.5,1,2", "--out", "comparison"),
        "contest = sfumato.compare.open_contest(source.table, schema, contestants, epsilons, runs=3, groups=groups)\n"
        'results = sfumato.compare.carry_out_contest(contest, Path("comparison"))',
    )
    return page(
        "compare.html",
        studio,
        asked,
        screen="compare",
        found=found,
        facts=facts,
        able=able,
        summaries={name: one.summary for name, one in METHODS.items()},
        work=studio.office.find(studio.latest.get(("compare", found.word), "")),
        same=same,
    )


@lru_cache(maxsize=256)
def _refusal(name: str, schema: str, epsilon: str) -> str:
    """Why a method cannot publish a table of a schema's text; nothing if it can."""
    try:
        made_method(name, {}).plan(read_schema(schema), epsilon_of(epsilon))
    except SfumatoError as error:
        return error.problem
    return ""


@lru_cache(maxsize=32)
def _schedule(schema: str, method: Method, epsilon: str) -> Schedule:
    """What every round will cost."""
    return method.plan(read_schema(schema), epsilon_of(epsilon))


def begin_compare(studio: Studio, asked: Asked) -> Response:
    """Begin to compare."""
    found, form = studio.desk.find(asked.data), asked.form
    refuse_unconfirmed(found.schema())
    methods = [one for one in asked.several.get("method", ()) if one in METHODS]
    if not methods:
        raise MethodError("methods must be one or more of the list", "Tick those to compare.")
    epsilons = [str(epsilon_of(one.strip())) for one in form.get("epsilons", "").split(",")]
    runs = _whole(form.get("runs", "") or "1")
    if runs > MOST_RUNS or len(epsilons) > MOST_RUNS:
        raise MethodError(f"runs ({runs}) must be at most {MOST_RUNS}", "Use the command line for more.")
    facts = {
        "table": found.opened,
        "schema": found.text,
        "methods": methods,
        "epsilons": epsilons,
        "runs": runs,
        "folder": str(studio.desk.own(found, "comparison")),
    }
    key = f"compare {_digest([facts, found.state])}"
    studio.latest["compare", found.word] = key
    studio.office.begin(key, "Comparing methods", compare_task, facts)
    return go("/compare", data=asked.data)


def publish(studio: Studio, asked: Asked) -> Response:
    """A last look: what will be spent, and what will be public."""
    found = studio.desk.find(asked.data)
    facts, kept = found.schema(), studio.desk.plan(found)
    work = studio.office.find(studio.latest.get(("publish", found.word), ""))
    refusal, schedule = "", None
    try:
        statement = found.statement()
        schedule = _schedule(str(found.text), kept.made(), kept.epsilon)
        refuse_unconfirmed(facts)
        statement.refuse_beyond(epsilon_of(kept.epsilon))
    except SfumatoError as error:
        refusal = str(error)
    return page(
        "publish.html",
        studio,
        asked,
        screen="publish",
        found=found,
        facts=facts,
        plan=kept,
        seen=_seen(found, kept),
        schedule=schedule,
        refusal=refusal,
        statement=found.statement(),
        odds=odds(epsilon_of(kept.epsilon)),
        work=work,
        released="" if work is None else os.path.relpath(work.key.removeprefix("publish "), studio.desk.folder),
        same=_same(found, kept),
    )


def _seen(found: Found, kept: Plan) -> str:
    """What tells a publication as it was shown from any other."""
    return _digest([found.version, kept.method, sorted(kept.parameters.items()), kept.epsilon, kept.out])[:24]


def begin_publish(studio: Studio, asked: Asked) -> Response:
    """Publish what was shown: the one button that spends."""
    found, form = studio.desk.find(asked.data), asked.form
    kept = studio.desk.plan(found)
    if form.get("seen") != _seen(found, kept):
        raise SchemaError(
            "what is published must be what you have seen, and plan or schema were changed meanwhile",
            "Look at it once more.",
        )
    if not form.get("sure"):
        raise MethodError("publishing must be confirmed", "Tick that you want to spend it.")
    refuse_unconfirmed(found.schema())
    out = studio.desk.place(kept.out)
    facts = _facts(found, kept) | {"table": found.opened, "ledger": str(found.ledger_path), "out": str(out)}
    key = f"publish {out}"
    studio.latest["publish", found.word] = key
    studio.office.begin(key, f"Publishing {kept.out}", publish_task, facts, again=True)
    return go("/publish", data=asked.data)


def account(studio: Studio, asked: Asked) -> Response:
    """Show every debit, and what is left."""
    found = studio.desk.find(asked.data)
    statement = found.statement()
    same = command("account", "show", found.word), "account.statement()"
    return page(
        "account.html",
        studio,
        asked,
        screen="account",
        found=found,
        statement=statement,
        pictures=_time_line(statement),
        publications=list(reversed(statement.publications)),
        same=same,
    )


def _time_line(statement: Statement) -> list[str]:
    """Draw what was paid, publication after publication, up to the lifetime budget."""
    paying = [one for one in statement.publications if one.debits and not isinstance(one.held, float)]
    bought = [
        Purchase(f"{one.at[:10]} {one.method}", tuple(float(debit.epsilon) for debit in one.debits if debit.epsilon))
        for one in paying[-MOST_SHOWN:]
    ]
    budget = None if statement.budget is None else float(statement.budget)
    return _drawn(tuple(bought), budget) if bought else []


@lru_cache(maxsize=16)
def _drawn(bought: tuple[Purchase, ...], budget: float | None) -> list[str]:
    label = "What was paid: " + "; ".join(f"{one.name} {one.total:.3g}" for one in bought)
    with DRAWING:
        return [draw_ledger(bought, budget, width, label, of) for width, of in ((340.0, "narrow"), (720.0, "wide"))]


def settle(studio: Studio, asked: Asked) -> Response:
    """End a publication that died."""
    found = studio.desk.find(asked.data)
    if any(one.key.startswith("publish ") for one in studio.office.under_way()):
        raise MethodError("a publication must have died to be settled, and one is under way", "Wait for it to end.")
    Ledger.open(found.ledger_path).settle(asked.form.get("publication", ""), "settled by hand")
    return go("/account", data=asked.data)


ROUTES = {
    ("GET", "/plan"): screen(plan),
    ("POST", "/plan"): screen(save_plan),
    ("GET", "/plan/expected"): screen(expected),
    ("POST", "/plan/advise"): screen(advise),
    ("GET", "/compare"): screen(compare),
    ("POST", "/compare"): screen(begin_compare),
    ("GET", "/publish"): screen(publish),
    ("POST", "/publish"): screen(begin_publish),
    ("GET", "/account"): screen(account),
    ("POST", "/account/settle"): screen(settle),
}
"""The endpoints of this module, by method and path."""
