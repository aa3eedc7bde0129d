"""A release that was tampered with, anywhere and by any means we thought of, is named as such; a good one is not."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato
from command_line import run
from contracts import EVERY_KIND, examples, publish
from forging import forge_structure, forge_table, inside, places, replaced, reseal
from kinds import SMALL
from sfumato import METHODS, WITHOUT_EPSILON, Account, DiffGen, Laplace, Schema
from sfumato.cli.show import REFUSED
from sfumato.errors import ReleaseError
from sfumato.methods.method import Method, Parameters
from sfumato.privacy.ledger import Ledger
from sfumato.release.verify import Verification
from test_account import SCHEMA
from test_account import TABLE as FEW

TABLE = pd.concat([FEW] * 50)
PEOPLE = Schema.loads(SCHEMA.replace("budget: 2\n", ""))
METHOD_OF = {one.model: one for one in reversed([*examples(METHODS), *examples(WITHOUT_EPSILON)])}
"""The first method of each kind of release."""
KINDS = pytest.mark.parametrize("name", METHOD_OF)
GRID = "grid"


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("originals")
    account = Account(folder / "people.ledger", PEOPLE)
    for name, method in METHOD_OF.items():
        publish(account, TABLE, method, folder / name)
    publish(account, TABLE, METHOD_OF[GRID], folder / "another")
    return folder


@pytest.fixture
def ledger(originals: Path) -> Path:
    return originals / "people.ledger"


@pytest.fixture
def copy(originals: Path, tmp_path: Path):
    def copied(name: str) -> Path:
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        return Path(shutil.copytree(originals / name, tmp_path / name))

    return copied


def failed(found: Verification) -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    for check in found.failures:
        told.setdefault(check.about, []).append(check.says)
    return told


@EVERY_KIND
def test_a_good_release_passes_every_check(method: Parameters, tmp_path: Path) -> None:
    publish(Account(tmp_path / "people.ledger", PEOPLE), TABLE, method, tmp_path / "release")
    found = sfumato.verify(tmp_path / "release", tmp_path / "people.ledger")
    assert {check.about: check.passed for check in found.checks} == dict.fromkeys(
        ("manifest", "sum", "files", "contents", "records", "explanations", "promise", "randomness", "account"), True
    ) | {"author": None}


def test_every_kind_of_release_is_tampered_with() -> None:
    assert set(METHOD_OF) == set(SMALL)


def test_without_a_ledger_it_says_that_the_account_was_not_asked(originals: Path) -> None:
    found = sfumato.verify(originals / GRID)
    assert found.verified
    assert [check.about for check in found.checks if check.passed is None] == ["account", "author"]


@KINDS
def test_a_flipped_byte_in_any_file_is_named(copy, name: str) -> None:
    release = copy(name)
    for path in sorted(release.iterdir()):
        content = path.read_bytes()
        for at in range(0, len(content), max(len(content) // 12, 1)):
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            told = failed(sfumato.verify(release))
            if path.name == "manifest.json":
                assert "manifest" in told
            else:
                assert told == {"files": [f"{path.name} must be as it was published, and was changed"]}
        path.write_bytes(content)
    assert sfumato.verify(release).verified


def changed(value: Any) -> Any:
    """Give another value of the same kind."""
    if isinstance(value, dict | list):
        return type(value)()
    if isinstance(value, str):
        fraction = value.replace("/", "").isdigit()
        return str(Fraction(value) * 2 + 1) if fraction else value[:-1] + ("0" if value[-1:] != "0" else "1")
    return not value if isinstance(value, bool) else "x" if value is None else value + 1


def with_change(plain: Any, place: tuple[Any, ...]) -> Any:
    return replaced(plain, place, changed(inside(plain, place)))


@KINDS
def test_any_edited_value_of_the_manifest_is_named_even_if_it_is_sealed_again(copy, ledger: Path, name: str) -> None:
    release = copy(name)
    path = release / "manifest.json"
    original = path.read_text()
    plain = json.loads(original)
    tried = [place for place in places(plain) if with_change(plain, place) != plain]
    for place in tried:
        edited = with_change(plain, place)
        path.write_text(json.dumps(edited))
        assert "manifest" in failed(sfumato.verify(release)), place
        if place[0] not in ("files", "digest"):
            edited.pop("digest")
            reseal(release, **edited)
            assert {"manifest", "account"} & failed(sfumato.verify(release, ledger)).keys(), place
    assert len(tried) > 15


def test_a_sum_that_is_not_the_claim_is_told_in_fractions(copy) -> None:
    release = copy(GRID)
    path = release / "manifest.json"
    path.write_text(path.read_text().replace('"epsilon": "1"', '"epsilon": "1/100"', 1))
    assert failed(sfumato.verify(release))["sum"] == [
        "the ledger's lines (sum 1) must sum to the claimed epsilon, 1/100"
    ]


def test_epsilons_that_nobody_can_add_up_are_named(copy) -> None:
    release = copy(GRID)
    lines = json.loads((release / "manifest.json").read_text())["ledger"]
    endless = [lines[0] | {"epsilon": f"1/{10**18 + 2 * number + 1}"} for number in range(5000)]
    reseal(release, ledger=endless)
    assert {"manifest", "sum"} <= failed(sfumato.verify(release)).keys()


def test_a_name_that_stands_twice_is_no_manifest(copy) -> None:
    path = copy(GRID) / "manifest.json"
    path.write_text('{"epsilon": "1/100",' + path.read_text().lstrip()[1:])
    assert "manifest" in failed(sfumato.verify(path.parent))


@KINDS
def test_files_that_are_gone_added_or_linked_are_named(copy, originals: Path, name: str) -> None:
    for victim in sorted(path.name for path in (originals / name).iterdir()):
        release = copy(name)
        (release / victim).unlink()
        about = "manifest" if victim == "manifest.json" else "files"
        assert any(victim in told for told in failed(sfumato.verify(release))[about])
        (release / victim).symlink_to(originals / name / victim)
        assert any(victim in told for told in failed(sfumato.verify(release))["files"])
    for stranger in ("notes.txt", ".hidden", "people.csv", "a folder/inside", "bad\nname"):
        release = copy(name)
        (release / stranger).parent.mkdir(exist_ok=True)
        (release / stranger).write_text("x")
        (told,) = failed(sfumato.verify(release))["files"]
        assert "the manifest does not know it" in told
        assert "\n" not in told


def test_a_pipe_in_place_of_a_file_is_not_read(copy) -> None:
    for victim in ("records.parquet", "manifest.json"):
        release = copy(GRID)
        (release / victim).unlink()
        os.mkfifo(release / victim)
        assert not sfumato.verify(release).verified
        with pytest.raises(ReleaseError):
            sfumato.Release.load(release)


@pytest.mark.parametrize("victim", ["records.parquet", "measurements.parquet", "structure.json"])
def test_files_of_another_release_are_named(copy, originals: Path, victim: str) -> None:
    release = copy(GRID)
    shutil.copy(originals / "another" / victim, release / victim)
    same = (originals / GRID / victim).read_bytes() == (release / victim).read_bytes()
    assert same or failed(sfumato.verify(release)) == {
        "files": [f"{victim} must be as it was published, and was changed"]
    }


def test_another_releases_manifest_is_named(copy, originals: Path) -> None:
    release = copy(GRID)
    shutil.copy(originals / "another" / "manifest.json", release)
    assert "records.parquet must be as it was published, and was changed" in failed(sfumato.verify(release))["files"]


def forged_records(release: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    forge_table(release, change(pq.read_table(release / "records.parquet")), "records.parquet")


def with_count(table: pa.Table, more: int, row: int = -1) -> pa.Table:
    counts = table["count"].to_pylist()
    counts[row] += more
    return table.set_column(table.column_names.index("count"), "count", pa.array(counts, pa.int64()))


def with_noisy_count(table: pa.Table, more: float) -> pa.Table:
    if "noisy_count" not in table.column_names:
        return with_count(table, 1)
    at = table.column_names.index("noisy_count")
    shown = table["noisy_count"].to_pylist()
    shown[0] += more
    return table.set_column(at, "noisy_count", pa.array(shown, table.schema.field(at).type))


def with_name(table: pa.Table, name: str) -> pa.Table:
    """Call the first value something else, without changing a type."""
    column = table.column(0).combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    names = [name, *column.dictionary.to_pylist()[1:]]
    renamed = pa.DictionaryArray.from_arrays(column.indices, pa.array(names, pa.string()))
    return table.set_column(0, table.schema.field(0), renamed)


RECORDS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a count": lambda table: with_count(table, 5),
    "a person more": lambda table: with_count(table, 1),
    "two counts that wrap": lambda table: with_count(with_count(table, -(2**63)), -(2**63), row=0),
    "what was measured": lambda table: with_noisy_count(table, 1),
    "a name": lambda table: with_name(table, "nobody"),
    "a column of names": lambda table: table.set_column(0, table.column_names[0], pa.array(["x"] * len(table))),
    "a row too few": lambda table: table.slice(1),
    "no rows": lambda table: table.slice(0, 0),
    "a row too many": lambda table: pa.concat_tables([table, table.slice(0, 1)]),
    "another order": lambda table: table.take(list(range(len(table)))[::-1]),
    "a column too few": lambda table: table.drop_columns(["count"]),
    "a column too many": lambda table: table.append_column("truth", table["count"]),
    "floats": lambda table: table.set_column(table.num_columns - 1, "count", table["count"].cast(pa.float64())),
}


@KINDS
def test_records_that_the_counts_do_not_make_are_named(copy, ledger: Path, name: str) -> None:
    release = copy(name)
    original = pq.read_table(release / "records.parquet")
    for what, change in RECORDS.items():
        forge_table(release, change(original), "records.parquet")
        told = failed(sfumato.verify(release, ledger))
        assert {"records", "account"} <= told.keys(), what
    forge_table(release, original, "records.parquet", row_group_size=3)
    assert failed(sfumato.verify(release)).keys() <= {"explanations"}, "they tell the digest of the records"


def test_estimates_may_differ_in_the_last_digit_and_no_more(copy) -> None:
    """Another machine may round another way; a grid's counts were not rounded."""
    for name, allowed in {"tree": {0.001}, "coclusters": {0.001}, GRID: set()}.items():
        release = copy(name)
        original = pq.read_table(release / "records.parquet")
        for more in (0.001, 0.002) if name != GRID else (1,):
            forge_table(release, with_noisy_count(original, more), "records.parquet")
            assert ("records" in failed(sfumato.verify(release))) is (more not in allowed), (name, more)


