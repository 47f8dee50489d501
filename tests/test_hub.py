"""A Hugging Face dataset by its name, from a server that answers as the Hub does."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

hub = pytest.importorskip("huggingface_hub", reason="huggingface-hub is not installed")
constants = pytest.importorskip("huggingface_hub.constants")

from pipelines.cli import main  # noqa: E402

_DATASET = "/datasets/owner/name"


class _Hub(http.server.BaseHTTPRequestHandler):
    """Answers for one dataset, which is a folder; every other one is not there."""

    folder: Path

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _entry(self, path: Path) -> dict[str, object]:
        kind, size = ("directory", 0) if path.is_dir() else ("file", path.stat().st_size)
        name = str(path.relative_to(self.folder))
        return {"type": kind, "oid": "0" * 40, "size": size, "path": name}

    def do_GET(self) -> None:
        asked = urlparse(self.path)
        path = unquote(asked.path)
        if found := re.fullmatch(f"/api{_DATASET}/tree/[^/]+/?(.*)", path):
            base = self.folder / found[1]
            deep = parse_qs(asked.query).get("recursive", ["false"])[0].lower() == "true"
            if base.is_dir():
                every = sorted(base.rglob("*") if deep else base.iterdir())
                self._answer(json.dumps([self._entry(p) for p in every]).encode())
                return
        elif re.fullmatch(f"/api{_DATASET}(/revision/.*)?", path):
            self._answer(json.dumps({"id": "owner/name", "sha": "a" * 40}).encode())
            return
        elif found := re.fullmatch(f"{_DATASET}/resolve/[^/]+/(.*)", path):
            self._file(self.folder / found[1])
            return
        missing = "EntryNotFound" if _DATASET in path else "RepoNotFound"
        self._answer(b"{}", 404, X_Error_Code=missing)

    do_HEAD = do_GET  # noqa: N815

    def _file(self, path: Path) -> None:
        data = path.read_bytes()
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start, end = (int(span[1]), int(span[2] or len(data) - 1)) if span else (0, len(data) - 1)
        self._answer(
            data[start : end + 1],
            206 if span else 200,
            ETag='"1"',
            X_Repo_Commit="a" * 40,
            Content_Range=f"bytes {start}-{end}/{len(data)}",
        )


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "dataset"
    folder.mkdir()
    handler = type("Hub", (_Hub,), {"folder": folder})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    files = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
    hub.HfFileSystem.clear_instance_cache()
    monkeypatch.chdir(tmp_path)
    yield folder
    hub.HfFileSystem.clear_instance_cache()
    server.shutdown()
    server.server_close()


def test_a_dataset_by_its_name(dataset: Path) -> None:
    (dataset / "data").mkdir()
    (dataset / "README.md").write_text("# A card")
    for part in ("test", "train"):
        rows = {"text": [f"Bees of the {part} part dance."], "stars": [5]}
        pq.write_table(pa.table(rows), dataset / f"data/{part}-00000-of-00001.parquet")
    command = ["read-tables", "--quiet", "--workers", "0", "--input"]
    assert main([*command, "hf://datasets/owner/name", "--output", "all"]) == 0
    rows = pq.read_table("all/read-tables/documents").to_pylist()
    assert [(row["text"], row["stars"]) for row in rows] == [
        ("Bees of the test part dance.", 5),
        ("Bees of the train part dance.", 5),
    ]
    assert rows[1]["source"]["file"] == "data/train-00000-of-00001.parquet"
    part = "hf://datasets/owner/name/data/train-*.parquet"
    assert main([*command, part, "--output", "part"]) == 0
    assert pq.read_table("part/read-tables/documents").num_rows == 1


@pytest.mark.parametrize("name", ["owner/other", "owner/name/data/none.parquet"])
def test_a_dataset_that_is_not_there(
    name: str, dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["filter", "--input", f"hf://datasets/{name}", "--output", "out", "--workers", "0"]
    assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"hf://datasets/{name}: no input file matches" in line and "HF_TOKEN" in line
