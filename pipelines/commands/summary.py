"""`curate summary`: write the training-data documents that must be published, from a run."""

from __future__ import annotations

import argparse
import csv
import io
import json
from pathlib import Path
from typing import Any

import yaml

from curation.config import parse_yaml
from curation.errors import ConfigError
from curation.summary.croissant import croissant
from curation.summary.document import (
    card,
    check_answers,
    filled,
    markdown,
    metadata,
    template,
    to_add,
)
from curation.summary.figures import Figure
from curation.summary.statements import sign, statements
from pipelines.commands.options import add_dry_run, add_json, add_run, end_dry_run
from pipelines.reading.summary import RunFacts, bill_of_materials
from pipelines.run_folder import SUMMARY
from pipelines.storage.files import SCRATCH, Folder
from pipelines.terminal import say, say_json

#: The Commission's template and the datasheet.
EU, DATASHEET = "eu-summary", "datasheet"
BILL, SIGNATURE = "bom.cdx.json", "bom.cdx.json.sig"
#: Figures with more rows than a document shows are also written as CSV files.
_SHOWN_ROWS = 25


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_run(parser)
    parser.add_argument("--output", metavar="DIR", help=f"folder (default: {SUMMARY} in the run)")
    parser.add_argument(
        "--mix", default="", metavar="NAME", help="a named mix (default: the main mix)"
    )
    parser.add_argument(
        "--answers", metavar="FILE", help="YAML file with the answers that a person gives, by field"
    )
    parser.add_argument(
        "--sign", metavar="KEY", help="sign the bill of materials with an Ed25519 key (PEM)"
    )
    add_json(parser)
    add_dry_run(parser)
    parser.set_defaults(command=summary)


def summary(options: argparse.Namespace) -> int:
    """Count, write the files, and list the fields that a person must fill in."""
    facts = RunFacts.of(options.run, options.mix)
    answers = _answers(options.answers)
    templates = {EU: template("eu"), DATASHEET: template("datasheet")}
    check_answers(answers, list(templates.values()))
    key = _read(options.sign) if options.sign else b""
    folder = Folder(options.output) if options.output else facts.folder / SUMMARY
    end_dry_run(options, folder)
    figures = facts.figures()
    texts = statements(
        figures,
        facts.recipe,
        facts.stages,
        {n: v for m in facts.manifests.values() for n, v in m.get("software", {}).items()},
        facts.schema.names,
        facts.root,
    )
    name = facts.manifests[facts.texts].get("recipe", {}).get("name", "run")
    run = {"recipe": name, "mix": facts.mix or "main", "root": facts.root}
    documents = {
        file: filled(form, texts, figures, answers, run) for file, form in templates.items()
    }
    _write_documents(folder, documents, figures)
    _write_data_set(folder, facts, name, figures, texts, answers, documents)
    data = _json(bill_of_materials(options.run))
    folder.write_bytes(BILL, data)
    if key:
        folder.write_bytes(SIGNATURE, sign(data, key, options.sign))
    else:
        folder.remove(SIGNATURE)
    folder.remove(SCRATCH)
    _say(options, folder, to_add(documents[EU]))
    return 0


def _write_documents(
    folder: Folder, documents: dict[str, dict[str, Any]], figures: dict[str, Figure]
) -> None:
    for name, document in documents.items():
        folder.write_bytes(f"{name}.json", _json(document))
        folder.write_bytes(f"{name}.md", markdown(document).encode())
    for name, figure in figures.items():
        if len(figure.rows) > _SHOWN_ROWS or name.startswith("top_hosts"):
            folder.write_bytes(f"{name}.csv", _csv(figure))


def _write_data_set(
    folder: Folder,
    facts: RunFacts,
    name: str,
    figures: dict[str, Figure],
    texts: dict[str, str],
    answers: dict[str, str],
    documents: dict[str, dict[str, Any]],
) -> None:
    """Write Croissant and the Hub's card, with paths relative to the run folder."""
    place = f"{facts.texts}/documents"
    described = croissant(name, place, facts.schema, figures, texts, answers, facts.root)
    folder.write_bytes("croissant.json", _json(described))
    head = metadata(name, place, figures, answers)
    folder.write_bytes("README.md", card(head, markdown(documents[DATASHEET])).encode())


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _csv(figure: Figure) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(figure.columns)
    writer.writerows(figure.rows)
    return text.getvalue().encode()


def _answers(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        found = parse_yaml(_read(path).decode())
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: expected a mapping of fields to texts")
    return found


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None


def _say(options: argparse.Namespace, folder: Folder, left: dict[str, str]) -> None:
    if options.json:
        say_json({"folder": folder.url, "files": folder.names(), "to_add": left})
        return
    say(f"{folder.shown}: {', '.join(folder.names())}")
    say(f"fields still to be filled in (--answers): {', '.join(left)}")
