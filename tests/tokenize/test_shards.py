"""Packing, the Megatron format, and the reader."""

from __future__ import annotations

import io
import json
import struct
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import ConfigError, InputError
from curation.tokenize import TokenShards
from curation.tokenize.megatron import IndexedWriter, read_index, token_dtype
from curation.tokenize.pack import Spans, best_fit
from curation.tokenize.reader import permute
from curation.tokenize.shard import DOCUMENT_INDEX
from curation.tokenize.tokenize_settings import TokenizeSettings
from curation.tokenize.tokenizer import load_tokenizer
from curation.tokenize.vocabulary import format_ranks
from tests.tokenize.packed import write_shard

LENGTHS = st.lists(st.integers(0, 40), max_size=60).map(lambda n: np.array(n, np.int64))


def check_spans(spans: Spans, lengths: np.ndarray, context: int) -> None:
    """Every token of every document lies in exactly one place, in order, without overlap."""
    seen = dict.fromkeys(range(len(lengths)), 0)
    rows: dict[int, int] = {}
    for sequence, start, length, document, offset in zip(*spans, strict=True):
        assert length > 0 and start == rows.get(sequence, 0) and start + length <= context
        rows[sequence] = start + length
        seen[document] += length
        assert offset + length <= lengths[document]
    assert list(seen.values()) == lengths.tolist()
    assert sorted(rows) == list(range(spans.sequence_count))


