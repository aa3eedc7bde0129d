"""The screen Release, which needs no data: what a release is good for, what it holds, and answers to questions.

Questions are sent as forms: what someone asks for stands in no address.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from markupsafe import Markup
from starlette.responses import Response

from sfumato import Z95, Categorical, Estimate, Numeric, Release
from sfumato.errors import MethodError, QueryError, ReleaseError
from sfumato.pictures.distributions import Cells, draw_heat_map
from sfumato.report.asking import WORDS, bins_of
from sfumato.studio.pages import Asked, Studio, command, go, literal, page, piece, screen
from sfumato.studio.publishing import DRAWING
from sfumato.studio.tasks import release_task, verify_task
from sfumato.studio.work import Work

MOST_RECORDS = 50
MOST_SAMPLED = 1_000_000
MOST_PARTS = 8
"""The most parts of an attribute in a pair."""
MOST_CHOICES = 500
"""The most values of an attribute that are offered."""
COMPARISONS = ("=", "<", "<=", ">", ">=")


def release(studio: Studio, asked: Asked) -> Response:
    """Choose a release, or show one."""
    word = asked.query.get("release", "")
    if not word:
        return page("releases.html", studio, asked, screen="release", releases=studio.desk.releases())
    return _shown(studio, asked, word)


def _shown(studio: Studio, asked: Asked, word: str, **facts: Any) -> Response:
    path, found = studio.desk.open_release(word)
    condition = facts.get("condition", "")
    same = (
        f"{command('query', word, *([condition] if condition else []))}\n{command('report', word)}",
        f"release = sfumato.Release.load({literal(word)})\nanswer = release.count({literal(condition)})",
    )
    named = {**found.schema.predictors}
    if found.schema.target is not None:
        named[found.schema.target] = _class_of(found)
    shared: dict[str, Any] = {"answer": None, "condition": "", "sql": "", "clauses": [], "problem": "", "remedy": ""}
    return page(
        "release.html",
        studio,
        asked,
        screen="release",
        release_word=word,
        release=found,
        manifest=found.manifest,
        columns={name: _offered(column) for name, column in named.items()},
        comparisons=COMPARISONS,
        work=_drawn(studio, word, str(path), found),
        verified=studio.office.find(f"verify {path} {found.manifest.digest}"),
        same=same,
        **(shared | facts),
    )


def _class_of(found: Release) -> Categorical:
    column = found.schema.attributes[str(found.schema.target)]
    assert isinstance(column, Categorical)
    return column


def _offered(column: Categorical | Numeric) -> dict[str, Any]:
    """What can be asked of an attribute: the names of its values, or its bounds."""
    if isinstance(column, Numeric):
        ends = f"{column.edge(0)} to {column.edge(column.cells)}"
        return {"numeric": True, "values": [], "ends": ends}
    return {"numeric": False, "values": [node.label for node in column.tree.nodes[1 : MOST_CHOICES + 1]], "ends": ""}


def _drawn(studio: Studio, word: str, path: str, found: Release) -> Work:
    key = f"release {path} {found.manifest.digest}"
    return studio.office.begin(key, f"Drawing {word}", release_task, {"release": path})


def held(studio: Studio, asked: Asked) -> Response:
    """What a release holds, when it is drawn."""
    return _part(studio, asked, "held.html")


def good(studio: Studio, asked: Asked) -> Response:
    """What a release is good for, when that was found out."""
    return _part(studio, asked, "good.html")


def _part(studio: Studio, asked: Asked, template: str) -> Response:
    word = asked.query.get("release", "")
    path, found = studio.desk.open_release(word)
    return piece(template, "release", work=_drawn(studio, word, str(path), found), release_word=word)


def ask(studio: Studio, asked: Asked) -> Response:
    """Answer a question that was put together, or written."""
    word = asked.form.get("release", "")
    _, found = studio.desk.open_release(word)
    clauses = _clauses(asked)
    written = asked.form.get("condition", "").strip()
    condition = " and ".join(_clause(found, one) for one in clauses) if clauses else written
    try:
        answer = found.count(condition)
    except QueryError as error:
        facts = {"problem": error.problem, "remedy": error.remedy, "condition": condition, "clauses": clauses}
        return _shown(studio, asked, word, **facts)
    return _shown(
        *(studio, asked, word), answer=_told(answer), condition=condition, sql=_sql(condition), clauses=clauses
    )


def _clauses(asked: Asked) -> list[dict[str, str]]:
    """The comparisons of a form, those that were filled in."""
    columns = [asked.several.get(f"clause-{part}", ()) for part in ("column", "how", "value")]
    found = [
        dict(zip(("column", "how", "value"), one, strict=True))
        for one in zip(*columns, strict=False)
        if one[0] and one[2].strip()
    ]
    return found[:20]


def _clause(found: Release, one: Mapping[str, str]) -> str:
    """A comparison as it is written; what it says must be a name of the schema or a number."""
    column = {**found.schema.predictors, str(found.schema.target): None}.get(one["column"], "none")
    if column == "none":
        raise QueryError("the attribute must be one of this release", "Choose one of the list.")
    name = one["column"]
    quoted = name if name.isidentifier() and name.lower() not in WORDS else '"' + name.replace('"', '""') + '"'
    value = one["value"].strip()
    if isinstance(column, Numeric) and value != column.missing:
        how = one["how"] if one["how"] in COMPARISONS else "="
        return f"{quoted} {how} {value}"
    doubled = value.replace("'", "''")
    return f"{quoted} = '{doubled}'"


def _told(answer: Estimate) -> dict[str, float]:
    return {
        "value": answer.value,
        "half": Z95 * answer.stddev,
        "noise": Z95 * answer.noise,
        "model": Z95 * answer.model,
    }


def _sql(condition: str) -> str:
    return f"select count(*) as people from release{f' where {condition}' if condition else ''} with intervals"


def pair(studio: Studio, asked: Asked) -> Response:
    """Draw two attributes of one's choice."""
    _, found = studio.desk.open_release(asked.query.get("release", ""))
    names = [asked.query.get("one", ""), asked.query.get("other", "")]
    known = {**found.schema.predictors, **({found.schema.target: _class_of(found)} if found.schema.target else {})}
    if names[0] == names[1] or any(name not in known for name in names):
        raise MethodError("a pair must be two different attributes of the release", "Choose two.")
    down, across = (bins_of(str(name), known[str(name)], MOST_PARTS) for name in names)
    answers = found.count_many([{**row, **column} for row in down.weights() for column in across.weights()])
    shape = (len(down), len(across))
    low, _ = answers.between(0.95)
    total = max(found.count().value, 1.0)
    cells = Cells(down.labels, across.labels, answers.values.reshape(shape) / total, (low <= 0).reshape(shape))
    with DRAWING:
        svg = draw_heat_map(cells, (str(names[0]), str(names[1])), f"People by {names[0]} and {names[1]}, in percent")
    halves = Z95 * answers.stddevs.reshape(shape)
    rows = [
        (label, [f"{value:,.0f} ± {half:,.0f}" for value, half in zip(line, errors, strict=True)])
        for label, line, errors in zip(
            down.labels, answers.values.reshape(shape).tolist(), halves.tolist(), strict=True
        )
    ]
    return piece("pair.html", "release", svg=Markup(svg), rows=rows, header=across.labels, names=names)


