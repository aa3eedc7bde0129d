"""Releases with capped confidence: the usual faces over groups that overlap, and manifests that promise what holds."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import sfumato
from forging import reseal
from handmade import assert_equal
from sfumato import Account, Confidence, Mondrian, Release, Schema
from sfumato.errors import MethodError, PrivacyError, QueryError, ReleaseError
from sfumato.geometry.regions import Boxes
from sfumato.privacy.tally import Tally
from sfumato.release import promises
from sfumato.release.promises import ConfidenceCap, KAnonymity, Knowledge, Rule
from sfumato.release.risk import claims_about, group_risk, nearest_claim
from sfumato.without_epsilon.confidence import Climb
from test_open_releases import published as anonymous

SCHEMA = Schema.loads("""
name: patients
confirmed: true
attributes:
  age: {kind: numeric, lower: 20, upper: 59, intervals: [5]}
  sex: {kind: categorical, taxonomy: [female, male]}
  town: {kind: categorical, taxonomy: {north: [Aa, Bb], south: [Cc, Dd]}}
  disease: {kind: class, taxonomy: [flu, asthma, diabetes]}
""")
RNG = np.random.default_rng(5)
ROWS = 3000
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(20, 60, ROWS),
        "sex": RNG.choice(["female", "male"], ROWS),
        "town": RNG.choice(["Aa", "Bb", "Cc", "Dd"], ROWS, p=[0.7, 0.2, 0.07, 0.03]),
        "disease": RNG.choice(["flu", "asthma", "diabetes"], ROWS, p=[0.8, 0.15, 0.05]),
    }
)
STATISTICS = """attribute,value,probability
age,"[20, 60)",1
sex,female,0.5
sex,male,0.5
town,Aa,0.7
town,Bb,0.2
town,Cc,0.07
town,Dd,0.03
disease,flu,0.8
disease,asthma,0.15
disease,diabetes,0.05
"""
RULES = "condition,value,probability\nage >= 40 and sex = 'male',diabetes,0.08\n"
METHOD = Confidence(sensitive="disease", statistics=STATISTICS, rules=RULES)


def publish(folder: Path, method: Confidence = METHOD, table: pd.DataFrame = TABLE, seed: int | None = 3) -> Release:
    account = Account(folder / "patients.ledger", SCHEMA)
    return account.publish(table, method, out=folder / "release", unsafe_seed=seed)


def test_files_hold_everything(tmp_path: Path) -> None:
    release = publish(tmp_path)
    loaded = Release.load(tmp_path / "release")
    assert_equal(loaded, release)
    loaded.save(tmp_path / "again")
    assert_equal(Release.load(tmp_path / "again"), release)
    assert min(pq.read_table(tmp_path / "release" / "records.parquet")["count"].to_pylist()) > 0


def test_counts_stand_for_the_people_and_tell_the_luck_of_the_draw(tmp_path: Path) -> None:
    release = publish(tmp_path)
    drawn = release.model.counts.counts.sum()
    everyone = release.count()
    assert everyone.value == pytest.approx(drawn / 0.9)
    assert everyone.stddev == pytest.approx((drawn * 0.1) ** 0.5 / 0.9)
    assert (everyone.noise, everyone.sampling, everyone.model) == (0, pytest.approx(everyone.stddev), 0)
    assert str(everyone) == f"{drawn / 0.9:,.0f} ± {1.959964 * everyone.stddev:,.0f} (95 %)"
    assert abs(everyone.value - ROWS) < 4 * everyone.stddev
    assert release.count("age < 23").model > 0
    males = release.count("sex = 'male' and disease = 'flu'")
    assert abs(males.value - ((TABLE.sex == "male") & (TABLE.disease == "flu")).sum()) < 6 * males.stddev
    assert release.total == round(drawn / 0.9)


def test_every_answer_is_that_of_people_spread_inside_their_groups(tmp_path: Path) -> None:
    release = publish(tmp_path)
    found, variance = 0.0, 0.0
    for box, counts in zip(release.regions.ranges, release.model.counts.counts, strict=True):
        inside = len(set(range(3, 17)) & set(range(*box[0]))) / (box[0, 1] - box[0, 0])
        inside *= len({0} & set(range(*box[2]))) / (box[2, 1] - box[2, 0])
        found += inside * counts[:2].sum() / 0.9
        variance += inside**2 * counts[:2].sum() * 0.1 / 0.81
    answer = release.count("age between 23 and 36 and town = 'Aa' and disease in ('flu', 'asthma')")
    assert (answer.value, answer.sampling) == pytest.approx((found, variance**0.5))
    asked = "select count(*) as n from release where age between 23 and 36 and town = 'Aa' and disease <> 'diabetes'"
    assert release.sql(asked)["n"].to_pylist() == pytest.approx([found])


def test_the_other_faces(tmp_path: Path) -> None:
    release = publish(tmp_path)
    records = release.records("pandas")
    assert records["count"].sum() == release.model.counts.counts.sum()
    sample = release.sample(frame="pandas", seed=1)
    assert len(sample) == release.total
    assert sample.age.between(20, 59).all()
    assert release.explain("sex = 'male'")["estimate"].to_numpy().sum() <= release.count("sex = 'male'").value + 1e-9
    assert "NO EPSILON, NO GUARANTEE (unsafe seed)" in repr(release)
    nobody = dict.fromkeys(("age", "sex", "town"), np.zeros(1, np.uint8))
    for refused in (lambda: sfumato.classify(release, TABLE), lambda: group_risk(release, nobody)):
        with pytest.raises(ReleaseError, match="groups of this release overlap"):
            refused()


def test_no_tally_takes_boxes(tmp_path: Path) -> None:
    with pytest.raises(PrivacyError, match="must be regions of a partition"):
        Tally(publish(tmp_path).regions, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "ranges"),
    [((4,), [[[0, 5]]]), ((4,), [[[2, 2]]]), ((4,), [[[-1, 2]]]), ((4, 2), [[[0, 1]]]), ((4,), [[[0, 1]], [[0, 1]]])],
)
def test_boxes_are_different_and_inside(shape: tuple[int, ...], ranges: list) -> None:
    with pytest.raises(ValueError):
        Boxes(shape, np.array(ranges))


def test_the_manifest_promises_what_holds(tmp_path: Path) -> None:
    release = publish(tmp_path, seed=None)
    plain = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert plain["promise"]["model"] == "confidence cap"
    assert plain["promise"]["statistics"]["source"] == "public"
    assert plain["promise"]["statistics"]["sensitive"] == pytest.approx([0.8, 0.15, 0.05])
    assert "caps confidence in disease" in plain["guarantee"]
    assert "NOT differentially private" in plain["guarantee"]
    assert "leak" not in plain["guarantee"]
    assert "weighs several groups together" in plain["adversary"]
    assert not {"epsilon", "neighbours", "randomness"} & plain.keys()
    assert plain["method"]["parameters"]["sampling"] == "9/10"
    assert [line["label"] for line in plain["ledger"]] == ["combinations of values"]
    assert release.manifest.secure


def test_own_statistics_are_told_as_a_leak(tmp_path: Path) -> None:
    release = publish(tmp_path, Confidence(sensitive="disease", statistics_from_data=True), seed=None)
    assert "rounded down to steps of at least 1 % and 20 records: a leak" in release.manifest.guarantee
    assert release.manifest.looks[0].label == "margins, in place of public statistics"
    assert_equal(Release.load(tmp_path / "release"), release)


def test_a_seed_repeats_the_sample_and_is_no_guarantee(tmp_path: Path) -> None:
    one, other, third = (publish(tmp_path / str(at), seed=seed) for at, seed in enumerate((3, 3, 4)))
    assert np.array_equal(one.model.counts.counts, other.model.counts.counts)
    assert one.model.counts.counts.sum() != third.model.counts.counts.sum()
    assert "NO guarantee: its sample was drawn by a known seed" in one.manifest.guarantee
    whole = publish(tmp_path / "all", Confidence(sensitive="disease", statistics=STATISTICS, sampling="1"), seed=4)
    assert whole.manifest.secure
    assert "(exact)" in str(whole.count())


def test_a_draft_that_breaks_the_promise_is_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(climb: Climb) -> None:
        climb.limit, climb.sampling = 1.0, 1e-9
        really(climb)

    really = Climb.run
    monkeypatch.setattr(Climb, "run", careless)
    with pytest.raises(PrivacyError, match="must have the promised confidence cap"):
        publish(tmp_path, table=TABLE.head(300))
    assert not (tmp_path / "release").exists()


def test_a_promise_that_the_counts_break_is_not_believed(tmp_path: Path) -> None:
    release = publish(tmp_path, seed=None)
    promise = release.manifest.promise
    assert isinstance(promise, ConfidenceCap)
    sure = ConfidenceCap(promise.quasi, promise.sensitive, Fraction(1), promise.knowledge)
    reseal(tmp_path / "release", promise=sure.plain(), guarantee=sure.guarantee, adversary=sure.adversary)
    with pytest.raises(ReleaseError, match="groups must be as its manifest promises"):
        Release.load(tmp_path / "release")
    assert not sure.kept(release.regions, release.model.counts.counts)
    assert not promise.kept(release.regions, -release.model.counts.counts)
    assert not KAnonymity(1, promise.quasi).kept(release.regions, release.model.counts.counts)


@pytest.mark.parametrize(
    "statistics", [None, {"source": "hearsay"}, {"source": "public", "marginals": [[2.0]], "sensitive": [1.0]}]
)
def test_unknown_statistics_are_no_manifest(tmp_path: Path, statistics: object) -> None:
    plain = publish(tmp_path, seed=None).manifest.promise.plain()
    reseal(tmp_path / "release", promise=plain | {"statistics": statistics})
    with pytest.raises(ReleaseError, match="must be a Sfumato manifest"):
        Release.load(tmp_path / "release")


@pytest.mark.parametrize(
    ("method", "table", "told"),
    [
        (METHOD, TABLE[TABLE.disease == "flu"], "must have two values or more in the table"),
        (METHOD, TABLE.head(0), "must have two values or more in the table"),
        (Confidence(sensitive="disease", statistics=STATISTICS, distortion=0), TABLE, "every one would be suppressed"),
    ],
)
def test_what_cannot_be_published_is_refused(
    tmp_path: Path, method: Confidence, table: pd.DataFrame, told: str
) -> None:
    with pytest.raises(MethodError, match=told):
        publish(tmp_path, method, table)
    assert not (tmp_path / "release").exists()


def test_claims_about_a_person_are_those_of_the_groups(tmp_path: Path) -> None:
    release = publish(tmp_path)
    found = claims_about(release, "age=45, sex=male, town=Dd")
    boxes, counts = release.regions.ranges, release.model.counts.counts
    leaf = np.array([25, 1, 3])
    own = ((boxes[:, :, 0] <= leaf) & (leaf < boxes[:, :, 1])).all(axis=1)
    assert (found.groups, found.records) == (own.sum(), counts[own].sum())
    shares = 0.9 * counts[own] / counts[own].sum(axis=1, keepdims=True)
    for claim in found.claims:
        value = SCHEMA.classes.index(claim.value)
        assert claim.observed == pytest.approx(shares[:, value].max())
        assert claim.observed <= claim.expected + 1e-9
        assert claim.together == pytest.approx(0.9 * counts[own][:, value].sum() / counts[own].sum())
    by_value = {claim.value: claim.public for claim in found.claims}
    assert by_value["diabetes"] == pytest.approx(0.08)
    assert sum(by_value.values()) == pytest.approx(1)
    assert claims_about(release, "").groups == release.groups


def test_the_nearest_claim_is_within_its_cap(tmp_path: Path) -> None:
    release = publish(tmp_path)
    claim = nearest_claim(release)
    assert claim.observed <= claim.expected
    risk = group_risk(release)
    assert risk.prosecutor == pytest.approx(0.9 / release.model.counts.counts.sum(axis=1).min())
    assert risk.worst_confidence <= 0.9


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ("age", "must be names and values"),
        ("age = 3 and sex = F", "separated by commas"),
        ("shoe=3", "attribute shoe is not in this release"),
        ("disease=flu", "must not tell disease"),
        ("age=99", "must lie within the declared range"),
        ("sex=m'a", "must be compared with a value"),
    ],
)
def test_records_that_are_none_are_refused(tmp_path: Path, record: str, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        claims_about(publish(tmp_path), record)


def test_more_rules_than_anyone_could_check_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    chances = {"marginals": (np.full(4, 0.25),), "sensitive": np.array([0.5, 0.5])}
    apart = tuple(Rule({0: ((leaf, leaf + 1),)}, {0: 0.5}) for leaf in range(4))
    known = Knowledge(**chances, rules=apart)
    together = known.probability(np.array([[[0, 4]], [[1, 2]], [[2, 4]]]), np.array([0, 1, 0]))
    monkeypatch.setattr(promises, "MOST_AT_ONCE", 5)
    assert known.probability(np.array([[[0, 4]], [[1, 2]], [[2, 4]]]), np.array([0, 1, 0])) == pytest.approx(together)
    for name, most in (("MOST_RULES", 3), ("MOST_RULED", 15)):
        monkeypatch.setattr(promises, name, most)
        with pytest.raises(MethodError, match="there must be at most"):
            Knowledge(**chances, rules=apart)
        monkeypatch.undo()


def test_other_releases_cap_nothing(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="must cap confidence"):
        claims_about(anonymous(Mondrian(k=5), tmp_path), "age=30")
