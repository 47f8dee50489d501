"""`curate new`: create a custom rule or stage with a test and the lines for a recipe."""

import argparse
import keyword
import re
from pathlib import Path

from curation.errors import ConfigError
from curation.recipe import STAGES
from pipelines.commands.options import add_dry_run, end_dry_run
from pipelines.terminal import say

_RULE = '''"""A rule of a recipe: a number for each text."""


def {name}(texts: list[str], letter: str = "!") -> list[float]:
    """Occurrences of a letter per 100 characters."""
    return [100 * text.count(letter) / max(1, len(text)) for text in texts]
'''
_RULE_TEST = """from {name} import {name}


def test_{name}():
    assert {name}(["ab!!", "", "calm"]) == [50.0, 0.0, 0.0]
"""
_RULE_LINES = """filter:
  rules:
    mine:
      {stage}: {{python: "{name}.py:{name}", settings: {{letter: "!"}}, max: 2}}"""

_STAGE = '''"""A stage of a recipe: it measures documents, and removes some."""

import pyarrow as pa
import pyarrow.compute as pc
from curation.judging import Judged


def {name}(batch: pa.RecordBatch, most: int = 100_000) -> Judged:
    """Add the column `characters`, and remove documents with more than `most`."""
    characters = pc.utf8_length(batch["text"])
    reason = pc.if_else(pc.greater(characters, most), "too_long", None)
    return Judged({{"characters": characters}}, reason, value=characters, threshold=most)
'''
_STAGE_TEST = """import pyarrow as pa
from {name} import {name}


def test_{name}():
    judged = {name}(pa.record_batch({{"text": ["short", "much longer"]}}), most=5)
    assert judged.reason.to_pylist() == [None, "too_long"]
    assert judged.columns["characters"].to_pylist() == [5, 11]
"""
_STAGE_LINES = """stages: [..., {stage}, ...]
{stage}: {{python: "{name}.py:{name}", settings: {{most: 50000}}, adds: [characters]}}"""

_KINDS = {
    "rule": (_RULE, _RULE_TEST, _RULE_LINES),
    "stage": (_STAGE, _STAGE_TEST, _STAGE_LINES),
}


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    parser.add_argument("kind", choices=list(_KINDS), help="what to create")
    parser.add_argument("name", metavar="NAME", help="name of the function and its file")
    parser.add_argument("--output", default=".", metavar="DIR", help="folder (default: here)")
    add_dry_run(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file and its test; print the lines for the recipe."""
    name = options.name.replace("-", "_")
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise ConfigError(f"{options.name}: a name consists of lower-case letters, digits and _")
    if keyword.iskeyword(name) or (options.kind == "stage" and name.replace("_", "-") in STAGES):
        raise ConfigError(f"{options.name}: this name is taken; choose another")
    code, test, lines = _KINDS[options.kind]
    folder = Path(options.output)
    files = {folder / f"{name}.py": code, folder / f"test_{name}.py": test}
    end_dry_run(options, *files, known=None)
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        file.write_text(content.format(name=name), encoding="utf-8")
    say(f"wrote {' and '.join(map(str, files))}; to use it, add to a recipe in the same folder:\n")
    say(lines.format(name=name, stage=name.replace("_", "-" if options.kind == "stage" else "_")))
    return 0
