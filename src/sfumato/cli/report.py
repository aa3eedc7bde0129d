"""The command that writes a page about a release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from sfumato.cli.data import find_data, refuse_other_schema
from sfumato.cli.evaluate import find_scorecard
from sfumato.cli.recipients import release_argument
from sfumato.cli.show import Show, reporting
from sfumato.errors import ReleaseError
from sfumato.io.encode import encode, refuse_misfits
from sfumato.io.tables import open_table
from sfumato.pictures.canvas import refuse_pictureless
from sfumato.release.release import Release
from sfumato.report import Evaluated
from sfumato.report import report as page_of
from sfumato.storage import staged_file

SUFFIXES = (".html", ".htm")


@click.command()
@release_argument
@click.option(
    "--with", "data", type=click.Path(), help="The table that was published: adds the scorecard and true counts, "
    "for the holder's eyes only."
)  # fmt: skip
@click.option("--out", type=click.Path(), help="The .html file to write [default: release.html beside release/].")
@reporting
def report(release: str, data: str | None, out: str | None, show: Show) -> None:
    """Write one page about a release that opens without a network: its promise, ledger, shape and distributions.

    Made from the release alone it is as public as the release; made --with the table it is not private.
    """
    refuse_pictureless()
    opened, folder = Release.load(release), Path(release).resolve()
    place = Path(out) if out else folder.with_name(f"{folder.name}.html")
    if not place.name.lower().endswith(SUFFIXES):
        raise ReleaseError(f"out ({str(place)[:200]}) must end in .html", "Name the file accordingly.")
    with show.working() as watch, staged_file(place) as staging:
        evaluated = None if data is None else _evaluated(opened, data, watch)
        watch("drawing")
        staging.write_text(page_of(opened, folder.name, evaluated), encoding="utf-8")
    told = "It is as public as the release." if data is None else "It is NOT private: for the holder's eyes only."
    plain = {"out": str(place), "public": data is None, "digest": opened.manifest.digest}
    show.result(plain, f"wrote {place}\n{told}")


def _evaluated(release: Release, data: str, watch: Callable[[str], None]) -> Evaluated:
    """Measure the release by its table, and code the table's rows."""
    source = find_data(data)
    refuse_other_schema(release.schema, source)
    card = find_scorecard("report --with")(release, source.table, watch=watch)
    coded = encode(open_table(source.table), release.schema)
    refuse_misfits(coded)
    return Evaluated(card, coded.columns)
