"""Pictures of data grids and of curves: the numbers that they show, and files that are written whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from command_line import done, done_json, refused
from sfumato import Schema, cocluster
from sfumato.errors import MethodError, ReleaseError
from sfumato.holder import NOT_PRIVATE, Coclustering
from sfumato.pictures import canvas as curves
from sfumato.pictures.canvas import Curve, Panel, draw_panels
from sfumato.pictures.triangle import departures, draw_grid, pair_counts, seriation
from sfumato.schema.schema import kinds_of

pytest.importorskip("matplotlib")

CHAIN = Schema.loads("""
name: "chain of $5 and $6"
attributes:
  place: {kind: numeric, lower: 0, upper: 29}
  group: {kind: categorical, taxonomy: [e$1$, c, a, "字", b, d, f]}
  twin: {kind: categorical, taxonomy: [x, y]}
""")
LINE = ["a", "b", "c", "d", "e$1$", "f"]
"""The groups in the order of their places."""


@pytest.fixture(scope="module")
def found() -> Coclustering:
    rng = np.random.default_rng(0)
    places = rng.integers(0, 30, 6000)
    groups = np.array(LINE)[np.clip(places + rng.integers(-4, 5, 6000), 0, 29) // 5]
    groups[:40] = "字"
    twins = np.where(rng.random(6000) < np.where(places < 15, 0.8, 0.2), "x", "y")
    return cocluster(pa.table({"place": places, "group": groups, "twin": twins}), CHAIN)


# The numbers.


def test_pairs_are_counted_in_both_directions(found: Coclustering) -> None:
    assert pair_counts(found, 0, 2).tolist() == found.counts.sum(axis=1).tolist()
    assert np.array_equal(pair_counts(found, 2, 0), pair_counts(found, 0, 2).T)


def test_small_and_chance_departures_are_none() -> None:
    slight = np.array([[51_000.0, 49_000.0], [49_000.0, 51_000.0]])
    assert departures(slight).tolist() == [[1, 1], [1, 1]]
    assert departures(np.array([[0.0, 300.0], [3.0, 297.0]]))[0, 0] == 1
    assert departures(np.array([[0.0, 300.0], [30.0, 270.0]]))[0].tolist() == [0, 1]


def test_groups_are_arranged_by_what_they_share(found: Coclustering) -> None:
    orders = seriation(found, kinds_of(CHAIN))
    assert orders[0].tolist() == list(range(found.grid.shape[0]))
    values = [found.parts["group"][part].values for part in orders[1].tolist()]
    assert [value for part in values for value in part if value != "字"] == LINE
    assert [found.parts["twin"][part].values for part in orders[2].tolist()] == [("x",), ("y",)]


# The files.


def test_a_picture_is_a_whole_file(found: Coclustering, tmp_path: Path) -> None:
    draw_grid(found, tmp_path / "grid.png")
    assert (tmp_path / "grid.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    draw_grid(found, tmp_path / "grid.svg")
    assert (tmp_path / "grid.svg").read_text().rstrip().endswith("</svg>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grid.png", "grid.svg"]


def test_the_same_grid_gives_the_same_file(found: Coclustering, tmp_path: Path) -> None:
    for name in ("one", "other"):
        draw_grid(found, tmp_path / f"{name}.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


def test_every_picture_says_that_it_is_not_private(found: Coclustering, tmp_path: Path) -> None:
    draw_grid(found, tmp_path / "grid.svg")
    assert f"<!-- {NOT_PRIVATE} -->" in (tmp_path / "grid.svg").read_text()


def test_no_file_is_overwritten_and_none_is_left_half(found: Coclustering, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "grid.png").write_text("mine")
    with pytest.raises(ReleaseError, match="must not exist yet"):
        draw_grid(found, tmp_path / "grid.png")
    assert (tmp_path / "grid.png").read_text() == "mine"

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    with pytest.raises(ReleaseError, match="no space left"):
        draw_grid(found, tmp_path / "other.png")
    assert [path.name for path in tmp_path.iterdir()] == ["grid.png"]


def test_a_single_cell_is_no_picture(tmp_path: Path, found: Coclustering) -> None:
    null = cocluster(pa.table({"place": [1, 2], "group": ["a", "b"], "twin": ["x", "y"]}), CHAIN)
    assert null.grid.cells == 1
    with pytest.raises(MethodError, match="two attributes with more than one part"):
        draw_grid(null, tmp_path / "grid.png")
    assert list(tmp_path.iterdir()) == []
    assert found.grid.cells > 1


@pytest.mark.usefixtures("here")
def test_the_command_draws() -> None:
    text = done("cocluster", "people.csv", "--out", "grid.png")
    assert f"drew grid.png\n{NOT_PRIVATE}" in text
    assert done_json("cocluster", "people.csv", "--out", "grid.svg")["picture"] == "grid.svg"
    assert "must not exist yet" in refused("cocluster", "people.csv", "--out", "grid.png")
    assert "must be writable" in refused("cocluster", "people.csv", "--out", "nowhere/grid.png")


@pytest.mark.usefixtures("here")
def test_without_the_library_one_sentence_tells_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'sfumato[pictures]'" in refused("cocluster", "people.csv", "--out", "grid.png")
    assert NOT_PRIVATE in done("cocluster", "people.csv")


def test_no_display_is_looked_for() -> None:
    assert "matplotlib.pyplot" not in sys.modules


# Curves in panels: one legend for all, plain numbers on the axes, names of lines that do not cover each other.

ONE = Curve("one", (10.0, 1000.0), (1e6, 2e8), (0.0, 1.0))
OTHER = Curve("other", (10.0, 1000.0), (2e6, 3e8))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Catch figures before they are written."""
    caught: list[Any] = []
    monkeypatch.setattr(curves, "write_picture", lambda _out, draw: caught.append(draw()))
    return caught


