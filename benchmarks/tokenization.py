"""Measure vocabularies and the token path: tokens by language, splits, encoding and reader speed.

  python benchmarks/tokenize.py --texts FILE.jsonl.gz [...] [--cl100k cl100k_base.tiktoken]
      [--llama3 tokenizer.model] [--o200k o200k_base.tiktoken] [--tokenizer curation-128k]
      [--sources flores leipzig] [--fuzz 10000000] [--out result.json]

Texts are JSON lines (gzip, xz) with `text` and `lang`, `language` or `label`; `--sources` keeps those
whose `source` begins like that: measure on sources that the vocabulary was not trained on. Prints
JSON: tokens by group of each vocabulary relative to the others, with means over languages weighted by
their share of the web; how many of the numbers, clusters, syllables, emoji and indentations each
vocabulary cuts; encoding in MB/s of processor time on one core, best of `--rounds`, for this project,
tiktoken and Hugging Face tokenizers on the same texts; reading shuffled batches from the page cache in
GB/s. `--only speed` prints encoding speed by language, `--fuzz N` compares the ids of N random pieces
with tiktoken's; both leave out all else.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import lzma
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import regex
import tiktoken
from tiktoken_ext import openai_public

from curation.tokenize import TokenShards, load_tokenizer
from curation.tokenize.megatron import IndexedWriter
from curation.tokenize.tokenizer import Tokenizer
from curation.tokenize.vocabulary import read_ranks
from models.training.tokenizer.piece_counts import WordCounts
from models.training.tokenizer.shares import read_shares
from tests.tokenize.pieces import to_tiktoken

Groups = dict[str, list[str]]


# What a vocabulary should not cut, by where it occurs.
UNITS = {
    "numbers of up to 3 digits": r"(?<!\p{N})\p{N}{2,3}(?!\p{N})",
    "numbers of 4 digits": r"(?<!\p{N})\p{N}{4}(?!\p{N})",
    "Thai clusters": r"\p{Thai}\p{M}+",
    "Khmer clusters": r"\p{Khmer}[\p{M}\p{Khmer}]*?\p{M}+",
    "Indic letters with vowel signs": r"[\p{Deva}\p{Beng}\p{Taml}\p{Telu}\p{Gujr}\p{Mlym}]\p{M}+",
    "Hangul syllables": r"[\uAC00-\uD7A3]",
    "Chinese characters": r"\p{Han}",
    "Cyrillic words": r"\p{Cyrl}+",
    "emoji sequences": r"\p{Extended_Pictographic}[\uFE0F\p{EMod}]*(\u200D\p{Extended_Pictographic}\uFE0F?)*",
    "line ends with indentation": r"\n[ \t]+(?=\S)",
}
EMOJI = "\U0001f600 \u2764\ufe0f \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f44d\U0001f3fd \U0001f680\u2705 "
# Code as it is indented: by two, four, eight spaces and by tabs, with both line ends.
CODE = "".join(
    f"if a:{end}{indent}for b in c:{end}{2 * indent}d(b){end}{3 * indent}e = 1{end}{end}"
    for indent in ("  ", "    ", " " * 8, "\t")
    for end in ("\n", "\r\n")
)


def read_groups(files: list[Path], sources: tuple[str, ...] = ()) -> Groups:
    """Texts by language or label, in order of the names."""
    groups: Groups = {}
    for file in files:
        opened = lzma.open if file.suffix == ".xz" else gzip.open
        with opened(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if sources and not row["source"].startswith(sources):
                    continue
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


def vocabularies(options: argparse.Namespace) -> dict[str, Tokenizer | tiktoken.Encoding]:
    """The vocabularies to compare, by name, this project's first."""
    found: dict[str, Tokenizer | tiktoken.Encoding] = {
        options.tokenizer: load_tokenizer(options.tokenizer)
    }
    if options.cl100k:
        found["cl100k_base"] = load_tokenizer(options.cl100k)
    if options.llama3:  # its file has tiktoken's format, its pattern is cl100k's
        found["llama3"] = load_tokenizer(options.llama3)
    if options.o200k:
        found["o200k_base"] = o200k(options.o200k)
    return found


def count(vocabulary: Tokenizer | tiktoken.Encoding, texts: list[str]) -> int:
    """Tokens of texts."""
    if isinstance(vocabulary, Tokenizer):
        return len(vocabulary.encode_batch(texts)[0])
    return sum(len(vocabulary.encode_ordinary(text)) for text in texts)


