"""Personal data and secrets: found, counted, replaced by placeholders.

Kinds (KINDS): e-mail addresses, public IP addresses, telephone numbers, payment cards (Luhn), IBANs
(modulo 97), national numbers with check digits, US social security numbers, private keys, access
tokens. Only what its form or check digits make likely is taken: `1.2.3.4` behind "version" is no
address, an ISBN no telephone number.
"""

import bisect
import functools
import ipaddress
import itertools
import re
import string
from collections.abc import Iterator, Sequence
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import regex

from curation.arrow import Texts, from_buffers, text_buffers
from curation.config import read_values
from curation.filters import pii_candidates as pc
from curation.filters import pii_national as checks
from curation.filters.filter_settings import PersonalKind, PiiSettings
from curation.filters.pii_national import CERTAIN, CERTAIN_CODES, NAMED
from curation.filters.pii_phones import SHORTEST, count_digits, find_phones
from curation.filters.pii_secrets import LONGEST, SECRETS, match_secret
from curation.schema import Verdicts

#: Arabic-Indic, Persian, Devanagari and full-width digits begin here.
_ZEROS = "\u0660\u06f0\u0966\uff10"
_MARKS = str.maketrans(
    # no-break, narrow no-break and ideographic space; hyphens and dashes; full-width forms
    "\u00a0\u202f\u3000\u2010\u2011\u2012\u2013\uff0d\uff0b\uff08\uff09\uff0e\uff0f",
    "   -----+()./",
)
_NUMBERS = _MARKS | {ord(zero) + i: str(i) for zero in _ZEROS for i in range(10)}
# dashes end an address, so that they are left as they are
_ADDRESSES = str.maketrans("\uff20\uff0e", "@.")


def fold_number(text: str) -> str:
    """Return the text with digits, spaces, dashes, brackets, plus, slash and full stop in ASCII."""
    return text if text.isascii() else text.translate(_NUMBERS)


#: Where spans overlap, the kind that comes first here holds.
KINDS: tuple[PersonalKind, ...] = get_args(PersonalKind)

