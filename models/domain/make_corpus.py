"""Pages of software documentation for the domain model: python models/domain/make_corpus.py OUT

Downloads documentation packages of Debian 12 (`apt-get download`, no root needed), takes up to 40
HTML pages of each, extracts their text and writes JSONL (`text`, `label`, `source`) to OUT, a
.jsonl.gz. Licences are free ones (MIT, BSD, Apache-2.0, GPL, PostgreSQL, public domain); only a
model's weights are distributed, no text.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

from curation.extract import extract

PACKAGES = (
    "apache2-doc bash-doc cmake-doc erlang-doc git-doc nodejs-doc python-attr-doc "
    "python-celery-doc python-click-doc python-django-doc python-flask-doc python-jinja2-doc "
    "python-pandas-doc python-requests-doc python-sqlalchemy-doc python-tornado-doc "
    "python-werkzeug-doc rust-doc sphinx-doc sqlite3-doc"
).split()
LISTS = ("genindex", "py-modindex", "search.html", "/_sources", "/changelog", "NEWS")
PAGES, CANDIDATES = 40, 70
SIZES = range(3_000, 400_000)
CHARACTERS = range(600, 20_001)


def pages_of(package: str, folder: Path) -> list[str]:
    """Texts of some of a package's pages, chosen by the hashes of their names."""
    subprocess.run(["apt-get", "download", package], cwd=folder, check=True, capture_output=True)
    (archive,) = folder.glob(f"{package}_*.deb")
    files = subprocess.run(["dpkg-deb", "--fsys-tarfile", archive], check=True, capture_output=True)
    pages = {}
    with tarfile.open(fileobj=io.BytesIO(files.stdout)) as tar:
        for member in tar:
            listed = any(part in member.name for part in LISTS)
            html = member.name.endswith((".html", ".htm")) and member.size in SIZES
            file = tar.extractfile(member) if member.isfile() and html and not listed else None
            if file is not None:
                pages[member.name] = file.read()
    names = sorted(pages, key=lambda name: hashlib.sha256(name.encode()).digest())
    texts = [extract(pages[name]).text[: CHARACTERS[-1]] for name in names[:CANDIDATES]]
    return [text for text in texts if len(text) in CHARACTERS][:PAGES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        options.out.open("wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as out,
    ):
        for package in PACKAGES:
            for text in pages_of(package, Path(folder)):
                row = {"text": text, "label": "code", "source": f"debian:{package}"}
                out.write(json.dumps(row).encode() + b"\n")


if __name__ == "__main__":
    main()
