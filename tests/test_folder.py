"""A release of any kind on disk: whole and unchanged as it was saved, or refused; what is read is what stands there."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from forging import (
    Place,
    edit,
    forge_rows,
    forge_structure,
    forge_table,
    forge_text,
    inside,
    places,
    replaced,
    reseal,
    structure_of,
    with_value,
)
from handmade import PEOPLE, SOME_RELEASES, assert_equal, release_of, reloaded
from kinds import BY_METHOD, EVERY_KIND, EXACT, NOISY, PAPER, RANDOM, SMALL, small_tree, ungrouped, with_paper_weights
from margins_by_hand import margins_of
from sfumato import Release, Schema, storage
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.models.margins import Margin
from sfumato.models.merged import Merged
from sfumato.release import folder as reading
from sfumato.release.folder import FIELDS, plain_draft
from sfumato.release.manifest import FORMAT

FILES = ["manifest.json", "measurements.parquet", "records.parquet", "schema.json", "structure.json"]
TREES = ["tree", PAPER, "exact tree"]
QUESTION = ("label", "of", "by_class", "rates")


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of every kind, saved once."""
    folder = tmp_path_factory.mktemp("kinds")
    for kind, make in SMALL.items():
        make().save(folder / kind)
    return folder


@pytest.fixture
def saved_kind(kind: str, originals: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(originals / kind, tmp_path / "release"))


def refused(place: Path, told: str | None = None) -> None:
    with pytest.raises(ReleaseError, match=told):
        Release.load(place)


def loaded_or_told(place: Path) -> Release | ReleaseError:
    try:
        return Release.load(place)
    except ReleaseError as error:
        return error


Forgery = Callable[[Path], object]


def each_refused(folder: Path, forgeries: Mapping[str, Forgery], told: str = "") -> None:
    """Try one forgery after the other, each on the release as it was."""
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    for name, forge in forgeries.items():
        forge(folder)
        found = loaded_or_told(folder)
        assert isinstance(found, ReleaseError), f"read in spite of {name}"
        assert told in str(found), name
        for path, content in kept.items():
            path.write_bytes(content)
    assert forgeries


# Nothing is lost.


@EVERY_KIND
def test_saving_and_loading_changes_nothing(kind: str, tmp_path: Path) -> None:
    @SOME_RELEASES
    @given(RANDOM[kind])
    def holds(release: Release) -> None:
        loaded = reloaded(release, tmp_path / "release")
        assert_equal(loaded, release)
        every = range(len(release.schema.shape))
        cells = [one.model.marginal(every, by_class=True) for one in (loaded, release)]
        assert np.array_equal(cells[0], cells[1])
        drawn = [one.sample_codes(9, seed=1) for one in (loaded, release)]
        assert all(np.array_equal(drawn[0][name], drawn[1][name]) for name in drawn[1])

    holds()


@SOME_RELEASES
@given(margins=st.fixed_dictionaries({}, optional={at: margins_of(leaves) for at, leaves in enumerate(PEOPLE.shape)}))
def test_margins_of_any_levels_come_back_as_they_were(tmp_path: Path, margins: dict[int, Margin]) -> None:
    release = release_of(margins=margins)
    assert_equal(reloaded(release, tmp_path / "release"), release)


@EVERY_KIND
def test_a_release_is_these_files(saved_kind: Path) -> None:
    assert sorted(path.name for path in saved_kind.iterdir()) == sorted([*FILES, *reading.EXPLAINING])
    assert [path.name for path in saved_kind.parent.iterdir()] == ["release"]


@EVERY_KIND
def test_a_release_that_is_saved_again_has_the_same_files(saved_kind: Path, tmp_path: Path) -> None:
    Release.load(saved_kind).save(tmp_path / "again")
    for name in [*FILES, *reading.EXPLAINING]:
        assert (tmp_path / "again" / name).read_bytes() == (saved_kind / name).read_bytes()


@EVERY_KIND
def test_files_are_no_longer_than_the_space_that_is_set_aside(saved_kind: Path, kind: str) -> None:
    release = SMALL[kind]()
    space = reading.space_for(release.draft.cells, release.schema) - (1 << 20) + 40_000
    assert sum(path.stat().st_size for path in saved_kind.iterdir()) < space


def test_noise_that_cannot_be_packed_fits_in_the_space_that_is_set_aside(tmp_path: Path) -> None:
    schema = Schema.parse({"attributes": {name: {"kind": "numeric", "lower": 0, "upper": 249} for name in "ab"}})
    noise = np.random.default_rng(1).integers(-(2**40), 2**40, 250 * 250)
    release_of(schema, tuple(tuple(range(251)) for _ in "ab"), noise).save(tmp_path / "release")
    size = sum(path.stat().st_size for path in (tmp_path / "release").iterdir())
    assert 12 * noise.size < size < reading.space_for(noise.size, schema)


@pytest.mark.parametrize("kind", NOISY)
def test_records_show_estimates_and_people(saved_kind: Path, kind: str) -> None:
    release, frame = SMALL[kind](), pd.read_parquet(saved_kind / "records.parquet")
    if hasattr(release.model, "values"):
        assert frame["noisy_count"].to_numpy() == pytest.approx(release.model.values.ravel(), abs=5e-4)
    assert frame["count"].sum() == release.total
    named = [name for name in frame.columns if not name.endswith(("_lower", "_upper"))]
    assert named == [*release.schema.predictors, "class", "noisy_count", "count"]


@pytest.mark.parametrize("kind", EXACT)
def test_exact_records_show_groups_with_people_and_no_noise(saved_kind: Path, kind: str) -> None:
    release, frame = SMALL[kind](), pd.read_parquet(saved_kind / "records.parquet")
    counts = release.model.counts.counts
    assert frame["count"].tolist() == counts[counts > 0].tolist()
    assert "noisy_count" not in frame.columns


