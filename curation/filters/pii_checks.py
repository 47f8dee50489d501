"""Check digits of cards, accounts and books."""

from __future__ import annotations

import re

# IBAN length by country (SWIFT's IBAN registry).
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22,
    "BI": 27, "BR": 29, "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27,
    "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27,
    "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HN": 28, "HR": 21, "HU": 28,
    "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28,
    "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22,
    "MK": 19, "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23,
    "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24,
    "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "SO": 23, "ST": 25, "SV": 28,
    "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}  # fmt: skip

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
    """Whether the digits have a right check digit and are a number of a known issuer.

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
    """Whether digits, hyphens and spaces make an ISBN of ten digits."""
    digits = [int(char) for char in text if char.isdigit()]
    return (
        len(digits) == 10
        and sum(d * w for d, w in zip(digits, range(10, 0, -1), strict=True)) % 11 == 0
    )
