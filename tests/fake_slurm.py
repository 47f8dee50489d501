"""Plays `sbatch`, `squeue`, `scancel` and `scontrol`, with processes of this machine as jobs.

`sbatch` and the others are scripts that call this one by their name, hundreds of times: it
imports little for them. What there is of jobs lies in the folder FAKE_SLURM: `JOB.json`, and
`JOB_ELEMENT` with state, reason, process and name of the job. `control` runs them. Files in it that
tests make: `away`, the controller does not answer; `requeue`, jobs that are killed start again;
`late`, they are said to have reached their time limit; `full`, no job starts; `over`, all end.

A new Python takes seconds to import what a worker needs. The process that is forked for a job runs
its script, in which `worker` may stand for Python: it notes what it was given and ends, and the
process goes on as the worker, with that environment.
"""

from __future__ import annotations

import os
import sys
import time

PLACE = os.environ.get("FAKE_SLURM", "")
ENDED = {0: "COMPLETED"}
WORKER = '#!/bin/sh\n{ printf "%s\\0" "$3"; env -0; } >"$GIVEN"\n'


def main() -> None:
    tool, *words = sys.argv[1:]
    if exists("away"):
        sys.exit(f"{tool}: error: Unable to contact slurm controller (connect failure)")
    {"sbatch": sbatch, "squeue": squeue, "scancel": scancel, "scontrol": scontrol}[tool](words)


def exists(name: str) -> bool:
    return os.path.exists(f"{PLACE}/{name}")


def scontrol(words: list[str]) -> None:
    print(f"MaxArraySize            = {os.environ.get('FAKE_ARRAY', 1001)}")


def sbatch(words: list[str]) -> None:
    import json
    import re
    import shlex

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
    job = 1 + sum(name.endswith(".json") for name in os.listdir(PLACE))
    limit = int(limit or 1 << 20)
    facts = {"script": script, "options": options, "elements": int(last) + 1, "limit": limit}
    facts["variables"] = {**os.environ}
    for element in range(facts["elements"]):
        note(job, element, options["job-name"], "PENDING", "Resources")
    write(f"{job}.json", json.dumps(facts))
    print(f"{job};fake")


def write(name: str, text: str) -> None:
    """Write a file that is whole when it appears."""
    with open(f"{PLACE}/.{name}", "w") as file:
        file.write(text)
    os.replace(f"{PLACE}/.{name}", f"{PLACE}/{name}")


def note(
    job: int, element: int, name: str, state: str, reason: str = "None", process: int = 0
) -> None:
    write(f"{job}_{element}", f"{state}|{reason}|{process}|{name}")


def elements(name: str) -> dict[str, list[str]]:
    """State, reason and process of each element of the jobs of a name."""
    found = {}
    for file in sorted(os.listdir(PLACE)):
        if "_" in file and file[0] != ".":
            with open(f"{PLACE}/{file}") as text:
                *facts, own = text.read().split("|")
            if own == name:
                found[file] = facts
    return found


def squeue(words: list[str]) -> None:
    (name,) = (word.removeprefix("--name=") for word in words if word.startswith("--name="))
    for element, (state, reason, _) in elements(name).items():
        if "all" in words or state in " ".join(words):
            print(f"{element}|{state}|{reason}")


def scancel(words: list[str]) -> None:
    name, until = words[0].removeprefix("--name="), time.monotonic() + 20
    for element in elements(name):
        write(f"{element.partition('_')[0]}.cancelled", "")
    while time.monotonic() < until and any(
        state in ("PENDING", "RUNNING") for state, *_ in elements(name).values()
    ):
        time.sleep(0.05)