def test_records_open_without_sfumato(saved: Path, people: Release) -> None:
    frame = pd.read_parquet(saved / "records.parquet")
    assert len(frame) == people.model.counts.counts.size
    assert frame["noisy_count"].sum() == frame["count"].sum() == people.total
    with duckdb.connect() as connection:
        (total,) = connection.execute(
            f"select sum(noisy_count) from '{saved}/records.parquet' where job = 'White-collar' and age = '[17, 38)'"
        ).fetchone()
    assert total == people.count("job = White-collar and age < 38").value


def test_records_of_a_grid_keep_negative_counts(saved: Path, people: Release) -> None:
    shown = pq.read_table(saved / "records.parquet")["noisy_count"]
    assert shown.to_pylist() == people.model.counts.counts.ravel().tolist()


@EVERY_KIND
def test_everyone_can_read_what_was_counted_and_with_which_noise(saved_kind: Path, kind: str) -> None:
    release, rows = SMALL[kind](), pd.read_parquet(saved_kind / "measurements.parquet")
    told = json.loads((saved_kind / "structure.json").read_text())["measurements"]
    assert [one["label"] for one in told] == [one.label for one in release.draft.measurements]
    for number, (said, one) in enumerate(zip(told, release.draft.measurements, strict=True)):
        own = rows[rows.measurement == number]
        counts = own.pivot(index="place", columns="class", values="count").reindex(own.place.unique())
        assert counts.to_numpy().tolist() == one.counts.tolist()
        rates = [Fraction(rate) for rate in said["rates"]] or [None]
        written = one.noisy.rates or [None]
        first = own.rate[own["class"] == 0]
        assert [rates[rate] for rate in first] == [written[rate] for rate in one.noisy.rate_of]


def test_a_part_of_a_margin_can_be_named_from_the_files_alone(tmp_path: Path) -> None:
    release_of(margins={0: np.array([5, 10, -2, 4, 1])}).save(tmp_path / "release")
    files = {name: json.loads((tmp_path / "release" / name).read_text()) for name in ("schema.json", "structure.json")}
    rows = pd.read_parquet(tmp_path / "release" / "measurements.parquet")
    kinds = {name: one["kind"] for name, one in files["schema.json"]["attributes"].items()}
    attributes = [name for name, kind in kinds.items() if kind not in ("identifier", "class")]
    ((attribute, cut),) = files["structure.json"]["measurements"][0]["of"]["cuts"].items()
    assert attributes[int(attribute)] == "job"
    leaves = re.findall(r"(?<!: )\b(Engineer|Lawyer|Dancer|Writer|Unknown)\b", json.dumps(files["schema.json"]))[:5]
    counted = dict(zip(rows["place"][rows.measurement == 0], rows["count"][rows.measurement == 0], strict=True))
    assert {"+".join(leaves[cut[at] : cut[at + 1]]): count for at, count in counted.items()} == {
        "Engineer": 5,
        "Lawyer": 10,
        "Dancer": -2,
        "Writer": 4,
        "Unknown": 1,
    }


def test_groups_without_a_histogram_are_a_grid_with_orders(tmp_path: Path) -> None:
    loaded = reloaded(ungrouped(), tmp_path / "release")
    assert_equal(loaded, ungrouped())
    assert loaded.regions.orders == ((0, 1, 4, 2, 3, 5), (0, 3, 1, 2), None)


def test_how_counts_of_a_tree_agree_is_kept(tmp_path: Path) -> None:
    published = with_paper_weights(small_tree())
    loaded = reloaded(published, tmp_path / "published")
    assert loaded.draft.model == PAPER
    assert np.array_equal(loaded.model.values, published.model.values)
    assert not np.allclose(loaded.model.values, small_tree().model.values)


def test_a_seeded_release_says_that_it_promises_nothing(tmp_path: Path) -> None:
    loaded = reloaded(release_of(secure=False), tmp_path / "release")
    assert "NO guarantee" in loaded.manifest.guarantee
    assert "NO GUARANTEE" in repr(loaded)
    assert json.loads((tmp_path / "release/manifest.json").read_text())["randomness"] == "unsafe seed"


# Files that are not as they were.


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", ["append", "empty", "flip", "remove", "folder"])
def test_a_file_that_was_changed_is_refused(saved: Path, name: str, change: str) -> None:
    path = saved / name
    content = bytearray(path.read_bytes())
    path.unlink()
    if change == "append":
        path.write_bytes(content + b"x")
    elif change == "empty":
        path.write_bytes(b"")
    elif change == "flip":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif change == "folder":
        path.mkdir()
    refused(saved)


@EVERY_KIND
def test_a_changed_byte_is_told_with_its_file(saved_kind: Path) -> None:
    for name in FILES[1:]:
        content = (saved_kind / name).read_bytes()
        (saved_kind / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        refused(saved_kind, f"{name} must be as it was published, and was changed")
        (saved_kind / name).write_bytes(content)


@EVERY_KIND
def test_a_file_that_is_missing_is_refused_even_if_the_manifest_does_not_know_it(saved_kind: Path) -> None:
    for name in FILES[1:]:
        content = (saved_kind / name).read_bytes()
        (saved_kind / name).unlink()
        refused(saved_kind)
        reseal(saved_kind)
        refused(saved_kind, "exactly the files")
        (saved_kind / name).write_bytes(content)


def test_a_file_too_many_is_refused(saved: Path) -> None:
    (saved / "geometry.json").write_text("{}")
    reseal(saved)
    refused(saved, "exactly the files")


def test_what_is_no_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "absent", tmp_path / "file", ""):
        refused(place)


# Manifests.


