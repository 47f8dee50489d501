"""Names of all signals, in the order of the `signals` columns, and the signal that a rule reads."""

from collections.abc import Mapping, Sequence
from typing import Any

from curation.config import nearest

GOPHER = (
    "word_count",
    "mean_word_length",
    "symbol_hash_ratio",
    "ellipsis_ratio",
    "bullet_line_ratio",
    "ellipsis_line_ratio",
    "alpha_word_ratio",
    "stop_words",
)
#: Lengths of the n-grams of which the most frequent counts, and of those that count when repeated.
TOP = (2, 3, 4)
DUPLICATE = (5, 6, 7, 8, 9, 10)
REPETITION = (
    "dup_line",
    "dup_line_chars",
    "dup_para",
    "dup_para_chars",
    *(f"top_{n}gram" for n in TOP),
    *(f"dup_{n}gram" for n in DUPLICATE),
)
C4 = ("sentences", "lorem_ipsum", "curly_bracket", "long_lines", "characters")
FINEWEB = ("line_punct", "short_lines", "char_dup", "newlines_per_word")
LLAMA3 = ("line_ngram_coverage",)
DIRTY = ("dirty_word_count", "dirty_word_ratio")
REFERENCE = ("kl_divergence", "outlier_token_ratio")
#: Signs that a text is no text, whatever path it is on (curation.text.noise).
TEXT = ("text_undecoded", "text_question_marks", "text_escapes", "text_mojibake")
#: What identifies code and mathematics, and their own measurements (curation.filters.content).
CONTENT = (
    "code_share",
    "math_ratio",
    "code_alpha_ratio",
    "code_mean_line_length",
    "code_max_line_length",
    "code_data_ratio",
    "code_generated",
    "code_xml",
    "code_licence_ratio",
    "code_characters",
    "math_broken_formulas",
    "math_number_ratio",
    *TEXT,
)

#: Not measured here: the model's score, where rules can be overruled by it.
QUALITY = "quality"

#: Families in the order of the columns: what their names begin with, and the names.
FAMILIES = (
    ("gopher_", GOPHER),
    ("repetition_", REPETITION),
    ("c4_", C4),
    ("fineweb_", FINEWEB),
    ("llama3_", LLAMA3),
    ("", DIRTY),
    ("", REFERENCE),
    ("", CONTENT),
    ("", (QUALITY,)),
)
NAMES: tuple[str, ...] = tuple(prefix + name for prefix, names in FAMILIES for name in names)

#: Signals that take lists or models, and the key of `filter.signals` that names these.
NEEDS = {
    "gopher_stop_words": "stop_words",
    **dict.fromkeys(DIRTY, "dirty_words"),
    **dict.fromkeys(REFERENCE, "reference"),
}


def signal_of(family: str, rule: str) -> str | None:
    """The signal that a rule reads where it names none: `family_rule`, or `rule` alone."""
    return next((name for name in (f"{family}_{rule}", rule) if name in NAMES), None)


def with_signals(rules: Any, base: Any, where: str) -> Any:
    """Rules as they are in a recipe, each with the signal it reads.

    A rule that names none reads that of the rule of its name in `base`, else the signal of its own
    name. One with `python` makes a signal: `family_rule`, or the name that it gives. Raises
    ValueError where a signal is unknown or none can be inferred.
    """
    if not isinstance(rules, Mapping):
        return rules
    known = (*NAMES, *_own(base), *_own(rules))
    return {
        family: {
            name: _with_signal(rule, base, f"{family}.{name}", where, known)
            for name, rule in members.items()
        }
        if isinstance(members, Mapping)
        else members
        for family, members in rules.items()
    }


def _own(rules: Any) -> list[str]:
    """Signals that rules with code of the user's own make."""
    return [
        rule.get("signal") or f"{family}_{name}"
        for family, members in (rules.items() if isinstance(rules, Mapping) else ())
        for name, rule in (members.items() if isinstance(members, Mapping) else ())
        if isinstance(rule, Mapping) and rule.get("python") is not None
    ]


def _with_signal(rule: Any, base: Any, key: str, where: str, known: Sequence[str]) -> Any:
    if not isinstance(rule, Mapping):
        return rule
    place = f"{where}.{key}"
    family, _, name = key.partition(".")
    named = rule.get("signal")
    if rule.get("python") is not None:
        named = named or f"{family}_{name}"
        if named in NAMES:
            raise ValueError(f"{place}: {named!r} is measured without code of your own")
    elif named is None:
        held = (base.get(family) or {}).get(name) if isinstance(base, Mapping) else None
        named = held.get("signal") if isinstance(held, Mapping) else None
        named = named or signal_of(family, name)
        if named is None:
            hints = {*((base.get(family) or {}) if isinstance(base, Mapping) else {})}
            hints |= {n.removeprefix(f"{family}_") for n in NAMES}
            raise ValueError(f"{place}: no signal of this name{nearest(name, sorted(hints))}")
    elif named not in known:
        raise ValueError(f"{place}.signal: unknown signal {named!r}{nearest(named, known)}")
    return {**rule, "signal": named}
