"""The commands that measure: releases, methods on a table, the papers' claims, and the promise of a method.

`evaluate` and `report` tell what one release is worth and what it is. `compare` holds methods side by side on a table,
before anything is spent on one. `reproduce` draws the papers' figures again and judges what they claim. `audit` attacks
a method: how well can two neighbouring tables be told apart by its releases, and what does a whole publication lose?
What needs an optional library imports it when it is called.
"""

from __future__ import annotations

import base64
import secrets
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import sfumato
from sfumato import METHODS, Method, Release, Schema, epsilon_of, find_data, named_only, refuse_other_schema
from sfumato.audit import PAIRS, ExactFinding, Finding, attack, search
from sfumato.audit.events import SCHEMA
from sfumato.cli.options import ALL, EVERY, make_method, options_of, read_contestants, schema_option
from sfumato.cli.show import Show, lacking, release_argument, reporting, table
from sfumato.errors import MethodError, ReleaseError
from sfumato.exact import write_fraction
from sfumato.pictures.canvas import can_draw, refuse_pictureless
from sfumato.progress import Steps
from sfumato.report import Evaluated, evaluation_page, holders_page
from sfumato.report import report as page_of
from sfumato.report.html import Html, joined, tag
from sfumato.report.html import table as html_table
from sfumato.storage import staged_file

if TYPE_CHECKING:
    from sfumato.compare.results import Mean, Results
    from sfumato.evaluate import Scorecard

PROTOCOLS = ("2/3", "4/5", "80/20", "10-fold")
"""The protocols by which a table can be split. They are those of `evaluate.learning`, which cannot be imported here: it
needs scikit-learn.
"""
SUFFIXES = (".html", ".htm")
"""How the names of pages end."""
PAGE = "comparison.html"
"""The page of a comparison."""
HEADLINES = {
    "accuracy, tree on groups": "groups' tree",
    "accuracy, naive Bayes": "naive Bayes",
    "NCP": "NCP",
    "total variation, 2-way": "2-way TV",
    "relative error, all (median)": "query error",
    "coverage of 95 % intervals, 2 attributes": "95 % hold",
    "processor seconds": "seconds",
    "peak MB": "peak MB",
}
"""The measures that the table on the terminal shows, and what they are called there."""
LEGEND = (
    "Accuracy of the papers' tree on groups and of naive Bayes on drawn records, both on new rows; total variation of "
    "2-way marginals; median relative error of range counts; how many 95 % intervals of counts on two attributes hold "
    "the truth; processor seconds and memory of publishing."
)
"""What the columns of that table mean."""
EXTRAS = "evaluate,pictures"
"""What must be installed to reproduce."""
REFUTED = 1
"""The exit code of a claim that was found to be wrong."""
RUNS, TRANSCRIPTS = 20_000, 200
"""How often tables are published, and how many publications are replayed, if nothing is said."""
_LIMITS = f"""\
What this can show: that a claim is wrong. The event was chosen on other releases than those it was tested on, so a
true claim is refuted with a probability of at most 1 - confidence. What it cannot show: that a claim is right.
{len(PAIRS)} pairs of tiny tables and thresholds on some numbers are few; a rare event, a larger table or a cleverer
reader may tell more. That a claim holds for all tables follows from the proofs (docs/privacy.md), not from this."""
"""What an attack can show, and what it cannot."""


@click.command()
@release_argument
@click.argument("data", type=click.Path())
@click.option("--test", type=click.Path(), help="A table to test classifiers on that was not published.")
@click.option(
    "--protocol", type=click.Choice(PROTOCOLS), help="How to split DATA where no --test is given. [default: 2/3]"
)
@click.option("--out", type=click.Path(), help="The .html file of one page to write [default: none].")
@reporting
def evaluate(release: str, data: str, test: str | None, protocol: Any, out: str | None, show: Show) -> None:
    """Tell what a release of DATA is worth: what can be learnt from it, how near it is. For the holder's eyes."""
    opened, source = show.opened(release), find_data(data)
    refuse_other_schema(opened.schema, source)
    if test is not None and protocol is not None:
        raise MethodError("protocol must come without a test set", "Leave one of them out.")
    if out is not None:
        _page_place(out)
    scorecard = find_scorecard("evaluate")
    tested = None if test is None else find_data(test).table
    with show.working() as watch:
        card = scorecard(opened, source.table, tested, protocol=protocol or "2/3", watch=watch)
    words = card.verdict(opened.schema.target)
    plain = card.plain() | {"verdict": words.lines}
    if out is not None:
        with staged_file(_page_place(out)) as staging:
            staging.write_text(evaluation_page(opened, card), encoding="utf-8")
    written = "" if out is None else f"\n\nwrote {out}"
    show.result(plain, _card_text(card, opened.schema.target) + written)


