"""What the documents say is true today."""

from __future__ import annotations

import ast
import re
import shlex
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from documents import methods_table, reference, with_methods
from handmade import release_of
from sfumato import METHODS, WITHOUT_EPSILON, About, Account, Schema, datasets, verify
from sfumato.cli import main
from sfumato.errors import MethodError
from sfumato.release.folder import EXPLAINING, FILES, SYNTHETIC

ROOT = Path(__file__).parents[1]


def blocks(path: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)


def test_the_readme_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("README.md", "python")
    assert len([line for line in example.splitlines() if line]) <= 10
    names: dict = {}
    exec(example, names)
    assert "± " in capsys.readouterr().out
    assert len(names["people"]) == 1000
    assert (tmp_path / "release" / "records.parquet").exists()


def test_the_method_of_the_contributors_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = blocks("CONTRIBUTING.md", "python")
    copied = (ROOT / "src" / "sfumato" / "methods" / "laplace.py").read_text()
    imports = copied[copied.index("from __future__") : copied.index("FEWER =")]
    (tmp_path / "coarse_method.py").write_text(f"{imports}from sfumato.errors import MethodError\n{example}")
    monkeypatch.syspath_prepend(tmp_path)
    method = import_module("coarse_method").Coarse
    adult = datasets.adult()
    account = Account(tmp_path / "adult.ledger", adult.schema)
    assert account.publish(adult.table, method(), 1, out=tmp_path / "release").groups > 10_000
    assert verify(tmp_path / "release", tmp_path / "adult.ledger").verified
    with pytest.raises(MethodError, match="cells must be at most 5"):
        account.publish(adult.table, method(max_cells=5), 1)


def test_the_schema_example_is_a_schema() -> None:
    (example,) = blocks("docs/schema.md", "yaml")
    schema = Schema.loads(example)
    assert set(yaml.safe_load(example)["attributes"]) == set(schema.attributes)
    assert Schema.loads(schema.dump()) == schema


def test_the_example_of_replicates_runs_and_holds_the_truth(adult: datasets.Dataset, capsys) -> None:
    (example,) = blocks("docs/replicates.md", "python")
    names: dict = {}
    exec(example, names)
    assert len(re.findall(r"^-?\d.* ± \d.* \(95 %\)$", capsys.readouterr().out, re.MULTILINE)) == 2
    low, high = names["release"].combine(names["estimates"]).interval
    true = np.polyfit(adult.table["age"].to_numpy(), adult.table["hours_per_week"].to_numpy(), 1)[0]
    assert low <= true <= high


@pytest.mark.parametrize("example", blocks("docs/sql.md", "sql"))
def test_the_sql_examples_run(adult: datasets.Dataset, example: str) -> None:
    assert release_of(adult.schema, None, np.array([300, 100])).sql(example).num_rows > 1


def test_the_command_reference_is_up_to_date() -> None:
    assert (ROOT / "docs/cli.md").read_text() == reference(), "run `make docs`"


def test_the_table_of_methods_is_what_the_registry_says() -> None:
    for name in ("docs/methods.md", "README.md"):
        text = (ROOT / name).read_text()
        assert text == with_methods(text), "run `make docs`"
    assert [line.split("`")[1] for line in methods_table().splitlines()[2:]] == [*METHODS, *WITHOUT_EPSILON]
    for method in (*METHODS.values(), *WITHOUT_EPSILON.values()):
        assert method.summary in text
        assert all((method.suits, method.arithmetic, method.unsuited)), f"{method.name} must say what it is for"
        assert method.additions in text


def test_a_table_of_methods_that_is_out_of_date_is_written_anew() -> None:
    text = (ROOT / "README.md").read_text()
    assert with_methods(text.replace("| `diffgen` |", "| `another` |")) == text
    with pytest.raises(AssertionError, match="one place"):
        with_methods("no place for it")


DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", path.read_text()):
        assert (path.parent / target).exists(), target


OTHERS = {"people.parquet", "results.parquet"}
"""A table in an example, and what a comparison writes."""


@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if path.name != "CHANGELOG.md"], ids=lambda path: path.name
)
def test_files_of_a_release_that_documents_name_are_there(path: Path) -> None:
    named = set(re.findall(r"`(\w+\.(?:parquet|json))`", path.read_text()))
    assert named <= {*FILES, *EXPLAINING, *SYNTHETIC.values(), "manifest.json", *OTHERS}


def test_members_that_the_source_points_to_exist() -> None:
    sources = [path.read_text() for path in sorted((ROOT / "src").rglob("*.py"))]
    members = {
        f"{one.name}.{name}"
        for source in sources
        for one in ast.walk(ast.parse(source))
        if isinstance(one, ast.ClassDef)
        for name in re.findall(r"^    (?:def )?(\w+)\b", ast.unparse(one), re.MULTILINE)
    }
    pointed_to = {name for source in sources for name in re.findall(r"`([A-Z]\w+\.[a-z]\w*)`", source)}
    assert pointed_to
    assert pointed_to <= members


def run_page(page: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what a page says from top to bottom: write its schema, run its Python and its commands."""
    monkeypatch.chdir(place)
    names: dict = {}
    for language, block in re.findall(r"```(python|yaml|)\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
        if language == "yaml":
            Path("people.schema.yaml").write_text(block)
        elif language == "python":
            exec(block, names)
        else:
            for command in block.splitlines():
                _, *arguments = shlex.split(command)
                result = CliRunner().invoke(main, arguments)
                assert result.exit_code == 0, (command, result.output)
                if arguments[0] == "draft":
                    Path("people.schema.yaml").unlink()


def test_the_tutorial_runs_from_a_table_to_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_page("docs/tutorial.md", tmp_path, monkeypatch)
    assert "± " in capsys.readouterr().out
    for name in ("release/README.md", "smokers.png", "release.html", "worth.html"):
        assert (tmp_path / name).exists()


def test_the_gallery_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run_page("docs/gallery.md", tmp_path, monkeypatch)
    assert "share_low" in capsys.readouterr().out


def test_what_a_holder_may_say_is_what_the_page_shows() -> None:
    (said,) = blocks("docs/holders.md", "yaml")
    assert set(yaml.safe_load(said)) | {"date", "url"} == set(About.model_fields)
    About.parse({name: str(value) for name, value in yaml.safe_load(said).items()})


def test_every_document_has_a_place_on_the_site() -> None:
    listed = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text())
    assert sorted(path.name for path in ROOT.glob("docs/*.md")) == sorted(
        Path(one).name for one in listed if "/" not in one
    )
