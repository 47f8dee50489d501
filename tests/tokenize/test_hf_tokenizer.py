"""Tokenizers of Hugging Face: ids as the library gives them, in the stage and outside."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.errors import ConfigError, InputError
from curation.tokenize import TokenShards, load_tokenizer
from curation.tokenize.hf_tokenizer import HuggingFaceTokenizer
from curation.tokenize.tokenizer import load_ranks
from pipelines.cli import main

tokenizers = pytest.importorskip("tokenizers")

TEXTS = [
    "The ferry left the harbour at six.\n\nThe gulls went with it.\n",
    "Größe, 木の葉 and <s> are text.\n",
    "",
    "def f(x):\n    return x + 1\n",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level BPE with a begin and an end token and no pad token, as many models have it."""
    from tokenizers import decoders, models, pre_tokenizers, trainers

    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train_from_iterator(TEXTS, trainer)
    made.enable_truncation(4)  # files often ask for it; documents are whole all the same
    folder = tmp_path_factory.mktemp("hf") / "small"
    folder.mkdir()
    made.save(str(folder / "tokenizer.json"))
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": None}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def test_ids_are_the_librarys(folder: Path) -> None:
    loaded = load_tokenizer(str(folder))
    assert isinstance(loaded, HuggingFaceTokenizer) and loaded.name == "small"
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    library.no_truncation()
    library.encode_special_tokens = True
    ids, bounds = loaded.encode_batch(pa.array([*TEXTS, None], pa.large_string()))
    for k, text in enumerate([*TEXTS, ""]):
        expected = library.encode(text, add_special_tokens=False).ids
        assert ids[bounds[k] : bounds[k + 1]].tolist() == expected == loaded.encode(text)
        assert loaded.decode(expected) == text
        ends = loaded.token_ends(text)
        assert len(ends) == len(expected) and (not text or ends[-1] == len(text.encode()))
    assert not loaded.is_special(ids).any()  # the name of a mark in a text is text
    assert loaded.is_special(np.array([loaded.bos, loaded.eos, ids[0]])).tolist() == [1, 1, 0]
    assert loaded.pad == loaded.eos
    assert loaded.encode_batch(["a\ud800b"])[0].tolist() == loaded.encode("a\ufffdb")
    assert loaded.encode_batch([])[0].tolist() == []
    with pytest.raises(InputError, match="has no id 100000"):
        loaded.decode([100_000])


@pytest.mark.parametrize("name", ["", "tokenizer.json"])
def test_a_run_with_a_tokenizer_of_ones_own(
    folder: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = [text for text in TEXTS if text]
    pq.write_table(pa.table({"text": texts, "domain": ["general"] * len(texts)}), "t.parquet")
    setting = f"tokenize.tokenizer={folder / name}"
    arguments = [
        "run",
        "llama3",
        "--stages",
        "mix,tokenize",
        "--input",
        "t.parquet",
        "--output",
        "out",
    ]
    arguments += ["--set", setting, "--set", "tokenize.context_length=128", "--workers", "0"]
    assert main([*arguments, "--quiet", "--set", "mix.domains.general.max_epochs=1"]) == 0
    loaded = load_tokenizer(str(folder))
    (row,) = {tuple(row) for batch in TokenShards("out/tokenize", 1, epochs=1) for row in batch}
    parts = np.split(np.array(row), np.flatnonzero(np.array(row) == loaded.bos))[1:]
    read = {loaded.decode(part[(part != loaded.bos) & (part != loaded.eos)]) for part in parts}
    assert read == set(texts)
    documents = pq.read_table("out/mix/documents").to_pylist()
    assert {d["tokens"] for d in documents} == {len(loaded.encode(t)) + 2 for t in texts}
    assert main(["verify", "--run", "out", "--sample", "1"]) == 0


def test_what_is_missing_is_named(folder: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    with pytest.raises(ConfigError, match=r"no bos token: name it as `bos_token`.*tokenize.bos"):
        _ = load_tokenizer(str(bare)).bos
    with pytest.raises(ConfigError, match="no pad token"):
        _ = load_tokenizer(str(bare)).pad
    (bare / "tokenizer_config.json").write_text('{"bos_token": "<none>"}')
    with pytest.raises(InputError, match="bos_token '<none>' is not a token"):
        HuggingFaceTokenizer(bare / "tokenizer.json")
    (bare / "tokenizer.json").write_text('{"version": 1}')
    with pytest.raises(InputError, match="not a Hugging Face tokenizer"):
        HuggingFaceTokenizer(bare / "tokenizer.json")
    with pytest.raises(ConfigError, match="vocabulary by rank"):
        load_ranks(folder)


def test_a_run_that_can_not_mark_documents_ends_before_it_begins(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    pq.write_table(pa.table({"text": TEXTS}), "t.parquet")
    arguments = ["tokenize", "--input", "t.parquet", "--output", "out", "--workers", "0", "--quiet"]
    assert main([*arguments, "--set", "tokenize.tokenizer=tokenizer.json"]) == 2
    assert "no bos token" in capsys.readouterr().err and not Path("out").exists()
