"""Millions of generated signatures through buckets, graph and clusters; run by benchmarks/dedup.py.

    python benchmarks/dedup_scale.py --documents 1000000 10000000

Three in ten documents have a near copy: cluster sizes fall as a power law, each copy shares 75 to
100 % of the values of the cluster's first. Prints wall and CPU seconds by step, the bytes exchanged
and the peak memory of all processes, sampled: all resident pages (those of mapped files too), and
without mapped files.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

from curation.dedup.dedup_settings import DocumentDedupSettings
from curation.dedup.facts import binary_rows
from curation.dedup.keys import string_keys
from curation.hashing import mix64
from curation.recipe import load
from pipelines import dedup_documents as stage
from pipelines.dedup.indexes import Place
from pipelines.engine.stage import Shard, StageRun
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.tasks import records_of
from pipelines.storage.exchange import write_columns
from pipelines.storage.files import Folder

SHARD = 100_000


def cluster_of(documents: int) -> tuple[np.ndarray, int]:
    """A cluster for each document, and from which on they have one document alone.

    Sizes of the others follow a power law; their documents lie all over the data.
    """
    rng = np.random.default_rng(11)
    copies = documents * 3 // 10
    sizes = np.minimum(rng.zipf(2.0, copies), 100_000)
    clusters = np.repeat(np.arange(len(sizes)), sizes)[:copies]
    labels = np.concatenate([clusters, len(sizes) + np.arange(documents - len(clusters))])
    return rng.permutation(labels).astype(np.uint64), len(sizes)


def signatures(clusters: np.ndarray, first: int, num_perm: int, alone: int) -> np.ndarray:
    """Signatures of documents by cluster, whose base is the same in every shard.

    Clusters from `alone` on have one document, and so any signature does.
    """
    rng = np.random.default_rng(first)
    values = rng.integers(0, 2**32, (len(clusters), num_perm), dtype=np.uint32)
    rows = np.flatnonzero(clusters < alone)
    columns = np.arange(num_perm, dtype=np.uint64)
    base = mix64(clusters[rows, None] * np.uint64(num_perm) + columns).astype(np.uint32)
    shared = rng.random(base.shape, np.float32) < rng.uniform(0.75, 1, (len(rows), 1))
    values[rows] = np.where(shared, base, values[rows])
    return values


def write_facts(
    folder: Folder, name: str, clusters: np.ndarray, first: int, num_perm: int, alone: int
) -> int:
    rng = np.random.default_rng(first + 1)
    count = len(clusters)
    ids = pa.array([f"{i:032x}" for i in range(first, first + count)])
    keys = string_keys(ids)
    facts: dict[str, Any] = {
        "id": ids,
        "date": rng.integers(0, 2**50, count),
        "length": rng.integers(100, 10_000, count),
        "id_hash": keys[:, 0],
        "exact": keys[:, 0],
        "exact_low": keys[:, 1],
        "scope": np.zeros(count, np.uint64),
        "quality": np.full(count, np.nan),
        "source_rank": np.zeros(count, np.int64),
        "signature": binary_rows(signatures(clusters, first, num_perm, alone)),
    }
    return write_columns(folder, name, facts).bytes


class Memory:
    """Peak memory of this process and its children, sampled twice a second."""

    def __init__(self) -> None:
        self.resident = self.private = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._stop.wait(0.5):
            resident = private = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    info = process.memory_info()
                except psutil.NoSuchProcess:
                    continue
                resident += info.rss
                private += info.rss - info.shared
            self.resident, self.private = max(self.resident, resident), max(self.private, private)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()


def measure(documents: int, workers: int, scratch: Path, method: str) -> None:
    settings: DocumentDedupSettings = load("llama3").dedup_documents
    verify = settings.verify.model_copy(update={"method": method})
    settings = settings.model_copy(update={"verify": verify})
    folder = Folder(str(scratch / "dedup-documents"))
    clusters, alone = cluster_of(documents)
    places, total = [], 0
    for i, first in enumerate(range(0, documents, SHARD)):
        part = clusters[first : first + SHARD]
        name = f"facts/{i:05d}.arrow"
        size = write_facts(folder, name, part, first, settings.minhash.num_perm, alone)
        total += size
        shard = Shard(f"{i:05d}", folder, name, str(first), len(part), size)
        places.append(Place(shard.name, i, shard, 0, name))
    print(
        f"{documents:,} documents in {len(places)} shards, {total / 1e9:.2f} GB of facts, {method}"
    )
    del clusters
    with Memory() as memory, Executor(parse_beam_args([], workers)) as executor:
        run = StageRun("dedup-documents", folder, settings, "benchmark", executor, {})
        began = time.perf_counter()
        run.inputs = [p.shard for p in places]  # all of them may lose documents
        passes, labels = stage.compared(run, places)
        names = [p.step.name for p in passes]
        passes = passes[: names.index("clusters") + 1]
        run.chain(passes)
        clustered = records_of(folder, passes[-1].step, passes[-1].tasks)
        wall = time.perf_counter() - began
    seconds = run._seconds()["steps"]
    cpu = {n: s["cpu"] for n, s in seconds.items()}
    sizes: dict[str, int] = {}
    for name in (folder / ".work" / "data").find():
        kind = name.split("/")[0]
        sizes[kind] = sizes.get(kind, 0) + ((folder / ".work" / "data").size(name) or 0)
    for step, value in cpu.items():
        print(f"  {step:<12} {value:8.1f} CPU s")
    exchanged = ", ".join(f"{k} {v / documents:.0f}" for k, v in sorted(sizes.items()))
    print(
        f"  bytes exchanged per document: {exchanged}; in all {sum(sizes.values()) / documents:.0f}"
    )
    notes = stage._facts_of(run, clustered, labels)
    print(f"  {notes}")
    print(
        f"  {wall:.0f} s with {workers} workers, {sum(cpu.values()):.0f} CPU s "
        f"({sum(cpu.values()) / documents * 1e6:.1f} us per document); peak memory "
        f"{memory.private / 2**30:.2f} GiB, with mapped files {memory.resident / 2**30:.2f} GiB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--method", choices=["signature", "none"], default="signature")
    parser.add_argument("--scratch", help="folder for the exchange (default: a temporary one)")
    options = parser.parse_args()
    for documents in options.documents:
        scratch = Path(tempfile.mkdtemp(dir=options.scratch))
        try:
            measure(documents, options.workers, scratch, options.method)
        finally:
            shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