def test_a_manifest_written_otherwise_but_saying_the_same_is_fine(saved: Path, people: Release) -> None:
    edit(saved)
    assert_equal(Release.load(saved), people)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": "1/100"},
        {"guarantee": "This release is perfectly safe."},
        {"randomness": "unsafe seed"},
        {"neighbours": "tables that are equal"},
        {"ledger": []},
        {"files": {}},
        {"steps": ["another"]},
        {"extra": 1},
        {"digest": "0" * 64},
        {"schema_digest": "0" * 64},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_an_edited_manifest_is_refused(saved: Path, changes: dict) -> None:
    edit(saved, **changes)
    refused(saved, "was edited")


@pytest.mark.parametrize(
    "changes",
    [{"epsilon": "1/100"}, {"guarantee": "Perfectly safe."}, {"extra": 1}, {"format": 1.0}, {"format": True}],
    ids=str,
)
def test_a_promise_that_its_debits_do_not_back_is_refused_even_if_resealed(saved: Path, changes: dict) -> None:
    reseal(saved, **changes)
    refused(saved, r"manifest.json must")


@pytest.mark.parametrize("cells", [96.0, True, "96", None, [96]])
def test_a_debit_says_its_cells_in_a_whole_number(saved: Path, cells: object) -> None:
    (debit,) = json.loads((saved / "manifest.json").read_text())["ledger"]
    reseal(saved, ledger=[debit | {"cells": cells}])
    refused(saved, r"manifest.json must")


def test_debits_that_nobody_can_add_up_are_refused(saved: Path) -> None:
    (debit,) = json.loads((saved / "manifest.json").read_text())["ledger"]
    reseal(saved, ledger=[debit | {"epsilon": f"1/{10**18 + 2 * number + 1}"} for number in range(5000)])
    refused(saved, "must be a Sfumato manifest")


def test_a_manifest_that_leaves_a_file_unsealed_is_refused(saved: Path) -> None:
    reseal(saved, files={})
    refused(saved)


def test_a_newer_release_is_refused_as_such(saved: Path) -> None:
    edit(saved, format=FORMAT + 1)
    refused(saved, "Upgrade Sfumato")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FUZZ = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@FUZZ
@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
@example(b'{"format": Infinity}')
@example(b'{"format": 1e400}')
@example(b"\xff")
@example(b"[" * 100_000)
def test_any_bytes_as_a_manifest_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    refused(tmp_path)


@FUZZ
@given(
    st.sampled_from(["format", "sfumato", "publication", "method", "ledger", "randomness", "steps", "files"]),
    JSON,
)
@example("ledger", [{"label": "x", "mechanism": "x", "epsilon": "1/0", "sensitivity": "1", "cells": 1}])
@example("ledger", [{"label": "x", "mechanism": "x", "epsilon": "1", "sensitivity": "1", "cells": math.inf}])
def test_any_value_in_a_manifest_is_refused_unless_it_says_the_same(saved: Path, field: str, value: object) -> None:
    kept = (saved / "manifest.json").read_text()
    assume(json.loads(kept)[field] != value and value not in (True, 1.0))
    try:
        edit(saved, **{field: value})
        refused(saved)
    finally:
        (saved / "manifest.json").write_text(kept)


@FUZZ
@given(st.sampled_from(["", "model", "structure", "measurements"]), JSON, st.sampled_from(["structure", "schema"]))
@example("", {"attributes": {"a": {"kind": "identifier"}}}, "schema")
@example("", {"attributes": {}}, "schema")
@example("structure", {"kind": "grid", "cuts": {"0": [0, math.inf]}}, "structure")
def test_any_forged_content_is_read_or_refused(saved: Path, field: str, value: object, name: str) -> None:
    kept = {one: (saved / one).read_bytes() for one in (f"{name}.json", "manifest.json")}
    try:
        forged = json.loads(kept[f"{name}.json"]) | {field: value} if field and name == "structure" else value
        forge_text(saved, f"{name}.json", json.dumps(forged))
        with contextlib.suppress(SfumatoError):
            Release.load(saved).count("age < 30")
    finally:
        for one, content in kept.items():
            (saved / one).write_bytes(content)


# What a person reads one way and a program another.


@EVERY_KIND
@pytest.mark.parametrize("name", ["schema.json", "structure.json", "manifest.json"])
def test_a_name_that_stands_twice_is_refused_at_any_depth(saved_kind: Path, name: str) -> None:
    text, kept = (saved_kind / name).read_text(), (saved_kind / "manifest.json").read_text()
    names = list(re.finditer(r'(?<=[{,])\s*("[^"]*"):', text))[:40]
    assert names
    for match in names:
        (saved_kind / name).write_text(f'{text[: match.start()]}{match[1]}:"x",{text[match.start() :]}')
        if name != "manifest.json":
            reseal(saved_kind)
        refused(saved_kind)
        (saved_kind / "manifest.json").write_text(kept)


SCHEMAS: dict[str, Callable[[Any], object]] = {
    "a comment": lambda plain: plain.update(comment="all is well"),
    "a text for a number": lambda plain: plain["attributes"]["a"].update(upper="5"),
    "a float for a number": lambda plain: plain["attributes"]["a"].update(upper=5.0),
    "a number for a truth": lambda plain: plain.update(confirmed=0),
    "another order": lambda plain: plain.update(attributes=dict(reversed(plain["attributes"].items()))),
    "another order of values": lambda plain: plain["attributes"]["b"]["taxonomy"].reverse(),
    "another name": lambda plain: plain.update(name="others"),
    "no attributes": lambda plain: plain.update(attributes={}),
    "no class": lambda plain: plain["attributes"].pop("class"),
}


@EVERY_KIND
def test_a_schema_that_is_not_the_manifests_is_refused(saved_kind: Path) -> None:
    text = (saved_kind / "schema.json").read_text()
    for change in SCHEMAS.values():
        plain = json.loads(text)
        change(plain)
        forge_text(saved_kind, "schema.json", json.dumps(plain))
        with pytest.raises(SfumatoError):
            Release.load(saved_kind)
    forge_text(saved_kind, "schema.json", json.dumps(json.loads(text), indent=3))
    Release.load(saved_kind)


