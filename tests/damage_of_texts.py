"""Texts of the samples, and what the web does to letters."""

from __future__ import annotations

import functools
import html.entities
import quopri
import random
import re
import urllib.parse
from collections.abc import Callable
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "data_samples" / "sources"
LANGUAGES = tuple(sorted(p.stem[5:] for p in SOURCES.glob("lang_*.txt")))

Damage = Callable[[str], str]

#: Written for this: languages of central Europe that the samples lack.
CZECH = (
    "Přístav na řece byl před válkou největším překladištěm obilí v celém kraji. Když přišla "
    "povodeň, voda zničila dřevěné můstky i sklady a lidé museli všechno stavět znovu. Dnes tu "
    "kotví jen několik člunů, ve kterých žijí malíři a studenti, a v létě sem jezdí výletníci na "
    "čerstvé ryby. Starý přívozník říká, že řeka je čistší než dřív, ale že už nikdy nebude tak "
    "živá. Večer se na nábřeží rozsvítí světla, děti házejí kamínky do vody a z hospody zní "
    "harmonika. Kdo chce vidět, jak město vypadalo kdysi, najde v muzeu obrazy a těžké železné "
    "kotvy."
)
SLOVENE = (
    "Stari mlin ob potoku še vedno melje žito, čeprav je kolo že večkrat počilo. Mlinar pravi, da "
    "voda nikoli ne počiva in da mora človek znati poslušati kamen. Poleti pridejo šolarji iz "
    "mesta, da vidijo, kako nastane moka, in vsak dobi majhno vrečko za domov. Pozimi je dolina "
    "tiha, sneg leži do okenskih polic in le redko kdo se pripelje čez most. Če bo občina našla "
    "denar, bodo streho obnovili še letos, drugače bo morala počakati do naslednje pomladi."
)
LATVIAN = (
    "Vecā dzirnavu ēka stāv upes krastā jau vairāk nekā simts gadu, un tās jumts ir klāts ar "
    "sūnām. Katru rītu saimnieks atver slūžas, lai ūdens sāktu griezt lielo ratu, un graudi lēnām "
    "pārvēršas miltos. Bērni no tuvējās skolas nāk skatīties, kā top maize, un katrs drīkst "
    "pagaršot siltu garoziņu. Ziemā ceļš ir grūti izbraucams, tāpēc krājumi jāsagādā jau rudenī. "
    "Ja pavasarī plūdi būs mēreni, tiltu salabos un ciemiņi atkal varēs atbraukt ar autobusu."
)


@functools.cache
def written(language: str) -> tuple[str, ...]:
    """Articles of the samples in a language, each of several paragraphs."""
    text = (SOURCES / f"lang_{language}.txt").read_text("utf-8")
    return tuple(part.partition("\n")[2].strip() for part in text.split("=== ") if len(part) > 150)


def read_as(encoding: str, wrong: str) -> Damage:
    """Text in one encoding, read in another; what that lacks as the C1 control of its byte."""

    def damage(text: str) -> str:
        content = text.encode(encoding, "replace")
        if wrong == "windows-1252":
            return "".join(bytes([b]).decode("cp1252", "ignore") or chr(b) for b in content)
        return content.decode(wrong, "replace")

    return damage


def _each(replaced: Callable[[str], str], what: str = r"[^\x00-\x7f]") -> Damage:
    return lambda text: re.sub(what, lambda found: replaced(found[0]), text)


def every_tenth(sign: str) -> Damage:
    def damage(text: str) -> str:
        draw = random.Random(len(text))
        return "".join(c if c.isspace() or draw.random() > 0.1 else sign for c in text)

    return damage


def _named(char: str) -> str:
    name = html.entities.codepoint2name.get(ord(char))
    return f"&{name};" if name else f"&#{ord(char)};"


#: Texts that could not be decoded: U+FFFD, `?`.
LOST: dict[str, Damage] = {
    "U+FFFD for letters": _each(lambda _: "\ufffd"),
    "every tenth U+FFFD": every_tenth("\ufffd"),
    "? for letters": _each(lambda _: "?"),
    "?? for letters": _each(lambda c: "?" * len(c.encode())),
    "every tenth ?": every_tenth("?"),
}
#: Escapes that nobody undid.
ESCAPED: dict[str, Damage] = {
    "quoted-printable": lambda text: quopri.encodestring(text.encode()).decode(),
    "quoted-printable without breaks": _each(lambda c: "".join(f"={b:02X}" for b in c.encode())),
    "\\u": _each(lambda c: f"\\u{ord(c):04x}"),
    "u": _each(lambda c: f"u{ord(c):04x}"),
    "\\u{}": _each(lambda c: f"\\u{{{ord(c):04x}}}"),
    "\\x": _each(lambda c: "".join(f"\\x{b:02x}" for b in c.encode())),
    "octal": _each(lambda c: "".join(f"\\{b:03o}" for b in c.encode())),
    "&#x": _each(lambda c: f"&#x{ord(c):x};"),
    "&#X": _each(lambda c: f"&#X{ord(c):04X};"),
    "&#": _each(lambda c: f"&#{ord(c)};"),
    "&amp;#": _each(lambda c: f"&amp;#{ord(c)};"),
    "names": _each(_named),
    "percent": _each(urllib.parse.quote),
    "%u": _each(lambda c: f"%u{ord(c):04X}"),
    "UTF-7": lambda text: text.encode("utf-7").decode(),
    "<U+>": _each(lambda c: f"<U+{ord(c):04X}>"),
}
