"""Language identification: windows, labels, decisions."""

from __future__ import annotations

import pickle
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import ConfigError
from curation.language import LanguageIdentifier, identifier, identify
from curation.language.decide import decide
from curation.language.language_settings import LanguageSettings, default_settings
from curation.language.windows import OPTIONAL, cut, letters_only
from curation.language.windows import kinds as kinds_of
from curation.models import ModelFile
from curation.text import characters as ch
from curation.text.plain import plain
from tests.damage_of_texts import CZECH, ESCAPED, LATVIAN, SLOVENE, read_as, written

SENTENCES = {
    "en": "The committee will publish its report on the harvest at the end of the year.",
    "de": "Der Ausschuss wird seinen Bericht über die Ernte am Ende des Jahres veröffentlichen.",
    "fr": "Le comité publiera son rapport sur les récoltes à la fin de l'année prochaine.",
    "ru": "Комитет опубликует свой доклад об урожае в конце следующего года.",
    "zh": "委员会将在年底发表关于今年收成的报告。",
    "th": "คณะกรรมการจะเผยแพร่รายงานเกี่ยวกับการเก็บเกี่ยวในปลายปีนี้",
    "ar": "ستنشر اللجنة تقريرها عن المحصول في نهاية العام المقبل.",
}


def settings(**changes: object) -> LanguageSettings:
    return LanguageSettings.model_validate(default_settings().model_dump() | changes)


def test_identifies_languages_of_many_scripts() -> None:
    labels, scores = identify(list(SENTENCES.values()))
    assert labels == list(SENTENCES)
    assert all(0.5 < s <= 1 for s in scores)


def test_texts_without_letters_are_unknown() -> None:
    labels, scores = identify(["", " \n\t", "\0", "12345 67,89", "?!… — »«", "​﻿"])
    assert labels == ["und"] * 6
    assert scores == [0.0] * 6


def test_no_texts() -> None:
    assert identify([]) == ([], [])


def test_arrow_strings_and_nulls() -> None:
    text = SENTENCES["de"]
    for kind in (pa.string(), pa.large_string()):
        labels, _ = identify(pa.array([text, None, text], kind).slice(1))
        assert labels == ["und", "de"]


@pytest.mark.parametrize("mark", ["\n", "\r\n", "\0", "\t", "\u2028", " \n\n "])
def test_breaks_between_words_do_not_matter(mark: str) -> None:
    text = SENTENCES["de"]
    assert identify([text.replace(" ", mark)]) == identify([text])


def test_a_label_prefix_in_a_text_is_text() -> None:
    assert identify([f"__label__fr {SENTENCES['de']}"])[0] == ["de"]


def test_long_documents_are_seen_from_begin_to_end() -> None:
    """A page whose first tenth is an English menu is in the language of the rest."""
    menu, body = SENTENCES["en"] * 10, SENTENCES["de"] * 100
    labels, scores = identify([menu + body, body * 50])
    assert labels == ["de", "de"]
    assert scores[0] < scores[1]


def test_windows_are_spread_evenly() -> None:
    text = "".join(chr(0x4E00 + i) for i in range(1000))
    found = cut([text, text[:30]], 3, 10)
    assert found.texts.to_pylist() == [text[:10], text[495:505], text[990:], text[:30]]
    assert found.firsts.tolist() == [0, 3, 4]
    assert found.letters.tolist() == [10, 10, 10, 30]


