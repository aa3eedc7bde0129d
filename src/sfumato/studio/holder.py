"""The screens on which a holder says what is public: Table, Schema, the taxonomies of its columns, and Person.

What is shown of rows is for the holder's eyes. It is worked out in a process, kept in memory, and written nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

import sfumato
from sfumato import Categorical, Schema, read_comments
from sfumato.errors import SchemaError, SfumatoError
from sfumato.studio import edits
from sfumato.studio.desk import Found
from sfumato.studio.pages import Asked, Studio, command, go, literal, page, piece, screen
from sfumato.studio.tasks import draft_task, look_task
from sfumato.studio.work import Work

FIRST_ROWS = 12
"""So many rows are shown."""
MOST_COLUMNS = 60
"""Of so many columns."""
CHECKLIST = {
    "values": "No value listed here could name or betray a person; rare ones are grouped.",
    "bounds": "Bounds are round and known from elsewhere, not somebody's own value.",
    "columns": "Columns that name people, or that nobody needs, are left out.",
    "public": "I understand that this description is published with every release.",
}
"""What a person vouches for, one by one."""


def home(studio: Studio, _: Asked) -> Response:
    """Begin where the work begins."""
    if studio.desk.read_only:
        return go("/release")
    return go("/table", **({"data": studio.desk.given} if studio.desk.given else {}))


def table(studio: Studio, asked: Asked) -> Response:
    """Choose a table, or show its first rows and distributions."""
    if not asked.data:
        return page("tables.html", studio, asked, screen="table", tables=studio.desk.tables())
    found = studio.desk.find(asked.data)
    first = sfumato.raw_rows(found.table, rows=FIRST_ROWS)
    names = first.column_names[:MOST_COLUMNS]
    rows = [[row[name] for name in names] for row in first.select(names).to_pylist()]
    same = (
        command("draft", found.word) if found.text is None else command("check", found.word),
        f"import sfumato\n\nsource = sfumato.find_data({literal(found.word)})\n"
        f"first = sfumato.raw_rows(source.table, rows={FIRST_ROWS})",
    )
    return page(
        "table.html",
        studio,
        asked,
        screen="table",
        found=found,
        names=names,
        kinds=[str(first.schema.field(name).type) for name in names],
        rows=rows,
        more=len(first.column_names) - len(names),
        look=None if found.text is None else look_at(studio, found),
        same=same,
    )


def table_pictures(studio: Studio, asked: Asked) -> Response:
    """The distributions of a table's columns, when they are drawn."""
    found = studio.desk.find(asked.data)
    return piece("pictures.html", "table", look=look_at(studio, found), data=asked.data)


def look_at(studio: Studio, found: Found) -> Work:
    """Look at a table by its schema, unless that was done."""
    facts = {"table": found.opened, "schema": found.text}
    key = f"look {found.opened} {found.state} {found.version}"
    return studio.office.begin(key, "Looking at the table", look_task, facts)


def schema(studio: Studio, asked: Asked) -> Response:
    """Show the schema as a form, or how to draft one."""
    found = studio.desk.find(asked.data)
    if found.text is None:
        return _no_schema(studio, asked, found)
    return _form(studio, asked, found)


def _no_schema(studio: Studio, asked: Asked, found: Found) -> Response:
    work = studio.office.find(f"draft {found.opened} {found.state}")
    names = sfumato.raw_rows(found.table, rows=1).column_names
    same = command("draft", found.word), f"drafted = sfumato.draft({literal(found.word)}, {literal(found.name)})"
    return page("draft.html", studio, asked, screen="schema", found=found, work=work, names=names, same=same)


def _form(studio: Studio, asked: Asked, found: Found, error: SfumatoError | None = None) -> Response:
    facts = found.schema()
    rows = edits.shown(facts, read_comments(found.text or "").reasons)
    same = (
        f"$EDITOR {found.schema_path.name}   # the same file\n{command('check', found.word)}",
        f"schema = sfumato.Schema.load({literal(found.schema_path.name)})\n"
        f"fit = sfumato.check({literal(found.word)}, schema)",
    )
    return page(
        "schema.html",
        studio,
        asked,
        status=200 if error is None else 400,
        screen="schema",
        found=found,
        facts=facts,
        rows=rows if error is None else edits.overlaid(rows, asked.form),
        kinds=edits.KINDS,
        numbers=_numbers(facts),
        error=error,
        undo=studio.desk.can_undo(found),
        checklist=CHECKLIST,
        look=look_at(studio, found),
        same=same,
    )


def schema_findings(studio: Studio, asked: Asked) -> Response:
    """What a check found, column by column."""
    found = studio.desk.find(asked.data)
    facts = found.schema()
    work = look_at(studio, found)
    return piece("findings.html", "schema", look=work, numbers=_numbers(facts), data=asked.data)


def _numbers(facts: Schema) -> dict[str, int]:
    """The place of each column."""
    return {name: at for at, name in enumerate(facts.attributes)}


def draft(studio: Studio, asked: Asked) -> Response:
    """Begin to draft a schema."""
    found, form = studio.desk.find(asked.data), asked.form
    book = form.get("codebook", "").strip()
    facts = {key: form.get(key, "").strip() for key in ("target", "decimal", "date_format", "budget")}
    facts |= {"table": found.opened, "codebook": str(studio.desk.place(book)) if book else ""}
    studio.office.begin(
        f"draft {found.opened} {found.state}",
        "Drafting a schema",
        draft_task,
        facts,
        again=True,
        then=lambda result: studio.desk.write_text(found, found.version, result["text"]),
    )
    return go("/schema", data=asked.data)


