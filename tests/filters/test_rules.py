"""Rules over signals."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from curation.filters import judge
from curation.filters.apply import load_filter
from curation.filters.filter_settings import FilterSettings, default_settings
from curation.filters.rules import RuleBook
from curation.filters.signals import NAMES
from curation.schema import DOCUMENTS
from tests.damage_of_texts import ESCAPED, LOST, Damage, read_as, written
from tests.filters import measure


def signals(**columns: list[float]) -> pa.StructArray:
    """Signals with the given columns; all others can't be measured."""
    rows = len(next(iter(columns.values())))
    nothing = [float("nan")] * rows
    return pa.StructArray.from_arrays(
        [pa.array(columns.get(n, nothing)) for n in NAMES], list(NAMES)
    )


def book(**changes: object) -> RuleBook:
    tree = default_settings().model_dump()
    tree |= {"rules": {}, "by_language": {}, "exempt": {}} | changes
    return RuleBook(FilterSettings.model_validate(tree))


WORDS = {"gopher": {"words": {"signal": "gopher_word_count", "min": 50, "max": 100}}}


def test_value_and_threshold_tell_why() -> None:
    verdicts = book(rules=WORDS).decide(signals(gopher_word_count=[49, 50, 100, 101, np.nan]), None)
    assert verdicts.reason.to_pylist() == ["gopher.words", None, None, "gopher.words", None]
    assert verdicts.value.to_pylist() == [49, None, None, 101, None]
    assert verdicts.threshold.to_pylist() == [50, None, None, 100, None]


def test_the_first_rule_in_the_recipe_wins() -> None:
    first = {"signal": "gopher_mean_word_length", "max": 5}
    rules = {"z": {"length": first}, **WORDS}
    found = signals(gopher_word_count=[1.0], gopher_mean_word_length=[9.0])
    assert book(rules=rules).decide(found, None).reason.to_pylist() == ["z.length"]


def test_languages_override_and_switch_off() -> None:
    by_language = {
        "de": {"gopher": {"words": {"signal": "gopher_word_count", "min": 10}}},
        "ja": {"gopher": {"words": None}},
        "th": {"gopher": None},
    }
    found = signals(gopher_word_count=[20.0, 20, 20, 20, 5, 20])
    languages = pa.array(["en", "de", "ja", "th", "de", None])
    verdicts = book(rules=WORDS, by_language=by_language).decide(found, languages)
    assert [r is not None for r in verdicts.reason.to_pylist()] == [
        True,
        False,
        False,
        False,
        True,
        True,
    ]
    assert verdicts.threshold.to_pylist()[4] == 10


def test_exemptions() -> None:
    exempt = {"code": {"signal": "code_share", "min": 0.5, "rules": ["gopher"]}}
    found = signals(gopher_word_count=[1.0, 1.0], code_share=[0.6, 0.4])
    verdicts = book(rules=WORDS, exempt=exempt).decide(found, None)
    assert verdicts.reason.to_pylist() == [None, "gopher.words"]


OVERRULE = {
    "quality": 0.3,
    "rules": ["gopher"],
    "model": {"path": "builtin:models/quality/quality.npz", "sha256": None},
}


def test_quality_overrules_a_rule_and_the_rule_is_recorded() -> None:
    found = signals(
        gopher_word_count=[1.0, 1.0, 1.0, 60.0],
        gopher_mean_word_length=[1.0] * 4,
        quality=[0.3, 0.29, np.nan, 0.9],
    )
    judged = book(rules=WORDS, overrule=OVERRULE).judge(found, None)
    assert judged.verdicts.reason.to_pylist() == [None, "gopher.words", "gopher.words", None]
    assert judged.overruled.to_pylist() == ["gopher.words", None, None, None]
    # a rule that can't be overruled still removes the document, and nothing counts as overruled
    strict = {**WORDS, "z": {"length": {"signal": "gopher_mean_word_length", "min": 2}}}
    judged = book(rules=strict, overrule=OVERRULE).judge(found, None)
    assert judged.verdicts.reason.to_pylist() == [
        "z.length",
        "gopher.words",
        "gopher.words",
        "z.length",
    ]
    assert judged.overruled.null_count == 4


def test_only_known_rules_can_be_overruled() -> None:
    with pytest.raises(ValueError, match=r"overrule\.rules: no rule or family 'gofer'"):
        book(rules=WORDS, overrule=OVERRULE | {"rules": ["gofer"]})


def test_what_is_nearly_all_copies_is_of_no_kind() -> None:
    kind = {"signal": "code_share", "min": 0.5, "rules": ["gopher"]}
    exempt = {"code": kind | {"unless": {"repetition_dup_line_chars": 0.6}}}
    found = signals(
        gopher_word_count=[1.0] * 3,
        code_share=[0.6] * 3,
        repetition_dup_line_chars=[0.6, 0.7, np.nan],
    )
    reasons = book(rules=WORDS, exempt=exempt).decide(found, None).reason.to_pylist()
    assert reasons == [None, "gopher.words", None]


SPAM = [
    "→ Back to top\n" + "\n".join(["Click here to win a new phone."] * 15),
    *(
        "\n".join([line] * 60)
        for line in (
            "Home → Shop → Men → Shoes → Running shoes of the year",
            "감사합니다 좋은 하루 되세요^^",
            "Buy cheap watches of the best brands and get free shipping;",
            "// Buy cheap watches of the best brands and get free shipping",
        )
    ),
]


