"""Encodings in the order of the HTML standard."""

from __future__ import annotations

import re

import chardet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.readers import charset as charset_module
from curation.readers.charset import declared_encoding, decode_html, encoding_of_label
from curation.resources import root
from tests.damage_of_texts import CZECH, LATVIAN, written

RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 3
SAMPLES = {
    "koi8-r": RUSSIAN,
    "windows-1251": RUSSIAN,
    "cp932": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 3,
    "euc-jp": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 3,
    "iso2022_jp_ext": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 3,
    "gb18030": "学而时习之，不亦说乎？有朋自远方来，不亦乐乎？人不知而不愠。" * 3,
    "big5hkscs": "學而時習之，不亦說乎？有朋自遠方來，不亦樂乎？人不知而不慍。" * 3,
    "cp949": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. " * 3,
    "windows-1253": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια. " * 3,
}


@pytest.mark.parametrize("encoding", SAMPLES)
def test_detection(encoding: str) -> None:
    html = f"<html><body><p>{SAMPLES[encoding]}</p></body></html>"
    text, _ = decode_html(html.encode(encoding), None)
    assert text == html


@pytest.mark.parametrize(
    "words",
    [
        *"café|naïve|Zürich|Señor|Smørrebrød|à la carte|über uns|© 2020 François|30 °C".split("|"),
        *"£ 30|Le café à la crème était déjà servi|Perché la città è più bella così".split("|"),
    ],
)
def test_a_few_words_are_in_the_default_encoding(words: str) -> None:
    html = f"<html><body><p>{words}</p></body></html>"
    assert decode_html(html.encode("windows-1252"), None) == (html, "windows-1252")


@pytest.mark.parametrize(
    "words, encoding",
    [
        ("Wszyscy ludzie rodzą się wolni i równi w swej godności", "windows-1250"),
        ("Güneşli bir gün, çok güzel ağaçlar", "windows-1254"),
        ("Привет, мир", "windows-1251"),
    ],
)
def test_a_few_words_in_others(words: str, encoding: str) -> None:
    html = f"<html><body><p>{words}</p></body></html>"
    assert decode_html(html.encode(encoding), None)[0] == html


def test_order() -> None:
    html = f'<meta charset="windows-1251"><p>{RUSSIAN}'
    koi = html.encode("koi8-r")
    assert decode_html(b"\xef\xbb\xbf" + html.encode(), "koi8-r") == (html, "utf-8")
    assert decode_html(koi, "KOI8-R ") == (html, "koi8-r")
    assert decode_html(html.encode("windows-1251"), None) == (html, "windows-1251")
    assert decode_html(koi, None)[1] == "windows-1251"  # the page says so
    assert decode_html(koi, "no-such-charset")[1] == "windows-1251"


def test_utf8_beats_wrong_labels() -> None:
    html = f'<meta charset="koi8-r"><p>{RUSSIAN}'
    assert decode_html(html.encode(), "iso-8859-1") == (html, "utf-8")
    cut = html.encode()[:-3]
    for charset in (None, "utf-8", "koi8-r"):
        text, encoding = decode_html(cut, charset)
        assert encoding == "utf-8"
        assert text.endswith("\ufffd")


def test_false_utf8_label_is_not_believed() -> None:
    html = f'<meta charset="koi8-r"><p>{RUSSIAN}'
    assert decode_html(html.encode("koi8-r"), "utf-8") == (html, "koi8-r")
    assert decode_html("<p>Müller".encode("latin-1"), "utf-8")[0] == "<p>Müller"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_encodings(encoding: str) -> None:
    html = "<html><title>Ein längerer Titel ohne Marke</title><p>Text.</html>"
    assert decode_html(html.encode(encoding), None) == (html, encoding)
    assert decode_html(("\ufeff" + html).encode(encoding), "utf-8") == (html, encoding)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("latin1", "windows-1252"),
        ("ISO-8859-1", "windows-1252"),
        ("gb2312", "gb18030"),
        ("x-sjis", "cp932"),
        ("ks_c_5601-1987", "cp949"),
        (" utf8 ", "utf-8"),
        ("iso-8859-9", "windows-1254"),
        ("nonsense", None),
        ("", None),
    ],
)
def test_labels(label: str, expected: str | None) -> None:
    assert encoding_of_label(label) == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"<meta charset=koi8-r>", "koi8-r"),
        (b"<META CHARSET='koi8-r' />", "koi8-r"),
        (b"<meta http-equiv=content-type content='text/html; charset=koi8-r'>", "koi8-r"),
        (b'<meta content="text/html;charset=koi8-r" http-equiv="Content-Type">', "koi8-r"),
        (b"<meta name=x content='charset=koi8-r'>", None),
        (b"<!-- <meta charset=koi8-r> --><meta charset=big5>", "big5hkscs"),
        (b"<a title='<meta charset=koi8-r>'>", None),
        (b"<meta charset=nonsense><meta charset=koi8-r>", "koi8-r"),
        (b"<meta charset=utf-16>", "utf-8"),
        (b"<?xml version='1.0' encoding='euc-jp'?><rss>", "euc-jp"),
        (b"<p>" * 700 + b"<meta charset=koi8-r>", "koi8-r"),
        (b"", None),
    ],
)
def test_declarations(head: bytes, expected: str | None) -> None:
    assert declared_encoding(head) == expected


