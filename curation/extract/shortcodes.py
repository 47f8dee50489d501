"""Shortcodes of WordPress that a page shows because their plugin is gone (`[vc_row]`), or that a
script draws as formulas (`[latex]`)."""

from __future__ import annotations

import regex

from curation.extract.formulas import delimited, tidy

# Prefixes of page builders, and names that no text in brackets has by chance.
_SHORTCODE = regex.compile(
    r"\[/?(?:(?:vc|et_pb|fusion|av|mk|ux|tatsu|su|themify|tcb|thrive|cs|kc|siteorigin|ultimate|porto"
    r"|wpb|rev|nectar|penci|td|bdp|fl)_\w{2,40}"
    r"|contact-form-7|wpforms|gravityform|ninja_form|rev_slider|layerslider|elementor-template"
    r"|caption(?=\s+(?:id|align|width)=|\])|gallery(?=\s+\w+=)|embed(?=\]https?:)|/embed"
    r"|playlist(?=\s+\w+=)|video(?=\s+\w+=)|audio(?=\s+\w+=)|dropcap|tabs?group|toggle(?=\s+\w+=)"
    r"|row(?=\s+\w+=)|columns?(?=\s+\w+=)|/(?:caption|video|audio|row|columns?|toggle|playlist)"
    r")(?:\s[^\[\]\n]{0,500})?/?\]"
)
_FORMULA = regex.compile(r"\[(latex|i?tex)\]((?:[^\[]|\[(?!/?(?:latex|i?tex)\]))++)\[/\1\]")
_ABOUT = regex.compile(r"short-?code", regex.I)


def without_shortcodes(text: str) -> str:
    """A text without its shortcodes, and without lines that have nothing else.

    A text that speaks of shortcodes keeps them.
    """
    if not _SHORTCODE.search(text) or _ABOUT.search(text):
        return text
    lines = []
    for line in text.split("\n"):
        rest = _SHORTCODE.sub("", line) if "[" in line else line
        if rest.strip() or rest == line:
            lines.append(rest if rest == line else rest.strip())
    return "\n".join(lines)


def with_typed_formulas(text: str) -> str:
    """A text with formulas between dollars that stand between `[latex]` and `[/latex]`."""
    if "tex]" not in text:
        return text
    return _FORMULA.sub(lambda found: delimited(tidy(found[2]), False), text)
