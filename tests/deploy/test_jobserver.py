"""Where job servers come from, and what is said when they can't be had."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "deploy"))

import jobserver  # noqa: E402

RUNNER = jobserver.Runner("beam-runners-x", "org.example.Driver")


def _jar(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as jar:
        for name, text in files.items():
            jar.writestr(name, text)
    return path


def test_merged_jars_keep_services_and_lose_signatures(tmp_path: Path) -> None:
    one = {"a/A.class": "1", "META-INF/services/s.S": "a.A", "META-INF/X.SF": "x"}
    two = {"a/A.class": "2", "b/B.class": "3", "META-INF/services/s.S": "b.B\n"}
    jars = [_jar(tmp_path / "1.jar", one), _jar(tmp_path / "2.jar", two)]
    jobserver._merge(jars, tmp_path / "all.jar")
    with zipfile.ZipFile(tmp_path / "all.jar") as merged:
        found = {n: merged.read(n).decode() for n in merged.namelist()}
    assert found.pop("META-INF/services/s.S").split() == ["a.A", "b.B"]
    assert found == {"a/A.class": "1", "b/B.class": "3"}


def test_a_jar_by_path_url_or_not_at_all(tmp_path: Path) -> None:
    jar, cache = _jar(tmp_path / "j.jar", {"a": ""}), tmp_path / "cache"
    assert jobserver.job_server(str(jar), lambda v: RUNNER, cache).jar == jar
    by_url = jobserver.job_server(jar.as_uri(), lambda v: RUNNER, cache)
    assert by_url.jar.read_bytes() == jar.read_bytes()
    assert list(cache.iterdir()) == [cache / "j.jar"]
    for wanted in (str(tmp_path / "no.jar"), (tmp_path / "no.jar").as_uri()):
        with pytest.raises(jobserver.UnavailableError, match=r"no\.jar"):
            jobserver.job_server(wanted, lambda v: RUNNER, cache)


@pytest.mark.parametrize("engine", ["flink", "spark"])
def test_without_java_the_script_says_so(tmp_path: Path, engine: str) -> None:
    """Exit code 77, one line, nothing left."""
    jar = _jar(tmp_path / "j.jar", {"a": ""})
    for name in ("apache-flink-libraries-2.2.1", "pyspark-3.5.9"):
        (tmp_path / "cache" / name / "pyspark").mkdir(parents=True)
    command = [sys.executable, str(ROOT / "deploy" / f"{engine}.py"), "up"]
    command += ["--job-server", str(jar), "--cache", str(tmp_path / "cache")]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path / "f")],
        env={"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path / "nowhere")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 77
    assert (
        done.stderr
        == f"{engine} can't be started here: no Java: install a JRE 17 or set JAVA_HOME\n"
    )
    assert not (tmp_path / "f" / "cluster.json").exists()
