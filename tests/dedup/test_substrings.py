"""Passages that repeat: against a plain reference, at the edges of units, and as a stage."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.dedup import substrings
from curation.dedup.audit import losses_by_source, losses_noted
from curation.dedup.dedup_settings import (
    SubstringDedupSettings,
    defaults,
)
from pipelines import cli, dedup_substrings
from pipelines.reading.sums import lines
from pipelines.storage.files import Folder
from pipelines.storage.shards import BATCH_ROWS

pytestmark = pytest.mark.usefixtures("forked_processes")
WIDTH = 32
Found = substrings.Cutting


def choices(**changed: Any) -> SubstringDedupSettings:
    usual = defaults(SubstringDedupSettings).model_dump() | {"min_bytes": WIDTH, "unit": "bytes"}
    return SubstringDedupSettings.model_validate(usual | changed)


def cut(texts: list[str], **changed: Any) -> Found:
    """Do what the stage does, without files and shards."""
    chosen = choices(**changed)
    batch = pa.RecordBatch.from_pydict({"text": pa.array(texts, pa.large_string())})
    windows = substrings.windows(batch.column("text"), chosen.min_bytes)
    rows = {"key": windows.keys, "number": windows.documents.astype(np.uint64)}
    rows |= {
        "start": windows.starts,
        "rank": substrings.ranks(batch, chosen.keep)[windows.documents],
    }
    copies = substrings.copies(pa.RecordBatch.from_pydict(rows), chosen.min_bytes)
    passages = substrings.passages(pa.RecordBatch.from_pydict(copies), chosen.min_bytes)
    raw, found = [text.encode() for text in texts], defaultdict(list)
    for i in range(len(passages["key"])):
        one = {name: int(column[i]) for name, column in passages.items()}
        start, at, size = one["start"], one["at"], one["size"]
        shown = substrings.evidence(raw[one["number"]], start, size, WIDTH + substrings.GAP)
        longer = substrings.grown(raw[one["key"]], at, size, shown)
        assert longer is not None
        edges = start - longer[0], start + size + longer[1]
        copy = substrings.Copy(*edges, str(one["key"]), one["key"], at - start)
        found[one["number"]].append(copy)
    own = substrings.choose_cuts(batch.column("text"), found, chosen)
    asked = [(one.original, one.there(row)) for row, some in own.items() for one in some]
    given_of = defaultdict(list)
    for _ in range(dedup_substrings._TURNS):
        further = []
        for number, one in asked:
            parts, others = substrings.answer(one, number, own.get(number, []))
            given_of[one.original] += parts
            given_of[number] += [substrings.Copy(0, 0, "") for _ in parts]
            further += others
        asked = further
    return substrings.cut_passages(batch.column("text"), given_of, chosen)


def spans(done: Found) -> list[tuple[int, int, bytes]]:
    return list(
        zip(
            done.rows.tolist(),
            done.positions.tolist(),
            map(str.encode, done.cuts.to_pylist()),
            strict=True,
        )
    )


_SIGNS = st.sampled_from("abcdefgh é日.\n")
_PARTS = st.lists(st.text(_SIGNS, min_size=20, max_size=300), min_size=1, max_size=4)
_ROWS = st.builds(str.__mul__, st.text(_SIGNS, min_size=1, max_size=50), st.integers(2, 20))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_all_copies_but_one_go(data: st.DataObject) -> None:
    """Every cut is of a repeat and stands whole where it says, and no long repeat is left."""
    edge = st.integers(0, 300)
    parts = st.builds(lambda t, a, b: t[a:b], st.sampled_from(data.draw(_PARTS)), edge, edge)
    piece = st.one_of(parts, parts, _ROWS, st.text(_SIGNS, max_size=60))
    texts = ["".join(p) for p in data.draw(st.lists(st.lists(piece, max_size=5), max_size=6))]
    unit = data.draw(st.sampled_from(["bytes", "lines", "sentences"]))
    done, raw = cut(texts, unit=unit), [text.encode() for text in texts]
    stands = [np.ones(len(text), bool) for text in raw]
    for row, position, gone in spans(done):
        assert raw[row][position : position + len(gone)] == gone
        stands[row][position : position + len(gone)] = False
    removed = [reason is not None for reason in done.verdicts.reason.to_pylist()]
    left = [bytes(np.frombuffer(t, np.uint8)[s]) for t, s in zip(raw, stands, strict=True)]
    assert left == [text.encode() for text in done.texts.to_pylist()]
    for (_, _, gone), kept_id in zip(spans(done), map(int, done.kept_ids), strict=True):
        assert not removed[kept_id]
        assert (gone if unit == "bytes" else gone.strip(b"\n\t ")) in left[kept_id]
    places = defaultdict(list)
    for row, text in enumerate(raw):
        for at in range(len(text) - WIDTH + 1):
            places[text[at : at + WIDTH]].append((row, at))
    repeated = [np.zeros(len(text), bool) for text in raw]
    for row, at in (place for same in places.values() if len(same) > 1 for place in same):
        repeated[row][at : at + WIDTH] = True
    space = [np.isin(np.frombuffer(t, np.uint8), list(b"\n\t ")) for t in raw]
    assert all(
        (r | (unit != "bytes") & w)[~s].all()
        for r, w, s in zip(repeated, space, stands, strict=True)
    )
    most = WIDTH + substrings.GAP
    long = defaultdict(set)
    for row, text in enumerate(left):
        for at in range(len(text) - most + 1 if unit == "bytes" and not removed[row] else 0):
            whole = text[at : at + most]
            # A row of one sign has no place of its own, so its copies may be laid askew.
            own = {whole[i : i + WIDTH] for i in range(most - WIDTH)}
            if whole in raw[row] and len(own) == most - WIDTH:
                long[whole].add(row)
    assert max(map(len, long.values()), default=0) <= 1


PASSAGE = (
    "Every page of this site ends in this notice, whose words are the same wherever it stands, as "
    "long as nobody changes them, which nobody ever does."
)


def other(seed: int) -> str:
    """Return a text that shares no passage with others."""
    return " ".join(f"Fact {i} is {seed * 7919 + i * 104729:x}, not {seed + i}." for i in range(20))


@pytest.mark.parametrize(
    ("unit", "gone"),
    [
        ("bytes", f" {PASSAGE}\nEnd of a"),
        ("sentences", f"{PASSAGE}\n"),
        ("lines", ""),
    ],
)
def test_cuts_end_where_units_end(unit: str, gone: str) -> None:
    texts = [f"{other(1)}x {PASSAGE}\nEnd of all.", f"{other(2)}. {PASSAGE}\nEnd of another."]
    assert cut(texts, unit=unit).cuts.to_pylist() == ([gone] if gone else [])


def test_lines_go_with_their_feed_and_the_blank_line_behind() -> None:
    one, two, three = map(other, range(3))
    done = cut([f"{one}\n\n{PASSAGE}\n\n!", f"{two}\n\n{PASSAGE}\n\n{three}"], unit="lines")
    assert done.texts.to_pylist()[1] == f"{two}\n\n{three}"


def test_code_loses_nothing_unless_told() -> None:
    code = "".join(
        f"    if value[{i}] == other[{i}]:\n        total += call({i})\n" for i in range(9)
    )
    texts = [code, f"def second():\n{code}"]
    assert cut(texts, unit="lines").cuts.to_pylist() == []
    assert "call(8)" in "".join(cut(texts, unit="lines", paths={"code": True}).cuts.to_pylist())
    letters = "".join(f"    {i}: '\\u{i:04x}',  # letter {i}\n" for i in range(0x410, 0x430))
    texts = [f"{name} = {{\n{letters}}}\n\n\n{code}" for name in ("one", "other")]
    assert cut(texts, unit="lines").cuts.to_pylist() == []


def test_the_best_copy_stays() -> None:
    texts = [f"{PASSAGE} short.", f"{PASSAGE} {other(1)}"]
    assert spans(cut(texts, keep="first"))[0][0] == 1
    assert spans(cut(texts, keep="best"))[0][0] == 0


def test_a_forged_hash_cuts_nothing() -> None:
    shown = substrings.evidence(b"one passage, and another", 4, 10, 100)
    assert substrings.grown(b"one passage, and another", 4, 10, shown) == (4, 10)
    assert substrings.grown(b"one pessage, and another", 4, 10, shown) is None


def _stage(tmp_path: Path, name: str, *options: str) -> Path:
    notice = " ".join(f"{PASSAGE} Part {i}." for i in range(4))
    rows = [f"{other(i)}\n{notice}" for i in range(60)]
    rows[30] = f"{notice}\nNo more."
    for part in range(3):
        lines = [
            json.dumps({"id": f"d{i}", "text": rows[i], "url": f"https://a.example/{i}"})
            for i in range(20 * part, 20 * part + 20)
        ]
        (tmp_path / f"texts-{part}.jsonl").write_text("\n".join(lines))
    output, inputs = tmp_path / name, str(tmp_path / "texts-*.jsonl")
    given = ["dedup-substrings", "--input", inputs, "--output", str(output), *options]
    assert cli.main(given) == 0
    return output


def _rows(output: Path, kind: str) -> list[dict[str, Any]]:
    files = sorted((output / "dedup-substrings" / kind).glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_the_stage_accounts_for_every_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = _stage(tmp_path, "one", "--workers", "0")
    kept, edits = _rows(output, "documents"), _rows(output, "edits")
    assert [row["id"] for row in kept if PASSAGE in row["text"]] == ["d0"]
    (removed,) = _rows(output, "removed")
    assert (removed["id"], removed["reason"]) == ("d30", "substring.too_short")
    assert {row["id"] for row in edits} == {f"d{i}" for i in range(1, 60)}
    assert {row["reason"] for row in edits} == {"substring.repeated"}
    facts = json.loads((output / "dedup-substrings" / "manifest.json").read_text())
    assert facts["counts"]["bytes_cut"] == sum(len(row["text"].encode()) for row in edits)
    assert {row["kept_id"] for row in edits} == {"d0"}
    assert cli.main(["why", "d7", "--run", str(output)]) == 0
    assert "(a copy stays in d0): Every page" in capsys.readouterr().out
    often = facts["notes"]["most frequent passages cut"][0]
    assert often["copies"] > 40 and often["kept_id"] == "d0" and PASSAGE[:99] in often["passage"]
    (host,) = facts["notes"]["bytes cut by host"]
    (shown,) = lines(Folder(str(output)), ["dedup-substrings"])  # as the explorer shows them
    assert shown["removed"] == [] and shown["notes"]["bytes cut by host"] == [host]
    removed_bytes = len(removed["text"].encode())
    assert host["documents"] == 60 and host["removed"] > removed_bytes
    monkeypatch.setattr("pipelines.dedup.losses._ROW_BYTES", 8 << 20)  # hosts in several tasks
    other = _stage(tmp_path, "two", "--workers", "2")
    again = json.loads((other / "dedup-substrings" / "manifest.json").read_text())
    assert again["notes"] == facts["notes"]
    assert (output / "SHA256SUMS").read_text() == (other / "SHA256SUMS").read_text()


def test_batches_that_lose_nothing_and_windows_sorted_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of cuts have one schema, and memory decides nothing about what is cut."""
    repeats = [f"{PASSAGE}\n{PASSAGE[::-1]}\n{text}" for text in (other(1), other(2))]
    rows = [{"id": f"d{i}", "text": str(i)} for i in range(BATCH_ROWS)]
    rows += [{"id": f"d{BATCH_ROWS + i}", "text": text} for i, text in enumerate(repeats)]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    written = []
    for size in (1 << 26, 64):
        monkeypatch.setattr(dedup_substrings, "_PART_BYTES", size)
        output = tmp_path / str(size)
        given = ["--input", str(tmp_path / "in.jsonl"), "--output", str(output), "--workers", "0"]
        assert cli.main(["dedup-substrings", *given]) == 0
        (cut,) = _rows(output, "edits")
        assert (cut["id"], cut["kept_id"]) == (f"d{BATCH_ROWS + 1}", f"d{BATCH_ROWS}")
        written.append((output / "SHA256SUMS").read_text())
    assert written[0] == written[1]