_L = r"[\p{Latin}\p{Greek}\p{Cyrillic}0-9]"
_LOCAL_PART = (
    rf"{_L}(?:[\p{{Latin}}\p{{Greek}}\p{{Cyrillic}}0-9._%+'-]{{0,63}}"
    r"[\p{Latin}\p{Greek}\p{Cyrillic}0-9_+-])?"
)
_MAIL = regex.compile(
    rf"(?P<local>{_LOCAL_PART})@"
    rf"(?P<domain>(?:{_L}(?:[\p{{Latin}}\p{{Greek}}\p{{Cyrillic}}0-9-]{{0,61}}{_L})?\.)+"
    rf"(?:[\p{{Latin}}\p{{Greek}}\p{{Cyrillic}}]{{2,24}}|xn--[a-z0-9-]+))(?![\p{{Latin}}0-9-])"
)
_CREDENTIALS = regex.compile(r"://(?P<secret>[^\s/@:]+:[^\s/@]+)$")
_IP4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\d|\.\d)")
_PREFIX = re.compile(r"/(\d{1,2})(?!\d)")
_IP6 = re.compile(r"[0-9A-Fa-f:]+(?:(?:\.[0-9]{1,3}){3}(?![0-9]|\.[0-9]))?")
_CARD = re.compile(
    r"(?<![\d.])(?:\d{4}([ -])\d{4}\1\d{4}\1\d{2,4}(?:\1\d{3})?"
    r"|\d{4}([ -])\d{6}\2\d{4,5}|\d{12,19})"
    r"(?![\d.]\d|\d)"
)
_SSN = re.compile(r"(?<![\d-])(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\d-])")
_IN_TEXT = re.compile(r"[A-Za-z0-9_]")
# before an address: the rest of a name or path, or that of an ordinal (第3.2.1.4节)
_IN_NAME = re.compile(r"[A-Za-z0-9_.+第제-]\Z|(?<!/)/\Z")
_CONTINUED = re.compile(r"[\w/=#@&.+-]\Z", re.ASCII)
#: What is directly before a run that is part of a path, an amount, a decimal or a name.
_ADJOINING = re.compile(r"(?:[\w/=#@&%$€£¥-]|= |\d[.,:])\Z", re.ASCII)
#: The path of a web address or of a DOI; the value of a query (`?phone=`) is none.
_PATH = re.compile(r"(?:://|\bwww\.|\b10\.\d{4,9}/)[\w./~%?&#+=-]*(?<!=)\Z", re.ASCII)
# Behind an address: a port. Before a version: a comparison. Between those of a list: few letters.
_PORT = re.compile(r":\d{2,5}(?![\d.:])|,? (?:on )?port\b", re.IGNORECASE)
_PINNED = re.compile(r"(?:[=~<>!]=|~>|\^)\s*[\"']?\Z")
_LISTED = regex.compile(r"(?:(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}[^\d\n]{1,6})+\Z")
_NEXT = regex.compile(r"(?:[,;]? (?:\p{L}{1,3} )?\d{1,3}\.\d{1,3}\.\d)?")
#: A first number of 20 or more, and two others of 32 or more, are rare in versions and sections, as
#: others are in addresses: of random ones 8 % begin with less, and 5 % of these look like versions,
#: 1 % by a 0, which every second version has.
_LARGE = re.compile(r"(?<![\d.])(?:[2-9]\d|[12]\d\d)\.")
_LARGE_PART, _MANY_LARGE = 32, 2
_WORD = regex.compile(r"\p{L}[^\p{L}\d\n]{0,6}\Z")
_OF_NAME = regex.compile(r"(?<=\b[\p{Lu}\p{Lo}]\p{L}*)\d+(?=[^\p{L}\d\n]{0,6}\Z)")  # DB2, not ns1
# the end of a name, within a sentence or of two words: Application Server 8.5.5.13, not DNS Server
_PRODUCT = regex.compile(r"[\p{L},;] \p{Lu}[\p{L}\d+#-]* \Z")
_SERVER = regex.compile(r"(?P<first>\p{Lu}[\p{L}\d.+#-]* )\p{Lu}\p{Ll}+ \Z")
# what follows the number of a heading: a word, perhaps in quotes or brackets
_TITLE = regex.compile(r"[ .\t)\"'\p{Ps}\p{Pi}]*\p{L}")
_NO_LETTERS = string.whitespace + string.punctuation
_FEWEST_DIGITS = 8  # of national numbers and cards
_WINDOW = 128  # bytes read before a candidate
_BEHIND = 12  # bytes read behind a number
_LONGEST_IP6 = 45  # bytes, with an IPv4 address at the end
_LONGEST_CODE = 64  # bytes of an IBAN of 34 characters in groups of four, with no-break spaces
_FEW_COLONS = 3  # a short address must be of the allocated ones, or it may be 12::30
_WIDE = re.compile(r"[0-9A-Fa-f]{3,4}")  # groups that 1:2:3:4:5:6:7:8 lacks
_LONGEST_PREFIX = 24  # bits of a network that is too large to point to a person
_ALLOCATED = ipaddress.ip_network("2000::/3")  # IANA, global unicast


class Found(NamedTuple):
    """Spans in the batch's buffer, sorted, none overlapping another."""

    documents: npt.NDArray[np.int64]  # [k]
    starts: npt.NDArray[np.int64]  # [k]
    ends: npt.NDArray[np.int64]  # [k]
    kinds: npt.NDArray[np.int64]  # [k] index into KINDS


@functools.cache
def _prefixes() -> pc.Prefixes:
    return pc.compile_prefixes([prefix for secret in SECRETS for prefix in secret.prefixes])


#: Characters between a word and the number that it names.
_DISTANCE = 20
# scripts whose words are side by side
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Kana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")


