"""The committed page is what its sources build."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.conftest import ROOT

_WEB = ROOT / "pipelines/view/web"


@pytest.mark.skipif(
    shutil.which("npm") is None or not (_WEB / "node_modules").exists(),
    reason="npm is not here, or `npm ci` wasn't run in pipelines/view/web",
)
def test_the_committed_page_is_what_the_sources_build() -> None:
    done = subprocess.run(["npm", "run", "check"], cwd=_WEB, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_is_small() -> None:
    assert sum(path.stat().st_size for path in (ROOT / "pipelines/view/static").iterdir()) < 120_000