def _page_place(out: str | Path) -> Path:
    """Refuse a name that is no page's."""
    if not str(out).lower().endswith(SUFFIXES):
        raise ReleaseError(f"out ({str(out)[:200]}) must end in .html", "Name the file accordingly.")
    return Path(out)


def find_scorecard(command: str) -> Callable[..., Scorecard]:
    """Import the function that measures a release, or refuse and tell how to install what it needs."""
    try:
        from sfumato.evaluate import scorecard
    except ImportError:
        raise lacking(command, "scikit-learn") from None
    return scorecard


def _card_text(card: Scorecard, target: str | None) -> str:
    from sfumato.evaluate.card import NOT_PRIVATE

    blocks = [NOT_PRIVATE, f"{card.release}\n{card.rows:,} rows, {card.people:,} people in the release"]
    blocks.append("\n".join(["In words", *(f"  {line}" for line in card.verdict(target).lines)]))
    blocks += [f"{one.title}\n{table(one.rows, one.header, one.numbers)}" for one in card.tables(target)]
    blocks.append(_use_text(card))
    if card.left_out:
        blocks.append("\n".join(["Left out", *(f"  {line}" for line in card.left_out)]))
    blocks.append("\n".join(["How it was measured", *(f"  {line}" for line in card.notes)]))
    return "\n\n".join(blocks)


def _use_text(card: Scorecard) -> str:
    rows = [
        (
            *(one.what, f"{one.processor_seconds:.2f}", f"{one.seconds:.2f}"),
            "" if one.peak_megabytes is None else f"{one.peak_megabytes:.0f}",
        )
        for one in card.use
    ]
    return "What using the release costs\n" + table(rows, ("use", "processor s", "s", "peak MB"), (1, 2, 3))


@click.command()
@release_argument
@click.option(
    "--with", "data", type=click.Path(), help="The table that was published: adds the scorecard and true counts, "
    "for the holder's eyes only."
)  # fmt: skip
@click.option("--out", type=click.Path(), help="The .html file to write [default: release.html beside release/].")
@reporting
def report(release: str, data: str | None, out: str | None, show: Show) -> None:
    """Write one page about a release that opens without a network: its promise, ledger, shape and distributions.

    Made from the release alone it is as public as the release; made --with the table it is not private.
    """
    refuse_pictureless()
    opened, folder = show.opened(release), Path(release).resolve()
    place = Path(out) if out else folder.with_name(f"{folder.name}.html")
    _page_place(place)
    with show.working() as watch, staged_file(place) as staging:
        evaluated = None if data is None else _evaluated(opened, data, watch)
        watch("drawing")
        staging.write_text(page_of(opened, folder.name, evaluated), encoding="utf-8")
    told = "It is as public as the release." if data is None else "It is NOT private: for the holder's eyes only."
    plain = {"out": str(place), "public": data is None, "digest": opened.manifest.digest}
    show.result(plain, f"wrote {place}\n{told}")


def _evaluated(release: Release, data: str, watch: Callable[[str], None]) -> Evaluated:
    """Measure the release by its table, and code the table's rows."""
    source = find_data(data)
    refuse_other_schema(release.schema, source)
    card = find_scorecard("report --with")(release, source.table, watch=watch)
    coded = sfumato.coded(source.table, release.schema)
    return Evaluated(card, coded.columns)


