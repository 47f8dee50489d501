"""FineWeb's pipeline in datatrove, in an interpreter of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from curation import resources
from curation.readers.charset import decode_html
from yields.pages import Page
from yields.runs import Fate


def datatrove(python: Path, pages: Sequence[Page], folder: Path) -> dict[str, Fate]:
    """Return what FineWeb's pipeline makes of the pages, by key; run it where it has not been."""
    answer = folder / "datatrove.jsonl"
    if not answer.exists():
        sent = folder / "datatrove-pages.jsonl"
        with sent.open("w", encoding="utf-8") as file:
            for page in pages:
                row = {"key": page.key, "url": page.url}
                if page.html is None:
                    row["text"] = page.text or ""
                else:
                    row["html"] = decode_html(page.html, None)[0]
                file.write(json.dumps(row) + "\n")
        model = resources.resolve("builtin:models/language/lid.176.ftz")
        script = Path(__file__).parents[1] / "datatrove_fineweb.py"
        command = [str(python), str(script), str(sent), str(answer), "--language-model", model]
        subprocess.run(command, check=True, env={**os.environ, "HF_HOME": str(folder / "hf")})
        sent.unlink()
    with answer.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row.pop("key"): Fate(**row) for row in rows}