@given(
    st.lists(st.text(max_size=60), max_size=6),
    st.integers(1, 4),
    st.integers(1, 25),
)
def test_windows_against_strings(texts: list[str], windows: int, characters: int) -> None:
    kinds = kinds_of()
    usual = [all(kinds[ord(c)] in (0, OPTIONAL) for c in t) for t in texts]
    texts = [t for t, normal in zip(texts, usual, strict=True) if normal]
    texts = [t for t in texts if not any(0xD800 <= ord(c) <= 0xDFFF for c in t)]
    # `cut` begins with it: signs that nobody sees count nothing
    texts = plain(pa.array(texts, pa.large_string())).to_pylist()
    found = cut(texts, windows, characters)
    assert len(found.firsts) == len(texts) + 1
    assert found.firsts[-1] == len(found.texts)
    for i, text in enumerate(texts):
        parts = found.texts.to_pylist()[found.firsts[i] : found.firsts[i + 1]]
        most = 1 if len(text) <= windows * characters else windows
        assert len(parts) <= most
        for part in parts:
            assert "\n" not in part and "  " not in part
            assert len(part) <= (windows * characters if most == 1 else characters)
            # a window without its spaces is in the text without its white space
            assert _without_case("".join(part.split())) in _without_case(_without_blanks(text))
        if any(c.isalpha() for c in _without_blanks(text)) and len(text) <= windows * characters:
            assert len(parts) == 1


def _without_case(text: str) -> str:
    return text.replace("İ", "i").casefold()


def _without_blanks(text: str) -> str:
    """The text less what windows leave out: white space, controls, formats, optional marks."""
    properties, kinds = ch.properties(), kinds_of()
    blank = ch.SPACE | ch.IGNORE
    return "".join(c for c in text if not properties[ord(c)] & blank and kinds[ord(c)] != OPTIONAL)


@pytest.mark.parametrize(
    ("code", "text", "usual"),
    [
        ("ar", "وَقَالَ بَعْضُ الْحُكَمَاءِ لَا يُفْسِدُك الظَّنُّ عَلَى صَدِيقٍ", None),
        ("ar", "ﻗﺎﻝ ﺑﻌﺾ ﺍﻟﺤﻜﻤﺎء ﻻ ﻳﻔﺴﺪﻙ ﺍﻟﻈﻦ ﻋﻠﻰ ﺻﺪﻳﻖ", "قال بعض الحكماء لا يفسدك الظن على صديق"),
        ("he", "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ", "בראשית ברא אלהים את השמים ואת הארץ"),
        ("el", "Ὁ κύριος ἔφυγε χθὲς ἀπὸ τὴν Ἀθήνα γιὰ τὴ δουλειά του", None),
        ("pl", "Wczo\u00adraj po\u00adgo\u00adda by\u00adła bar\u00addzo ład\u00adna", None),
        ("vi", unicodedata.normalize("NFD", "Mọi người đều có quyền tự do đi lại và cư trú"), None),
        ("ko", unicodedata.normalize("NFD", "모든 사람은 자유롭게 태어났다"), None),
    ],
)  # fmt: skip
def test_spelling_is_not_language(code: str, text: str, usual: str | None) -> None:
    labels, scores = identify([text])
    assert labels == [code] and scores[0] > 0.5
    if usual is not None:
        assert identify([usual]) == (labels, scores)


@given(st.text(alphabet="aéẠệđ가각ㄱ נאüό ΐ1.", max_size=40))
def test_normal_forms_are_read_alike(text: str) -> None:
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
    read = [letters_only(cut([form], 1, 400).texts).to_pylist() for form in forms]
    assert read[0] == read[1]


def test_greek_letters_have_one_accent() -> None:
    assert letters_only(["ᾧ Ὁ χθὲς Ῥόδος ᾌδης ΰ"]).to_pylist() == ["ώ ο χθές ρόδος άδης ΰ"]


def test_results_do_not_depend_on_the_batch() -> None:
    texts = [a + " " + b for a in SENTENCES.values() for b in SENTENCES.values()] + ["", "?"]
    identifier = LanguageIdentifier(default_settings())
    labels, scores = identifier.apply(texts)
    for i, text in enumerate(texts):
        one_label, one_score = identifier.apply([text])
        assert (one_label[0], one_score[0]) == (labels[i], scores[i])


def test_unknown_below() -> None:
    texts = [SENTENCES["de"], "xqzj wvkk"]
    labels, scores = identify(texts, settings(unknown_below=1.0))
    assert labels[1] == "und"
    assert scores == identify(texts, settings(unknown_below=0.0))[1]


