"""The page about a release: what it says of every method, that nothing in it runs or fetches, and what is refused."""

from __future__ import annotations

import contextlib
import html
import io
import re
import sys
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from command_line import HEADER, SCHEMA, done, done_json, people, refused, write
from contracts import ONE_OF_EVERY_KIND
from contracts import publish as published
from handmade import BOXES, drafted, handmade_tree, manifest_of, release_of, release_over
from pages import Page, problems_of
from sfumato import Account, Answers, DiffGen, Release, Schema, seeded_release
from sfumato.geometry.tree import Tree
from sfumato.methods.method import Parameters
from sfumato.models.intervals import Z95
from sfumato.models.margins import Margin
from sfumato.pictures.inline import picture
from sfumato.privacy.measurements import Noisy
from sfumato.release import folder
from sfumato.release.readme import FOLDER
from sfumato.report import distributions, report
from sfumato.report.asking import LEAST_TOLD, bins_of, every_bins, model_shares, questions_to, together, whose_error
from sfumato.report.distributions import every_pair, strongest
from sfumato.report.html import Html, tag
from sfumato.report.promise import snippets
from sfumato.schema.conditions import read_condition
from test_account import SCHEMA as FEW_SCHEMA
from test_account import TABLE as FEW
from test_cli_confidence import GIVEN, STATISTICS

DP = ["publish", "people.csv", "--epsilon", "1", "--out", "out"]
METHODS = {
    "diffgen": [*DP, "--specializations", "3"],
    "cdiffgen": [*DP, "--method", "cdiffgen", "--specializations", "3"],
    "diffmulti": [*DP, "--method", "diffmulti"],
    "dpcocgen": [*DP, "--method", "dpcocgen", "--attributes", "age,job,income"],
    "laplace": [*DP, "--method", "laplace", "--attributes", "sex,job,income"],
    "mondrian": ["publish", "people.csv", "--method", "mondrian", "--k", "5", "--diversity", "2", "--out", "out"],
    "tds": ["publish", "people.csv", "--method", "tds", "--k", "5", "--out", "out"],
    "confidence": GIVEN,
}
SHAPES = dict.fromkeys(METHODS, "The tree of cuts") | {
    **dict.fromkeys(("diffgen", "dpcocgen", "laplace"), "The grid"),
    "confidence": "The groups",
}
HOSTILE = "</script><img src=x onerror=alert(1)>"
QUOTED = "\"'; DROP TABLE people; --"
EXAMPLE = r'<code class="long">([^<]*)</code></th>' + r'<td class="n">([^<]*)</td>' * 4
"""An example of a question on a page, with its numbers."""


def page_of(*arguments: object) -> str:
    """Run the command, and give the page."""
    done("report", *arguments, "--out", "page.html")
    return Path("page.html").read_text()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("shown", METHODS)
def test_what_stands_on_a_page(shown: str) -> None:
    Path("people.schema.yaml").write_text(SCHEMA.replace("budget: 4\n", ""))
    Path("public.csv").write_text(STATISTICS)
    done(*METHODS[shown])
    source = page_of("out")
    assert problems_of(source) == []
    page, release = Page(source), Release.load("out")
    for expected in (
        *(shown, release.manifest.digest, release.manifest.publication, SHAPES[shown], "The promise", "The ledger"),
        *(
            "What it holds",
            "What to expect of queries",
            "How to load it",
            "records.parquet",
            "pandas",
            "Polars",
            "DuckDB",
        ),
    ):
        assert expected in page.text
    for name in release.manifest.files:
        assert name in page.text
        assert FOLDER[name] in page.text
    if release.manifest.promise is None:
        assert "exp(ε) = 2.72" in page.text
        assert "tables that differ by adding or removing one record" in page.text
    else:
        assert "NOT differentially private" in page.text
        assert "Against whom" in page.text
    assert "For the holder only" not in page.text
    assert "CANARY" not in source
    assert page.tags.count("svg") > 4
    assert {name for name, _ in page.attributes} >= {"role", "aria-label"}


@ONE_OF_EVERY_KIND
def test_every_method_has_its_page(method: Parameters, tmp_path: Path) -> None:
    people = Schema.loads(FEW_SCHEMA.replace("budget: 2\n", ""))
    out = tmp_path / "release"
    release = published(Account(tmp_path / "people.ledger", people), pd.concat([FEW] * 50), method, out)
    source = report(release, "release")
    assert problems_of(source) == []
    assert {method.name, release.manifest.publication} <= set(re.findall(r"[\w-]+", Page(source).text))


