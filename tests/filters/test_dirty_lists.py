"""The shipped lists of dirty words: their form, and what they find."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest

from curation.filters import lists
from curation.filters.filter_settings import default_settings
from curation.filters.signals import Meter
from tests.text.strings import word_list

SETTINGS = default_settings(signals={"reference": None}).signals
DIRTY = lists.by_language(SETTINGS.dirty_words, ".txt")
ALLOWED = lists.by_language(SETTINGS.allowed_words, ".txt")

#: A made-up line of advertising, and a line of everyday text, often with a word marked `?`.
SAMPLES = {
    "af": ("Gratis pornofilm en seksvideo vanaand", "Die voël sit op die tak en die see is kalm"),
    "ar": ("شاهد افلام سكس عربي مجانا", "قال الطبيب إن الشهوة للطعام علامة على الصحة"),
    "az": ("Pulsuz porno kino izlə", "Uşaqlar məktəbin qarşısında top oynayırdılar"),
    "be": ("Глядзі порна відэа бясплатна", "Нядзеля была сонечная, і дзеці гулялі ў парку"),
    "bg": ("Гледай порно клипове безплатно", "Голи клони и тих вятър над полето"),
    "bn": ("নতুন বাংলা চটি গল্প পড়ুন", "সকালে গরুর দুধ খেয়ে সে স্কুলে গেল"),
    "bs": ("Besplatan porno film za odrasle", "Gole grane su se njihale na vjetru"),
    "ca": ("Mira porno gratis ara mateix", "El pagès va guardar la palla al graner"),
    "cs": ("Porno videa zdarma každý den", "Děti krmily kozy a honily se po louce"),
    "da": ("Se gratis porno med liderlige damer", "Hun lagde boller på bordet til kaffen"),
    "de": ("Kostenlose Pornos und Sexkontakte", "Die Möpse schliefen auf dem Sofa"),
    "el": ("Δείτε τσόντες και πορνοταινίες δωρεάν", "Ο παππούς κάπνιζε την πίπα του στην αυλή"),
    "en": ("Watch free porn videos with naked girls", "The cock crowed and the hens woke"),
    "es": ("Mira videos porno con chicas desnudas", "El sombrero de paja estaba en la silla"),
    "et": ("Vaata tasuta porno ja seksivideo klippe", "Alasti oksad kõikusid tuules"),
    "eu": ("Ikusi porno bideoak doan", "Umeak parkean jolasten ibili ziren"),
    "fa": ("دانلود فیلم سکسی رایگان", "بچه‌ها در حیاط مدرسه بازی می‌کردند"),
    "fi": ("Katso ilmainen pornovideo tänään", "Muista panna takki päälle, kun on kylmä"),
    "fil": ("Panoorin ang porno at pinay scandal ngayon", "Kumain ang mga bata ng mangga"),
    "fr": ("Vidéos porno et sexe gratuit", "La chatte dormait près du feu"),
    "gl": ("Mira vídeos porno de balde", "A palla secaba na eira ao sol"),
    "gu": ("સેક્સ વિડીયો અને ચુદાઈ વાર્તા વાંચો", "બાળકો સવારે શાળાએ ગયા"),
    "he": ("סרטי סקס ופורנו חינם", "הוא שתה כוס מים וקרא ספר"),
    "hi": ("नई चुदाई सेक्स कहानी पढ़ें", "भाभी ने सुबह सबके लिए चाय बनाई"),
    "hr": ("Besplatan porno film za odrasle", "Gole grane su se njihale na vjetru"),
    "hu": ("Ingyen pornó és szexvideók", "A kutya farka ide-oda járt örömében"),
    "hy": ("Դիտել պոռնո ֆիլմ անվճար", "Երեխաները խաղում էին այգում"),
    "id": ("Nonton bokep dan film porno gratis", "Ibu membeli telur dan susu di pasar"),
    "is": ("Ókeypis klámmynd og klám fyrir alla", "Þau fóru að ríða út á sunnudag"),
    "it": ("Guarda porno gratis con casalinghe vogliose", "Usò la scopa e poi la sega in cantina"),
    "ja": ("無料エロ動画とアダルト動画", "母は駅の前で友だちと話した"),
    "ka": ("უყურე პორნო ვიდეოს უფასოდ", "ბავშვები ეზოში თამაშობდნენ"),
    "kn": ("ಹೊಸ ಕಾಮ ಕಥೆಗಳು ಮತ್ತು ಸೆಕ್ಸ್ ವಿಡಿಯೋ", "ಮಕ್ಕಳು ಶಾಲೆಗೆ ಹೋದರು"),
    "ko": ("국산야동 무료야동 사이트 주소", "가슴이 뛰어서 잠을 이루지 못했다"),
    "lt": ("Nemokamas porno video internete", "Kruša sunaikino derlių, o kalė saugojo kiemą"),
    "lv": ("Skaties pornofilmas un seksa video bez maksas", "Krāns pilēja, un bērni gulēja"),
    "mk": ("Гледај порно филмови бесплатно", "Голи гранки и тивок ветер над полето"),
    "ml": ("പുതിയ കമ്പിക്കഥ വായിക്കുക", "കുട്ടികൾ മുറ്റത്ത് കളിക്കുന്നു"),
    "mr": ("मराठी झवाझवी कथा वाचा", "मुले सकाळी शाळेत गेली"),
    "ms": ("Tonton video lucah dan gambar bogel", "Dia memotong batang kayu untuk pagar"),
    "nb": ("Se gratis porno med kåte damer", "Han måtte suge saften gjennom et rør"),
    "ne": ("चिकेको भिडियो र यौन कथा हेर्नुहोस्", "केटाकेटी बिहान विद्यालय गए"),
    "nl": ("Gratis porno en geile vrouwen", "Hij stopte zijn pijp en gaf de eikels aan het vee"),
    "nn": ("Sjå gratis porno med kåte damer", "Han måtte suge safta gjennom eit røyr"),
    "no": ("Se gratis porno med kåte damer", "Han måtte suge saften gjennom et rør"),
    "pa": ("ਸੈਕਸ ਵੀਡੀਓ ਅਤੇ ਚੁਦਾਈ ਕਹਾਣੀ", "ਬੱਚੇ ਸਵੇਰੇ ਸਕੂਲ ਗਏ"),
    "pl": ("Darmowe porno i sex kamerki", "Nastolatki biegały, a suczka spała pod stołem"),
    "pt": ("Assista vídeos porno com mulheres peladas", "O gato mexeu o rabo e comeu a ração"),
    "ro": ("Filme porno gratis pe net", "Fundul sacului era plin de mere"),
    "ru": ("Порно видео и голые девушки", "Врачи изучали качество спермы и анализы"),
    "sk": ("Porno videá zadarmo každý deň", "Deti kŕmili kozy a vták spieval"),
    "sl": ("Brezplačen porno film za odrasle", "Muca je spala na peči"),
    "sq": ("Shiko filma porno falas", "Fëmijët luanin në oborrin e shkollës"),
    "sr": ("Гледај порно филм бесплатно", "Голе гране су се њихале на ветру"),
    "sv": ("Se gratis porr och sexfilmer", "Barnet sög på en napp och var naken i solen"),
    "sw": ("Tazama video za ngono na porno bure", "Watoto walikunywa maziwa kabla ya shule"),
    "ta": ("தமிழ் செக்ஸ் கதை, காமக்கதை படிக்க", "குழந்தைகள் காலையில் பள்ளிக்குச் சென்றனர்"),
    "te": ("కొత్త సెక్స్ కథలు, పూకు వీడియో", "పిల్లలు ఉదయం బడికి వెళ్లారు"),
    "th": ("ดูหนังโป๊ฟรี คลิปเสียวใหม่", "ช่างนำหีบเพลงกับหีบห่อไปที่สตูดิโอ"),
    "tl": ("Panoorin ang porno at pinay scandal ngayon", "Kumain ang mga bata ng mangga"),
    "tr": ("Bedava porno izle ve sikiş videoları", "Halam meme kanseri muayenesi için geldi"),
    "uk": ("Дивись порно відео онлайн безкоштовно", "Голі скелі стояли над морем"),
    "ur": ("سیکسی ویڈیو اور چدائی کی کہانیاں", "گشتی پولیس نے سڑک بند کر دی"),
    "vi": ("Xem phim sex không che miễn phí", "Anh ấy thổi kèn trumpet trong dàn nhạc"),
    "zh": ("免费色情片和成人视频下载", "码头的工人正在卸货"),
}  # fmt: skip


def phrase(entry: str) -> tuple[str, ...]:
    """Words of an entry as the kernel compares them."""
    return tuple(word.lower() for word in word_list(entry.removeprefix("?")))


def test_at_least_forty_languages() -> None:
    assert len({language.split("-")[0] for language in DIRTY}) >= 40
    idle = set(ALLOWED) - set(DIRTY)
    assert not idle, f"{sorted(idle)}: a list in configs/lists/allow, but none in dirty"
    odd = set(SAMPLES) ^ set(DIRTY)
    assert not odd, f"{sorted(odd)}: add lines to SAMPLES, or a list to configs/lists/dirty"


@pytest.mark.parametrize("language", DIRTY)
def test_lists_are_well_formed(language: str) -> None:
    for path in (DIRTY[language], ALLOWED.get(language)):
        entries = lists.read_list(path) if path else []
        for entry in entries:
            assert phrase(entry), entry
            assert entry == unicodedata.normalize("NFC", entry), entry
            assert "?" not in entry.removeprefix("? "), entry
        phrases = [phrase(entry) for entry in entries]
        assert len(phrases) == len(set(phrases)), f"{path}: an entry is there twice"
    dirty = lists.read_list(DIRTY[language])
    everyday = sum(entry.startswith("?") for entry in dirty)
    assert 0 < everyday < len(dirty), f"{DIRTY[language]}: mark everyday words with `? `"
    in_order = sorted(dirty, key=lambda entry: (entry.startswith("?"), entry))
    assert dirty == in_order, f"{DIRTY[language]}: sort the entries, those with `? ` last"


@pytest.mark.parametrize("language", ALLOWED)
def test_allowed_phrases_excuse_parts_of_a_list(language: str) -> None:
    """Each holds a listed phrase, which would count elsewhere."""
    dirty = {phrase(entry) for entry in lists.read_list(DIRTY[language])}
    allowed = {phrase(entry) for entry in lists.read_list(ALLOWED[language])}
    assert not dirty & allowed


def test_lists_fire_on_advertising_and_not_on_everyday_text() -> None:
    meter = Meter(SETTINGS)
    for kind, fires in enumerate((True, False)):
        texts = pa.array([pair[kind] for pair in SAMPLES.values()], pa.large_string())
        signals = meter.measure(texts, pa.array(list(SAMPLES)))
        ratios = signals.field("dirty_word_ratio").to_pylist()
        wrong = [n for n, ratio in zip(SAMPLES, ratios, strict=True) if (ratio > 0.01) != fires]
        assert wrong == []


def test_labels_with_a_script_take_the_list_of_the_language() -> None:
    found = Meter(SETTINGS).measure([SAMPLES["sr"][0]], pa.array(["sr-Cyrl"]))
    assert found.field("dirty_word_count")[0].as_py() > 0


def test_a_list_may_begin_with_a_mark_of_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "de.txt").write_text("eins\nzwei\n", "utf-8-sig")
    assert lists.read_list(tmp_path / "de.txt") == ["eins", "zwei"]
