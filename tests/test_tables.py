"""Python functions on tables: what goes in, what comes out, and the same decisions as a run."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import curation
from curation.classify import score
from curation.classify.classifier import Classifier
from curation.classify.classify_settings import default_settings as classify_defaults
from curation.columns import PAGE_COLUMNS
from curation.dedup import near_duplicates
from curation.dedup.candidates import jaccard, shingle_sets
from curation.dedup.dedup_settings import DocumentDedupSettings, defaults
from curation.errors import ConfigError, InputError, WorkerError
from curation.filters import judge
from curation.filters.apply import load_filter
from curation.language import identify
from curation.recipe import load
from curation.tables import as_given
from tests.conftest import curate_well

_PROSE = (
    "The ferry left the harbour at six, and the gulls went with it as far as the second buoy. "
    "Nobody on deck spoke. A man in a grey coat counted the crates that were tied to the rail, "
    "and when he came to the last of them he began again from the first."
)


def _documents(run: Path, stage: str) -> pa.Table:
    return pq.read_table(run / stage / "documents")


def _kinds(texts: list[str]) -> list[Any]:
    """The same texts in every form that is taken."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = pa.table({"text": texts})
    return [
        texts,
        tuple(texts),
        pa.array(texts),
        pa.chunked_array([texts[:1], texts[1:]]),
        table,
        table.to_batches()[0],
        {"content": texts},
        [{"text": text, "id": 7} for text in texts],
        pa.table({"text": pa.array(texts).dictionary_encode()}),
        pandas.Series(texts),
        pandas.DataFrame({"text": pandas.Categorical(texts)}),
        polars.Series(texts),
        polars.DataFrame({"text": texts}),
        polars.LazyFrame({"text": texts}),
    ]


def _without_nan(table: pa.Table) -> list[dict[str, Any]]:
    """Rows in which pandas' NaN and Arrow's null are the same."""
    rows = table.to_pylist()
    return [{k: None if v != v else v for k, v in row.items()} for row in rows]


def test_every_kind_of_table_gives_the_same_answers() -> None:
    texts = [_PROSE, "x = 1", _PROSE]
    scores = score(texts).to_pylist()
    for data in _kinds(texts):
        judged, scored, clusters = judge(data), score(data), near_duplicates(data)
        assert _without_nan(as_given(judged).table) == _without_nan(judge(texts))
        assert as_given(scored).table.to_pylist() == scores
        assert list(as_given({"text": clusters}).table["text"].to_pylist()) == [0, 1, 0]


def test_pandas_keeps_its_index_and_types() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"text": [_PROSE, "", _PROSE], "kind": pandas.Categorical(["a", "b", "a"]), "n": [1, 2, 3]},
        index=["u", "v", "w"],
    )
    assert list(judge(frame).index) == list(near_duplicates(frame).index) == ["u", "v", "w"]
    found = curation.run("llama3", frame, stages=["extract", "identify-language"])
    assert list(found.documents.index) == ["u", "w"] and list(found.removed.index) == ["v"]
    assert found.documents["kind"].dtype == frame["kind"].dtype
    assert list(found.documents["language"]) == ["en", "en"]


def test_polars_comes_back_as_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {"text": [_PROSE, ""], "n": [1, 2]}, schema_overrides={"n": polars.Int8}
    )
    found = curation.run("llama3", frame, stages=["extract", "identify-language"])
    assert isinstance(found.documents, polars.DataFrame)
    assert found.documents["n"].dtype == polars.Int8
    assert found.removed["reason"].to_list() == ["extract.empty"]


def test_judge_says_what_the_filter_stage_says(sample_run: Path) -> None:
    documents = _documents(sample_run, "dedup-lines")
    judged = judge(documents, "sample")
    kept = {row["id"] for row in _documents(sample_run, "filter").to_pylist()}
    removed = pq.read_table(sample_run / "filter" / "removed").to_pylist()
    reasons = {row["id"]: (row["reason"], row["value"], row["threshold"]) for row in removed}
    rows = judged.to_pylist()
    assert removed and len(rows) == len(kept) + len(reasons)
    for name, row in zip(documents["id"].to_pylist(), rows, strict=True):
        assert (row["reason"], row["value"], row["threshold"]) == reasons.get(
            name, (None, None, None)
        )
    signals = {row["id"]: row["signals"] for row in removed}
    for name, row in zip(documents["id"].to_pylist(), rows, strict=True):
        if name in signals:
            assert repr({k: row[k] for k in signals[name]}) == repr(signals[name])


