"""A sequence classifier through onnxruntime; the test makes a small one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.classify.classifier import Classifier
from curation.classify.classify_settings import ClassifySettings, default_settings
from curation.classify.onnx import OnnxSettings, batches, load
from curation.errors import ConfigError
from curation.stages import find

WORDS = ["[UNK]", "good", "bad", "text"]
WEIGHTS = np.array([[0.0, 0.0], [5.0, 1.0], [-1.0, 2.0], [1.0, 0.5]], np.float32)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model whose logits are the mean of its words' rows in WEIGHTS, and its tokenizer."""
    onnx = pytest.importorskip("onnx", reason="the test makes a model with the package onnx")
    pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
    tokenizers = pytest.importorskip("tokenizers")
    from onnx import TensorProto, helper, numpy_helper

    folder = tmp_path_factory.mktemp("onnx")
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["n", "t"])
    mask = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["n", "t"])
    out = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 2])
    one = numpy_helper.from_array(np.array([1], np.int64), "one")
    two = numpy_helper.from_array(np.array([2], np.int64), "two")
    least = numpy_helper.from_array(np.array([1.0], np.float32), "least")
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("Cast", ["attention_mask"], ["weight"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["weight", "two"], ["wide"]),
        helper.make_node("Mul", ["rows", "wide"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "one"], ["sums"], keepdims=0),
        helper.make_node("ReduceSum", ["weight", "one"], ["count"], keepdims=1),
        helper.make_node("Max", ["count", "least"], ["some"]),
        helper.make_node("Div", ["sums", "some"], ["logits"]),
    ]
    table = numpy_helper.from_array(WEIGHTS, "table")
    graph = helper.make_graph(nodes, "mean", [ids, mask], [out], [table, one, two, least])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, folder / "model.onnx")
    vocabulary = {w: i for i, w in enumerate(WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder / "model.onnx", folder / "tokenizer.json"


def chosen(files: tuple[Path, Path], **changes: object) -> OnnxSettings:
    named = {"path": None, "sha256": None}
    base = {
        "model": named | {"path": str(files[0])},
        "tokenizer": named | {"path": str(files[1])},
        "max_tokens": 512,
        "batch_tokens": 4096,
        "max_bytes": 16_000,
        "output": "regression",
        "column": 0,
        "range": (0, 5),
    }
    return OnnxSettings.model_validate(base | changes)


def plain(text: str, most: int) -> np.ndarray:
    rows = [WEIGHTS[WORDS.index(w) if w in WORDS else 0] for w in text.split()[:most]]
    return np.mean(rows, 0) if rows else np.zeros(2)


def test_scores_against_a_plain_mean(files: tuple[Path, Path]) -> None:
    texts = ["good", "bad bad text", "", "good text " * 30, "other words", "bad"] * 3
    logits = np.array([plain(t, 20) for t in texts])
    for batch_tokens in (2, 40, 10_000):
        one = chosen(files, max_tokens=20, batch_tokens=batch_tokens)
        assert load(one).scores(texts) == pytest.approx(np.clip(logits[:, 0] / 5, 0, 1), abs=1e-6)
    soft = chosen(files, max_tokens=20, output="softmax", column=1)
    expected = np.exp(logits[:, 1]) / np.exp(logits).sum(1)
    assert load(soft).scores(texts) == pytest.approx(expected, abs=1e-6)
    assert len(load(soft).scores([])) == 0


def test_it_judges_quality_where_the_recipe_says_so(files: tuple[Path, Path]) -> None:
    settings = ClassifySettings.model_validate(
        default_settings().model_dump() | {"onnx": chosen(files).model_dump()}
    )
    assert {"onnx.model", "onnx.tokenizer"} <= set(find("classify").models(settings, {}))
    found = Classifier(settings).apply(pa.array(["good good", "bad", None]))
    assert found.quality.to_pylist() == [1.0, 0.0, 0.0]
    assert found.topic.null_count == 0


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(2, 200))
def test_batches_hold_every_row_once(lengths: list[int], tokens: int) -> None:
    found = batches(np.array(lengths, np.int64), tokens)
    assert sorted(i for b in found for i in b) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= tokens


def test_what_is_wrong_is_one_clear_line(files: tuple[Path, Path], tmp_path: Path) -> None:
    noise = tmp_path / "noise.onnx"
    noise.write_bytes(b"noise")
    with pytest.raises(ConfigError, match=r"noise\.onnx: not an ONNX model: ") as caught:
        load(chosen((noise, files[1])))
    assert "\n" not in str(caught.value)
    (tmp_path / "tokenizer.json").write_text(json.dumps({}))
    with pytest.raises(ConfigError, match=r"tokenizer\.json: not a tokenizer: "):
        load(chosen((files[0], tmp_path / "tokenizer.json")))
    with pytest.raises(ConfigError, match="no output 2, it has 2"):
        load(chosen(files, column=2)).scores(["good"])
    with pytest.raises(ConfigError, match=r"absent\.onnx: no such model file"):
        load(chosen((tmp_path / "absent.onnx", files[1])))
