"""Blanks of any width and signs that nobody sees change no measurement and no verdict."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.classify.features import measure as features
from curation.filters import judge
from curation.filters.edits import edit
from curation.filters.filter_settings import default_settings
from curation.filters.signals import Meter
from curation.language import identify
from curation.recipe import load
from curation.text.plain import in_original, plain

#: White_Space of Unicode that ends no line.
BLANKS = "\t\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
#: White space that ends a line, but for the line feed.
BREAKS = "\v\f\r\x85\u2028\u2029"
UNSEEN = (
    "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202c\u2060\u2064\u2066\u2067"
    "\u2068\u2069\u3164\ufe0f\ufeff"
)
RECIPES = ("llama3", "fineweb", "fineweb2", "olmo3")

TEXTS = {
    "en": "The council met on Monday. It spoke of the bridge, and of the road that leads to it.\n"
    "Nobody was against it! The work begins in spring.",
    "de": "Der Rat hat am Montag getagt. Es ging um die Brücke und um den Weg, der zu ihr führt.\n"
    "Niemand war dagegen! Die Arbeit beginnt im Frühling.",
    "fr": "Le conseil s’est réuni lundi. Il a parlé du pont et de la route qui y mène.\n"
    "Personne n’était contre ! Les travaux commencent au printemps.",
    "el": "Το συμβούλιο συνεδρίασε τη Δευτέρα. Μίλησε για τη γέφυρα και τον δρόμο.\n"
    "Κανείς δεν ήταν αντίθετος! Τα έργα αρχίζουν την άνοιξη.",
    "ru": "Совет собрался в понедельник. Речь шла о мосте и о дороге, которая к нему ведёт.\n"
    "Никто не был против! Работы начнутся весной.",
    "hy": "Խորհուրդը հավաքվեց երկուշաբթի։ Խոսեցին կամրջի և ճանապարհի մասին։\n"
    "Ոչ ոք դեմ չէր։ Աշխատանքը կսկսվի գարնանը։",
    "he": "המועצה התכנסה ביום שני. היא דנה בגשר ובדרך המובילה אליו.\n"
    "איש לא התנגד! העבודה תתחיל באביב.",
    "ar": "اجتمع المجلس يوم الاثنين. تحدث عن الجسر وعن الطريق المؤدي إليه.\n"
    "لم يعترض أحد! يبدأ العمل في الربيع.",
    "fa": "شورا روز دوشنبه گرد هم آمد. درباره پل و راهی که به آن می\u200cرسد گفت\u200cوگو شد.\n"
    "هیچ\u200cکس مخالف نبود! کار در بهار آغاز می\u200cشود.",
    "hi": "परिषद की बैठक सोमवार को हुई। पुल और उस तक जाने वाली सड़क की बात हुई।\n"
    "कोई विरोध में नहीं था! काम वसंत में शुरू होगा।",
    "bn": "সোমবার পরিষদের সভা হয়েছে। সেতু ও তার রাস্তা নিয়ে কথা হয়েছে।\n"
    "কেউ বিরোধিতা করেনি! কাজ বসন্তে শুরু হবে।",
    "ta": "திங்கட்கிழமை மன்றம் கூடியது. பாலம் மற்றும் சாலை பற்றிப் பேசப்பட்டது.\n"
    "யாரும் எதிர்க்கவில்லை! பணி வசந்தத்தில் தொடங்கும்.",
    "te": "సోమవారం మండలి సమావేశమైంది. వంతెన గురించి, రోడ్డు గురించి మాట్లాడారు.\n"
    "ఎవరూ వ్యతిరేకించలేదు! పని వసంతంలో మొదలవుతుంది.",
    "ko": "의회는 월요일에 모였다. 다리와 그리로 가는 길에 대해 이야기했다.\n"
    "아무도 반대하지 않았다! 공사는 봄에 시작된다.",
    "vi": "Hội đồng đã họp hôm thứ Hai. Họ nói về cây cầu và con đường dẫn đến đó.\n"
    "Không ai phản đối! Công việc bắt đầu vào mùa xuân.",
}


def judged(texts: list[str], language: str, recipe: str) -> list[dict[str, Any]]:
    table = pa.table({"text": texts, "language": [language] * len(texts)})
    return judge(table, recipe=recipe).to_pylist()


def assert_same(found: list[dict[str, Any]], names: list[str]) -> None:
    first = found[0]
    for row, name in zip(found, names, strict=True):
        for key, value in row.items():
            both_nan = isinstance(value, float) and math.isnan(value) and math.isnan(first[key])
            assert both_nan or value == first[key], (ascii(name), key, value, first[key])


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("language", TEXTS)
def test_every_blank_is_a_blank_and_what_nobody_sees_is_nothing(language: str, recipe: str) -> None:
    text = TEXTS[language]
    before = [text.replace(" ", f" {sign}") for sign in UNSEEN]
    after = [text.replace(" ", f"{sign} ") for sign in UNSEEN]
    within = [text.replace("o", f"{sign}o") for sign in UNSEEN]
    variants = [text, *(text.replace(" ", c) for c in BLANKS), *before, *after, *within]
    assert_same(judged(variants, language, recipe), [" ", *BLANKS, *UNSEEN * 3])


@pytest.mark.parametrize("language", TEXTS)
def test_line_breaks_separate_words(language: str) -> None:
    text = TEXTS[language]
    found = judged([text, *(text.replace(" ", c) for c in BREAKS)], language, "llama3")
    counts = [{k: v for k, v in row.items() if k.startswith("gopher")} for row in found]
    assert counts[0]["gopher_word_count"] == sum(
        any(map(str.isalnum, word)) for word in text.split()
    )
    assert_same(counts, [" ", *BREAKS])


def test_the_dialect_of_dclm_counts_as_its_tool() -> None:
    text = TEXTS["en"].replace(" ", "\u00a0")
    for dialect, words in (("dclm", 2), ("unicode", len(text.split()))):
        recipe = load("llama3")
        signals = recipe.filter.signals.model_copy(
            update={"gopher": recipe.filter.signals.gopher.model_copy(update={"dialect": dialect})}
        )
        recipe = recipe.model_copy(
            update={"filter": recipe.filter.model_copy(update={"signals": signals})}
        )
        (row,) = judge(pa.table({"text": [text], "language": ["en"]}), recipe).to_pylist()
        assert row["gopher_word_count"] == words


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a\u00a0b\u202fc\u2009d\u3000e\u1680f", "a b c d e f"),
        ("Donau\u00addampf\u00adschiff", "Donaudampfschiff"),
        ("\ufeffone\u200b \u2060two\u200e", "one two"),
        ("\u2066שלום\u2069 \u2068world\u2069", "שלום world"),
        ("می\u200cشود می\u200c شود \u200cمی", "می\u200cشود می شود می"),
        ("क्\u200dष \u200dक", "क्\u200dष क"),
        ("wo\u200crd \u200dword\u200c", "word word"),
        ("👩\u200d💻 👩\u200d", "👩\u200d💻 👩"),
        ("❤\ufe0f 字\U000e0100 a\u034f\u0301", "❤ 字 a\u0301"),
        ("one\u2028two\x85three\ttab\r\n", "one\u2028two\x85three\ttab\r\n"),
        ("ไทย\u200bภาษา", "ไทยภาษา"),
        ("plain “text” — as it is… 日本 हिन्दी", "plain “text” — as it is… 日本 हिन्दी"),
        ("\u200b\u200c", ""),
    ],
)
def test_how_a_text_is_read(written: str, read: str) -> None:
    found = pa.array(plain([written, "a", written]), pa.large_string())
    assert found.to_pylist() == [read, "a", read]


ODD = st.text(st.sampled_from("ab. \u00a0\u200b\u200c\u200d\u00ad字ښक\u2028\n🙂é"), max_size=12)


@given(texts=st.lists(ODD, max_size=4))
@settings(max_examples=300, deadline=None)
def test_places_lead_back_to_the_text(texts: list[str]) -> None:
    """The pieces between two places, each read by itself, are the text as it is read."""
    read = [text.encode() for text in pa.array(plain(texts), pa.large_string()).to_pylist()]
    rows, spans = [], []
    for row, text in enumerate(read):
        edges = [i for i in range(len(text) + 1) if i == len(text) or text[i] & 0xC0 != 0x80]
        for a, b in zip(edges[::2], edges[1::2], strict=False):
            rows.append(row)
            spans.append((a, b))
    data, starts = (
        b"".join(t.encode() for t in texts),
        np.cumsum([0, *map(len, map(str.encode, texts))]),
    )
    found = in_original(texts, np.array(rows, np.int64), np.array(spans, np.int64).reshape(-1, 2))
    for row, (a, b), (begin, end) in zip(rows, spans, found.tolist(), strict=True):
        assert starts[row] <= begin <= end <= starts[row + 1]
        piece = data[begin:end].decode().translate(dict.fromkeys([0x200B, 0xAD, 0x200C, 0x200D]))
        own = read[row][a:b].decode().translate(dict.fromkeys([0x200C, 0x200D]))
        assert piece.replace("\u00a0", " ") == own


def test_what_is_cut_is_cut_from_the_text_as_it_is() -> None:
    wanted = default_settings(edits={"c4": True}).edits
    meter = Meter(default_settings().signals)
    text = "One\u00a0line that is\u200b good.\n"
    text += "\u200bno\u200b\u00a0good\u200b\nA\u00ad last [edit] line, good."
    for texts in ([text], ["x y z.", text, text]):
        result = edit(texts, meter, wanted, None, plain(texts))
        assert (
            result.texts.to_pylist()[-1]
            == "One\u00a0line that is\u200b good.\nA\u00ad last  line, good."
        )
        assert result.cut.to_pylist()[-2:] == ["\u200bno\u200b\u00a0good\u200b\n", "[edit]"]
        assert [text.encode()[p:][:4] for p in result.positions[-2:].tolist()] == [
            "\u200bno".encode()[:4],
            b"[edi",
        ]


@pytest.mark.parametrize("language", ["de", "fa", "ru", "vi"])
def test_language_and_features_are_those_of_what_is_read(language: str) -> None:
    text = TEXTS[language]
    odd = [text.replace(" ", "\u00ad \u200c"), text.replace(" ", "\u00a0"), f"\ufeff{text}"]
    variants = [text, *odd]
    labels, scores = identify(variants)
    assert set(labels) == {language} and len(set(scores)) == 1
    found = features(variants, 10_000)
    assert (found.shape[: len(variants)] == found.shape[0]).all()
    assert len({found.ids[a:b].tobytes() for a, b in pairwise(found.starts)}) == 1
