"""Forms of formulas, code, structure and white space: what each becomes, exactly.

    python benchmarks/forms.py [NAME...]

`tests/extract/forms/*.txt` holds forms that documentation generators, notebooks, forums and blogs
write, in our own words: a line `## name`, the HTML, a line `=>`, and the text that it should become. Each form is extracted from within an article. Prints
how many are exact, and those that aren't; with NAMEs only those whose name has one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from curation.extract import Extractor
from curation.extract.extractor import default_settings

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "extract" / "forms"
_BEFORE = (
    "The lock keeper explained, at some length, how the gates had been raised in winter, and why "
    "nobody on the canal had thought it possible until the work was done."
)
_AFTER = (
    "None of this was written down at the time, which is a pity, since the people who knew how it "
    "was done have moved away, and their notes went with them."
)
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Raising the gates</title></head>
<body><header><nav><ul><li><a href="/">Home</a></li><li><a href="/about">About</a></li></ul></nav></header>
<main><article class="post-content"><h1>Raising the gates</h1>
<p>{before}</p>
<p>What follows is what they remembered, in the order in which they told it, with the figures that the engineer kept for himself in a small black book.</p>
{html}
<p>{after}</p>
<p>Another winter will come, and the gates will have to be raised again, so it may be worth the trouble to ask those who remember, before it is too late.</p>
</article></main>
<footer><ul><li><a href="/privacy">Privacy</a></li><li><a href="/terms">Terms</a></li></ul></footer></body></html>
"""
_FIRST = "engineer kept for himself in a small black book."


@dataclass(frozen=True)
class Form:
    """HTML and the text that it should become."""

    file: str
    name: str
    html: str
    text: str

    def extracted(self) -> str:
        """The text that it becomes within an article."""
        page = _PAGE.format(before=_BEFORE, html=self.html, after=_AFTER)
        text = Extractor(default_settings()).extract(page.encode()).text
        start, end = text.find(_FIRST), text.find(_AFTER)
        if start < 0 or end < 0:
            return f"(the text around it is missing) {text}"
        return text[start + len(_FIRST) : end].strip("\n")


def forms() -> Iterator[Form]:
    """All forms, file by file."""
    for path in sorted(FOLDER.glob("*.txt")):
        for part in path.read_text(encoding="utf-8").removeprefix("## ").split("\n\n## "):
            name, _, body = part.partition("\n")
            html, _, text = body.partition("\n=>")
            yield Form(path.stem, name, html, text.strip("\n"))


def report(names: list[str]) -> None:
    """Print the forms that aren't exact, and how many are."""
    counts: dict[str, list[int]] = {}
    for form in forms():
        if names and not any(name in form.name for name in names):
            continue
        text = form.extracted()
        exact = text == form.text
        count = counts.setdefault(form.file, [0, 0])
        count[0] += exact
        count[1] += 1
        if not exact:
            print(f"{form.file}: {form.name}\n  wanted {form.text!r}\n  found  {text!r}")
    for file, (exact, total) in counts.items():
        print(f"{file:12} {exact:4} of {total:4} exact")
    exact, total = (sum(values) for values in zip(*counts.values(), strict=True))
    print(f"{'forms':12} {exact:4} of {total:4} exact = {exact / total:.3f}")


if __name__ == "__main__":
    report(sys.argv[1:])
