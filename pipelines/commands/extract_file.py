"""`curate extract-file`: extract the main content of one page and explain the decisions."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.credentials import without_userinfo
from curation.errors import ConfigError, InputError
from curation.extract.engines import check_installed
from curation.extract.extract_settings import ExtractSettings
from curation.extract.extraction import Extraction
from curation.extract.safe import Refused, extract_page
from curation.readers.charset import is_binary, utf8_html
from curation.readers.http import looks_like_html
from curation.readers.records import Page
from curation.readers.settings import ReaderSettings
from curation.recipe import load
from pipelines.commands.options import add_flag, add_set
from pipelines.terminal import hand_over, say, say_json, snippet, tell

if TYPE_CHECKING:
    from curation.extract.explain import Explanation

#: Characters shown of a block.
_SNIPPET = 100


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    parser.add_argument(
        "page",
        metavar="PAGE",
        help="an HTML or PDF file, - for standard input, or a record of an archive as FILE@OFFSET",
    )
    parser.add_argument("--url", metavar="URL", help="URL of the page")
    parser.add_argument("--recipe", default="llama3", metavar="RECIPE", help="default: llama3")
    parser.add_argument("--engine", metavar="NAME", help="engine to use instead of the recipe's")
    add_flag(parser, "--markdown", "print Markdown instead of plain text")
    add_set(parser, "the recipe", "extract.comments=false")
    add_flag(parser, "--json", "print text, title and metadata as JSON")
    text = "print every block with its decision and reason; with --json also what was measured"
    add_flag(parser, "--explain", text)


def run(options: argparse.Namespace) -> int:
    """Extract one page; print its text, its blocks or JSON."""
    assignments = [*options.assignments]
    if options.engine:
        assignments.append(f"extract.engine={options.engine}")
    if options.markdown:
        assignments.append("extract.markdown=true")
    recipe = load(options.recipe, assignments)
    settings = recipe.extract
    for option in ("explain", "markdown"):
        if getattr(options, option) and settings.engine != "curation":
            raise ConfigError(f"--{option} needs the engine curation, not {settings.engine}")
    check_installed(settings.engine)
    page = _page(options, recipe.readers.model_copy(update={"pdf": True}))
    found = _extraction(options.page, page, settings)
    explained = _explained(options.page, page, settings) if options.explain else None
    if options.json:
        say_json(_facts(page, settings, found) | (asdict(explained) if explained else {}))
    elif explained:
        _print_blocks(explained)
    elif found.text:
        hand_over(found.text)
    else:
        tell(f"{options.page}: no main text found")
    return 0


def _page(options: argparse.Namespace, readers: ReaderSettings) -> Page:
    name = options.page
    if name == "-":
        return _html(sys.stdin.buffer.read(), options)
    if "://" in name:
        raise ConfigError(f"{name}: a URL; download the page and name the file")
    path, at, offset = name.rpartition("@")
    if at and offset.lstrip("-").isdigit() and not Path(name).exists():
        if not Path(path).exists():
            raise ConfigError(f"{path}: no such file")
        from curation.readers.read import read_at  # here and below: tables and archives

        return read_at(path, int(offset), readers)
    try:
        content = Path(name).read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{name}: no such file") from None
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror}") from None
    if not content:
        raise ConfigError(f"{name}: the file is empty")
    if looks_like_html(content):
        return _html(content, options)
    from curation.readers.read import read

    first = next((event for event in read(name, readers) if isinstance(event, Page)), None)
    if first is None:
        return _html(content, options)
    if first.record_id or first.status is not None or first.fields is not None:
        raise ConfigError(f"{name}: contains several pages; name one as {name}@{first.offset}")
    if first.kind == "pdf":
        return first
    return _html(first.content, options)


def _html(content: bytes, options: argparse.Namespace) -> Page:
    if is_binary(content):
        raise ConfigError(f"{options.page}: a binary file, neither HTML nor text")
    return Page(options.url or "", content=content)


def _extraction(name: str, page: Page, settings: ExtractSettings) -> Extraction:
    answer: Any
    if settings.engine == "curation" and page.kind != "pdf":
        answer = extract_page(settings, page)
    else:
        from pipelines.extract import guarded  # the stage, for what has a process of its own

        answer = guarded(settings).map([page])[0]
    if isinstance(answer, Extraction):
        return answer
    if isinstance(answer, Refused):
        limit = f"{answer.value:,.0f} is over {answer.threshold:,.0f}"
        raise InputError(f"{name}: {answer.reason}: {limit}")
    engine = "PDFium" if page.kind == "pdf" else f"the engine {settings.engine}"
    raise InputError(f"{name}: {engine} failed: {answer.detail}")


def _explained(name: str, page: Page, settings: ExtractSettings) -> Explanation:
    from curation.extract.explain import explain  # compiled kernels

    if page.kind != "html":
        raise ConfigError(f"{name}: only HTML has blocks to explain")
    return explain(utf8_html(page.content, page.charset)[0], settings)


def _print_blocks(explained: Explanation) -> None:
    for note in explained.notes:
        say(note)
    for block in explained.blocks:
        say(f"{'kept' if block.kept else 'removed'}: {block.reason}  {block.path}")
        say(f"    {snippet(block.text, _SNIPPET)}")


def _facts(page: Page, settings: ExtractSettings, found: Extraction) -> dict[str, object]:
    return {
        "url": without_userinfo(page.url) or None,
        "title": found.title,
        "language_hint": found.language,
        "encoding": found.encoding,
        "code_languages": list(found.code_languages),
        "engine": str(settings.engine),
        "characters": len(found.text),
        "text": found.text,
    }
