"""All kernels against plain Python on generated texts.

`CURATION_CASES=100000 python -m pytest tests/filters/test_plain.py` tries as many; without it two
thousand. A case is a line of the generator's own seed, so that a failure can be repeated.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from curation.filters.filter_settings import default_settings
from curation.filters.mixed import STRANGE
from curation.filters.names import CONTENT, NAMES, QUALITY
from curation.filters.reference import load_reference
from curation.filters.signals import Meter
from tests.filters.plain import PlainReference, lower, measured
from tests.filters.test_repetition import datatrove
from tests.text.strings import word_list

CASES = int(os.environ.get("CURATION_CASES", "2000"))
STOP = ("the", "of", "and", "是", "the the")
FLAGGED, ALLOWED = ("foo", "foo bar", "好 字", "x1"), ("the foo", "foo bar baz")
EVERYDAY = ("the", "bar foo", "字")
LOG = "2024 error at line 7 of x1"
THAI = "ผู้ให้เช่าขึ้นค่าเช่าได้ 12 บาท"
HAN = "编号 77 蓝色小部件价格 9 元"
PARTS = [
    *("the", "The", "of", "and", "foo", "FOO", "bar", "baz", "a", "B.", "U.S.", "Wow!", "well?"),
    *('"yes"', "'no'", "…", "...", "....", "。", "！", "你好", "字", "好", "กขค", "ລາວ", "テスト"),
    *("javascript", "JavaScript notice", "lorem ipsum", "Lorem Ipsum", "{", "}", "[1]", "[edit]"),
    *("lorem\u00a0ipsum", "Lorem", "ipsum", "cookie\tpolicy", "[۱२]", "[²]"),
    *("[citation needed]", "[12", "uses cookies", "Privacy Policy", "#", "##", "•", "- ", "* "),
    *("● x", ". . .", "the,", "(the", "。」", "「", "是，", "カー", "the\u00a0of", "བོད་སྐད་", "་། "),
    *(
        "\n",
        "\n",
        "\n\n",
        "\n\n\n",
        "\r\n",
        "\u2028",
        "\x85",
        "\x1c",
        "\t",
        " ",
        "\u00a0",
        "\u200b",
    ),
    *(
        "3 likes",
        "12K views",
        "1,000.5 Shares",
        "UPPER CASE",
        "1234",
        "12.5%",
        "x1",
        "٣",
        "१२",
        "²",
    ),
    *("é", "ß", "İ", "ǅ", "\u0301", "\u0e31", "𝒜", "𐍈", "😀", "’", "l’eau", "don't", "a-b", "a_b"),
    *(
        "Dr.",
        "J. R.",
        "?!",
        '."',
        ".)",
        "؟",
        "।",
        "»",
        "\u3000",
        "\ufeff",
        "\U000e0100",
        "x" * 1001,
    ),
    *(f"{THAI}\n{THAI[:9]}\n" * 4, f"{HAN} a\nb {HAN}\n" * 2, "3 mm 4.25 mm 5 mm 6.5 mm\n" * 4),
    *("բառ", "բառ:", "բառ»: ", "ቃል", "ቃል::", "ቃል፡፡", ":", "::", "፡", "፡፡", "word:"),
    *(LOG, f"{LOG}\n{LOG}\n{LOG}\n{LOG}\n", "w " * 8, "\0", "\x7f", "é\u0301.", "字。", "K", "ſ"),
]
DIALECTS = ["datatrove", "dclm"]


def case(number: int) -> str:
    """A text that depends on the number alone."""
    rng = random.Random(number)
    parts = [
        rng.choice(PARTS) + rng.choice(["", " ", " ", "\n", ". "])
        for _ in range(rng.choice([0, 1, 2, 4, 8, 16, 40]))
    ]
    if rng.random() < 0.3:
        ranges = [(0x20, 0x7F), (0x80, 0x3000), (0x3000, 0xD800), (0xE000, 0x20000)]
        parts += [chr(rng.randrange(*rng.choice(ranges))) for _ in range(rng.randrange(30))]
        rng.shuffle(parts)
    return "".join(parts)


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("lists")
    dirty = (*FLAGGED, *(f"? {phrase}" for phrase in EVERYDAY))
    for name, words in (("stop_words", STOP), ("dirty_words", dirty), ("allowed_words", ALLOWED)):
        (folder / name).mkdir()
        (folder / name / "en.txt").write_text("\n".join(words), encoding="utf-8")
    return {p.name: str(p) for p in folder.iterdir()}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_kernels_are_the_plain_definitions(dialect: str, lists: dict[str, str]) -> None:
    odd = {
        "c4": {"terminal_punctuation": True},
        "fineweb": {
            "closers_end_lines": False,
            "colons_end_lines": False,
        },
    }
    changes = {
        "gopher": {"dialect": dialect},
        **(odd if dialect == "dclm" else {}),
        **lists,
    }
    settings = default_settings(signals=changes).signals
    root = Path(__file__).parents[2]
    reference = PlainReference(load_reference(root / "models" / "reference" / "en.npz", "en"))
    flagged, everyday, allowed = (
        [tuple(map(lower, word_list(p))) for p in held] for held in (FLAGGED, EVERYDAY, ALLOWED)
    )
    meter = Meter(settings)
    of_texts = {*NAMES} - {*CONTENT, QUALITY}
    size = 500
    for first in range(0, CASES // len(DIALECTS), size):
        count = min(size, CASES // len(DIALECTS) - first)
        numbers = [(first + i) * len(DIALECTS) + DIALECTS.index(dialect) for i in range(count)]
        texts = [case(n) for n in numbers]
        found = meter.measure(pa.array(texts, pa.large_string()), None).to_pylist()
        for number, text, row in zip(numbers, texts, found, strict=True):
            expected = dict(measured(text, settings, STOP, flagged, everyday, allowed, reference))
            expected |= {f"repetition_{k}": v for k, v in datatrove(text).items()}
            odd = [name for name in of_texts if name not in expected and not np.isnan(row[name])]
            assert not odd, f"{odd}: add a plain version to tests/filters/plain.py"
            for name, value in expected.items():
                if name == "kl_divergence" and value > STRANGE:  # it may be in two languages
                    value = min(value, row[name])
                same = np.isclose(row[name], value, rtol=1e-9, atol=1e-9, equal_nan=True)
                assert same, (number, name, row[name], value, text)