def test_attributes_that_change_places_are_refused(tmp_path: Path) -> None:
    """Files speak of attributes by number, so another order is another schema, if they are as long as each other."""
    schema = Schema.parse({"attributes": {name: {"kind": "numeric", "lower": 0, "upper": 3} for name in "ab"}})
    release_of(schema, ((0, 2, 4), (0, 4))).save(tmp_path / "release")
    plain = json.loads((tmp_path / "release" / "schema.json").read_text())
    plain["attributes"] = dict(reversed(plain["attributes"].items()))
    forge_text(tmp_path / "release", "schema.json", json.dumps(plain))
    refused(tmp_path / "release", "schema must fit its manifest")


def read_as_it_stands(folder: Path) -> bool:
    """Refuse a forged release, or find in what was read all that stands there, and no more; its faces answer."""
    try:
        release = Release.load(folder)
    except SfumatoError:
        return False
    assert json.dumps(plain_draft(release.draft)) == json.dumps(structure_of(folder))
    rows = pq.read_table(folder / "measurements.parquet")
    reading._write_measurements(folder.parent / "said.parquet", release.draft)
    assert pq.read_table(folder.parent / "said.parquet").equals(rows)
    release.count("a < 3")
    release.records()
    release.describe()
    release.explain("b = p")
    assert release.model.marginal([1], by_class=False).shape == (4, 1)
    with contextlib.suppress(ReleaseError):
        release.sample_codes(5, seed=1)
    return True


OTHERS = (None, True, -1, 1, 2.0, 10**30, math.nan, "", "1", [], [0], {})
FORMS = pytest.mark.parametrize("kind", [kind for kind in SMALL if kind != PAPER])
"""Every kind of file: how the nodes of a tree agree is one word in it."""


@FORMS
def test_any_value_of_the_structure_is_refused_or_read_as_it_stands(saved_kind: Path) -> None:
    plain = structure_of(saved_kind)
    read = tried = 0
    for place in places(plain):
        kept, short = inside(plain, place), len(place) <= 3
        for value in OTHERS if short else (True, kept + 1 if type(kept) is int else -1, 2.0, 10**30, "1", None, [0]):
            if value != kept or type(value) is not type(kept):
                forge_text(saved_kind, "structure.json", json.dumps(replaced(plain, place, value)))
                read += read_as_it_stands(saved_kind)
                tried += 1
    assert tried > 100
    assert read < tried / 5


@FORMS
def test_a_structure_with_more_or_less_than_it_needs_is_refused_or_read_as_it_stands(saved_kind: Path) -> None:
    plain = structure_of(saved_kind)
    for place in ((), *places(plain)):
        copy = json.loads(json.dumps(plain))
        held = inside(copy, place)
        if isinstance(held, dict):
            held["more"] = 1
            forge_text(saved_kind, "structure.json", json.dumps(copy))
            refused(saved_kind)
        elif isinstance(held, list) and held:
            for one in (held[1:], held[:-1], [*held, held[-1]], held[::-1], [held]):
                if one != held:
                    forge_text(saved_kind, "structure.json", json.dumps(replaced(plain, place, one)))
                    read_as_it_stands(saved_kind)
        if place:
            del inside(copy := json.loads(json.dumps(plain)), place[:-1])[place[-1]]
            forge_text(saved_kind, "structure.json", json.dumps(copy))
            read_as_it_stands(saved_kind)


