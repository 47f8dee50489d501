"""Collect the facts of a run from its manifests, timings and documents."""

from __future__ import annotations

import functools
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from curation.config import parse_yaml
from curation.credentials import redact
from curation.errors import InputError, first_line
from curation.resources import root
from pipelines.reading.funnel import counts
from pipelines.report.alarms import Alarms, alarms
from pipelines.run_folder import REPORT_DATA, load_run
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest


def collect(
    directory: str, command: str | None = None, all_documents: bool = False
) -> dict[str, Any]:
    """Return the facts of a run: `counts`, and its documents (`pipelines.report.documents`).

    Also `command` (the run's, as given or as in an earlier report), `software`, `inputs`, `written`
    (a time) and `alarms`. For large runs, documents are read from a sample of files unless
    `all_documents`. Raises ConfigError if the folder is not a run.
    """
    from pipelines.report.documents import documents, nothing

    facts = counts(directory)
    folder, stages = load_run(directory)
    first, last = (read_manifest(folder / stage) for stage in (stages[0], stages[-1]))
    limits = _limits()
    try:
        read = documents(directory, None if all_documents else limits["documents"])
    except (OSError, pa.ArrowException, InputError) as error:
        read = nothing()
        reason = first_line(error)
        facts["problems"].append(f"documents can't be read ({reason}); see curate verify")
    return {
        **facts,
        "command": redact(command) if command else _command_before(folder, facts["root"]),
        "software": last["software"],
        "inputs": [file["name"] for file in first.get("inputs", [])],
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "alarms": alarms(facts, Alarms(**limits["alarms"])),
        "documents": read,
    }


def _command_before(folder: Folder, root_before: str) -> str | None:
    """Return the command in an earlier report of the same run."""
    try:
        before = json.loads(folder.read_bytes(REPORT_DATA))
        return before["command"] if before["root"] == root_before else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@functools.cache
def _limits() -> dict[str, Any]:
    path = root() / "configs" / "report.yaml"
    return parse_yaml(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
