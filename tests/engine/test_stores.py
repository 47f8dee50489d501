"""Object stores that throttle, fail, hang up and cut their answers short."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import pickle
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("moto", reason="the S3 server of the tests (moto) is not installed")
s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")

from curation import stores  # noqa: E402
from curation.errors import InputError, StoreError  # noqa: E402
from curation.readers.discover import discover  # noqa: E402
from curation.readers.raw import RawFile  # noqa: E402
from curation.schema import DOCUMENTS  # noqa: E402
from curation.stores import persist, transfers  # noqa: E402
from pipelines.engine.stage import stage_inputs  # noqa: E402
from pipelines.storage.files import Folder  # noqa: E402
from pipelines.storage.shards import TableWriter  # noqa: E402
from tests.faulty_store import KINDS, Proxy, environment, faulty_store  # noqa: E402

RATES = dict.fromkeys(KINDS, 0.06)


@pytest.fixture(scope="module")
def server() -> Iterator[Proxy]:
    with faulty_store({}) as proxy:
        yield proxy


@pytest.fixture
def store(server: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A store without faults, until a test sets `rates`."""
    for name, value in environment(server).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(persist, "FIRST_PAUSE", 0.01)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")  # botocore's own tries, which pause longer
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    s3fs.S3FileSystem.clear_instance_cache()
    server.rates = {}
    server.requests.clear()
    server.faults.clear()
    system, _ = stores.file_system("s3://bucket")
    if not system.exists("bucket"):
        system.mkdir("bucket")
    yield server
    server.rates = {}
    s3fs.S3FileSystem.clear_instance_cache()


def test_every_operation_gets_through(store: Proxy) -> None:
    folder = Folder("s3://bucket/all")
    store.rates = RATES
    contents = {f"a/{i:02d}.bin": os.urandom(1000 + i) for i in range(5)}
    for name, data in contents.items():
        record = folder.write_bytes(name, data)
        assert record.sha256 == hashlib.sha256(data).hexdigest()
    for name, data in contents.items():
        assert folder.read_bytes(name) == data
        assert folder.read_bytes(name, 10, 500) == data[10:500]
        assert folder.size(name) == len(data)
        assert folder.exists(name) and not folder.exists(name + "x")
    sizes = {name.removeprefix("a/"): len(data) for name, data in contents.items()}
    assert (folder / "a").sizes() == sizes
    assert list(folder.tree()) == sorted(contents)
    assert folder.size("a/absent") is None and (folder / "absent").names() == []
    with pytest.raises(FileNotFoundError):
        folder.read_bytes("absent")
    for name in list(contents)[:1]:
        folder.remove(name)
    assert list(folder.tree()) == sorted(contents)[1:]
    folder.remove()
    assert not folder.exists() and folder.tree() == {}
    assert sum(store.faults.values()) > 3


def test_reading_by_ranges_is_reading(store: Proxy) -> None:
    data = os.urandom(3_000_000)
    Folder("s3://bucket/ranges").write_bytes("x.bin", data)
    store.rates = dict.fromkeys(("truncated", "reset", "slow_down"), 0.1)
    with RawFile.open("s3://bucket/ranges/x.bin") as raw:
        whole, at = b"", 0
        while part := raw.fetch(at, 100_000):
            whole, at = whole + part, at + len(part)
        assert whole == data
        for offset, size in ((2_999_990, 100), (5, 10), (1_000_000, 1_500_000), (0, 1)):
            assert raw.fetch(offset, size) == data[offset : offset + size]
    with stores.open_url("s3://bucket/ranges/x.bin") as file:
        assert io.BufferedReader(file).read() == data  # type: ignore[type-var]
        file.seek(-7, io.SEEK_END)
        assert file.read() == data[-7:]


def test_a_store_that_says_nothing_is_asked_again(
    store: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3fs.S3FileSystem, "read_timeout", 0.5)
    s3fs.S3FileSystem.clear_instance_cache()
    folder = Folder("s3://bucket/silent")
    store.rates = {"silent": 0.5}
    while not store.faults["silent"]:
        folder.write_bytes("x", b"once")
        assert folder.read_bytes("x") == b"once"


def test_large_objects_go_up_in_parts_and_whole(
    store: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "PART_BYTES", 5 << 20)  # the least that S3 takes
    data = os.urandom(12 << 20)
    folder = Folder("s3://bucket/large")
    store.rates = {"slow_down": 0.1, "internal": 0.05}
    for i in range(3):
        with folder.create(f"{i}.bin") as sink:
            for start in range(0, len(data), 1 << 20):
                sink.write(data[start : start + (1 << 20)])
        assert folder.read_bytes(f"{i}.bin") == data
    store.rates = {}
    assert folder.fs.list_multipart_uploads("bucket") == [], "failed uploads were ended"
    assert store.requests["POST"] > 6, "in parts"


def test_nothing_appears_of_a_file_that_is_not_finished(
    store: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "PART_BYTES", 5 << 20)
    monkeypatch.setattr(persist, "TRIES", 2)
    folder = Folder("s3://bucket/half")
    with pytest.raises(RuntimeError), folder.create("x.bin") as sink:
        sink.write(os.urandom(6 << 20))
        raise RuntimeError
    assert folder.tree() == {}
    store.rates = {"slow_down": 1.0}
    with pytest.raises(StoreError, match=r"s3://bucket/half/x.bin: gave up after 2 tries"):
        folder.write_bytes("x.bin", os.urandom(6 << 20))
    store.rates = {}
    assert folder.tree() == {}


