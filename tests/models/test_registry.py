"""Model files: cards, checksums, and one clear line when a file is absent or wrong."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from curation import resources
from curation.classify import classify_settings
from curation.errors import ConfigError
from curation.language import language_settings
from curation.models import ModelFile, list_models, locate
from curation.stages import find


def test_every_card_matches_its_files() -> None:
    cards = {c.name: c for c in list_models().values()}
    assert {"language", "quality", "domain", "topic", "format"} <= set(cards)
    for name in ("language", "quality", "domain", "topic", "format"):
        card = cards[name]
        content = (resources.root() / "models" / name / card.file).read_bytes()
        assert hashlib.sha256(content).hexdigest() == card.sha256
        assert card.licence and card.source and card.version


def test_default_models_are_the_cards() -> None:
    cards = {c.name: c.sha256 for c in list_models().values()}
    assert find("identify-language").models(language_settings.default_settings(), {}) == {
        "model": cards["language"],
        "corrector": cards["corrector"],
    }
    assert find("classify").models(classify_settings.default_settings(), {}) == {
        name: cards[name] for name in ("quality", "domain", "topic", "format")
    }


def test_wrong_checksum() -> None:
    wrong = ModelFile(path="builtin:models/quality/quality.npz", sha256="0" * 64)
    with pytest.raises(ConfigError, match=r"wrong model file: sha256 \w{64}, expected 0{64}"):
        locate(wrong)


def test_missing_files(tmp_path: Path) -> None:
    for path in (str(tmp_path / "none.npz"), "builtin:models/none/none.npz"):
        with pytest.raises(ConfigError, match=r"none\.npz: no such"):
            locate(ModelFile(path=path, sha256=None))


def test_a_local_file_is_stated_with_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(b"abc")
    assert locate(ModelFile(path=str(path), sha256=None)) == (
        path,
        hashlib.sha256(b"abc").hexdigest(),
    )


def test_urls_need_a_checksum_and_are_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "model.npz"
    path.write_bytes(b"abc")
    url, right = f"file://{path}", hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(ConfigError, match="needs its sha256"):
        locate(ModelFile(path=url, sha256=None))
    with pytest.raises(ConfigError, match="wrong model file"):
        locate(ModelFile(path=url, sha256="1" * 64))
    with pytest.raises(ConfigError, match="can't be read"):
        locate(ModelFile(path=f"{url}.absent", sha256=right))
    copy, found = locate(ModelFile(path=url, sha256=right))
    assert found == right and copy.read_bytes() == b"abc" and copy != path
    assert [p.name for p in copy.parent.iterdir()] == [copy.name]  # no partial files left


def test_a_failed_download_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    absent = ModelFile(path=f"file://{tmp_path}/none.npz", sha256="a" * 64)
    counts = []
    for _ in range(3):
        with pytest.raises(ConfigError, match="can't be read"):
            locate(absent)
        counts.append(len(list(Path("/dev/fd").iterdir())))
    assert len(set(counts[1:])) == 1
