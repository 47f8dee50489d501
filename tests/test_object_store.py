"""A run from and to a failing object store, stopped in the middle: the bytes of a local run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("moto", reason="the S3 server of the tests (moto) is not installed")
pytest.importorskip("s3fs", reason="s3fs is not installed")
from botocore import retryhandler

from curation import stores
from curation.recipe import load
from curation.stores import persist
from pipelines.extract import sources
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.tasks import Step, Task
from pipelines.storage.files import Folder
from tests.conftest import ROOT
from tests.faulty_store import KINDS, Proxy, environment, faulty_store
from tests.folders import digests

_INPUTS = ("old-00005.arc.gz", "text-00006.warc.wet.gz")
_STAGES = ("extract", "dedup-documents")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A store that holds some samples, without faults until `rates` are set."""
    monkeypatch.setattr(persist, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(retryhandler, "delay_exponential", lambda *_, **__: 0.01)  # botocore's own
    monkeypatch.setattr(sources, "_GROUP_BELOW", 0)  # a shard for each input
    with faulty_store({}) as proxy:
        for name, value in environment(proxy).items():
            monkeypatch.setenv(name, value)
        system, _ = stores.file_system("s3://crawl")
        system.mkdir("crawl")
        system.mkdir("out")
        for name in _INPUTS:
            system.pipe_file(f"crawl/in/{name}", (ROOT / "data_samples" / name).read_bytes())
        yield proxy


class _InterruptedError(Exception):
    pass


class _Interrupted(Executor):
    """Stops like a killed driver before one step."""

    def run(
        self, stage: str, step: Step, folder: Folder, tasks: list[Task], documents: int = 0
    ) -> int:
        if (stage, step.name) == ("dedup-documents", "shards"):
            super().run(stage, step, folder, tasks[:1], documents)
            raise _InterruptedError
        return super().run(stage, step, folder, tasks, documents)


def run(output: str, executor: type[Executor] = Executor, given: str = "s3://crawl/in/*") -> None:
    work = plan(load("sample", ["dedup-documents.per_language=false"]), output, [given], _STAGES)
    with executor(parse_beam_args([], 0)) as at_work:
        run_plan(work, at_work)


def test_same_bytes_from_and_to_a_failing_store(store: Proxy, tmp_path: Path) -> None:
    run(str(tmp_path / "out"))
    store.rates = dict.fromkeys(KINDS, 0.015)
    with pytest.raises(_InterruptedError):
        run("s3://out/run", _Interrupted)
    run("s3://out/run")
    assert store.faults, "some faults happened"
    store.rates = {}
    remote = Folder("s3://out/run")
    for name in remote.tree():
        place = tmp_path / "remote" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(remote.read_bytes(name))
    assert digests(tmp_path / "remote") == digests(tmp_path / "out")
    assert not [name for name in remote.tree() if ".work" in name]

    # Of local inputs come the same documents; only what names the inputs' versions differs.
    run(str(tmp_path / "local"), given=str(_local_inputs(tmp_path)))
    theirs, ours = digests(tmp_path / "local"), digests(tmp_path / "out")
    differing = {n for n in theirs if theirs[n] != ours[n]}
    versions = {n for n in ours if n.startswith("extract/") and n.endswith(".json")}
    assert differing <= {*versions, "SHA256SUMS"}
    manifest = json.loads((tmp_path / "out" / "extract" / "manifest.json").read_text())
    assert all("ETag" in i["fingerprint"] for i in manifest["inputs"])


def _local_inputs(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in _INPUTS:
        (folder / name).write_bytes((ROOT / "data_samples" / name).read_bytes())
    return folder