class Words(NamedTuple):
    """What tells numbers and addresses apart, compared without regard to case.

    `telefon*` means all words that begin so.
    """

    phone: tuple[str, ...]  # before a telephone number
    not_phone: tuple[str, ...]  # before numbers that are none
    card: tuple[str, ...]  # before a payment card's number, which may then be of any issuer
    national_id: tuple[str, ...]  # before national numbers that check digits alone do not tell
    versions: tuple[str, ...]  # before versions that look like IP addresses
    addresses: tuple[str, ...]  # before IP addresses
    file_suffixes: tuple[str, ...]  # endings that make name@2x.png a file
    other_domains: tuple[str, ...]  # top-level, in scripts other than Latin, Greek and Cyrillic
    service_accounts: tuple[str, ...]  # names before the @ that are no person's: git@host
    reserved_domains: tuple[str, ...]  # that nobody can register


class _Context:
    """The words of the settings as patterns over what precedes a number."""

    def __init__(self, settings: PiiSettings) -> None:
        # "[PHONE] 1234567" names no telephone; the digit hides the words before it
        texts = [regex.escape(held.placeholder) for held in settings.kinds.values()]
        self.placeholders = regex.compile("|".join(sorted(texts)) or "(?!)")
        words = read_values(settings.words, Words)
        self.phone, self.no_phone = _before(words.phone), _before(words.not_phone)
        self.national, self.card = _before(words.national_id), _before(words.card)
        self.version, self.address = _before(words.versions), _before(words.addresses)
        self.suffixes = frozenset(words.file_suffixes)
        self.services = frozenset(words.service_accounts)
        self.reserved = tuple(f".{domain}" for domain in words.reserved_domains)
        self.mail = _other_addresses(words.other_domains)


def _before(words: tuple[str, ...], distance: int = _DISTANCE) -> regex.Pattern[str]:
    """Return the last of the words, no digit behind it, in the last `distance` characters of a
    line.

    `telefon*` stands for all words that begin so.
    """
    within = [word.removesuffix("*") for word in words if _UNSPACED.search(word)]
    begins = [word[:-1] for word in words if word.endswith("*") and not _UNSPACED.search(word)]
    whole = [word for word in words if not word.endswith("*") and not _UNSPACED.search(word)]
    # Sets are looked up, where alternatives would be tried one by one at every place.
    sets = {r"\L<within>": within, r"(?<!\p{L})\L<begins>": begins}
    sets[r"(?<!\p{L})\L<whole>(?!\p{L})"] = whole
    patterns = "|".join(pattern for pattern, held in sets.items() if held) or "(?!)"
    return regex.compile(
        rf"(?:{patterns})[^\d\n!?]{{0,{distance}}}?(?:\n\s{{0,4}})?\Z",
        regex.I | regex.REVERSE,  # and not greedy: the word that is nearest
        ignore_unused=True,
        within=within,
        begins=begins,
        whole=whole,
    )


def _other_addresses(domains: tuple[str, ...]) -> regex.Pattern[str]:
    """Addresses whose top-level domain is one of these, of scripts that _MAIL does not know.

    Where words are side by side, only the list tells where an address ends. A local part in such
    a script is the run of its letters before `@`, with digits.
    """
    letter = r"[\p{L}\p{M}\p{N}]"
    other = rf"(?![\p{{Latin}}\p{{Greek}}\p{{Cyrillic}}0-9]){letter}"
    tops = "|".join(
        regex.escape(domain) + ("" if _UNSPACED.search(domain) else rf"(?!{letter})")
        for domain in sorted(domains, key=len, reverse=True)
    )
    return regex.compile(
        rf"(?P<local>{_LOCAL_PART}|{other}(?:{other}|[0-9._-]){{0,63}})@"
        rf"(?P<domain>(?:{letter}(?:[\p{{L}}\p{{M}}\p{{N}}-]{{0,62}})\.)+(?:{tops or '(?!)'}))"
    )


@functools.lru_cache(maxsize=8)
def _context(settings: str) -> _Context:
    return _Context(PiiSettings.model_validate_json(settings))