@FORMS
def test_any_value_of_the_measurements_is_refused_or_read_as_it_stands(saved_kind: Path) -> None:
    table = pq.read_table(saved_kind / "measurements.parquet")
    rows = {0, 1, len(table) // 2, len(table) - 1}
    for name in FIELDS.names:
        for row in rows:
            kept = table[name][row].as_py()
            for value in {kept - 1, kept + 1, 0, 2**61, -(2**63)} - {kept}:
                forge_rows(saved_kind, lambda _: with_value(table, name, row, value))  # noqa: B023
                read_as_it_stands(saved_kind)


# Structures that are none.


def put(place: Place, value: object) -> Forgery:
    return lambda folder: forge_structure(folder, lambda plain: inside(plain, place[:-1]).__setitem__(place[-1], value))


def take(*place: Any) -> Forgery:
    return lambda folder: forge_structure(folder, lambda plain: inside(plain, place[:-1]).pop(place[-1]))


def named(forgeries: Mapping[Place, Sequence[object]]) -> dict[str, Forgery]:
    """Put each of these values into its place."""
    return {f"{value!r:.60} as {place}": put(place, value) for place, values in forgeries.items() for value in values}


ABSENT = ("model", "structure", "measurements", "structure.kind", *(f"measurements.-1.{name}" for name in QUESTION))
FORGED_ANYWHERE = named(
    {
        ("model",): ("wish", ["tree"], None, 1),
        ("structure", "kind"): ("cloud", ["tree"], None, 1),
        ("structure",): ([], {}, None, "tree"),
        ("measurements",): ([], {}, None, 5, "x", [1], [[]], [{}]),
        ("measurements", -1, "of"): ("other", None, [], 1, {}, {"cuts": {"0": [0, 3, 6]}}, {"cuts": {}}, {"cuts": []}),
        ("measurements", -1, "by_class"): (False, 1, 0, "yes", None),
        ("measurements", -1, "label"): (None, 5, ["x"], True),
    }
)
MODELS_FORGED: Mapping[str, Sequence[str]] = {
    "grid": ("coclusters", "tree", PAPER, "exact tree", "boxes"),
    "coclusters": ("grid", "tree", PAPER, "exact tree", "boxes"),
    "tree": ("grid", "coclusters", "exact tree", "boxes"),
    PAPER: ("grid", "coclusters", "exact tree", "boxes"),
    "exact tree": ("grid", "coclusters", "tree", PAPER, "boxes"),
    "boxes": ("grid", "coclusters", "tree", PAPER, "exact tree"),
}
CUT, ORDER = ("structure", "cuts", "0"), ("structure", "orders", "1")
BAD_CUTS = ([0, 2, 7], [0, 2, 5], [0, 2, 2, 6], [0, 4, 2, 6], [2, 6], [], [0], [0, 6], [0, 2.0, 6], [False, 2, 6])
BAD_NUMBERS = ([0, 2**64 + 2, 6], [0, 2**70, 6], [0, math.inf], [0, math.nan, 6], [0, "2", 6], [[0, 2, 6]], "026", 7)
TREE_FORGED = named(
    {
        ("structure", "parent", 0): (-1, 1),
        ("structure", "parent", 2): (0, 1, 4),
        ("structure", "parent", 3): (99, 2**40, 2.0, True, None),
        ("structure", "parent"): ([[0, 0], [2, 2]], [0, 0, 2], [0, 0, 2, 2, 2], [0, 0, 2, 2, 0], {}, "0022"),
        ("structure", "attribute", 3): (0, 2, 7, 1.0, True),
        ("structure", "attribute", 0): (-1, False),
        ("structure", "high", 1): (5, 7, 2**33 + 6, 6.0, 2**64 + 6),
        ("structure", "low", 0): (1, -1, 2**32, False),
        ("structure", "low", 1): (1, 3),
        ("structure", "kind"): ("grid", "boxes"),
    }
)
FORGED: Mapping[str, Mapping[str, Forgery]] = {
    "grid": named(
        {
            CUT: (*BAD_CUTS, *BAD_NUMBERS),
            **{("structure", "cuts", at): ([0, 1],) for at in ("3", "-1", "00", " 0", "0_0", "+0", "a", "")},
            ("structure", "cuts", "2"): ([0, 3], [0, 1, 3]),
            ("structure", "cuts"): ({}, [], None),
            ("structure", "orders"): ({}, {"1": None}, []),
            ("structure", "kind"): ("tree", "boxes"),
        }
    ),
    "coclusters": named(
        {
            ORDER: ([0, 1, 1, 2], [0, 1, 2], [0, 1, 2, 4], [3, 2, 1, "one"], [3, 2, True, 0], 7, None),
            ("structure", "orders", "2"): ([0, 1, 2, 3], [0, 1]),
            ("structure", "orders", "5"): ([0],),
            ("structure", "orders"): ([1], None, {}),
            ("structure", "cuts", "1"): ([0, 4], [0, 2, 5]),
            ("structure", "kind"): ("tree", "boxes"),
            ("measurements", 0, "of"): ({"cuts": {}}, "structure"),
        }
    ),
    "tree": TREE_FORGED,
    PAPER: TREE_FORGED,
    "exact tree": TREE_FORGED,
    "boxes": named(
        {
            ("structure", "sampling"): (
                "0",
                "-1/2",
                "11/10",
                "1/0",
                "x",
                None,
                0.9,
                "0.9",
                "18/20",
                "1/2",
                "1",
                [],
                True,
            ),
            ("structure", "ranges", "high 0"): ([7, 6, 4], [0, 6, 4], [2, 6], [2, 6, 4, 4], [2, 6, 4.0], [6, 6, 2**70]),
            ("structure", "ranges", "low 0"): ([-1, 0, 1], [False, 0, 1], [[0], [0], [1]], None),
            ("structure", "ranges", "low 3"): ([0, 0, 0],),
            ("structure", "ranges"): ({}, [], None),
            ("structure", "kind"): ("tree", "grid"),
        }
    )
    | {"boxes that are there twice": lambda folder: forge_structure(folder, _all_boxes_alike)},
}


def _all_boxes_alike(plain: Any) -> None:
    plain["structure"]["ranges"] = {end: [values[0]] * 3 for end, values in plain["structure"]["ranges"].items()}


@EVERY_KIND
def test_a_forged_structure_is_refused(saved_kind: Path, kind: str) -> None:
    absent = {f"no {name}": take(*(int(one) if one == "-1" else one for one in name.split("."))) for name in ABSENT}
    own = {f"no {name}": take("structure", name) for name in structure_of(saved_kind)["structure"] if name != "orders"}
    models = named({("model",): MODELS_FORGED.get(kind, ("exact tree", "boxes"))})
    anywhere = {name: one for name, one in FORGED_ANYWHERE.items() if kind not in BY_METHOD or "by_class" not in name}
    each_refused(saved_kind, {**anywhere, **absent, **own, **models, **FORGED.get(kind, {})})


BY_HAND = [kind for kind in NOISY if kind not in (*BY_METHOD, "network", "merged grid")]
"""Kinds whose small release has margins first and regions last, all of rate 1/2."""
RATES = ([], ["0"], ["-1"], ["1/0"], ["x"], [None], [0.5], [True], [[]], 5, None, "1/2", {"0": "1/2"}, ["1e999999999"])
WRITTEN_OTHERWISE = (["0.5"], [" 1/2"], ["2/4"], ["5e-1"], ["+1/2"], ["1/2", "1/0"])
ENDLESS = [f"1/{10**18 + 2 * number + 1}" for number in range(200)]


@pytest.mark.parametrize("kind", BY_HAND)
def test_forged_rates_are_refused(saved_kind: Path) -> None:
    measured = structure_of(saved_kind)["measurements"]
    assert measured[-1]["rates"] == ["1/2"]
    for number in range(len(measured)):
        rates = ("measurements", number, "rates")
        each_refused(saved_kind, named({rates: RATES}))
    each_refused(saved_kind, named({rates: WRITTEN_OTHERWISE}))
    each_refused(saved_kind, {"rates that nobody can add up": put(rates, ENDLESS)}, "must be positive fractions")


@pytest.mark.parametrize("kind", BY_HAND)
def test_margins_and_histograms_have_the_same_noise_throughout(saved_kind: Path, kind: str) -> None:
    forge_structure(saved_kind, lambda plain: plain["measurements"][0].update(rates=["1/3", "1/2"]))
    refused(saved_kind, "must be used, and no region knows of it")
    first = structure_of(saved_kind)["measurements"][0]["label"]
    assert first == "histogram" if kind == "coclusters" else first.startswith("margin")


@EVERY_KIND
def test_two_measurements_with_one_label_are_refused(saved_kind: Path) -> None:
    twice(saved_kind, 0, None)
    refused(saved_kind, "labels of their own")


def twice(folder: Path, number: int, label: str | None = "again") -> None:
    """Let a measurement, the rows and all, be there once more."""
    plain, table = structure_of(folder), pq.read_table(folder / "measurements.parquet").to_pandas()
    own = table[table.measurement == number]
    table.loc[table.measurement > number, "measurement"] += 1
    at = table.index[table.measurement > number].min() if (table.measurement > number).any() else len(table)
    both = pd.concat([table[:at], own.assign(measurement=number + 1), table[at:]])
    again = plain["measurements"][number] | ({} if label is None else {"label": label})
    plain["measurements"].insert(number + 1, again)
    (folder / "structure.json").write_text(json.dumps(plain))
    forge_rows(folder, lambda _: pa.Table.from_pandas(both, preserve_index=False))


@pytest.mark.parametrize("kind", ["grid", "tree", PAPER])
def test_a_margin_that_is_there_twice_is_refused(saved_kind: Path) -> None:
    twice(saved_kind, 0)
    refused(saved_kind, "margins must become finer")


@EVERY_KIND
def test_a_measurement_without_counts_is_refused(saved_kind: Path) -> None:
    last = structure_of(saved_kind)["measurements"][-1]
    forge_structure(saved_kind, lambda plain: plain["measurements"].append(last | {"label": "empty"}))
    refused(saved_kind, "must be those of its measurements")


@pytest.mark.parametrize("kind", EXACT)
def test_exact_counts_that_are_there_twice_are_refused(saved_kind: Path) -> None:
    twice(saved_kind, 0)
    refused(saved_kind, "must have counts of all of its regions")


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_margin_that_lost_a_level_is_one_of_leaves_or_of_bins(tmp_path: Path, number: int) -> None:
    SMALL["grid"]().save(tmp_path / "release")
    labels = [one["label"] for one in structure_of(tmp_path / "release")["measurements"]]
    assert labels[:2] == ["margin 0 at depth 1", "margin 0 at depth 3"]
    forge_structure(tmp_path / "release", lambda plain: plain["measurements"].pop(number))
    forge_rows(
        tmp_path / "release",
        lambda table: pa.Table.from_pylist(
            [
                row | {"measurement": row["measurement"] - (row["measurement"] > number)}
                for row in table.to_pylist()
                if row["measurement"] != number
            ]
        ),
    )
    release = Release.load(tmp_path / "release")
    assert len(release.draft.measurements) == 3
    assert isinstance(release.model.margins[0], Merged) == (number == 1)


@pytest.mark.parametrize("cut", [[0, 2, 6], [0, 1, 2, 3, 4, 6], [0, 1, 3, 6], [0, 6]])
def test_a_margin_of_other_parts_is_refused(tmp_path: Path, cut: list[int]) -> None:
    SMALL["grid"]().save(tmp_path / "release")
    put(("measurements", 0, "of"), {"cuts": {"0": cut}})(tmp_path / "release")
    refused(tmp_path / "release")


def test_a_measurement_that_no_model_uses_is_refused(tmp_path: Path) -> None:
    SMALL["grid"]().save(tmp_path / "release")
    plain, table = structure_of(tmp_path / "release"), pq.read_table(tmp_path / "release" / "measurements.parquet")
    own = {"label": "pair", "of": {"cuts": {"0": [0, 3, 6], "2": [0, 1, 3]}}, "by_class": False, "rates": ["1/2"]}
    rows = [{"measurement": 4, "place": at, "class": 0, "count": 1, "rate": 0} for at in range(4)]
    plain["measurements"].append(own)
    (tmp_path / "release" / "structure.json").write_text(json.dumps(plain))
    forge_rows(tmp_path / "release", lambda _: pa.Table.from_pylist([*table.to_pylist(), *rows]))
    refused(tmp_path / "release", r"what was measured \(pair\) must be used.* Get the release again")


def test_another_order_is_another_release(tmp_path: Path) -> None:
    """What is no contradiction cannot be told from the truth: the digest is no signature."""
    SMALL["coclusters"]().save(tmp_path / "release")
    put(ORDER, [1, 2, 0, 3])(tmp_path / "release")
    assert Release.load(tmp_path / "release").regions.orders[1] == (1, 2, 0, 3)


# Counts that are none.


def rows_where(table: pa.Table, keep: Callable[[dict[str, int]], bool]) -> pa.Table:
    return pa.Table.from_pylist([row for row in table.to_pylist() if keep(row)], schema=table.schema)


ROWS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "the first gone": lambda table: table.slice(1),
    "the last gone": lambda table: table.slice(0, len(table) - 1),
    "one in between gone": lambda table: pa.concat_tables([table.slice(0, 3), table.slice(4)]),
    "the first twice": lambda table: pa.concat_tables([table.slice(0, 1), table]),
    "the last twice": lambda table: pa.concat_tables([table, table.slice(len(table) - 1)]),
    "all twice": lambda table: pa.concat_tables([table, table]),
    "none": lambda table: table.slice(0, 0),
    "in another order": lambda table: table.take(list(range(len(table)))[::-1]),
    "classes changed about": lambda table: table.take([1, 0, *range(2, len(table))]),
    "a whole measurement gone": lambda table: rows_where(table, lambda row: row["measurement"] != 0),
    "a measurement too many": lambda table: pa.concat_tables(
        [table, pa.table([[99], [0], [0], [1], [0]], schema=table.schema)]
    ),
    "a class gone": lambda table: rows_where(table, lambda row: row["class"] != 1),
}