def test_judge_uses_language_and_quality_where_given() -> None:
    german = "Der Hund läuft durch den Garten und bellt den Nachbarn an. " * 20
    table = pa.table({"text": [german], "language": ["de"], "quality": [0.9]})
    batch = pa.RecordBatch.from_pydict(
        {"id": [""], "url": [""], "text": pa.array([german], pa.large_string()),
         "language": ["de"], "quality": [0.9]}
    )  # fmt: skip
    found = load_filter(load("llama3").filter).apply(batch)
    assert judge(table)["reason"].to_pylist() == found.verdicts.reason.to_pylist()
    assert judge(table)["quality"].to_pylist() == [0.9]
    assert judge([german])["quality"].to_pylist() != [0.9]


def test_score_is_the_classifier_of_the_defaults() -> None:
    texts = [_PROSE, "def f(x):\n    return x + 1\n" * 20, ""]
    languages = pa.array(["en", "en", "fr"])
    found = Classifier(classify_defaults()).apply(texts, languages)
    scored = score(pa.table({"text": texts, "language": languages}))
    assert scored.column_names == ["quality", "domain", "topic", "format"]
    assert scored["quality"].to_pylist() == found.quality.to_pylist()
    assert scored["domain"].to_pylist() == found.domain.to_pylist()
    assert scored["domain"].to_pylist()[2] == "multilingual"


def test_near_duplicates_are_those_of_the_stage(sample_run: Path) -> None:
    before = _documents(sample_run, "identify-language")
    kept = _documents(sample_run, "dedup-documents").num_rows
    found = near_duplicates(before).to_pylist()
    assert len(set(found)) == kept < len(found)
    assert all(found[c] == c <= row for row, c in enumerate(found))


_WORDS = st.lists(st.sampled_from("ash elm fir oak yew bay".split()), min_size=6, max_size=14)


@settings(max_examples=40)
@given(st.lists(_WORDS.map(" ".join), max_size=9))
def test_clusters_are_made_of_similar_texts(texts: list[str]) -> None:
    rules = defaults(DocumentDedupSettings)
    found = near_duplicates(texts, rules).to_pylist()
    sets = shingle_sets(texts, rules.minhash, rules.verify.normalization)
    joined = {i: {i} for i in range(len(texts))}
    for a, b in itertools.combinations(range(len(texts)), 2):
        alike = texts[a] == texts[b]
        if texts[a] == texts[b]:
            assert found[a] == found[b]
        (value,) = jaccard(sets, *(pa.array([i]).to_numpy() for i in (a, b)))
        if alike or value >= rules.verify.threshold:
            merged = joined[a] | joined[b]
            joined |= dict.fromkeys(merged, merged)
    for row, cluster in enumerate(found):
        assert cluster in joined[row]


def test_a_table_in_memory_fares_as_in_a_run(sample_run: Path, tmp_path: Path) -> None:
    recipe = "llama3"
    table = _documents(sample_run, "extract")
    table = table.append_column("own", pa.array(range(table.num_rows), pa.int16()))
    pq.write_table(table, tmp_path / "rows.parquet")
    stages = [s for s in load(recipe).stages if s not in ("extract", "tokenize")]
    options = ["--stages", ",".join(stages), "--quiet", "--workers", "0"]
    rows, out = tmp_path / "rows.parquet", tmp_path / "out"
    curate_well(["run", recipe, "--input", rows, "--output", out, *options])
    found = curation.run(recipe, table, stages=stages)
    kept = {row["id"]: row for row in _documents(out, stages[-1]).to_pylist()}
    assert repr({row["id"]: row for row in found.documents.to_pylist()}) == repr(
        {row["id"]: {n: kept[row["id"]][n] for n in found.documents.column_names}
         for row in found.documents.to_pylist()}
    )  # fmt: skip
    assert found.documents.num_rows == len(kept) > 0
    removed = {
        row["id"]: row
        for stage in stages
        for row in pq.read_table(out / stage / "removed").to_pylist()
    }
    mine = {row["id"]: row for row in found.removed.to_pylist()}
    assert mine.keys() == removed.keys() and len(kept) + len(removed) == table.num_rows
    for name, row in removed.items():
        assert repr({k: mine[name][k] for k in row}) == repr(row)
    assert found.documents.schema.field("own").type == pa.int16()