class Job:
    """An array: runs its elements, as many at the same time as it says."""

    def __init__(self, number: int) -> None:
        import json

        with open(f"{PLACE}/{number}.json") as file:
            facts = json.load(file)
        self.number, self.script, self.options = number, facts["script"], facts["options"]
        self.variables = facts["variables"]
        self.limit, self.waiting = facts["limit"], [*range(facts["elements"])]
        self.running: dict[int, int] = {}
        self.restarts = dict.fromkeys(self.waiting, 0)

    def note(self, element: int, state: str, *others: object) -> None:
        note(self.number, element, self.options["job-name"], state, *others)  # type: ignore[arg-type]

    def attend(self, over: bool) -> None:
        """Start what may start, and note what has ended."""
        cancelled = over or exists(f"{self.number}.cancelled")
        limit = 0 if exists("full") else self.limit
        while self.waiting and (cancelled or len(self.running) < limit):
            element = self.waiting.pop(0)
            if cancelled:
                self.note(element, "CANCELLED")
            else:
                self.running[element] = process = self.start(element)
                self.note(element, "RUNNING", "None", process)
        for element, process in [*self.running.items()]:
            if cancelled:
                os.killpg(process, 9)
            ended, status = os.waitpid(process, 0 if cancelled else os.WNOHANG)
            if not ended:
                continue
            del self.running[element]
            code = os.waitstatus_to_exitcode(status)
            if code < 0 and not cancelled and exists("requeue"):
                self.restarts[element] += 1
                self.waiting.append(element)
                self.note(element, "PENDING", "BeginTime")
            else:
                late = code < 0 and exists("late")
                state = "CANCELLED" if cancelled else "TIMEOUT" if late else ""
                self.note(element, state or ENDED.get(code, "FAILED"))

    def start(self, element: int) -> int:
        """Fork a process that leads a group of its own."""
        job, process = str(self.number), os.fork()
        if process:
            os.setpgid(process, process)
            with open(f"{PLACE}/groups", "a") as file:
                file.write(f"{process}\n")
            return process
        os.setpgid(0, 0)
        os.environ.clear()
        os.environ |= self.variables | {"SLURM_ARRAY_JOB_ID": job}
        os.environ["SLURM_ARRAY_TASK_ID"] = str(element)
        os.environ["SLURM_CPUS_PER_TASK"] = self.options["cpus-per-task"]
        if restarts := self.restarts[element]:
            os.environ["SLURM_RESTART_COUNT"] = str(restarts)
        log = self.options["output"].replace("%A", job).replace("%a", str(element))
        sink = os.open(log.replace("%%", "%"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream, file in enumerate((os.open(os.devnull, os.O_RDONLY), sink, sink)):
            os.dup2(file, stream)
        code = 1
        try:
            code = work(self.script, f"{PLACE}/.{job}_{element}.given")
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)


def work(script: str, given: str) -> int:
    """Run a script; be the worker that it would run."""
    import subprocess

    from pipelines.runners import slurm
    from tests.engine.toys import fork_children

    done = subprocess.run(["bash", "-c", script], env=os.environ | {"GIVEN": given}, check=False)
    if done.returncode or not os.path.exists(given):
        return done.returncode
    with open(given) as file:
        place, *variables = file.read().rstrip("\0").split("\0")
    os.remove(given)
    os.environ.clear()
    os.environ.update(variable.split("=", 1) for variable in variables)
    if change := os.environ.get("FAKE_CHANGE"):
        name, seconds = change.split("=")
        setattr(slurm, name, float(seconds))
    fork_children()
    sys.argv = ["slurm", place]
    slurm.main()
    return 0


def control(place: str) -> None:
    """Run the jobs of a cluster until it is over, in a process that has imported all."""
    global PLACE
    PLACE = place
    os.chdir(os.path.dirname(os.path.dirname(__file__)))
    jobs: dict[str, Job] = {}
    over = False
    while not over:
        over = exists("over")
        for name in os.listdir(place):
            if name.endswith(".json") and name[0] != "." and name not in jobs:
                jobs[name] = Job(int(name.removesuffix(".json")))
        for job in jobs.values():
            job.attend(over)
        time.sleep(0.02)


if __name__ == "__main__":
    main()