def test_decide_by_threshold_then_language() -> None:
    labels = pa.array(["en", "en", "de", "de", "und", "fr"])
    scores = pa.array(np.array([0.65, 0.64, 0.5, 0.3, 0.1, 0.9], np.float32))
    chosen = settings(thresholds={"default": 0.5, "en": 0.65}, languages=("en", "de"))
    verdicts = decide(labels, scores, chosen)
    assert verdicts.reason.to_pylist() == [
        None,
        "language.low_score",
        None,
        "language.low_score",
        "language.low_score",
        "language.not_selected",
    ]
    assert verdicts.threshold.to_pylist()[1:4:2] == [0.65, 0.5]
    assert verdicts.value.to_pylist()[1] == pytest.approx(0.64)


def test_decide_keeps_all_without_thresholds_and_languages() -> None:
    labels, scores = pa.array(["xx", "und"]), pa.array([0.01, 0.0], pa.float32())
    verdicts = decide(labels, scores, settings(thresholds={}, languages=None))
    assert verdicts.reason.null_count == 2


def test_decide_on_nothing() -> None:
    verdicts = decide(
        pa.array([], pa.string()), pa.array([], pa.float32()), settings(languages=("en",))
    )
    assert len(verdicts.reason) == 0


def test_settings_cross_processes() -> None:
    identifier = LanguageIdentifier(default_settings())
    copy = pickle.loads(pickle.dumps(identifier))
    assert copy == identifier and hash(copy) == hash(identifier)
    assert copy.apply(["Guten Morgen"])[0] == identifier.apply(["Guten Morgen"])[0]


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "noise.bin"
    path.write_bytes(b"nothing of the kind" * 10)
    wrong = settings(model=ModelFile(path=str(path), sha256=None))
    with pytest.raises(ConfigError, match=r"noise\.bin: not a fastText model") as caught:
        identify(["a"], wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "pair", [("de", "fr"), ("de", "ru"), ("ru", "ar"), ("th", "ar"), ("fr", "zh")]
)
def test_a_page_in_two_languages_is_as_sure_as_its_lines(pair: tuple[str, str]) -> None:
    page = "\n".join([" ".join([SENTENCES[language]] * 4) for language in pair] * 6)
    (before,), (score,) = identify([page], settings(lines_below=0.0))
    assert before == "und" or score < 0.65  # either is removed
    (label,), (score,) = identify([page])
    # one Arabic line is nearly as likely Egyptian
    assert label in pair and score > (0.7 if "ar" in pair else 0.8)