@given(content=st.binary(max_size=200), charset=st.none() | st.text(max_size=12))
def test_nothing_raises(content: bytes, charset: str | None) -> None:
    text, encoding = decode_html(content, charset)
    assert text == text.encode("utf-8", "replace").decode() or max(text) >= "\ud800"
    assert "".encode(encoding) is not None


@given(text=st.text(max_size=300), charset=st.sampled_from([None, "utf-8", "latin1", "gb2312"]))
def test_utf8_stays(text: str, charset: str | None) -> None:
    text = text.replace("\0", "").replace("\x1b", "").replace("~{", "").removeprefix("\ufeff")
    assert decode_html(text.encode(), charset) == (text, "utf-8")


@given(
    content=st.binary() | st.text(st.characters()).map(lambda t: t.encode("utf-8", "surrogatepass"))
)
def test_utf8_is_told_as_python_tells_it(content: bytes) -> None:
    sound = content.decode("utf-8", "ignore").encode() == content
    for before in (b"", b" " * charset_module._LONG):
        assert charset_module._is_utf8(before + content) is sound


def test_labelled_pages() -> None:
    folder = root().parent / "shared/data/charset/tests"
    if not folder.is_dir():
        pytest.skip("the labelled pages are not here")
    python = {
        "Big5": "big5hkscs", "CP932": "cp932", "EUC-KR": "cp949", "GB2312": "gb18030",
        "IBM855": "cp855", "IBM866": "cp866", "Johab": "johab", "MacCyrillic": "mac-cyrillic",
        "MacRoman": "mac-roman", "SHIFT_JIS": "cp932", "TIS-620": "cp874",
    }  # fmt: skip
    right = total = 0
    for path in sorted(folder.glob("*/*")):
        label = path.parent.name
        plain = re.match(r"(?:iso-8859|windows)-\d+", label)
        expected = path.read_bytes().decode(
            python.get(label) or (plain[0] if plain else label), "replace"
        )
        total += 1
        right += decode_html(path.read_bytes(), None)[0] == expected.removeprefix("\ufeff")
    assert total > 100
    assert right >= total - 2


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-16", "gb18030", "shift_jis", "koi8-r", "cp1252"]
)
def test_large_pages_are_converted_in_pieces(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charset_module, "PIECE", 7)
    page = f"<meta charset={encoding}><p>" + "Привет naïve 港口 wave " * 9
    sound = page.encode(encoding, "ignore")
    for content in (sound, sound[:-9] + b"\xff"):
        expected, codec = decode_html(content, None)
        assert charset_module.utf8_html(content, None) == (expected.encode(), codec)


def test_signs_that_relatives_share_need_no_detection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chardet, "detect_all", None)
    assert charset_module.detect_encoding(b"<p>\x93Text\x94 \x97 \xa9") == "windows-1252"


_POLISH, _TURKISH = "".join(written("pl")[:2]), "".join(written("tr")[:2])
_FOUND = {
    "koi8-r": written("ru")[0],
    "windows-1251": written("uk")[0],
    "windows-1253": written("el")[0],
    "windows-1255": written("he")[0],
    "windows-1256": written("ar")[0],
    "windows-874": written("th")[0],
    "gb18030": written("zh")[0],
    "shift_jis": written("ja")[0],
    "euc-jp": written("ja")[0],
    "euc-kr": written("ko")[0],
    "windows-1250": CZECH,
    "iso-8859-2": _POLISH,
    "windows-1254": _TURKISH,
    "windows-1257": LATVIAN,
}
_WITHOUT = {ord(sign): None for sign in "—–’“”„…"}  # signs that some of them lack


def _page(encoding: str, before: str = "") -> tuple[str, bytes]:
    """A page in the encoding of a label, and its bytes."""
    text = _FOUND[encoding].translate(_WITHOUT).replace("\n", "</p><p>")
    codec = charset_module.encoding_of_label(encoding) or ""
    html = f"<html><head>{before}</head><body><div class=text>\n<p>{text}</p></div></body></html>"
    content = html.encode(codec, "ignore")
    return content.decode(codec), content


_HEAD = "<link rel=stylesheet href='/static/css/site-main-layout.css'>\n"


