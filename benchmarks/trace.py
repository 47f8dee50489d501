"""Size and speed of the trace index, and what questions find, over a corpus of any size.

    python benchmarks/trace.py texts.jsonl.xz --bytes 1e10 --output /big/disk/trace

Texts (`text` and `lang` of JSON lines) are joined to documents. Where they are not enough for the
bytes, further documents are made of them, with blocks of three words, or of six letters where
there are no spaces, in another order. Of these every 20th ends with the same 50 words, as pages
with the same notice do. The run has one stage and a token index with one span for each document.
Questions are 20 words of a document, as they are or with one in ten replaced, or 20 words of the
notice; a question counts as answered where its document, or one with the notice, is found. Prints
CPU seconds, which other work on the machine changes little, and seconds on the clock.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from curation.errors import ConfigError
from curation.hashing import mix64
from curation.trace.passage import Passage
from pipelines.run_folder import load_run
from pipelines.storage.files import Folder
from pipelines.storage.manifest import write_manifest
from pipelines.storage.shards import TableWriter
from pipelines.trace import TraceIndex, build

DOCUMENTS = pa.schema(
    [("id", pa.string()), ("url", pa.string()), ("text", pa.large_string()), ("lang", pa.string())]
)
SPANS = pa.schema(
    [
        ("sequence", pa.int64()),
        ("start", pa.int32()),
        ("length", pa.int32()),
        ("document_offset", pa.int64()),
        ("repeat", pa.int32()),
        ("id", pa.string()),
        ("url", pa.string()),
    ]
)
SHARD = 64 << 20
WITHOUT_SPACES = {"zh", "ja", "th"}


class Texts:
    """Documents by number, as many as are asked for."""

    def __init__(self, path: Path, joined: int) -> None:
        by_language: dict[str, list[str]] = defaultdict(list)
        opened = lzma.open if path.suffix == ".xz" else open
        with opened(path, "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                by_language[row.get("lang", "")].append(row["text"])
        self.whole = [
            (language, "\n".join(texts[i : i + joined]))
            for language, texts in sorted(by_language.items())
            for i in range(0, len(texts), joined)
        ]
        random.Random(0).shuffle(self.whole)
        self.blocks: dict[int, list[str]] = {}
        spaced = (text for language, text in self.whole if language not in WITHOUT_SPACES)
        self.notice = " ".join(next(text for text in spaced if len(text.split()) > 50).split()[:50])

    def __getitem__(self, number: int) -> tuple[str, str]:
        """Return language and text of a document."""
        turn, place = divmod(number, len(self.whole))
        language, text = self.whole[place]
        if not turn:
            return language, text
        spaced = language not in WITHOUT_SPACES
        if place not in self.blocks:
            units, size, sign = (text.split(), 3, " ") if spaced else (list(text), 6, "")
            self.blocks[place] = [
                sign.join(units[i : i + size]) for i in range(0, len(units), size)
            ]
        blocks = self.blocks[place]
        keys = mix64(np.arange(len(blocks), dtype=np.uint64) + np.uint64(number << 20))
        mixed = [blocks[i] for i in np.argsort(keys)]
        if number % 20 == 0:
            mixed.append("\n" + self.notice)
        return language, (" " if spaced else "").join(mixed)


def write_run(folder: Folder, texts: Texts, wanted: int) -> None:
    """Write a run with the stages `filter` and `tokenize`."""
    rows: list[dict[str, str]] = []
    files: dict[str, dict[str, dict]] = {"filter": {}, "tokenize": {}}
    size = written = number = 0
    while written + size < wanted:
        language, text = texts[number]
        name = f"{int(mix64(np.array([number], np.uint64))[0]):016x}"
        url = f"https://site{number % 997}.example/{number}"
        rows.append({"id": name, "url": url, "text": text, "lang": language})
        size += len(text.encode())
        number += 1
        if size >= SHARD:
            _write(folder, rows, files)
            rows, size, written = [], 0, written + size
    if rows:
        _write(folder, rows, files)
    for stage, held in files.items():
        manifest = {"stage": stage, "files": held, "settings": {}, "bytes": 0}
        write_manifest(folder / stage, manifest)


def _write(folder: Folder, rows: list[dict[str, str]], files: dict[str, dict[str, dict]]) -> None:
    shard = f"{len(files['filter']):05}.parquet"
    with TableWriter(folder / "filter", f"documents/{shard}", DOCUMENTS) as writer:
        for i in range(0, len(rows), 512):
            writer.write(pa.RecordBatch.from_pylist(rows[i : i + 512], DOCUMENTS))
    files["filter"][f"documents/{shard}"] = writer.record.as_dict()
    order = random.Random(len(files["filter"])).sample(rows, len(rows))
    spans = [
        {"sequence": i // 4, "start": i % 4 * 500, "length": 500, "document_offset": 0}
        | {"repeat": 0, "id": row["id"], "url": row["url"]}
        for i, row in enumerate(order)
    ]
    with TableWriter(folder / "tokenize", f"index/{shard}", SPANS) as writer:
        for i in range(0, len(spans), 512):
            writer.write(pa.RecordBatch.from_pylist(spans[i : i + 512], SPANS))
    files["tokenize"][f"index/{shard}"] = writer.record.as_dict()


def questions(texts: Texts, size: int, count: int, edited: bool) -> Iterator[tuple[int, str]]:
    """Numbers of documents and passages of 20 words, or 40 with one in ten replaced."""
    rng = random.Random(5)
    while count:
        number = rng.randrange(size)
        language, text = texts[number]
        spaced = language not in WITHOUT_SPACES
        units = text.split() if spaced else list("".join(text.split()))
        words = (44 if edited else 22) if spaced else (130 if edited else 90)
        if len(units) < words:
            continue
        first = rng.randrange(len(units) - words + 1)
        chosen = units[first : first + words]
        if edited:
            for k in range(rng.randrange(5, 10), words, 10 if spaced else 20):
                chosen[k] = "xyzzy" if spaced else "々"
        passage = (" " if spaced else "").join(chosen)
        try:
            Passage(passage)
        except ConfigError:  # punctuation is no word
            continue
        count -= 1
        yield number, passage


def ask(index: TraceIndex, name: str, asked: list[tuple[int, str]]) -> None:
    """Ask all questions of a kind and print what they cost and found."""
    seconds, clock, hits, compared = [], [], 0, 0
    for number, passage in asked:
        start, started = time.process_time(), time.perf_counter()
        answer = index.ask(passage, 20)
        seconds.append(time.process_time() - start)
        clock.append(time.perf_counter() - started)
        numbers = [int(found.row["url"].rsplit("/", 1)[1]) for found in answer.found]
        hits += any(n == number or (number < 0 and n % 20 == 0) for n in numbers)
        compared += answer.read
    print(
        f"{name}: {hits} of {len(asked)} found; CPU seconds of a question: median "
        f"{np.median(seconds):.3f}, most {max(seconds):.3f}; on the clock {np.median(clock):.3f}, "
        f"{max(clock):.3f}; {compared / len(asked):.1f} documents compared"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--bytes", type=float, default=1e8)
    parser.add_argument("--join", type=int, default=3, help="texts of a document")
    parser.add_argument("--output", required=True)
    parser.add_argument("--questions", type=int, default=100)
    options = parser.parse_args()
    folder, texts = Folder(options.output, sync=False), Texts(options.texts, options.join)
    if not folder.exists("filter"):
        write_run(folder, texts, int(options.bytes))
    folder, stages = load_run(options.output)
    start = time.process_time()
    facts = build(folder, stages, print)
    cpu = time.process_time() - start
    size = facts["text_bytes"]
    print(
        f"{facts['documents']:,} documents, {size / 1e6:,.0f} MB of text; index "
        f"{facts['bytes'] / 1e6:,.0f} MB, {facts['bytes'] / size:.1%}; {cpu:,.0f} s CPU"
    )
    index = TraceIndex(folder, stages)
    for name, edited in (("verbatim", False), ("edited", True)):
        asked = list(questions(texts, facts["documents"], options.questions, edited))
        ask(index, name, asked)
    words = texts.notice.split()
    notices = [" ".join(words[i : i + 22]) for i in range(0, 28, 7)]
    ask(index, "notice", [(-1, passage) for passage in notices])


if __name__ == "__main__":
    main()