def test_every_file_of_a_release_is_told_and_no_other() -> None:
    assert FOLDER.keys() == {*folder.FILES, *folder.EXPLAINING, *folder.SYNTHETIC.values(), folder.MANIFEST_FILE}


@pytest.mark.usefixtures("here")
def test_what_each_promise_says() -> None:
    Path("people.schema.yaml").write_text(SCHEMA.replace("budget: 4\n", ""))
    Path("public.csv").write_text(STATISTICS)
    done(*METHODS["mondrian"])
    text = Page(page_of("out")).text
    assert "k = 5, l = 2" in text
    assert "someone known to be in the table is found" in text
    Path("page.html").unlink()
    done(*GIVEN[:-1], "capped")
    text = Page(page_of("capped")).text
    assert "The statistics were public before" in text
    assert "Nearest to its cap" in text


def test_the_lifetime_budget_and_a_warning_are_told(release: Path) -> None:
    text = Page(page_of(release)).text
    assert "The dashed line is the table's lifetime budget, ε = 4" in text
    assert "Warning" not in text
    Path("page.html").unlink()
    seeded_release(people(), Schema.loads(SCHEMA), DiffGen(specializations=2), "1", 1, out="out")
    assert "Warning. This release carries NO GUARANTEE" in Page(page_of("out")).text


def test_the_same_release_gives_the_same_page(release: Path) -> None:
    opened = Release.load(release)
    assert report(opened, "release") == report(opened, "release")


def test_the_holders_page_says_that_it_is_the_holders(release: Path) -> None:
    assert done_json("report", release, "--with", "people.csv") == {
        "out": str(release) + ".html", "public": False, "digest": Release.load(release).manifest.digest,
    }  # fmt: skip
    source = Path("release.html").read_text()
    assert problems_of(source) == []
    text = Page(source).text
    assert text.index("For the holder only. Not private, not to be published.") < text.index("The promise")
    for expected in (
        *("What it is worth", "BA (raw)", "Match Point", "the holder's own counts", "300 rows in the table"),
        *("Intervals that hold the truth", "95 % hold", "50 % hold", "3 attributes", "answers > 10 %"),
    ):
        assert expected in text
    assert "as public as the release" not in text.replace("a page that is as public as the release", "")
    true = people()["sex"].to_pylist().count("Female")
    assert f"{true:,}" in text
    assert "CANARY" not in source


def hostile_release() -> Release:
    schema = Schema.parse(
        {
            "name": HOSTILE,
            "confirmed": True,
            "attributes": {
                HOSTILE: {"kind": "categorical", "taxonomy": [HOSTILE + "a", QUOTED + "b", "c\u202e\x07"]},
                QUOTED: {"kind": "numeric", "lower": 0, "upper": 40, "missing": "<script>"},
                "]]>--><style>": {"kind": "class", "taxonomy": ["<svg/onload=alert(1)>", "no"]},
            },
        }
    )
    return release_of(schema, ((0, 1, 2, 3), (0, 20, 42)), np.arange(12) * 10)


def test_names_that_look_like_tags_are_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = hostile_release()
    folder = f"re'l{HOSTILE.replace('/', '')}"
    source = report(release, folder)
    assert problems_of(source) == []
    page = Page(source)
    assert HOSTILE in page.text
    assert "<svg/onload=alert(1)>" in page.text
    assert "\u202e" not in source
    assert "\x07" not in source
    monkeypatch.chdir(tmp_path)
    release.save(tmp_path / folder)
    _run_snippets(release, folder)


def _run_snippets(release: Release, folder: str) -> None:
    written = snippets(release, folder)
    for name in ("pandas", "Polars", "Sfumato"):
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            exec(written[name], {})
        assert shown.getvalue()
    counted = {str(value): int(number) for value, number in duckdb.sql(written["DuckDB"]).fetchall()}
    assert sum(counted.values()) == release.records()["count"].to_numpy().sum()
    assert written["R"].startswith("library(arrow)")