def save_schema(studio: Studio, asked: Asked) -> Response:
    """Write what the form says; a form that is refused is shown again as it was filled in."""
    found = studio.desk.find(asked.data)
    try:
        changed = edits.changed(found.schema(), asked.form, studio.desk.earlier(found))
        if changed.plain() | {"confirmed": True} != found.schema().plain() | {"confirmed": True}:
            studio.desk.write_schema(found, asked.form.get("version", ""), changed)
    except SfumatoError as error:
        return _form(studio, asked, found, error)
    return go("/schema", data=asked.data)


def undo_schema(studio: Studio, asked: Asked) -> Response:
    """Take the last change back."""
    studio.desk.undo(studio.desk.find(asked.data), asked.form.get("version", ""))
    return go(asked.form.get("back", "/schema") if asked.form.get("back") == "/person" else "/schema", data=asked.data)


def confirm_schema(studio: Studio, asked: Asked) -> Response:
    """Confirm a schema, when each point of the checklist is ticked and its check has been seen."""
    found = studio.desk.find(asked.data)
    missing = [one for one in CHECKLIST if not asked.form.get(f"sure-{one}")]
    if missing:
        raise SchemaError("every point of the checklist must be ticked", "Read them, and tick what is true.")
    look = look_at(studio, found)
    if look.working:
        raise SchemaError("the check must be done before a schema is confirmed", "Wait for it, then confirm.")
    betrays = look.state == "done" and any(one["betrays"] for one in look.result["findings"])
    if betrays and not asked.form.get("despite"):
        raise SchemaError("the warnings of the check must be solved or vouched for", "Tick that you have read them.")
    studio.desk.write_schema(found, asked.form.get("version", ""), edits.confirmed(found.schema()))
    return go("/person", data=asked.data)


def taxonomy(studio: Studio, asked: Asked) -> Response:
    """Show a column's taxonomy as an outline."""
    found = studio.desk.find(asked.data)
    return _taxonomy(studio, asked, found, None)


def _taxonomy(studio: Studio, asked: Asked, found: Found, error: SfumatoError | None) -> Response:
    facts, name = found.schema(), asked.form.get("column") or asked.query.get("column", "")
    text = edits.outline(edits.nested_of(facts, name))
    columns = [one for one, column in facts.attributes.items() if isinstance(column, Categorical)]
    same = (
        command("taxonomy", "export", found.schema_path.name, name, "--out", f"{name}.csv"),
        f"schema.attributes[{literal(name)}].tree.hierarchy",
    )
    return page(
        "taxonomy.html",
        studio,
        asked,
        status=200 if error is None else 400,
        screen="schema",
        found=found,
        column=name,
        columns=columns,
        outline=text if error is None else asked.form.get("outline", text),
        error=error,
        same=same,
    )


def save_taxonomy(studio: Studio, asked: Asked) -> Response:
    """Write an outline, or a hierarchy file that was sent, as a column's taxonomy."""
    found, name = studio.desk.find(asked.data), asked.form.get("column", "")
    try:
        sent = asked.files.get("hierarchy", b"")
        nested = edits.read_hierarchy(sent) if sent else edits.read_outline(asked.form.get("outline", ""))
        changed = edits.with_taxonomy(found.schema(), name, nested)
        studio.desk.write_schema(found, asked.form.get("version", ""), changed)
    except SfumatoError as error:
        return _taxonomy(studio, asked, found, error)
    return go("/taxonomy", data=asked.data, column=name)


def person(studio: Studio, asked: Asked) -> Response:
    """Ask what a row is about."""
    found = studio.desk.find(asked.data)
    facts = found.schema()
    plain: Mapping[str, Any] = facts.plain()
    named, rows = plain.get("person"), plain.get("rows_per_person", 1)
    keys = f"person: {named or 'patient'}\nrows_per_person: {rows}"
    lines = f"# in {found.schema_path.name}\n{keys}\n" if "person" in Schema.model_fields else ""
    python = f"schema = sfumato.Schema.load({literal(found.schema_path.name)})"
    same = f"{lines}{command('check', found.word)}", python
    return page(
        "person.html",
        studio,
        asked,
        screen="person",
        found=found,
        facts=facts,
        named=named,
        rows=rows,
        able="person" in Schema.model_fields,
        same=same,
    )


def save_person(studio: Studio, asked: Asked) -> Response:
    """Write what a row is about."""
    found, form = studio.desk.find(asked.data), asked.form
    column = form.get("column", "") if form.get("about") == "person" else ""
    changed = edits.with_person(found.schema(), column, form.get("rows", "").strip())
    if changed.plain() | {"confirmed": True} != found.schema().plain() | {"confirmed": True}:
        studio.desk.write_schema(found, form.get("version", ""), changed)
        return go("/schema", data=asked.data)
    return go("/plan", data=asked.data)


ROUTES = {
    ("GET", "/"): screen(home),
    ("GET", "/table"): screen(table),
    ("GET", "/table/pictures"): screen(table_pictures),
    ("GET", "/schema"): screen(schema),
    ("POST", "/schema"): screen(save_schema),
    ("GET", "/schema/findings"): screen(schema_findings),
    ("POST", "/schema/draft"): screen(draft),
    ("POST", "/schema/undo"): screen(undo_schema),
    ("POST", "/schema/confirm"): screen(confirm_schema),
    ("GET", "/taxonomy"): screen(taxonomy),
    ("POST", "/taxonomy"): screen(save_taxonomy),
    ("GET", "/person"): screen(person),
    ("POST", "/person"): screen(save_person),
}
"""The endpoints of this module, by method and path."""
