"""The site's hook: generate the reference that code knows; turn links out of `docs/` into paths.

`<!-- generated: NAME -->` in a page stands for what a function of `GENERATED` returns as Markdown.
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterable, Iterator
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)[^)]*\)")
_GENERATED = re.compile(r"<!-- generated: ([a-z]+) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page with generated parts, and `text (path)` in place of links out of `docs/`."""
    whole = _GENERATED.sub(lambda found: GENERATED[found[1]](), markdown)
    return _OUTSIDE.sub(r"\1 (`\2`)", whole)


def rules() -> str:
    """Return the rules of the filter with their default limits and what they measure."""
    from curation.config import read_yaml
    from curation.filters.names import signal_of
    from curation.resources import root
    from curation.stages import meaning

    families = read_yaml(root() / "configs/defaults/filter.yaml")["rules"]
    found = []
    for family, members in families.items():
        for name, rule in members.items():
            reason, given = f"{family}.{name}", rule or {}
            limits = [f"{key} {given[key]:,}" for key in ("min", "max") if key in given]
            signal = given.get("signal") or signal_of(family, name)
            found.append((f"`{reason}`", ", ".join(limits) or "off", meaning(reason, signal)))
    return _table(("rule", "default", "what it measures"), found)


def reasons() -> str:
    """Return the reasons of all stages but those of the filter's rules, and what they mean."""
    from curation.config import read_yaml
    from curation.filters.names import NAMES
    from curation.resources import root

    sentences = read_yaml(root() / "configs/measures.yaml").items()
    found = [(f"`{name}`", says) for name, says in sentences if name not in NAMES]
    return _table(("reason", "meaning"), found)


def settings() -> str:
    """Return the settings of every stage with defaults and descriptions."""
    from curation.config import read_yaml
    from curation.readers.settings import ReaderSettings
    from curation.resources import root
    from curation.stages import known_stages

    sections: dict[str, tuple[str, Any]] = {"readers": ("read files", ReaderSettings)}
    sections |= {name: (s.purpose, s.settings) for name, s in known_stages().items()}
    parts = []
    for name, (purpose, model) in sections.items():
        path = root() / f"configs/defaults/{name}.yaml"
        if path.exists():
            rows = _settings(model, read_yaml(path), "")
            title = f"## {name}\n\n{purpose[:1].upper()}{purpose[1:]}.\n\n"
            parts.append(title + _table(("setting", "default", "what it says"), rows))
    return "\n\n".join(parts)


def moved() -> str:
    """Return the keys that are no settings any more, with the place of each."""
    from curation.config import read_yaml
    from curation.resources import root

    places = read_yaml(root() / "configs/moved.yaml").items()
    return _table(("key", "now"), ((f"`{key}`", place) for key, place in places))


def commands() -> str:
    """Return the help of every command."""
    import argparse

    from pipelines.cli import build_parser

    parser = build_parser(whole=True)
    (found,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    parts = [f"## {name}\n\n```text\n{p.format_help()}```" for name, p in found.choices.items()]
    return "\n\n".join(parts)


def _settings(model: Any, defaults: Any, above: str) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        key, value = field.alias or name, _value(defaults, field.alias or name)
        inner = next((t for t in _types(field.annotation) if hasattr(t, "model_fields")), None)
        if inner is not None and isinstance(value, dict):
            yield from _settings(inner, value, f"{above}{key}.")
        else:
            said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            shown = said if len(said) < 80 else "..."
            yield f"`{above}{key}`", f"`{shown}`", field.description or ""


def _value(defaults: Any, key: str) -> Any:
    return defaults.get(key) if isinstance(defaults, dict) else None


def _types(annotation: Any) -> Iterable[Any]:
    """Return the annotation, and the members of a union of settings and None."""
    inside = [t for t in typing.get_args(annotation) if t is not type(None)]
    return [annotation, *inside] if type(None) in typing.get_args(annotation) else [annotation]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    cells = ([cell.replace("|", r"\|").replace("\n", " ") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


#: What pages may have generated, by name.
GENERATED = {each.__name__: each for each in (rules, reasons, settings, moved, commands)}
