"""Ranks of quality within a language."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from curation.classify.classifier import Classifier
from curation.classify.classify_settings import ClassifySettings, default_settings
from curation.classify.decide import decide
from curation.classify.ranking import load
from curation.errors import ConfigError
from curation.models import ModelFile
from curation.stages import find
from pipelines.cli import main


@pytest.fixture
def ranking(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    for part in range(2):
        table = pa.table(
            {
                "language": ["de"] * 400 + ["so"] * 300 + ["xx"] * 3 + [None],
                "quality": pa.array(
                    np.concatenate([random.random(400), random.random(300) / 10, [0.5] * 3, [0.5]]),
                    pa.float32(),
                ),
            }
        )
        pq.write_table(table, tmp_path / f"{part}.parquet")
    command = ["train", "ranking", "--input", str(tmp_path / "*.parquet"), "--output"]
    assert main([*command, str(tmp_path / "a")]) == 0
    assert main([*command, str(tmp_path / "b")]) == 0
    assert (tmp_path / "a" / "ranking.npz").read_bytes() == (
        tmp_path / "b" / "ranking.npz"
    ).read_bytes()
    return tmp_path / "a" / "ranking.npz"


def test_ranks_are_shares_of_the_language(ranking: Path) -> None:
    found = load(ModelFile(path=str(ranking), sha256=None))
    assert found.languages == ("de", "so")
    quality = pa.array([0.05, 0.05, 0.05, 0.05, 0.0, 1.0], pa.float32())
    ranks = found.rank(quality, pa.array(["de", "so", "xx", None, "so", "so"])).to_pylist()
    assert ranks[0] == pytest.approx(0.05, abs=0.03)
    assert ranks[1] == pytest.approx(0.5, abs=0.06)
    assert ranks[2] == ranks[3] == pytest.approx((0.05 * 4 + 0.5 * 3) / 7, abs=0.05)
    assert ranks[4] < 0.01 and ranks[5] == 1.0
    assert found.rank(quality[:0], pa.array([], pa.string())).to_pylist() == []


def test_documents_are_removed_by_rank(ranking: Path) -> None:
    base = default_settings().model_dump()
    file = {"path": str(ranking), "sha256": None}
    with pytest.raises(ValidationError, match="min_rank needs a ranking"):
        ClassifySettings.model_validate(base | {"min_rank": {"general": 0.1}})
    chosen = ClassifySettings.model_validate(
        base | {"ranking": file, "min_rank": {"multilingual": 0.5}, "min_quality": {}}
    )
    assert "ranking" in find("classify").models(chosen, {})
    texts = ["Die Ernte war gut in diesem Jahr.", "Ein Satz über die Ernte."]
    result = Classifier(chosen).apply(texts, pa.array(["so", "en"]))
    assert result.rank is not None and result.rank.type == pa.float32()
    low = result.rank[0].as_py() < 0.5
    reasons = decide(result, chosen).reason.to_pylist()
    assert reasons == ["quality.low_rank" if low else None, None]


def test_a_file_that_is_no_ranking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "noise.npz").write_bytes(b"noise")
    with pytest.raises(ConfigError, match=r"noise\.npz: not a quality ranking: "):
        load(ModelFile(path=str(tmp_path / "noise.npz"), sha256=None))
    pq.write_table(pa.table({"quality": [0.5]}), tmp_path / "x.parquet")
    command = ["train", "ranking", "--input", str(tmp_path / "x.parquet"), "--output"]
    assert main([*command, str(tmp_path / "out")]) != 0
    assert "no column 'language'" in capsys.readouterr().err
