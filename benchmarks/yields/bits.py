"""Bits per byte of gold pages after equal bytes of each tool's output (PPMd)."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from urllib.parse import urlsplit

import xxhash

from yields.pages import Label, Page
from yields.runs import Fate
from yields.tables import GOOD, table

ORDER, MEMORY = 12, 1 << 29
SEEDS = range(5)
#: Characters of a gold text: shorter ones are left out, longer ones cut, since the model learns most
#: of a long page from its own beginning.
LEAST, MOST = 200, 2_000
Documents = list[tuple[Page, Label, Fate]]


def held_out(page: Page) -> bool:
    """Return whether a page belongs to the half of the hosts that is only tested on."""
    host = (urlsplit(page.url).hostname or "").removeprefix("www.")
    return bool(_hash(host) & 1)


def gold_texts(documents: Iterable[tuple[Page, Label, Fate]]) -> bytes:
    """Return the beginnings of gold texts of held-out pages of grade 4 and 5, joined."""
    texts = [
        page.gold[:MOST]
        for page, label, _ in documents
        if held_out(page) and label.grade > GOOD and page.gold and len(page.gold) >= LEAST
    ]
    return "\n\n".join(sorted(texts, key=_hash)).encode()


def outputs(tools: dict[str, Documents]) -> dict[str, dict[str, str]]:
    """Return what each tool keeps of the other half, by page key.

    Two more lines set the range: every page as extracted, and those that readers would keep.
    """
    found: dict[str, dict[str, str]] = {}
    for name, documents in tools.items():
        half = [entry for entry in documents if not held_out(entry[0])]
        if not found:
            found["extraction alone"] = {page.key: fate.before for page, _, fate in half}
            found["readers: grades 3 to 5"] = {
                page.key: fate.before for page, label, fate in half if label.grade >= GOOD
            }
        found[name] = {page.key: fate.after for page, _, fate in half if fate.after is not None}
    return found


def measure(title: str, tools: dict[str, Documents]) -> None:
    """Print bits per byte with no output, with equal bytes and with all bytes of each tool.

    The gold texts are of pages of the first tool's documents. Equal bytes are measured twice: with
    line breaks as they are, and with all white space as single spaces: half of the gold texts are
    CleanEval's, whose annotators set blank lines and left hard-wrapped lines as they were.
    """
    gold = gold_texts(next(iter(tools.values())))
    if not gold:
        print("\nNo gold texts of grade 4 and 5 in the held-out half: bits per byte not measured.")
        return
    kept = outputs(tools)
    joined = {name: [_joined(texts, seed) for seed in SEEDS] for name, texts in kept.items()}
    least = min(len(texts[0]) for texts in joined.values())
    words = _one_line(gold)
    flat = {name: [_one_line(text) for text in texts] for name, texts in joined.items()}
    least_words = min(len(texts[0]) for texts in flat.values())
    rows = [
        (
            "nothing",
            "",
            f"{bits_per_byte(b'', gold):.4f}",
            f"{bits_per_byte(b'', words):.4f}",
            "",
            "",
        )
    ]
    for name, texts in joined.items():
        equal = [bits_per_byte(text[:least], gold) for text in texts]
        of_words = [bits_per_byte(text[:least_words], words) for text in flat[name]]
        everything = bits_per_byte(texts[0], gold)  # orders differ little
        rows.append(
            (
                name,
                f"{len(texts[0]) / 1e6:.2f} MB",
                _spread(equal),
                _spread(of_words),
                f"{everything:.4f}",
                str(len(kept[name])),
            )
        )
    header = (
        "output before the gold texts",
        "output",
        f"bits per byte after {least / 1e6:.2f} MB",
        "the same, white space as single spaces",
        "bits per byte after all",
        "documents",
    )
    table(
        f"{title}: {len(gold) / 1e6:.2f} MB of gold text, PPMd order {ORDER}, "
        f"{len(SEEDS)} orders of documents (mean ± standard deviation)",
        header,
        rows,
    )


def _hash(text: str, seed: int = 0) -> int:
    return xxhash.xxh64_intdigest(text.encode(), seed)


def _joined(texts: dict[str, str], seed: int) -> bytes:
    keys = sorted(texts, key=lambda key: _hash(key, seed))
    return "\n\n".join(texts[key] for key in keys).encode()


def bits_per_byte(prior: bytes, gold: bytes) -> float:
    """Return the bits that each byte of `gold` costs once the model has read `prior`."""
    try:
        import pyppmd
    except ImportError:
        raise SystemExit(
            "bits per byte needs pyppmd: pip install pyppmd, or leave out the part bits"
        ) from None
    encoder = pyppmd.Ppmd7Encoder(ORDER, MEMORY)
    before = len(encoder.encode(prior)) if prior else 0
    after = before + len(encoder.encode(gold)) + len(encoder.flush())
    return 8 * (after - before) / len(gold)


def _one_line(text: bytes) -> bytes:
    return b" ".join(text.split())


def _spread(values: list[float]) -> str:
    return f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}"