def find(texts: Texts, settings: PiiSettings) -> Found:
    """Return all personal data of a batch, whatever the action for its kind."""
    buffers = text_buffers(texts)
    offsets, data = buffers
    candidates = pc.find_candidates(buffers, _prefixes())
    context = _context(settings.model_dump_json(round_trip=True))
    spans: list[tuple[int, int, int, int]] = []  # kind, document, start, end
    view = memoryview(data)  # type: ignore[arg-type]
    limits = offsets.tolist()
    for kind, document, start, end in zip(*(c.tolist() for c in candidates), strict=True):
        first, last = limits[document], limits[document + 1]
        before = str(view[max(first, start - _WINDOW) : start], "utf-8", "ignore")
        before = context.placeholders.sub("0\0", before)
        for name, a, b in _judge(kind, view, start, end, last, before, context):
            if name in settings.kinds:
                spans.append((KINDS.index(name), document, a, b))
    kept: list[tuple[int, int, int, int]] = []
    taken: dict[int, list[tuple[int, int]]] = {}
    for number, document, a, b in sorted(set(spans)):
        if claim(taken.setdefault(document, []), a, b):
            kept.append((a, b, document, number))
    table = np.array(sorted(kept), np.int64).reshape(-1, 4)
    return Found(table[:, 2], table[:, 0], table[:, 1], table[:, 3])


def claim(held: list[tuple[int, int]], start: int, end: int) -> bool:
    """Add a span to those `held`, sorted, unless it overlaps with one; whether it was added."""
    at = bisect.bisect_left(held, (start, end))
    if at and held[at - 1][1] > start:
        return False
    if at < len(held) and held[at][0] < end:
        return False
    held.insert(at, (start, end))
    return True


def _judge(
    kind: int, view: memoryview, start: int, end: int, last: int, before: str, context: _Context
) -> Iterator[tuple[PersonalKind, int, int]]:
    """(kind, first byte, byte behind) of the personal data in one candidate."""
    if kind == pc.MAIL:
        yield from _mail(str(view[start:end], "utf-8"), start, before, context)
    elif kind == pc.NUMBER:
        run = str(view[start:end], "utf-8")
        after = str(view[end : min(end + _BEHIND, last)], "utf-8", "ignore")
        folded = fold_number(run), fold_number(before), fold_number(after)
        found = list(_numbers(*folded, context))
        places = _places(run + after) if found else ()
        for name, a, b in found:
            yield name, start + places[a], start + places[b]
    elif kind == pc.IPV6:
        text = bytes(view[start : min(start + _LONGEST_IP6, last)]).decode(errors="ignore")
        if length := _ip6_length(text):
            yield "ip", start, start + length
    elif kind == pc.CODE:
        plain = bytes(view[start : min(start + _LONGEST_CODE, last)]).decode(errors="ignore")
        text = fold_number(plain)
        if length := checks.iban_length(text):
            yield "iban", start, start + _size(plain[:length])
        for pattern, check in CERTAIN_CODES:
            match = pattern.match(text)
            if match and check(match.group()):
                yield "national_id", start, start + match.end()
    else:
        text = bytes(view[start : min(start + LONGEST, last)]).decode("latin-1")
        if secret := match_secret(text):
            yield secret[0], start + secret[1], start + secret[2]


def _size(text: str) -> int:
    """Bytes of a text."""
    return len(text) if text.isascii() else len(text.encode())


def _places(text: str) -> Sequence[int]:
    """Return where each character begins, in bytes, and where the text ends. A run has any
    length."""
    if text.isascii():
        return range(len(text) + 1)
    return [0, *itertools.accumulate(_size(char) for char in text)]