def test_the_snippets_run(release: Path) -> None:
    opened = Release.load(release)
    _run_snippets(opened, "release")
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(snippets(opened, "release")["pandas"], names)
    assert isinstance(names["records"], pd.DataFrame)


@pytest.mark.parametrize(
    "bad",
    [
        *("<script>1</script>", "<p onclick='x'>a</p>", "<a href='https://b.c'>a</a>", "<p>a", "<img src=x>"),
        *("<style>a { background: url(x.png) }</style>", "<i id='a'></i><i id='a'></i>", "<a href='#nowhere'>a</a>"),
        "<b><i></b></i>",
    ],
)
def test_problems_are_found(bad: str) -> None:
    assert problems_of(bad)
    assert problems_of("<p>1 &lt; 2</p>") == []


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("attributes", ["sex", "sex,job", "planet", "income", "age"])
def test_small_releases_have_pages(attributes: str) -> None:
    done("publish", "people.csv", "--method", "laplace", "--epsilon", "1", "--attributes", attributes, "--out", "out")
    assert problems_of(page_of("out")) == []


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("shown", ["diffgen", "cdiffgen", "diffmulti", "dpcocgen"])
def test_a_release_of_nobody_has_a_page(shown: str) -> None:
    Path("people.csv").write_text(HEADER)
    done(*METHODS[shown])
    assert problems_of(page_of("out")) == []


def test_nobody_at_all_and_missing_values() -> None:
    for counts in (np.zeros(12), np.full(12, -5), np.arange(12)):
        assert problems_of(report(hostile_release_with(counts), "r")) == []
    tree = release_over(handmade_tree(), [[0, 0], [-4, 0], [0, 0]])
    assert problems_of(report(tree, "r")) == []


def hostile_release_with(counts: np.ndarray) -> Release:
    release = hostile_release()
    return release_of(release.schema, release.regions.cuts, counts)


def test_bad_input_is_refused(release: Path) -> None:
    assert "must be a release folder" in refused("report", "people.csv")
    assert "must be a release folder" in refused("report", ".")
    assert "must end in .html" in refused("report", release, "--out", "page.pdf")
    Path("page.html").mkdir()
    assert "must not exist yet" in refused("report", release, "--out", "page.html")
    assert "must be writable" in refused("report", release, "--out", "nowhere/page.html")
    assert "nowhere.csv" in refused("report", release, "--with", "nowhere.csv", "--out", "a.html")
    assert "declares name otherwise" in refused("report", release, "--with", "adult", "--out", "a.html")
    Path("people.schema.yaml").unlink()
    write(people().drop_columns(["sex"]), Path("other.csv"))
    assert "lacks sex" in refused("report", release, "--with", "other.csv", "--out", "a.html")
    assert not Path("a.html").exists()