def with_rows(change: Callable[[pa.Table], pa.Table]) -> Forgery:
    return lambda folder: forge_rows(folder, change)


@EVERY_KIND
def test_rows_that_are_not_those_of_the_measurements_are_refused(saved_kind: Path) -> None:
    each_refused(saved_kind, {f"rows: {name}": with_rows(change) for name, change in ROWS.items()})


NUMBERS = {
    "measurement": (-1, 1, 99, 2**40),
    "place": (-1, 99, 2**40),
    "class": (-1, 1, 2, 2**40),
    "rate": (-1, 1, 9, 2**40),
    "count": (-(2**63), 2**62),
}


@EVERY_KIND
def test_forged_numbers_are_refused(saved_kind: Path) -> None:
    forgeries = {
        f"{name} {value}": with_rows(lambda table, name=name, value=value: with_value(table, name, 0, value))
        for name, values in NUMBERS.items()
        for value in values
    }
    each_refused(saved_kind, forgeries)


@pytest.mark.parametrize("kind", EXACT)
def test_exact_counts_are_of_people(saved_kind: Path, kind: str) -> None:
    """A negative one, groups below k, or groups of nobody where each holds someone, are not as promised."""
    table = pq.read_table(saved_kind / "measurements.parquet")
    changes = [{0: -1}, {0: 1, 1: 1}] if kind == "exact tree" else [{0: -1}, {0: 0, 1: 0}]
    for change in changes:
        forged = table
        for row, value in change.items():
            forged = with_value(forged, "count", row, value)
        forge_rows(saved_kind, lambda _: forged)  # noqa: B023
        refused(saved_kind)