def _mail(
    plain: str, start: int, before: str, context: _Context
) -> Iterator[tuple[PersonalKind, int, int]]:
    text = plain if plain.isascii() else plain.translate(_ADDRESSES)
    at = text.index("@")
    behind = before + plain[:at]
    credentials = _CREDENTIALS.search(behind) if "://" in behind else None
    if credentials:
        a = start - _size(before) + _size(behind[: credentials.start("secret")])
        yield "access_token", a, a + _size(credentials.group("secret"))
        return
    match = _MAIL.search(text) or (None if text.isascii() else context.mail.search(text))
    if match is None or (match.start() == 0 and before.endswith(("@", "://"))):
        return
    local, domain, end = match.group("local"), match.group("domain"), match.end()
    labels = domain.split(".")
    if len(labels) > 2 and labels[-1].istitle() and domain[0].islower():
        end -= len(labels.pop()) + 1  # the next sentence: ask@example.org.Then
    if labels[-1].lower() in context.suffixes or local.lower() in context.services:
        return
    if f".{'.'.join(labels).lower()}".endswith(context.reserved):
        return
    yield "email", start + _size(plain[: match.start()]), start + _size(plain[:end])


def _numbers(
    run: str, before: str, after: str, context: _Context
) -> Iterator[tuple[PersonalKind, int, int]]:
    whole = run + after
    words = "" if before.rstrip(_NO_LETTERS)[-1:].isdecimal() else before  # digits hide them
    # Behind the digits of a name, as in `Tel2 +49 30 1234567`, only the surest forms count.
    in_name = before.endswith(" ") and before[-2:-1].isdecimal()
    if count_digits(whole) >= _FEWEST_DIGITS and not in_name:
        for match in _CARD.finditer(run):
            digits, named = re.sub(r"\D", "", match.group()), bool(context.card.match(words))
            if checks.is_card(digits, named) and not _joined(match, before, after, len(run)):
                yield "card", *match.span()
        named = bool(context.national.match(words))
        for pattern, check in (*CERTAIN, *NAMED) if named else CERTAIN:
            for match in pattern.finditer(whole):
                if check(match.group()) and not _joined(match, before, after, len(run)):
                    yield "national_id", *match.span()
        for match in _SSN.finditer(run):
            if not _joined(match, before, after, len(run)):
                yield "us_ssn", *match.span()
    for match in _IP4.finditer(run):
        if _is_address(match, run, before, after, context):
            yield "ip", *match.span()
    if count_digits(run) >= SHORTEST and (run[0] == "+" or not in_name):
        adjoining = bool(_ADJOINING.search(before[-2:]))
        # Words of a path say what a page is about: /handy-1234567.html, 10.1016/j.cell.2019.05.031.
        named = bool(context.phone.match(words)) and not _PATH.search(before)
        found = list(find_phones(run, named, adjoining, after))
        for a, b in found if found and not context.no_phone.match(words) else ():
            yield "phone", a, b


def _joined(match: re.Match[str], before: str, after: str, length: int) -> bool:
    """Return whether a span is part of a longer name, path or number."""
    begins = match.start() == 0 and _CONTINUED.search(before[-1:])
    return bool(begins or (match.end() == length and _IN_TEXT.match(after)))


def _is_address(match: re.Match[str], run: str, before: str, after: str, context: _Context) -> bool:
    """Return whether four numbers with points between them are an address, by what stands around
    them."""
    lead = (before + run[: match.start()])[-_WINDOW:]
    rest = run[match.end() :] + after
    if match.end() == len(run) and (_IN_TEXT.match(after) or after[:1] == "-"):
        return False
    if _IN_NAME.search(lead[-2:]) or not _public(match.group()):
        return False
    prefix = _PREFIX.match(rest)
    if prefix and _is_network(match.group(), int(prefix.group(1))):
        return False
    if lead.endswith("//") or prefix or _PORT.match(rest):
        return True
    return _words_say_address(match.group(), lead, rest, context)


