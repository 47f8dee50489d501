"""Beam's job servers: where their jars come from.

Beam publishes for each engine one jar that holds everything. Where a Maven repository lacks it
(some mirrors do), Maven puts the same together from the runner and what it depends on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

CENTRAL = "https://repo1.maven.org/maven2"


class UnavailableError(Exception):
    """Something that the engine needs can't be had here."""


#: Put together where the job server of the installed Beam can't be had: an older release speaks the
#: same protocol with its workers.
_OLDER = "2.62.0"


@dataclass(frozen=True)
class Runner:
    """What an engine's job server is called."""

    artifact: str  # of the runner; its job server adds `-job-server`
    main_class: str


@dataclass(frozen=True)
class JobServer:
    """What to start, and for which version of Beam it was made."""

    jar: Path
    runner: Runner
    beam_version: str


def beam_version() -> str:
    return version("apache-beam")


def job_server(wanted: str, runner_of: Callable[[str], Runner], cache: Path) -> JobServer:
    """The job server by path, URL or `maven:VERSION`; else Maven Central's, or put together.

    `runner_of` gives the runner of a version of Beam. Raises UnavailableError.
    """
    if wanted:
        return _wanted(wanted, runner_of, cache)
    runner = runner_of(beam_version())
    name = f"{runner.artifact}-job-server"
    url = f"{CENTRAL}/org/apache/beam/{name}/{beam_version()}/{name}-{beam_version()}.jar"
    try:
        return _wanted(url, runner_of, cache)
    except UnavailableError as error:
        print(f"{error}; trying the parts of {_OLDER} with mvn", file=sys.stderr, flush=True)
        try:
            return _wanted(f"maven:{_OLDER}", runner_of, cache)
        except UnavailableError as other:
            raise UnavailableError(f"{error}; {other}") from None


def _wanted(wanted: str, runner_of: Callable[[str], Runner], cache: Path) -> JobServer:
    if wanted.startswith("maven:"):
        beam = wanted.removeprefix("maven:")
        return JobServer(_assembled(runner_of(beam), beam, cache), runner_of(beam), beam)
    runner = runner_of(beam_version())
    if "://" in wanted:
        return JobServer(download(wanted, cache), runner, beam_version())
    if not Path(wanted).exists():
        raise UnavailableError(f"--job-server: {wanted}: no such file")
    return JobServer(Path(wanted).absolute(), runner, beam_version())


def download(url: str, cache: Path) -> Path:
    """A file of the web, once. Raises UnavailableError."""
    target = cache / url.rsplit("/", 1)[-1]
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}.part")
    try:
        with urllib.request.urlopen(url, timeout=60) as answer, part.open("wb") as file:
            shutil.copyfileobj(answer, file)
        part.replace(target)
    except (urllib.error.URLError, OSError) as error:
        raise UnavailableError(f"{url}: {error}") from error
    finally:
        part.unlink(missing_ok=True)
    return target


_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>curation</groupId><artifactId>job-server</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.beam</groupId><artifactId>{artifact}</artifactId>
<version>{version}</version></dependency></dependencies></project>
"""


def _assembled(runner: Runner, beam: str, cache: Path) -> Path:
    """One jar of the runner and all it depends on but the engine, which the cluster has itself."""
    target = cache / f"{runner.artifact}-assembled-{beam}.jar"
    if target.exists():
        return target
    if not shutil.which("mvn"):
        raise UnavailableError("maven:VERSION needs mvn, which is not installed")
    folder = cache / f"{runner.artifact}-{beam}.{os.getpid()}.part"
    folder.mkdir(parents=True)
    try:
        (folder / "pom.xml").write_text(_POM.format(artifact=runner.artifact, version=beam))
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
        command += ["-DincludeScope=runtime", "-DexcludeGroupIds=org.apache.flink,org.slf4j"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            lines = [line for line in done.stdout.splitlines() if "ERROR" in line]
            raise UnavailableError(f"mvn: {' '.join(lines[:1]) or done.stdout[-500:]}")
        _merge(sorted((folder / "lib").glob("*.jar")), folder / "merged.jar")
        (folder / "merged.jar").replace(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target


def _merge(jars: list[Path], target: Path) -> None:
    """Merge jars: services are joined, of other files the first of a name counts, signatures go."""
    seen: set[str] = set()
    services: dict[str, list[bytes]] = {}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as merged:
        for jar in jars:
            with zipfile.ZipFile(jar) as source:
                for name in source.namelist():
                    if name.startswith("META-INF/services/") and not name.endswith("/"):
                        services.setdefault(name, []).append(source.read(name))
                    elif not _dropped(name) and name not in seen:
                        seen.add(name)
                        merged.writestr(name, source.read(name))
        for name, parts in services.items():
            merged.writestr(name, b"\n".join(parts))


def _dropped(name: str) -> bool:
    signed = name.startswith("META-INF/") and name.endswith((".SF", ".DSA", ".RSA"))
    return signed or name.endswith(("/", "module-info.class")) or name == "META-INF/MANIFEST.MF"


def pip_folder(requirement: str, cache: Path) -> Path:
    """A package of the index, installed into a folder of its own. Raises UnavailableError."""
    target = cache / requirement.replace("==", "-")
    if target.exists():
        return target
    part = cache / f"{target.name}.{os.getpid()}.part"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(part)]
    done = subprocess.run([*command, requirement], capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(part, ignore_errors=True)
        lines = (done.stderr.strip() or "pip failed").splitlines()
        raise UnavailableError(f"pip install {requirement}: {lines[-1]}")
    part.rename(target)
    return target
