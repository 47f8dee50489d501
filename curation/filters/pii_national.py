"""National numbers of persons: form and check digits by country.

CERTAIN numbers are recognised by their form, date of birth and check digits alone: of random
digits of that length fewer than 2 in 1,000 pass. NAMED ones, with one check digit and
no form of their own, count only after a word that says what they are.

Check digits of cards, accounts and books.
"""

import datetime
import re
from collections.abc import Callable
from typing import NamedTuple

from curation.config import read_yaml
from curation.resources import root

_IBAN_LENGTHS = read_yaml(root() / "configs" / "lists" / "iban_lengths.yaml")
#: Issuer prefixes of payment cards with the number lengths in use (ISO/IEC 7812).
_CARDS = re.compile(
    r"4\d{15}(?:\d{3})?"  # Visa
    r"|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"  # Mastercard
    r"|3[47]\d{13}"  # American Express
    r"|(?:6011|65\d\d|64[4-9]\d)\d{12}"  # Discover
    r"|35(?:2[89]|[3-8]\d)\d{12}"  # JCB
    r"|3(?:0[0-5]|[689]\d)\d{11}"  # Diners Club
    r"|62\d{14,17}"  # UnionPay
    r"|220[0-4]\d{12}"  # Mir
)


def luhn(digits: str) -> bool:
    """ISO/IEC 7812-1 check digit over decimal digits."""
    total = 0
    for i, char in enumerate(reversed(digits)):
        value = ord(char) - 48
        if i % 2:
            value = value * 2 - 9 * (value > 4)
        total += value
    return total % 10 == 0


def is_card(digits: str, named: bool) -> bool:
    """Return whether the digits have a right check digit and are a number of a known issuer.

    A number that is `named` a card may be of any issuer (ISO/IEC 7812: 12 to 19 digits in use).
    """
    known = _CARDS.fullmatch(digits) or (named and 12 <= len(digits) <= 19)
    return bool(known) and luhn(digits) and len(set(digits)) > 1


def iban_length(text: str) -> int:
    """Characters, spaces included, of the IBAN (ISO 13616) that `text` begins with, or 0."""
    length = _IBAN_LENGTHS.get(text[:2], 0)
    if not length:
        return 0
    compact = ""
    for end, char in enumerate(text, 1):
        if char == " ":
            # groups of four, as printed; some countries group otherwise, never by one
            if len(compact) < 4 or text[end - 2 : end - 1] == " ":
                return 0
            continue
        if not (char.isascii() and char.isalnum()) or char.islower():
            return 0
        compact += char
        if len(compact) == length:
            follows = text[end : end + 1]
            number = "".join(str(int(c, 36)) for c in compact[4:] + compact[:4])
            ends = not (follows.isascii() and follows.isalnum())
            return end if ends and int(number) % 97 == 1 else 0
    return 0


def is_isbn10(text: str) -> bool:
    """Return whether digits, hyphens and spaces make an ISBN of ten digits."""
    digits = [int(char) for char in text if char.isdigit()]
    return (
        len(digits) == 10
        and sum(d * w for d, w in zip(digits, range(10, 0, -1), strict=True)) % 11 == 0
    )


class NationalNumber(NamedTuple):
    """What a country's number looks like, and whether its check digits are right."""

    pattern: re.Pattern[str]
    check: Callable[[str], bool]


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _weighted(digits: str, weights: tuple[int, ...]) -> int:
    return sum(int(d) * w for d, w in zip(digits, weights, strict=False))


def _date(year: int, month: int, day: int) -> bool:
    try:
        datetime.date(year, month, day)
    except ValueError:
        return False
    return True


def _short_date(digits: str) -> bool:
    """YYMMDD of any century: 2000 is a leap year, and so is 1900 + y for every y > 0 that is."""
    return _date(2000 + int(digits[:2]), int(digits[2:4]), int(digits[4:6]))


def china(text: str) -> bool:
    """Resident identity number, GB 11643: ISO 7064 MOD 11-2 and a date of birth."""
    weights = tuple(pow(2, 17 - i, 11) for i in range(17))
    check = "10X98765432"[_weighted(text[:17], weights) % 11]
    year = int(text[6:10])
    return (
        text[17].upper() == check
        and 1900 <= year < 2100
        and _date(year, int(text[10:12]), int(text[12:14]))
    )