@pytest.mark.parametrize("kind", ["tree", PAPER])
def test_counts_of_nodes_that_are_not_the_trees_are_refused(saved_kind: Path) -> None:
    """Rows are: six leaves of a margin, then nodes 2, 0, 3 and 1, 3, 4 by two classes."""
    table = pq.read_table(saved_kind / "measurements.parquet")
    assert table["place"].to_pylist()[6:] == [2, 2, 0, 0, 3, 3, 1, 1, 3, 3, 4, 4]
    for first, node in ((6, 5), (6, -1), (6, 3), (6, 0), (12, 2), (12, 3)):
        forge_rows(saved_kind, lambda _: with_value(with_value(table, "place", first, node), "place", first + 1, node))  # noqa: B023
        refused(saved_kind)
    forge_rows(saved_kind, lambda _: with_value(with_value(table, "place", 6, 1), "place", 7, 1))
    assert read_as_it_stands(saved_kind)


def test_exact_counts_of_ends_in_another_order_are_refused(tmp_path: Path) -> None:
    SMALL["exact tree"]().save(tmp_path / "release")
    forge_rows(tmp_path / "release", lambda table: table.take([2, 3, 0, 1, 4, 5]))
    refused(tmp_path / "release", "must have counts of all of its regions")


COLUMNS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "floats": lambda table: table.cast(pa.schema([(name, pa.float64()) for name in table.column_names])),
    "texts": lambda table: table.cast(pa.schema([(name, pa.string()) for name in table.column_names])),
    "small": lambda table: table.cast(pa.schema([pa.field(name, pa.int32(), False) for name in table.column_names])),
    "nulls": lambda table: pa.table({name: pa.nulls(len(table), pa.int64()) for name in table.column_names}),
    "gaps": lambda table: table.cast(pa.schema([(name, pa.int64()) for name in table.column_names])),
    "lists": lambda table: table.set_column(3, "count", pa.array([[1]] * len(table))),
    "structs": lambda table: table.set_column(3, "count", pa.array([{"a": 1}] * len(table))),
    "dictionaries": lambda table: table.set_column(3, "count", table["count"].dictionary_encode()),
    "another name": lambda table: table.rename_columns(["measured", *table.column_names[1:]]),
    "another order": lambda table: table.select(table.column_names[::-1]),
    "one gone": lambda table: table.drop_columns(["rate"]),
    "one more": lambda table: table.append_column("truth", table["count"]),
    "one twice": lambda table: table.append_column(table.schema.field("count"), table["count"]),
    "other": lambda _: pa.table({"other": [1]}),
}


@EVERY_KIND
def test_columns_that_are_not_those_of_counts_are_refused(saved_kind: Path) -> None:
    table = pq.read_table(saved_kind / "measurements.parquet")
    forgeries = {name: partial(forge_table, table=change(table)) for name, change in COLUMNS.items()}
    each_refused(saved_kind, forgeries)


@pytest.mark.parametrize("codec", ["gzip", "brotli", "zstd", "lz4"])
def test_what_is_packed_otherwise_is_refused(saved: Path, codec: str) -> None:
    forge_table(saved, pq.read_table(saved / "measurements.parquet"), compression=codec)
    refused(saved, "must be packed as Sfumato packs it")


def test_rows_are_read_whatever_groups_they_are_in(saved: Path, people: Release) -> None:
    table = pq.read_table(saved / "measurements.parquet")
    for how in ({"row_group_size": 7}, {"compression": "none"}, {"use_dictionary": True, "data_page_size": 1}):
        forge_table(saved, table, **how)
        assert_equal(Release.load(saved), people)


