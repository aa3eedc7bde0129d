"""A disk that is full in the middle of a publication: what was paid stays paid, the rest comes back, rows are gone."""

from __future__ import annotations

from pathlib import Path

from no_room import NO_ROOM, people, published, spent
from sfumato import Schema
from sfumato.engines.counting import least_memory


def test_a_disk_that_is_full_in_a_round_is_told_and_what_was_paid_stays_paid(tmp_path: Path) -> None:
    """No row fits in memory. On the disk there is room for all of them, but not for where they stand in the tree."""
    table = people(tmp_path, 1_500_000, 1)
    memory = least_memory(Schema.load(table.with_suffix(".schema.yaml")))
    where = ("--memory", str(memory), "--scratch", str(tmp_path / "rows"))
    told = published(table, *where, largest_file=5_000_000)
    assert (told.returncode, told.stdout, told.stderr) == (2, "", NO_ROOM)
    assert not (tmp_path / "rows").exists(), "no row is left, nor the folder that was made for them"
    assert not (tmp_path / "out").exists()
    (publication,) = spent(table)
    assert publication.outcome == "failed"
    assert 0 < publication.held == publication.paid < 1, "what was not asked is given back"