@pytest.mark.parametrize("head", [3 << 10, 24 << 10, 65 << 10, 200 << 10])
@pytest.mark.parametrize("encoding", _FOUND)
def test_nothing_named_behind_a_long_head(encoding: str, head: int) -> None:
    html, content = _page(encoding, _HEAD * (head // len(_HEAD)))
    assert decode_html(content, None)[0] == html
    line = "All of this is ASCII, as is much of the web. "
    plain, body = line * (head // len(line)), _page(encoding)[1]
    text, _ = charset_module.decode_text(plain.encode() + body, None)
    assert text == plain + _page(encoding)[0]


@pytest.mark.parametrize("sign", ["A", "a", "-"])
@pytest.mark.parametrize("encoding", ["euc-kr", "windows-1251", "gb18030", "windows-1253"])
def test_what_fills_a_long_head_says_nothing_of_a_short_text(encoding: str, sign: str) -> None:
    codec = charset_module.encoding_of_label(encoding) or ""
    text = sign * (64 << 10) + _FOUND[encoding].translate(_WITHOUT)[:40]
    for label in (None, "iso-8859-1"):
        assert decode_html(text.encode(codec, "ignore"), label)[0] == text


def test_escapes_behind_a_long_head() -> None:
    html = _HEAD * 1200 + f"<p>{SAMPLES['iso2022_jp_ext']}"
    assert decode_html(html.encode("iso2022_jp"), None)[0] == html


@pytest.mark.parametrize("encoding", ["gb18030", "big5hkscs", "cp932", "euc-jp", "cp949"])
def test_a_broken_character_does_not_hide_an_encoding(encoding: str) -> None:
    text = SAMPLES[encoding] * 3
    content = f"<p>{text}</p>".encode(encoding)
    for broken in (content[:40] + content[41:], content[:20] + b"\xff" + content[20:]):
        found, _ = decode_html(broken, None)
        assert sum(a in found for a in re.findall(r"\w{4,}", text)) > 5


@pytest.mark.parametrize(
    ("language", "encoding"),
    [("ja", "euc-jp"), ("ja", "cp932"), ("zh", "gb18030"), ("zh", "big5hkscs"), ("ko", "cp949")],
)
def test_a_byte_that_is_lost_on_a_long_page(language: str, encoding: str) -> None:
    text = "\n".join(written(language))
    content = text.encode(encoding, "ignore")
    first = next(at for at, byte in enumerate(content) if byte >= 0x80)
    for broken in (
        content[:first] + content[first + 1 :],
        content[:first] + b"\xff" + content[first:],
    ):
        assert decode_html(broken, None)[0][-2000:] == content.decode(encoding)[-2000:]


@pytest.mark.parametrize("label", ["utf-8", "iso-8859-1", "shift_jis"])
def test_escapes_contradict_other_labels(label: str) -> None:
    html = f"<meta charset={label}><p>{SAMPLES['iso2022_jp_ext']}"
    for http in (label, None):
        assert decode_html(html.encode("iso2022_jp"), http)[0] == html


@pytest.mark.parametrize(
    ("codec", "signs"),
    [
        ("iso2022_jp", ""),
        ("iso2022_jp_1", "丂丄丅"),
        ("iso2022_jp_2", "한국어와 汉语 Ελλάς"),
        ("iso2022_jp_3", "㐂"),
        ("iso2022_jp_2004", "俱𠮟剝"),
        ("iso2022_jp_ext", "ｶﾀｶﾅ丂"),
        ("iso2022_kr", ""),
    ],
)
def test_what_shifts_is_read_by_what_it_shifts_to(codec: str, signs: str) -> None:
    text = "나는 고양이다. 이름은 아직 없다." if "kr" in codec else SAMPLES["iso2022_jp_ext"]
    content = f"<p>{text} {signs}</p>{text}".encode(codec)
    for label in (None, "iso-2022-jp", "utf-8", "shift_jis"):
        assert decode_html(content, label)[0] == content.decode(codec)
        named = b"<meta charset=%a>" % label + content
        assert decode_html(named, None)[0] == named.decode(codec)
    # A sign that only Windows has costs itself alone, one that shifts to nothing changes nothing.
    found, _ = decode_html(content.replace(b"</p>", b"\x1b$B-!\x1b(B</p>"), None)
    assert found.endswith(text)
    assert decode_html(b"<p>a price of \x1b$5 each</p>", None)[0] == "<p>a price of \x1b$5 each</p>"


def test_an_encoding_that_the_web_has_no_name_for_contradicts_a_label() -> None:
    text = (
        "Қазақстан Республикасының Үкіметі бүгін өзінің кезекті отырысын өткізді, деп хабарлайды."
    )
    assert decode_html(text.encode("kz1048"), "iso-8859-1")[0] == text


def test_a_label_that_statistics_spell_in_another_way_is_believed() -> None:
    text = (
        "Șeful statului a vizitat școala și grădinița din comună, unde a vorbit cu învățătorii "
        "despre lipsa manualelor și despre drumul pe care copiii îl fac zilnic pe jos. Părinții "
        "au spus că autobuzul nu mai vine de două luni și că iarna trecută câțiva elevi au rămas "
        "acasă din cauza zăpezii. Primarul a promis că banii pentru reparații vor fi găsiți până "
        "în toamnă și că noul traseu va trece și prin satele de pe celălalt mal al râului."
    )
    assert decode_html(text.encode("iso8859-16"), "iso-8859-16")[0] == text


_WRONG = ["iso-8859-1", "utf-8", "windows-1251", "gb2312", "shift_jis", "koi8-r", "big5", "euc-kr"]


@pytest.mark.parametrize("label", [*_WRONG, "iso-8859-7", "windows-1256", "tis-620"])
@pytest.mark.parametrize("encoding", _FOUND)
def test_labels_that_the_bytes_contradict(encoding: str, label: str) -> None:
    html, content = _page(encoding)
    assert decode_html(content, label)[0] == html
    html, content = _page(encoding, f"<meta charset={label}>")
    assert decode_html(content, None)[0] == html
    html, content = _page(encoding, f"<meta charset={encoding}>")
    assert decode_html(content, label)[0] == html


@pytest.mark.parametrize("encoding", ["koi8-r", "windows-1251", "windows-874"])
def test_few_words_of_other_letters_contradict_a_label_of_latin_ones(encoding: str) -> None:
    html = f"<p>{_FOUND[encoding][:20]}"
    named = charset_module.encoding_of_label(encoding) or ""
    assert decode_html(html.encode(named), "iso-8859-1")[0] == html
    row = "<p>" + 40 * "»" + " Où ?"
    assert decode_html(row.encode("cp1252"), "iso-8859-1")[0] == row
    letters = "<p>Ç Ğ İ Ö Ş Ü ç ğ ı ö ş ü Â Î Û"
    assert decode_html(letters.encode("cp1254"), "windows-1254")[0] == letters


@pytest.mark.parametrize("encoding", _FOUND)
def test_labels_that_are_right_are_believed(encoding: str) -> None:
    named = charset_module.encoding_of_label(encoding) or ""
    for text in (_FOUND[encoding], _FOUND[encoding][:60], _FOUND[encoding][:15], "10 °C"):
        content = f"<p>{text}".encode(named, "ignore")
        if not content.isascii():
            assert decode_html(content, encoding)[1] == named


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf\r\n%PDF-1.4\n1 0 obj", b"%!PS-Adobe-3.0\n/Times find",
        rb"{\rtf1\ansi Text}",
        b"%PDF-1.7\n1 0 obj << /Type /Catalog >> endobj\n" * 9, b"\x89PNG\r\n\x1a\n" + b"IDAT" * 99,
        b"\xff\xd8\xff\xe0 JFIF", b"GIF89a" + b"a" * 99, b"PK\x03\x04" + b"plain text " * 99,
        b"\x1f\x8b\x08 not gzip at all", b"wOF2" + bytes(40), b"\xd0\xcf\x11\xe0 Word",
        b"\x00\x00\x00\x18ftypmp42" + b"a" * 300, b"SQLite format 3\x00" + b" " * 99,
        bytes(range(256)) * 3, b"Text" * 40 + bytes(20),
        b"\x7fELF" + b"x" * 90, b"a\x01b\x02c" * 30,
    ],
)  # fmt: skip
def test_binary(content: bytes) -> None:
    assert charset_module.is_binary(content)


@pytest.mark.parametrize(
    ("content", "charset"),
    [
        (b"", None), (b"plain", None), (RUSSIAN.encode("koi8-r"), None),
        (RUSSIAN.encode("utf-16-le"), "utf-16"), ("\ufeff港口".encode("utf-16-be") * 9, None),
        (SAMPLES["iso2022_jp_ext"].encode("iso2022_jp"), None), (b"a\tb\f\v\n", None),
        ("Ein Text".encode("utf-32-le") * 9, None),
        (b"N\bNA\bAM\bME\bE\n    ls - list directory contents\n" * 9, None),
        (b"\x1b[31mred\x1b[0m \x1b[1mbold\x1b[0m\n" * 9, None),
        (b"MZ and BM are initials, OTTO is a name, RIFF a word, BZh nothing; true is true.", None),
        (b"one stray \x01 in a text " + b"that is long enough " * 9, None),
    ],
)  # fmt: skip
def test_text(content: bytes, charset: str | None) -> None:
    assert not charset_module.is_binary(content, charset)