def brazil(text: str) -> bool:
    """CPF, written 000.000.000-00: two check digits."""
    digits = _digits(text)
    if len(set(digits)) == 1:
        return False
    for size in (9, 10):
        rest = _weighted(digits, tuple(range(size + 1, 1, -1))[:size]) * 10 % 11 % 10
        if rest != int(digits[size]):
            return False
    return True


def france(text: str) -> bool:
    """NIR (sécurité sociale): 13 characters and a key, 97 minus the number modulo 97."""
    compact = text.replace(" ", "")
    body = compact[:13].replace("2A", "19").replace("2B", "18")
    return (
        compact[0] in "12"
        and 1 <= int(compact[3:5]) <= 12
        and body.isdigit()
        and 97 - int(body) % 97 == int(compact[13:])
    )


def switzerland(text: str) -> bool:
    """AHV number, written 756.0000.0000.00: check digit of EAN-13."""
    return _weighted(_digits(text), (1, 3) * 6 + (1,)) % 10 == 0


def finland(text: str) -> bool:
    """Henkilötunnus: date, century sign, serial, check character modulo 31."""
    check = "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(text[:6] + text[7:10]) % 31]
    century = 1800 if text[6] == "+" else 1900 if text[6] in "-UVWXY" else 2000
    return text[10] == check and _date(century + int(text[4:6]), int(text[2:4]), int(text[:2]))


def sweden(text: str) -> bool:
    """Personnummer, written YYMMDD-0000: a date and a Luhn digit."""
    digits = _digits(text)[-10:]
    return luhn(digits) and _short_date(digits)


