"""Line deduplication by place: what is cut, what stays, and why."""

from __future__ import annotations

import numpy as np
import pytest

from curation.dedup.audit import audit_lines, summary
from curation.dedup.dedup_settings import VERDICTS, LineDedupSettings, defaults
from curation.dedup.lines import (
    LineRemoval,
    LineTotals,
    count_lines,
    frequent_lines,
    host_keys,
    line_hashes,
    merge_counts,
    remove_lines,
    total_lines,
    with_pages,
)

DEFAULT = defaults(LineDedupSettings)


def run(
    texts: list[str], urls: list[str] | None = None, rules: LineDedupSettings = DEFAULT
) -> tuple[LineRemoval, LineTotals]:
    """The whole stage in memory; each text on a site of its own unless `urls` says otherwise."""
    import pyarrow as pa

    doc64 = np.arange(len(texts), dtype=np.uint64)
    urls = urls or [f"https://site{i}.example/" for i in range(len(texts))]
    hosts = host_keys(pa.array(urls), doc64)
    counts = merge_counts([count_lines(line_hashes(texts, rules), doc64, hosts)])
    frequent = frequent_lines(total_lines(with_pages(counts, hosts)), rules)
    return remove_lines(texts, frequent, rules), frequent


def body(i: int, lines: int = 12) -> str:
    words = ["north", "river", "market", "engine", "garden", "winter", "paper", "signal"]
    some = [(words[(i + k) % 8], words[(3 * i + k) % 8]) for k in range(lines)]
    return "\n".join(
        f"The {a} of the {b} in number {'x' * (i + 1)}{'y' * k}." for k, (a, b) in enumerate(some)
    )


def test_footers_go_and_the_text_above_stays() -> None:
    texts = [f"{body(i)}\nSubscribe to our newsletter\nAll rights reserved." for i in range(8)]
    removal, _ = run(texts)
    assert removal.texts.to_pylist() == [body(i) for i in range(8)]


def test_headings_and_items_of_kept_sections_stay() -> None:
    texts = [
        f"{body(i, 6)}\nIngredients\n{body(i + 50, 3)}\nMethod\n{body(i + 90, 3)}\n"
        f"- own {'z' * i}\n- salt"
        for i in range(9)
    ]
    removal, _ = run(texts)
    assert removal.texts.to_pylist() == texts


def test_a_title_shared_by_many_sites_is_a_heading_and_a_site_s_name_is_none() -> None:
    texts = [f"Introduction\n{body(i)}" for i in range(8)]
    assert run(texts)[0].texts.to_pylist() == texts
    one_site = [f"https://blog.example/{i}" for i in range(8)]
    assert run(texts, one_site)[0].texts.to_pylist() == [body(i) for i in range(8)]


def test_a_line_on_few_pages_of_its_site_is_text() -> None:
    footer = "Resets the changes that were made in this dialog."
    texts = [f"{body(i)}\n{footer}" if i < 8 else body(i) for i in range(200)]
    urls = [f"https://manual.example/{i}" for i in range(200)]
    assert run(texts, urls)[0].texts.to_pylist() == texts
    assert run(texts[:20], urls[:20])[0].texts[0].as_py() == body(0)


def test_repeats_within_one_document_count_once() -> None:
    texts = [*(f"{body(i)}\nfooter of the page" for i in range(6)), "la la la la la\n" * 20]
    assert run(texts)[0].texts.to_pylist() == texts


CODE = """class Store:
    def get(self, key):
        try:
            return self.items[key]
        except KeyError:
            return None
        else:
            pass
"""


def test_code_and_formulas_never_lose_a_line() -> None:
    sources = [CODE + f"\nSTORE_{i} = Store()\n" for i in range(20)]
    pages = [f"{body(i)}\nHere is the code that we need for it:\n{CODE}" for i in range(20)]
    tex = [
        "\n".join(f"x^{{{k}}} + y_{{{i}}} = \\frac{{{k}}}{{{i + 1}}}" for k in range(12))
        for i in range(20)
    ]
    removal, _ = run([*sources, *pages, *tex])
    assert removal.texts.to_pylist()[:20] == sources
    assert all(CODE.strip() in text for text in removal.texts.to_pylist()[20:40])
    assert removal.texts.to_pylist()[40:] == tex


def test_digits_are_folded_in_lines_of_words_only() -> None:
    lines = line_hashes(
        ["Seite 12 von unserem Heft\nSeite 13 von unserem Heft", "12: 34\n12: 35"], DEFAULT
    )
    assert lines.hashes[0] == lines.hashes[1]
    assert lines.hashes[2] != lines.hashes[3]


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("http://a.example:80/x", True),
        ("https://WWW.A.example/y?z", True),
        ("https://user@a.example", True),
        ("https://b.example/", False),
        (None, False),
        ("file:x.html", False),
    ],
)
def test_hosts_of_urls(url: str | None, same: bool) -> None:
    import pyarrow as pa

    keys = host_keys(pa.array(["https://a.example/", url]), np.array([1, 2], np.uint64))
    assert (keys[0] == keys[1]) == same


def test_the_audit_accounts_for_every_frequent_line() -> None:
    texts = [f"Introduction\n{body(i)}\nAll rights reserved." for i in range(8)]
    removal, frequent = run(texts)
    audit = audit_lines(texts, removal, frequent)
    rows = {row["line"]: row for row in audit.to_pylist()}
    assert rows["All rights reserved."]["verdict"] == "cut: edge"
    assert rows["All rights reserved."]["documents"] == rows["All rights reserved."]["hosts"] == 8
    assert rows["Introduction"]["verdict"] == "kept: heading"
    cut = sum(r["characters"] for r in rows.values() if r["verdict"].startswith("cut"))
    notes = summary([audit, audit])
    assert notes["estimate of good text among what was cut"]["characters_cut"] == 2 * cut
    assert {v["verdict"] for v in notes["frequent lines by verdict"]} <= set(VERDICTS)
