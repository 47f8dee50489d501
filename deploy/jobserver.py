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
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

CENTRAL = "https://repo1.maven.org/maven2"


class UnavailableError(Exception):
    """Something that the engine needs can't be had here."""


@dataclass(frozen=True)
class Runner:
    """What an engine's job server is called."""

    artifact: str  # of the runner; its job server adds `-job-server`
    main_class: str


@dataclass(frozen=True)
class JobServer:
    """What to start, and for which version of Beam it was made."""

    jar: Path
    main_class: str
    beam_version: str


def beam_version() -> str:
    return version("apache-beam")


def job_server(wanted: str, runner: Runner, cache: Path) -> JobServer:
    """The job server by path, URL or `maven:VERSION`; by default Maven Central's.

    Raises UnavailableError when it can't be had.
    """
    beam = beam_version()
    if wanted.startswith("maven:"):
        beam = wanted.removeprefix("maven:")
        return JobServer(_assembled(runner, beam, cache), runner.main_class, beam)
    if wanted and "://" not in wanted:
        if not Path(wanted).exists():
            raise UnavailableError(f"--job-server: {wanted}: no such file")
        jar = Path(wanted).absolute()
    else:
        name = f"{runner.artifact}-job-server"
        url = wanted or f"{CENTRAL}/org/apache/beam/{name}/{beam}/{name}-{beam}.jar"
        jar = download(url, cache)
    return JobServer(jar, runner.main_class, beam)


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
