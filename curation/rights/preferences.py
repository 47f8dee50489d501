"""What a site and a page prefer to happen to a page: one answer from many signals.

Within a family of signals its own rules give one statement for each place. Over places and
families any refusal refuses, else any permission permits (draft-ietf-aipref-vocab-08, 5.1).
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import PlainValidator, TypeAdapter, validate_call

from curation.readers.charset import utf8_html
from curation.rights.page import read_page
from curation.rights.robots import best_rule, parse_robots, path_of, product
from curation.rights.rsl import answers_of
from curation.rights.signals import (
    Signal,
    is_malformed,
    of_headers,
    of_page,
    of_robots,
    of_tdm_file,
    once,
    with_terms,
)
from curation.rights.sites import site_of
from curation.rights.tdm import WELL_KNOWN, parse_tdm_file
from curation.rights.usage import SIGNAL_KEYS, Answer, is_unread, signals_in, usage_in

USES = tuple(SIGNAL_KEYS.values())
#: Places of a reservation, those that supersede the others first (TDMRep, Priority).
_PRECEDENCE = (("head",), ("header",), ("latest tdmrep.json", "tdmrep.json"))
_READERS: Mapping[str | None, Callable[[str], Iterable[tuple[str, Answer]]]] = {
    "content_signal": signals_in,
    "content_usage": usage_in,
    "directive": lambda value: [("train", "deny")] if value == _NOAI else [],
}
_NOAI = "noai"
#: Kinds of signals that say something of a use, whatever their value.
_STATING = frozenset(("content_signal", "content_usage", "rsl", "tdm"))
Signals = Sequence[Mapping[str, str | None]]
_Text = str | bytes
_FIELDS = TypeAdapter(list[tuple[_Text, _Text | list[_Text]]])
_FOLD = re.compile(r"[\r\n]+[ \t]*")


def _fields(given: Any) -> list[tuple[str, str]]:
    """Return headers of any library as pairs: small names, and values on one line."""
    lines = _FIELDS.validate_python([*given.items()] if hasattr(given, "items") else given or [])
    values = ((n, v) for n, some in lines for v in (some if isinstance(some, list) else [some]))
    pairs = ([t if isinstance(t, str) else t.decode("latin-1") for t in one] for one in values)
    return [(name.strip().lower(), _FOLD.sub(" ", value).strip(" \t")) for name, value in pairs]


@validate_call
def preferences(
    *,
    url: str,
    agents: str | Sequence[str] = (),
    robots: str | bytes | None = None,
    headers: Annotated[Any, PlainValidator(_fields)] = (),
    html: str | bytes | None = None,
    well_known: Mapping[str, str | bytes] | None = None,
) -> dict[str, Any]:
    """Return what a site and a page prefer to happen to the page.

    Nothing is fetched. Whatever texts say is no error. Raises ValueError, with the name of the
    argument, for one of another type.

    Args:
        url: of the page.
        agents: crawlers that ask; each is told by its own group of the robots.txt, else by that for
            `*`, which answers alone without any.
        robots: the site's robots.txt.
        headers: of the response: what has `items()`, with lists for repeated lines, or pairs.
        html: the page.
        well_known: files of sites and licences, by whole address; the site's own by path, too.

    Returns:
        `train`, `search` and `ai-input`: each `allow`, `deny` or `unstated`; `signals`: all that
        was found; `decided`: those that decided, by use; `malformed`: those that can't be read.
    """
    asking, site = [agents] if isinstance(agents, str) else agents, site_of(url)
    files = well_known or {}

    def terms(address: str) -> bytes | None:
        names = address, address.removeprefix(site), f"{site}{address}"
        return next((_octets(files[name]) for name in names if name in files), None)

    found = [*of_headers(headers, url)]
    if html is not None:
        kinds = [value.lower() for name, value in headers if name == "content-type"]
        charset = next((k.partition("charset=")[2].strip("\"' ;") for k in kinds), "")
        charset = "utf-8" if isinstance(html, str) else charset
        found += of_page(read_page(utf8_html(_octets(html), charset or None)[0]), url)
    if robots is not None:
        file = parse_robots(_octets(robots)).asked_by(asking)
        for agent in file.groups:
            rule = best_rule(file.groups[agent], path_of(url))
            found.append(Signal("robots", "robots.txt", agent, rule.line if rule else ""))
        found += of_robots(file, url, "robots.txt")
    if (reserved := terms(WELL_KNOWN)) is not None:
        found += of_tdm_file(parse_tdm_file(reserved), url, "tdmrep.json")
    found = once(with_terms(found, url, terms))
    answers = decide([one._asdict() for one in found], asking)
    return {
        **{use: answers[use][0] for use in USES},
        "signals": found,
        "malformed": [one for one in found if is_malformed(one.kind, one.value)],
        "decided": {use: [Signal(**one) for one in answers[use][1]] for use in USES},  # type: ignore[arg-type]
    }


def _octets(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def decide(
    signals: Signals, agents: Sequence[str], strictest: bool = False, bought: Sequence[str] = ()
) -> dict[str, tuple[str, list[Mapping[str, str | None]]]]:
    """Return for each use `allow`, `deny` or `unstated`, and the signals that say so.

    Args:
        signals: of one document; see `curation.rights.signals`.
        agents: crawlers that ask; see `preferences`.
        strictest: a reservation of text and data mining counts wherever it stands; otherwise the
            page's tag supersedes the header, and this the site's file.
        bought: addresses of licences in RSL whose conditions are met.
    """
    said: dict[str, dict[str, list[Mapping[str, str | None]]]] = {use: {} for use in USES}
    for one, use, answer in _statements(list(signals), agents, strictest, bought):
        said[use].setdefault(answer, []).append(one)
    found = {
        use: next((a for a in ("deny", "allow") if a in by), "unstated") for use, by in said.items()
    }
    return {use: (answer, said[use].get(answer, [])) for use, answer in found.items()}


def contradicting(signals: Signals, agents: Sequence[str], bought: Sequence[str]) -> str:
    """Return the kinds of a document's signals that permit a use or deny it, where some permit what
    others deny, joined by `+`; "" where none do."""
    said = [(one["kind"], use, a) for one, use, a in _statements(signals, agents, True, bought)]
    both = {use for _, use, a in said if a == "deny"} & {use for _, use, a in said if a == "allow"}
    return "+".join(sorted({str(kind) for kind, use, _ in said if use in both}))


def _statements(
    signals: Signals, agents: Sequence[str], strictest: bool, bought: Sequence[str]
) -> Iterator[tuple[Mapping[str, str | None], str, Answer]]:
    """Yield signals with the uses of which they speak, and what they answer."""
    stating = [s for s in signals if s["kind"] in _STATING or s["value"] == _NOAI]
    if not stating:  # of nearly all documents
        return
    names = set(map(product, agents))
    groups = {(s["place"], product(s["agent"] or "")) for s in signals if s["kind"] == "robots"}

    def followed(place: str | None) -> set[str]:
        return {name if (place, name) in groups else "*" for name in names or {"*"}}

    def is_heard(one: Mapping[str, str | None]) -> bool:
        if one["agent"] is None:  # for those whose group of a robots.txt has no licence
            own = licensed.get(one["place"], set()) if one["kind"] == "rsl" else set()
            return not followed(one["place"]) <= own
        directed = {"*", *names} if one["kind"] == "directive" else set()
        return product(one["agent"]) in followed(one["place"]) | directed

    licensed: dict[str | None, set[str]] = {}
    for one in stating:
        if one["kind"] == "rsl" and one["agent"] is not None:
            licensed.setdefault(one["place"], set()).add(product(one["agent"]))

    heard = list(filter(is_heard, stating))
    for one in heard:
        if one["kind"] in _READERS:
            for use, answer in _READERS[one["kind"]](one["value"] or ""):
                yield one, use, answer
    yield from _reservations(stating, strictest)
    yield from _licences(heard, bought)


def _reservations(
    signals: Signals, strictest: bool
) -> Iterator[tuple[Mapping[str, str | None], str, Answer]]:
    found = [s for s in signals if s["kind"] == "tdm" and not is_unread(str(s["value"]))]
    by_place = ([s for p in places for s in found if s["place"] == p] for places in _PRECEDENCE)
    counting = list(filter(None, by_place))
    for one in itertools.chain(*counting[: None if strictest else 1]):
        yield one, "train", "deny" if (one["value"] or "").startswith("1") else "allow"


def _licences(
    heard: Signals, bought: Sequence[str]
) -> Iterator[tuple[Mapping[str, str | None], str, Answer]]:
    """Yield what licences in RSL say; in a page's body, for a part of it, refusals alone."""
    documents: dict[tuple[str | None, str], list[Mapping[str, str | None]]] = {}
    for one in heard:
        if one["kind"] == "rsl":
            address = (one["value"] or "").partition(" ")[0]
            documents.setdefault((one["place"], address), []).append(one)
    for lines in documents.values():
        for use, answer in answers_of([one["value"] or "" for one in lines], bought).items():
            for one in lines:
                if answer == "deny" or not str(one["place"]).endswith("body"):
                    yield one, use, answer