def test_of_each_block_of_copies_one_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However windows are divided: a worker holds few of those that most documents have."""
    texts = [f"{PASSAGE}\n{PASSAGE[::-1]}\n{i}{other(i)[5:]}" for i in range(8)]
    (tmp_path / "in.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    monkeypatch.setattr(substrings, "BLOCK", 3)
    monkeypatch.setattr(dedup_substrings, "BLOCK", 3)
    monkeypatch.setattr(dedup_substrings, "_PART_BLOCKS", 1)
    for size in (1 << 26, 64):
        monkeypatch.setattr(dedup_substrings, "_PART_BYTES", size)
        output = tmp_path / str(size)
        given = ["--input", str(tmp_path / "in.jsonl"), "--output", str(output), "--workers", "0"]
        assert cli.main(["dedup-substrings", *given]) == 0
        kept = [PASSAGE in row["text"] for row in _rows(output, "documents")]
        assert kept == [i % 3 == 0 for i in range(8)]


@pytest.mark.parametrize("keep", ["first", "best"])
def test_what_an_earlier_run_has_is_cut(tmp_path: Path, keep: str) -> None:
    """Whatever the survivor policy, and the earlier run is not touched."""

    def done(name: str, texts: list[str], *options: str) -> Path:
        rows = [
            json.dumps({"id": f"{name}{i}", "text": text, "date": f"2020-01-0{i + 1}T00:00:00Z"})
            for i, text in enumerate(texts)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
        given = ["--input", str(tmp_path / f"{name}.jsonl"), "--output", str(tmp_path / name)]
        keeps = ["--set", f"dedup-substrings.keep={keep}"]
        assert cli.main(["dedup-substrings", *given, *keeps, *options]) == 0
        return tmp_path / name

    old, new = " ".join(f"{PASSAGE} Part {i}." for i in range(4)), other(77)
    first = done("a", [f"{other(1)}\n{old}", f"{other(2)}\n{old}"])
    before = (first / "SHA256SUMS").read_bytes()
    texts = [f"{other(3)}\n{old}\n{new}", f"{new}\n{other(4)}\n{old}", other(5)]
    for workers in ("0", "2"):
        options = ["--workers", workers, "--index", str(first)]
        second = done(f"b{workers}", texts, *options)
        kept = sorted(row["text"] for row in _rows(second, "documents"))
        assert not any(PASSAGE in text for text in kept)
        assert sum(new in text for text in kept) == 1 and other(5) in kept
        named = {row["kept_id"] for row in _rows(second, "edits") if PASSAGE in row["text"]}
        assert named == {"a0" if keep == "first" else "a1"}
    assert (first / "SHA256SUMS").read_bytes() == before
    again = _rows(
        done("c", [old], "--set", f"dedup-substrings.index.against=[{second}]"), "removed"
    )
    assert not again  # what the second run lost is not in it
    gone = _rows(done("d", [texts[2]], "--index", str(second)), "removed")
    assert [row["reason"] for row in gone] == ["substring.too_short"]


def test_a_site_that_loses_its_text_is_an_alarm() -> None:
    texts = [f"{PASSAGE}{PASSAGE[:5]}" for _ in range(120)] + [other(i) for i in range(120)]
    urls = [f"https://{'ab'[i // 120]}.example/{i}" for i in range(240)]
    batch = pa.RecordBatch.from_pydict({"text": texts, "url": urls})
    done = cut(texts)
    lost = np.bincount(done.rows, done.sizes, len(texts)).astype(np.int64)
    notes = losses_noted([losses_by_source(batch, lost)], 0.75, "bytes")
    (alarm,) = notes["alarms"]
    assert alarm["alarm"].startswith("host a.example loses ") and alarm["documents"] == 120
    assert [row["host"] for row in notes["bytes cut by host"]] == ["a.example", "b.example"]


def test_a_short_line_inside_a_repeat_that_keeps_its_ends_stays() -> None:
    """Otherwise a document would lose a few words, or a blank line."""
    short, long = "So it was.", "It was built in the year of the flood."
    for line, gone in ((short, []), (long, [long])):
        before, behind = (" ".join(f"{word}{i}" for i in range(20)) for word in ("mill", "stone"))
        repeat = f"{before}\n{line}\n{behind}"
        done = cut([f"Once {repeat} here.", f"Now {repeat} there."], unit="lines")
        assert [text.decode().strip() for _, _, text in spans(done)] == gone


@pytest.mark.parametrize("row", ["-", "| mill | stone |\n"])
def test_rows_of_a_pattern_stay(row: str) -> None:
    """They would go in hundreds of cuts, and are the same at every place."""
    texts = [f"{other(i)}, {i}: {row * (400 // len(row))}{i}, {other(i + 5)}" for i in range(2)]
    assert cut(texts).cuts.to_pylist() == []


def test_what_an_original_loses_is_cut_where_its_own_original_stands() -> None:
    """Not left because the first one that has it goes itself, nor cut where none is whole."""
    first, second, third, fourth = (other(i)[10:160] for i in range(4))
    texts = [f"{second}{third}.", f"{first}{second}{third}?", f"{first}{second}{fourth}!"]
    done = cut(texts)
    assert done.rows.tolist() == [1, 2, 2] and done.kept_ids == ["0", "1", "0"]
    assert "".join(done.texts.to_pylist()) == f"{second}{third}.{first}?{fourth}!"
    done = cut([f"{first}.", f"{second}!", f"{third}{first}{second}?", f"{first}{second}"])
    assert done.verdicts.reason.to_pylist()[3] == "substring.too_short"  # nobody's original
