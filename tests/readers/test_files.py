"""HTML and text files, and how input files are found and named."""

from __future__ import annotations

import gzip
from pathlib import Path

import fsspec
import pytest

from curation.errors import InputError
from curation.readers import Damage, Page, discover, read
from tests.readers.archives import default_settings
from tests.readers.test_archives import check_places, contents, events_of


def test_html_file(tmp_path: Path) -> None:
    html = b"<html><link href='https://site.example/a' rel=canonical><p>\xe4\xe4"
    for data in (html, gzip.compress(html)):
        (page,) = events_of(tmp_path, data, "x.html.gz")
        assert isinstance(page, Page)
        assert (page.url, page.content, page.kind) == ("https://site.example/a", html, "html")
        check_places(tmp_path / "x.html.gz", [page])


def test_address_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ü b.html"
    path.write_bytes(b"<p>")
    (page,) = read(str(path), default_settings(), name="site/ü b.html")
    assert isinstance(page, Page)
    assert page.url == "file:site/%C3%BC%20b.html"


def test_text_file(tmp_path: Path) -> None:
    text = "Жёлтые листья кружатся над рекой. " * 5
    (page,) = events_of(tmp_path, text.encode("koi8-r"), "x.txt")
    assert isinstance(page, Page)
    assert (page.content.decode(), page.kind, page.url) == (text, "text", "file:x.txt")


def test_broken_and_large_files(tmp_path: Path) -> None:
    data = gzip.compress(b"<html>" + b"".join(b"%d " % (i * i) for i in range(9000)))
    (page,) = events_of(tmp_path, data[:9000], "x.html.gz")
    assert isinstance(page, Page) and page.mended == "gzip.truncated"
    (damage,) = events_of(tmp_path, data[:9000], "x.html.gz", keep_truncated=False)
    assert isinstance(damage, Damage) and damage.reason == "gzip.truncated"
    (damage,) = events_of(tmp_path, data, "x.html.gz", max_record_bytes=1024)
    assert isinstance(damage, Damage) and damage.reason == "record.too_large"


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"<p>x")


def test_folders_and_globs(tmp_path: Path) -> None:
    write(tmp_path, "d/b.html", "d/a/c.warc.gz", "d/a/.hidden.html", "d/_tmp/x.html", "d/x.bin")
    names = ["a/c.warc.gz", "b.html"]
    assert [file.name for file in discover([str(tmp_path / "d")])] == names
    assert [file.name for file in discover([f"{tmp_path}/d/**/*.warc.gz"])] == ["a/c.warc.gz"]
    assert [file.name for file in discover([f"{tmp_path}/*/b.html"])] == ["d/b.html"]
    (single,) = discover([f"{tmp_path}/d/x.bin", f"{tmp_path}/d/*.bin"])
    assert (single.name, single.size, single.path) == ("x.bin", 4, f"{tmp_path}/d/x.bin")


def test_same_names_get_their_folders(tmp_path: Path) -> None:
    write(tmp_path, "one/x/a.html", "two/x/a.html", "two/x/b.html")
    found = discover([f"{tmp_path}/one/x/*.html", f"{tmp_path}/two/x/*.html"])
    assert [file.name for file in found] == ["b.html", "one/x/a.html", "two/x/a.html"]


def test_remote_files() -> None:
    with fsspec.open("memory://data/in/x.html", "wb") as file:
        file.write(b"<p>x")
    for pattern in ("memory://data/in", "memory://data/in/*.html", "memory://data/in/x.html"):
        (found,) = discover([pattern])
        assert (found.name, found.size) == ("x.html", 4)
        assert contents(list(read(found.path, default_settings()))) == [b"<p>x"]


@pytest.mark.parametrize("pattern", ["absent", "absent/*.warc", "nosuch://x/*", "builtin:absent"])
def test_nothing_found(tmp_path: Path, pattern: str) -> None:
    if ":" not in pattern:
        pattern = str(tmp_path / pattern)
    with pytest.raises(Exception, match=pattern.replace("*", r"\*")) as caught:
        discover([pattern])
    assert isinstance(caught.value, InputError) or pattern.startswith("builtin:")