def norway(text: str) -> bool:
    """Fødselsnummer, DDMMYY and five digits: two check digits modulo 11."""
    digits = _digits(text)
    return (
        _short_date(digits[4:6] + digits[2:4] + digits[:2])
        and _weighted(digits[:10], (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)) % 11 == 0
        and _weighted(digits, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0
    )


def korea(text: str) -> bool:
    """Resident registration number, written YYMMDD-0000000: a date and a digit modulo 11."""
    digits = _digits(text)
    check = (11 - _weighted(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10
    return _short_date(digits) and check == int(digits[12])


def romania(text: str) -> bool:
    """CNP: sex and century, YYMMDD, county, serial, a digit modulo 11."""
    check = _weighted(text[:12], (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11 % 10
    county = int(text[7:9])
    return (
        (1 <= county <= 48 or county in (51, 52, 70))
        and _short_date(text[1:7])
        and check == int(text[12])
    )


def south_africa(text: str) -> bool:
    """Identity number: YYMMDD, serial, citizenship 0 or 1, a Luhn digit."""
    return text[10] in "01" and _short_date(text) and luhn(text)


_ODD = dict(zip(
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6,
     8, 12, 14, 16, 10, 22, 25, 24, 23),
    strict=True,
))  # fmt: skip


def italy(text: str) -> bool:
    """Codice fiscale: sixteen characters, the last a check letter."""
    total = 0
    for i, char in enumerate(text[:15]):
        if i % 2 == 0:
            total += _ODD[char]
        else:
            total += int(char) if char.isdigit() else ord(char) - 65
    return chr(65 + total % 26) == text[15]


def spain(text: str) -> bool:
    """DNI and NIE: eight digits, or X, Y, Z and seven, and a letter modulo 23."""
    compact = re.sub(r"[ .-]", "", text).upper()
    number = int(compact[:-1].translate(str.maketrans("XYZ", "012")))
    return compact[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23]


def poland(text: str) -> bool:
    """PESEL: a date whose month tells the century, a serial, a digit modulo 10."""
    return _weighted(text, (1, 3, 7, 9) * 2 + (1, 3, 1)) % 10 == 0 and _date(
        2000 + int(text[:2]), int(text[2:4]) % 20, int(text[4:6])
    )


def turkey(text: str) -> bool:
    """TCKN: eleven digits, the last two checks."""
    digits = [int(char) for char in text]
    return (
        digits[9] == (7 * sum(digits[0:9:2]) - sum(digits[1:8:2])) % 10
        and digits[10] == sum(digits[:10]) % 10
    )


def netherlands(text: str) -> bool:
    """BSN: nine digits, weighted 9 to 2 and -1, modulo 11."""
    digits = _digits(text)
    return _weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0 and len(set(digits)) > 1


def germany(text: str) -> bool:
    """Steuer-ID: ISO 7064 MOD 11,10; one digit of the first ten occurs twice or three times."""
    digits = _digits(text)
    product = 10
    for char in digits[:10]:
        product = ((int(char) + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(digits[10]) and len(set(digits[:10])) in (8, 9)


def belgium(text: str) -> bool:
    """Rijksregisternummer: YYMMDD, serial, 97 minus the rest; a 2 before it from 2000 on."""
    digits = _digits(text)
    key = int(digits[9:])
    return key in (97 - int(digits[:9]) % 97, 97 - int("2" + digits[:9]) % 97)


_VERHOEFF = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    (1, 5, 7, 6, 2, 8, 3, 0, 9, 4),
    (5, 8, 0, 3, 7, 9, 6, 1, 4, 2),
    (8, 9, 1, 6, 0, 4, 3, 5, 2, 7),
    (9, 4, 5, 3, 1, 2, 6, 8, 7, 0),
    (4, 2, 8, 6, 5, 7, 3, 9, 0, 1),
    (2, 7, 9, 3, 8, 0, 6, 4, 1, 5),
    (7, 0, 4, 6, 9, 1, 3, 2, 5, 8),
)


def _dihedral(a: int, b: int) -> int:
    """Product in the dihedral group of the pentagon."""
    if a < 5:
        return (a + b) % 5 if b < 5 else 5 + (a + b) % 5
    return 5 + (a - b) % 5 if b < 5 else (a - b) % 5


def india(text: str) -> bool:
    """Aadhaar: twelve digits, the last by Verhoeff."""
    state = 0
    for i, char in enumerate(reversed(_digits(text))):
        state = _dihedral(state, _VERHOEFF[i % 8][int(char)])
    return state == 0


def canada(text: str) -> bool:
    """SIN: nine digits, the last by Luhn."""
    return luhn(_digits(text))


def _numbers(*rows: tuple[str, Callable[[str], bool]]) -> tuple[NationalNumber, ...]:
    # letters of other scripts end a number: 身份证号...X请, 900101-1234568입니다
    return tuple(NationalNumber(re.compile(pattern, re.ASCII), check) for pattern, check in rows)


#: In runs of digits.
CERTAIN = _numbers(
    (r"(?<!\d)[1-9]\d{5}(?:19|20)\d{9}[\dXx](?!\w)", china),
    (r"(?<![\d.])\d{3}\.\d{3}\.\d{3}-\d\d(?!\w)", brazil),
    (r"(?<!\d)[12] ?\d\d ?[01]\d ?\d[\dAB] ?\d{3} ?\d{3} ?\d\d(?!\w)", france),
    (r"(?<![\d.])756\.\d{4}\.\d{4}\.\d\d(?!\w)", switzerland),
    (r"(?<!\d)[0-3]\d[01]\d\d\d[-+A-FU-Y]\d{3}[0-9A-FHJ-NPR-Y](?!\w)", finland),
    (r"(?<![\d-])(?:19|20)?\d\d[01]\d[0-3]\d[-+]\d{4}(?![\w-])", sweden),
    (r"(?<![\d.-])[0-3]\d[01]\d\d\d ?\d{5}(?![\w.-])", norway),
    (r"(?<![\d-])\d\d[01]\d[0-3]\d-[0-9]\d{6}(?![\w-])", korea),
    (r"(?<![\d.-])[1-8]\d\d[01]\d[0-3]\d{7}(?![\w.-])", romania),
    (r"(?<![\d.-])\d\d[01]\d[0-3]\d{8}(?![\w.-])", south_africa),
)
#: Those that begin with six letters.
CERTAIN_CODES = _numbers((r"[A-Z]{6}\d\d[A-EHLMPR-T][0-7]\d[A-Z]\d{3}[A-Z](?!\w)", italy))
#: Behind a word that names them.
NAMED = _numbers(
    (r"(?<!\d)(?:\d{8}|\d\d\.\d{3}\.\d{3})[ -]?[A-Za-z](?!\w)", spain),
    (r"(?<!\d)\d{11}(?!\w)", poland),
    (r"(?<!\d)[1-9]\d{10}(?!\w)", turkey),
    (r"(?<!\d)\d{4}[ .]?\d\d[ .]?\d{3}(?!\w)", netherlands),
    (r"(?<!\d)[1-9]\d ?\d{3} ?\d{3} ?\d{3}(?!\w)", germany),
    (r"(?<!\d)\d\d[.-]?[01]\d[.-]?[0-3]\d[ .-]?\d{3}[ .-]?\d\d(?!\w)", belgium),
    (r"(?<!\d)[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}(?!\w)", india),
    (r"(?<!\d)\d{3}[ -]?\d{3}[ -]?\d{3}(?!\w)", canada),
)
