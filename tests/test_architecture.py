"""Who may know what: the import table of the rooms, the public names, and how many modules there are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sfumato

SOURCE = Path(sfumato.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
MOST_MODULES = 180
"""A budget, not a law: raise it with a reason. A reader should find a thing by its room and read it whole."""
GROWING = {"methods", "without_epsilon"}
"""Rooms that grow by a module with every method: the budget is about the others."""

FOUNDATION = {"errors", "arrays", "exact", "storage", "frames", "markup", "progress"}
DATA = {"schema", "geometry"}
ROOMS = {
    "errors": set(),
    "arrays": set(),
    "exact": set(),
    "storage": {"errors"},
    "frames": {"errors"},
    "markup": set(),
    "progress": {"markup"},
    "schema": FOUNDATION,
    "geometry": FOUNDATION | {"schema"},
    "privacy": FOUNDATION | DATA,
    "modl": FOUNDATION | {"schema"},
    "tables": FOUNDATION | {"schema"},
    "engines": FOUNDATION | DATA | {"tables", "privacy.tally"},
    "models": FOUNDATION | DATA | {"modl", "privacy.measurements", "privacy.budget"},
    "methods": FOUNDATION
    | DATA
    | {"modl", "models"}
    | {
        f"privacy.{one}"
        for one in (
            *("meter", "budget", "scores", "shapes", "measurements", "tally", "choices", "misfits", "families"),
        )
    },
    "release": FOUNDATION
    | DATA
    | {"models", "pictures.plots"}
    | {f"privacy.{one}" for one in ("budget", "measurements", "ledger")},
    "without_epsilon": FOUNDATION
    | DATA
    | {"methods.method", "release.promises"}
    | {f"privacy.{one}" for one in ("exact_counts", "measurements", "tally")},
    "account": FOUNDATION | DATA | {"privacy", "tables", "engines", "methods", "models", "release", "without_epsilon"},
    "bounds": FOUNDATION | DATA | {"privacy", "tables", "engines"},
    "holder": FOUNDATION
    | DATA
    | {"modl", "tables", "release", "bounds"}
    | {f"privacy.{one}" for one in ("budget", "ledger")},
    "datasets": FOUNDATION | {"schema"},
    "places": FOUNDATION | {"schema", "tables", "datasets"},
}
"""What each room may import, besides itself: rooms, or single modules of one."""
FACES = ("audit", "cli", "compare", "evaluate", "papers", "pictures", "report", "studio")
OF_FACES = FOUNDATION | {"datasets"}
FACES_OF_FACES = {
    "audit": set(),
    "pictures": set(),
    "evaluate": set(),
    "report": {"pictures", "evaluate.Scorecard"},
    "compare": {"evaluate", "pictures"},
    "papers": {"evaluate", "pictures"},
    "studio": {"compare", "pictures", "report"},
    "cli": {"audit", "compare", "evaluate", "papers", "pictures", "report", "studio"},
}
"""Faces stand on the public API alone, and some on each other."""
ONLY_HERE = {
    "duckdb": ("tables.streams", "release.sql"),
    "pyspark": ("tables.frames", "engines.spark"),
    "sqlite3": ("privacy.ledger",),
    "sklearn": ("evaluate",),
    "click": ("cli",),
    "matplotlib": ("pictures",),
    "yaml": ("schema.yaml",),
    "narwhals": ("tables", "frames"),
    "pyreadstat": ("tables.microdata",),
    "python_calamine": ("tables.microdata",),
    "starlette": ("studio",),
    "uvicorn": ("studio",),
    "jinja2": ("studio",),
}
WITHOUT_DATA = {"pyarrow", "narwhals", "duckdb", "pandas", "polars", "os", "random", "secrets"}
KINDS = {"Grid", "Tree", "Boxes"}
WHERE_KINDS_ARE_KNOWN = ("geometry", "privacy", "engines", "models")
"""Partitions are counted, priced and read by kind; nobody else asks a release what kind it is."""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__").removesuffix("__init__")


def imports(tree: ast.AST) -> set[str]:
    """Give every imported name in full, as module.name."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def ours(source: str) -> set[str]:
    """Give what a module imports of the package; names of the public API stand for themselves."""
    found = {one for one in imports(ast.parse(source)) if one.split(".")[0] == "sfumato"}
    return {one.removeprefix("sfumato").removeprefix(".") for one in found}


def forbidden(module: str, source: str) -> set[str]:
    """Give the imports that the table does not allow this module."""
    room = module.split(".")[0]
    public = set(dir(sfumato)) - {*ROOMS, *FACES} | {""} if room in FACES else set()
    allowed = OF_FACES | FACES_OF_FACES[room] | public if room in FACES else ROOMS[room]
    return {
        one
        for one in ours(source)
        if one not in public and not any(one == ok or one.startswith(f"{ok}.") for ok in allowed | {room})
    }