def test_pages_of_a_table_fare_as_in_a_run(tmp_path: Path) -> None:
    page = (
        "<html><title>Ferry</title><meta name=robots content=noai><body><article><p>{}</p>"
        "</article></body></html>"
    )
    table = pa.table(
        {
            "html": [page.format(_PROSE), "", page.format(_PROSE + " Then it rained.")],
            "url": ["http://a.example/1", "http://a.example/2", "http://a.example/1"],
            "date": ["2024-01-02T03:04:05Z", None, "2025-01-02T03:04:05Z"],
            "id": ["one", "two", "three"],
        }
    )
    pq.write_table(table, tmp_path / "pages.parquet")
    pages, out = tmp_path / "pages.parquet", tmp_path / "out"
    options = ["--stages", "extract,dedup-urls", "--quiet", "--workers", "0"]
    curate_well(["run", "llama3", "--input", pages, "--output", out, *options])
    found = curation.run("llama3", table, stages="extract, dedup-urls")  # as `--stages`
    (kept,) = _documents(out, "dedup-urls").to_pylist()
    (mine,) = found.documents.to_pylist()
    same = ("id", "url", "text", "title", *PAGE_COLUMNS)
    assert {k: mine[k] for k in same} == {k: kept[k] for k in same}
    assert mine["rights"]["signals"] and mine["link_share"] is not None
    honour = ["rights.honour=[noai]"]
    obeyed = curation.run("llama3", table, stages=["extract", "rights"], assignments=honour)
    assert obeyed.removed["reason"].to_pylist()[::2] == ["rights.noai"] * 2
    assert obeyed.removed["value_text"].to_pylist()[::2] == ["noai"] * 2
    assert "value_text" not in found.removed.column_names
    assert mine["date"] == "2025-01-02T03:04:05Z"  # as it was given
    reasons = ["stage", "reason", "value", "threshold", "kept_id"]
    removed = [
        {k: row[k] for k in ["id", *reasons]}
        for stage in ("extract", "dedup-urls")
        for row in pq.read_table(out / stage / "removed").to_pylist()
    ]
    assert found.removed.select(["id", *reasons]).to_pylist() == sorted(
        removed, key=lambda row: ["one", "two", "three"].index(row["id"])
    )


def test_own_columns_and_texts_stay_as_they_are() -> None:
    table = pa.table(
        {
            "content": [f"  {_PROSE}\r\n\tend ", None, "same", "same"],
            "source": ["wiki", "web", "web", "web"],
            "url": pa.array([None, "http://a.example", "not a url", ""]),
            "date": pa.array([None] * 4, pa.null()),
        }
    )
    found = curation.run("llama3", table, stages=["extract", "dedup-urls", "dedup-documents"],
                         assignments=["dedup-documents.per_language=false"])  # fmt: skip
    stays = 2 if found.documents["url"].to_pylist()[1] else 3  # by the hashes of their ids
    assert found.documents.drop_columns(["id", *PAGE_COLUMNS]).equals(table.take([0, stays]))
    lost = found.removed.to_pylist()
    assert [(r["content"], r["reason"]) for r in lost] == [
        (None, "extract.empty"),
        ("same", "document.exact"),
    ]
    assert lost[1]["kept_id"] == found.documents["id"].to_pylist()[1]
    assert lost[1]["source"] == "web"


def test_columns_may_be_views_and_runs() -> None:
    texts = [_PROSE, _PROSE, ""]
    runs = pa.RunEndEncodedArray.from_arrays([1, 3], ["x", "y"])
    inner = pa.array([{"a": text} for text in texts], pa.struct({"a": pa.string_view()}))
    columns = {"text": pa.array(texts, pa.string_view()), "inner": inner, "runs": runs}
    found = curation.run("llama3", pa.table(columns), stages="dedup-documents")
    assert (found.documents.num_rows, found.removed.num_rows) == (1, 2)
    assert found.documents["text"].to_pylist() == [_PROSE]
    assert found.removed["inner"].to_pylist() == [{"a": _PROSE}, {"a": ""}]
    kept = found.documents["runs"].to_pylist()
    assert sorted(kept + found.removed["runs"].to_pylist()) == [*"xyy"]


def test_the_caller_s_language_is_used_where_no_stage_finds_it() -> None:
    table = pa.table({"text": [_PROSE, _PROSE], "language": ["en", "de"]})
    apart = curation.run("llama3", table, stages=["dedup-documents"])
    assert apart.documents.equals(table.append_column("id", apart.documents["id"]))


def test_empty_tables_and_nothing_removed() -> None:
    found = curation.run("llama3", pa.table({"text": pa.array([], pa.string())}))
    assert found.documents.num_rows == found.removed.num_rows == 0
    kept = curation.run("llama3", [_PROSE], stages=["identify-language"])
    assert kept.documents.num_rows == 1 and kept.removed.num_rows == 0


