"""The second language model: how it corrects, how it is stored and trained; languages by line."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
import regex
import yaml
from hypothesis import given
from hypothesis import strategies as st

from curation import resources
from curation.errors import ConfigError
from curation.language import LanguageIdentifier, identify
from curation.language.corrector import Corrector, load_corrector
from curation.language.fasttext import load_fasttext
from curation.language.language_settings import LanguageSettings, default_settings
from curation.language.windows import letters_only, split_lines
from models.training.corrector import train_corrector
from models.training.evidence import learn
from models.training.report import About
from models.training.saving import save_corrector
from models.training.settings import CorrectorTraining
from models.training.settings import default_settings as training_settings

MODELS = resources.root() / "models"
GERMAN = "Der Ausschuss wird seinen Bericht über die Ernte am Ende des Jahres veröffentlichen."
ENGLISH = "The committee will publish its report on the harvest at the end of the year."
SOMALI = "Dadka oo dhan waxay dhashaan iyagoo xor ah kana siman xagga sharafta iyo xuquuqda."
ZULU = "Bonke abantu bazalwa bekhululekile belingana ngesithunzi nangamalungelo abo ubuntu."

#: Official languages of states that the first model does not know.
OFFICIAL = {
    "zul_Latn": "Umkhandlu wedolobha uhlangane ngoMsombuluko ukuze uxoxe ngebhuloho elisha "
    "elizokwakhiwa emfuleni. "
    "Abantu abaningi bebekhona futhi bavumile ukuthi umsebenzi uqale ngentwasahlobo.",
    "xho_Latn": "Ibhunga lesixeko lidibene ngoMvulo ukuze lixoxe ngebhulorho entsha eza "
    "kwakhiwa emlanjeni. "
    "Abantu abaninzi bebekho kwaye bavumile ukuba umsebenzi uqale entwasahlobo.",
    "sot_Latn": "Lekgotla la motse le kopane ka Mantaha ho buisana ka borokgo bo botjha bo "
    "tla hahuwa nokeng. "
    "Batho ba bangata ba ne ba le teng mme ba dumetse hore mosebetsi o qale nakong ya selemo.",
    "tsn_Latn": "Lekgotla la toropo le kopane ka Mosupologo go buisana ka borogo jo "
    "bontšhwa jo bo tla agiwang kwa nokeng. "
    "Batho ba le bantsi ba ne ba le teng mme ba dumetse gore tiro e simolole ka dikgakologo.",
    "ssw_Latn": "Umkhandlu welidolobha uhlangene ngeMsombuluko kute ucoce ngelibhuloho "
    "lelisha lelitawakhiwa emfuleni. "
    "Bantfu labanyenti bebakhona futsi bavumile kutsi umsebenti ucale entfwasahlobo.",
    "nbl_Latn": "Umkhandlu wedorobho uhlangene ngoMvulo bona ukhulumisane ngebhuloho "
    "elitjha elizokwakhiwa emlanjeni. "
    "Abantu abanengi bebakhona begodu bavumile bonyana umsebenzi uthome ngesilimela.",
    "nso_Latn": "Lekgotla la toropo le kopane ka Mošupologo go boledišana ka leporogo le "
    "leswa leo le tlago go agiwa nokeng. "
    "Batho ba bantši ba be ba le gona gomme ba dumetše gore mošomo o thome ka seruthwane.",
    "tso_Latn": "Huvo ya doroba yi hlanganile hi Musumbhunuku ku burisana hi buloho leri "
    "ntshwa leri nga ta akiwa enambyeni. "
    "Vanhu vo tala a va ri kona naswona va pfumerile leswaku ntirho wu sungula.",
    "ven_Latn": "Khoro ya ḓorobo yo ṱangana nga Musumbuluwo u itela u ambisana nga ha "
    "buroho ḽiswa ḽine ḽa ḓo fhaṱwa mulamboni. "
    "Vhathu vhanzhi vho vha vhe hone nahone vho tenda uri mushumo u thome.",
    "sna_Latn": "Kanzuru yeguta rakasangana neMuvhuro kuti rikurukure nezvebhiriji idzva "
    "richavakwa parwizi. "
    "Vanhu vazhinji vaivepo uye vakabvuma kuti basa ritange muchirimo.",
    "mri_Latn": "I hui te kaunihera o te tāone i te Mane ki te kōrero mō te piriti hou ka "
    "hangaia i runga i te awa. "
    "He tokomaha ngā tāngata i reira, ā, i whakaae rātou kia tīmata te mahi i te kōanga.",
    "kin_Latn": "Inama njyanama y'umujyi yateranye ku wa mbere kugira ngo iganire ku "
    "kiraro gishya kizubakwa ku ruzi. "
    "Abantu benshi bari bahari kandi bemeye ko imirimo itangira.",
    "hau_Latn": "Majalisar birni ta yi taro ranar Litinin domin tattauna batun sabuwar "
    "gada da za a gina a kan kogi. "
    "Mutane da yawa sun halarta kuma sun amince a fara aikin.",
    "ibo_Latn": "Ndị kansụl obodo zukọrọ na Mọnde iji kparịta ụka banyere àkwà mmiri ọhụrụ "
    "a ga-ewu n'elu osimiri. "
    "Ọtụtụ mmadụ nọ ebe ahụ ma kweta ka ọrụ malite.",
    "nya_Latn": "Bungwe la mzinda linakumana Lolemba kuti likambirane za mlatho watsopano "
    "umene udzamangidwe pamtsinje. "
    "Anthu ambiri analipo ndipo anavomereza kuti ntchito iyambe.",
    "smo_Latn": "Na fono le fono a le aai i le Aso Gafua e talanoa i le alalaupapa fou o "
    "le a fausia i luga o le vaitafe. "
    "Sa toatele tagata sa i ai ma sa latou malilie e amata le galuega.",
    "tir_Ethi": "ባይቶ ከተማ ሰኑይ ተኣኪቡ ብዛዕባ ኣብ ሩባ ዝስራሕ ሓድሽ ድልድል ተዛትዩ። "
    "ብዙሓት ሰባት ነይሮም፣ ስራሕ ክጅመር ድማ ተሰማሚዖም።",
    "gaz_Latn": "Manni maree magaalaa Wiixata walga'ee waa'ee riqicha haaraa laga irratti "
    "ijaaramuu mari'ate. "
    "Namoonni baay'een argamanii hojiin akka jalqabu walii galan.",
}


def settings(**changes: object) -> LanguageSettings:
    return LanguageSettings.model_validate(default_settings().model_dump() | changes)


@pytest.fixture(scope="module")
def corrector() -> Corrector:
    labels = load_fasttext(MODELS / "language" / "lid.176.ftz", "lid").labels
    return load_corrector(MODELS / "corrector" / "corrector.npz", "corrector", labels)


def test_languages_that_the_first_model_takes_for_others() -> None:
    alone = settings(corrector=None)
    assert identify([GERMAN, ENGLISH])[0] == identify([GERMAN, ENGLISH], alone)[0] == ["de", "en"]
    assert identify([SOMALI])[0] == ["so"] != identify([SOMALI], alone)[0]


def test_a_language_that_no_model_has_is_unknown() -> None:
    labels, scores = identify([ZULU], settings(unknown_below=0.0, labels=176))
    assert labels == ["und"] and scores[0] < 0.5


def test_a_word_is_little_evidence() -> None:
    _, scores = identify(["App", "Blank", ENGLISH])
    assert scores[0] < 0.5 and scores[1] < 0.5 < scores[2]


def test_names_beyond_the_first_model() -> None:
    luganda = "Abantu bonna bazaalibwa nga balina eddembe n'obuyinza ebyenkanankana."
    labels, scores = identify([luganda, GERMAN], settings(labels="all"))
    assert labels == ["lug_Latn", "de"] and min(scores) > 0.5
    assert identify([luganda])[0] == ["und"]
    every = LanguageIdentifier(settings(labels="all")).languages
    assert "xho_Latn" in every and every > LanguageIdentifier(default_settings()).languages


@pytest.mark.parametrize("language", OFFICIAL)
def test_official_languages_have_their_names(language: str) -> None:
    text = OFFICIAL[language]
    labels, scores = identify([text, text.upper(), text.lower()])
    limits = default_settings().thresholds
    assert labels == [language] * 3 and min(scores) > limits.get(language, limits["default"])
    assert scores[1] == scores[2]
    assert identify([text], settings(labels=176))[0] == ["und"]


def test_labels_are_named_one_by_one() -> None:
    texts = [OFFICIAL["zul_Latn"], OFFICIAL["sot_Latn"], GERMAN]
    some = settings(labels=["sot_Latn"])
    assert identify(texts, some)[0] == ["und", "sot_Latn", "de"]
    assert "sot_Latn" in LanguageIdentifier(some).languages > {"de", "und"}
    with pytest.raises(ConfigError, match=r"labels: the model has no language 'sot'.*sot_Latn"):
        LanguageIdentifier(settings(labels=["sot"])).load()


@pytest.mark.parametrize(
    "text",
    [
        GERMAN,
        ENGLISH,
        SOMALI,
        "Le comité publiera son rapport sur la récolte à la fin de l’année.",
        "Komiteja gada beigās publicēs savu ziņojumu par ražu un turpmākajiem darbiem.",
        "Odbor će krajem godine objaviti svoje izvješće o žetvi i daljnjim radovima.",
        "Komitee avaldab aasta lõpus oma aruande saagi ja edasiste tööde kohta.",
        "Jawatankuasa akan menerbitkan laporannya mengenai hasil tuaian pada akhir tahun.",
        "Komitetas metų pabaigoje paskelbs savo ataskaitą apie derlių ir tolesnius darbus.",
        "Die komitee sal aan die einde van die jaar sy verslag oor die oes bekend maak.",
        "Комитет опубликует свой доклад об урожае в конце этого года.",
        "Одбор ће крајем године објавити свој извештај о жетви и даљим радовима.",
        "Η επιτροπή θα δημοσιεύσει την έκθεσή της για τη συγκομιδή στο τέλος του έτους.",
        "Հանձնաժողովը տարվա վերջում կհրապարակի բերքի մասին իր զեկույցը։",
    ],
)
def test_capitals_cost_no_language(text: str) -> None:
    """The score of a text in capitals is that of small letters."""
    labels, scores = identify([text.upper(), text.upper().lower(), text])
    assert labels[0] == labels[1] == labels[2] and scores[0] == scores[1]


def test_nothing_known_is_nothing_found(corrector: Corrector) -> None:
    both, k = len(corrector.labels), corrector.given.shape[1]
    first, second = np.full((2, k), 1 / k), np.full((2, both), 1 / both)
    second[0] = 0
    found = corrector.combine(first, second, [GERMAN.lower()] * 2, np.arange(3))
    assert not found[0].any() and found[1].sum() == pytest.approx(1)
    empty = corrector.combine(first[:0], second[:0], [], np.zeros(1, int))
    assert empty.shape == (0, both + 1)


def test_strange_letters_speak_for_another_language(corrector: Corrector) -> None:
    both, k = len(corrector.labels), corrector.given.shape[1]
    german = corrector.labels.index("de")
    first, second = np.full((2, k), 0.1 / k), np.full((2, both), 0.1 / both)
    first[:, german] = second[:, german] = 0.9
    plain = letters_only([GERMAN])[0].as_py()
    odd = plain.translate(str.maketrans("eänb", "ŵœļŋ"))
    found = corrector.combine(first, second, [plain, odd], np.arange(3))
    assert found[0].argmax() == german
    assert found[1, -1] > 10 * found[0, -1]


def test_saving_and_loading(corrector: Corrector, tmp_path: Path) -> None:
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for path in paths:
        save_corrector(corrector, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    again = load_corrector(paths[0], "a", corrector.labels[: corrector.given.shape[1]])
    texts = [GERMAN.lower(), SOMALI.lower()]
    labels = np.array([corrector.labels.index(n) for n in ("de", "so")])
    assert again.familiar.strangeness(texts, np.arange(3), labels) == pytest.approx(
        corrector.familiar.strangeness(texts, np.arange(3), labels), abs=1e-4
    )
    assert again.model.probabilities(texts) == pytest.approx(
        corrector.model.probabilities(texts), abs=0.02
    )


@given(
    st.lists(st.lists(st.text(alphabet="ab ß中", max_size=9), max_size=3), max_size=5),
    st.randoms(use_true_random=False),
)
def test_strangeness_against_plain_runs(texts: list[list[str]], random: Random) -> None:
    lines = [line for text in texts for line in text]
    firsts = np.cumsum([0, *map(len, texts)])
    labels = np.array([random.randrange(2) for _ in texts], np.int64)
    examples, truth = ["ab ba", "aß中", "", "b"], np.array([0, 1, 1, 0])
    learnt = learn(examples, truth, 2, 0)
    assert np.isinf(learnt.spread).all()  # too few to tell what is usual
    judge = replace(learnt, usual=np.ones(2), spread=np.full(2, 0.5), runs=np.full(2, 4.0))

    def runs(line: str) -> list[str]:
        padded = f" {line} "
        return [padded[i : i + 3] for i in range(len(padded) - 2)] if line else []

    for text, label, found in zip(
        texts, labels, judge.strangeness(lines, firsts, labels), strict=True
    ):
        known = {
            r for e, v in zip(examples, truth, strict=True) if v in (label, 0) for r in runs(e)
        }
        of_text = [r for line in text for r in runs(line)]
        if of_text:
            share = sum(r in known for r in of_text) / len(of_text)
            wider = max(4 / len(of_text), 1) ** 0.5
            assert found == pytest.approx((1 - share) / (0.5 * wider))
        else:
            assert found == 0


def test_a_run_is_known_by_other_texts_alone() -> None:
    texts = ["abcd"] * 5 + ["abxy"] * 5 + ["zzzz"]
    truth = np.array([0] * len(texts) + [1])
    learnt = learn([*texts, "zz"], truth, 2, 1)
    # of " zzzz " the half that English has; all of the others, twice and more
    assert learnt.usual[0] == pytest.approx(10.5 / 11)
    assert learnt.runs[0] == 4
    assert np.isinf(learnt.spread[1])


def test_a_corrector_of_another_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"c\.npz: a corrector of another language model"):
        load_corrector(MODELS / "corrector" / "corrector.npz", "c.npz", ("de", "en"))
    (tmp_path / "noise").write_bytes(b"noise")
    with pytest.raises(ConfigError, match="noise: not a language corrector: ") as caught:
        load_corrector(tmp_path / "noise", "noise", ("de",))
    assert "\n" not in str(caught.value)


@given(st.lists(st.text(alphabet="aÄİẞß中😀𐐀'’_1 .\n\u0301", max_size=30), max_size=5))
def test_letters_against_a_pattern(lines: list[str]) -> None:
    plain = [regex.sub(r"[^\p{L}\p{M}\u200c\u200d\u00ad']+", " ", line).strip() for line in lines]
    found = letters_only(lines).to_pylist()
    assert [len(t) for t in found] == [len(t) for t in plain]
    for a, b in zip("".join(found), "".join(plain), strict=True):
        assert a == b or a == b.lower()[0]


@given(st.lists(st.text(alphabet="ab\n", max_size=12), max_size=6))
def test_lines_against_split(texts: list[str]) -> None:
    lines, firsts = split_lines(texts)
    found = lines.to_pylist()
    assert len(firsts) == len(texts) + 1
    own = [found[a:b] for a, b in itertools.pairwise(firsts)]
    assert own == [t.split("\n") if t else [] for t in texts]


def test_training_is_reproducible(tmp_path: Path) -> None:
    rows = []
    words = {"de": GERMAN, "en": ENGLISH, "so": SOMALI, "xx-zulu": ZULU, "xx-toki": "toki pona li"}
    for i in range(60):
        label = list(words)[i % 5]
        text = " ".join(np.random.default_rng(i).permutation((words[label] + " " * i).split()))
        rows.append({"text": f"{text} {i}", "lang": label})
    source = tmp_path / "texts.jsonl"
    source.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    base = training_settings("corrector", CorrectorTraining)
    small = base.model_copy(
        update={
            "epochs": 3,
            "dim": 4,
            "buckets": 500,
            "min_count": 2,
            "unseen_every": 2,
        }
    )
    about = About("1", "CC0-1.0", "", "")
    reports = [
        train_corrector([source], tmp_path / f"run{i}", about, small, pages=[source])
        for i in range(2)
    ]
    assert reports[0].sha256 == reports[1].sha256
    cards = [yaml.safe_load((tmp_path / f"run{i}" / "card.yaml").read_text()) for i in range(2)]
    assert cards[0] == cards[1]
    assert cards[0]["metrics"]["documents"] == 60
    by_title = cards[0]["metrics"]["held_out_sources"]
    assert 0 <= by_title["corrected"]["whole"]["foreign_accepted"] <= 1
    assert "foreign_accepted" not in by_title["all"]["whole"]  # there they have names
    used = settings(corrector={"path": str(reports[0].model), "sha256": None})
    assert len(identify([GERMAN], used)[0]) == 1
