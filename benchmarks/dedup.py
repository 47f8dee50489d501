"""Speed and recall of the deduplication functions. One process, one core; CPU seconds.

    python benchmarks/dedup.py                                   # generated text
    python benchmarks/dedup.py --data docs.jsonl.xz --pairs pairs.tsv
    python benchmarks/dedup.py --documents 1000000 10000000      # graph and clusters at scale only

`--data` takes JSON lines (plain or .xz) with `id` and `text`; `--pairs` a table with a header and
the columns id1, id2 and the exact Jaccard similarity of their word 5-grams.
"""

from __future__ import annotations

import argparse
import json
import lzma
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from curation.dedup.candidates import bucket_order, bucket_pairs, jaccard, shingle_sets
from curation.dedup.components import (
    cluster_sizes,
    confirmed_clusters,
    connected_components,
    contract,
    star_edges,
)
from curation.dedup.dedup_settings import (
    DocumentDedupSettings,
    LineDedupSettings,
    MinHashSettings,
    UrlDedupSettings,
    defaults,
)
from curation.dedup.facts import choose_survivors
from curation.dedup.keys import string_keys
from curation.dedup.lines import count_lines, frequent_lines, line_hashes, remove_lines, total_lines
from curation.dedup.minhash import band_hashes, has_signature, signatures
from curation.dedup.normalize import exact_keys
from curation.dedup.urls import canonical_urls
from curation.recipe import load

MINHASH = defaults(DocumentDedupSettings).minhash
BINS = np.array([0.2, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0001])


@contextmanager
def cpu_time(report: Callable[[float], str]) -> Iterator[None]:
    start = time.process_time()
    yield
    print(report(time.process_time() - start), flush=True)


def per_second(what: str, items: int) -> Callable[[float], str]:
    return lambda seconds: f"  {what:<44}{items / seconds / 1e6:8.2f} M/CPU s"


def read_documents(path: Path) -> tuple[list[str], list[str]]:
    content = path.read_bytes()
    if path.suffix == ".xz":
        content = lzma.decompress(content)
    rows = [json.loads(line) for line in content.splitlines()]
    return [row["id"] for row in rows], [row["text"] for row in rows]


def generated_documents(documents: int) -> tuple[list[str], list[str]]:
    """Texts of words drawn by Zipf's law, with the word lengths of English."""
    rng = np.random.default_rng(1)
    letters = np.frombuffer(b"etaoinshrdlucmfwypvbgk", np.uint8)
    lengths = rng.integers(1, 9, 20_000)
    words = ["".join(map(chr, rng.choice(letters, n))) for n in lengths]
    texts = []
    for _ in range(documents):
        drawn = np.minimum(rng.zipf(1.3, rng.integers(50, 2000)), len(words)) - 1
        ends = np.where(rng.random(len(drawn)) < 0.08, ".\n", " ")
        texts.append("".join(words[w] + end for w, end in zip(drawn, ends, strict=True)))
    return [str(i) for i in range(documents)], texts


def speed(texts: list[str]) -> None:
    array = pa.array(texts, pa.large_string())
    characters = sum(map(len, texts))
    doc64 = np.arange(len(texts), dtype=np.uint64)
    lines_rules = defaults(LineDedupSettings)
    print(f"{len(texts)} documents, {characters / 1e6:.1f} M characters")

    signatures(array.slice(0, 1), MINHASH)
    with cpu_time(per_second(f"characters: signatures, {MINHASH.num_perm} values", characters)):
        signatures(array, MINHASH)
    rules = defaults(DocumentDedupSettings).exact.normalization
    exact_keys(array.slice(0, 1), rules)
    with cpu_time(per_second("characters: exact keys", characters)):
        exact_keys(array, rules)
    lines = line_hashes(array, lines_rules)
    with cpu_time(per_second("characters: line hashes", characters)):
        lines = line_hashes(array, lines_rules)
    frequent = frequent_lines(total_lines(count_lines(lines, doc64)), lines_rules)
    remove_lines(array.slice(0, 1), frequent, lines_rules)
    with cpu_time(per_second("characters: removal of frequent lines", characters)):
        remove_lines(array, frequent, lines_rules)


