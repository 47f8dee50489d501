"""Real archives, odd and broken ones among them, where they are at hand."""

from __future__ import annotations

import random
import re

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from curation.readers.ranges import why_whole
from curation.readers.read import read
from curation.readers.records import Damage, Page
from curation.resources import root
from tests.readers.archives import default_settings
from tests.readers.test_archives import check_places
from tests.readers.test_ranges import check

FOLDER = root().parent / "shared/data/warc"
NAME = re.compile(r"\.(warc|arc|wacz)(\.|$)")
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file() and NAME.search(path.name))


def count(records: object) -> int:
    """Records that another tool gives before it ends or fails."""
    found = 0
    try:
        for _ in records:  # type: ignore[attr-defined]
            found += 1
    except Exception:  # its failure is not ours
        pass
    return found


@pytest.mark.skipif(not FILES, reason="the real archives are not here")
def test_no_record_is_lost() -> None:
    fewer = []
    for path in FILES:
        events = list(read(str(path), default_settings()))
        check_places(path, events[:20])
        mine = sum(not isinstance(event, Damage) or event.url is not None for event in events)
        with path.open("rb") as file:
            others = [count(WarcioIterator(file, arc2warc=True)), count(FastIterator(str(path)))]
        if mine < max(others):
            fewer.append((path.name, mine, others))
    assert len(FILES) > 50
    assert not fewer


@pytest.mark.skipif(not FILES, reason="the real archives are not here")
def test_same_pages_from_plain_and_compressed_files() -> None:
    pairs = [(path, path.with_name(path.name + ".gz")) for path in FILES]
    pairs = [(plain, packed) for plain, packed in pairs if packed.is_file()]
    assert pairs
    for plain, packed in pairs:
        if plain.parent.name == "warcs" or plain.parent.parent.name == "test":
            continue  # other captures under the same names
        bodies = [
            [
                event.content
                for event in read(str(path), default_settings())
                if isinstance(event, Page)
            ]
            for path in (plain, packed)
        ]
        assert bodies[0] == bodies[1], plain


@pytest.mark.skipif(not FILES, reason="the real archives are not here")
def test_ranges_of_real_archives() -> None:
    again = []
    for path in FILES:
        if not why_whole(str(path), path.name, default_settings()):
            size = path.stat().st_size
            cuts = [random.Random(k).randrange(size) for k in range(5)]
            again.append(check(path, cuts).again)
    assert len(again) > 40
    assert again.count(0) > len(again) * 0.8
