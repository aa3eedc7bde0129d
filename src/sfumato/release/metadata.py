"""The files of a release that are for machines: Croissant, a Data Package, and an entry for a registry of deployments.

All of them are made of the schema, the manifest and what the holder said about the release, so that whoever has the
folder can write them again. Croissant is of version 1.1 (MLCommons), Data Package of version 1 (Frictionless). The
entry follows the Differential Privacy Deployments Registry: what it asks for in its three tiers, in its order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sfumato.release.about import About
from sfumato.release.manifest import Manifest
from sfumato.release.readme import dictionary_rows
from sfumato.release.records import harmless
from sfumato.release.release import Release
from sfumato.schema.schema import variables_of

RECORDS = "records.parquet"
TYPES = {"string": "sc:Text", "date": "sc:Date", "integer": "sc:Integer", "number": "sc:Float"}
"""The types of Croissant, by those of a dictionary."""
FORMATS = {".parquet": "application/x-parquet", ".csv": "text/csv"}
CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataBiases": "cr:dataBiases",
    "dataCollection": "cr:dataCollection",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "personalSensitiveInformation": "cr:personalSensitiveInformation",
    "prov": "http://www.w3.org/ns/prov#",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""What names in a Croissant file stand for."""


def croissant(release: Release, digests: Mapping[str, str]) -> str:
    """Describe the tables of a release as a Croissant data set, given the digests of all files of tables."""
    about, manifest = About.parse(release.manifest.about), release.manifest
    tables = _tables(release, digests)
    plain = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": about.title or release.schema.name,
        "description": about.description or _described(manifest),
        "version": about.version or "1.0.0",
        "datePublished": about.date or None,
        "license": about.licence or None,
        "url": about.url or None,
        "citeAs": about.citation or None,
        "keywords": list(about.keywords) or None,
        "publisher": {"@type": "sc:Organization", "name": about.publisher} if about.publisher else None,
        "creator": {"@type": "sc:Organization", "name": about.publisher} if about.publisher else None,
        "identifier": f"https://doi.org/{about.doi}" if about.doi else None,
        "rai:personalSensitiveInformation": manifest.guarantee,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "encodingFormat": FORMATS[name[name.rindex(".") :]],
                "sha256": digests[name],
            }
            for name in tables
        ],
        "recordSet": [_record_set(name, rows) for name, rows in tables.items()],
    }
    return _json({key: value for key, value in plain.items() if value is not None})


def _tables(release: Release, digests: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    """The files of tables, and what is known of each of their columns."""
    rows, own = dictionary_rows(release), variables_of(release.schema)
    tables = {RECORDS: [row | ({"type": "string"} if row["column"] in own else {}) for row in rows]}
    people = [name for name in digests if name.startswith("synthetic.")]
    return tables | {name: [_as_written(row, name) for row in rows if row["column"] in own] for name in people}


def _as_written(row: dict[str, Any], file: str) -> dict[str, Any]:
    """What is known of a column, by the name that it has in a file: in CSV, names are no formulas either."""
    return row | {"column": harmless(row["column"])} if file.endswith(".csv") else row


def _record_set(file: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    name = file.rpartition(".")[0]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{row['column'] if row['column'].isidentifier() else number}",
                "name": row["column"],
                "description": row["title"] or row["column"],
                "dataType": TYPES[row["type"]],
                "source": {"fileObject": {"@id": file}, "extract": {"column": row["column"]}},
            }
            for number, row in enumerate(rows)
        ],
    }


def data_package(release: Release, digests: Mapping[str, str]) -> str:
    """Describe the tables of a release as a Data Package."""
    about = About.parse(release.manifest.about)
    plain = {
        "profile": "data-package",
        "name": _slug(about.title or release.schema.name),
        "title": about.title or release.schema.name,
        "description": about.description or _described(release.manifest),
        "version": about.version or None,
        "created": f"{about.date}T00:00:00Z" if about.date else None,
        "homepage": about.url or None,
        "licenses": [_licence(about.licence)] if about.licence else None,
        "contributors": [{"title": about.publisher, "role": "publisher"}] if about.publisher else None,
        "keywords": list(about.keywords) or None,
        "resources": [_resource(name, rows, digests[name]) for name, rows in _tables(release, digests).items()],
    }
    return _json({key: value for key, value in plain.items() if value is not None})


def _resource(file: str, rows: list[dict[str, Any]], digest: str) -> dict[str, Any]:
    name, _, ending = file.rpartition(".")
    return {
        "name": name,
        "type": "table",
        "path": file,
        "format": ending,
        "mediatype": FORMATS[f".{ending}"],
        "hash": f"sha256:{digest}",
        "schema": {"fields": [_field(row) for row in rows], "missingValues": [""]},
    }


def _field(row: Mapping[str, Any]) -> dict[str, Any]:
    field = {"name": row["column"], "type": row["type"]}
    return field | ({"title": row["title"]} if row["title"] else {})


def _licence(licence: str) -> dict[str, str]:
    return {"path": licence} if "://" in licence else {"name": licence.replace(" ", "-")}


def _slug(text: str) -> str:
    kept = "".join(one if one.isascii() and one.isalnum() else "-" for one in text.lower())
    return "-".join(filter(None, kept.split("-"))) or "release"


def _described(manifest: Manifest) -> str:
    return f"A release made by Sfumato. {manifest.guarantee}"


def deployment(release: Release) -> str:
    """Write what a registry of deployments asks for, tier by tier; nothing that nobody has said is made up."""
    from sfumato.schema.yaml import write_yaml

    about, manifest = About.parse(release.manifest.about), release.manifest
    promise, private = manifest.promise, manifest.promise is None
    plain = {
        "tier_1": {
            "deployment_name": about.title or release.schema.name,
            "data_curator": about.publisher or None,
            "intended_use": about.purpose or None,
            "data_product": about.description or "generalized records, synthetic records and answers to counts",
            "publication_date": about.date or None,
            "links": [one for one in (about.url, f"https://doi.org/{about.doi}" if about.doi else "") if one],
            "contact": about.contact or None,
        },
        "tier_2": {
            "dp_flavor": "pure differential privacy" if promise is None else f"none: {promise.model}",
            "privacy_unit": manifest.neighbours if private else None,
            "privacy_loss": {"epsilon": str(manifest.epsilon), "delta": "0"} if private else None,
            "guarantee": manifest.guarantee,
            "deployment_model": "central: a trusted curator holds the table",
        },
        "tier_3": {
            "data_domain": f"{len(variables_of(release.schema))} attributes with public lists of values (schema.json)",
            "unprotected_quantities": "the schema, the method and its parameters, which are public beforehand",
            "accounting": {
                "composition": "sequential over rounds, parallel over the disjoint cells of a round",
                "rounds": len(manifest.debits),
                "post_processing": "everything but measurements.parquet and structure.json follows from these",
                "lifetime_budget": None if release.schema.budget is None else str(release.schema.budget),
            },
            "implementation": {
                "software": f"Sfumato {manifest.version}",
                "mechanisms": sorted({one.mechanism for one in manifest.debits}),
                "method": manifest.method,
                "parameters": {name: str(value) for name, value in manifest.parameters.items()},
                "randomness": "operating system" if manifest.secure else "a known seed: no guarantee",
                "arithmetic": "exact: integers and fractions, no floating point between counts and noise",
            },
        },
    }
    return write_yaml(plain)


def _json(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
