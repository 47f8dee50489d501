"""Decide which rights signal removes a document under a policy."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import InputError
from curation.hosts import site_name
from curation.rights.licences import RSL_USE, matches_licence
from curation.rights.preferences import USES, contradicting, decide
from curation.rights.rights_settings import COPY, RightsSettings
from curation.rights.robots import product
from curation.rights.signals import LATEST
from curation.schema import DOCUMENTS, RIGHTS, SIGNAL, Verdicts, aligned, column_of, with_column

#: The signals that removed documents: one row each.
FOUND = pa.schema([(n, pa.string()) for n in "id reason kind place agent value".split()])
#: Kinds of signals that files of sites hold, as agents ask them.
_ASKED = ("robots", "ai_txt")
#: How answers begin that forbid a page.
_CLOSED = "Disallow:", "HTTP 5"
#: What may be denied, and by signals of which kinds: of all without any. Who follows which group
#: of a robots.txt its signals of that kind tell.
_DENIED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **{use: (use, ()) for use in USES},
    **{kind: ("train", (kind, "robots")) for kind in ("content_signal", "content_usage", "rsl")},
    "tdm": ("train", ("tdm",)),
}
#: Kinds of signals that name the address of whose text it is, the surest first.
_NAMING = (("canonical",), ("rsl", "tdm"))
_ADDRESS = re.compile(r"(?<!\S)(?:https?:)?//\S+", re.I)
#: Documents that were removed as duplicates of the one that `kept_id` names: `value` is how similar
#: they are, `reason` why the policy forbids their use, by which `signal`; null: it doesn't.
COPIES = pa.schema(
    [
        *(DOCUMENTS.field(name) for name in ("id", "url", "date")),
        ("rights", RIGHTS),
        ("kept_id", pa.string()),
        ("value", pa.float64()),
        ("reason", pa.string()),
        ("signal", SIGNAL),
    ]
)
#: Kinds of signals that may decide.
_SPEAKING = "robots ai_txt content_signal content_usage rsl tdm directive licence".split()
_NOTHING: dict[str, str | None] = dict.fromkeys(("kind", "place", "agent", "value"))
Signals = Sequence[Mapping[str, str | None]]
#: Of each document the number of its set of signals, and the sets.
Speaking = tuple[list[int], list[Signals]]


Document = Mapping[str, Any]


class Ruling(NamedTuple):
    """Why a document is removed."""

    reason: str
    signal: Mapping[str, str | None]  # that says so; of nulls where it is the lack of one
    original: str | None = None  # id of the document that has the signal and whose copy this is
    similarity: float | None = None


def is_copy(one: Document, other: Document) -> bool | None:
    """Return whether the first of two documents with one text is the copy; None: nobody knows.

    On one site, what is said of either is said of both. Else the original is the page that the
    other one's canonical link names, or licence or reservation, or the one with the earlier date.

    Args:
        one, other: with `url`, `date` and `rights`.
    """
    here, there = (site_name(document["url"] or "") for document in (one, other))
    if here and here == there:
        return True
    said = [(d["rights"] or {}).get("signals") or () for d in (one, other)]
    stated = {signal["kind"] for signals in said for signal in signals}
    for kinds in _NAMING:
        if stated.isdisjoint(kinds):
            continue
        names, named = there in _hosts(said[0], kinds), here in _hosts(said[1], kinds)
        if names != named:
            return names
    dates: list[datetime | None] = [one["date"], other["date"]]
    if None in dates or dates[0] == dates[1]:
        return None
    return dates[0] > dates[1]  # type: ignore[operator]


def original_of(
    one: Document,
    asked: Iterable[Document],
    others: Sequence[Document],
    in_doubt: Callable[[Document], bool],
) -> Document | None:
    """Return the first of some documents whose copy this one is.

    Args:
        asked: documents with one text.
        others: documents with that text; what is the copy of one of these is no original.
        in_doubt: returns whether a document counts as a copy where nobody knows.
    """
    for member in asked:
        copied = is_copy(one, member)
        if in_doubt(one) if copied is None else copied:
            if not any(is_copy(member, o) and not is_copy(o, member) for o in others):
                return member
    return None


def _hosts(signals: Signals, kinds: Sequence[str]) -> set[str]:
    """Return the hosts in the values of signals of some kinds."""
    values = (s["value"] or "" for s in signals if s["kind"] in kinds)
    return {site_name(a) for value in values for a in _ADDRESS.findall(value)} - {""}


class Policy:
    """Settings, ready to judge documents.

    Args:
        copies: of documents that are judged: COPIES. A licence that they contradict is unknown.
    """

    def __init__(self, settings: RightsSettings, copies: pa.RecordBatch | None = None) -> None:
        self._settings, self._copies = settings, copies
        self._agents = [product(agent) for agent in settings.agents]

    def rulings(self, column: pa.Array, speaking: Speaking | None = None) -> list[Ruling | None]:
        """Return why the documents with a column `rights` are removed; None for those kept.

        The first signal in the order of `honour` that forbids the use is the reason; then come
        licences, then what is not known. `speaking`: the signals that may decide, where known.
        """
        numbers, sets = speaking or self._speaking(column)
        denied = [self._forbidden(signals) for signals in sets]
        documents = zip(numbers, self._lacking(column), column.is_valid().to_pylist(), strict=True)
        return [denied[n] or self._unfit(sets[n], lacks, known) for n, lacks, known in documents]

    def _conflicts(self, numbers: Sequence[int], sets: Sequence[Signals]) -> Counter[str]:
        """Count the documents of which some signals permit a use that others deny, by kinds."""
        found = [contradicting(signals, self._agents, self._settings.bought) for signals in sets]
        return Counter(f"conflicts.{found[n]}" for n in numbers if found[n])

    def _unfit(self, signals: Signals, lacks_licence: bool, known: bool) -> Ruling | None:
        """Return why a document is removed that no signal forbids."""
        if lacks_licence and not self._is_permitted(signals):
            stated = (s for s in signals if s["kind"] == "licence")
            return Ruling("rights.licence", next(stated, _NOTHING))
        needs = "robots" in self._settings.honour and all(s["kind"] != "robots" for s in signals)
        if self._settings.unknown == "remove" and (needs or not known):
            return Ruling("rights.unknown", _NOTHING)
        return None

    def _is_permitted(self, signals: Signals) -> bool:
        """Return whether licences in RSL permit a use that is required."""
        required = self._settings.licences.get("require", ())
        asked = [one for one in signals if one["kind"] in ("rsl", "robots")]
        said = decide(asked, self._agents, bought=self._settings.bought)
        return any(said[use][0] == "allow" for use in USES if RSL_USE + use in required)

    def judge(
        self, batch: pa.RecordBatch
    ) -> tuple[pa.RecordBatch, list[Ruling | None], Counter[str]]:
        """Return documents, unknown licences null, the rulings on them, and how many of them have
        signals that permit a use which others deny, by the kinds of these signals.

        Raises InputError without a column `rights`.
        """
        if batch.schema.get_field_index("rights") < 0:
            raise InputError("rights: the documents have no column 'rights', which extract makes")
        members = self._members(batch)
        ids = batch.column("id").to_pylist() if members else []
        rows = [i for i, name in enumerate(ids) if name in members]
        kept = batch.select(["id", "url", "date", "rights"]).take(pa.array(rows, pa.int64()))
        numbered = zip(rows, _documents(kept), strict=True)
        pairs = [(row, one, members[one["id"]]) for row, one in numbered]
        doubted = [i for i, one, some in pairs if any(_contradicts(m, one) for m in some)]
        if doubted:
            batch = with_column(batch, "rights", _without_licence(batch["rights"], doubted))
        speaking = self._speaking(batch.column("rights"))
        rulings = self.rulings(batch.column("rights"), speaking)
        for i, one, some in pairs:
            rulings[i] = rulings[i] or self._copied(one, some)
        return batch, rulings, self._conflicts(*speaking)

    def _members(self, batch: pa.RecordBatch) -> dict[str, list[Document]]:
        """Return the copies of documents that may decide on these, by their ids."""
        found: dict[str, list[Document]] = {}
        if self._copies is not None:
            kept, ids = self._copies["kept_id"], batch["id"]
            licensed = ids.filter(pc.struct_field(batch["rights"], "licence").is_valid())
            forbidden = kept.filter(self._copies["reason"].is_valid())
            decides = pc.or_(pc.is_in(kept, forbidden), pc.is_in(kept, licensed))
            for row in _documents(self._copies.filter(pc.and_(decides, pc.is_in(kept, ids)))):
                found.setdefault(row["kept_id"], []).append(row)
        return found

    def _copied(self, one: Document, members: Sequence[Document]) -> Ruling | None:
        """Return the ruling on a document that is the copy of one that the policy forbids."""
        forbidden = (member for member in members if member["reason"])
        asked = sorted(forbidden, key=lambda m: (m["date"] is None, m["date"], m["id"]))
        member = original_of(one, asked, [m for m in members if not m["reason"]], self.in_doubt)
        return Ruling(COPY, member["signal"], member["id"], member["value"]) if member else None

    def in_doubt(self, one: Document) -> bool:
        """Return whether a document that may be a copy counts as one: its own site can permit."""
        signals = (one["rights"] or {}).get("signals") or ()
        permitted = decide(signals, self._agents)["train"][0] == "allow"
        return self._settings.contradictions == "strictest" or not permitted

    def copies(self, removed: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of documents that were removed as copies as similar as `follow` asks.

        Args:
            removed: as dedup-documents writes them. -> COPIES
        """
        near = (self._settings.follow or {}).get("near", 1.0)
        similar = pc.and_(pc.greater_equal(removed["value"], near), pc.is_valid(removed["kept_id"]))
        rows = removed.filter(pc.fill_null(similar, False))
        signals_alone = self._settings.model_copy(update={"licences": {}, "unknown": "keep"})
        denials = Policy(signals_alone).rulings(column_of(rows, "rights", RIGHTS))
        reasons = pa.array([denial and denial.reason for denial in denials], pa.string())
        signals = pa.array([denial and denial.signal for denial in denials], SIGNAL)
        return aligned(with_column(with_column(rows, "reason", reasons), "signal", signals), COPIES)

    def _lacking(self, column: pa.Array) -> list[bool]:
        """Return which documents have no licence that is required."""
        require = self._settings.licences.get("require", ())
        licences = pc.struct_field(column, "licence").to_pylist() if require else []
        fit = {one for one in set(licences) if one and matches_licence(one, require)}
        return [licence not in fit for licence in licences] or [False] * len(column)

    def _speaking(self, column: pa.Array) -> Speaking:
        """Return the signals of documents that may decide, each set of them once.

        Most pages of a site have the same.

        Returns:
            numbers: of each document's set.
            sets: lists of signals.
        """
        lists = pc.struct_field(column, "signals")
        lengths, flat = pc.fill_null(pc.list_value_length(lists), 0), lists.flatten()
        counts = pc.is_in(pc.struct_field(flat, "kind"), pa.array(_SPEAKING))
        if not self._settings.retroactive:
            later = pc.starts_with(pc.struct_field(flat, "place"), LATEST)
            counts = pc.and_not(counts, pc.fill_null(later, False))  # tables may name no place
        rows = np.repeat(np.arange(len(column)), lengths)[counts.to_numpy(zero_copy_only=False)]
        flat, codes = flat.filter(counts), np.zeros(len(rows), np.int64)
        for name in _NOTHING:
            values = pc.struct_field(flat, name).dictionary_encode("encode")
            codes = codes * len(values.dictionary) + values.indices.to_numpy()
        ends = np.searchsorted(rows, np.arange(len(column) + 1)).tolist()
        known, numbers, sets = dict[bytes, int](), list[int](), list[Signals]()
        for begin, end in itertools.pairwise(ends):
            number = known.setdefault(codes[begin:end].tobytes(), len(sets))
            if number == len(sets):
                sets.append(flat.slice(begin, end - begin).to_pylist())
            numbers.append(number)
        return numbers, sets

    def _forbidden(self, signals: Signals) -> Ruling | None:
        """Return why these signals forbid what is honoured."""
        for honoured in self._settings.honour:
            for signal in self._forbidding(honoured, signals):
                return Ruling(f"rights.{honoured}", signal)
        return None

    def _forbidding(self, honoured: str, signals: Signals) -> Iterator[Mapping[str, str | None]]:
        if honoured in _ASKED:
            answers = [s for s in signals if s["kind"] == honoured]
            for place in dict.fromkeys(s["place"] for s in answers):
                yield from self._closed([s for s in answers if s["place"] == place])
        elif honoured in _DENIED:
            use, kinds = _DENIED[honoured]
            heard = [s for s in signals if not kinds or s["kind"] in kinds]
            strictest = self._settings.contradictions == "strictest"
            answer, said = decide(heard, self._agents, strictest, self._settings.bought)[use]
            yield from said if answer == "deny" else ()
        else:
            named = (s for s in signals if (s["kind"], s["value"]) == ("directive", honoured))
            yield from (s for s in named if product(s["agent"] or "") in ("*", *self._agents))

    def _closed(self, answers: Signals) -> Iterator[Mapping[str, str | None]]:
        """Yield the answers of one file to the agents, where they forbid: by a line or HTTP status.

        A file that the server failed to deliver forbids everything (RFC 9309, 2.3.1.4); a missing
        one forbids nothing.

        Each agent is told what is for it, else what is for all; without agents, what is for all
        counts.
        """
        own = {product(s["agent"] or ""): s for s in answers}
        asked = (own.get(agent, own.get("*")) for agent in self._agents or ["*"])
        yield from (s for s in asked if s and (s["value"] or "").startswith(_CLOSED))