def compression(
    groups: Groups, found: dict[str, Tokenizer | tiktoken.Encoding], percent: dict[str, float]
) -> dict[str, Any]:
    """Characters per token by group, and tokens relative to the other vocabularies."""
    tokens = {n: {g: count(v, texts) for g, texts in groups.items()} for n, v in found.items()}
    ours, *others = tokens
    result: dict[str, Any] = {
        "characters_per_token": {
            g: {name: round(sum(map(len, texts)) / tokens[name][g], 3) for name in tokens}
            for g, texts in groups.items()
        }
    }
    for other in others:
        ratios = {g: tokens[ours][g] / tokens[other][g] for g in groups}
        result[f"tokens_against_{other}"] = {
            **summary(ratios, percent),
            "by_group": {g: round(ratio, 3) for g, ratio in ratios.items()},
        }
    return result


def summary(ratios: dict[str, float], percent: dict[str, float]) -> dict[str, Any]:
    """Means of ratios by language, and the languages of the web above 1.05."""
    shared = [g for g in ratios if g in percent]
    foreign = [g for g in shared if g != "en"]

    def weighted(of: list[str]) -> float | None:
        if not of:
            return None
        return round(
            float(np.average([ratios[g] for g in of], weights=[percent[g] for g in of])), 4
        )

    return {
        "weighted_by_share_of_the_web": weighted(shared),
        "weighted_without_english": weighted(foreign),
        "mean": round(float(np.mean(list(ratios.values()))), 4),
        "above_1.05_with_a_share_of_0.1_%": {
            g: round(ratios[g], 3) for g in shared if percent[g] >= 0.1 and ratios[g] > 1.05
        },
    }


def bounds(vocabulary: Tokenizer | tiktoken.Encoding, text: str) -> npt.NDArray[np.int64]:
    """Bytes at which tokens of a text end."""
    if isinstance(vocabulary, Tokenizer):
        sizes = [len(vocabulary.tokens[i]) for i in vocabulary.encode(text)]
    else:
        sizes = [len(t) for t in vocabulary.decode_tokens_bytes(vocabulary.encode_ordinary(text))]
    return np.cumsum(sizes, dtype=np.int64)


def cuts(
    groups: Groups, found: dict[str, Tokenizer | tiktoken.Encoding], texts_each: int = 60
) -> dict[str, Any]:
    """Of each kind of unit: how many there are, and the share that each vocabulary cuts."""
    texts = [EMOJI, CODE, *itertools.chain.from_iterable(t[:texts_each] for t in groups.values())]
    units = dict.fromkeys(UNITS, 0)
    cut = {name: dict.fromkeys(UNITS, 0) for name in found}
    for text in texts:
        # Bytes before each character.
        before = np.cumsum([0, *(len(c.encode()) for c in text)])
        ends = {name: bounds(vocabulary, text) for name, vocabulary in found.items()}
        for kind, expression in UNITS.items():
            spans = [before[list(m.span())] for m in regex.finditer(expression, text)]
            units[kind] += len(spans)
            for name, at in ends.items():
                for start, end in spans:
                    first = np.searchsorted(at, start, side="right")
                    cut[name][kind] += int(first < len(at) and at[first] < end)
    return {
        kind: {"units": n} | {name: round(cut[name][kind] / n, 3) for name in found}
        for kind, n in units.items()
        if n
    }


# Ranges of code points for random text, each drawn from as often.
_RANGES = [
    (0x20, 0x7F), (0x61, 0x7B), (0x30, 0x3A), (0x09, 0x0E), (0x20, 0x21), (0x80, 0x250), (0x300, 0x370),
    (0x370, 0x530), (0x530, 0x600), (0x600, 0x700), (0x900, 0xE00), (0xE00, 0x1000), (0x1000, 0x1200),
    (0x1780, 0x1800), (0x2000, 0x2070), (0x3000, 0x3100), (0x4E00, 0x5200), (0xAC00, 0xAF00),
    (0xFE00, 0xFE10), (0x1F300, 0x1F700), (0x20, 0x10FFFF),
]  # fmt: skip


def random_texts(random: np.random.Generator, texts: int) -> Iterator[str]:
    """Texts of up to 2,000 characters, each from a few ranges."""
    for _ in range(texts):
        chosen = [_RANGES[k] for k in random.integers(len(_RANGES), size=random.integers(1, 5))]
        size = int(random.integers(1, 2000))
        of = random.integers(len(chosen), size=size)
        low, high = np.array(chosen).T
        points = random.integers(low[of], high[of])
        points[(points >= 0xD800) & (points < 0xE000)] = 0x20
        yield points.astype("<u4").tobytes().decode("utf-32-le")


