"""Digests of the kernels' results, used in fingerprints instead of numba's version.

A new numba, or another machine, must not change a byte. So a run folder records, instead of numba's
version, the digest of each stage's results on some fixed texts (`configs/golden.json`). A test and
`curate warm-up` compare this machine's results with it.
"""

import functools
import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import curation
from curation.recipe import Recipe, load
from curation.resources import root
from curation.stages import find, known_stages
from curation.warm_up import known_kernels

_RECIPE = "sample"
_PROSE = (
    "The harbour wall was rebuilt after the flood of that year, and it has stood since; "
    "who walks along it at low tide will find the old stones (3 of them marked “1887”).",
    "Der Hund schläft auf dem Sofa, während draußen der Regen fällt. Wer will, liest dazu ein Buch "
    "über Brücken: es kostet 12,50 € und ist im Laden an der Ecke zu haben.",
    "古い港の壁は洪水のあとに建て直された。今でもそこに立っている。「石」は三つある、と彼は言った！",
    "Старая стена гавани была восстановлена после наводнения, и с тех пор она стоит на месте.",
    "كان جدار الميناء القديم قد أعيد بناؤه بعد الفيضان، وما زال قائما حتى اليوم.",
    "पुरानी दीवार बाढ़ के बाद फिर से बनाई गई थी, और तब से वह वहीं खड़ी है।",
)
_CODE = (
    "import sys\n\n\ndef total(values: list[int]) -> int:\n    # the sum of all\n"
    "    result = 0\n    for value in values:\n        result += value * 2\n    return result\n"
)
_MATHEMATICS = "Let $f(x) = \\int_0^x t^2 \\, dt$. Then $f'(x) = x^2 \\geq 0$, so $f$ grows.\n"
_NOTES = "- first item\n- second item\n\nREAD MORE >>\nCookies | Terms: contact me@example.org\n"


def golden_digest(stage: str) -> str | None:
    """Return the expected digest of a stage's results; None for a stage without kernels."""
    return _golden().get(stage)


def measured_digest(stage: str) -> str:
    """Return the digest of this machine's results."""
    answers = json.dumps(list(_answers(stage)), sort_keys=True, default=str)
    return hashlib.sha256(answers.encode()).hexdigest()


def is_right(stage: str) -> bool:
    """Return whether this machine's results are the expected ones, or none are."""
    golden = golden_digest(stage)
    return golden is None or golden == measured_digest(stage)


def stages_with_kernels() -> list[str]:
    """Return the stages whose results are checked; not `mix`, which only sums up."""
    listed = {stage for known in known_kernels() for stage in known.stages} - {"mix"}
    return [stage for stage in known_stages() if stage in listed]


@functools.cache
def _golden() -> dict[str, str]:
    path = root() / "configs" / "golden.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _texts() -> list[str]:
    """Return texts of several scripts and kinds, long and short, equal and nearly equal."""
    prose = ["\n\n".join([f"{line} {line[::2]}", *[line] * 3]) for line in _PROSE]
    mixed = [_CODE * 3, _MATHEMATICS * 5, _NOTES * 4, f"{_PROSE[0]}\n\n{_CODE}\n\n{_PROSE[1]}"]
    long = " ".join(f"{line} Number {n} of {n * n}." for n in range(40) for line in _PROSE[:2])
    return [*prose, *mixed, long, long.replace("Number 7 ", "No. 7 "), prose[0], "x", "é" * 50]


def _page(text: str) -> str:
    paragraphs = "".join(f"<p>{part}</p>" for part in text.split("\n\n"))
    table = "<table><tr><th>Year<th>Height<tr><td>1887<td>3.5 m<tr><td>1953<td>4 m</table>"
    return (
        f"<title>{text[:20]}</title><nav><a href=/>Home</a> <a href=/b>Shop</a></nav>"
        f"<article class='post content'><h1>{text[:30]}</h1>{paragraphs}<pre><code>{_CODE}</code>"
        f"</pre>{table}<ul><li>one &amp; two<li>{_NOTES}</ul></article>"
        f"<div class=comments><p>{text[:90]}</div><footer>&copy; 2024 <a href=/t>Terms</a></footer>"
    )


def _answers(stage: str) -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder:
        items = Path(folder) / "items.jsonl"
        items.write_text("".join(json.dumps({"question": line}) + "\n" for line in _PROSE))
        evals = f"decontaminate.evals={json.dumps([str(items)])}"
        yield from _answers_of(stage, load(_RECIPE, ["dedup-lines.max_occurrences=2", evals]))


def _answers_of(stage: str, recipe: Recipe) -> Iterator[Any]:
    from curation.tokenize.tokenizer import load_tokenizer

    texts = _texts()
    if find(stage).is_sink:
        tokenizer = load_tokenizer(recipe.tokenize.tokenizer)
        yield from (tokenizer.encode(text) for text in texts)
        return
    column = {"html": [_page(t) for t in texts]} if find(stage).is_source else {"text": texts}
    known = {
        "url": [f"https://host{n % 3}.example/{n}" for n in range(len(texts))],
        "language": ["en"] * len(texts),
    }
    curated = curation.run(recipe, column | known, stages=[stage])
    yield curated.documents.to_pylist()
    yield curated.removed.to_pylist()


def main() -> None:
    """Write `configs/golden.json`, after kernels were changed so that results differ."""
    digests = {stage: measured_digest(stage) for stage in stages_with_kernels()}
    path = root() / "configs" / "golden.json"
    path.write_text(json.dumps(digests, indent=1) + "\n")


if __name__ == "__main__":
    main()