def test_a_picture_is_written(tmp_path: Path) -> None:
    draw_panels(tmp_path / "two.png", "two", [Panel("left", "h", "m", (ONE,)), Panel("right", "h", "m", (OTHER,))])
    assert (tmp_path / "two.png").read_bytes().startswith(b"\x89PNG")


def test_one_legend_tells_all_curves(drawn: list[Any]) -> None:
    draw_panels("x.png", "four", [Panel("a", "h", "m", (ONE,)), *[Panel("b", "h", "m", (OTHER, ONE))] * 3])
    (figure,) = drawn
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "other"]
    assert len(figure.axes) == 4
    assert len({axes.get_position().x0 for axes in figure.axes}) == 2
    colours = {axes.lines[-1 if len(axes.containers) > 1 else 0].get_color() for axes in figure.axes}
    assert len(colours) == 1, "a name has one colour everywhere"


def test_numbers_on_logarithmic_axes_are_plain(drawn: list[Any]) -> None:
    draw_panels("x.png", "log", [Panel("a", "h", "m", (ONE, OTHER), logarithmic=(True, True))])
    drawn[0].canvas.draw()
    (axes,) = drawn[0].axes
    written = [label.get_text() for label in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    assert {"10", "1,000", "10 M"} <= set(written)
    assert not any("$" in text for text in written)


def test_levels_stated_points_and_places(drawn: list[Any]) -> None:
    levels = (("raw", 81.0), ("near", 80.9), ("majority", 75.0))
    points = (("stated", 1.0, 78.0),)
    draw_panels(
        "x.png", "all", [Panel("a", "", "m", (Curve("c", (0, 1), (80, 79)),), levels, points, places=("x", "y"))]
    )
    (axes,) = drawn[0].axes
    sides = {text.get_text(): text.get_va() for text in axes.texts}
    assert sides == {"stated": "baseline", "raw": "bottom", "near": "top", "majority": "center"}
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y"]
    assert axes.containers[0].lines[0].get_linestyle() == "None"
