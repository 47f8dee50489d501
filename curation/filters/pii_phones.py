"""Telephone numbers in runs of digits and separators.

Without a word such as "Tel." before it, a number must show by its form that it is one: `+` and a
country code (ITU E.164), the North American plan (NANP), or a trunk prefix or bracketed area code
with groups as printed. Runs are folded to ASCII (curation.filters.pii).
"""

import re
from collections.abc import Iterator

from curation.filters.pii_national import is_isbn10

# Country codes of ITU E.164 (one to three digits).
_COUNTRY = (
    r"(?:1|7|2(?:0|7|1[12368]|[2346]\d|5[0-8]|9[01789])|3(?:[0123469]|5\d|7[0-8]|8[0-35-79])"
    r"|4(?:[013-9]|2[013])|5(?:[1-8]|0\d|9\d)|6(?:[0-6]|7[02-9]|8[0-35-9]|9[0-2])"
    r"|8(?:[1246]|0[08]|5[02-6]|7[08]|8[0-368])|9(?:[0-58]|6[0-8]|7[0-7]|9[2-68]))"
)
_S = r"[ .\-/]"  # one separator
_JOIN = rf"(?:{_S}|[()]|\) |-\(| \()"

_INTERNATIONAL = re.compile(rf"\(?\+ ?\(?{_COUNTRY}\)?(?:(?:{_JOIN}{{0,2}}| [-/] )\d+)+")
_PREFIX_00 = re.compile(rf"(?<![\d/.-])00[ -]?{_COUNTRY}(?:{_JOIN}{{1,2}}\d+)+")
_NANP = re.compile(
    rf"(?<![\d/.-])(?:1{_S})?(?:\([2-9]\d\d\){_S}?|[2-9]\d\d(?P<s>{_S}))[2-9]\d\d[-.]\d{{4}}(?!\d)"
)
# 030/123456, 010-12345678, (0)30 ..., 03-1234-5678
_TRUNK = re.compile(
    r"(?<![\d/.-])(?<!\d )(?:\(0\d{1,5}\)[ /-]{0,2}\d{2,8}(?:[ -]\d{2,8}){0,4}"
    r"|0\d{1,5}(?:/|-| ?/ ?| - )\d{3,8}(?:[ -]\d{2,8}){0,3}"
    r"|0\d{2,4} ?/ ?\d{1,2}(?: \d\d){2,3}(?: ?- ?\d{1,4})?"
    r"|0\d{1,4}-\d{2,4}-\d{3,4}"
    r"|0\d{2,3} \d{2,3} \d\d \d\d"
    r"|0\d{2,4} \d{3,8}(?: \d{3,8}){0,2})(?!\d)"
)
# (11) 91234-5678, 8 (495) 123-45-67; not the year and pages of Z. Phys. 33 (1925) 879-893
_BRACKETS = re.compile(
    r"(?<![\d/.-])(?<!\d )(?:[08][ -]?)?\((?!(?:1[5-9]|20)\d\d\))[1-9]\d{1,4}\)"
    r"[ -]?\d{2,5}[ -]\d{2,4}(?:[ -]\d{2,4})?(?!\d)"
)
# Chinese mobile numbers in groups, Russian numbers with the old trunk prefix 8
_GROUPS = re.compile(
    r"(?<!\d)(?:1[3-9]\d([ -])\d{4}\1\d{4}|8[ -]\d{3}[ -]\d{3}[ -]\d\d[ -]\d\d)(?!\d)"
)
_AREA = r"(?:0(?: ?\d){1,5}|[1-9]\d{1,2})\)? [-/] (?=[1-9])"
# 0221 / 470 - 2240, with an extension; 07071 / 29-0; any other
_LOOSE = re.compile(
    rf"(?<!\d)[(+]{{0,2}}(?:{_AREA}\d(?:{_JOIN}?\d){{0,3}} - \d(?:{_JOIN}?\d){{0,6}}"
    rf"|{_AREA}\d(?:{_JOIN}?\d){{2,14}}|\d(?:{_JOIN}?\d){{3,14}})(?!\d)"
)

