"""What may become of a frequent line, by name, and how much of what is cut so is good text."""

from __future__ import annotations

#: In the order of the numbers in `patterns`.
VERDICTS = (
    "",
    "cut: frequent",
    "cut: edge",
    "cut: sentence",
    "cut: between",
    "kept: heading",
    "kept: item",
    "kept: inside",
    "kept: first",
)

#: Share of cut text that is good, by verdict, from reading (docs/dedup.md): 7 of 620 lines at edges
#: were arguable. Too few of the next two kinds were met, so the same is assumed of them. Of 100
#: lines that the published rule cut, 65 were headings, code or content.
GOOD_SHARE = {
    "cut: edge": 0.012,
    "cut: sentence": 0.012,
    "cut: between": 0.012,
    "cut: frequent": 0.65,
}
