"""The data set card of the Hugging Face Hub: README.md with its metadata in front."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from curation.summary.figures import Figure

#: Size categories of the Hub, by documents below the number.
_SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
    (10**8, "10M<n<100M"),
    (10**9, "100M<n<1B"),
    (10**10, "1B<n<10B"),
    (10**11, "10B<n<100B"),
    (10**12, "100B<n<1T"),
)
_LARGEST = "n>1T"
#: Codes that the Hub takes: ISO 639-1 to 639-3.
_CODE = re.compile(r"[a-z]{2,3}")


def metadata(
    name: str, folder: str, figures: Mapping[str, Figure], answers: Mapping[str, str]
) -> dict[str, Any]:
    """Return the metadata of the card."""
    documents = figures["size"].value("documents")
    rows = figures["by_language"].rows if "by_language" in figures else ()
    codes = (_CODE.match(row[0]) for row in rows)
    languages = sorted({code[0] for code in codes if code})
    return {
        "pretty_name": name,
        "license": answers.get("hub_licence", "unknown"),
        **({"language": languages} if languages else {}),
        "task_categories": ["text-generation"],
        "size_categories": [next((s for limit, s in _SIZES if documents < limit), _LARGEST)],
        "tags": ["curation", "pretraining"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": "train", "path": f"{folder}/*.parquet"}],
            }
        ],
    }


def card(head: Mapping[str, Any], body: str) -> str:
    """Return README.md: metadata, and the body in Markdown."""
    front = yaml.safe_dump(dict(head), sort_keys=False, allow_unicode=True)
    return f"---\n{front}---\n\n{body}"
