"""Size and speed of the trace index, and what questions find, over a corpus of any size.

    python benchmarks/trace.py texts.jsonl.xz --bytes 1e9 --output /big/disk/trace

Texts (`text` and `lang` of JSON lines) are joined to documents. Where they are not enough for the
bytes, further documents are made of them, with blocks of three words, or of six letters where
there are no spaces, in another order. The run has one stage and a token index with one span for
each document. Questions are 20 words of a document, as they are or with one in ten replaced; a
question counts as answered where its document is found. Prints CPU seconds, which other work on the
machine changes little.
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


def documents(path: Path, wanted: int, joined: int) -> Iterator[tuple[str, str]]:
    """Language and text of documents, until there are so many bytes."""
    by_language: dict[str, list[str]] = defaultdict(list)
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            by_language[row.get("lang", "")].append(row["text"])
    whole = [
        (language, "\n".join(texts[i : i + joined]))
        for language, texts in sorted(by_language.items())
        for i in range(0, len(texts), joined)
    ]
    random.Random(0).shuffle(whole)
    made, turn = 0, 0
    while made < wanted:
        for k, (language, text) in enumerate(whole):
            found = _mixed(language, text, turn * len(whole) + k) if turn else text
            made += len(found.encode())
            yield language, found
            if made >= wanted:
                return
        turn += 1


def _mixed(language: str, text: str, seed: int) -> str:
    """The same blocks in another order."""
    spaced = language not in WITHOUT_SPACES
    units, size = (text.split(), 3) if spaced else (list(text), 6)
    blocks = [units[i : i + size] for i in range(0, len(units), size)]
    random.Random(seed).shuffle(blocks)
    return (" " if spaced else "").join(unit for block in blocks for unit in block)


def write_run(folder: Folder, path: Path, wanted: int, joined: int) -> None:
    """Write a run with the stages `filter` and `tokenize`."""
    rows: list[dict[str, str]] = []
    files: dict[str, dict[str, dict]] = {"filter": {}, "tokenize": {}}
    size = 0
    for number, (language, text) in enumerate(documents(path, wanted, joined)):
        name = f"{int(mix64(np.array([number], np.uint64))[0]):016x}"
        url = f"https://site{number % 997}.example/{number}"
        rows.append({"id": name, "url": url, "text": text, "lang": language})
        size += len(text.encode())
        if size >= SHARD:
            _write(folder, rows, files)
            rows, size = [], 0
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


def questions(
    path: Path, wanted: int, joined: int, count: int, edited: bool
) -> Iterator[tuple[int, str]]:
    """Numbers of documents and passages of 20 words, or 40 with one in ten replaced."""
    rng = random.Random(5)
    every = list(documents(path, wanted, joined))
    while count:
        number = rng.randrange(len(every))
        language, text = every[number]
        spaced = language not in WITHOUT_SPACES
        units = text.split() if spaced else list("".join(text.split()))
        size = (44 if edited else 22) if spaced else (130 if edited else 90)
        if len(units) < size:
            continue
        first = rng.randrange(len(units) - size + 1)
        chosen = units[first : first + size]
        if edited:
            for k in range(rng.randrange(5, 10), size, 10 if spaced else 20):
                chosen[k] = "xyzzy" if spaced else "々"
        passage = (" " if spaced else "").join(chosen)
        try:
            Passage(passage)
        except ConfigError:  # punctuation is no word
            continue
        count -= 1
        yield number, passage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--bytes", type=float, default=1e8)
    parser.add_argument("--join", type=int, default=3, help="texts of a document")
    parser.add_argument("--output", required=True)
    parser.add_argument("--questions", type=int, default=100)
    options = parser.parse_args()
    folder, wanted = Folder(options.output, sync=False), int(options.bytes)
    if not folder.exists("filter"):
        write_run(folder, options.texts, wanted, options.join)
    folder, stages = load_run(options.output)
    start = time.process_time()
    facts = build(folder, stages, print)
    cpu = time.process_time() - start
    text = facts["text_bytes"]
    print(
        f"{facts['documents']:,} documents, {text / 1e6:,.0f} MB of text; index "
        f"{facts['bytes'] / 1e6:,.0f} MB, {facts['bytes'] / text:.1%}; {cpu:,.0f} s CPU"
    )
    index = TraceIndex(folder, stages)
    for edited in (False, True):
        asked = list(questions(options.texts, wanted, options.join, options.questions, edited))
        seconds, hits, compared = [], 0, 0
        for number, passage in asked:
            start = time.process_time()
            answer = index.ask(passage, 20)
            seconds.append(time.process_time() - start)
            url = f"/{number}"
            hits += any(found.row["url"].endswith(url) for found in answer.found)
            compared += answer.read
        print(
            f"{'edited' if edited else 'verbatim'}: {hits} of {len(asked)} found; CPU seconds of a "
            f"question: median {np.median(seconds):.3f}, most {max(seconds):.3f}; "
            f"{compared / len(asked):.1f} documents compared"
        )


if __name__ == "__main__":
    main()