@pytest.mark.parametrize("path", [path for path in MODULES if path != SOURCE / "__init__.py"], ids=name_of)
def test_the_import_table_holds(path: Path) -> None:
    assert forbidden(name_of(path), path.read_text()) == set()


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("schema.bad", "from sfumato.geometry.grid import Grid"),
        ("geometry.bad", "from sfumato.privacy.budget import Debit"),
        ("privacy.bad", "from sfumato.tables.encode import encode"),
        ("privacy.bad", "from sfumato.engines.local import MemoryEngine"),
        ("privacy.bad", "from sfumato.models.model import Model"),
        ("tables.bad", "from sfumato.privacy.noise import coins"),
        ("tables.bad", "from sfumato.release.release import Release"),
        ("engines.bad", "from sfumato.privacy.meter import Meter"),
        ("engines.bad", "from sfumato.methods.diffgen import DiffGen"),
        ("methods.bad", "from sfumato.engines.local import MemoryEngine"),
        ("methods.bad", "from sfumato.privacy.noise import discrete_laplace"),
        ("methods.bad", "from sfumato.privacy.mechanisms import Exact"),
        ("methods.bad", "from sfumato.privacy.exact_counts import ExactCounts"),
        ("methods.bad", "from sfumato.without_epsilon.method import MethodWithoutEpsilon"),
        ("methods.bad", "from sfumato.tables.sources import open_table"),
        ("methods.bad", "import sfumato.account"),
        ("models.bad", "from sfumato.privacy.noise import coins"),
        ("models.bad", "from sfumato.methods.diffgen import DiffGen"),
        ("models.bad", "from sfumato.tables.encode import encode"),
        ("without_epsilon.bad", "from sfumato.privacy.meter import Meter"),
        ("without_epsilon.bad", "from sfumato.engines.local import MemoryEngine"),
        ("release.bad", "from sfumato.privacy.meter import Meter"),
        ("release.bad", "from sfumato.tables.encode import encode"),
        ("release.bad", "from sfumato.methods.diffgen import DiffGen"),
        ("release.bad", "from sfumato import evaluate"),
        ("account.bad", "from sfumato.cli.main import main"),
        ("evaluate.bad", "from sfumato.privacy.noise import coins"),
        ("evaluate.bad", "from sfumato.release.release import Release"),
        ("pictures.bad", "from sfumato.evaluate.card import Scorecard"),
        ("report.bad", "from sfumato.evaluate import scorecard"),
        ("cli.bad", "from sfumato.account import Account"),
        ("studio.bad", "from sfumato.account import Account"),
        ("studio.bad", "from sfumato.places import find_data"),
        ("report.bad", "from sfumato.studio.desk import Desk"),
        ("audit.bad", "from sfumato.privacy.meter import Meter"),
    ],
)
def test_the_import_table_can_fail(module: str, line: str) -> None:
    assert forbidden(module, line)


def rooms_after(room: str, seen: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Walk the graph of rooms, and give every way that comes back to where it was."""
    if room in seen:
        yield (*seen, room)
        return
    for other in {one.split(".")[0] for one in ROOMS.get(room, set())} - {room}:
        yield from rooms_after(other, (*seen, room))


def test_the_graph_of_rooms_has_no_cycle() -> None:
    assert not [way for room in ROOMS for way in rooms_after(room)]


def test_every_room_stands_in_the_table() -> None:
    rooms = {name_of(path).split(".")[0] for path in MODULES} - {""}
    assert rooms == {*ROOMS, *FACES}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_libraries_stay_in_their_rooms(path: Path) -> None:
    module = name_of(path)
    for library in {one.split(".")[0] for one in imports(ast.parse(path.read_text()))} & ONLY_HERE.keys():
        assert any(module == room or module.startswith(f"{room}.") for room in ONLY_HERE[library])


@pytest.mark.parametrize(
    "path", [path for path in MODULES if {"methods", "without_epsilon", "models"} & set(path.parts)], ids=name_of
)
def test_a_method_has_no_random_source_and_no_data_library(path: Path) -> None:
    libraries = {one.split(".")[0] for one in imports(ast.parse(path.read_text()))}
    allowed = {"pyarrow"} if "models" in path.parts else set()
    assert not libraries & (WITHOUT_DATA - allowed)
    if "models" not in path.parts:
        assert "np.random" not in path.read_text()


def kinds_asked(source: str) -> set[str]:
    """Give the kinds of structures that a module tells apart by type."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    asked = [node.args[1] for node in calls if getattr(node.func, "id", "") in ("isinstance", "issubclass")]
    return {one.id for tree in asked for one in ast.walk(tree) if isinstance(one, ast.Name)} & KINDS


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nobody_asks_a_release_what_kind_it_is(path: Path) -> None:
    if not name_of(path).startswith(WHERE_KINDS_ARE_KNOWN):
        assert kinds_asked(path.read_text()) == set()


def test_a_question_for_the_kind_is_noticed() -> None:
    assert kinds_asked("if isinstance(release.structure, Grid | Tree): pass") == {"Grid", "Tree"}


def test_there_are_few_modules_and_each_says_what_it_is() -> None:
    assert len([path for path in MODULES if path.parent.name not in GROWING]) <= MOST_MODULES
    assert [path for path in MODULES if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_public_names_are_looked_up_and_there() -> None:
    assert {"Account", "Release", "Schema", "METHODS", "WITHOUT_EPSILON", "verify", "classify"} <= set(dir(sfumato))
    for name in dir(sfumato):
        assert getattr(sfumato, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sfumato.nothing


def test_classes_of_methods_are_public_by_being_registered() -> None:
    for registry in (sfumato.METHODS, sfumato.WITHOUT_EPSILON):
        for method in registry.values():
            assert getattr(sfumato, method.__name__) is method
