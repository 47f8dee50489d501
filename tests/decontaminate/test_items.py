"""Evaluation sets in the formats people have, and the mappings that come with the toolkit."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from curation.decontaminate.decontaminate_settings import (
    COMMON,
    Fields,
    load_mapping,
    mapping_names,
)
from curation.decontaminate.items import Item, item_of, read_items
from curation.errors import ConfigError, InputError
from curation.recipe import load

EVALS = Path(__file__).parents[3] / "shared" / "data" / "evals"
ROWS = [
    {"id": "a", "question": "Who?", "answer": "Me"},
    {"id": "b", "question": "What?", "answer": ""},
]
ITEMS = [Item("s", "a", "Who?", (), "Me"), Item("s", "b", "What?")]


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


FILES = {
    "a.jsonl": jsonl(ROWS),
    "a.jsonl.gz": gzip.compress(jsonl(ROWS)),
    "a.jsonl.zst": zstandard.compress(jsonl(ROWS[:1])) + zstandard.compress(jsonl(ROWS[1:])),
    "a.json": json.dumps(ROWS).encode(),
    "b.json": json.dumps({"version": "1", "examples": ROWS}).encode(),
    "a.csv": b"id,question,answer\na,Who?,Me\nb,What?,\n",
    "a.tsv.gz": gzip.compress(b"id\tquestion\tanswer\na\tWho?\tMe\nb\tWhat?\t\n"),
    "a.parquet": parquet(ROWS),
    "a.parquet.gz": gzip.compress(parquet(ROWS)),
}


@pytest.mark.parametrize("name", FILES)
def test_formats(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    assert list(read_items("s", [str(tmp_path / name)])) == ITEMS


LONG = "Wie heißt die größte Straße der Stadt, und wer hat sie im letzten Jahrhundert gebaut?"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", f"id;question\n1;{LONG}\n".replace(",", " ").encode("latin-1")),
        ("a.csv", f"id\tquestion\n1\t{LONG}\n".encode("utf-16")),
        ("a.tsv", f'id\tquestion\n1\t{LONG}\n2\t"{LONG}\n'.encode()),
        ("a.jsonl", json.dumps([{"question": LONG}], indent=1).encode()),
        ("a.jsonl", json.dumps({"question": LONG, "note": "\ud83d"}).encode()),
    ],
)
def test_files_as_other_programs_write_them(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert next(read_items("s", [str(tmp_path / name)])).question.replace(",", " ") == LONG.replace(
        ",", " "
    )


def test_half_a_character_and_columns_of_bytes(tmp_path: Path) -> None:
    """The first ended the run, of the second nothing was found."""
    (tmp_path / "a.jsonl").write_text('{"question": "Who \\ud83d?"}')
    (item,) = read_items("s", [str(tmp_path / "a.jsonl")])
    assert item.question == "Who \ufffd?"
    for name in ("b.jsonl", "b.json"):
        (tmp_path / name).write_text('[{"question": "Who \\udc4d \\udce9?"}]')
        (item,) = read_items("s", [str(tmp_path / name)])
        assert item.question == "Who \ufffd \ufffd?"
    (tmp_path / "c.jsonl").write_bytes('{"question": "Où va la fête de l’été?"}'.encode("cp1252"))
    (item,) = read_items("s", [str(tmp_path / "c.jsonl")])
    assert item.question == "Où va la fête de l’été?"
    table = pa.table({"question": [b"Who?"], "choices": [[b"I", b"you"]], "answer": [b"you"]})
    pq.write_table(table, tmp_path / "a.parquet")
    (item,) = read_items("s", [str(tmp_path / "a.parquet")])
    assert (item.question, item.choices, item.answer) == ("Who?", ("I", "you"), "you")


def test_rows_of_several_files_have_ids_of_their_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        rows = [{"question": f"{name} {k}?"} for k in range(2)]
        (tmp_path / f"{name}.jsonl").write_bytes(jsonl(rows))
    found = read_items("s", [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")])
    assert [item.id for item in found] == ["0", "1", "0#2", "1#2"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", b'{"question": "Who?"}\n{"questi', r"a\.jsonl: row 2: "),
        ("a.jsonl", b"[1]\n", r"a\.jsonl: row 1: '1' is not an object"),
        ("a.jsonl", b'{"other": 1}\n', r"a\.jsonl: no row has a question in any of: question, "),
        ("a.parquet", b"PAR1 and no more", r"a\.parquet: row 1: "),
        ("a.jsonl.gz", gzip.compress(jsonl(ROWS), mtime=0)[:-9], r"a\.jsonl\.gz: row "),
    ],
)
def test_broken_files_are_named(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=says):
        list(read_items("s", [str(tmp_path / name)]))


def test_outputs_of_lm_evaluation_harness() -> None:
    doc = {
        "question": "Who?",
        "choices": {"text": ["You", "Me"], "label": ["A", "B"]},
        "answerKey": "B",
    }
    row = {
        "doc_id": 7,
        "doc": doc,
        "target": "1",
        "arguments": [["Q: Who?\nA:", " Me"]],
        "resps": [],
    }
    assert item_of("s", row, load_mapping("arc").fields, "0") == Item(
        "s", "7", "Who?", ("You", "Me"), "Me"
    )
    plain = {"doc_id": 3, "doc": {"question": "Who?"}, "target": "Me"}
    assert item_of("s", plain, COMMON, "0").answer == "Me"


def test_files_of_decon() -> None:
    row = {
        "eval_key": "gsm8k",
        "eval_instance_index": 4,
        "split": "test",
        "question": "How many?",
        "passage": "A text.",
        "answer": "Two",
    }
    assert item_of("s", row, COMMON, "0") == Item("s", "4", "How many?", (), "Two", "A text.")


@pytest.mark.parametrize(
    ("fields", "row", "expected"),
    [
        (
            {"question": ["q"], "choices": ["a", "b"], "answer": ["right"]},
            {"q": "?", "a": "x", "b": "y", "right": 1},
            ("?", ("x", "y"), "y"),
        ),
        (
            {"question": ["q"], "choices": ["c"], "answer": ["right"]},
            {"q": "?", "c": ["x", "y"], "right": "(a)"},
            ("?", ("x", "y"), "x"),
        ),
        (
            {"question": ["q"], "choices": ["c"], "answer": ["right"]},
            {"q": "?", "c": {"B": "y", "A": "x"}, "right": "B"},
            ("?", ("x", "y"), "y"),
        ),
        (
            {"question": ["none", "q"], "also": ["more"]},
            {"q": "One.", "more": "Two?"},
            ("One.\nTwo?", (), ""),
        ),
        (
            {"question": ["q"], "choices": ["c"], "answer": ["right"]},
            {"q": "2 + 1?", "c": ["3", "2"], "right": "3"},
            ("2 + 1?", ("3", "2"), "3"),
        ),
        ({"question": ["m.0.content"]}, {"m": [{"content": "Hi"}]}, ("Hi", (), "")),
        ({"question": ["A b"], "answer": ["n"]}, {"A b": "?", "n": 51.0}, ("?", (), "51.0")),
    ],
)
def test_fields(fields: dict[str, Any], row: dict[str, Any], expected: tuple[Any, ...]) -> None:
    item = item_of("s", row, Fields.model_validate(fields), "0")
    assert (item.question, item.choices, item.answer) == expected


#: Rows as the sets publish them, shortened; what becomes of them.
PUBLISHED: dict[str, tuple[dict[str, Any], Item]] = {
    "mmlu": (
        {"question": "Q", "subject": "x", "choices": ["a", "b", "c", "d"], "answer": 2},
        Item("s", "0", "Q", ("a", "b", "c", "d"), "c"),
    ),
    "mmlu_pro": (
        {
            "question_id": 70,
            "question": "Q",
            "options": ["a", "b"],
            "answer": "B",
            "answer_index": 1,
        },
        Item("s", "70", "Q", ("a", "b"), "b"),
    ),
    "hellaswag": (
        {"ind": 4, "ctx": "C", "endings": ["a", "b"], "label": "1"},
        Item("s", "4", "C", ("a", "b"), "b"),
    ),
    "winogrande": (
        {"sentence": "S _", "option1": "a", "option2": "b", "answer": "2"},
        Item("s", "0", "S _", ("a", "b"), "b"),
    ),
    "boolq": (
        {"question": "q", "answer": True, "passage": "P"},
        Item("s", "0", "q", (), "True", "P"),
    ),
    "squad": (
        {
            "id": "5",
            "title": "T",
            "context": "C",
            "question": "Q",
            "answers": {"text": ["x", "y"], "answer_start": [1, 2]},
        },
        Item("s", "5", "Q", (), "x", "C"),
    ),
    "triviaqa": (
        {"question": "Q", "question_id": "tc_1", "answer": {"value": "v", "aliases": ["w"]}},
        Item("s", "tc_1", "Q", (), "v"),
    ),
    "gpqa": (
        {
            "Question": "Q",
            "Correct Answer": "a",
            "Incorrect Answer 1": "b",
            "Incorrect Answer 2": "c",
            "Incorrect Answer 3": "d",
            "Record ID": "r",
        },
        Item("s", "r", "Q", ("a", "b", "c", "d"), "a"),
    ),
    "gsm8k": ({"question": "Q", "answer": "so\n#### 5"}, Item("s", "0", "Q", (), "so\n#### 5")),
    "asdiv": (
        {"body": "B.", "question": "Q?", "answer": "9 (apples)"},
        Item("s", "0", "B.\nQ?", (), "9 (apples)"),
    ),
    "medmcqa": (
        {"id": "i", "question": "Q", "opa": "a", "opb": "b", "opc": "c", "opd": "d", "cop": 3},
        Item("s", "i", "Q", ("a", "b", "c", "d"), "d"),
    ),
    "pubmedqa": (
        {"pubid": 1, "question": "Q", "context": {"contexts": ["x", "y"]}, "long_answer": "L"},
        Item("s", "1", "Q", (), "L", "x\ny"),
    ),
    "truthfulqa": (
        {"question": "Q", "mc1_targets": {"choices": ["a", "b"], "labels": [1, 0]}},
        Item("s", "0", "Q", ("a", "b"), "a"),
    ),
    "arc": (
        {
            "id": "M_1",
            "question": "Q",
            "choices": {"text": ["a", "b"], "label": ["1", "2"]},
            "answerKey": "1",
        },
        Item("s", "M_1", "Q", ("a", "b"), "a"),
    ),
    "siqa": (
        {"context": "C", "question": "Q", "answerA": "a", "answerB": "b", "label": "2"},
        Item("s", "0", "C\nQ", ("a", "b"), "b"),
    ),
    "aime": ({"ID": "1990-1", "Question": "Q", "Answer": 7}, Item("s", "1990-1", "Q", (), "7")),
    "medqa": (
        {"sent1": "Q", "ending0": "a", "ending1": "b", "label": 1},
        Item("s", "0", "Q", ("a", "b"), "b"),
    ),
    "agieval": (
        {"query": "Q", "choices": ["(A)a", "(B)b"], "gold": [1]},
        Item("s", "0", "Q", ("(A)a", "(B)b"), "(B)b"),
    ),
    "belebele": (
        {
            "question_number": 2,
            "question": "Q",
            "flores_passage": "P",
            "mc_answer1": "a",
            "mc_answer2": "b",
            "mc_answer3": "c",
            "mc_answer4": "d",
            "correct_answer_num": "1",
        },
        Item("s", "2", "Q", ("a", "b", "c", "d"), "a", "P"),
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_mappings_of_published_rows(name: str) -> None:
    row, expected = PUBLISHED[name]
    assert item_of("s", row, load_mapping(name).fields, "0") == expected


def test_every_mapping_is_complete() -> None:
    assert len(mapping_names()) >= 40
    for name in mapping_names():
        mapping = load_mapping(name)
        assert mapping.title and mapping.licence and mapping.splits
        assert mapping.source.startswith("https://")


def test_an_unknown_mapping() -> None:
    with pytest.raises(
        ConfigError, match=r"no mapping 'gsm8' in configs/evals; did you mean 'gsm8k'\?"
    ):
        load_mapping("gsm8")


@pytest.mark.skipif(not EVALS.is_dir(), reason="no real evaluation sets here")
@pytest.mark.parametrize(
    ("name", "items"),
    [("humaneval", 164), ("bbh", 6511), ("xquad", 14280), ("svamp", 1000), ("cruxeval", 800)],
)
def test_mappings_of_real_sets(name: str, items: int) -> None:
    found = list(read_items(name, [str(EVALS / f"{name}.jsonl.gz")], load_mapping(name).fields))
    assert len(found) == items == len({item.id for item in found})
    assert all(item.question for item in found)
    assert sum(bool(item.answer) for item in found) > 0.99 * items
    assert all(item.passage for item in found) == (name == "xquad")


def test_sets_named_by_their_files() -> None:
    short = ["decontaminate.evals=[a/sums.jsonl.gz, b/sums.csv, s3://c/bees.parquet]"]
    evals = load("llama3", short).settings("decontaminate").evals  # type: ignore[attr-defined]
    assert {name: s.files for name, s in evals.items()} == {
        "sums": ("a/sums.jsonl.gz", "b/sums.csv"),
        "bees": ("s3://c/bees.parquet",),
    }
    one = load("llama3", ["decontaminate.evals={sums: a.csv}"]).settings("decontaminate")
    assert one.evals["sums"].files == ("a.csv",)  # type: ignore[attr-defined]
