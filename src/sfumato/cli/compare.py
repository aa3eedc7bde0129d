"""The command that tells the holder how methods compare on a table, before anything is spent on one."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.bar import Steps
from sfumato.cli.data import find_data, named_only, schema_option
from sfumato.cli.evaluate import PROTOCOLS
from sfumato.cli.extras import lacking
from sfumato.cli.methods import EVERY
from sfumato.cli.show import Show, reporting, table
from sfumato.privacy.budget import epsilon_of
from sfumato.schema import Schema

if TYPE_CHECKING:
    from sfumato.compare.results import Mean, Results

USUAL = "diffgen,diffmulti,cdiffgen,dpcocgen,laplace"
HEADLINES = {
    "accuracy, tree on groups": "groups' tree",
    "accuracy, naive Bayes": "naive Bayes",
    "NCP": "NCP",
    "total variation, 2-way": "2-way TV",
    "relative error, all (median)": "query error",
    "processor seconds": "seconds",
    "peak MB": "peak MB",
}
"""What the table on the terminal shows of what was measured, and what it is called there."""
LEGEND = (
    "Accuracy of the papers' tree on groups and of naive Bayes on drawn records, both on new rows; total variation of "
    "2-way marginals; median relative error of range counts; processor seconds and memory of publishing."
)


@click.command()
@click.argument("data", type=click.Path())
@click.option(
    "--methods",
    default=USUAL,
    show_default=True,
    help=f"The methods to compare ({', '.join(EVERY)}), each with its options after colons, such as "
    "diffgen:specializations=10,mondrian:k=10,diffmulti:as-published.",
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
    help="What to measure: all, or some of classification, learners, information, marginals, queries, clusters, cost "
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
        from sfumato.cli.contestants import read_contestants
        from sfumato.compare.contest import open_contest
        from sfumato.compare.measures import read_groups
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
        written = write_results(results, place, _drawing(results))
    facts = {"out": out, "files": written, "runs": progress.all, "kept_before": progress.before}
    show.result(results.plain() | facts, f"{_text(results)}\n\n{_written_text(place, written, progress)}")


def _schema(schema: Schema, attributes: str | None, target: str | None) -> Schema:
    """Keep the attributes that were named, and the class, which is what they are measured by."""
    chosen = schema.with_target(target) if target else schema
    if attributes is None or chosen.target is None:
        return named_only(chosen, attributes)
    return named_only(chosen, ",".join(dict.fromkeys([*attributes.split(","), chosen.target])))


def _drawing(results: Results) -> Callable[[Path], None] | None:
    """Give a way to draw, if there is one."""
    from sfumato.compare.gallery import draw_gallery
    from sfumato.pictures.canvas import can_draw

    return partial(draw_gallery, results) if can_draw() else None


def _text(results: Results) -> str:
    from sfumato.compare.results import NO_GUARANTEE
    from sfumato.evaluate.card import NOT_PRIVATE

    how = f"{_runs(results.contest.number)} of each by protocol {results.contest.protocol}: means ± standard errors"
    blocks = [f"{NOT_PRIVATE}\n{NO_GUARANTEE}", f"{how}\n{_table(results)}"]
    if set(HEADLINES) <= set(results.measures):
        blocks.append(textwrap.fill(LEGEND, 100))
    if results.left_out:
        blocks.append("\n".join(["Left out", *(f"  {line}" for line in results.left_out)]))
    return "\n\n".join(blocks)


def _written_text(place: Path, written: list[str], progress: Steps) -> str:
    """Tell what is in the folder, what others have left there among it."""
    from sfumato.compare.results import RESULTS, RUNS, SUMMARY

    pictures = sum(name.endswith(".png") for name in written)
    drawn = f"{pictures} pictures" if pictures else "no pictures: pip install 'sfumato[pictures]' to have them drawn"
    kept = len(list((place / RUNS).glob("*.json")))
    others = f", {_runs(kept - progress.all)} of other comparisons beside them" if kept > progress.all else ""
    lines = [
        f"{_runs(progress.all)} in {place / RUNS}, {progress.before} of them kept from before{others}",
        f"wrote {place / RESULTS}, {SUMMARY} and {drawn}",
    ]
    older = sorted(path.name for path in place.glob("*.png") if path.name not in written)
    if older:
        lines.append(f"not of this comparison: {', '.join(older)}")
    return "\n".join(lines)


def _runs(number: int) -> str:
    return f"{number:,} run" + ("" if number == 1 else "s")


def _table(results: Results) -> str:
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
    from sfumato.compare.measures import MEASURES

    if mean is None:
        return ""
    digits = MEASURES[name].written
    return f"{mean.mean:{digits}}" + ("" if mean.standard_error is None else f" ± {mean.standard_error:{digits}}")
