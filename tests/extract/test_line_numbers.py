"""Line numbers in listings, and what looks like them and is data."""

from __future__ import annotations

import pytest

from curation.extract import Extractor
from curation.extract.extractor import default_settings
from curation.extract.listings import without_line_numbers

_DATA = [
    "1,foo,0.5\n2,bar,0.7\n3,baz,0.9",
    "2019 12.1\n2020 13.4\n2021 11.9",
    "10px\n11px\n12px",
    "1px\n2px\n3px",
    "1.5\n2\n3.5",
    "1a\n2\n3b",
    "1. Wash\n2. Peel\n3. Boil",
    "1. Wash\n2.   Peel\n3. Boil",
    "1) Wash\n2) Peel\n3) Boil",
    "1\n2\n3",
    " 1 | foo(\n 2 |   bar\n 3 |",
    "10 PRINT A;\n20 GOTO 10\n30 END",
    '1 PRINT "A";\n2 GOTO 1\n3 END',
    "1 apple\n2 banana\n3 cherry",
    "1      apple\n2 strawberry\n3       kiwi",
    "1   12.5\n2    8.1\n3  110.2",
    "1\t2\t3\n2\t\t4\n3\t4\t5",
    "  name x\n1 Anna 3\n2  Bob 4",
    "0 {a: 1}\n1 {b: 2}\n2 {c: 3}",
    "8 Introduction\n9   Background\n10   Methods",
    "1: one\n2: two\n3: three",
    "1 def f():\n3     return 1\n4 f()",
]
_LISTINGS = [
    ("1 import os\n2\n3 print(os)", "import os\n\nprint(os)"),
    ("1import os\n2\n3print(os)", "import os\n\nprint(os)"),
    (" 9 def f():\n10     return 1\n11 f()", "def f():\n    return 1\nf()"),
    ("9 def f():\n10     return 1\n11 f()", "def f():\n    return 1\nf()"),
    ("9  def f():\n10     return 1\n11 f()", "def f():\n    return 1\nf()"),
    ("01 int main() {\n02   return 0;\n03 }\n", "int main() {\n  return 0;\n}"),
    ("1\tint main()\n2\t{\n3\t\treturn 0;\n4\t}", "int main()\n{\n\treturn 0;\n}"),
    ("7:def f():\n8:\n9:    return 1", "def f():\n\n    return 1"),
]


@pytest.mark.parametrize("data", _DATA)
def test_data_is_left_as_it_is(data: str) -> None:
    assert without_line_numbers(data) == data


@pytest.mark.parametrize(("listing", "code"), _LISTINGS)
def test_line_numbers_are_taken_off(listing: str, code: str) -> None:
    assert without_line_numbers(listing) == code


def test_numbers_alone_are_a_listing() -> None:
    prose = "<p>The mill stood beside the stream for a hundred years, and more than that.</p>" * 3
    page = f"<article><h1>Mill</h1>{prose}<pre>1\n2\n3\n</pre>{prose}</article>"
    text = Extractor(default_settings()).extract(page.encode()).text
    assert text.count("1\n2\n3") == 1
