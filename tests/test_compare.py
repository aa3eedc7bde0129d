"""Methods side by side: what is run and kept, who is left out, and what the files say."""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from command_line import SCHEMA, people
from sfumato import CDiffGen, Confidence, DiffGen, Laplace, Mondrian, Schema
from sfumato.compare import Contestant, carry_out_contest, open_contest
from sfumato.compare.contest import GROUPS, LEAN, MEASURES, interval_names
from sfumato.compare.results import (
    Bench,
    Found,
    Results,
    draw_gallery,
    measured,
    panel_of,
    seeded_release,
    write_results,
)
from sfumato.errors import MethodError, SchemaError, TableError
from sfumato.evaluate.coverage import KINDS
from sfumato.evaluate.runs import mean_and_error
from sfumato.exact import write_fraction

TABLE, DECLARED = people(300), Schema.loads(SCHEMA)
HALF, ONE = Fraction(1, 2), Fraction(1)
METHODS = (Contestant("diffgen", DiffGen(specializations=3)), Contestant("mondrian", Mondrian(k=5)))


def contest_of(contestants=METHODS, epsilons=(HALF, ONE), *, table=TABLE, schema=DECLARED, **more):
    given = {"runs": 2, "groups": ("classification", "information", "cost")} | more
    return open_contest(table, schema, contestants, epsilons, **given)


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    return carry_out_contest(contest_of(), tmp_path_factory.mktemp("comparison"), workers=1)


def test_a_method_without_epsilon_and_the_raw_rows_run_once_per_run() -> None:
    runs = contest_of().runs()
    assert [(run.label, run.epsilon) for run in runs[:4]] == [
        (None, None),
        ("diffgen", HALF),
        ("diffgen", ONE),
        ("mondrian", None),
    ]
    assert [run.number for run in runs] == [0] * 4 + [1] * 4


def test_whatever_decides_an_outcome_is_in_the_key() -> None:
    base = {str(run.key) for run in contest_of().runs()}
    renamed = TABLE.set_column(1, "age", [np.roll(TABLE["age"].to_numpy(), 1)])
    others = [
        contest_of((Contestant("diffgen", DiffGen(specializations=4)), Contestant("mondrian", Mondrian(k=6)))),
        contest_of(protocol="4/5"),
        contest_of(table=renamed),
        contest_of(schema=Schema.loads(SCHEMA.replace("upper: 90", "upper: 91"))),
        contest_of(schema=DECLARED.only(["age", "sex", "income"])),
        contest_of(schema=DECLARED.with_target("job")),
        contest_of(groups=LEAN),
    ]
    for other in others:
        keys = {str(run.key) for run in other.runs() if run.label is not None}
        assert not keys & base
    more_of_the_same = {str(run.key) for run in contest_of(epsilons=(HALF,), runs=3).runs()}
    assert len(more_of_the_same & base) == 6
    undeclared = TABLE.append_column("shoe", [list(range(300))])
    assert {str(run.key) for run in contest_of(table=undeclared).runs()} == base


def test_every_measure_that_applies_has_a_value(results: Results) -> None:
    expected = [one.name for one in MEASURES.values() if one.group in ("classification", "information", "cost")]
    assert results.measures == expected
    means = {(one.method, one.epsilon, one.measure): one for one in results.means()}
    assert {epsilon for method, epsilon, _ in means if method == "diffgen"} == {"0.5", "1"}
    assert {epsilon for method, epsilon, _ in means if method == "mondrian"} == {None}
    assert means["raw data", None, "accuracy, tree on groups"].mean > 0.9
    assert means["most frequent class", None, "AUC, naive Bayes"].mean == 0.5
    assert means["mondrian", None, "NCP"].runs == 2


def test_all_measures_of_one_run() -> None:
    contest = contest_of(groups=tuple(GROUPS), runs=1)
    outcomes = [measured(Bench.of(contest), run.key) for run in contest.runs()]
    assert set(outcomes[1]["values"]) == set(MEASURES)
    assert set(outcomes[0]["levels"]["raw data"]) == {
        one.name for one in MEASURES.values() if one.group in ("classification", "learners")
    }


