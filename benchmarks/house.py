"""Draw the house: rooms in layers of trust, and which room really imports which, into docs/pictures/house.png."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import matplotlib
from matplotlib import pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "sfumato"
FOUNDATION = ("errors", "arrays", "exact", "storage")
FACES = ("audit", "cli", "compare", "evaluate", "papers", "pictures", "report", "studio")
LAYERS = (
    ("public facts", ("schema", "geometry", "modl", "datasets")),
    ("TRUSTED: the only door", ("privacy",)),
    ("rows and counts", ("tables", "engines", "places")),
    ("measurements become answers", ("methods", "models", "without_epsilon", "release")),
    ("where all meet", ("account", "bounds", "holder")),
    ("faces, on the public API alone", FACES),
)


def imported() -> Counter[tuple[str, str]]:
    """Count the imports from room to room; the foundation, which everyone uses, is left out."""
    found: Counter[tuple[str, str]] = Counter()
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sfumato."):
                other = str(node.module).split(".")[1]
                if other not in (room, *FOUNDATION) and room not in FOUNDATION:
                    found[room, other] += 1
    return found


def main() -> None:
    """Draw and write."""
    matplotlib.use("Agg")
    figure, axes = plt.subplots(figsize=(11, 8.5))
    places = {}
    for level, (name, rooms) in enumerate(LAYERS):
        axes.text(-0.2, level, name, ha="right", va="center", fontsize=10, style="italic", color="#555555")
        for at, room in enumerate(rooms):
            x = (at + 0.5) * 10 / len(rooms)
            places[room] = (x, level)
            modules = list((SOURCE / room).glob("*.py")) or [SOURCE / f"{room}.py"]
            lines = sum(len(path.read_text().splitlines()) for path in modules)
            trusted = room == "privacy"
            box = FancyBboxPatch(
                (x - 0.62, level - 0.17),
                1.24,
                0.34,
                boxstyle="round,pad=0.03",
                facecolor="#f3dfb8" if trusted else "#e8eef5",
                edgecolor="#444444",
                linewidth=2 if trusted else 1,
                zorder=3,
            )
            axes.add_patch(box)
            axes.text(x, level + 0.05, room, ha="center", va="center", fontsize=10 if len(room) < 12 else 8.5, zorder=4)
            told = f"{len(modules)} · {lines:,}"
            axes.text(x, level - 0.09, told, ha="center", va="center", fontsize=7, color="#555555", zorder=4)
    for (one, other), times in imported().items():
        if one in places and other in places and one not in FACES:
            (x, y), (u, v) = places[one], places[other]
            bend = 0.25 if y == v else 0.08
            arrow = FancyArrowPatch(
                (x, y - 0.2),
                (u, v + 0.2),
                arrowstyle="-|>",
                mutation_scale=9,
                linewidth=0.5 + min(times, 30) / 15,
                color="#7a8aa0",
                alpha=0.75,
                connectionstyle=f"arc3,rad={bend}",
                zorder=1,
            )
            axes.add_patch(arrow)
    axes.set_xlim(-3.4, 10.4)
    axes.set_ylim(-0.6, len(LAYERS) - 0.4)
    axes.axis("off")
    axes.set_title(
        "Who imports whom (modules · lines; thicker: more often). Below all: errors, arrays, exact, storage."
    )
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "pictures" / "house.png", dpi=110)


if __name__ == "__main__":
    main()
