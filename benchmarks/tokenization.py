"""Measure vocabularies and the token path: compression, encoding speed, reader speed.

  python benchmarks/tokenize.py --texts FILE.jsonl.gz [...] [--cl100k cl100k_base.tiktoken]
      [--o200k o200k_base.tiktoken] [--tokenizer curation-128k] [--out result.json]

Texts are JSON lines with `text` and `lang`, `language` or `label`. Prints JSON: characters per
token by group for each vocabulary, and tokens saved against cl100k; encoding in MB/s of processor
time on one core, best of `--rounds`, for this project, tiktoken and Hugging Face tokenizers on the
same texts; reading shuffled batches from the page cache in GB/s.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import tiktoken
from tiktoken_ext import openai_public

from curation.tokenize import IndexedWriter, Tokenizer, TokenShards, load_tokenizer
from curation.tokenize.vocabulary import read_ranks

Groups = dict[str, list[str]]


def read_groups(files: list[Path]) -> Groups:
    """Texts by language or label, in order of the names."""
    groups: Groups = {}
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                name = row.get("label") or row.get("language") or row["lang"]
                groups.setdefault(name, []).append(row["text"])
    return dict(sorted(groups.items()))


def o200k(path: Path) -> tiktoken.Encoding:
    """o200k_base with the ranks of a file, under the pattern that tiktoken gives it."""
    ranks = {token: rank for rank, token in enumerate(read_ranks(path))}
    reader = openai_public.load_tiktoken_bpe
    openai_public.load_tiktoken_bpe = lambda *_, **__: ranks
    try:
        return tiktoken.Encoding(**openai_public.o200k_base())
    finally:
        openai_public.load_tiktoken_bpe = reader


def counters(options: argparse.Namespace) -> dict[str, Callable[[list[str]], int]]:
    """Functions that count the tokens of texts, by vocabulary."""

    def ours(tokenizer: Tokenizer) -> Callable[[list[str]], int]:
        return lambda texts: len(tokenizer.encode_batch(texts)[0])

    found = {options.tokenizer: ours(load_tokenizer(options.tokenizer))}
    if options.cl100k:
        found["cl100k_base"] = ours(load_tokenizer(options.cl100k))
    if options.o200k:
        encoding = o200k(options.o200k)
        found["o200k_base"] = lambda texts: sum(len(encoding.encode_ordinary(t)) for t in texts)
    return found


def compression(groups: Groups, count: dict[str, Callable[[list[str]], int]]) -> dict[str, Any]:
    """Characters per token by group and vocabulary, and mean savings against cl100k_base."""
    tokens = {name: {g: c(texts) for g, texts in groups.items()} for name, c in count.items()}
    table = {
        g: {name: round(sum(map(len, texts)) / tokens[name][g], 3) for name in tokens}
        for g, texts in groups.items()
    }
    result: dict[str, Any] = {"characters_per_token": table}
    if base := tokens.get("cl100k_base"):
        result["mean_tokens_saved"] = {
            name: round(float(np.mean([1 - t[g] / base[g] for g in groups])), 4)
            for name, t in tokens.items()
        }
    return result


def processor_seconds(work: Callable[[], Any], rounds: int) -> float:
    """Least processor time of several runs, after one to warm up."""
    work()
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def encoding_speed(groups: Groups, name: str, rounds: int) -> dict[str, float]:
    """MB/s on one core, by library, over all texts of all groups."""
    import tokenizers

    tokenizer = load_tokenizer(name)
    texts = [text for group in groups.values() for text in group]
    column = pa.array(texts, pa.large_string())
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    encoding = tokenizer.to_tiktoken()
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_hf(folder)
        hugging = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
    work: dict[str, Callable[[], Any]] = {
        "curation": lambda: tokenizer.encode_batch(column),
        "tiktoken": lambda: [encoding.encode_ordinary(text) for text in texts],
        "tokenizers": lambda: hugging.encode_batch_fast(texts),
    }
    return {k: round(megabytes / processor_seconds(w, rounds), 1) for k, w in work.items()}


def reader_speed(gigabytes: float, rounds: int) -> float:
    """GB/s of shuffled batches of 8 sequences of 8,192 int32 tokens, shards in the page cache."""
    rows = int(gigabytes * 1e9 / 4 / 8192 / 4)
    with tempfile.TemporaryDirectory() as folder:
        for shard in range(4):
            with (
                open(f"{folder}/{shard}.bin", "wb") as bin_file,
                open(f"{folder}/{shard}.idx", "wb") as idx_file,
            ):
                writer = IndexedWriter(bin_file, np.dtype(np.int32))
                for first in range(0, rows, 256):
                    count = min(256, rows - first)
                    block = np.arange(first, first + count, dtype=np.int32)
                    writer.write(np.repeat(block[:, None], 8192, axis=1))
                writer.finish(idx_file)
        reader = TokenShards(folder, batch_size=8)
        steps = reader.samples // 8

        def epoch() -> None:
            batches = iter(reader)
            for _ in range(steps):
                next(batches)

        seconds = processor_seconds(epoch, rounds)
    return round(steps * 8 * 8192 * 4 / 1e9 / seconds, 2)


def main() -> None:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=Path, nargs="+", required=True)
    parser.add_argument("--tokenizer", default="curation-128k")
    parser.add_argument("--cl100k", type=Path, help="rank file of cl100k_base")
    parser.add_argument("--o200k", type=Path, help="rank file of o200k_base")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="size of the reader's shards")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    groups = read_groups(options.texts)
    result = compression(groups, counters(options))
    result["encode_mb_per_second"] = encoding_speed(groups, options.tokenizer, options.rounds)
    result["reader_gb_per_second"] = reader_speed(options.gigabytes, options.rounds)
    text = json.dumps(result, indent=1, ensure_ascii=False)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
