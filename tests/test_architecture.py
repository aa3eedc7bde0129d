"""Who may know what: the import table, the public names, and a floor under the number of tests."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import sfumato

SOURCE = Path(sfumato.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

PUBLIC = {
    "errors",
    "guard",
    "exact",
    "taxonomy",
    "bounds",
    "attributes",
    "schema",
    "partition",
    "descent",
    "tree",
    "consistency",
    "halving",
    "coverage",
    "conditions",
    "promises",
    "modl",
    "grouping",
    "boxes",
    "hierarchy",
    "knowledge",
    "confidence_cap",
    "domain",
    "coclustering",
}
MAY_IMPORT = {
    "errors": set(),
    "guard": {"errors"},
    "exact": set(),
    "storage": {"errors"},
    "taxonomy": {"errors"},
    "bounds": {"errors"},
    "attributes": {"bounds", "errors", "taxonomy"},
    "schema": {"errors", "exact", "taxonomy", "attributes"},
    "partition": {"errors"},
    "descent": set(),
    "tree": {"descent", "partition"},
    "consistency": set(),
    "halving": {"consistency"},
    "coverage": {"attributes"},
    "conditions": {"errors", "attributes", "bounds", "coverage", "schema"},
    "modl": {"errors", "modl"},
    "grouping": set(),
    "boxes": {"grouping", "partition", "tree"},
    "hierarchy": {"attributes", "partition", "tree"},
    "knowledge": {"errors", "partition"},
    "promises": {"errors", "exact", "boxes"},
    "confidence_cap": {"errors", "exact", "boxes", "knowledge", "promises"},
    "domain": {"errors", "schema"},
    "coclustering": {"attributes", "schema", "modl"},
    "pictures": PUBLIC | {"pictures", "storage"},
    "privacy": PUBLIC | {"privacy"},
    "counts": PUBLIC | {"counts", "privacy"},
    "methods": PUBLIC
    | {"methods", "counts.meter", "counts.tally", "counts.choices"}
    | {"privacy.budget", "privacy.scores", "privacy.noisy"},
    "syntactic": PUBLIC
    | {"syntactic", "counts.exact_counts", "counts.combinations", "counts.tally", "counts.choices", "privacy.noisy"}
    | {"methods.boxes", "methods.cuts", "methods.levels", "methods.parameters"},
    "release": PUBLIC
    | {"release", "io", "storage", "privacy.budget", "privacy.ledger", "privacy.noisy"}
    | {"privacy.statement"},
    "io": PUBLIC | {"io"},
    "datasets": PUBLIC | {"io", "storage"},
    "engines": PUBLIC | {"engines", "counts.tally", "counts.streamed", "io", "storage"},
    "sealing": PUBLIC | {"methods.base", "syntactic.base", "privacy.budget", "release"},
    "audit": PUBLIC
    | {"audit", "counts.meter", "counts.tally", "counts.memory", "methods.base"}
    | {"privacy.budget", "privacy.noisy", "privacy.mechanisms", "privacy.stream"},
    "account": PUBLIC
    | {"counts", "counting", "methods.base", "syntactic.base", "privacy", "release", "io", "storage", "sealing"},
    "seeded": PUBLIC | {"account", "methods.base", "syntactic.base", "release"},
    "memory_limit": {"errors"},
    "counting": PUBLIC | {"counts", "io", "engines", "memory_limit"},
    "holder": PUBLIC | {"io"},
    "evaluate": PUBLIC | {"evaluate", "release", "io", "storage"},
    "compare": PUBLIC
    | {"compare", "account", "seeded", "methods", "syntactic", "release", "evaluate", "io", "storage", "pictures"},
    "papers": PUBLIC
    | {"papers", "__version__", "seeded", "datasets", "evaluate", "io", "methods", "pictures", "release", "storage"}
    | {"syntactic"},
    "report": PUBLIC | {"report", "release", "pictures", "privacy.noisy", "evaluate.Scorecard"},
    "cli": PUBLIC
    | {"cli", "", "__version__", "METHODS", "WITHOUT_EPSILON", "holder", "account", "methods", "syntactic", "release"}
    | {"audit", "compare", "evaluate", "papers", "report", "datasets", "storage", "io", "pictures"}
    | {"counting.ENGINES", "privacy.budget", "privacy.ledger", "privacy.statement"},
}
ONLY_HERE = {
    "duckdb": ("io.duck", "io.databases", "engines", "release.sql"),
    "pyspark": ("io.spark", "io.spark_session", "engines"),
    "sqlite3": ("privacy.ledger",),
    "sklearn": ("evaluate",),
    "click": ("cli",),
    "matplotlib": ("pictures",),
    "yaml": ("schema",),
}
RANDOM = {"random", "secrets", "numpy.random"}


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


def forbidden(module: str, source: str) -> set[str]:
    """Give the imports that the table does not allow this module."""
    home = module.split(".")[0]
    ours = {
        one.removeprefix("sfumato").removeprefix(".")
        for one in imports(ast.parse(source))
        if one.split(".")[0] == "sfumato"
    }
    allowed = MAY_IMPORT[home]
    return {one for one in ours if not any(one == ok or (ok and one.startswith(f"{ok}.")) for ok in allowed)}


@pytest.mark.parametrize("path", [path for path in MODULES if path != SOURCE / "__init__.py"], ids=name_of)
def test_the_import_table_holds(path: Path) -> None:
    assert forbidden(name_of(path), path.read_text()) == set()


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("methods.bad", "from sfumato.counts.memory import MemoryEngine"),
        ("methods.bad", "from sfumato.engines.duckdb_engine import DuckDBEngine"),
        ("engines.bad", "from sfumato.counts.meter import Meter"),
        ("methods.bad", "from sfumato.privacy.noise import discrete_laplace"),
        ("methods.bad", "import sfumato.account"),
        ("methods.bad", "from sfumato.counts.exact_counts import ExactCounts"),
        ("methods.bad", "from sfumato.counts.combinations import Combinations"),
        ("methods.bad", "from sfumato.syntactic.base import MethodWithoutEpsilon"),
        ("syntactic.bad", "from sfumato.counts.meter import Meter"),
        ("syntactic.bad", "from sfumato.counts.memory import MemoryEngine"),
        ("release.bad", "from sfumato.counts.meter import Meter"),
        ("release.bad", "from sfumato.counts.exact_counts import ExactCounts"),
        ("privacy.bad", "from sfumato.counts.tally import Tally"),
        ("evaluate.bad", "from sfumato.privacy.noise import coins"),
        ("io.bad", "from sfumato.release.release import Release"),
        ("pictures.bad", "from sfumato.io.tables import open_table"),
        ("report.bad", "from sfumato.io.tables import open_table"),
        ("report.bad", "from sfumato.evaluate import scorecard"),
        ("audit.bad", "from sfumato.io.tables import open_table"),
        ("audit.bad", "from sfumato.account import Account"),
    ],
)
def test_the_import_table_can_fail(module: str, line: str) -> None:
    assert forbidden(module, line)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_libraries_stay_in_their_rooms(path: Path) -> None:
    module = name_of(path)
    for library in {one.split(".")[0] for one in imports(ast.parse(path.read_text()))} & ONLY_HERE.keys():
        assert any(module == room or module.startswith(f"{room}.") for room in ONLY_HERE[library])


@pytest.mark.parametrize("path", [path for path in MODULES if {"methods", "syntactic"} & set(path.parts)], ids=name_of)
def test_a_method_has_no_random_source_and_no_data_library(path: Path) -> None:
    libraries = imports(ast.parse(path.read_text()))
    assert not {
        one for one in libraries if one.split(".")[0] in {"pyarrow", "narwhals", "duckdb", "pandas", "polars", "os"}
    }
    assert not libraries & RANDOM
    assert "np.random" not in path.read_text()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_fit_in_the_head_and_say_what_they_are(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 340
    assert ast.get_docstring(ast.parse(text))


def test_public_names() -> None:
    assert sfumato.__all__ == [
        "METHODS",
        "WITHOUT_EPSILON",
        "TDS",
        "Account",
        "CDiffGen",
        "Confidence",
        "DPCocGen",
        "DiffGen",
        "DiffMulti",
        "Estimate",
        "Laplace",
        "Mondrian",
        "Release",
        "Schema",
        "SfumatoError",
        "Taxonomy",
        "__version__",
        "check",
        "cocluster",
        "datasets",
        "draft",
        "verify",
    ]


def test_there_are_enough_tests() -> None:
    functions = sum(path.read_text().count("\ndef test_") for path in Path(__file__).parent.glob("test_*.py"))
    assert functions >= 250
