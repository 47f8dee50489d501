"""Any Hugging Face sequence classifier, exported to ONNX, as the judge of quality (FineWeb-Edu's,
or a DistilRoBERTa as the Llama 3 report used), on the CPU through onnxruntime.

The user's own classifiers, of this kind or in Python, add a column each, and verdicts by it.

Needs the extra `onnx`. One thread and fixed batches, so that a document's score is the same for any
number of workers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, large_strings
from curation.classify import onnx
from curation.classify.classify_settings import ClassifySettings, CustomClassifier, OnnxSettings
from curation.classify.linear import sigmoid, softmax
from curation.errors import ConfigError, first_line, require
from curation.judging import Failure, answer_all, error_verdicts, opened
from curation.models import locate
from curation.schema import Verdicts, with_column

_IDS, _MASK, _TYPES = "input_ids", "attention_mask", "token_type_ids"


@dataclass(frozen=True)
class OnnxClassifier:
    """A loaded model and its tokenizer; may be used by several threads."""

    settings: OnnxSettings
    session: Any
    tokenizer: Any
    inputs: tuple[str, ...]

    def scores(self, texts: Texts) -> npt.NDArray[np.float64]:
        """Score of every text, 0 to 1: [texts]. Texts of like length are judged together."""
        rows = [_beginning(t, self.settings.max_bytes) for t in large_strings(texts).to_pylist()]
        encoded = self.tokenizer.encode_batch(rows)
        lengths = np.array([len(e.ids) for e in encoded], np.int64)
        out = np.zeros(len(rows))
        for batch in batches(lengths, self.settings.batch_tokens):
            out[batch] = self._judge([encoded[i] for i in batch])
        return out

    def _judge(self, encoded: list[Any]) -> npt.NDArray[np.float64]:
        width = max(1, max(len(e.ids) for e in encoded))
        ids = np.zeros((len(encoded), width), np.int64)
        mask = np.zeros((len(encoded), width), np.int64)
        for row, e in enumerate(encoded):
            ids[row, : len(e.ids)] = e.ids
            mask[row, : len(e.ids)] = 1
        every = {_IDS: ids, _MASK: mask, _TYPES: np.zeros_like(ids)}
        logits = self.session.run(None, {name: every[name] for name in self.inputs})[0]
        logits = np.asarray(logits, np.float64).reshape(len(encoded), -1)
        if self.settings.column >= logits.shape[1]:
            raise ConfigError(
                f"{self.settings.model.path}: no output {self.settings.column}, it has "
                f"{logits.shape[1]}"
            )
        if self.settings.output == "softmax":
            return softmax(logits)[:, self.settings.column]
        column = logits[:, self.settings.column]
        if self.settings.output == "sigmoid":
            return sigmoid(column)
        low, high = self.settings.range
        return np.clip((column - low) / (high - low), 0.0, 1.0)


def batches(lengths: npt.NDArray[np.int64], tokens: int) -> list[npt.NDArray[np.int64]]:
    """Rows in batches of like length, shortest first, that hold at most `tokens` with padding.

    A row that is longer by itself is a batch of its own.
    """
    order = np.argsort(lengths, kind="stable")
    found = []
    begin = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - begin) * max(1, lengths[order[end]]) > tokens:
            found.append(order[begin:end])
            begin = end
    return found


def _beginning(text: str | None, size: int) -> str:
    if not text or len(text) <= size // 4:
        return text or ""
    return text.encode()[:size].decode(errors="ignore")


@functools.cache
def load(settings: OnnxSettings) -> OnnxClassifier:
    """Load a model, once per process. Raises ConfigError, in one line, naming what is wrong."""
    runtime, tokenizers = (
        require(name, settings.model.path) for name in ("onnxruntime", "tokenizers")
    )
    path, _ = locate(settings.model)
    words, _ = locate(settings.tokenizer)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has its own
        raise ConfigError(f"{settings.model.path}: not an ONNX model: {_line(error)}") from None
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(words))
    except Exception as error:
        raise ConfigError(f"{settings.tokenizer.path}: not a tokenizer: {_line(error)}") from None
    tokenizer.enable_truncation(settings.max_tokens)
    tokenizer.no_padding()
    inputs = tuple(i.name for i in session.get_inputs())
    if _IDS not in inputs or set(inputs) - {_IDS, _MASK, _TYPES}:
        raise ConfigError(
            f"{settings.model.path}: not a sequence classifier: its inputs are {', '.join(inputs)}"
        )
    return OnnxClassifier(settings, session, tokenizer, inputs)


def _line(error: Exception) -> str:
    return first_line(error)


def check(settings: ClassifySettings) -> None:
    """Load the models of all classifiers now. Raises ConfigError with its key."""
    for name, own in settings.classifiers.items():
        if own.onnx is not None:
            try:
                onnx.load(own.onnx)
            except ConfigError as error:
                raise ConfigError(f"classify.classifiers.{name}: {error}") from error


def classify(
    batch: pa.RecordBatch, settings: ClassifySettings
) -> tuple[pa.RecordBatch, Verdicts, list[Failure]]:
    """Add the columns; the verdicts are `classify.<column>`, and `error.classify` of failures."""
    verdicts, failures = Verdicts.keep_all(batch.num_rows), list[Failure]()
    for name, own in settings.classifiers.items():
        kind = pa.string() if own.gives == "label" else pa.float64()
        function, called = _function(own)
        values, failed = answer_all(function, batch.column("text"), called, kind)
        batch = with_column(batch, name, values)
        verdicts = verdicts.otherwise(error_verdicts(failed, batch.num_rows, "classify"))
        verdicts = verdicts.otherwise(_decided(values, own, f"classify.{name}"))
        failures += failed
    return batch, verdicts, failures


def _function(own: CustomClassifier) -> tuple[Callable[..., Any], str]:
    if own.python is not None:
        return opened(own.python, own.settings), own.python.reference
    assert own.onnx is not None
    return _scores(own.onnx), own.onnx.model.path


@functools.lru_cache(maxsize=8)
def _scores(settings: OnnxSettings) -> Callable[[pa.Array], Any]:
    model = onnx.load(settings)

    def scores(texts: pa.Array) -> Any:
        return model.scores(texts)

    return scores


def _decided(values: pa.Array, own: CustomClassifier, reason: str) -> Verdicts:
    if own.gives == "label":
        dropped = pc.is_in(values, pa.array(own.drop, pa.string()))
        return Verdicts.where(dropped.to_numpy(zero_copy_only=False), reason)
    scores = pc.fill_null(values, np.nan).to_numpy(zero_copy_only=False)
    verdicts = Verdicts.keep_all(len(scores))
    if own.min is not None:
        verdicts = verdicts.otherwise(Verdicts.where(scores < own.min, reason, scores, own.min))
    if own.max is not None:
        verdicts = verdicts.otherwise(Verdicts.where(scores > own.max, reason, scores, own.max))
    return verdicts