def test_rows_that_cannot_be_read_are_removed() -> None:
    page = f"<html><body><article><p>{_PROSE}</p></article></body></html>".encode()
    table = pa.table({"html": [page, bytes(range(256)) * 9, page]})
    found = curation.run("llama3", table, stages=["extract"])
    assert found.documents["html"].to_pylist() == [page] * 2
    row = found.removed.select(["html", "stage", "reason"]).to_pylist()
    assert row == [{"html": table["html"][1].as_py(), "stage": "extract", "reason": "http.binary"}]


def test_texts_that_are_empty_are_removed_as_in_a_run() -> None:
    """Also those that are missing, which pandas calls NaN in a list of strings, too."""
    texts = ["", _PROSE, " \n\u3000", None, float("nan")]
    found = curation.run("llama3", texts, stages=["identify-language"])  # type: ignore[arg-type]
    assert found.documents["text"].to_pylist() == [_PROSE]
    assert (
        found.removed.select(["stage", "reason"]).to_pylist()
        == [{"stage": "read-tables", "reason": "table.empty_text"}] * 4
    )
    for lone in ("", "\ud800"):
        assert identify([_PROSE + lone, *texts[3:]])[0] == ["en", "und", "und"]  # type: ignore[list-item]


def test_code_of_the_user_s_changes_and_sees_columns_of_the_table(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from curation.judging import Judged\n"
        "def more(batch):\n"
        "    return Judged(columns={'stars': [n + 1 for n in batch['stars'].to_pylist()]})\n"
        "def fails(batch):\n"
        "    raise ValueError('not today')\n"
    )
    recipe = tmp_path / "own.yaml"
    text = "name: own\nextends: llama3\nstages: [own-one]\nown-one: {{python: own.py:{}}}\n"
    recipe.write_text(text.format("more"))
    table = pa.table({"text": [_PROSE, "Short."], "stars": [3, 1], "other": ["x", "y"]})
    found = curation.run(str(recipe), table).documents
    assert found.select(["stars", "other"]).to_pydict() == {"stars": [4, 2], "other": ["x", "y"]}
    recipe.write_text(text.format("fails"))
    with pytest.raises(WorkerError, match=r"own-one: .*fails failed on all .*not today"):
        curation.run(str(recipe), table)


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not str"):
        judge("a single text")
    with pytest.raises(TypeError, match="not int"):
        near_duplicates(7)
    with pytest.raises(InputError, match="no column text or content, but body"):
        score(pa.table({"body": ["a"]}))
    with pytest.raises(InputError, match="'text' is int64, not strings"):
        judge(pa.table({"text": [1]}))
    with pytest.raises(ConfigError, match="did you mean 'llama3'"):
        judge(["a"], "lama3")
    with pytest.raises(ConfigError, match="needs the column 'domain'"):
        curation.run("llama3", ["a"], stages=["mix"])
    for nothing in ("", " , ", [""]):
        with pytest.raises(ConfigError, match="stages: names no stage"):
            curation.run("llama3", ["a"], stages=nothing)
    for name in ("text", "id"):
        twice = pa.table([["a"], ["b"], ["c"]], names=["text", name, name])
        with pytest.raises(InputError, match=f"several columns '{name}'"):
            curation.run("llama3", twice, stages=["identify-language"])
    with pytest.raises(InputError, match="several columns 'text'"):
        judge(pa.table([["a"], ["b"]], names=["text", "text"]))
    with pytest.raises(ConfigError, match=r"dedup-urls\.index\.against"):
        curation.run("llama3", [_PROSE], assignments=["dedup-urls.index.against=[old]"])
    with pytest.raises(ConfigError, match="identify-language must come before"):
        curation.run("llama3", ["a"], stages=["filter", "identify-language"])


def test_languages_are_identified_where_there_are_none() -> None:
    german = "Die Fähre verließ den Hafen um sechs, und die Möwen flogen mit. " * 9
    texts = [german, _PROSE]
    labelled = pa.table({"text": texts, "language": ["de", "en"]})
    assert repr(judge(texts).to_pylist()) == repr(judge(labelled).to_pylist())
    assert score(texts).equals(score(labelled))
    assert score(texts)["domain"].to_pylist()[0] == "multilingual"
    found = curation.run("llama3", texts, stages=["filter"])
    both = [*found.documents.to_pylist(), *found.removed.to_pylist()]
    assert {row["text"][:9]: row["language"] for row in both}["Die Fähre"] == "de"
