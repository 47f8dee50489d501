"""What manifests state of the software is installed with the toolkit itself."""

from __future__ import annotations

import importlib.metadata
import re

from pipelines.facts import _PACKAGES


def test_stages_name_only_packages_that_every_installation_has() -> None:
    required = importlib.metadata.requires("curation") or []
    always = {re.split(r"[^A-Za-z0-9._-]", r)[0].lower() for r in required if "extra ==" not in r}
    assert {"pyarrow", *(p for names in _PACKAGES.values() for p in names)} <= always
