"""Curves in panels: one legend for all, plain numbers on the axes, names of lines that do not cover each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.pictures import canvas as curves
from sfumato.pictures.canvas import Curve, Panel, draw_panels

pytest.importorskip("matplotlib")

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