def reference_best_fit(lengths: list[int], context: int) -> int:
    """Sequences that best-fit decreasing needs, by trying every bin."""
    pieces = [p for n in lengths for p in [context] * (n // context) + [n % context] if p]
    room: list[int] = []
    for piece in sorted(pieces, reverse=True):
        fits = [r for r in room if r >= piece]
        if fits:
            room[room.index(min(fits))] -= piece
        else:
            room.append(context - piece)
    return len(room)


@given(LENGTHS, st.integers(2, 17))
def test_best_fit_cuts_only_long_documents(lengths: np.ndarray, context: int) -> None:
    spans = best_fit(lengths, context)
    check_spans(spans, lengths, context)
    pieces = np.bincount(spans.documents, minlength=len(lengths))
    assert pieces.tolist() == (-(-lengths // context)).tolist()
    assert spans.sequence_count == reference_best_fit(lengths.tolist(), context)


@given(st.integers(1, 3000), st.integers(0, 2**63))
def test_permutation_is_a_bijection(n: int, seed: int) -> None:
    assert np.sort(permute(np.arange(n), n, seed)).tolist() == list(range(n))


def test_permutations_differ_by_seed() -> None:
    a, b = permute(np.arange(1000), 1000, 1), permute(np.arange(1000), 1000, 2)
    assert (a == b).mean() < 0.02
    assert abs(np.corrcoef(a, np.arange(1000))[0, 1]) < 0.1


def megatron_sequences(bin_data: bytes, idx_data: bytes) -> list[list[int]]:
    """Sequences by the layout alone, field after field, without this project's reader."""
    at = 0

    def take(code: str) -> tuple[int, ...]:
        nonlocal at
        values = struct.unpack_from("<" + code, idx_data, at)
        at += struct.calcsize("<" + code)
        return values

    assert idx_data[:9] == b"MMIDIDX\x00\x00"
    at = 9
    assert take("Q") == (1,)
    (code,) = take("B")
    (sequences,) = take("Q")
    (documents,) = take("Q")
    lengths = take(f"{sequences}i")
    pointers = take(f"{sequences}q")
    bounds = take(f"{documents}q")
    assert at == len(idx_data)
    assert bounds == tuple(range(sequences + 1))
    letter = {4: "i", 8: "H"}[code]
    return [
        list(struct.unpack_from(f"<{n}{letter}", bin_data, p))
        for n, p in zip(lengths, pointers, strict=True)
    ]


@pytest.fixture(scope="module")
def byte_vocabulary(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("vocabulary") / "bytes.tiktoken"
    path.write_bytes(format_ranks([bytes([b]) for b in range(256)]))
    return str(path)


def shard_settings(tokenizer: str, **changes: object) -> TokenizeSettings:
    values: dict[str, object] = {
        "tokenizer": tokenizer,
        "context_length": 16,
        "bos": True,
        "eos": True,
        "shard_tokens": 1 << 20,
        "seed": 7,
    }
    return TokenizeSettings.model_validate(values | changes)


def documents(count: int = 23) -> pa.RecordBatch:
    texts = ["".join(chr(97 + (k + j) % 26) for j in range(k * 7 % 41)) for k in range(count)]
    return pa.RecordBatch.from_pydict(
        {
            "id": [f"doc-{k}" for k in range(count)],
            "url": [f"https://example.org/{k}" for k in range(count)],
            "text": pa.array(texts, pa.large_string()),
            "source": [{"file": "a.warc.gz", "offset": 100 * k} for k in range(count)],
            "repeats": pa.array([k % 4 for k in range(count)], pa.int32()),
        }
    )


def written(
    batches: list[pa.RecordBatch], s: TokenizeSettings
) -> tuple[bytes, bytes, pa.RecordBatch, dict[str, int]]:
    bin_file, idx_file = io.BytesIO(), io.BytesIO()
    index, stats = write_shard(batches, s, bin_file, idx_file)
    return bin_file.getvalue(), idx_file.getvalue(), index, stats.as_dict()


@pytest.mark.parametrize(("bos", "eos"), [(True, True), (False, True), (False, False)])
def test_every_document_can_be_read_back(byte_vocabulary: str, bos: bool, eos: bool) -> None:
    s = shard_settings(byte_vocabulary, bos=bos, eos=eos)
    batch = documents()
    bin_data, idx_data, index, stats = written([batch], s)
    sequences = megatron_sequences(bin_data, idx_data)
    assert {len(sequence) for sequence in sequences} == {16}
    tokenizer = load_tokenizer(byte_vocabulary)
    found: dict[tuple[str, int], list[int]] = {}
    used = 0
    spans = index.to_pylist()
    for span in sorted(spans, key=lambda r: (r["id"], r["repeat"], r["document_offset"])):
        copy = found.setdefault((span["id"], span["repeat"]), [])
        assert span["document_offset"] == len(copy)
        start = span["start"]
        copy.extend(sequences[span["sequence"]][start : start + span["length"]])
        used += span["length"]
    expected = {}
    for row in batch.to_pylist():
        ids = [*[tokenizer.bos] * bos, *row["text"].encode(), *[tokenizer.eos] * eos]
        for repeat in range(row["repeats"]):
            if ids:
                expected[row["id"], repeat] = ids
    assert found == expected
    assert stats["tokens"] == used
    assert stats["padding"] == sum(s.count(tokenizer.pad) for s in sequences)
    assert stats["padding"] + used == 16 * len(sequences)
    assert index.schema == DOCUMENT_INDEX
    assert {r["source"]["offset"] for r in spans if r["id"] == "doc-3"} == {300}
    assert {r["url"] for r in spans if r["id"] == "doc-3"} == {"https://example.org/3"}


def test_bytes_do_not_depend_on_batches_or_their_order(byte_vocabulary: str) -> None:
    s = shard_settings(byte_vocabulary)
    batch = documents()
    whole = written([batch], s)
    parts = written([batch.slice(9), batch.slice(0, 4), batch.slice(4, 5)], s)
    assert parts[:2] == whole[:2] and parts[2].equals(whole[2])
    other = written([batch], shard_settings(byte_vocabulary, seed=8))
    assert other[0] != whole[0]


def test_counts_agree_with_what_is_written(byte_vocabulary: str) -> None:
    s = shard_settings(byte_vocabulary)
    batch = documents().drop_columns(["repeats"])
    _, offsets = load_tokenizer(s.tokenizer).encode_batch(batch.column("text"))
    tokens = offsets[-1] + len(batch) * s.marks
    assert tokens == written([batch], s)[3]["tokens"]


def test_an_empty_shard_is_valid(byte_vocabulary: str) -> None:
    s = shard_settings(byte_vocabulary)
    bin_data, idx_data, index, stats = written([documents().slice(0, 0)], s)
    assert megatron_sequences(bin_data, idx_data) == [] and index.num_rows == 0
    assert stats["sequences"] == 0
    assert written([], s)[:2] == (bin_data, idx_data)


def test_negative_repeats_are_refused(byte_vocabulary: str) -> None:
    batch = documents().drop_columns(["repeats"])
    bad = batch.append_column("repeats", pa.array([-1] * batch.num_rows, pa.int32()))
    with pytest.raises(InputError, match="repeats"):
        written([bad], shard_settings(byte_vocabulary))


def test_token_types() -> None:
    assert token_dtype(1 << 16) == np.uint16
    assert token_dtype(128256) == np.int32


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Three shards (one empty) of rows whose tokens tell their number."""
    first = 0
    for name, rows in (("a", 7), ("b", 0), ("c", 30)):
        numbers = np.arange(first, first + rows, dtype=np.int32)
        with (
            open(tmp_path / f"{name}.bin", "wb") as bin_file,
            open(tmp_path / f"{name}.idx", "wb") as idx_file,
        ):
            writer = IndexedWriter(bin_file, np.dtype(np.int32))
            writer.write(np.repeat(numbers[:, None], 4, axis=1))
            writer.finish(idx_file)
        first += rows
    return tmp_path


def test_an_epoch_gives_every_sample_once(shards: Path) -> None:
    reader = TokenShards(shards, batch_size=1, seed=3, epochs=2)
    got = [int(batch[0, 0]) for batch in reader]
    assert len(got) == len(reader) == 74
    assert sorted(got[:37]) == sorted(got[37:]) == list(range(37))
    assert got[:37] != got[37:] and got[:37] != list(range(37))
    assert [int(b[0, 0]) for b in TokenShards(shards, 1, shuffle=False, epochs=1)] == sorted(
        got[:37]
    )


def test_stopping_and_resuming_with_other_world_sizes(shards: Path) -> None:
    """250 stops at random points: whoever the ranks are, they lose and repeat nothing."""
    rng = np.random.default_rng(0)
    got: list[int] = []
    state = json.dumps(TokenShards(shards, 1, seed=5).state_dict())
    for _ in range(250):
        world, batch = int(rng.integers(1, 9)), int(rng.integers(1, 4))
        readers = [TokenShards(shards, batch, rank, world, seed=5) for rank in range(world)]
        for reader in readers:
            reader.load_state_dict(json.loads(state))
        ranks = [iter(reader) for reader in readers]
        for _ in range(int(rng.integers(1, 4))):
            for rank in ranks:
                got.extend(next(rank)[:, 0].tolist())
        states = {json.dumps(reader.state_dict()) for reader in readers}
        assert len(states) == 1
        (state,) = states
    epochs = len(got) // 37
    assert epochs > 75
    stream = TokenShards(shards, 37, seed=5, epochs=epochs)
    for epoch, batch in enumerate(stream):
        part = got[37 * epoch : 37 * (epoch + 1)]
        assert part == batch[:, 0].tolist() and sorted(part) == list(range(37))


def test_finite_streams_give_all_ranks_equally_many_full_batches(shards: Path) -> None:
    readers = [TokenShards(shards, 4, rank, 3, epochs=1) for rank in range(3)]
    batches = [list(reader) for reader in readers]
    assert [len(b) for b in batches] == [3, 3, 3] == [len(r) for r in readers]
    assert {batch.shape for rank in batches for batch in rank} == {(4, 4)}
    with pytest.raises(TypeError):
        len(TokenShards(shards, 4))


def test_torch_tensors(shards: Path) -> None:
    torch = pytest.importorskip("torch")
    batch = next(iter(TokenShards(shards, 2, torch=True)))
    assert batch.dtype == torch.int64 and tuple(batch.shape) == (2, 4)


def test_wrong_use_of_the_reader_is_refused(shards: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="rank"):
        TokenShards(shards, 1, rank=2, world_size=2)
    state = TokenShards(shards, 1, seed=1).state_dict()
    with pytest.raises(ConfigError, match="seed 1 is not 2"):
        TokenShards(shards, 1, seed=2).load_state_dict(state)
    with pytest.raises(InputError, match="no shards"):
        TokenShards(tmp_path / "nothing", 1)


def test_damaged_shards_are_named(shards: Path) -> None:
    data = (shards / "c.idx").read_bytes()
    for damaged in (data[:-1], b"X" + data[1:], data[:20], b""):
        (shards / "c.idx").write_bytes(damaged)
        with pytest.raises(InputError, match=r"c\.idx"):
            read_index(shards / "c.idx")
    (shards / "c.idx").write_bytes(data)
    (shards / "c.bin").write_bytes((shards / "c.bin").read_bytes()[:-4])
    with pytest.raises(InputError, match=r"c\.bin"):
        TokenShards(shards, 1)


def numbered(folder: Path) -> Path:
    """The shards under names as `curate tokenize` gives them."""
    for number, name in enumerate("abc"):
        for suffix in ("bin", "idx"):
            (folder / f"{name}.{suffix}").rename(folder / f"tokens-0000{number}-of-00003.{suffix}")
    return folder


def test_shards_copied_without_a_manifest_are_all_there(shards: Path) -> None:
    folder = numbered(shards)
    (folder / "._tokens-00000-of-00003.bin").write_bytes(b"\0")  # a file manager's
    assert TokenShards(folder, 1).samples == 37
    (folder / "tokens-00002-of-00003.bin").unlink()
    with pytest.raises(InputError, match=r"tokens-00002-of-00003\.bin: missing"):
        TokenShards(folder, 1)


@pytest.mark.parametrize("part", ["shards", ".work"])
def test_a_stage_without_its_manifest_is_not_complete(shards: Path, part: str) -> None:
    (shards / part).mkdir()
    with pytest.raises(InputError, match=r"no manifest\.json: the stage is not complete"):
        TokenShards(shards, 1)


def test_the_manifest_says_which_shards_there_are(shards: Path) -> None:
    files = {p.name: {"bytes": p.stat().st_size} for p in shards.iterdir() if p.stem != "a"}
    manifest = shards / "manifest.json"
    manifest.write_text(json.dumps({"files": {**files, "index/a.parquet": {"bytes": 1}}}))
    assert TokenShards(shards, 1).samples == 30
    (shards / "c.bin").write_bytes(b"")
    with pytest.raises(InputError, match=r"c\.bin: 0 bytes, but manifest\.json says 480"):
        TokenShards(shards, 1)
    (shards / "c.bin").unlink()
    with pytest.raises(InputError, match=r"c\.bin: missing, but manifest\.json"):
        TokenShards(shards, 1)
    for damaged in (b"", b"[]", b"{}"):
        manifest.write_bytes(damaged)
        with pytest.raises(InputError, match=r"manifest\.json: damaged"):
            TokenShards(shards, 1)


def test_without_torch_one_line_says_so(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "torch.utils", "torch.utils.data"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ConfigError, match=r"TokenShards: needs torch.utils.data: pip install 'curation\[torch\]'"
    ):
        TokenShards(shards, 2, torch=True)


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_data_loader(shards: Path, context: str) -> None:
    data = pytest.importorskip("torch.utils.data")
    plain = [batch.tolist() for batch in TokenShards(shards, 2, 1, 2, seed=3, epochs=5)]
    held = TokenShards(shards, 2, 1, 2, seed=3, epochs=5, torch=True)
    loader = data.DataLoader(held, None, num_workers=2, multiprocessing_context=context)
    assert [batch.tolist() for batch in loader] == plain