def _words_say_address(address: str, lead: str, rest: str, context: _Context) -> bool:
    """Return whether the words and numbers around four numbers speak for an address, not a
    version."""
    listed = _LISTED.search(lead)
    words = _OF_NAME.sub("", lead[: listed.start()] if listed else lead)
    if words.rstrip(_NO_LETTERS)[-1:].isdecimal():
        words = ""  # they say nothing of an address behind digits, which are near
    version, named = context.version.match(words), context.address.match(words)
    if version and not (named and named.start() > version.start()):
        return False
    around = (lead[listed.start() :] if listed else "") + address + _NEXT.match(rest).group()
    if _LARGE.search(around):
        return not _PINNED.search(words)
    server = _SERVER.search(words)
    if named and not (server and not context.address.match(server["first"])):
        return True
    parts = [int(number) for number in address.split(".")[1:]]
    large = sum(part >= _LARGE_PART for part in parts)
    if large >= _MANY_LARGE and 0 not in parts:
        return large > _MANY_LARGE or not _PRODUCT.search(words)
    heading = _TITLE.match(rest) and not words.rpartition("\n")[2].strip(_NO_LETTERS)
    return not (heading or _WORD.search(words))


def _is_network(address: str, bits: int) -> bool:
    """Return whether `address`/`bits` (RFC 4632) names a network of 256 addresses or more."""
    if bits > _LONGEST_PREFIX:
        return False
    host = (1 << (32 - bits)) - 1
    return int(ipaddress.IPv4Address(address)) & host == 0


def _ip6_length(text: str) -> int:
    """Characters of the public IPv6 address that `text` begins with, or 0."""
    match = _IP6.match(text)
    if match is None:
        return 0
    found = match.group()
    if not found.endswith("::"):  # a colon behind an address is none of its own
        found = found.rstrip(":")
    few = found.count(":") < _FEW_COLONS
    if not _public(found) or (few and found.endswith("::")):
        return 0
    wide = not few and (found.count(".") or len(_WIDE.findall(found)) >= _FEW_COLONS)
    return len(found) if wide or ipaddress.ip_address(found) in _ALLOCATED else 0


@functools.lru_cache(maxsize=4096)
def _public(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_global and not address.is_multicast


def redact(
    texts: Texts, settings: PiiSettings
) -> tuple[pa.Array, dict[str, npt.NDArray[np.int64]]]:
    """Texts (large_string) with placeholders for the kinds to be replaced, and counts by kind.

    Counts (int64, one per text) are given for all KINDS; those not searched have none. A
    placeholder is never counted as personal data, so that a second run changes nothing.
    """
    offsets, data = text_buffers(texts)
    rows = len(offsets) - 1
    found = find(texts, settings)
    placeholders = {KINDS.index(n): held.placeholder.encode() for n, held in settings.kinds.items()}
    replaced = {KINDS.index(n) for n, held in settings.kinds.items() if held.action == "replace"}
    counted: list[list[int]] = [[] for _ in KINDS]  # documents, one for each item
    view = memoryview(data)  # type: ignore[arg-type]
    pieces: list[bytes | memoryview] = []
    growth = [0] * rows
    position = int(offsets[0])
    for document, start, end, number in zip(*(f.tolist() for f in found), strict=True):
        placeholder = placeholders[number]
        if view[start:end] == placeholder:
            continue
        counted[number].append(document)
        if number in replaced:
            pieces += [view[position:start], placeholder]
            growth[document] += len(placeholder) - (end - start)
            position = end
    pieces.append(view[position : int(offsets[-1])])
    moved = offsets - offsets[0]
    moved[1:] += np.cumsum(growth, dtype=np.int64)
    counts: dict[str, npt.NDArray[np.int64]] = {
        name: np.bincount(np.array(items, np.int64), minlength=rows).astype(np.int64)
        for name, items in zip(KINDS, counted, strict=True)
    }
    return from_buffers(moved, np.frombuffer(b"".join(pieces), np.uint8)), counts


def decide(counts: dict[str, npt.NDArray[np.int64]], settings: PiiSettings) -> Verdicts:
    """Remove the documents that hold a kind whose action is `remove`; reasons are `pii.<kind>`.

    `counts` as `redact` gives them. The value is the count, the threshold 0.
    """
    verdicts = Verdicts.keep_all(len(counts[KINDS[0]]))
    for name in KINDS:
        held = settings.kinds.get(name)
        if held is not None and held.action == "remove":
            values = counts[name].astype(np.float64)
            verdicts = verdicts.otherwise(Verdicts.where(values > 0, f"pii.{name}", values, 0.0))
    return verdicts
