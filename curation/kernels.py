"""Where compiled kernels are kept. To be settled before numba is imported, which reads it then."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

_VARIABLE = "NUMBA_CACHE_DIR"


def place_cache(environment: MutableMapping[str, str], package: Path) -> None:
    """Name a temporary folder for kernels in the environment, if no other place can be written.

    Numba keeps them beside their modules, or else in the user's cache, and gives up where neither
    can be written. Processes that start from this one inherit the environment.
    """
    if environment.get(_VARIABLE) or _writable(package / "__pycache__") or _writable(_of_user()):
        return
    folder = Path(tempfile.gettempdir()) / f"curation-kernels-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        ours = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
    except OSError:
        return  # numba says what it lacks
    # A cache is code: a folder that someone else made is left alone.
    environment[_VARIABLE] = str(folder) if ours else tempfile.mkdtemp(prefix="curation-kernels-")


def _of_user() -> Path:
    caches = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    # Not Path.expanduser, which raises where a user has no home.
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(caches)) / "numba"


def _writable(folder: Path) -> bool:
    """Whether files can be written there, in a folder that may be yet to make."""
    there = next(p for p in (folder, *folder.parents) if p.exists())
    return os.access(there, os.W_OK | os.X_OK)