def test_a_long_name_is_not_written_out_for_every_row(copy) -> None:
    release = copy(GRID)
    forged_records(release, lambda table: with_name(table, "x" * 2_000_000))
    assert "records" in failed(sfumato.verify(release))


def test_records_that_break_k_anonymity_are_named_as_that(copy) -> None:
    release = copy("exact tree")
    forged_records(release, lambda table: table.slice(0, 1))
    forged_records(release, lambda table: with_count(table, 2 - table["count"][-1].as_py()))
    assert failed(sfumato.verify(release))["promise"] == ["the published records must be as promised, and are not"]


@pytest.mark.parametrize("name", [name for name, one in METHOD_OF.items() if isinstance(one, Method)])
def test_less_noise_than_was_paid_for_is_named(copy, name: str) -> None:
    release = copy(name)

    def sharpened(plain: Any) -> None:
        for one in plain["measurements"]:
            one["rates"] = [f"{2 + at}" for at in range(len(one["rates"]))]

    forge_structure(release, sharpened)
    told = failed(sfumato.verify(release))
    assert told["promise"][0].startswith("what the counts cost by their noise (")


def test_a_measurement_without_a_line_that_pays_for_it_is_named(copy) -> None:
    release = copy(GRID)
    forge_structure(release, lambda plain: plain["measurements"][-1].update(label="a present"))
    assert failed(sfumato.verify(release))["promise"] == [
        "every measurement must have a line of its own name that pays for its noise"
    ]


