"""HTML and text files, and how input files are found and named."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path

import fsspec
import pytest

from curation.errors import InputError
from curation.readers.discover import PassedOver, discover
from curation.readers.read import read
from curation.readers.records import Damage, Page
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


@pytest.mark.parametrize(
    "pattern", ["absent", "absent/*.warc", "absent::x", "nosuch://x/*", "builtin:absent"]
)
def test_nothing_found(tmp_path: Path, pattern: str) -> None:
    if "absent" in pattern and "builtin" not in pattern:
        pattern = str(tmp_path / pattern)
    with pytest.raises(Exception, match=pattern.replace("*", r"\*")) as caught:
        discover([pattern])
    assert isinstance(caught.value, InputError) or pattern.startswith("builtin:")


def names_of(*patterns: object) -> list[str]:
    return [file.name for file in discover([str(pattern) for pattern in patterns])]


def test_links_are_followed(tmp_path: Path) -> None:
    write(tmp_path, "real/b.html", "real/sub/c.html", "in/a.html")
    (tmp_path / "in/b.html").symlink_to("../real/b.html")
    (tmp_path / "in/folder").symlink_to("../real")
    (tmp_path / "real/sub/round").symlink_to("..")
    linked = ["a.html", "b.html", "folder/sub/c.html"]  # `folder/b.html` is what `b.html` is
    assert names_of(tmp_path / "in") == names_of(f"{tmp_path}/in/**/*.html") == linked
    assert names_of(f"{tmp_path}/in/*.html") == ["a.html", "b.html"]
    assert names_of(f"{tmp_path}/in/*/*/c.html") == ["folder/sub/c.html"]
    assert names_of(tmp_path / "in/b.html") == ["b.html"]
    (found,) = discover([f"{tmp_path}/in/b.html"])
    assert contents(list(read(found.path, default_settings()))) == [b"<p>x"]


def test_a_file_is_read_once_by_whatever_paths(tmp_path: Path) -> None:
    write(tmp_path, "in/b.html", "in/sub/c.html")
    (tmp_path / "in/a.html").symlink_to("b.html")
    (tmp_path / "way").symlink_to("in")
    os.link(tmp_path / "in/b.html", tmp_path / "in/copy.html")  # a file of its own, like a copy
    names = ["b.html", "copy.html", "sub/c.html"]
    for given in (["in"], ["in/**/*.html"], ["in", "way"], ["in/*.html", "in/sub/../**/*"]):
        over = PassedOver()
        found = discover([f"{tmp_path}/{pattern}" for pattern in given], (), over)
        assert [file.name for file in found] == names
        assert "read by another path (" in str(over) and "a.html" in str(over)
    assert names_of(tmp_path / "in/a.html") == ["a.html"]


def test_what_is_there_wins_over_what_it_matches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "d[1].html", "d1.html", "a::b.html", "e[2]/x.html", "f/x[3]/y.html")
    monkeypatch.chdir(tmp_path)
    assert names_of("d[1].html") == ["d[1].html"]
    assert names_of("d[1]*") == ["d1.html"]
    assert names_of("e[2]") == ["x.html"]
    assert names_of("f/*/y.html") == names_of("f/**/y.html") == ["x[3]/y.html"]
    assert names_of("a::b.html") == names_of("a::*") == ["a::b.html"]
    (found,) = discover(["a::b.html"])
    for path in (found.path, "a::b.html"):
        assert contents(list(read(path, default_settings()))) == [b"<p>x"]


def test_what_is_passed_over_is_named(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl.zstd", "b.md", "c", "x/d.md", "e.md", "_f.html", ".git/x", ".git/y")
    (tmp_path / "g.html").symlink_to("nowhere")
    over = PassedOver()
    assert [file.name for file in discover([str(tmp_path)], (), over)] == ["a.jsonl.zstd"]
    assert str(over) == (
        "1 neither file nor folder (g.html), 2 of a name that begins with . or _ (.git, _f.html), "
        "4 of unknown suffix (b.md, c, e.md, ...)"
    )
    over = PassedOver()
    discover([f"{tmp_path}/*.*"], (), over)
    assert str(over) == (
        "1 matched by a pattern but folders (.git), 1 neither file nor folder (g.html)"
    )
    with pytest.raises(InputError, match=r"matches, only 1 of unknown suffix \(d.md\)"):
        names_of(tmp_path / "x")


def test_what_a_run_writes_is_no_input(tmp_path: Path) -> None:
    write(tmp_path, "in/a.html", "in/out/extract/b.html", "in/out/c.html", "in/report.html")
    (tmp_path / "way").symlink_to("in")
    own = [f"{tmp_path}/in/out/extract", f"{tmp_path}/in/report.html"]
    for pattern in ("in", "in/**/*.html", "way"):
        over = PassedOver()
        found = discover([f"{tmp_path}/{pattern}"], own, over)
        assert [file.name for file in found] == ["a.html", "out/c.html"]
        assert str(over).startswith("2 written by the run itself (")
        assert str(over.of_others) == ""
    with pytest.raises(InputError, match=r"only 1 written by the run itself \(b.html\)"):
        discover([f"{tmp_path}/in/out/extract/*.html"], own)
    with fsspec.open("memory://own/extract/x.html", "wb") as file:
        file.write(b"<p>x")
    with pytest.raises(InputError, match=r"written by the run itself \(extract/x.html\)"):
        discover(["memory://own"], ["memory://own/extract"])


def test_a_folder_that_can_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.html", "closed/b.html")
    listdir = os.listdir

    def refused(path: str) -> list[str]:
        if path.endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return listdir(path)

    def untold(path: str) -> os.stat_result:
        refused(os.path.dirname(path))
        return status(path)

    status = os.stat
    monkeypatch.setattr(os, "listdir", refused)
    for pattern in ("", "/*/*.html", "/**/*.html"):
        with pytest.raises(InputError, match=r"can't be listed: .*Permission denied: .*closed"):
            names_of(f"{tmp_path}{pattern}")
    monkeypatch.setattr(os, "stat", untold)
    with pytest.raises(InputError, match=r"can't be listed: .*Permission denied: .*closed"):
        names_of(f"{tmp_path}/closed/b.html")
