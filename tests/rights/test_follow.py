"""Rights that follow a text: planted originals, mirrors, translations, quotations and templates."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.rights.policy import is_copy
from curation.schema import EXTRACTED
from tests.conftest import curate, curate_well

Row = dict[str, Any]
DAYS = [datetime.datetime(2026, 1, day, tzinfo=datetime.UTC) for day in range(1, 29)]
#: What a site says that forbids training, each in another way.
DENIALS = [
    ("directive", "head", "*", "noai"),
    ("tdm", "header", None, "1"),
    ("content_signal", "header", None, "search=yes, ai-train=no"),
    ("content_usage", "header", None, "train-ai=n"),
    ("rsl", "head", None, "https://o.example/l.xml / prohibits=ai-train"),
]
ALLOWED = ("content_signal", "header", None, "ai-train=yes")
POLICY = ["rights.honour=[train]", "rights.follow={near: 0.8}"]


def signals(*given: tuple[str, str, str | None, str]) -> list[dict[str, str | None]]:
    return [dict(zip(("kind", "place", "agent", "value"), one, strict=True)) for one in given]


def page(
    name: str,
    text: list[str],
    host: str,
    day: int | None,
    *said: tuple[str, str, str | None, str],
    licence: str | None = None,
) -> Row:
    return {
        "id": name,
        "url": f"https://{host}/{name}",
        "date": None if day is None else DAYS[day],
        "text": " ".join(text),
        "title": "",
        "source": {"file": "planted", "offset": 0},
        "rights": {"licence": licence, "signals": signals(*said)},
    }


def words(seed: int, count: int) -> list[str]:
    letters = np.random.default_rng(seed).integers(97, 123, (count, 5))
    return ["".join(map(chr, word)) for word in letters.tolist()]


def planted(clusters: int) -> tuple[list[Row], set[str], set[str]]:
    """Return pages, and the ids of those that must go and that must stay."""
    rows, go, stay = list[Row](), set[str](), set[str]()
    template = words(10**6, 150)
    for i in range(clusters):
        text, host, site = words(i, 400), f"o{i}.example", f"m{i}.example"
        said = DENIALS[i % len(DENIALS)]
        if said[0] == "rsl":
            said = (*said[:3], f"https://{host}/l.xml / prohibits=ai-train")
        head = words(clusters + i, 8)
        original = page(f"o{i}", text, host, 5, said)
        canonical = ("canonical", "head", None, f"https://{host}/o{i}")
        told = [(9, ()), (5, (canonical,)), (2, (canonical,)), (None, ())][i % 4]
        mirrors = [
            page(f"m{i}", [*head, *text], site, told[0], *told[1]),
            page(f"n{i}", text, f"n{i}.example", 11 + i % 9),
        ]
        rows += [original, *mirrors]
        go |= {row["id"] for row in (original, *mirrors)}
        others = [
            page(f"t{i}", words(7 * 10**6 + i, 400), f"t{i}.example", 9),  # a translation
            page(f"q{i}", [*words(3 * 10**6 + i, 250), *text[:120]], f"q{i}.example", 9),
            page(f"b{i}", [*template, *words(4 * 10**6 + i, 200)], host, 9),  # one template
            page(f"f{i}", words(5 * 10**6 + i, 400), f"f{i}.example", 1),  # its copy forbids
        ]
        rows += others
        stay |= {row["id"] for row in others}
        rows.append(page(f"g{i}", [*others[-1]["text"].split(), *head], f"g{i}.example", 9, said))
        go.add(f"g{i}")
    return rows, go, stay


def write(folder: Path, rows: list[Row], shards: int = 3) -> Path:
    folder.mkdir(parents=True)
    schema = pa.schema([EXTRACTED.field(name) for name in rows[0]])
    for i in range(shards):
        pq.write_table(pa.Table.from_pylist(rows[i::shards], schema), folder / f"s{i}.parquet")
    return folder


def run(given: Path, out: Path, *changes: str, runner: str = "local") -> Path:
    command = ["run", "llama3", "--input", given, "--output", out, "--workers", "0"]
    sets = ("stages=[dedup-documents, rights]", "dedup-documents.per_language=false", *POLICY)
    for change in (*sets, *changes):
        command += ["--set", change]
    command += ["--stages", "dedup-documents,rights"]
    curate_well([*command, "--", f"--runner={runner}"])
    return out


def ids(out: Path, kind: str) -> dict[str, Row]:
    return {row["id"]: row for row in pq.read_table(out / kind).to_pylist()}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str], set[str]]:
    place = tmp_path_factory.mktemp("follow")
    rows, go, stay = planted(40)
    return run(write(place / "in", rows), place / "out"), go, stay


def test_copies_go_and_nothing_else(done: tuple[Path, set[str], set[str]]) -> None:
    out, go, stay = done
    left = set(ids(out, "rights/documents"))
    assert left == stay and not left & go
    removed = ids(out, "rights/removed")
    copies = {name: row for name, row in removed.items() if row["reason"] == "rights.copy"}
    assert len(copies) == 40
    for name, row in copies.items():
        assert row["kept_id"] == f"o{name[1:]}" and row["threshold"] == 0.8
        assert 0.8 <= row["value"] <= 1.0
    said = {row["id"]: row for row in pq.read_table(out / "rights/signals").to_pylist()}
    assert said["n0"]["reason"] == "rights.copy" and said["n0"]["value"] == "noai"


def test_any_runner_writes_the_same_bytes(
    done: tuple[Path, set[str], set[str]], tmp_path: Path
) -> None:
    out, _, _ = done
    other = run(out.parent / "in", tmp_path / "beam", runner="DirectRunner")
    assert (other / "SHA256SUMS").read_text() == (out / "SHA256SUMS").read_text()


if __name__ == "__main__":  # python -m tests.rights.test_follow FOLDER CLUSTERS
    place, count = Path(sys.argv[1]), int(sys.argv[2])
    planted_rows, to_go, to_stay = planted(count)
    kept = set(ids(run(write(place / "in", planted_rows), place / "out"), "rights/documents"))
    print(f"gone {len(to_go - kept):,} of {len(to_go):,}, lost {len(to_stay - kept):,} others")