def test_counts_as_large_as_may_be_are_read_and_answered(tmp_path: Path) -> None:
    for kind in SMALL:
        for sign in (1, -1) if kind in NOISY else (1,):
            SMALL[kind]().save(tmp_path / "release")
            table = pq.read_table(tmp_path / "release" / "measurements.parquet")
            large = [sign * (2**61 // len(table))] * len(table)
            table = table.set_column(3, "count", pa.array(large))
            forge_rows(tmp_path / "release", lambda _: table)  # noqa: B023
            assert read_as_it_stands(tmp_path / "release"), kind
            shutil.rmtree(tmp_path / "release")


# Noise and promises that contradict each other.


@pytest.mark.parametrize("kind", EXACT)
def test_noisy_counts_do_not_pass_for_exact_ones(saved_kind: Path) -> None:
    put(("measurements", 0, "rates"), ["1/2"])(saved_kind)
    refused(saved_kind, "must have the noise that its manifest tells of")


@pytest.mark.parametrize("kind", NOISY)
def test_exact_counts_do_not_pass_for_noisy_ones(saved_kind: Path, kind: str) -> None:
    measured = range(len(structure_of(saved_kind)["measurements"]))
    exact = {f"no noise in {number}": put(("measurements", number, "rates"), []) for number in measured}
    each_refused(saved_kind, exact, "" if kind in BY_METHOD else "must have the noise that its manifest tells of")


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("manifest", NOISY)
def test_exact_counts_under_an_epsilon_are_refused(saved_kind: Path, manifest: str, originals: Path) -> None:
    shutil.copy(originals / manifest / "manifest.json", saved_kind)
    reseal(saved_kind)
    refused(saved_kind, "must have the noise that its manifest tells of")


@pytest.mark.parametrize("kind", NOISY)
@pytest.mark.parametrize("manifest", EXACT)
def test_noisy_counts_under_a_promise_are_refused(saved_kind: Path, manifest: str, originals: Path) -> None:
    shutil.copy(originals / manifest / "manifest.json", saved_kind)
    reseal(saved_kind)
    refused(saved_kind, "must have the noise that its manifest tells of")


# Few bytes that stand for much.


def test_a_table_that_its_file_cannot_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"x": [0] * 100_000})
    pq.write_table(table, tmp_path / "x.parquet", compression="snappy")
    assert reading.read_table(tmp_path / "x.parquet", table.schema).num_rows == 100_000
    assert sum(map(len, reading.read_batches(tmp_path / "x.parquet", table.schema))) == 100_000
    monkeypatch.setattr(reading, "MOST_VALUES", 10)
    monkeypatch.setattr(reading, "VALUES_PER_BYTE", 10)
    with pytest.raises(ReleaseError, match="more values than its size can hold"):
        reading.read_table(tmp_path / "x.parquet", table.schema)


@pytest.mark.parametrize("kind", TREES)
def test_nodes_that_its_file_cannot_hold_are_refused(saved_kind: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "VALUES_PER_BYTE", 0)
    for most, told in ((12, ""), (11, "structure.json must not have more values than its size can hold")):
        monkeypatch.setattr(reading, "MOST_VALUES", most)
        refused(saved_kind, told or "measurements.parquet must not have more values")


def test_more_measurements_than_anyone_makes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SMALL["grid"]().save(tmp_path / "release")
    monkeypatch.setattr(reading, "MOST_VALUES", 11)
    refused(tmp_path / "release", "structure.json must not have more values than its size can hold")


def test_counts_that_are_all_the_same_are_not_taken_for_forged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_VALUES", 0)
    schema = Schema.parse({"attributes": {name: {"kind": "numeric", "lower": 0, "upper": 399} for name in "ab"}})
    release = release_of(schema, tuple(tuple(range(401)) for _ in "ab"), np.zeros(400**2, np.int64))
    reading._write_measurements(tmp_path / "zeros.parquet", release.draft)
    assert len(reading._read_counts(tmp_path / "zeros.parquet")["count"]) == 400**2


# Writing.


def test_an_existing_destination_is_refused_and_untouched(people: Release, tmp_path: Path) -> None:
    for name in ("file", "folder", "link"):
        place = tmp_path / name
        if name == "file":
            place.write_text("mine")
        elif name == "folder":
            place.mkdir()
        else:
            place.symlink_to(tmp_path / "nowhere")
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(ReleaseError, match="must not exist yet"):
            people.save(place)
        assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "file").read_text() == "mine"


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["fallocate", "records", "measurements", "text", "sync", "rename"])
def test_a_failed_write_leaves_nothing_behind(people: Release, tmp_path, monkeypatch, step: str) -> None:
    place, name = {
        "fallocate": (os, "posix_fallocate"),
        "records": (pq.ParquetWriter, "write_batch"),
        "measurements": (pq, "write_table"),
        "text": (Path, "write_text"),
        "sync": (os, "fsync"),
        "rename": (Path, "rename"),
    }[step]
    monkeypatch.setattr(place, name, full)
    with pytest.raises(ReleaseError, match="no space left"):
        people.save(tmp_path / "release")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_a_refused_release_leaves_no_parent_folders(people: Release, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(ReleaseError):
        people.save(tmp_path / "a" / "b" / "release")
    assert list(tmp_path.iterdir()) == []


def test_space_that_was_set_aside_is_not_part_of_the_release(tmp_path: Path) -> None:
    with storage.staged_folder(tmp_path / "release", 1000) as staging:
        assert (staging / storage.RESERVE).stat().st_size == 1000
        (staging / "file").write_text("x")
    assert [path.name for path in (tmp_path / "release").iterdir()] == ["file"]


def test_a_staged_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with contextlib.suppress(ZeroDivisionError), storage.staged_file(tmp_path / "out") as staging:
        staging.write_text("half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with storage.staged_file(tmp_path / "out") as staging:
        staging.write_text("whole")
    assert (tmp_path / "out").read_text() == "whole"
