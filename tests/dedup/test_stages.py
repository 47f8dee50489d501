"""The three stages on small data sets: verification, survivors, alarms, indexes, same bytes."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.dedup.dedup_settings import LineDedupSettings
from curation.errors import CurationError
from curation.recipe import load
from curation.schema import DOCUMENTS
from pipelines.cli import main
from pipelines.dedup_lines import _DOCUMENTS, _read_buckets
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.storage.damage import DamagedError
from pipelines.storage.exchange import write_run
from pipelines.storage.files import Folder
from pipelines.withdrawals import Withdrawn, _holds
from tests.folders import differences

STAGES = "dedup-urls,dedup-documents,dedup-lines"
Row = dict[str, Any]


def words(seed: int, count: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(map(chr, rng.integers(97, 123, 5))) for _ in range(count)]


def document(name: str, text: str, url: str = "", day: int = 1, file: str = "f") -> Row:
    return {
        "id": name,
        "url": url or f"http://{name}.example/",
        "date": datetime.datetime(2024, 1, day, tzinfo=datetime.UTC),
        "text": text,
        "title": "",
        "source": {"file": file, "offset": 0},
        "language": "en",
    }


def write(folder: Path, rows: Sequence[Row], shards: int = 1) -> str:
    folder.mkdir(exist_ok=True)
    schema = pa.schema([*DOCUMENTS, pa.field("language", pa.string())])
    for i in range(shards):
        pq.write_table(pa.Table.from_pylist(rows[i::shards], schema), folder / f"s{i}.parquet")
    return str(folder / "*.parquet")


def read(run: Path, stage: str, kind: str) -> dict[str, Row]:
    files = sorted((run / stage / kind).glob("*.parquet"))
    return {row["id"]: row for f in files for row in pq.read_table(f).to_pylist()}


def manifest(run: Path, stage: str) -> Row:
    return json.loads((run / stage / "manifest.json").read_text())


def test_damaged_counts_of_languages_are_not_read(tmp_path: Path) -> None:
    folder, settings = Folder(str(tmp_path)), LineDedupSettings.model_construct()
    folder.write_own_json(_DOCUMENTS, {"en": 5})
    assert _read_buckets(folder, settings).documents == (("en", 5),)
    path = Path(folder.path(_DOCUMENTS))
    path.write_bytes(path.read_bytes().replace(b"5", b"6"))
    with pytest.raises(DamagedError):
        _read_buckets(folder, settings)


@pytest.fixture(scope="module")
def executor() -> Any:
    with Executor(parse_beam_args([], 0)) as one:
        yield one


@pytest.fixture
def stage(executor: Executor) -> Callable[..., Path]:
    """Run stages in this process; settings as on the command line."""

    def run(inputs: str, output: Path, stages: str, *settings: str, strict: bool = False) -> Path:
        work = plan(load("llama3", settings), str(output), [inputs], stages.split(","))
        run_plan(work, executor, strict=strict)
        return output

    return run


def edited(text: Sequence[str], share: float, seed: int) -> str:
    """The text with a run of its words replaced."""
    count = int(len(text) * share)
    return " ".join([*words(seed, count), *text[count:]])


BASE = words(1, 400)
# Similarities of word 5-grams to "a" of about (1 - share) / (1 + share).
NEAR = [
    document("a", " ".join(BASE), day=1),
    document("b", edited(BASE, 0.05, 2), day=2),
    document("c", " ".join(BASE), day=3),
    document("d", edited(BASE, 0.3, 3), day=9),  # 0.53: no duplicate
    document("e", " ".join(words(4, 300)), day=4),
]


@pytest.mark.parametrize("shards", [1, 3])
def test_confirmed_duplicates_go(tmp_path: Path, stage: Callable[..., Path], shards: int) -> None:
    out = stage(
        write(tmp_path / "in", NEAR, shards),
        tmp_path / "out",
        "dedup-documents",
        "dedup-documents.minhash.bands=56",
        "dedup-documents.minhash.rows=2",
    )
    removed = read(out, "dedup-documents", "removed")
    assert sorted(read(out, "dedup-documents", "documents")) == ["c", "d", "e"]
    assert {r["kept_id"] for r in removed.values()} == {"c"}
    assert {r["cluster_size"] for r in removed.values()} == {3}
    assert removed["a"]["reason"] == "document.exact"
    assert (removed["b"]["reason"], removed["b"]["threshold"]) == ("document.near", 0.7)
    assert removed["b"]["value"] == pytest.approx(376 / (2 * 396 - 376), abs=0.02)
    notes = manifest(out, "dedup-documents")["notes"]
    assert notes["candidate pairs"] > notes["confirmed pairs"] == 1
    assert (notes["clusters"], notes["largest cluster"]) == (1, 3)


def test_why_shows_what_differs(
    tmp_path: Path, stage: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    text = [f"Line {i}: {' '.join(words(i, 20))}" for i in range(20)]
    changed = [*text[:9], text[9].replace("Line 9", "Row nine"), *text[10:19]]
    rows = [document("old", "\n".join(text)), document("new", "\n".join(changed), day=2)]
    out = stage(write(tmp_path / "in", rows), tmp_path / "out", "dedup-documents")
    assert main(["why", "old", "--run", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "kept in its place: new http://new.example/" in printed
    assert "cluster of 2 documents" in printed
    assert f"| - {text[9]}"[:30] in printed
    assert "| + Row nine" in printed
    assert f"| - {text[19]}" in printed
    assert text[5] not in printed


def test_a_shared_bucket_confirms(tmp_path: Path, stage: Callable[..., Path]) -> None:
    settings = ["dedup-documents.verify.method=none"]
    out = stage(write(tmp_path / "in", NEAR, 2), tmp_path / "out", "dedup-documents", *settings)
    removed = read(out, "dedup-documents", "removed")
    assert sorted(removed) == ["a", "b"]
    assert 0.7 < removed["b"]["value"] < 1
    assert "confirmed pairs" not in manifest(out, "dedup-documents")["notes"]


def test_alarms_stop_a_strict_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copies = [
        document(f"c{i}", " ".join(BASE), f"http://h.example/{i}", file="w") for i in range(100)
    ]
    rows = [*copies, *(document(f"o{i}", " ".join(words(9 + i, 50)), file="x") for i in range(9))]
    arguments = ["dedup-documents", "--input", write(tmp_path / "in", rows, 3), "--quiet"]
    arguments += ["--output", str(tmp_path / "out"), "--workers", "0"]
    for name, value in (("cluster_size", 8), ("lost_share", 0.5)):
        arguments += ["--set", f"dedup-documents.alarms.{name}={value}"]
    assert main([*arguments, "--strict"]) == 1
    error = capsys.readouterr().err
    assert "cluster of 100 documents, above 8, and 2 more" in error
    assert error.count("\n") == 1
    assert (tmp_path / "out" / "report.html").exists()
    assert main(arguments) == 0
    alarms = manifest(tmp_path / "out", "dedup-documents")["notes"]["alarms"]
    assert [(a["alarm"].split()[0], a["removed"]) for a in alarms] == [
        ("cluster", 99),
        ("file", 99),
        ("host", 99),
    ]
    assert set(alarms[0]["samples"]) <= {f"c{i}" for i in range(100)}
    monkeypatch.setattr("pipelines.dedup.losses._ROW_BYTES", 8 << 20)  # hosts in seven tasks
    assert main([*arguments, "--fresh"]) == 0
    assert manifest(tmp_path / "out", "dedup-documents")["notes"]["alarms"] == alarms


@pytest.mark.parametrize("name", ["dedup-documents", "dedup-lines"])
def test_documents_need_a_language(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{k: v for k, v in row.items() if k != "language"} for row in NEAR]
    pq.write_table(pa.Table.from_pylist(rows, DOCUMENTS), tmp_path / "s.parquet")
    arguments = [name, "--input", str(tmp_path / "s.parquet"), "--workers", "0", "--quiet"]
    assert main([*arguments, "--output", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "needs the column 'language'; identify-language adds it" in error
    assert f"{name}.per_language=false" in error
    both = [*arguments, "--output", str(tmp_path / "out"), "--set", f"{name}.per_language=false"]
    assert main(both) == 0


def crawl(prefix: str, first: int, day: int) -> list[Row]:
    """Pages that share a menu, half of them copies of a common stock."""
    rows = []
    for i in range(first, first + 6):
        body = " ".join(words(100 + i, 120))
        text = f"The same menu on all pages\n{body}\nSigned {prefix} {words(i, 1)[0]}"
        rows.append(document(f"{prefix}{i}", text, f"http://site.example/{i}", day))
        rows.append(
            document(f"{prefix}m{i}", f"{body} mirrored", f"http://m{prefix}{i}.example", day)
        )
    return rows


def test_a_second_crawl_against_the_first(tmp_path: Path, stage: Callable[..., Path]) -> None:
    first = stage(write(tmp_path / "1", crawl("a", 0, 1), 2), tmp_path / "r1", STAGES)
    untouched = differences(first, first), manifest(first, "dedup-documents")
    new = write(tmp_path / "2", crawl("b", 3, 5), 3)
    against = [f"{s}.index.against=['{first / s}']" for s in STAGES.split(",")]
    second = stage(new, tmp_path / "r2", STAGES, *against)
    # The same URLs, whatever their date, and their near copies at other URLs.
    urls = read(second, "dedup-urls", "removed")
    assert sorted(urls) == ["b3", "b4", "b5"]
    assert {r["kept_id"] for r in urls.values()} == {"a3", "a4", "a5"}
    near = read(second, "dedup-documents", "removed")
    old = set(read(first, "dedup-documents", "documents"))
    mirrors = {f"bm{i}" for i in range(3, 6)}
    assert mirrors <= set(near)
    assert {near[m]["kept_id"] for m in mirrors} <= old
    # Three new pages have the menu, and six of the first crawl.
    kept = read(second, "dedup-lines", "documents")
    assert len(kept) == 3
    assert not any("menu" in r["text"] for r in kept.values())
    alone = stage(new, tmp_path / "r3", STAGES)
    texts = [r["text"] for r in read(alone, "dedup-lines", "documents").values()]
    assert sum("menu" in text for text in texts) == 6
    assert untouched == (differences(first, first), manifest(first, "dedup-documents"))
    third = stage(
        write(tmp_path / "4", [document("z", crawl("b", 8, 1)[0]["text"])]),
        tmp_path / "r4",
        "dedup-documents",
        f"dedup-documents.index.against=['{second / 'dedup-documents'}', '{first}']",
    )
    assert sorted(read(third, "dedup-documents", "removed")) == ["z"]


def test_an_index_must_fit(
    tmp_path: Path, stage: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = write(tmp_path / "in", NEAR)
    first = stage(inputs, tmp_path / "r1", "dedup-documents", "dedup-documents.minhash.seed=2")
    arguments = ["dedup-documents", "--input", inputs, "--output", str(tmp_path / "r2")]
    assert main([*arguments, "--workers", "0", "--quiet", "--index", str(first)]) == 2
    assert "dedup-documents.minhash.seed = 2, here it is 1" in capsys.readouterr().err
    assert main([*arguments, "--index", str(tmp_path / "in")]) == 2
    assert "no complete dedup-documents" in capsys.readouterr().err
    arguments[0] = "dedup-substrings"  # of which the run has nothing
    assert main([*arguments, "--index", str(first)]) == 2
    assert "no complete dedup-substrings" in capsys.readouterr().err


def test_a_run_is_no_index_of_itself(
    tmp_path: Path, stage: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = write(tmp_path / "in", NEAR)
    run = stage(inputs, tmp_path / "r", STAGES)
    before = differences(run, run), manifest(run, "dedup-documents")
    for name in STAGES.split(","):
        arguments = [name, "--input", inputs, "--output", str(run), "--workers", "0"]
        for given in (["--index", str(run)], ["--set", f"{name}.index.against=['{run}']"]):
            assert main([*arguments, *given, "--fresh"]) == 2
            assert "the run that is written can't be an earlier one" in capsys.readouterr().err
    assert before == (differences(run, run), manifest(run, "dedup-documents"))


def test_withdrawal_gives_back_what_nothing_else_stands_for(
    tmp_path: Path, stage: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    pair = words(2, 300)
    rows = [
        *(document(f"a{i}", " ".join(BASE), f"http://gone.example/a{i}", 9 - i) for i in range(2)),
        *(document(f"b{i}", " ".join(BASE), day=i + 1) for i in range(2)),
        document("c", " ".join(pair), "http://gone.example/c", 9),
        document("d", edited(pair, 0.05, 5)),
        document("old", "An old capture", "http://gone.example.org/?b=1&a=2", 1),
        document("new", "A new capture", "http://gone.example.org/?a=2&b=1", 2),
        *(
            document(f"e{i}", " ".join(words(7, 300)), f"http://stays.example/{i}")
            for i in range(2)
        ),
    ]
    out = stage(write(tmp_path / "in", rows, 2), tmp_path / "out", "dedup-urls,dedup-documents")
    assert len(read(out, "dedup-documents", "documents")) == 4
    arguments = ["withdraw", "--run", str(out), "--workers", "0"]
    assert main([*arguments, "--url-prefix", "http://gone.example/"]) == 0
    assert "2 documents withdrawn, 1 removed before" in capsys.readouterr().out
    back = out / "withdrawn"
    assert sorted(read(back, "dedup-documents", "documents")) == ["b1", "d"]
    assert read(back, "dedup-documents", "removed")["b0"]["kept_id"] == "b1"
    assert not (back / "dedup-urls").exists()
    (tmp_path / "ids").write_text("new\n")
    other = tmp_path / "back"
    assert main([*arguments, "--ids", str(tmp_path / "ids"), "--output", str(other)]) == 0
    assert sorted(read(other, "dedup-urls", "documents")) == ["old"]
    assert main([*arguments, "--url-prefix", "http://nowhere.example/"]) == 1
    assert "matches no document" in capsys.readouterr().err


def crowded() -> list[Row]:
    """Much of everything in one place: a URL, a text, near copies, a line; a long shard."""
    text = words(7, 300)
    rows = [
        document(f"u{i:03d}", " ".join(words(100 + i, 60)), "http://one.example/", 1 + i % 20)
        for i in range(0, 800, 4)
    ]
    rows += [document(f"x{i:03d}", " ".join(text), day=1 + i % 20) for i in range(0, 400, 4)]
    rows += [document(f"n{i:03d}", edited(text, 0.03, i), day=1 + i % 20) for i in range(0, 400, 4)]
    rows += [
        document(f"l{i:03d}", "the same long line of all.\n" + " ".join(words(i, 30)))
        for i in range(500, 540)
    ]
    return rows


def test_the_exchange_by_key_gives_the_same_bytes(tmp_path: Path) -> None:
    """Hot keys, one huge cluster, one long shard."""
    folder = tmp_path / "in"
    rows = crowded()
    inputs = write(folder, rows[::8], 3)
    schema = pa.schema([*DOCUMENTS, pa.field("language", pa.string())])
    some = {r["id"] for r in rows[::8]}
    longest = [r for r in rows if r["id"] not in some]
    pq.write_table(pa.Table.from_pylist(longest, schema), folder / "s9.parquet")
    work = load("llama3", ["dedup-documents.index.write=true"])
    outputs = []
    for runner in ("local", "DirectRunner"):
        output = tmp_path / runner
        with Executor(parse_beam_args([f"--runner={runner}"], 0)) as executor:
            run_plan(plan(work, str(output), [inputs], STAGES.split(",")), executor)
        outputs.append(output)
    assert len(read(outputs[0], "dedup-urls", "removed")) > 150
    assert (
        max(r["cluster_size"] for r in read(outputs[0], "dedup-documents", "removed").values())
        > 150
    )
    assert manifest(outputs[0], "dedup-lines")["counts"]["lines_cut"] > 20
    assert differences(*outputs) == []


@pytest.mark.parametrize("name", ["dedup-urls", "dedup-documents"])
def test_files_of_several_tools(tmp_path: Path, stage: Callable[..., Path], name: str) -> None:
    text = " ".join(BASE)
    pages = [document(f"{day}", text, "http://one.example/", day) for day in (1, 2, 3)]
    write(tmp_path / "in", pages, 3)
    for i, unit in enumerate(("ns", "us", "s")):
        path = tmp_path / "in" / f"s{i}.parquet"
        table = pq.read_table(path)
        for column in ("url", "language", "id"):
            place = table.schema.get_field_index(column)
            table = table.set_column(place, column, table[column].dictionary_encode())
        dates = table["date"].cast(pa.timestamp(unit))
        pq.write_table(table.set_column(2, "date", dates), path)
    out = stage(str(tmp_path / "in" / "*.parquet"), tmp_path / "out", name)
    assert list(read(out, name, "documents")) == ["3"]
    assert {row["kept_id"] for row in read(out, name, "removed").values()} == {"3"}


def test_every_batch_of_an_index_is_asked_for_withdrawn_documents(tmp_path: Path) -> None:
    folder, ids = Folder(str(tmp_path)) / "dedup-urls", [f"{i:05d}" for i in range(5000)]

    def index(held: list[str]) -> None:
        columns = {"key": np.arange(len(held), dtype=np.uint64), "id": pa.array(held, pa.string())}
        record = write_run(folder, "index/s.arrow", "key", columns)
        files = {"index/s.arrow": record._asdict()}
        folder.write_own_json("manifest.json", {"stage": "dedup-urls", "files": files})

    index(ids)
    assert _holds(folder.url, "dedup-urls", Withdrawn((), {ids[-1]}))
    assert not _holds(folder.url, "dedup-urls", Withdrawn((), {"other"}))
    index([])
    assert not _holds(folder.url, "dedup-urls", Withdrawn((), {ids[-1]}))


@pytest.mark.parametrize("name", ["dedup-documents", "dedup-lines"])
def test_a_shard_without_languages_is_named(
    tmp_path: Path, stage: Callable[..., Path], name: str
) -> None:
    """The plan looks at the first shard."""
    write(tmp_path / "in", [document("a", "one"), document("b", "two")], shards=2)
    pq.write_table(
        pq.read_table(tmp_path / "in/s1.parquet").drop_columns(["language"]),
        tmp_path / "in/s1.parquet",
    )
    with pytest.raises(CurationError, match=r"shard s1: no column 'language'"):
        stage(str(tmp_path / "in/*.parquet"), tmp_path / "out", name)