def test_a_listing_that_fails_is_never_a_shorter_listing(
    store: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder("s3://bucket/lists")
    names = [f"{d}/{i}.warc.gz" for d in ("a", "b", "c") for i in range(5)]
    for name in names:
        folder.write_bytes(name, b"x")
    store.rates = {"slow_down": 0.4}
    for pattern in ("*/*.warc.gz", "**/*.warc.gz", "?/[0-4].warc.gz", ""):
        found = discover([f"s3://bucket/lists/{pattern}"])
        assert [f.name for f in found] == names
        assert all(f.version.startswith("ETag=") and f.size == 1 for f in found)
    assert [f.name for f in discover(["s3://bucket/lists/b/[12]*"])] == ["1.warc.gz", "2.warc.gz"]
    monkeypatch.setattr(persist, "TRIES", 2)
    store.rates = {"slow_down": 1.0}
    asked: tuple[Callable[[], object], ...] = (
        folder.tree,
        folder.sizes,
        folder.exists,
        lambda: discover(["s3://bucket/lists/*/*.gz"]),
        lambda: discover(["s3://bucket/lists/a/0.warc.gz"]),
    )
    for ask in asked:
        with pytest.raises(StoreError, match="s3://bucket/lists"):
            ask()


def test_listings_see_what_others_did(store: Proxy) -> None:
    folder = Folder("s3://bucket/fresh")
    other = s3fs.S3FileSystem(skip_instance_cache=True)
    folder.write_bytes("d/a", b"1")
    assert folder.tree() == {"d/a": 1} and (folder / "d").sizes() == {"a": 1}
    other.pipe_file("bucket/fresh/d/b", b"22")
    other.pipe_file("bucket/fresh/d/a", b"333")
    assert folder.tree() == (folder.tree() | {"d/a": 3, "d/b": 2})
    assert (folder / "d").sizes() == {"a": 3, "b": 2}
    other.rm_file("bucket/fresh/d/a")
    assert not folder.exists("d/a") and folder.size("d/a") is None
    assert (folder / "d").names() == ["b"]


def test_documents_by_folder_pattern_and_file(store: Proxy) -> None:
    folder = Folder("s3://bucket/loose")
    for name in ("a/x.parquet", "b/y.parquet"):
        with TableWriter(folder, name, DOCUMENTS) as writer:
            writer.write(pa.RecordBatch.from_pylist([{"id": "1", "text": "t"}], DOCUMENTS))
    folder.write_bytes("a/notes.txt", b"x")
    store.rates = dict.fromkeys(("slow_down", "reset"), 0.1)
    for path in ("s3://bucket/loose", "s3://bucket/loose/*/*.parquet"):
        found = stage_inputs([path])
        assert [(s.name, s.rows) for s in found] == [("x", 1), ("y", 1)]
        assert found[0].fingerprint == writer.record.sha256 and found[0].bytes > 0
    (single,) = stage_inputs(["s3://bucket/loose/a/x.parquet"])
    assert single == found[0]
    with pytest.raises(InputError, match="no such file"):
        stage_inputs(["s3://bucket/loose/*/*.nothing"])


def test_a_folder_travels_without_its_file_system(store: Proxy) -> None:
    folder = Folder("s3://bucket/travels")
    assert not folder.exists()
    data = pickle.dumps(folder)
    assert b"fsspec" not in data and b"s3fs" not in data
    assert pickle.loads(data) == folder


@pytest.mark.parametrize("ranges", [True, False])
def test_servers_of_http_with_and_without_ranges(tmp_path: Path, ranges: bool) -> None:
    data = os.urandom(700_000)
    (tmp_path / "x.bin").write_bytes(data)

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if not (ranges and asked):
                super().do_GET()
                return
            first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
            self.send_header("Content-Length", str(last + 1 - first))
            self.end_headers()
            self.wfile.write(data[first : last + 1])

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with RawFile.open(f"http://127.0.0.1:{server.server_address[1]}/x.bin") as raw:
            assert isinstance(raw.handle, stores.StoredFile) == ranges
            assert raw.fetch(0, 20) == data[:20]
            assert raw.fetch(500_000, 300_000) == data[500_000:]
            assert raw.fetch(0, 700_000) == data
    finally:
        server.shutdown()
        server.server_close()


def test_failures_for_good_are_told_at_once(store: Proxy) -> None:
    store.requests.clear()
    with pytest.raises(StoreError, match="s3://nowhere/x"):
        Folder("s3://nowhere").write_bytes("x", b"x")
    assert sum(store.requests.values()) == 1


def test_what_may_pass() -> None:
    for passing in (
        TimeoutError(),
        ConnectionResetError(),
        OSError(errno.EBUSY, "SlowDown"),
        stores.UnfinishedError("3 bytes"),
        _AnswerError(503),
        _AnswerError(429),
    ):
        assert stores.is_transient(passing), passing
    for lasting in (
        FileNotFoundError(),
        PermissionError(),
        OSError(errno.ENOSPC, "full"),
        ValueError(),
        _AnswerError(403),
    ):
        assert not stores.is_transient(lasting), lasting


class _AnswerError(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


def test_where_files_appear_while_they_are_written_they_are_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow = pytest.importorskip("fsspec.implementations.arrow")
    pyarrow_fs = pytest.importorskip("pyarrow.fs")
    system = arrow.ArrowFSWrapper(pyarrow_fs.LocalFileSystem())
    seen: list[str] = []
    content = io.BytesIO(b"whole")
    move = system.mv

    def watched(source: str, target: str) -> None:
        seen.extend(p.name for p in tmp_path.rglob("*") if p.is_file())
        move(source, target)

    monkeypatch.setattr(system, "mv", watched)
    stores.write(
        system, f"{tmp_path}/a/x.json", "hdfs://a/x.json", content, 5, f"{tmp_path}/b/x.part"
    )
    assert (tmp_path / "a" / "x.json").read_bytes() == b"whole"
    assert len(seen) == 1 and seen[0].endswith(".part")
