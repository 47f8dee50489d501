"""The deduplication stages with 1, 2 and 4 workers and on Beam's job service: the same bytes?

    python benchmarks/dedup_bytes.py --input 'documents/*.parquet'

`--input` names documents with a language (the default: the samples, extracted and identified).
Prints the files that differ from those of one worker: none should.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.folders import differences, digests, external_workers  # noqa: E402

STAGES = "dedup-urls,dedup-documents,dedup-lines"


def curate(*arguments: str) -> None:
    command = [sys.executable, "-m", "pipelines.cli", *arguments]
    subprocess.run(command, cwd=ROOT, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--input", nargs="+", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        inputs = options.input
        if not inputs:
            before = ["--stages", "extract,identify-language", "--quiet"]
            curate("run", "sample", "--output", f"{scratch}/in", *before)
            inputs = [f"{scratch}/in/identify-language"]
        arguments = ["run", "llama3", "--input", *inputs, "--stages", STAGES, "--quiet", "--output"]
        with external_workers() as runner:
            for name, more in (
                ("1 worker", ["--workers", "1"]),
                ("2 workers", ["--workers", "2"]),
                ("4 workers", ["--workers", "4"]),
                ("PortableRunner", runner),
            ):
                began = time.perf_counter()
                output = Path(scratch, name.replace(" ", "-"))
                curate(*arguments, str(output), *more)
                found = differences(Path(scratch, "1-worker"), output)
                print(
                    f"{name:<16}{len(digests(output)):5d} files, {len(found)} differ "
                    f"{found[:5] or ''} ({time.perf_counter() - began:.0f} s)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