@click.command()
@click.argument("data", type=click.Path())
@click.option(
    "--methods",
    default=ALL,
    show_default=True,
    help=f"The methods to compare ({', '.join(EVERY)}; all: those with an epsilon), each with its options after "
    "colons, such as diffgen:specializations=10,mondrian:k=10,diffmulti:as-published.",
)
@click.option(
    "--epsilon",
    default="0.1,0.5,1",
    show_default=True,
    help="The privacy budgets to compare at; methods without one are run once for all.",
)
@click.option(
    "--runs", type=click.IntRange(1, 10_000), default=10, show_default=True, help="How often each is published."
)
@click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    default="2/3",
    show_default=True,
    help="How each run splits DATA: the rows to learn from are published, the others test what was learnt.",
)
@click.option(
    "--measures",
    help="What to measure: all, or some of classification, learners, information, marginals, queries, intervals, "
    "known, clusters, cost "
    "[default: all but learners and clusters].",
)
@click.option("--attributes", help="The attributes to publish beside the class, such as age,sex [default: all].")
@click.option("--target", help="The class attribute [default: the schema's].")
@schema_option
@click.option("--workers", type=click.IntRange(1, 1024), help="How many runs at a time [default: one per core].")
@click.option(
    "--out", type=click.Path(), default="comparison", show_default=True, help="The folder for results and pictures."
)
@reporting
def compare(data: str, schema_path: str | None, out: str, workers: int | None, show: Show, **options: Any) -> None:
    """Compare methods on DATA: each is published many times with known seeds and measured by rows held out.

    NOT private: it is worked out from raw data, for the holder's eyes, and so is what you choose by it. No release is
    kept, so nothing is debited.
    Finished runs are kept in the folder: whoever starts again repeats none of them.
    """
    try:
        from sfumato.compare.contest import open_contest, read_groups
        from sfumato.compare.results import carry_out_contest, write_results
    except ImportError:
        raise lacking("compare", "scikit-learn") from None
    groups, contestants = read_groups(options["measures"]), read_contestants(options["methods"])
    epsilons = [epsilon_of(one.strip()) for one in options["epsilon"].split(",")]
    source = find_data(data, schema_path)
    schema = _schema(source.schema(), options["attributes"], options["target"])
    place = Path(out)
    with show.working() as watch:
        watch("reading the table")
        contest = open_contest(
            *(source.table, schema, contestants, epsilons),
            runs=options["runs"],
            protocol=options["protocol"],
            groups=groups,
        )
        progress = Steps("runs", watch)
        try:
            results = carry_out_contest(contest, place, workers=workers, watch=progress)
        except KeyboardInterrupt:
            show.aside(f"{progress.done} of {progress.all} runs are kept in {out}; start again to go on.")
            raise
        watch("drawing")
        written = write_results(results, place, _page(results))
    facts = {"out": out, "files": written, "runs": progress.all, "kept_before": progress.before}
    show.result(results.plain() | facts, f"{_comparison_text(results)}\n\n{_written_text(place, progress)}")


def _schema(schema: Schema, attributes: str | None, target: str | None) -> Schema:
    """Keep the attributes that were named, and the class, which is what they are measured by."""
    chosen = schema.with_target(target) if target else schema
    if attributes is None or chosen.target is None:
        return named_only(chosen, attributes)
    return named_only(chosen, ",".join(dict.fromkeys([*attributes.split(","), chosen.target])))


def _page(results: Results) -> Callable[[Path], None]:
    """A function that writes the one page of a comparison, with all pictures in it if they can be drawn."""
    return partial(_write_page, results)


def _write_page(results: Results, place: Path) -> None:
    from sfumato.compare.results import draw_gallery
    from sfumato.compare.verdict import verdict_of

    parts = {"Means": _comparison_html(results)}
    if can_draw():
        with tempfile.TemporaryDirectory() as folder:
            draw_gallery(results, Path(folder))
            parts["Pictures"] = joined(_picture(path) for path in sorted(Path(folder).glob("*.png")))
    if results.left_out:
        parts["Left out"] = tag("ul", *(tag("li", one) for one in results.left_out))
    lead = f"{_runs(results.contest.number)} of each method by protocol {results.contest.protocol}."
    name = f"Methods compared on {results.contest.schema.name}"
    (place / PAGE).write_text(holders_page(name, lead, verdict_of(results), parts), encoding="utf-8")


def _picture(path: Path) -> Html:
    data = base64.b64encode(path.read_bytes()).decode()
    return tag("img", src=f"data:image/png;base64,{data}", alt=path.stem.replace("-", " "), loading="lazy")


def _comparison_html(results: Results) -> Html:
    means = {(one.method, one.epsilon, one.measure): one for one in results.means()}
    places = sorted(
        dict.fromkeys((method, epsilon) for method, epsilon, _ in means), key=lambda one: _order(results, *one)
    )
    rows = [
        (
            f"{method} {epsilon or ''}".strip(),
            *(_written(means.get((method, epsilon, name)), name) for name in results.measures),
        )
        for method, epsilon in places
    ]
    turned = [(name, *(row[at + 1] for row in rows)) for at, name in enumerate(results.measures)]
    return html_table(("measure", *(row[0] for row in rows)), turned, range(1, len(rows) + 1))


