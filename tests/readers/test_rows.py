"""CSV, and file formats of the user's own."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from curation.readers import Damage, Page, ReaderSettings, discover, read, read_at
from curation.recipe import load

CSV = 'url,text,author\nhttp://a/1,"One, two\nand ""three""",Ann\nhttp://a/2,Four,Bob\n'
FORMAT = """
def read(file, mark="#"):
    for line in file.read().decode().splitlines():
        if line.startswith("boom"):
            raise ERROR("broken here")
        url, _, text = line.partition(mark)
        yield {"url": url, "text": text, "author": "me"}
"""


def settings(*assignments: str) -> ReaderSettings:
    return load("llama3", assignments).readers  # type: ignore[no-any-return]


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "csv.zst", "tsv"])
def test_csv(tmp_path: Path, suffix: str) -> None:
    data = CSV.encode()
    if suffix == "tsv":
        data = (
            b'url\ttext\tauthor\nhttp://a/1\t"One, two\nand ""three"""\tAnn\nhttp://a/2\tFour\tBob'
        )
    data = gzip.compress(data) if suffix.endswith("gz") else data
    data = zstandard.compress(data) if suffix.endswith("zst") else data
    path = tmp_path / f"in.{suffix}"
    path.write_bytes(data)
    assert [f.name for f in discover([str(tmp_path)])] == [path.name]
    pages = [e for e in read(str(path), settings()) if isinstance(e, Page)]
    assert [p.content for p in pages] == [b'One, two\nand "three"', b"Four"]
    assert [(p.url, p.offset, p.fields) for p in pages] == [
        ("http://a/1", 0, {"author": "Ann"}),
        ("http://a/2", 1, {"author": "Bob"}),
    ]
    assert read_at(str(path), 1, settings()) == pages[1]


def test_csv_without_text_or_with_a_broken_end(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("url,body\nhttp://a/1,x\n")
    (event,) = read(str(path), settings())
    assert isinstance(event, Damage) and event.reason == "csv.no_text"
    path.write_text(CSV + "http://a/3," + "x" * 5000 + "\n")
    events = list(read(str(path), settings("readers.max_record_bytes=2000")))
    assert isinstance(events[-1], Damage) and events[-1].reason == "csv.corrupt"
    assert "after 1 rows" in events[-1].detail and len(events) == 3


@pytest.mark.parametrize("error", ["RuntimeError", "SystemExit", "CancelledError"])
def test_a_format_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str) -> None:
    """Errors that aren't an `Exception`, too, cost only the rest of their file."""
    monkeypatch.chdir(tmp_path)
    imported = f"from asyncio import CancelledError\nERROR = {error}\n"
    (tmp_path / "mine.py").write_text(imported + FORMAT)
    path = tmp_path / "in" / "a.chat"
    path.parent.mkdir()
    path.write_text("http://a/1|One\nhttp://a/2|Two\nboom\nhttp://a/3|Three\n")
    ours = settings("readers.formats={'.chat': {python: 'mine.py:read', settings: {mark: '|'}}}")
    assert len(discover([str(path.parent)], suffixes=ours.formats)) == 1
    one, two, broken = read(str(path), ours)
    assert isinstance(one, Page) and isinstance(two, Page) and isinstance(broken, Damage)
    assert (one.content, one.url, two.offset) == (b"One", "http://a/1", 1)
    assert broken.reason == "format.corrupt" and f"{error}: broken here" in broken.detail
    assert read_at(str(path), 1, ours) == two
    (tmp_path / "mine.py").write_text("def lines(file):\n    yield from file\n")
    (broken,) = read(str(path), settings("readers.formats={'.chat': {python: 'mine.py:lines'}}"))
    assert isinstance(broken, Damage)
    assert "mine.py:lines: TypeError: gave bytes, not a mapping of columns" in broken.detail


@pytest.mark.parametrize("text", ["text\n" + "a" * 3000, "a" * 3000, "text\n" + '"a\n",' * 800])
def test_a_csv_row_above_the_limit_ends_the_file(tmp_path: Path, text: str) -> None:
    """A bomb of one line isn't read into memory."""
    path = tmp_path / "in.csv"
    path.write_text(text)
    (event,) = read(str(path), settings("readers.max_record_bytes=2000"))
    assert isinstance(event, Damage) and event.reason == "csv.corrupt"
    assert "a row of over 2000 characters" in event.detail


def test_csv_rows_of_other_lengths_than_the_head(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('\ntext,a,a\nx\n\n"y\n",1,2,3\n')
    pages = [e for e in read(str(path), settings()) if isinstance(e, Page)]
    assert [(p.content, p.fields) for p in pages] == [(b"x", {}), (b"y\n", {"a": "2"})]
