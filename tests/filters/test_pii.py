"""Personal data: what is taken, what is left, and that placeholders stay."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters import pii
from curation.filters.filter_settings import PiiSettings, default_settings
from curation.filters.pii_national import is_card, luhn

SETTINGS = default_settings().pii
LABELLED = Path(__file__).parents[3] / "shared" / "data" / "pii" / "synth_dataset_v2.json"


def redacted(text: str) -> str:
    return str(pii.redact([text], SETTINGS)[0][0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Write to john.doe+x@mail.example.co.uk.Then wait", "Write to [EMAIL].Then wait"),
        ("邮箱abc@qq.com联系", "邮箱[EMAIL]联系"),
        ("mailto:info@müller.de!", "mailto:[EMAIL]!"),
        ("see 8.8.4.4, 203.5.17.9:80", "see [IP], [IP]:80"),
        ("http://e.example/?phone=0301234567", "http://e.example/?phone=[PHONE]"),
        ("网址https://e.example，电话：010-12345678", "网址https://e.example，电话：[PHONE]"),
        ("+44 (1782) 744531, Tel. (1782) 744531", "[PHONE], Tel. [PHONE]"),
        ("Tel. 44 (1782) 744531", "Tel. [PHONE]"),
        ("www.e.example Tel.: 22 123 45 67", "www.e.example Tel.: [PHONE]"),
        ("at 2001:4860:4860::8888.", "at [IP]."),
        ("8.8.4.4/24, 8.8.4.0/25, 8.8.4.0/241", "[IP]/24, [IP]/25, [IP]/241"),
        ("http://1.2.3.4/x", "http://[IP]/x"),
        ("Call +49 (0)30 1234567 now", "Call [PHONE] now"),
        ("(212) 555-0123 x12", "[PHONE]"),
        ("电话：010-12345678，手机13812345678", "电话：[PHONE]，手机[PHONE]"),
        ("Tel.: 06 12 34 56 78", "Tel.: [PHONE]"),
        ("тел. 8 (495) 123-45-67", "тел. [PHONE]"),
        ("pay 4111 1111 1111 1111 or 378282246310005", "pay [CARD] or [CARD]"),
        ("DE89 3704 0044 0532 0130 00, GB82WEST12345698765432", "[IBAN], [IBAN]"),
        ("SSN 078-05-1120", "SSN [SSN]"),
        ("CPF 123.456.789-09", "CPF [ID]"),
        ("11010519491231002X", "[ID]"),
        ("131052-308T", "[ID]"),
        ("RSSMRA85T10A562S", "[ID]"),
        ("756.9217.0769.85", "[ID]"),
        ("fnr 151086 95088, RRN 971013-9019902", "fnr [ID], RRN [ID]"),
        ("CNP 1630615123457; ID 8001015009087", "CNP [ID]; ID [ID]"),
        ("DNI: 12345678Z, PESEL 44051401359", "DNI: [ID], PESEL [ID]"),
        ("TC Kimlik No: 10000000146", "TC Kimlik No: [ID]"),
        ("Steuer-ID 86 095 742 719, BSN 111222333", "Steuer-ID [ID], BSN [ID]"),
        ("Aadhaar 2341 2341 2346", "Aadhaar [ID]"),
        ("social insurance number 046 454 286", "social insurance number [ID]"),
        ("Rijksregisternummer 85.07.30-033 28", "Rijksregisternummer [ID]"),
        ("key=AKIAIOSFODNN7EXAMPLE;", "key=[TOKEN];"),
        ("身份证号11010519491231002X，请", "身份证号[ID]，请"),
        ("주민번호는 900101-1234568입니다", "주민번호는 [ID]입니다"),
        ("IBAN DE89370400440532013000。", "IBAN [IBAN]。"),
        ("C.F. RSSMRA85T10A562S’, CPF 529.982.247-25，", "C.F. [ID]’, CPF [ID]，"),
        ("AHV 756.9217.0769.85— HETU 131052-308T”", "AHV [ID]— HETU [ID]”"),
        ("Tél. : 01.23.45.67.89 ou Tél. 03-12-20-15-99", "Tél. : [PHONE] ou Tél. [PHONE]"),
        ("电话：（010）12345678，电话：０１０－１２３４５６７８", "电话：[PHONE]，电话：[PHONE]"),
        ("TEL：03（1234）5678", "TEL：[PHONE]"),
        ("هاتف: ٠٥٠١٢٣٤٥٦٧ تلفن: ۰۲۱-۱۲۳۴۵۶۷۸", "هاتف: [PHONE] تلفن: [PHONE]"),
        ("फ़ोन: ९८७६५ ४३२१०", "फ़ोन: [PHONE]"),
        ("Faks: 8 (41) 523 573, (22) 123-45-67", "Faks: [PHONE], [PHONE]"),
        ("Schreib an user@مثال.إختبار und", "Schreib an [EMAIL] und"),
        ("邮箱：张三@例子.中国谢谢", "邮箱：[EMAIL]谢谢"),
        ("a＠b.org、tanaka＠example．co．jpまで", "[EMAIL]、[EMAIL]まで"),
        ("संपर्क@डाटामेल.भारत", "[EMAIL]"),
        ("jo@notexample.com, jo@example.com.br, jo@a.example", "[EMAIL], [EMAIL], [EMAIL]"),
        (
            "4111\xa01111\xa01111\xa01111, DE89\xa03704\xa00044\xa00532\xa00130\xa000",
            "[CARD], [IBAN]",
        ),
        ("2a02::1, 2a02:c207:: and ::ffff:8.8.8.8.", "[IP], [IP] and [IP]."),
        (
            "Linux IP 8.8.8.8, version of the server 8.8.4.4",
            "Linux IP [IP], version of the server [IP]",
        ),
        ("ftp://user:secret@host.org/x", "ftp://[TOKEN]@host.org/x"),
        ("ghp_" + "aB3" * 12, "[TOKEN]"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n",
            "[PRIVATE KEY]\n",
        ),
    ],
)
def test_found(text: str, expected: str) -> None:
    assert redacted(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "doi:10.1016/j.cell.2019.05.031 and https://doi.org/10.1016/j.tel.2019.105.031",
        "Cell 144 (2011) 646-674, Stem Cell Res. 17(2016) 1122–1130, Phone Rev. 7 (1996) 38-39",
        "lodash@4.17.21.tgz, src:url(a@b.woff), python-foo@v1.2.tar.gz, data@backup.sql",
        "https://shop.example/handy-1234567.html, www.e.example/telefon/030-1234567/",
        "version 1.2.3.4 and v10.20.30.40, Chrome/49.0.22.1",
        "2.3.4.1 Choosing a compiler",
        "localnet=42.42.42.0/24, 8.8.0.0/16 and 9.0.0.0/8",
        "192.168.1.1 10.0.0.1 127.0.0.1 fe80::1 section 4.3.2.1",
        "icon@2x.png git@github.com:a/b.git react@17.0.2 user@host @name",
        "user@example.com, <a@dev.Example.ORG>, me@host.test, x@y.invalid, Ask b@example.net.Then",
        "ISBN 978-0-306-40615-7, 0-306-40615-2, doi:10.1037/0033-2909.128.4.539",
        "2021-03-04 12:30:45, 01.02.2003, 1990-2001, 1 234 567 890 people, 7 000 000 000 km",
        "1609459200000 and 4111 1111 1111 1112 and 1234567890123456",
        "DE89 3704 0044 0532 0130 01 and std::vector::a 12:30:45",
        "Nucl. Phys. B 123 (1983) 345-367, Chem. 98 (1993) 5648–5652, 45 (12) 2345-2367",
        "+20 000 000 tonnes, +15 000 000, +500 000 000 €, +12 345 678, +10 11 12 13",
        "Fig. 2 (100) 200-300, x = (12) 345-678, Tel. 01.02.2003",
        "versión 12.3.4.5, wersja 12.3.4.5, sürüm 12.3.4.5, Linux 5.15.0.91, v. 12.3.4.5",
        "버전 12.3.4.5 الإصدار 12.3.4.5 เวอร์ชัน12.3.4.5 版本号：12.3.4.5",
        "§ 12.4.5.6, Art. 12.4.5.6, 第3.2.1.4节, a\n6.3.4.4. „Multidisk“",
        "12::30 2024:: std::2 张三@例子.中文 ::ffff:192.168.0.1",
        "123.456.789-00 and 11010519491231002 and 1.000.000,00",
        "12345678Z 44051401359 111222333 85073003328",
        "DNI 12345678A, PESEL 44051401358, Aadhaar 2341 2341 2347",
        "order 0123456789012, price 1,234,567.89, 3.14159265358979",
        "",
    ],
)
def test_left_alone(text: str) -> None:
    assert redacted(text) == text


MARKED = Path(__file__).parents[2] / "benchmarks" / "pii.tsv"
MARK = re.compile(r"⟦(\w+)\|(.*?)⟧")


@pytest.mark.parametrize("line", MARKED.read_text(encoding="utf-8").splitlines())
def test_the_marked_sentences(line: str) -> None:
    """Exactly what is marked is replaced: versions, sections and enzymes stay as written."""
    text = line.partition("\t")[2]
    expected = MARK.sub(lambda m: SETTINGS.kinds[m[1]].placeholder, text)  # type: ignore[index]
    assert redacted(MARK.sub(r"\2", text)) == expected


@pytest.mark.parametrize("number", ["3.2.1.4", "8.5.5.13", "12.1.0.2", "4.0.2.101", "19.3.0.1"])
@pytest.mark.parametrize(
    "text",
    [
        *("see {}", "Lemma {} shows", "({}) of the rules: cf. {}", "'spam', '{}'", "spam=={}"),
        *("spam ~> {}", "from {} to {}", "in {}, {} and {} of it", "Application Server {}"),
        *("siehe {}", "voir {}", "参见{}", "по формуле {}", "{} Choosing a compiler", "MQ ({})"),
    ],
)
def test_small_numbers_behind_a_word_are_no_address(text: str, number: str) -> None:
    text = text.replace("{}", number)
    assert redacted(text) == text


@pytest.mark.parametrize("address", ["5.39.217.10", "1.1.1.1", "8.8.4.4", "91.12.7.3", "203.5.9.1"])
@pytest.mark.parametrize(
    "text",
    [
        *("IP {}", "the address {}", "login from {}", "{}:443", "from {} port 22", "http://{}/x"),
        *("{}", "DNS Server {}", "Server {}", "адрес {}", "地址{}", "IP-Adresse: {}", "see {}/24"),
        *("see {}, 203.5.17.9", "203.5.17.9, {}", "ssh root@{}", "gateway={}"),
    ],
)
def test_words_and_ports_tell_an_address(text: str, address: str) -> None:
    assert address not in redacted(text.replace("{}", address))


@given(
    st.lists(
        st.sampled_from(
            ["a@b.org", "8.8.4.4", "tel", "+1 212 555 0123", "[EMAIL]", "é", "中", "\n", "x1", "@"]
        )
        | st.text(max_size=6),
        max_size=12,
    ).map(" ".join)
)
@settings(max_examples=150)
def test_a_second_run_finds_no_more_addresses(text: str) -> None:
    once, _ = pii.redact([text], SETTINGS)
    twice, counts = pii.redact(once, SETTINGS)
    assert counts["email"][0] == 0
    assert twice.to_pylist() == pii.redact(twice, SETTINGS)[0].to_pylist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tel2 +49 30 12345678", "Tel2 [PHONE]"),
        ("+1 212 555 0123 x1 +1 212 555 0123 x1 8.8.4.4", "[PHONE] [PHONE] [IP]"),
        ("host1 8.8.4.4", "host1 [IP]"),
        ("A4 030 1234567, B2 4111 1111 1111 1111, v1.8.8.4.4, x1-8.8.4.4", None),
    ],
)
def test_what_is_behind_the_digits_of_a_name(text: str, expected: str | None) -> None:
    assert redacted(text) == (expected or text)


def test_counts_and_slices() -> None:
    texts = pa.array(["drop", "a@b.org c@d.org", None, "nothing", "8.8.4.4"]).slice(1)
    out, counts = pii.redact(texts, SETTINGS)
    assert out.to_pylist() == ["[EMAIL] [EMAIL]", "", "nothing", "[IP]"]
    assert counts["email"].tolist() == [2, 0, 0, 0]
    assert counts["ip"].tolist() == [0, 0, 0, 1]
    assert set(counts) == set(pii.KINDS)


def test_actions() -> None:
    kinds = {
        "email": {"action": "keep", "placeholder": "-"},
        "ip": {"action": "remove", "placeholder": "-"},
    }
    changed = PiiSettings.model_validate(SETTINGS.model_dump() | {"kinds": kinds})
    texts = ["a@b.org", "8.8.4.4 8.8.8.8", "+49 30 1234567"]
    out, counts = pii.redact(texts, changed)
    assert out.to_pylist() == texts
    verdicts = pii.decide(counts, changed)
    assert verdicts.reason.to_pylist() == [None, "pii.ip", None]
    assert verdicts.value.to_pylist() == [None, 2, None]
    assert pii.decide(counts, SETTINGS).kept.to_pylist() == [True] * 3


def test_a_placeholder_may_look_like_what_it_replaces() -> None:
    kinds = {"email": {"action": "replace", "placeholder": "email@example.com"}}
    changed = PiiSettings.model_validate(SETTINGS.model_dump() | {"kinds": kinds})
    once, counts = pii.redact(["to a@b.org"], changed)
    again, more = pii.redact(once, changed)
    assert once.to_pylist() == again.to_pylist() == ["to email@example.com"]
    assert (counts["email"][0], more["email"][0]) == (1, 0)


@given(st.text("0123456789", min_size=12, max_size=19))
def test_luhn_has_one_right_digit(digits: str) -> None:
    valid = [d for d in "0123456789" if luhn(digits + d)]
    assert len(valid) == 1
    whole = digits[:15] + valid[0]
    assert is_card(whole, named=True) == (luhn(whole) and len(set(whole)) > 1)


@pytest.mark.skipif(not LABELLED.exists(), reason="no labelled sentences beside the checkout")
def test_labelled_sentences() -> None:
    kinds = {
        "EMAIL_ADDRESS": "email",
        "IP_ADDRESS": "ip",
        "CREDIT_CARD": "card",
        "US_SSN": "us_ssn",
    }
    rows = json.loads(LABELLED.read_text(encoding="utf-8"))
    _, counts = pii.redact([row["full_text"] for row in rows], SETTINGS)
    for label, kind in kinds.items():
        expected = [sum(s["entity_type"] == label for s in row["spans"]) for row in rows]
        wrong = sum(a != b for a, b in zip(expected, counts[kind].tolist(), strict=True))
        assert wrong <= 1, kind


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 8)), max_size=30))
def test_spans_that_are_claimed_never_overlap(asked: list[tuple[int, int]]) -> None:
    held: list[tuple[int, int]] = []
    plain: list[tuple[int, int]] = []
    for start, length in asked:
        end = start + length
        free = all(end <= c or d <= start for c, d in plain)
        if free:
            plain.append((start, end))
        assert pii.claim(held, start, end) == free
    assert held == sorted(plain)


@pytest.mark.parametrize(
    ("unit", "kind"),
    [
        ("+1 (212) 555-0123 ", "phone"),
        ("8.8.8.8 ", "ip"),
        ("4111 1111 1111 1111 ", "card"),
        ("٤١١١ ١١١١ ١١١١ ١١١١ ", "card"),
        ("+٤٩ ٢٢٢ ٣٣٣٣٣٣٣ ", "phone"),
        ("tel: 030 1234567 ", "phone"),
    ],
)
def test_each_item_of_a_long_run_is_found_at_its_place(unit: str, kind: str) -> None:
    found = pii.find([unit * 50], SETTINGS)
    size = len(unit.encode())
    assert [pii.KINDS[k] for k in found.kinds] == [kind] * 50
    assert (found.starts % size).tolist() == [found.starts[0]] * 50
    assert (found.ends - found.starts).tolist() == [found.ends[0] - found.starts[0]] * 50


def test_a_number_ends_where_another_group_would_be_too_much() -> None:
    found = pii.find(["+49" + " 1" * 100], SETTINGS)
    assert (found.starts.tolist(), found.ends.tolist()) == ([0], [3 + 2 * 13])


_WORDS = ("tel", "telefon*", "tel/fax", "fax", "电话", "№", "K.-Nr", "straße", "ΑΡΙΘΜΌΣ")


@given(
    st.lists(st.sampled_from([*_WORDS, *map(str.upper, _WORDS), *"aß1 :.!\n话", "  "]), max_size=7),
    st.integers(0, 9),
)
def test_words_before_a_number(parts: list[str], distance: int) -> None:
    text = "".join(parts)
    alternatives = []
    for word in _WORDS:
        body = regex.escape(word.removesuffix("*"))
        if word == "电话":
            alternatives.append(body)
        else:
            alternatives.append(rf"(?<!\p{{L}}){body}" + ("" if "*" in word else r"(?!\p{L})"))
    plain = rf"(?:{'|'.join(alternatives)})[^\d\n!?]{{0,{distance}}}(?:\n\s{{0,4}})?\Z"
    found = pii._before(_WORDS, distance).match(text)
    assert (found is not None) == (regex.search(plain, text, regex.I) is not None)