def _contradicts(other: Document, one: Document) -> bool:
    """Return whether a document with the same text makes the licence that this one names unknown.

    Another licence does, and that the original names none.
    """
    licence, rights = (one["rights"] or {}).get("licence"), other["rights"]
    if licence is None or rights is None or rights["licence"] == licence:
        return False
    return rights["licence"] is not None or is_copy(other, one) is False


def _documents(batch: pa.RecordBatch) -> list[Document]:
    """Return documents with their dates as numbers, which are compared alone."""
    dates = batch.column("date").cast(pa.int64())
    return with_column(batch, "date", dates).to_pylist()  # type: ignore[no-any-return]


def _without_licence(column: pa.Array, rows: Sequence[int]) -> pa.Array:
    """Return a column `rights` in which the licences of some documents are null."""
    licences = pc.struct_field(column, "licence").to_pylist()
    for row in rows:
        licences[row] = None
    parts = [pa.array(licences, pa.string()), pc.struct_field(column, "signals")]
    return pa.StructArray.from_arrays(parts, fields=list(RIGHTS), mask=column.is_null())


def verdicts_of(rulings: Sequence[Ruling | None], near: float | None = None) -> Verdicts:
    """Return the rulings as verdicts; the value of a copy is its similarity, others are texts."""
    reasons = pa.array([ruling and ruling.reason for ruling in rulings], pa.string())
    texts = pa.array([ruling and ruling.signal["value"] for ruling in rulings], pa.string())
    values = pa.array([ruling and ruling.similarity for ruling in rulings], pa.float64())
    originals = pa.array([ruling and ruling.original for ruling in rulings], pa.string())
    limits = pc.if_else(pc.is_valid(values), pa.scalar(near, pa.float64()), None)
    return Verdicts(reasons, values, limits, originals, value_text=texts)


def found_table(ids: pa.Array, rulings: Iterable[Ruling | None]) -> pa.RecordBatch:
    """Return the signals that removed documents: FOUND."""
    rows = [
        {"id": one, "reason": ruling.reason, **{n: ruling.signal[n] for n in _NOTHING}}
        for one, ruling in zip(ids.to_pylist(), rulings, strict=True)
        if ruling is not None
    ]
    return pa.RecordBatch.from_pylist(rows, FOUND)