@pytest.mark.parametrize("together", [1, 100])
def test_lines_judged_in_parts_are_as_judged_together(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [
        "\n".join([first, second] * 4)
        for first in SENTENCES.values()
        for second in SENTENCES.values()
    ]
    expected = identify(pages, settings(lines_below=1.0))
    monkeypatch.setattr(identifier, "_TOGETHER", together)
    assert identify(pages, settings(lines_below=1.0)) == expected


def test_lines_do_not_make_a_page_of_no_language_sure() -> None:
    letters = np.random.default_rng(0).integers(97, 123, (20, 60), np.uint8)
    letters[:, ::7] = 32
    noise = "\n".join(line.tobytes().decode() for line in letters)
    (label,), (score,) = identify([noise])
    assert label == "und" or score < 0.5


@given(st.lists(st.sampled_from([*SENTENCES.values(), "", "Ok", "12 345"]), max_size=12))
def test_looking_at_lines_never_lowers_a_score(lines: list[str]) -> None:
    _, (before,) = identify(["\n".join(lines)], settings(lines_below=0.0))
    (label,), (after,) = identify(["\n".join(lines)])
    # Lines of three alphabets may count as misread in the language of most.
    assert after >= before or (label, after) == ("und", 0)


@pytest.mark.parametrize(
    ("language", "encodings", "wrong"),
    [
        ("cs", ("cp1250", "iso8859-2", "cp852"), "windows-1252"),
        ("sl", ("cp1250", "iso8859-2"), "windows-1252"),
        ("lv", ("cp1257", "iso8859-13"), "windows-1252"),
        ("pl", ("cp1250",), "windows-1252"),
        ("tr", ("cp1254", "iso8859-9"), "windows-1252"),
        ("de", ("mac-roman",), "windows-1252"),
        ("fr", ("mac-roman", "utf-8"), "cp1250"),
        ("es", ("utf-8",), "cp1250"),
        ("ru", ("cp1251", "koi8-r", "iso8859-5"), "windows-1252"),
        ("el", ("cp1253",), "windows-1252"),
    ],
)
def test_letters_of_another_encoding_cost_a_text_its_score(
    language: str, encodings: tuple[str, ...], wrong: str
) -> None:
    own = {"cs": CZECH, "sl": SLOVENE, "lv": LATVIAN}
    text = own[language] if language in own else "\n".join(written(language)[:3])
    labels, scores = identify([text, *(read_as(e, wrong)(text) for e in encodings)])
    assert labels[0] == language and scores[0] > 0.6
    assert labels[1:] == ["und"] * len(encodings) and max(scores[1:]) < 0.5


def test_names_of_other_languages_cost_nothing() -> None:
    english = (
        "The exhibition shows drawings by Józef Mączyński, Þórunn Guðmundsdóttir and Ğülşen "
        "Yıldız, who met in the harbour of a small town in the north. They worked there for a "
        "whole summer, painted boats and fishermen, and sold most of what they had made before "
        "the first snow. Visitors can see forty sheets, letters to their families, and the "
        "wooden boxes in which they carried paper and ink along the coast."
    )
    german = "\n".join(written("de")[:2]) + " Łódź, Żywiec, Ústí nad Labem und Þingvellir."
    labels, scores = identify([english, german])
    assert labels == ["en", "de"] and min(scores) > 0.65


def test_addresses_are_in_no_language() -> None:
    text = written("uk")[0][:300] + "\n"
    pages = "".join(f"https://www.example.com/path/to/the/page-{n}.html\n" for n in range(30))
    labels, scores = identify([text, text + pages, text + pages.replace("https://", "")])
    assert labels == ["uk"] * 3 and min(scores[1:]) > scores[0] - 0.1


_PATHS = default_settings()
_LISTING = "def f(x):\n    if x == 1:\n        return {'a': x}\n    return x * 2\n"
_LETTERS = "qwv zxk pfgh bnmr tglk vvrt hsdfg lkjq mznx bcvq wrtp ghfd xcvb " * 8


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("sin(x) = 2 cos(x) ± √(1 − x²) ≤ ∑ aᵢ ∈ ℝ\n" * 9, True),
        (r"$$\int_0^1 x^2\,dx = \frac{1}{3},\quad \sum_{k=1}^n k = \frac{n(n+1)}{2}$$" * 5, True),
        (_LISTING * 4, True),
        (_LETTERS, False),
        (_LETTERS + "± ÷ ≤ ≥ ∑", False),
        (_LETTERS + "x² ≤ y² ± 3", False),
        ("\n".join(read_as("cp1251", "windows-1252")(t) for t in written("ru")), False),
        ("\n".join(read_as("euc-kr", "windows-1252")(t) for t in written("ko")), False),
        ("".join(t.encode().decode("big5", "ignore") for t in written("th")), False),
        ("\n".join(ESCAPED["quoted-printable"](t) for t in written("ru")), False),
        ("\n".join(ESCAPED["\\x"](t) for t in written("ru")), False),
        ("\n".join(ESCAPED["\\u"](t) for t in written("el")), False),
    ],
)
def test_no_path_lets_pass_what_is_in_no_language(text: str, stays: bool) -> None:
    unknown = pa.array(["und"]), pa.array([0.0], pa.float32())
    assert decide(*unknown, _PATHS, [text]).kept.to_pylist() == [stays]