@pytest.mark.parametrize("text", SPAM)
def test_repeated_lines_are_no_code_and_no_mathematics(text: str) -> None:
    held = default_settings(edits={"c4": False, "llama3": False})
    found = measure([text], None, held.signals)
    reasons = RuleBook(held).decide(found, None).reason.to_pylist()
    assert reasons[0] is not None and reasons[0].startswith("repetition.")


def test_languages_without_settings_are_named() -> None:
    rules = book(rules=WORDS, by_language={"de": {}})
    assert rules.without_settings(["en", "de", "de-AT", "xx", "yy", "xx"]) == ["xx", "yy"]


def test_a_rule_reads_the_signal_of_its_name() -> None:
    rules = {
        "gopher": {"word_count": {"min": 50}},
        "llama3": {"kl_divergence": {"max": 2}},
        "ours": {"words": {"signal": "gopher_word_count", "max": 9}},
    }
    changes = {"de": {"gopher": {"word_count": {"min": 10}}, "ours": {"words": {"max": 5}}}}
    held = book(rules=rules, by_language=changes)
    assert held.signals == ["gopher_word_count", "kl_divergence"]
    assert [(r.reason, r.rule.signal, r.rule.max) for r in held.of("de")] == [
        ("gopher.word_count", "gopher_word_count", None),
        ("llama3.kl_divergence", "kl_divergence", 2),
        ("ours.words", "gopher_word_count", 5),
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"rules": {"g": {"a": {"signal": "gopher_word_cnt", "min": 1}}}},
            "rules.g.a.signal: unknown signal 'gopher_word_cnt'; did you mean 'gopher_word_count'?",
        ),
        (
            {"rules": {"gopher": {"word_cuont": {"min": 1}}}},
            "rules.gopher.word_cuont: no signal of this name; did you mean 'word_count'?",
        ),
        (
            {"by_language": {"de": {"c4": {"sentence": {"min": 1}}}}},
            "by_language.de.c4.sentence: no signal of this name; did you mean 'sentences'?",
        ),
        (
            {"exempt": {"x": {"signal": "code_shar", "min": 1, "rules": []}}},
            "exempt.x.signal: unknown signal 'code_shar'; did you mean 'code_share'?",
        ),
        (
            {
                "exempt": {
                    "x": {"signal": "math_ratio", "min": 1, "rules": [], "unless": {"dup_line": 1}}
                }
            },
            "exempt.x.unless: unknown signal 'dup_line'; did you mean 'repetition_dup_line'?",
        ),
    ],
)
def test_an_unknown_signal_is_an_error(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        book(**changes)


def test_documents_of_unknown_language_are_counted() -> None:
    schema = pa.schema([*DOCUMENTS, pa.field("language", pa.string())])
    rows = [
        {"id": str(i), "text": "Words.", "language": n} for i, n in enumerate([None, None, "en"])
    ]
    found = load_filter(default_settings()).apply(pa.RecordBatch.from_pylist(rows, schema))
    assert found.languages_without_settings == {"unlabelled": 2}


@pytest.mark.parametrize("language", ["th", "lo", "km", "my"])
def test_ten_letters_of_an_alphabet_are_less_than_ten_of_han(language: str) -> None:
    """Natural passages repeat ten letters of Thai in up to 0.181 of the text, of Han in 0.026."""
    found = signals(repetition_dup_10gram=[0.181, 0.181, 0.42])
    decided = RuleBook(default_settings()).decide(found, pa.array([language, "zh", language]))
    rule = "repetition.dup_10gram"
    assert decided.reason.to_pylist() == [None, rule, rule]


@pytest.mark.parametrize(
    ("language", "menu", "text"),
    [("en", 0.34, 0.29), ("zh", 0.238, 0.138), ("th", 0.113, 0.05), ("km", 0.216, 0.05)],
)
def test_newlines_are_counted_by_words_worth_of_letters(
    language: str, menu: float, text: float
) -> None:
    found = signals(fineweb_newlines_per_word=[menu, text])
    decided = RuleBook(default_settings()).decide(found, pa.array([language, language]))
    assert decided.reason.to_pylist() == ["fineweb.newlines_per_word", None]


_LISTING = "def f(x):\n    if x == 1:\n        return {'a': x}\n    return x * 2\n"
_FORMULAS = (
    "Let $x^2 + y_1 = \\alpha$ and $f(x) \\leq \\sqrt{x}$ hold for all $x > 0$ of this kind.\n"
)


@pytest.mark.parametrize("of_path", ["", _LISTING * 60, _FORMULAS * 30])
@pytest.mark.parametrize(
    ("rule", "damage"),
    [
        ("text.undecoded", LOST["U+FFFD for letters"]),
        ("text.question_marks", LOST["? for letters"]),
        ("text.escapes", ESCAPED["&#x"]),
        ("text.escapes", ESCAPED["\\u"]),
        ("text.mojibake", read_as("utf-8", "windows-1252")),
    ],
)
def test_noise_is_removed_on_every_path(rule: str, damage: Damage, of_path: str) -> None:
    text = "\n".join(written("pl"))
    sound, noisy = judge([f"{text}\n{of_path}", f"{damage(text)}\n{of_path}"]).to_pylist()
    assert not (sound["reason"] or "").startswith("text.")
    assert noisy["reason"] == rule and noisy["value"] > noisy["threshold"]


def test_recipes_of_other_tools_have_no_rules_of_noise() -> None:
    damaged = LOST["U+FFFD for letters"]("\n".join(written("fr")))
    for recipe in ("fineweb", "fineweb2"):
        (row,) = judge([damaged], recipe).to_pylist()
        assert not (row["reason"] or "").startswith("text.") and row["text_undecoded"] > 0.01