def test_a_run_can_be_repeated_and_sees_rows_that_were_not_published() -> None:
    contest = contest_of(groups=("classification", "queries"))
    bench = pickle.loads(pickle.dumps(Bench.of(contest)))
    first, second = contest.runs()[1].key, contest.runs()[5].key
    assert measured(bench, first) == measured(bench, first) != measured(bench, second)


def test_the_runs_of_a_cross_validation_are_its_folds() -> None:
    contest = contest_of(METHODS[1:], protocol="10-fold", runs=11, groups=("information",))
    chosen = [contest.runs()[number] for number in (0, 1, 10)]
    found = [measured(Bench.of(contest), run.key)["values"]["discernibility"] for run in chosen]
    assert len(set(found)) == 3


def test_seeded_releases_say_so_and_leave_nothing_behind(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    for method, epsilon in ((DiffGen(specializations=2), "8"), (Mondrian(k=5), None)):
        release = seeded_release(TABLE, DECLARED, method, epsilon, 0)
        assert release.manifest.secure == (epsilon is None)
    assert not list(tmp_path.iterdir())


def test_who_cannot_publish_is_left_out_and_the_others_go_on() -> None:
    capped = Confidence(sensitive="job", statistics_from_data=True)
    unfit = {"laplace": Laplace(max_cells=2), "capped": capped, "some": Mondrian(k=5, quasi="age,sex")}
    contest = contest_of((*METHODS, *(Contestant(label, method) for label, method in unfit.items())))
    assert [one.label for one in contest.contestants] == ["diffgen", "mondrian"]
    assert contest.left_out[0].startswith("laplace: the domain (1,184 cells) must have at most 2 cells")
    assert contest.left_out[1].startswith("capped: it publishes job in place of the class")
    assert contest.left_out[2].startswith("some: it publishes age, sex, income only")
    with pytest.raises(MethodError, match="none is: laplace: the domain"):
        contest_of((Contestant("laplace", Laplace(max_cells=2)),))


def test_a_refusal_of_the_rows_is_told(tmp_path: Path) -> None:
    found = carry_out_contest(contest_of((*METHODS[:1], Contestant("k", Mondrian(k=250)))), tmp_path, workers=1)
    assert len(found.left_out) == 1
    assert found.left_out[0].startswith("k: ")
    assert {one.method for one in found.found} == {"raw data", "most frequent class", "diffgen"}


def test_groups_that_overlap_are_compared_by_their_records() -> None:
    capped = Confidence(sensitive="job", statistics_from_data=True)
    schema = DECLARED.with_target("job")
    contest = contest_of((Contestant("capped", capped),), schema=schema, groups=LEAN, runs=1)
    values = measured(Bench.of(contest), contest.runs()[1].key)["values"]
    assert not seeded_release(TABLE, schema, capped, None, 0).disjoint
    assert "accuracy, naive Bayes" in values
    assert "accuracy, regions" not in values


def test_a_release_without_people_is_as_far_as_can_be() -> None:
    schema, found = DECLARED.only(["sex", "income"]), []
    contest = contest_of(
        (Contestant("laplace", Laplace()),), (Fraction(1, 10**6),), schema=schema, groups=tuple(GROUPS), runs=12
    )
    for run in contest.runs():
        if run.label is not None:
            found.append(measured(Bench.of(contest), run.key)["values"])
        if found and found[-1]["total variation, 1-way"] == 1:
            break
    assert found[-1]["Hellinger, 2-way"] == 1
    assert found[-1]["AUC, naive Bayes"] == 0.5
    assert "Match Point, 2 clusters, drawn records" not in found[-1]


def test_without_a_class_classification_is_left_out() -> None:
    contest = contest_of((Contestant("laplace", Laplace()),), schema=DECLARED.only(["age", "sex"]), runs=1)
    assert contest.left_out == ("Classification: the table has no class attribute; choose one with --target.",)
    assert set(measured(Bench.of(contest), contest.runs()[0].key)["values"]) == {
        one.name for one in MEASURES.values() if one.group in ("information", "cost")
    }


@pytest.mark.parametrize(
    ("changed", "error", "told"),
    [
        ({"runs": 0}, MethodError, r"runs \(0\) must be"),
        ({"contestants": ()}, MethodError, "must name one"),
        ({"contestants": METHODS[:1] * 2}, MethodError, "must be named once"),
        ({"table": TABLE.slice(0, 0)}, TableError, "must have rows"),
        ({"table": TABLE.slice(0, 9), "protocol": "10-fold"}, TableError, "must have 10 rows"),
        ({"protocol": "1/2"}, TableError, "protocol"),
        ({"schema": DECLARED.only(["income"])}, TableError, "beside the class"),
        ({"schema": DECLARED.model_copy(update={"confirmed": False})}, SchemaError, "confirmed"),
    ],
)
def test_what_cannot_be_compared_is_refused(changed, error, told) -> None:
    with pytest.raises(error, match=told):
        contest_of(**changed)


def test_a_table_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(TABLE, path)
    contest = contest_of(table=path)
    pq.write_table(TABLE.slice(1), path)
    with pytest.raises(TableError, match="must not change"):
        measured(Bench.of(contest), contest.runs()[0].key | {"schema": "not kept in this process"})


def test_files_say_that_they_are_not_private_and_carry_no_guarantee(results: Results, tmp_path: Path) -> None:
    assert write_results(results, tmp_path, None) == ["results.parquet", "summary.csv"]
    assert write_results(results, tmp_path, None) == ["results.parquet", "summary.csv"]
    assert {path.name for path in tmp_path.iterdir()} == {"results.parquet", "summary.csv"}
    table = pq.read_table(tmp_path / "results.parquet")
    assert table.schema.names == ["method", "epsilon", "run", "measure", "value"]
    assert table.num_rows == len(results.found)
    assert b"not private" in table.schema.metadata[b"warning"]
    assert b"no guarantee" in table.schema.metadata[b"guarantee"]
    lines = (tmp_path / "summary.csv").read_text().splitlines()
    assert lines[0] == "method,epsilon,measure,mean,standard_error,runs,guarantee"
    assert all(line.endswith('"none: known seed, not private"') for line in lines[1:])


def test_a_curve_is_flat_without_epsilon_and_raw_rows_are_levels(results: Results) -> None:
    name = "accuracy, tree on groups"
    panel = panel_of(results, MEASURES[name], [one for one in results.means() if one.measure == name])
    diffgen, mondrian = panel.curves
    assert diffgen.at == mondrian.at == (0.5, 1.0)
    assert len(set(mondrian.values)) == 1
    assert diffgen.errors is not None
    assert [level for level, _ in panel.levels] == ["raw data (BA)", "most frequent class (LA)"]


def test_coverage_is_drawn_beside_what_is_stated_all_kinds_of_questions_in_one_picture(tmp_path: Path) -> None:
    names = [interval_names(0.95, kind)[0] for kind in KINDS]
    found = tuple(Found("diffgen", "1", 0, name, 0.9) for name in names)
    drawn = Results(contest_of(), found, ())
    panel = panel_of(drawn, MEASURES[names[1]], drawn.means()[1:2])
    assert panel.title == "2 attributes: nearer to the line is better"
    assert panel.levels == (("as stated (95 %)", 0.95),)
    assert panel.curves[0].values == (0.9,)
    draw_gallery(drawn, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["coverage-of-95-intervals.png"]


def test_means_and_epsilons_by_hand() -> None:
    assert mean_and_error([3.0]) == (3.0, None)
    assert mean_and_error([1.0, 2.0, 6.0]) == (3.0, pytest.approx(7**0.5 / 3**0.5))
    written = {"1": "1", "1/4": "0.25", "2/3": "2/3", "1/1000000": "0.000001"}
    assert {one: write_fraction(Fraction(one)) for one in written} == written
    contest = contest_of((Contestant("cdiffgen", CDiffGen(specializations=2)),))
    found = (Found("cdiffgen", "1", 0, "NCP", 0.5), Found("cdiffgen", "1", 1, "NCP", 0.7))
    (mean,) = Results(contest, found, ()).means()
    assert (mean.mean, mean.runs) == (pytest.approx(0.6), 2)
