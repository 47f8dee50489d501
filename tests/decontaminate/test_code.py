"""What decides about code."""

from __future__ import annotations

import pytest

from curation.config import read_values
from curation.decontaminate.align import is_code, is_other_code
from curation.decontaminate.decontaminate_settings import Rules, default_settings
from tests.decontaminate.test_judge import FILLER, decontaminator_of

RULES = read_values(default_settings().rules, Rules).code

CLAMP = """def clamp_tide(levels, floor, ceiling):
    result = []
    for level in levels:
        if level < floor and ceiling > 40:
            level = floor - ceiling
        result.append(level * 3)
    return sorted(result, key=lambda tide: -tide)
"""


@pytest.mark.parametrize(
    "text",
    [CLAMP, "function f(a) {\n  return a;\n}", "#include <stdio.h>\nint main(void) {", "import os"],
)
def test_code_has_definitions_and_statements(text: str) -> None:
    assert is_code(text)


@pytest.mark.parametrize(
    "text", ["Define the function of the lungs.", "The return is due (in May).", "int or float?"]
)
def test_prose_is_no_code(text: str) -> None:
    assert not is_code(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("floor - ceiling", "floor + ceiling"),
        ("* 3", "* 4"),
        (" and ", " or "),
        ("level <", "Level <"),
    ],
)
def test_another_operator_number_or_case_is_another_function(old: str, new: str) -> None:
    assert is_other_code(CLAMP, CLAMP.replace(old, new), RULES)
    (found,) = decontaminator_of([CLAMP]).find([FILLER + CLAMP.replace(old, new) + FILLER])
    assert [f.action for f in found] == ["touched"]


@pytest.mark.parametrize(
    "text",
    [
        CLAMP.replace("    ", "\t"),
        CLAMP.upper(),
        "\n".join(f"{n:2d} {line}  # as before" for n, line in enumerate(CLAMP.split("\n"))),
        CLAMP.replace("result = []", "harbour = []"),
        CLAMP.replace("result = []", '"""Result of clamping."""\n    result = []'),
    ],
)
def test_layout_comments_and_edited_words_do_not_matter(text: str) -> None:
    assert not is_other_code(CLAMP, text, RULES)
    (found,) = decontaminator_of([CLAMP]).find([f"{FILLER}\n{text}\n{FILLER}"])
    assert found[0].action == "remove"


def test_a_trivial_function_is_not_recognized() -> None:
    (found,) = decontaminator_of(["def f(a, b):\n    return a + b"]).find(
        [FILLER + "def f(a, b):\n    return a + b"]
    )
    assert all(f.action == "touched" for f in found)
