"""Personal data: what is taken, what is left, and that placeholders stay."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters import pii
from curation.filters.pii_checks import is_card, luhn
from curation.filters.settings import PiiSettings, default_settings

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
        ("at 2001:4860:4860::8888.", "at [IP]."),
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
        "version 1.2.3.4 and v10.20.30.40, Chrome/49.0.22.1",
        "2.3.4.1 Choosing a compiler",
        "192.168.1.1 10.0.0.1 127.0.0.1 fe80::1 section 4.3.2.1",
        "icon@2x.png git@github.com:a/b.git react@17.0.2 user@host @name",
        "ISBN 978-0-306-40615-7, 0-306-40615-2, doi:10.1037/0033-2909.128.4.539",
        "2021-03-04 12:30:45, 01.02.2003, 1990-2001, 1 234 567 890 people, 7 000 000 000 km",
        "1609459200000 and 4111 1111 1111 1112 and 1234567890123456",
        "DE89 3704 0044 0532 0130 01 and std::vector::a 12:30:45",
        "123.456.789-00 and 11010519491231002 and 1.000.000,00",
        "12345678Z 44051401359 111222333 85073003328",
        "DNI 12345678A, PESEL 44051401358, Aadhaar 2341 2341 2347",
        "order 0123456789012, price 1,234,567.89, 3.14159265358979",
        "",
    ],
)
def test_left_alone(text: str) -> None:
    assert redacted(text) == text


@given(
    st.lists(
        st.sampled_from(
            ["a@b.org", "8.8.4.4", "tel", "+1 212 555 0123", "[EMAIL]", "é", "中", "\n", "x1", "@"]
        )
        | st.text(max_size=6),
        max_size=12,
    ).map(" ".join)
)
@settings(max_examples=150, deadline=None)
def test_a_second_run_finds_no_more_addresses(text: str) -> None:
    once, _ = pii.redact([text], SETTINGS)
    twice, counts = pii.redact(once, SETTINGS)
    assert counts["email"][0] == 0
    assert twice.to_pylist() == pii.redact(twice, SETTINGS)[0].to_pylist()


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
