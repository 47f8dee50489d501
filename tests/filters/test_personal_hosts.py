"""A block list made of what an earlier run counted removes hosts with much personal data."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from curation.filters.blocklists import load
from curation.filters.filter_settings import default_settings
from tests.conftest import ROOT

_LIMIT = "greatest(20, 5 * sum(pages))"


def test_the_list_that_the_docs_make(
    sample_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out1").symlink_to(sample_run)
    (sql,) = re.findall("```sql\\n(.*?)```", (ROOT / "docs/filters.md").read_text(), re.DOTALL)
    assert _LIMIT in sql
    duckdb.sql(sql.partition("--")[0].replace(_LIMIT, "1"))
    hosts = (tmp_path / "personal_data.txt").read_text().split()
    assert hosts
    changes = {"lists": {"personal_data": "personal_data.txt"}, "allow": ()}
    blocked = load(
        type(default_settings().blocklists).model_validate(
            default_settings().blocklists.model_dump() | changes
        )
    )
    found = blocked.check(pa.array([f"https://{hosts[0]}/page", "https://other.example/"]))
    assert found.to_pylist() == ["blocklist.personal_data", None]