def url_speed(urls: int) -> None:
    settings = defaults(UrlDedupSettings).canonical
    rng = np.random.default_rng(2)
    hosts, pages = rng.integers(0, 50_000, urls), rng.integers(0, 10**9, urls)
    queries = np.where(rng.random(urls) < 0.2, "?id={p}&utm_source=feed&lang=en", "")
    texts = [
        f"https://www.site{h}.org/news/2024/story-{p}.html" + query.format(p=p)
        for h, p, query in zip(hosts, pages, queries.tolist(), strict=True)
    ]
    queried = [text for text in texts if "?" in text]
    for what, some in [("one in five with a query", texts), ("all with a query", queried)]:
        array = pa.array(some, pa.large_string())
        label = f"URLs, {what}"
        canonical_urls(array.slice(0, 1), settings)
        with cpu_time(per_second(label, len(array))):
            canonical_urls(array, settings)
    with cpu_time(per_second("keys of URLs", len(array))):
        string_keys(array)


def graph_speed(edges: int) -> None:
    """Buckets of about 2.5 documents, out of 1,000 shards."""
    rng = np.random.default_rng(3)
    rows = rng.integers(0, max(edges // 2, 1), 2 * edges).astype(np.uint64)
    doc64 = (rows % np.uint64(1000)) << np.uint64(32) | rows // np.uint64(1000)
    buckets = rng.integers(0, 4 * edges // 5 + 1, 2 * edges).astype(np.uint64)
    buckets *= np.uint64(0x9E3779B97F4A7C15)
    star_edges(buckets[:9], doc64[:9])
    contract(buckets[:9], doc64[:9])
    with cpu_time(lambda s: f"  contraction of {2 * edges / 1e6:.0f} M records: {s:.2f} CPU s"):
        contract(buckets, doc64)
    with cpu_time(lambda s: f"  star edges of {2 * edges / 1e6:.0f} M records: {s:.2f} CPU s"):
        star_edges(buckets, doc64)
    pairs = doc64.reshape(-1, 2)
    connected_components(pairs[:9])
    with cpu_time(lambda s: f"  components of {edges / 1e6:.0f} M edges: {s:.2f} CPU s"):
        nodes, labels = connected_components(pairs)
    with cpu_time(lambda s: f"  survivors among {len(nodes) / 1e6:.1f} M nodes: {s:.2f} CPU s"):
        choose_survivors(labels, nodes, {"length": rows[: len(nodes)]}, ["longest"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  peak memory of this process: {peak:.2f} GiB")


def recall(ids: list[str], texts: list[str], pairs: Path, seeds: int) -> None:
    """Share of pairs that meet in a bucket, against the probability at their exact similarity."""
    first, second, exact = known_pairs(ids, pairs)
    fineweb = load("fineweb").dedup_documents.minhash
    expected = 1 - (1 - exact**fineweb.rows) ** fineweb.bands
    bins = np.digitize(exact, BINS) - 1
    print(f"candidate recall, {fineweb.bands} x {fineweb.rows}, mean of {seeds} seeds")
    for normalization in ("words", "fineweb"):
        met = np.zeros(len(exact))
        for seed in range(1, seeds + 1):
            update: dict[str, Any] = {"normalization": normalization, "seed": seed}
            settings = MinHashSettings.model_validate({**dict(fineweb), **update})
            signed = signatures(texts, settings)
            hashes = band_hashes(signed, settings.bands, settings.rows)
            met += (hashes[first] == hashes[second]).any(axis=1)
        met /= seeds
        print(f"  normalization {normalization}\n    Jaccard      pairs   found  theory")
        for b in np.unique(bins):
            inside = bins == b
            print(
                f"    {BINS[b]:.2f}-{min(BINS[b + 1], 1):.2f}  {inside.sum():7d}"
                f"  {met[inside].mean():6.3f}  {expected[inside].mean():6.3f}"
            )


def known_pairs(ids: list[str], pairs: Path) -> tuple[Any, Any, Any]:
    """Positions of both documents of each known pair, and their exact similarity."""
    place = {name: i for i, name in enumerate(ids)}
    rows = [line.split("\t")[:3] for line in pairs.read_text("utf-8").splitlines()[1:]]
    rows = [row for row in rows if row[0] in place and row[1] in place]
    first = np.array([place[a] for a, _, _ in rows])
    second = np.array([place[b] for _, b, _ in rows])
    return first, second, np.array([float(j) for *_, j in rows])


def verification(ids: list[str], texts: list[str], pairs: Path) -> None:
    """What the llama3 recipe's candidates and clusters are worth, by exact similarity."""
    settings = load("llama3").dedup_documents
    minhash, verify = settings.minhash, settings.verify
    signed = signatures(texts, minhash)
    keys = exact_keys(texts, settings.exact.normalization).keys
    some = has_signature(signed)
    numbers = np.repeat(np.flatnonzero(some).astype(np.uint64), minhash.bands)
    buckets = band_hashes(signed, minhash.bands, minhash.rows)[some].reshape(-1)
    order = bucket_order(signed, minhash.bands, minhash.rows, keys[:, 1])[some].reshape(-1)
    found = bucket_pairs(buckets, order, numbers, verify.window).astype(np.int64)
    began = time.process_time()
    sets = shingle_sets(texts, minhash, verify.normalization)
    similarity = jaccard(sets, found[:, 0], found[:, 1])
    seconds = time.process_time() - began
    confirmed = found[similarity >= verify.threshold]
    labels = confirmed_clusters(np.zeros(len(texts), np.uint64), keys, confirmed)
    first, second, exact = known_pairs(ids, pairs)
    known = {(a, b): j for a, b, j in zip(first, second, exact, strict=True)}
    known |= {(b, a): j for (a, b), j in known.items()}
    true = np.array([known.get((a, b), 0.0) for a, b in confirmed.tolist()])
    print(
        f"verification, llama3: {minhash.bands} x {minhash.rows}, {verify.method} >= {verify.threshold}"
    )
    print(
        f"  {len(found)} candidate pairs of distinct texts, {len(confirmed)} confirmed ({seconds:.2f} CPU s)"
    )
    print(f"  of these {(true >= 0.7).mean():.4f} are truly >= 0.7; the least is {true.min():.3f}")
    for least in (0.7, 0.75, 0.8, 0.9):
        some = exact >= least
        together = labels[first[some]] == labels[second[some]]
        print(f"  pairs >= {least:.2f}: {some.sum():5d}, in one cluster {together.mean():.4f}")
    best = np.zeros(len(texts))
    np.maximum.at(best, first, exact)
    np.maximum.at(best, second, exact)
    clustered = cluster_sizes(labels) > 1
    for least in (0.5, 0.7):
        print(f"  clustered without a partner >= {least}: {(clustered & (best < least)).sum()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="JSON lines with id and text")
    parser.add_argument("--pairs", type=Path, help="exact similarities of pairs of --data")
    parser.add_argument("--seeds", type=int, default=5, help="hash seeds to average recall over")
    parser.add_argument("--urls", type=int, default=300_000, help="URLs to generate")
    parser.add_argument("--documents", type=int, nargs="+", help="run benchmarks/dedup_scale.py")
    parser.add_argument("--workers", type=int, default=2, help="for --documents")
    parser.add_argument("--edges", type=int, default=10_000_000, help="edges to generate")
    options = parser.parse_args()
    if options.pairs and not options.data:
        parser.error("--pairs needs --data")
    if options.documents:
        script = Path(__file__).parent / "dedup_scale.py"
        sizes = ["--documents", *map(str, options.documents), "--workers", str(options.workers)]
        raise SystemExit(subprocess.call([sys.executable, str(script), *sizes]))
    ids, texts = read_documents(options.data) if options.data else generated_documents(5_000)
    speed(texts)
    url_speed(options.urls)
    graph_speed(options.edges)
    if options.pairs:
        recall(ids, texts, options.pairs, options.seeds)
        verification(ids, texts, options.pairs)


if __name__ == "__main__":
    main()
