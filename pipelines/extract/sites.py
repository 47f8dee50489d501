"""The index of site files that `extract` queries, in the temporary folder of each machine."""

import functools
import os
import tempfile
from pathlib import Path

from curation.extract.extract_settings import ExtractSettings, SiteFileSettings
from curation.readers.settings import ReaderSettings
from curation.rights.sites import SiteIndex, build_index, read_site_files
from curation.stages import find
from pipelines.named_files import check_named_files, stage_facts
from pipelines.storage.files import fingerprint


def sites_key(settings: ExtractSettings) -> str:
    """Return the fingerprint of site files outside a run; empty if there are none.

    Raises ConfigError if a file is missing.
    """
    if not settings.rights.files:
        return ""
    stage = find("extract")
    check_named_files(stage, settings)
    return fingerprint([settings.rights.model_dump(), stage_facts(stage, settings, {})["lists"]])


def load_sites(key: str, settings: SiteFileSettings, readers: ReaderSettings) -> SiteIndex:
    """Return the index, opened once per process; the first process of a machine builds it.

    Raises InputError if a file can't be read or contains no site files.
    """
    return _load(key, settings.model_dump_json(round_trip=True), readers.model_dump_json())


@functools.lru_cache(maxsize=2)
def _load(key: str, settings: str, readers: str) -> SiteIndex:
    named = SiteFileSettings.model_validate_json(settings)
    path = Path(tempfile.gettempdir()) / f"curation-sites-{os.getuid()}-{key}.sqlite"
    if not path.exists():
        files = read_site_files(named.files, ReaderSettings.model_validate_json(readers))
        build_index(files, named.agents, path)
    return SiteIndex(path)