def fuzz(tokenizer: Tokenizer, pieces: int, groups: Groups, seed: int = 0) -> dict[str, int]:
    """Compare ids with tiktoken's on that many pieces of random text, and of texts put together
    from random slices of the given ones. Raises ValueError at the first difference."""
    random = np.random.default_rng(seed)
    encoding = to_tiktoken(tokenizer)
    known = list(itertools.chain.from_iterable(groups.values()))
    done = 0
    while done < pieces:
        texts = list(random_texts(random, 300))
        for _ in range(300 if known else 0):
            text = known[random.integers(len(known))]
            start = int(random.integers(len(text) + 1))
            other = known[random.integers(len(known))]
            texts.append(text[start : start + 1000] + other[: int(random.integers(1000))])
        ids, offsets = tokenizer.encode_batch(texts)
        for k, text in enumerate(texts):
            if ids[offsets[k] : offsets[k + 1]].tolist() != encoding.encode_ordinary(text):
                raise ValueError(f"ids differ from tiktoken's after {done} pieces: {text!r}")
        words = WordCounts()
        words.count(texts, tokenizer.pattern, 1 << 20)
        done += int(words.counts.sum())
    return {"pieces_equal_to_tiktoken": done}


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
    encoding = to_tiktoken(tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_hf(folder)
        hugging = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
    work: dict[str, Callable[[], Any]] = {
        "curation": lambda: tokenizer.encode_batch(column),
        "tiktoken": lambda: [encoding.encode_ordinary(text) for text in texts],
        "tokenizers": lambda: hugging.encode_batch_fast(texts),
    }
    return {k: round(megabytes / processor_seconds(w, rounds), 1) for k, w in work.items()}


def as_the_web(groups: Groups, percent: dict[str, float], texts: int) -> list[str]:
    """Texts of all languages, drawn by their share of the web."""
    drawn = [
        (percent[g] / len(groups[g]), text) for g in groups if g in percent for text in groups[g]
    ]
    chances = np.array([chance for chance, _ in drawn])
    chosen = np.random.default_rng(0).choice(
        len(drawn), min(texts, len(drawn)), replace=False, p=chances / chances.sum()
    )
    return [drawn[k][1] for k in chosen.tolist()]


def speed_by_group(
    groups: Groups, name: str, percent: dict[str, float], rounds: int
) -> dict[str, dict[str, float]]:
    """MB/s on one core by group, of all groups mixed evenly, and mixed as on the web.

    `again`: texts that the tokenizer has just encoded, as in the middle of a large corpus. `new`: a
    third of them after the other two thirds, by a tokenizer that had seen nothing before.
    """
    tokenizer = load_tokenizer(name)
    every = [text for group in groups.values() for text in group]
    found = {}
    mixed = {"mixed evenly": every, "mixed as the web": as_the_web(groups, percent, 8_000)}
    for group, texts in (groups | mixed).items():
        order = np.random.default_rng(0).permutation(len(texts)).tolist()[:20_000]
        columns = [pa.array([texts[k] for k in part]) for part in (order, order[::3])]
        before = pa.array([texts[k] for i, k in enumerate(order) if i % 3])
        megabytes = [sum(len(text.as_py().encode()) for text in c) / 1e6 for c in columns]
        again = processor_seconds(lambda c=columns[0]: tokenizer.encode_batch(c), rounds)  # type: ignore[misc]
        best = float("inf")
        for _ in range(rounds):
            tokenizer._idle.clear()
            tokenizer.encode_batch(before)
            start = time.process_time()
            tokenizer.encode_batch(columns[1])
            best = min(best, time.process_time() - start)
        found[group] = {
            "again": round(megabytes[0] / again, 1),
            "new": round(megabytes[1] / best, 1),
        }
    return found


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
    parser.add_argument("--llama3", type=Path, help="Llama 3's tokenizer.model")
    parser.add_argument("--o200k", type=Path, help="rank file of o200k_base")
    parser.add_argument("--shares", default="builtin:configs/train/web-shares.yaml")
    parser.add_argument("--sources", nargs="*", default=[], help="beginnings of sources to keep")
    parser.add_argument("--fuzz", type=int, help="only compare ids of so many pieces")
    parser.add_argument(
        "--only", choices=["tokens", "speed"], help="leave speeds out; speed by group alone"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="size of the reader's shards")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    groups = read_groups(options.texts, tuple(options.sources))
    result: dict[str, Any]
    if options.fuzz:
        result = dict(fuzz(load_tokenizer(options.tokenizer), options.fuzz, groups))
    elif options.only == "speed":
        shares = read_shares(options.shares).percent
        speed = speed_by_group(groups, options.tokenizer, shares, options.rounds)
        result = {"encode_mb_per_second": speed}
    else:
        found = vocabularies(options)
        result = compression(groups, found, read_shares(options.shares).percent)
        result["share_of_units_cut"] = cuts(groups, found)
    if not options.fuzz and not options.only:
        result["encode_mb_per_second"] = encoding_speed(groups, options.tokenizer, options.rounds)
        result["reader_gb_per_second"] = reader_speed(options.gigabytes, options.rounds)
    text = json.dumps(result, indent=1, ensure_ascii=False)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
