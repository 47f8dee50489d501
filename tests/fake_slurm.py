"""Plays `sbatch`, `squeue`, `scancel` and `scontrol`, with processes of this machine as jobs.

`sbatch` and the others are scripts that call this one by their name. What there is of jobs lies in
the folder FAKE_SLURM: `JOB.json`, and `JOB_ELEMENT` with its state and process. Files in it that
tests make: `away`, the controller does not answer; `requeue`, jobs that are killed start again;
`late`, they are said to have reached their time limit; `full`, no job starts.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PLACE = Path(os.environ["FAKE_SLURM"])
ENDED = {0: "COMPLETED"}


def main() -> None:
    tool, *words = sys.argv[1:]
    if (PLACE / "away").exists():
        sys.exit(f"{tool}: error: Unable to contact slurm controller (connect failure)")
    {"sbatch": sbatch, "squeue": squeue, "scancel": scancel, "scontrol": scontrol, "serve": serve}[
        tool
    ](words)


def scontrol(words: list[str]) -> None:
    print(f"MaxArraySize            = {os.environ.get('FAKE_ARRAY', 1001)}")


def sbatch(words: list[str]) -> None:
    script = sys.stdin.read()
    given = shlex.split(" ".join(re.findall("^#SBATCH (.*)", script, re.M)))
    options = dict(each.removeprefix("--").partition("=")[::2] for each in given)
    _, last, _, limit = re.fullmatch(r"(\d+)-(\d+)(%(\d+))?", options["array"]).groups()  # type: ignore[union-attr]
    if options.get("partition", "main") != "main":
        sys.exit(f"sbatch: error: invalid partition specified: {options['partition']}")
    if int(last) >= int(os.environ.get("FAKE_ARRAY", 1001)):
        sys.exit("allocation failure: Invalid job array specification")
    if words == ["--test-only"]:
        return
    job = 1 + len(list(PLACE.glob("*.json")))
    limit = int(limit or 1 << 20)
    facts = {"script": script, "options": options, "elements": int(last) + 1, "limit": limit}
    for element in range(facts["elements"]):
        note(job, element, "PENDING", "Resources")
    (PLACE / f"{job}.json").write_text(json.dumps(facts))
    command = [sys.executable, __file__, "serve", str(job)]
    streams: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    subprocess.Popen(command, start_new_session=True, **streams)
    print(f"{job};fake")


def note(job: int, element: int, state: str, reason: str = "None", process: int = 0) -> None:
    part = PLACE / f".{job}_{element}"
    part.write_text(f"{state}|{reason}|{process}")
    part.replace(PLACE / f"{job}_{element}")


def named(name: str) -> list[int]:
    """Numbers of the jobs of a name."""
    facts = {int(path.stem): json.loads(path.read_text()) for path in PLACE.glob("*.json")}
    return [job for job, each in sorted(facts.items()) if each["options"]["job-name"] == name]


def elements(job: int) -> dict[str, list[str]]:
    """State, reason and process of each element."""
    return {path.name: path.read_text().split("|") for path in PLACE.glob(f"{job}_*")}


def squeue(words: list[str]) -> None:
    (name,) = (word.removeprefix("--name=") for word in words if word.startswith("--name="))
    for job in named(name):
        for element, (state, reason, _) in elements(job).items():
            if "all" in words or state in " ".join(words):
                print(f"{element}|{state}|{reason}")


def scancel(words: list[str]) -> None:
    for job in named(words[0].removeprefix("--name=")):
        (PLACE / f"{job}.cancelled").touch()
    until = time.monotonic() + 20
    while time.monotonic() < until and any(
        state in ("PENDING", "RUNNING")
        for job in named(words[0].removeprefix("--name="))
        for state, *_ in elements(job).values()
    ):
        time.sleep(0.05)


def serve(words: list[str]) -> None:
    """Run the elements of a job, as many at the same time as it says."""
    job = int(words[0])
    facts = json.loads((PLACE / f"{job}.json").read_text())
    waiting, running = list(range(facts["elements"])), {}
    restarts = dict.fromkeys(waiting, 0)
    while waiting or running:
        cancelled = (PLACE / f"{job}.cancelled").exists()
        limit = 0 if (PLACE / "full").exists() else facts["limit"]
        while waiting and (cancelled or len(running) < limit):
            element = waiting.pop(0)
            if cancelled:
                note(job, element, "CANCELLED")
                continue
            running[element] = start(job, element, facts, restarts[element])
        for element, process in list(running.items()):
            if cancelled:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if process.poll() is None:
                continue
            del running[element]
            if process.returncode < 0 and not cancelled and (PLACE / "requeue").exists():
                restarts[element] += 1
                waiting.append(element)
                note(job, element, "PENDING", "BeginTime")
            else:
                late = process.returncode < 0 and (PLACE / "late").exists()
                ended = "CANCELLED" if cancelled else "TIMEOUT" if late else ""
                note(job, element, ended or ENDED.get(process.returncode, "FAILED"))
        time.sleep(0.02)


def start(job: int, element: int, facts: dict[str, Any], restarts: int) -> subprocess.Popen[bytes]:
    options = facts["options"]
    own = {"SLURM_ARRAY_JOB_ID": str(job), "SLURM_ARRAY_TASK_ID": str(element)}
    own |= {"SLURM_CPUS_PER_TASK": options["cpus-per-task"]}
    own |= {"SLURM_RESTART_COUNT": str(restarts)} if restarts else {}
    log = options["output"].replace("%A", str(job)).replace("%a", str(element)).replace("%%", "%")
    with open(log, "ab") as sink:
        process = subprocess.Popen(
            ["bash", "-c", facts["script"]],
            env=os.environ | own,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    note(job, element, "RUNNING", process=process.pid)
    return process


if __name__ == "__main__":
    main()