def records(studio: Studio, asked: Asked) -> Response:
    """Show the first generalized records."""
    word = asked.query.get("release", "")
    _, found = studio.desk.open_release(word)
    made = found.records()
    rows = [list(one.values()) for one in made.slice(0, MOST_RECORDS).to_pylist()]
    return page(
        "records.html",
        studio,
        asked,
        screen="release",
        release_word=word,
        names=made.column_names,
        rows=rows,
        total=made.num_rows,
        same=(command("records", word, "--out", "records.csv"), 'release.records("pandas")'),
    )


def sample(studio: Studio, asked: Asked) -> Response:
    """Draw synthetic records, to download."""
    _, found = studio.desk.open_release(asked.form.get("release", ""))
    text = asked.form.get("rows", "").strip()
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= MOST_SAMPLED):
        raise ReleaseError(
            f"rows ({text[:20]}) must be a whole number up to {MOST_SAMPLED:,}", "Give for example 1000."
        )
    drawn, kind = found.sample(int(text)), asked.form.get("kind", "csv")
    written = io.BytesIO()
    if kind == "parquet":
        pq.write_table(drawn, written)
    else:
        pc.write_csv(pa.table({name: drawn[name].cast(pa.string()) for name in drawn.column_names}), written)
    name = "sample.parquet" if kind == "parquet" else "sample.csv"
    kinds = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(written.getvalue(), media_type="application/octet-stream", headers=kinds)


def certificate(studio: Studio, asked: Asked) -> Response:
    """The manifest as it was published, to download."""
    path, _ = studio.desk.open_release(asked.query.get("release", ""))
    plain = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    text = json.dumps(plain, indent=1, ensure_ascii=False)
    kinds = {"content-disposition": 'attachment; filename="manifest.json"'}
    return Response(text, media_type="application/json", headers=kinds)


def verify(studio: Studio, asked: Asked) -> Response:
    """Begin to check a release; with its account, where a ledger of its table lies below the folder."""
    word = asked.form.get("release", "")
    path, found = studio.desk.open_release(word)
    ledgers = [one for one in (studio.desk.folder, path.parent) if (one / f"{found.schema.name}.ledger").is_file()]
    ledger = None if studio.desk.read_only or not ledgers else str(ledgers[0] / f"{found.schema.name}.ledger")
    studio.office.begin(
        f"verify {path} {found.manifest.digest}",
        f"Verifying {word}",
        verify_task,
        {"release": str(path), "ledger": ledger},
        again=True,
    )
    return go("/release", release=word)


ROUTES = {
    ("GET", "/release"): screen(release),
    ("GET", "/release/held"): screen(held),
    ("GET", "/release/good"): screen(good),
    ("GET", "/release/pair"): screen(pair),
    ("GET", "/release/records"): screen(records),
    ("GET", "/release/certificate"): screen(certificate),
    ("POST", "/release/ask"): screen(ask),
    ("POST", "/release/sample"): screen(sample),
    ("POST", "/release/verify"): screen(verify),
}
"""The endpoints of this module, by method and path."""