def _comparison_text(results: Results) -> str:
    from sfumato.compare.results import NO_GUARANTEE
    from sfumato.compare.verdict import verdict_of
    from sfumato.evaluate.card import NOT_PRIVATE

    how = f"{_runs(results.contest.number)} of each by protocol {results.contest.protocol}: means ± standard errors"
    blocks = [f"{NOT_PRIVATE}\n{NO_GUARANTEE}", "\n".join(["In words", *(f"  {one}" for one in verdict_of(results))])]
    blocks.append(f"{how}\n{_comparison_table(results)}")
    if set(HEADLINES) <= set(results.measures):
        blocks.append(textwrap.fill(LEGEND, 100))
    if results.left_out:
        blocks.append("\n".join(["Left out", *(f"  {line}" for line in results.left_out)]))
    return "\n\n".join(blocks)


def _written_text(place: Path, progress: Steps) -> str:
    """What is in the folder, also what other comparisons have left there."""
    from sfumato.compare.results import RESULTS, RUNS, SUMMARY

    drawn = PAGE if can_draw() else f"{PAGE}, without pictures: pip install 'sfumato[pictures]' to have them drawn"
    kept = len(list((place / RUNS).glob("*.json")))
    others = f", {_runs(kept - progress.all)} of other comparisons beside them" if kept > progress.all else ""
    lines = [
        f"{_runs(progress.all)} in {place / RUNS}, {progress.before} of them kept from before{others}",
        f"wrote {place / RESULTS}, {SUMMARY} and {drawn}",
    ]
    return "\n".join(lines)


def _runs(number: int) -> str:
    return f"{number:,} run" + ("" if number == 1 else "s")


def _comparison_table(results: Results) -> str:
    shown = [name for name in HEADLINES if name in results.measures] or results.measures[: len(HEADLINES)]
    means = {(one.method, one.epsilon, one.measure): one for one in results.means()}
    places = dict.fromkeys((method, epsilon) for method, epsilon, _ in means)
    rows = [
        (method, epsilon or "", *(_written(means.get((method, epsilon, name)), name) for name in shown))
        for method, epsilon in sorted(places, key=lambda place: _order(results, *place))
    ]
    return table(rows, ("method", "epsilon", *(HEADLINES.get(name, name) for name in shown)), range(1, len(shown) + 2))


def _order(results: Results, method: str, epsilon: str | None) -> tuple[int, float]:
    labels = [one.label for one in results.contest.contestants]
    return labels.index(method) if method in labels else -1, 0.0 if epsilon is None else float(Fraction(epsilon))


def _written(mean: Mean | None, name: str) -> str:
    from sfumato.compare.contest import MEASURES

    if mean is None:
        return ""
    digits = MEASURES[name].written
    return f"{mean.mean:{digits}}" + ("" if mean.standard_error is None else f" ± {mean.standard_error:{digits}}")


@click.command()
@click.argument("paper")
@click.option("--figure", help="One figure of the paper, such as 3a [default: all].")
@click.option("--runs", type=click.IntRange(min=1), help="Runs of each setting [default: by figure, mostly 10].")
@click.option("--quick", is_flag=True, help="Fewer runs and settings: all papers in minutes.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes at a time [default: one for each core].")
@click.option(
    "--out", type=click.Path(), default="reproduction", show_default=True, help="The folder for pictures and verdicts."
)
@reporting
def reproduce(
    paper: str, figure: str | None, runs: int | None, quick: bool, workers: int | None, out: str, show: Show
) -> None:
    """Draw the figures of PAPER again (diffgen, cdiffgen, diffmulti, dpcocgen, confidence, all) and judge its claims.

    Everything is measured on the bundled table. Finished runs are kept in the folder, and never repeated.
    """
    try:
        from sfumato.papers import reproduction
        from sfumato.papers.figures import Effort
    except ImportError:
        raise lacking("reproduce", "scikit-learn", EXTRAS) from None
    if not can_draw():
        raise lacking("reproduce", "matplotlib", EXTRAS)
    figures = reproduction.chosen(paper, figure)
    with show.working() as tell:
        watch = Steps("runs", tell)
        done = reproduction.reproduce(figures, Effort(runs, quick), Path(out), workers=workers, watch=watch)
    written = f"{len(done.figures)} pictures, their numbers and {reproduction.VERDICTS} in {out}"
    show.result(reproduction.plain(done), f"{reproduction.text(done)}\n{written}")