# The account.


def test_a_release_that_the_ledger_does_not_know_is_named(originals: Path, tmp_path: Path) -> None:
    other = Account(tmp_path / "other.ledger", PEOPLE)
    other.publish(TABLE, Laplace(), 1)
    (told,) = failed(sfumato.verify(originals / GRID, tmp_path / "other.ledger"))["account"]
    assert "must be in the ledger, and is not" in told


def test_another_tables_ledger_is_named(originals: Path, tmp_path: Path) -> None:
    Ledger(tmp_path / "other.ledger", "others", None).begin()
    (told,) = failed(sfumato.verify(originals / GRID, tmp_path / "other.ledger"))["account"]
    assert told == "the ledger must be that of table people, and is that of others"


def test_a_rolled_back_ledger_does_not_know_what_came_later(tmp_path: Path) -> None:
    account = Account(tmp_path / "people.ledger", PEOPLE)
    publish(account, TABLE, Laplace(), tmp_path / "first")
    shutil.copy(tmp_path / "people.ledger", tmp_path / "backup.ledger")
    publish(account, TABLE, Laplace(), tmp_path / "second")
    assert sfumato.verify(tmp_path / "first", tmp_path / "backup.ledger").verified
    assert "account" in failed(sfumato.verify(tmp_path / "second", tmp_path / "backup.ledger"))


