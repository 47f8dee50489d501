"""Croissant 1.1 with the fields for responsible AI: a data set as machines read it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from curation.summary.document import template
from curation.summary.figures import Figure

_CONFORMS = ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]
#: Statements of what was done to the documents.
_PROTOCOL = ("processing", "missing", "opt_outs")
_PARQUET = "application/x-parquet"
_DOCUMENTS = "documents"


def croissant(
    name: str,
    folder: str,
    schema: pa.Schema,
    figures: Mapping[str, Figure],
    texts: Mapping[str, str],
    answers: Mapping[str, str],
    root: str,
) -> dict[str, Any]:
    """Return the JSON-LD of the documents in a folder of the run.

    Columns that hold structures are left out. `to add` marks a missing answer.
    """
    days = sorted(day for row in figures["collections"].rows for day in row[-2:] if day)
    fields = [field for field in schema if _kind(field.type)]
    return {
        "@context": template("croissant_context"),
        "@type": "sc:Dataset",
        "conformsTo": _CONFORMS,
        "name": name,
        "description": answers.get("purpose", f"Documents that the recipe {name} curated."),
        "url": answers.get("channel", f"urn:sha256:{root}"),
        "license": answers.get("licence", "to add"),
        "creator": {"@type": "sc:Organization", "name": answers.get("creators", "to add")},
        "citeAs": answers.get("citation", f"to add (run {root})"),
        "version": f"1.0.0+{root[:12]}",
        **({"datePublished": days[-1]} if days else {}),
        "inLanguage": [row[0] for row in figures["by_language"].rows if row[0]]
        if "by_language" in figures
        else [],
        "rai:dataCollection": texts["crawlers"] or texts["instances"],
        "rai:dataCollectionType": ["Web Scraping"],
        **({"rai:dataCollectionTimeFrame": [days[0], days[-1]]} if days else {}),
        "rai:dataCollectionRawData": texts["raw_saved"],
        "rai:dataPreprocessingProtocol": [texts[n] for n in _PROTOCOL],
        "rai:dataUseCases": [answers.get("used_for", "to add")],
        "rai:dataLimitations": [answers.get("risks", "to add")],
        "rai:dataBiases": [answers.get("risks", "to add")],
        "rai:dataSocialImpact": answers.get("impact", "to add"),
        "rai:personalSensitiveInformation": [texts["personal_data"]],
        "rai:dataReleaseMaintenancePlan": answers.get("updates", "to add"),
        "distribution": [
            {
                "@type": "cr:FileSet",
                "@id": _DOCUMENTS,
                "name": _DOCUMENTS,
                "encodingFormat": _PARQUET,
                "includes": f"{folder}/*.parquet",
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "texts",
                "name": "texts",
                "key": {"@id": "texts/id"},
                "field": _fields(fields),
            }
        ],
    }


def _fields(fields: Sequence[pa.Field]) -> list[dict[str, Any]]:
    return [
        {
            "@type": "cr:Field",
            "@id": f"texts/{field.name}",
            "name": field.name,
            "dataType": _kind(field.type),
            "source": {"fileSet": {"@id": _DOCUMENTS}, "extract": {"column": field.name}},
        }
        for field in fields
    ]


def _kind(kind: pa.DataType) -> str | None:
    """Croissant's name of a column's type; None for structures and lists."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "sc:Text"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    if pa.types.is_floating(kind):
        return "sc:Float"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "sc:DateTime"
    return "sc:Boolean" if pa.types.is_boolean(kind) else None