_DATE = re.compile(
    r"(?<!\d)(?:(?:19|20)\d\d[-./ ][01]?\d[-./ ][0-3]?\d"
    r"|[0-3]?\d(?P<s>[-./])[0-3]?\d(?P=s)(?:(?:19|20)\d\d|\d\d)(?!(?P=s)\d))"  # not 01.23.45.67.89
    r"(?!\d)"
)
# two, or one in brackets between a volume and pages: Cell 144 (2011) 646-674, not 44 (1782) 744531
_YEAR = r"(?:1[5-9]|20)\d\d"
_YEARS = re.compile(rf"{_YEAR} ?[-/] ?{_YEAR}|(?<![\d+])(?!44\b)[1-9]\d{{0,3}} ?\({_YEAR}\) ?\d")
_EXTENSION = re.compile(r" ?(?:x|ext\.?|#) ?[0-9]{1,6}(?![0-9])", re.IGNORECASE)

# +20 000 000: no national number has such a group first, few have one at all
_AMOUNT = re.compile(r"\+ ?\d{1,3}(?:[ .]\d{3})*[ .]000(?:[ .]\d{3})*\Z")

_GOES_ON = re.compile(r"[A-Za-z_%=]")

SHORTEST, _LONGEST = 7, 15  # digits; E.164 allows 15
_SHORTEST_INTERNATIONAL = 8
_COUNTRY_WITH_ONE = re.compile(r"\(?\+ ?\(?[17]")
_NO_DIGITS = bytes(set(range(128)) - set(b"0123456789"))
_WITH_ONE = 11  # with country codes 1 and 7, neither more nor less
_SHORTEST_NATIONAL = 9
_LONGEST_NATIONAL = 12


def count_digits(text: str) -> int:
    """ASCII digits of a text."""
    return len(text.encode("ascii", "ignore").translate(None, _NO_DIGITS))


def find_phones(run: str, named: bool, adjoining: bool, after: str) -> Iterator[tuple[int, int]]:
    """Spans of telephone numbers in a run.

    `named`: a word for telephones precedes the run. `adjoining`: the run's first digit is
    joined to something that makes it no telephone number (`/`, `=`, a decimal point, ...).
    `after` is what follows the run.
    """
    taken = 0
    for start, end, certain in sorted(_matches(run, named), key=lambda m: (m[0], -m[1])):
        if start < taken or (start == 0 and adjoining and not certain):
            continue
        text = run[start:end]
        isbn = text.count("-") == 3 and is_isbn10(text)
        if not certain and (isbn or _DATE.search(text) or _YEARS.search(text)):
            continue
        if end == len(run):
            if extension := _EXTENSION.match(after):
                end += extension.end()
            elif _GOES_ON.match(after):
                continue
        taken = end
        yield start, end


def _first_groups(text: str, most: int) -> str:
    """Return the first group of digits, and those behind it up to so many digits in all."""
    digits = end = 0
    for group in re.finditer(r"\d+", text):
        digits += len(group.group())
        if end and digits > most:
            break
        end = group.end()
    return text[:end]


def _matches(run: str, named: bool) -> Iterator[tuple[int, int, bool]]:
    for match in _INTERNATIONAL.finditer(run):
        start, end = match.span()
        one = _COUNTRY_WITH_ONE.match(run, start, end) is not None
        least, most = (_WITH_ONE,) * 2 if one else (_SHORTEST_INTERNATIONAL, _LONGEST)
        found = _first_groups(run[start:end], most)  # another number may follow in the run
        end = start + len(found)
        if least <= count_digits(found) <= most and not _AMOUNT.match(found):
            yield start, end, False
    for pattern, least, most in (
        (_PREFIX_00, _SHORTEST_INTERNATIONAL + 2, _LONGEST + 2),
        (_NANP, 10, 11),
        (_TRUNK, _SHORTEST_NATIONAL, _LONGEST_NATIONAL),
        (_BRACKETS, _SHORTEST_INTERNATIONAL, _LONGEST_NATIONAL),
        (_GROUPS, 11, 11),
    ):
        for match in pattern.finditer(run):
            if least <= count_digits(match.group()) <= most:
                yield *match.span(), False
    loose = _LOOSE.search(run) if named and not (_DATE.match(run) or _YEARS.match(run)) else None
    if loose and SHORTEST <= count_digits(loose.group()) <= _LONGEST and loose.start() <= 2:
        yield *loose.span(), True
