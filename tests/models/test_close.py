"""Close languages, told from each other by their words."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation import resources
from curation.errors import ConfigError, InputError
from curation.language import identify
from curation.language.close import PARTS, WEIGHED, CloseLanguages, keys, weighed
from curation.language.corrector import load_corrector
from curation.language.evidence import KNOTS
from curation.language.fasttext import load_fasttext
from curation.language.windows import letters_only
from models.training.close import Judged, Source, fit, learn, pair_accuracy, source_of
from models.training.corrector import train_corrector
from models.training.report import About
from models.training.settings import CorrectorTraining, default_settings
from tests.models.test_corrector import OFFICIAL

MODELS = resources.root() / "models"
SETTINGS = default_settings("corrector", CorrectorTraining)
CLOSE = SETTINGS.close
ABOUT = About("1", "CC0-1.0", "", "")


def plain_words(line: str) -> list[str]:
    """Words between spaces; Han characters one by one and in pairs."""
    found, word, before = [], "", ""
    for c in [*line, " "]:
        han = 0x2E80 <= ord(c) < 0xA000 or ord(c) >= 0x20000
        if word and (han or c == " "):
            found.append(word)
            word = ""
        if han:
            found += [c] + [before + c] * bool(before)
        elif c != " ":
            word += c
        before = c if han else ""
    return found


LINES = st.lists(st.text(alphabet="ab ßж中文𠀀", max_size=12), max_size=6)


@given(LINES)
def test_words_against_plain_ones(lines: list[str]) -> None:
    found, counts = keys(lines)
    words = [plain_words(line) for line in lines]
    assert counts.tolist() == list(map(len, words))
    flat = [word for line in words for word in line]
    # one hash for each word, and hardly ever the same for two
    assert len(set(zip(flat, found.tolist(), strict=True))) == len(set(flat))
    assert len(set(found.tolist())) >= len(set(flat)) - 1


@given(LINES, st.lists(st.integers(0, 2), max_size=6))
def test_odds_against_plain_sums(lines: list[str], sizes: list[int]) -> None:
    known = {"a": (40, -40), "中": (-7, 3), "中文": (0, 127), "ß": (1, 2)}
    hashes, _ = keys(list(known))
    of_pair = [h for word, h in zip("a中中文ß", hashes, strict=False)]
    assert len(of_pair)
    table = {int(keys([word])[0][-1]): odds for word, odds in known.items() if word != "中文"}
    table[int(keys(["中文"])[0][2])] = known["中文"]
    order = sorted(table)
    close = CloseLanguages(
        ((3, 5),),
        np.array([0, len(order)]),
        np.array(order, np.uint32),
        np.array([table[h] for h in order], np.int8),
        np.zeros((len(WEIGHED), len(KNOTS))),
    )
    firsts = np.minimum(np.cumsum([0, *sizes]), len(lines))
    rows = np.arange(len(firsts) - 1)[::-1]
    found = close.words(0, lines, firsts, rows)
    for row, odds in zip(rows, found, strict=True):
        words = [w for line in lines[firsts[row] : firsts[row + 1]] for w in plain_words(line)]
        sums = np.array([known.get(w, (0, 0)) for w in words] or [(0, 0)]).sum(0)
        assert odds == pytest.approx(sums / PARTS / max(len(words), 1) ** 0.5)


def learned() -> CloseLanguages:
    """Labels 1 and 2 of 4, which have one word each, and label 3, of which nothing is known."""
    sources = {
        1: [source_of(["eins wort"] * 50)],
        2: [source_of(["zwei wort"] * 50), source_of(["zwo"], np.array([9.0]))],
    }
    return learn([[1, 2], [2, 3]], sources, CLOSE.model_copy(update={"prior": 10.0}))


def test_what_a_word_says() -> None:
    close = learned()
    one, two, both, none = close.words(
        0, ["eins", "zwei", "wort", "niemals"], np.arange(5), np.arange(4)
    )
    assert one[0] > 0.5 > -1 > one[1] and two[1] > 0.5 > -1 > two[0]
    assert abs(both).max() < 0.1 and not none.any()
    assert close.words(0, ["zwo"], np.arange(2), np.arange(1))[0, 1] > 0


def test_a_language_without_texts_is_neither_favoured_nor_punished() -> None:
    none = learn([[0, 1]], {}, CLOSE)
    assert not len(none.keys) and not none.words(0, ["a"], np.arange(2), np.arange(1)).any()
    _, unknown = learned().words(1, ["zwei"], np.arange(2), np.arange(1))[0]
    assert abs(unknown) < 0.8  # its prior is the average of the group


def test_a_language_in_two_scripts_is_as_sure_of_either() -> None:
    def of(*words: str) -> list[Source]:
        return [source_of([word, "a"], np.array([30.0, 10.0])) for word in words]

    both = learn([[0, 1]], {0: of("ja", "ја"), 1: of("ne")}, CLOSE)
    one = learn([[0, 1]], {0: of("ja"), 1: of("ne")}, CLOSE)
    for word in ("ja", "ne", "a"):
        found = [c.words(0, [word], np.arange(2), np.arange(1)) for c in (both, one)]
        assert found[0] == pytest.approx(found[1])


def test_only_the_words_that_say_most_are_kept() -> None:
    sources = {i: [source_of([f"w{i} beide x{i}"] * (9 - i))] for i in (0, 1)}
    close = learn([[0, 1]], sources, CLOSE.model_copy(update={"words": 3}))
    assert len(close.keys) == 3 and (np.diff(close.keys.astype(np.int64)) > 0).all()
    assert not close.words(0, ["beide"], np.arange(2), np.arange(1)).any()


def with_weights(close: CloseLanguages, *weights: float) -> CloseLanguages:
    return replace(close, weights=np.repeat(weights, len(KNOTS)).reshape(len(WEIGHED), -1))


@given(st.lists(st.lists(st.floats(0.01, 1), min_size=5, max_size=5), min_size=1, max_size=5))
def test_only_the_group_is_shared_out(rows: list[list[float]]) -> None:
    before = np.array(rows)
    before /= before.sum(1, keepdims=True)
    close = with_weights(replace(learned(), groups=((1, 2),)), 0.5, 0.0, 1.0)
    lines, firsts = ["eins zwei eins"] * len(rows), np.arange(len(rows) + 1)
    after = close.shared_out(before, lines, firsts, np.zeros(5, bool))
    assert after.sum(1) == pytest.approx(1)
    assert after[:, [0, 3, 4]] == pytest.approx(before[:, [0, 3, 4]])
    inside = np.isin(before.argmax(1), (1, 2))
    assert after[~inside] == pytest.approx(before[~inside])
    odds = np.log(after[inside, 1] / after[inside, 2])
    expected = 0.5 * np.log(before[inside, 1] / before[inside, 2])
    assert (odds > expected).all()


def test_a_large_language_is_favoured() -> None:
    before = np.array([[0.1, 0.3, 0.25, 0.25, 0.1]])
    close = with_weights(replace(learned(), groups=((1, 2),)), 1.0, 2.0, 0.0)
    after = close.shared_out(before, ["x"], np.arange(2), np.arange(5) == 2)
    assert after[0].argmax() == 2 and after[0, 1:3].sum() == pytest.approx(0.55)


def judged(shares: np.ndarray, words: np.ndarray, truth: np.ndarray) -> Judged:
    size = np.full(len(truth), 64)
    return Judged(shares, words, size, truth, np.full(len(truth), 30), np.zeros(2, bool))


def test_weights_follow_what_is_right() -> None:
    random = np.random.default_rng(0)
    truth = random.integers(0, 2, 400)
    right = np.where(np.arange(2) == truth[:, None], 1.0, -1.0)
    noise = random.dirichlet(np.ones(2), 400)
    data = judged(noise, right, truth)
    weights = fit([data], CLOSE)
    assert weights.shape == (len(WEIGHED), len(KNOTS))
    found = weighed(weights, noise, right, data.sizes, data.large)
    assert (found.argmax(1) == truth).all() and weights[2, 3] > 1 > abs(weights[0, 3])
    pairs = pair_accuracy([(data, weights)], ("aa", "bb"), CLOSE)
    before, after = pairs["aa bb"]["30"]
    assert before == pytest.approx(0.5, abs=0.1) and after == 1.0
    known = judged(right > 0, right, truth)
    assert pair_accuracy([(known, weights)], ("aa", "bb"), CLOSE) == {}


def test_groups_name_labels_of_the_first_model(tmp_path: Path) -> None:
    close = CLOSE.model_copy(update={"groups": (("de", "xx"),)})
    with pytest.raises(ConfigError, match=r"no language 'xx' \(favoured, everywhere, close"):
        train_corrector([], tmp_path, ABOUT, SETTINGS.model_copy(update={"close": close}))


def test_lists_of_words_are_objects(tmp_path: Path) -> None:
    texts, words = tmp_path / "texts.jsonl", tmp_path / "words.jsonl"
    texts.write_text(
        '{"text": "ein wort", "lang": "de"}\n{"text": "toki pona", "lang": "tok"}\n', "utf-8"
    )
    words.write_text('{"lang": "de", "words": {"und": 3}}\n{"lang": "de"}\n', "utf-8")
    with pytest.raises(InputError, match=r"words\.jsonl:2: no object 'words'"):
        train_corrector([texts], tmp_path / "out", ABOUT, SETTINGS, words=[words])


def test_the_shipped_groups() -> None:
    labels = load_fasttext(MODELS / "language" / "lid.176.ftz", "lid").labels
    corrector = load_corrector(MODELS / "corrector" / "corrector.npz", "corrector", labels)
    close = corrector.close
    named = [tuple(corrector.labels[i] for i in group) for group in close.groups]
    assert named == list(CLOSE.groups)
    for number, group in enumerate(close.groups):
        own = close.keys[close.starts[number] : close.starts[number + 1]]
        assert 0 < len(own) <= CLOSE.words and (np.diff(own.astype(np.int64)) > 0).all()
        assert not close.odds[close.starts[number] : close.starts[number + 1], len(group) :].any()


#: Sentences written for this test, by language.
SENTENCES = {
    "id": "Saya tidak bisa datang ke kantor besok karena mobil saya rusak di jalan raya.",
    "ms": "Saya tidak dapat datang ke pejabat esok kerana kereta saya rosak di lebuh raya.",
    "jv": "Aku ora bisa teka menyang kantor sesuk amarga montorku rusak ana ing dalan gedhe.",
    "hr": "Tko je tijekom proljeća posjetio našu tvrtku, dobit će izvješće idući tjedan.",
    "bs": "Ko je pisao historiju općine, vjerovatno je lahko saznao šta se desilo u januaru.",
    "sr": "Ko je tokom proleća posetio našu firmu dobiće izveštaj sledeće nedelje u januaru.",
    "mk": "Децата секој ден одат на училиште и потоа играат фудбал во паркот до реката.",
    "bg": "Децата всеки ден ходят на училище и след това играят футбол в парка до реката.",
    "kk": "Балалар күн сайын мектепке барып, содан кейін өзен жағасындағы саябақта ойнайды.",
    "tt": "Балалар көн саен мәктәпкә йөри, аннары елга буендагы паркта уйный.",
    "zh": "他们昨天没有来上班，因为孩子生病了，现在在家里休息。",
    "yue": "佢哋琴日冇返工，因為個仔病咗，而家喺屋企休息緊。",
    "ar": "لم يذهب الأولاد إلى المدرسة اليوم لأن المعلم مريض، وسوف يعودون غدا.",
    "arz": "انا مش عايز اروح دلوقتي عشان تعبان اوي، هروح بكره لوحدي.",
    "no": "Jeg vet ikke hva de gjorde hjemme i går, men barna var veldig glade da de kom tilbake.",
    "nn": "Eg veit ikkje kva dei gjorde heime i går, men borna var glade då dei kom attende.",
    "da": "Jeg ved ikke, hvad de lavede derhjemme i går, men børnene var meget glade bagefter.",
    "cs": "Děti si dnes odpoledne hrály na zahradě, protože konečně přestalo pršet.",
    "sk": "Deti sa dnes popoludní hrali v záhrade, pretože konečne prestalo pršať.",
    "es": "Los niños jugaron ayer en el jardín porque por fin dejó de llover en el pueblo.",
    "gl": "Os nenos xogaron onte no xardín porque por fin deixou de chover na aldea.",
    "pt": "As crianças brincaram ontem no jardim porque finalmente parou de chover na aldeia.",
    "nl": "De kinderen speelden gisteren in de tuin omdat het eindelijk niet meer regende.",
    "af": "Die kinders het gister in die tuin gespeel omdat dit nie meer gereën het nie.",
    "hi": "बच्चे कल बगीचे में खेल रहे थे क्योंकि आखिरकार बारिश रुक गई थी।",
    "mr": "मुले काल बागेत खेळत होती कारण शेवटी पाऊस थांबला होता.",
    "tr": "Çocuklar dün bahçede oynadılar çünkü yağmur sonunda durmuştu.",
    "tk": "Çagalar düýn bagda oýnadylar, sebäbi ýagyş ahyrsoňy diňdi.",
    "fa": "بچه‌ها دیروز در باغ بازی کردند چون بالاخره باران بند آمده بود.",
    "ur": "بچے کل باغ میں کھیل رہے تھے کیونکہ آخرکار بارش رک گئی تھی۔",
    "tl": "Naglaro ang mga bata sa hardin kahapon dahil tumigil na ang ulan sa wakas.",
    "ceb": "Nagdula ang mga bata sa tanaman kagahapon kay mihunong na gyud ang ulan.",
    "de": "Die Kinder haben gestern im Garten gespielt, weil es endlich nicht mehr geregnet hat.",
    "als": "D Chind hend geschter im Garte gspilt, wil s endli nümme gregnet het.",
    "eo": "La infanoj hieraŭ ludis en la ĝardeno, ĉar fine ĉesis pluvi en la vilaĝo.",
    "it": "I bambini ieri hanno giocato in giardino perché finalmente aveva smesso di piovere.",
}


@pytest.mark.parametrize("label", SENTENCES)
def test_sentences_of_close_languages(label: str) -> None:
    assert identify([SENTENCES[label]])[0] == [label]


def test_every_group_has_sentences() -> None:
    untried = {("eo", "io"), ("it", "la", "vec"), ("kin_Latn", "run_Latn")}
    for group in CLOSE.groups:
        tried = set(group) & {*SENTENCES, *OFFICIAL}
        assert len(tried) >= 2 or group in untried


def test_words_of_a_line_are_found_whatever_is_before_them() -> None:
    (lines,) = [letters_only(["Kerana, KERANA; «kerana»!"])]
    found, counts = keys(lines)
    assert counts.tolist() == [3] and Counter(found.tolist()).most_common(1)[0][1] == 3
