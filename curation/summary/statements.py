"""Make statements about a run: sentences without numbers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curation.summary.figures import COMMON_CRAWL_NAME, UNNAMED, Figure

#: Ranges of the Commission's template for text: tokens below the number.
_RANGES = (
    (10**9, "less than 1 billion tokens"),
    (10**13, "1 billion to 10 trillion tokens"),
)
_MOST = "more than 10 trillion tokens"
#: Part of all public data of a modality above which the template calls a data set large.
_LARGE = 0.03


def statements(
    figures: Mapping[str, Figure],
    recipe: Mapping[str, Any],
    stages: Sequence[str],
    software: Mapping[str, str],
    columns: Sequence[str],
    root: str,
) -> dict[str, str]:
    """Return every statement by name. `columns` are those of the documents."""
    collections = [row[0] for row in figures["collections"].rows]
    return {
        "size_range": _size_range(figures),
        "content_types": _content_types(figures),
        "latest_date": f"{_last_month(figures) or 'Unknown: no document has a date'}.",
        "languages": _languages(figures),
        "public_used": _public(collections),
        "public_datasets": _large(figures["collections"]),
        "crawlers_used": _crawled(collections),
        "crawlers": _crawlers(collections),
        "opt_outs": _opt_outs(recipe, stages, columns) + _signals(figures),
        "illegal_content": _illegal_content(recipe, stages),
        "processing": f"Stages in order: {', '.join(stages)}.",
        "instances": "A document: the main text of a web page or of a record of a file.",
        "columns": f"Columns: {', '.join(columns)}.",
        "missing": "What the stages removed, by reason, and what they cut out of documents.",
        "relations": _relations(stages),
        "personal_data": "Personal data found by kind. Names in running text are not looked for.",
        "raw_saved": "The run leaves its input where it is; `source` has file and offset.",
        "software": f"{', '.join(f'{name} {of}' for name, of in sorted(software.items()))}.",
        "version_hash": f"This version is known by the hash of its run, `{root}`.",
    }


def _size_range(figures: Mapping[str, Figure]) -> str:
    if "tokens" not in figures:
        return "The run has not tokenised."
    tokens = figures["tokens"].value("tokens")
    found = next((name for limit, name in _RANGES if tokens < limit), _MOST)
    return f"Text: {found}. A document's tokens count as often as it is drawn, its bytes once."


def _names(figures: Mapping[str, Figure], name: str) -> list[str]:
    return [row[0] for row in figures[name].rows if row[0]] if name in figures else []


def _content_types(figures: Mapping[str, Figure]) -> str:
    found = [f"{k}: {', '.join(_names(figures, f'by_{k}'))}" for k in ("domain", "format", "topic")]
    labelled = [text for text in found if not text.endswith(": ")]
    return f"{'; '.join(labelled)}." if labelled else "The run has not classified its documents."


def _languages(figures: Mapping[str, Figure]) -> str:
    codes = _names(figures, "by_language")
    return f"Languages: {', '.join(codes)}." if codes else "Languages were not identified."


def _last_month(figures: Mapping[str, Figure]) -> str:
    """`MM/YYYY`, as the template asks for; empty where no document has a date."""
    day = max(row[-1] or "" for row in [*figures["collections"].rows, [""]])
    return f"{day[5:7]}/{day[:4]}" if day else ""


def _public(collections: Sequence[str]) -> str:
    if COMMON_CRAWL_NAME in collections:
        return f"Yes: {COMMON_CRAWL_NAME} (https://commoncrawl.org), known by its file names."
    return "No file is named like those of a public crawl."


def _large(collections: Figure) -> str:
    """Collections that may be large public data sets, by their part of all text."""
    total = sum(row[2] for row in collections.rows)
    large = [row[0] for row in collections.rows if row[2] > _LARGE * total]
    named = ", ".join("inputs without a name" if name == UNNAMED else name for name in large)
    return f"Large by their part of the text: {named or 'none'}."


def _crawled(collections: Sequence[str]) -> str:
    if set(collections) == {COMMON_CRAWL_NAME}:
        return f"All documents are of {COMMON_CRAWL_NAME}, which section two lists as a dataset."
    return "The run does not know who fetched its input."


def _crawlers(collections: Sequence[str]) -> str:
    known = (
        f"{COMMON_CRAWL_NAME} was collected by CCBot. " if COMMON_CRAWL_NAME in collections else ""
    )
    others = [name for name in collections if name != COMMON_CRAWL_NAME]
    named = ", ".join("inputs without a name" if n == UNNAMED else n for n in others)
    return f"{known}{f'Of other origin: {named}.' if named else ''}".strip()


def _opt_outs(recipe: Mapping[str, Any], stages: Sequence[str], columns: Sequence[str]) -> str:
    settings = recipe.get("rights")
    if "rights" not in stages or not isinstance(settings, Mapping):
        read = "were read and kept with each document" if "rights" in columns else "were not read"
        return (
            f"Machine-readable reservations of rights {read}; this run removed nothing because "
            "of them."
        )
    honoured = ", ".join(settings.get("honour") or ()) or "none"
    agents = ", ".join(settings.get("agents") or ()) or "none"
    parts = [f"Reservations honoured: {honoured}; evaluated for the agents: {agents}"]
    if not {"train", "search", "ai-input"}.isdisjoint(settings.get("honour") or ()):
        said = "Content Signals, Content-Usage (AIPREF), RSL, TDMRep or noai"
        parts.append(f"a use is denied if any of these denies it: {said}")
    later = "is honoured, too" if settings.get("retroactive") else "does not count"
    parts.append(f"what a site has reserved since its capture {later}")
    if near := (settings.get("follow") or {}).get("near"):
        parts.append(f"copies that are at least {near:.0%} similar are removed, too")
    if settings.get("bought"):
        parts.append(f"licences in RSL whose conditions are met: {', '.join(settings['bought'])}")
    if settings.get("contradictions") == "strictest":
        parts.append("of contradicting reservations any counts")
    unknown = "removed" if settings.get("unknown") == "remove" else "kept"
    parts.append(f"documents of which nothing is known are {unknown}")
    required = ", ".join((settings.get("licences") or {}).get("require") or ())
    if required:
        parts.append(f"only documents under these licences are kept: {required}")
    return f"{'; '.join(parts)}. Signals and licences are those of documents that were kept."


def _signals(figures: Mapping[str, Figure]) -> str:
    kinds = dict.fromkeys(_names(figures, "rights_signals"))
    return f" Kinds of signals in them: {', '.join(kinds)}." if kinds else ""


def _illegal_content(recipe: Mapping[str, Any], stages: Sequence[str]) -> str:
    settings = recipe.get("filter") if "filter" in stages else None
    if not isinstance(settings, Mapping):
        return "The run has no stage that removes content for what it says."
    measures = "; ".join(_measures(settings))
    return f"{measures[:1].upper()}{measures[1:]}." if measures else "None is switched on."


def _measures(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the filter does about unlawful content under these settings."""
    lists = settings.get("blocklists") or {}
    if lists.get("lists"):
        yield f"hosts and addresses of block lists are removed ({', '.join(lists['lists'])})"
    if lists.get("soft_words"):
        yield "pages are removed for words in their address"
    rules = settings.get("rules") or {}
    active = [name for own in rules.values() for name, rule in (own or {}).items() if rule]
    if any("dirty" in name or "flagged" in name for name in active):
        yield "documents are removed for their share of flagged words"
    kinds = (settings.get("pii") or {}).get("kinds") or {}
    if kinds:
        yield f"personal data is looked for and acted on by kind ({', '.join(kinds)})"


def _relations(stages: Sequence[str]) -> str:
    compared = [stage for stage in stages if stage.startswith("dedup-")]
    if not compared:
        return "Duplicates were not looked for."
    return "A removed duplicate names the document that was kept in its place (`kept_id`)."