def test_missing_libraries_are_told(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sfumato.evaluate", None)
    assert "pip install 'sfumato[evaluate]'" in refused("report", release, "--with", "people.csv", "--out", "a.html")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'sfumato[pictures]'" in refused("report", release, "--out", "a.html")


# The parts.


def test_bins_cover_every_leaf_once() -> None:
    for most in (1, 2, 3, 5, 20):
        for bins in every_bins(BOXES, most):
            assert np.array_equal(sum(one[bins.name] for one in bins.weights()), np.ones(bins.column.leaves))
            assert len(bins) <= max(most, 2)
            assert len(bins.labels) == len(bins)
            assert np.bincount(bins.of(np.arange(bins.column.leaves))).tolist() == np.diff(bins.borders).tolist()
            if bins.numeric:
                assert len(bins.edges) == len(bins) + 1


def test_the_interval_of_a_spread_attribute_holds_the_noise_of_its_margin() -> None:
    schema = BOXES.only([name for name in BOXES.attributes if name != BOXES.target])
    margins = [np.resize([50, 20, 10, 5, 5, 10], leaves) for leaves in schema.shape]
    narrow, wide = (
        release_of(schema, None, np.array([100]), {at: Margin.flat(one, rate) for at, one in enumerate(margins)})
        for rate in (Fraction(100), Fraction(1, 10))
    )
    bins = bins_of("a", schema.predictors["a"], 6)
    for release, least, most in ((narrow, 0, 6), (wide, 25, 40)):
        answers = release.count_many(bins.weights())
        halves = Z95 * answers.stddevs
        assert ((halves > least) & (halves < most)).all()
        assert whose_error(answers) == "All of the error is noise."


def test_whose_an_error_is() -> None:
    none, some = np.zeros(2), np.array([3.0, 4.0])
    told = {
        "Exact.": (none, none),
        "All of the error is noise.": (some, none),
        "All of the error is the model's.": (none, some),
    }
    for words, (noise, untold) in told.items():
        answers = Answers(("", ""), some, noise, untold, np.full(2, np.inf))
        assert whose_error(answers) == words
        assert model_shares(answers).tolist() == pytest.approx([float(untold.any())] * 2)
    both = Answers(("", ""), some, some, some, np.full(2, np.inf), "sampling")
    share = 1 - (some**2).sum() / (both.stddevs**2).sum()
    assert 0.1 < share < 0.9
    assert model_shares(both).tolist() == pytest.approx([share] * 2)
    assert whose_error(both) == f"Of the squared error {100 * share:.0f} % is the model's, the rest is sampling."


def test_an_example_says_what_count_says() -> None:
    """One number for one question: the page, `count` and `str` agree, and the parts' squares add up to the whole's."""
    release = release_over(handmade_tree(), [[9, 5], [80, 2], [40, 3]])
    shown = re.findall(EXAMPLE, report(release, "r"))
    assert shown
    for words, counted, error, noise, model in shown:
        answer = release.count(html.unescape(words))
        assert str(answer) == f"{counted} ± {error} (95 %)"
        assert (noise, model) == tuple(f"{Z95 * one:,.0f}" if one else "none" for one in (answer.noise, answer.model))
        assert np.hypot(answer.noise, answer.model) == pytest.approx(answer.stddev)
    assert {model == "none" for *_, model in shown} == {True, False}


def test_what_is_drawn_is_what_the_release_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars, maps and the picture of expected error have the intervals of `count_many`, and nothing of their own."""
    caught: dict[str, list] = {}
    for name in ("draw_bars", "draw_steps", "draw_heat_map", "draw_half_widths"):
        monkeypatch.setattr(distributions, name, lambda what, *_, of=name: caught.setdefault(of, []).append(what) or "")
    release = release_over(handmade_tree(), [[90, 5], [80, 2], [40, 3]])
    report(release, "r")
    for bins, counts in zip(every_bins(BOXES, 20), bars_of(caught), strict=True):
        low, high = release.count_many(bins.weights()).between(0.95)
        assert counts.labels == bins.labels
        assert np.array_equal(counts.lows, low)
        assert np.array_equal(counts.highs, high)
    for pair, cells in zip(strongest(every_pair(release)), caught["draw_heat_map"], strict=True):
        low, _ = release.count_many(pair.questions).between(0.95)
        assert np.array_equal(cells.uncertain.ravel(), low <= 0)
    answers = release.count_many([one.weights for one in questions_to(release, 300, 0)])
    drawn = answers.values >= 1
    for marks in caught["draw_half_widths"]:
        assert np.array_equal(marks.sizes, answers.values[drawn])
        assert np.array_equal(marks.halves, Z95 * answers.stddevs[drawn])
        assert np.array_equal(marks.measured, model_shares(answers)[drawn] < LEAST_TOLD)
        assert 0 < marks.measured.sum() < len(marks.measured)


def bars_of(caught: dict[str, list]) -> list:
    """Put what was drawn of single attributes in the order of the attributes."""
    order = [bins.labels for bins in every_bins(BOXES, 20)]
    return sorted([*caught["draw_bars"], *caught["draw_steps"]], key=lambda one: order.index(one.labels))


def test_the_intervals_hold_the_truth(adult, adult_codes, tmp_path: Path) -> None:
    """Of one-way counts on Adult nearly all lie within the intervals that are drawn; in a fifth of them, few would."""
    account = Account(tmp_path / "adult.ledger", adult.schema)
    release = account.publish(adult.table, DiffGen(specializations=10), epsilon="1", unsafe_seed=1)
    truth = dict(zip(adult.schema.predictors, adult_codes[0], strict=True))
    every = [bins for bins in every_bins(adult.schema, 20) if bins.name in truth]
    held, in_a_fifth = [], []
    for bins, answers in zip(every, together(release, [bins.weights() for bins in every]), strict=True):
        known = np.bincount(bins.of(truth[bins.name]), minlength=len(bins))
        low, high = answers.between(0.95)
        held += ((low <= known) & (known <= high)).tolist()
        in_a_fifth += (np.abs(answers.values - known) <= (high - low) / 10).tolist()
    assert np.mean(held) > 0.88
    assert np.mean(in_a_fifth) < 0.6


def test_questions_say_what_they_ask(adult) -> None:
    release = release_of(adult.schema, None, np.array([300, 100]))
    tree = release_over(handmade_tree(), [[9, 5], [8, 2], [40, 3]])
    for one in (release, tree, hostile_release()):
        written, has_own = 0, one.model.own_query(np.random.default_rng(0)) is not None
        for number, asked in enumerate(questions_to(one, 60, 1)):
            if asked.words is not None:
                said = read_condition(one.schema, asked.words)
                assert {name: weights.tolist() for name, weights in asked.weights.items()} == {
                    name: weights.tolist() for name, weights in said.items()
                }
                written += 1
            if has_own and number % 2 == 0:
                assert one.count(asked.weights).model == 0
        assert written > 10 or one.schema.name == HOSTILE


def test_answers_of_a_small_table_are_sized_in_whole_people() -> None:
    cuts = tuple(tuple(range(leaves + 1)) for leaves in BOXES.shape)
    small = Page(report(release_of(BOXES, cuts, (np.arange(144) % 9 == 0) * 20), "r")).text
    assert "below 1 " in small
    assert "3 to 32 " in small
    assert "below 0" not in small


def test_a_page_tells_of_marks_that_are_there() -> None:
    schema = BOXES.only(["a", str(BOXES.target)])
    leaves = Tree.whole(schema.shape).refine([0], [0], [*range(7)], [0, 7])
    counts = Noisy.exact(np.array([[20, 0], [0, 20]] * 3))
    exact = Page(report(Release(schema, drafted(leaves, counts), manifest_of(schema, 12)), "r")).text
    noisy = Page(report(release_over(handmade_tree(), [[9, 0], [8, 0], [0, 3]]), "r")).text
    assert "Hatched: nobody." in exact
    assert "All of these counts are exact." in exact
    assert "thin line" not in exact
    assert "Hatched: the 95 % interval reaches 0" in noisy
    assert "The thin line on a bar is the 95 % interval for its whole error." in noisy
    assert "Filled: noise alone. Open: the model's error is in it." in noisy
    cut = Release(
        BOXES, drafted(handmade_tree(), Noisy.exact(np.array([[9, 0], [8, 0], [0, 3]]))), manifest_of(BOXES, 6)
    )
    assumed = Page(report(cut, "r")).text
    assert "Counts of what was measured are exact. ± is half the 95 % interval for what the model had to" in assumed
    assert "people ± noise model" not in assumed
    assert "noise alone ±" not in assumed
    assert "people ± noise model" in noisy
    assert "noise alone ±" in noisy


def test_the_strongest_pair_is_found() -> None:
    counts = np.zeros((6, 4, 3, 2))
    for leaf in range(6):
        counts[leaf, :, :, leaf // 3] = 100
    release = release_of(BOXES, tuple(tuple(range(leaves + 1)) for leaves in BOXES.shape), counts)
    pairs = strongest(every_pair(release))
    assert set(pairs[0].names) == {"a", "class"}
    assert pairs[0].strength > 0.9
    assert all(pair.strength < 0.1 for pair in pairs[1:])


def test_attributes_are_escaped() -> None:
    assert tag("p", "&", title="\"<>'") == '<p title="&quot;&lt;&gt;&#x27;">&amp;</p>'
    assert isinstance(tag("p"), Html)


def test_a_picture_brings_no_colours_fonts_or_styles_of_its_own() -> None:
    def draw(figure) -> None:
        figure.text(0.5, 0.5, "a\x07 <b>&", rotation=90)
        figure.add_axes((0, 0, 1, 1)).bar([0, 1], [1, 2], hatch="//")

    drawn = picture((100, 50), draw, 'label "x"', "wide")
    assert problems_of(drawn) == []
    for alien in ("<style", "font-family", "DejaVu", "xmlns", "#01020", "<!--", "DOCTYPE"):
        assert alien not in drawn
    assert "a� &lt;b&gt;&amp;" in drawn
    assert 'viewBox="0 0 100 50"' in drawn
