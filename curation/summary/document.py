"""Documents with sections and fields, filled from figures, statements, and what a person adds.

One is the data set card of the Hugging Face Hub."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import yaml

from curation.config import nearest, read_yaml
from curation.errors import ConfigError
from curation.resources import root
from curation.summary.figures import Figure

#: Marks where a person must add something.
TO_ADD = "TO ADD"
#: Answers that are in no field: of Croissant, and of the Hub's card.
_ELSEWHERE = ("citation", "hub_licence")
#: Rows of a table in Markdown; more are in the JSON, or in a file of their own.
_ROWS = 25


def template(name: str) -> dict[str, Any]:
    """Return the template of that name in `configs/summary`."""
    found: dict[str, Any] = read_yaml(root() / "configs" / "summary" / f"{name}.yaml")
    return found


def check_answers(answers: Mapping[str, str], templates: list[dict[str, Any]]) -> None:
    """Raise ConfigError for an answer to no field of the templates."""
    fields = (field for t in templates for s in t["sections"] for field in s["fields"])
    known = [*(field["id"] for field in fields), *_ELSEWHERE]
    for name, text in answers.items():
        if name not in known:
            raise ConfigError(f"answers: {name}: no such field{nearest(name, known)}")
        if not isinstance(text, str):
            raise ConfigError(f"answers: {name}: expected a text, found {text!r}")


def filled(
    template: Mapping[str, Any],
    texts: Mapping[str, str],
    figures: Mapping[str, Figure],
    answers: Mapping[str, str],
    run: Mapping[str, str],
) -> dict[str, Any]:
    """Return a document: sections with fields, each with `text`, `figures`, `added`, `to_add`.

    Optional fields without an answer are left out, and so are figures that the run does not have.
    """
    sections = [
        {
            "title": section["title"],
            "fields": [
                _field(field, texts, figures, answers)
                for field in section["fields"]
                if field["id"] in answers or not field.get("optional")
            ],
        }
        for section in template["sections"]
    ]
    return {"title": template["title"], "run": dict(run), "sections": sections}


def _field(
    field: Mapping[str, Any],
    texts: Mapping[str, str],
    figures: Mapping[str, Figure],
    answers: Mapping[str, str],
) -> dict[str, Any]:
    found: dict[str, Any] = {"id": field["id"], "label": field["label"]}
    if "text" in field or "says" in field:
        found["text"] = field["says"] if "says" in field else texts[field["text"]]
    own = {name: figures[name].as_dict() for name in field.get("figures", ()) if name in figures}
    if own:
        found["figures"] = own
    if field["id"] in answers:
        found["added"] = answers[field["id"]]
    elif "person" in field:
        found["to_add"] = field["person"]
    return found


def markdown(document: Mapping[str, Any]) -> str:
    """Return a document as Markdown: every table of numbers is followed by its SQL."""
    lines = [f"# {document['title']}", ""]
    lines += [f"- {key}: `{value}`" for key, value in document["run"].items()]
    for section in document["sections"]:
        lines += ["", f"## {section['title']}"]
        for field in section["fields"]:
            lines += ["", *_field_lines(field)]
    return "\n".join(lines) + "\n"


def _field_lines(field: Mapping[str, Any]) -> Iterator[str]:
    yield f"**{field['label']}**"
    for key in ("text", "added"):
        if key in field:
            yield from ("", field[key].rstrip())
    if "to_add" in field:
        yield from ("", f"> **{TO_ADD}** (`{field['id']}`): {field['to_add']}")
    for name, figure in field.get("figures", {}).items():
        yield from ("", f"*{name.replace('_', ' ').capitalize()}*")
        yield from _table(figure)
        if len(figure["rows"]) > _ROWS:
            yield from ("", f"{len(figure['rows']):,} rows in all: `{name}.csv`")
        yield from ("", "```sql", figure["sql"], "```")


def _table(figure: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", _row(figure["columns"]), _row(["---"] * len(figure["columns"])))
    yield from (_row(row) for row in figure["rows"][:_ROWS])


def _row(cells: Any) -> str:
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "(none)"
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def to_add(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields that a person must fill, with what is asked."""
    fields = (field for section in document["sections"] for field in section["fields"])
    return {field["id"]: field["to_add"] for field in fields if "to_add" in field}


#: Size categories of the Hub: documents below a thousand, ten thousand, ...
_BOUNDS = [f"{n}{unit}" for unit in "KMBT" for n in (1, 10, 100)][:10]
_SIZES = ("n<1K", *(f"{low}<n<{high}" for low, high in pairwise(_BOUNDS)), "n>1T")
#: Codes that the Hub takes: ISO 639-1 to 639-3.
_CODE = re.compile(r"[a-z]{2,3}")


def metadata(
    name: str, folder: str, figures: Mapping[str, Figure], answers: Mapping[str, str]
) -> dict[str, Any]:
    """Return the metadata of the card."""
    documents = figures["size"].value("documents")
    rows = figures["by_language"].rows if "by_language" in figures else ()
    codes = (_CODE.match(row[0]) for row in rows)
    languages = sorted({code[0] for code in codes if code})
    return {
        "pretty_name": name,
        "license": answers.get("hub_licence", "unknown"),
        **({"language": languages} if languages else {}),
        "task_categories": ["text-generation"],
        "size_categories": [_SIZES[min(max(len(str(documents)) - 3, 0), len(_BOUNDS))]],
        "tags": ["curation", "pretraining"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": "train", "path": f"{folder}/*.parquet"}],
            }
        ],
    }


def card(head: Mapping[str, Any], body: str) -> str:
    """Return README.md: metadata, and the body in Markdown."""
    front = yaml.safe_dump(dict(head), sort_keys=False, allow_unicode=True)
    return f"---\n{front}---\n\n{body}"
