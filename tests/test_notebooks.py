"""What a notebook shows of a release, a schema, answers, plans and statements; and pictures of what a release says."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato import Account, DiffGen, Release, Schema, datasets, seeded_release
from sfumato.errors import QueryError

PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def release() -> Release:
    adult = datasets.adult()
    return seeded_release(adult.table, adult.schema.only(["age", "sex", "education", "income"]), DiffGen(), "1", 3)


def test_everything_shows_itself(release: Release, tmp_path: Path) -> None:
    account = Account(tmp_path / "people.ledger", release.schema)
    shown = {
        "release": (release, "NO guarantee"),
        "schema": (release.schema, "education"),
        "answers": (release.count_many(["age < 30"] * 30), "... and 10 more"),
        "estimate": (release.count("age < 30"), "between"),
        "statement": (account.statement(), "no limit"),
        "plan": (account.plan(DiffGen(), 1), "in all"),
    }
    for name, (one, word) in shown.items():
        assert word in one._repr_html_(), name


def test_names_are_text_and_no_markup() -> None:
    schema = Schema.loads("attributes: {'<b>x': {kind: categorical, taxonomy: [a, b], title: '<script>'}}")
    assert "<b>x" not in schema._repr_html_()
    assert "<script>" not in schema._repr_html_()


@pytest.mark.parametrize(
    ("names", "where"),
    [
        (["age"], ""),
        (["education"], "age < 30 or sex = 'Male'"),
        (["age", "sex"], ""),
        (["income", "sex"], "age >= 40"),
    ],
)
def test_pictures_are_drawn_and_written(release: Release, tmp_path: Path, names: list[str], where: str) -> None:
    picture = release.plot(*names, where=where)
    assert picture._repr_png_().startswith(PNG)
    picture.save(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").stat().st_size > 1000


def test_bars_are_what_counts_say(release: Release) -> None:
    bars = release.plot("sex").figure.axes[0].patches
    assert [bar.get_width() for bar in bars] == pytest.approx(
        [release.count(f"sex = {one}").value for one in ("Female", "Male")]
    )


def test_a_picture_of_nothing_is_refused(release: Release) -> None:
    with pytest.raises(QueryError, match="must be one of this release"):
        release.plot("wage")
    with pytest.raises(QueryError, match="at least 1"):
        release.plot("age", parts=0)