@click.command()
@click.option(
    "--method", type=click.Choice(list(METHODS)), help="What to attack [default: diffgen; with --exact all methods]."
)
@click.option(
    "--exact",
    is_flag=True,
    help="Replay publications on neighbours, and add up the exact loss of all their answers: random small tables and "
    "schemas, every set of parameters that is tested.",
)
@click.option("--epsilon", default="1", show_default=True, help="The epsilon that is claimed, such as 1, 0.5 or 1/3.")
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    help="How often tables with the record, and tables without it, are published: half of it to find out how they are "
    f"told apart best, half to test that [default: {RUNS:,}]. With --exact, the number of transcripts [default: "
    f"{TRANSCRIPTS}].",
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
    method: str | None,
    exact: bool,
    epsilon: str,
    runs: int | None,
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
    claimed = epsilon_of(epsilon)
    if exact:
        _search_exactly(method, claimed, runs or TRANSCRIPTS, unsafe_seed, show, options, as_published)
        return
    attacked = _fit_for_few(method or "diffgen", options, as_published)
    attacked.plan(SCHEMA, claimed)
    with show.working() as watch:
        found = attack(
            attacked,
            claimed,
            runs=runs or RUNS,
            confidence=confidence,
            unsafe_seed=unsafe_seed,
            processes=processes,
            watch=watch,
        )
    show.result(_plain_finding(found), _finding_text(found))
    if found.refuted:
        sys.exit(REFUTED)


def _search_exactly(
    name: str | None,
    epsilon: Fraction,
    transcripts: int,
    seed: int | None,
    show: Show,
    options: dict[str, Any],
    as_published: bool,
) -> None:
    """Add up the exact losses of one method, or of every set of parameters of all."""
    given = as_published or any(value is not None for value in options.values())
    if given and name is None:
        raise MethodError("options of a method must go with --method", "Name the method.")
    searched: list[Method] = (
        [_fit_for_few(name, options, as_published)]
        if name is not None and given
        else [one for method in ([name] if name else METHODS) for one in METHODS[method].examples()]
    )
    first = secrets.randbits(32) if seed is None else seed
    with show.working() as watch:
        found = [search(one, epsilon, transcripts=transcripts, unsafe_seed=first, watch=watch) for one in searched]
    plain = {"refuted": any(one.refuted for one in found), "findings": [_plain_exact(one) for one in found]}
    show.result(plain, _exact_text(found, searched))
    if plain["refuted"]:
        sys.exit(REFUTED)


def _plain_exact(found: ExactFinding) -> dict[str, Any]:
    return asdict(found) | {"epsilon": str(found.epsilon), "refuted": found.refuted}


def _exact_text(found: Sequence[ExactFinding], methods: Sequence[Method]) -> str:
    rows = [
        (
            one.method,
            _unusual(method),
            f"{one.transcripts:,}",
            f"{one.rounds:,}",
            f"{one.mean:.4f}",
            f"{one.largest:.4f}",
        )
        for one, method in zip(found, methods, strict=True)
    ]
    header = ("method", "parameters", "transcripts", "rounds", "mean loss / paid", "largest")
    broken = sum(one.broken for one in found)
    told = (
        f"REFUTED: {broken:,} transcripts lost more than was paid"
        if broken
        else "No transcript lost more than was paid. Losses are exact for the answers that were given, not for others."
    )
    return "\n\n".join([table(rows, header, (2, 3, 4, 5)), told])


def _unusual(method: Method) -> str:
    """What of a method is not as usual."""
    usual = {one.name: one.default for one in fields(method)}
    told = {name: getattr(method, name) for name in usual if getattr(method, name) != usual[name]}
    return ", ".join(
        f"{name} {','.join(map(str, one)) if isinstance(one, tuple) else one}" for name, one in told.items()
    )


def _fit_for_few(name: str, options: dict[str, Any], as_published: bool) -> Method:
    """Make the method, with its cheapest parameters that are worth testing where none are given: the domain is tiny."""
    few = (METHODS[name].PUBLISHED if as_published else METHODS[name].EXAMPLES)[:1]
    cheapest = {key: str(value) for one in few for key, value in one.items()}
    given = {key: value for key, value in options.items() if value is not None}
    made = make_method(name, {**cheapest, **given}, as_published=as_published)
    assert isinstance(made, Method)
    return made


def _plain_finding(found: Finding) -> dict[str, Any]:
    return asdict(found) | {"claimed": str(found.claimed), "hints": dict(found.hints), "refuted": found.refuted}


def _finding_text(found: Finding) -> str:
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
