"""CSV, and file formats of the user's own."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard

from curation.readers.discover import discover
from curation.readers.documents import others_of
from curation.readers.ranges import why_whole
from curation.readers.read import read, read_at
from curation.readers.records import Damage, Page, Skipped
from curation.readers.settings import ReaderSettings
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
    assert "after 2 rows" in events[-1].detail and len(events) == 3


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_quote_of_csv_that_does_not_end_is_told(tmp_path: Path, end: str, wide: bool) -> None:
    """It takes the rest of the file for one text."""
    path = tmp_path / "t.csv"
    for data, expected in {
        'text,n\none,1\n"two\nthree,3': ["one", "csv.open_quote"],
        'text,n\none,1\n"two\nthree",3': ["one", "two\nthree"],
        'text,n\none,1\ntwo,"': ["one", "csv.open_quote"],
        'text,n\none,1\ntwo 2",2': ["one", 'two 2"'],
        "text": [],
    }.items():
        path.write_bytes((data + end).encode("utf-16" if wide else "utf-8"))
        events = [*read(str(path), settings())]
        told = [e.reason if isinstance(e, Damage) else e.content.decode() for e in events]  # type: ignore[union-attr]
        assert told == expected, data


def test_quotes_that_do_not_fit_their_field(tmp_path: Path) -> None:
    """Backslashes of Spark and MySQL, and quotes of TSV that are text."""
    rows = ['1,"he \\"said\\" so"', "2,good", '3,"over\n"lines" and on"', '4,5" disk']
    (tmp_path / "t.csv").write_text("\n".join(["n,text", *rows]))
    *pages, last = read(str(tmp_path / "t.csv"), settings())
    told = [p.reason if isinstance(p, Damage) else p.content for p in pages]  # type: ignore[union-attr]
    assert told == ["csv.bad_quote", b"good", "csv.bad_quote"]
    assert isinstance(last, Page) and last.content == b'5" disk'
    texts = ['"Yes," he said.', '"never ends', "good", 'a "b"', '"one more']
    (tmp_path / "t.tsv").write_text(
        "n\ttext\n" + "".join(f"{n}\t{t}\n" for n, t in enumerate(texts))
    )
    assert [p.content.decode() for p in read(str(tmp_path / "t.tsv"), settings())] == texts  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (
            'n,text\n1,"he \\"said\\", \\\\ so"\n2,\\alpha\n3,"\\""\n4,"a\nb \\"c\\""',
            ['he "said", \\ so', r"\alpha", '"', 'a\nb "c"'],
        ),
        ('"n" , "text"\n"1" ,"a ""b"", c"\n"2", "d" \n3,  "" \n', ['a "b", c', "d", ""]),
        ('n, text\n1,"e, f" \n2,g\n', ["e, f", "g"]),
        ('n,text\n1,"C:\\"\n2,"D:\\"\n', ["C:\\", "D:\\"]),
        (
            'n,text\n1,"he ""said"" so"\n2,"he \\"said\\" so"\n',
            ['he "said" so', "csv.bad_quote"],
        ),
        ('n,text\n1,"a ""b"" ,c"\n2,"d" ,\n', ['a "b" ,c', "csv.bad_quote"]),
    ],
)
def test_quotes_of_other_programs(tmp_path: Path, data: str, texts: list[str]) -> None:
    """All rows of the beginning show them, or none is read so."""
    path = tmp_path / "t.csv"
    for content in (data, data.replace("\n", "\r\n")):
        path.write_bytes(content.encode())
        events = [*read(str(path), settings())]
        told = [e.reason if isinstance(e, Damage) else e.content.decode() for e in events]  # type: ignore[union-attr]
        assert [t.replace("\r\n", "\n") for t in told] == texts


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_cr_inside_of_a_line_is_text(tmp_path: Path, separator: str, end: str) -> None:
    rows = [["text", "n"], ["one\rtwo", '"1"'], ['"three\rfour"', "2"], ["five", "3"]]
    path = tmp_path / ("in.tsv" if separator == "\t" else "in.csv")
    path.write_bytes("".join(separator.join(row) + end for row in rows).encode())
    pages = [event for event in read(str(path), settings()) if isinstance(event, Page)]
    assert [page.content for page in pages] == [b"one\rtwo", b"three\rfour", b"five"]
    assert [page.fields for page in pages] == [{"n": "1"}, {"n": "2"}, {"n": "3"}]
    # of a Mac, where CR ends lines
    path.write_bytes('text;n\r"one\ntwo";1\rthree;2\r'.replace(";", separator).encode())
    pages = [event for event in read(str(path), settings()) if isinstance(event, Page)]
    assert [page.content for page in pages] == [b"one\ntwo", b"three"]


@pytest.mark.parametrize("head", ["sep=;\n", "\n\n", "sep=|\r\n"])
def test_what_stands_before_the_names_of_csv(tmp_path: Path, head: str) -> None:
    separator = head[4:5] or "|"
    (tmp_path / "t.csv").write_text(head + separator.join(["n", "text"]) + f"\n1{separator}one\n")
    (page,) = read(str(tmp_path / "t.csv"), settings())
    assert isinstance(page, Page) and (page.content, page.fields) == (b"one", {"n": "1"})


def test_a_row_of_csv_with_more_fields_than_names_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(CSV + "http://a/3,Five, six,Cid\nhttp://a/4,Seven,Dee,,\nhttp://a/5,Eight\n")
    *pages, last = read(str(path), settings())
    broken = pages.pop(2)
    assert isinstance(broken, Damage) and (broken.offset, broken.reason) == (2, "csv.more_fields")
    assert broken.detail == "4 fields, the first line has 3"
    assert [p.offset for p in pages if isinstance(p, Page)] == [0, 1, 3]
    assert isinstance(last, Page) and (last.content, last.offset) == (b"Eight", 4)
    assert read_at(str(path), 4, settings()) == last


ROWS = [{"text": f"Text {i} – é", "url": f"http://a/{i}", "n": [i]} for i in range(3000)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("suffix", ["json", "json.gz", "json.zst"])
def test_an_array_of_objects(tmp_path: Path, indent: int | None, suffix: str) -> None:
    data = b"\xef\xbb\xbf \n" + json.dumps(ROWS, indent=indent, ensure_ascii=False).encode()
    data = gzip.compress(data) if suffix.endswith("gz") else data
    data = zstandard.compress(data) if suffix.endswith("zst") else data
    path = tmp_path / f"in.{suffix}"
    path.write_bytes(data)
    pages = [e for e in read(str(path), settings()) if isinstance(e, Page)]
    assert [p.content.decode() for p in pages] == [row["text"] for row in ROWS]
    assert (pages[7].url, pages[7].offset, pages[7].fields) == ("http://a/7", 7, {"n": [7]})
    assert read_at(str(path), 7, settings()) == pages[7]
    assert why_whole(str(path), path.name, settings())
    assert others_of(str(path), path.name, settings()) == {"n": pa.list_(pa.int64())}


@pytest.mark.parametrize(
    ("data", "pages", "detail"),
    [
        (b'{\n "text": "a"\n}', 1, None),
        (b'{\r\n "text": "a"\r\n}\n{"text": "b"}\n', 2, None),
        (b'{\n "text": "a"\n}\n{\n "text', 1, "after 1 rows: ValueError: Unterminated string"),
        (b'[{"text": "a"}, {"text": "b"', 1, "after 1 rows: ValueError: Expecting"),
        (b'[{"text": "a"}', 1, "the array does not end"),
        (b'["b", null, 5, ["c"], {"text": "a"}]', 1, "'b' is not an object"),
        (b'[{"text": "' + b"a" * 3000 + b'"}, {"text": "b"}]', 1, "over 2000 characters"),
        (b'[{"text": "' + b"a" * 90000, 0, "over 2000 characters"),
        (b'[{"text": "a\xff\\ud800"}, {"text": "b"}]', 2, None),
        (b'[{"text": "a"}]\n[{"text": "b"}]{"text": "c"}', 3, None),
        (b'{\n "text": "a"\n}]\n{"text": "b"}', 1, "after 1 rows: ValueError: Expecting"),
        (b"[]", 0, None),
        (b"[" * 5000, 0, "after 0 rows"),
    ],
)
def test_what_is_wrong_in_an_array(
    tmp_path: Path, data: bytes, pages: int, detail: str | None
) -> None:
    path = tmp_path / "in.json"
    path.write_bytes(data)
    events = list(read(str(path), settings("readers.max_record_bytes=2000")))
    assert sum(isinstance(event, Page) for event in events) == pages
    if detail is None:
        assert len(events) == pages
    else:
        damages = [event for event in events if isinstance(event, Damage)]
        assert len(damages) + pages == len(events) and detail in damages[0].detail
        offsets = [event.offset for event in events if not isinstance(event, Skipped)]
        assert offsets == [*range(len(events))]


def test_source_files_that_are_named_are_texts(tmp_path: Path) -> None:
    for name, text in {
        "words.py": "def words(text):\n    return text.split()\n",
        "notes.md": "<!-- draft -->\n# Notes\n\nThe *ferry* left.\n",
        "page.txt": "<!DOCTYPE html><p>A page.</p>",
        "LICENSE": "All of it.",
        "stub.txt": "{{stub}}\nThe ferry left.",
        "scope.c": "{ int x; }",
        "base.html": "{% extends 'base' %}<p>A page.</p>",
    }.items():
        (tmp_path / name).write_text(text)
    events = {f.name: next(read(f.path, settings(), f.name)) for f in discover([f"{tmp_path}/*"])}
    kinds = {name: e.kind for name, e in events.items() if isinstance(e, Page)}
    texts = ["words.py", "notes.md", "stub.txt", "scope.c"]
    assert kinds == dict.fromkeys(texts, "text") | dict.fromkeys(["page.txt", "base.html"], "html")
    (unknown,) = (e for e in events.values() if isinstance(e, Damage))
    assert unknown.reason == "file.unknown_format"
    found = [f.name for f in discover([str(tmp_path)])]
    assert found == ["base.html", "page.txt", "stub.txt"]


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
    path.write_text('\ntext,a,a\nx\n\n"y\n",1,2\n')
    pages = [e for e in read(str(path), settings()) if isinstance(e, Page)]
    assert [(p.content, p.fields) for p in pages] == [(b"x", {}), (b"y\n", {"a": "1", "a_2": "2"})]


def test_rows_of_csv_that_are_mostly_utf_8_stay_so(tmp_path: Path) -> None:
    """Cells cut in the middle of a character, beside a row in another encoding."""
    good = "Größe über alle Maßen".encode() + b" \xc3"
    (tmp_path / "t.csv").write_bytes(
        b"text\n"
        + b"Stra\xdfe, h\xf6rt\n".replace(b",", b"") * 20
        + good
        + b"\nStra\xdfe\nIt\xe2\x80\x99s mid\xe2\x80\n"
    )
    found = [p.content.decode() for p in read(str(tmp_path / "t.csv"), settings())]  # type: ignore[union-attr]
    assert found[:20] == ["Straße hört"] * 20
    assert found[20:] == ["Größe über alle Maßen \ufffd", "Straße", "It’s mid\ufffd"]


def test_members_of_a_compressed_csv_are_one_file(tmp_path: Path) -> None:
    rows = [f"{n},a plain row\n".encode() for n in range(300)]
    rows += [
        "300,Kotę żółć łąka źdźbło mówią, że jest święto\n".encode("cp1250").replace(b", ", b" ")
    ] * 9
    halves = b"n,text\n" + b"".join(rows[:200]), b"".join(rows[200:])
    (tmp_path / "a.csv").write_bytes(b"".join(halves))
    (tmp_path / "b.csv.gz").write_bytes(b"".join(map(gzip.compress, halves)))
    (tmp_path / "c.csv.zst").write_bytes(b"".join(map(zstandard.compress, halves)))
    one, two, three = (
        [p.content for p in read(str(f), settings())] for f in sorted(tmp_path.iterdir())
    )  # type: ignore[union-attr]
    assert one == two == three
    assert "żółć" in one[-1].decode()


def test_quotes_that_do_not_fit_cost_no_header_and_blank_lines_no_row(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('"n" ,text\n1,one\n2,two\n')
    assert [p.content for p in read(str(tmp_path / "t.csv"), settings())] == [b"one", b"two"]  # type: ignore[union-attr]
    (tmp_path / "t.tsv").write_text('n\ttext\n1\t"open\n\n2\tb\n')
    assert [p.content for p in read(str(tmp_path / "t.tsv"), settings())] == [b'"open', b"b"]  # type: ignore[union-attr]