def test_a_seeded_release_is_in_no_account_and_says_so(tmp_path: Path) -> None:
    account = Account(tmp_path / "people.ledger", PEOPLE)
    publish(account, TABLE, Laplace(), tmp_path / "booked")
    account.publish(TABLE, DiffGen(specializations=3), 1, out=tmp_path / "seeded", unsafe_seed=1)
    assert failed(sfumato.verify(tmp_path / "seeded")).keys() == {"randomness"}
    assert sfumato.verify(tmp_path / "seeded", allow_seeded=True).verified
    assert (
        "known seed never is" in failed(sfumato.verify(tmp_path / "seeded", tmp_path / "people.ledger"))["account"][0]
    )


def test_a_release_saved_later_is_known_by_its_lines(tmp_path: Path) -> None:
    account = Account(tmp_path / "people.ledger", PEOPLE)
    account.publish(TABLE, DiffGen(specializations=3), 1).save(tmp_path / "release")
    found = sfumato.verify(tmp_path / "release", tmp_path / "people.ledger")
    assert found.verified
    assert "digest was not noted" in str(found.checks)


def test_a_release_whose_publication_was_noted_as_failed_is_named(tmp_path: Path, monkeypatch) -> None:
    account = Account(tmp_path / "people.ledger", PEOPLE)
    settle = Ledger.settle
    monkeypatch.setattr(Ledger, "settle", lambda self, key, _, digest=None: settle(self, key, "failed", digest))
    publish(account, TABLE, Laplace(), tmp_path / "release")
    (told,) = failed(sfumato.verify(tmp_path / "release", tmp_path / "people.ledger"))["account"]
    assert "noted the publication as failed" in told


# The command.


def test_the_command_lists_ticks_and_failures(copy, ledger: Path) -> None:
    release = copy(GRID)
    good = run("verify", release, "--ledger", ledger)
    assert (good.exit_code, good.stderr) == (0, "")
    assert good.stdout.count("\nok ") + good.stdout.startswith("ok ") == 9
    assert good.stdout.endswith("nothing is wrong with what was checked\n")
    (release / "extra").write_text("x")
    (release / "schema.json").unlink()
    bad = run("verify", release)
    assert bad.exit_code == REFUSED
    assert bad.stdout.count("WRONG") == 2
    assert "NOT as published: 2 failed" in bad.stdout
    plain = run("verify", release, "--json")
    assert plain.exit_code == REFUSED
    assert not json.loads(plain.stdout)["verified"]


def test_the_command_refuses_what_is_no_folder_and_no_ledger(originals: Path, tmp_path: Path) -> None:
    for arguments in ([tmp_path / "absent"], [originals / GRID, "--ledger", tmp_path / "absent"]):
        result = run("verify", *arguments)
        assert result.exit_code == REFUSED
        assert result.stderr.startswith("error: ")
    assert run("verify", tmp_path).exit_code == REFUSED
