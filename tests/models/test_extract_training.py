"""Labels of blocks and what training makes of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from curation.errors import ConfigError, InputError
from curation.train.extract import labelling, train
from curation.train.extract.labels import HEADER, keys_of, read_labels, row_of
from curation.train.extract.pages import labelled_examples
from curation.train.extract.settings import ExtractTraining, default_training

PAGE = (
    "<title>Rain</title><body><div class='menu'><ul><li>Home</li><li>Rain</li></ul></div>"
    "<h1>Rain</h1><p>It rained for three days in the valley.</p><p>Then the river rose.</p>"
    "<div class='comments'><p>Here too, since Monday!</p></div><p>Imprint</p></body>"
)


def data_with(folder: Path, pages: dict[str, str]) -> Path:
    html = folder / "news" / "html"
    html.mkdir(parents=True)
    rows = []
    for page_id, source in pages.items():
        (html / f"{page_id}.html").write_text(source, encoding="utf-8")
        rows.append(json.dumps({"id": page_id, "site": f"{page_id}.example", "text": None}))
    (folder / "news" / "gold.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return folder


def settings_with(labels: Path, rows: list[str], **changed: object) -> ExtractTraining:
    labels.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    return default_training().model_copy(update={"label_file": str(labels), **changed})


def test_a_block_is_named_by_its_words_and_its_turn() -> None:
    first, other, second = keys_of(["Read  more", "Rain", "Read\nmore"])
    assert second == first + "/1"
    assert other not in (first, second)


def test_labels_come_back_as_they_were_written(tmp_path: Path) -> None:
    texts = ["Home", "Rain", "Rain", "It rained."]
    row = row_of("news/a/b", texts, [2, 3], [0])
    settings = settings_with(tmp_path / "labels.tsv", [row])
    (labels,) = read_labels(settings.label_file)
    keys = keys_of(texts)
    assert (labels.set_name, labels.page_id) == ("news", "a/b")
    assert labels.main == {keys[2], keys[3]}
    assert labels.left_open == {keys[0]}


def test_a_malformed_row_is_named(tmp_path: Path) -> None:
    settings = settings_with(tmp_path / "labels.tsv", ["news\ta"])
    with pytest.raises(ConfigError, match=r"labels\.tsv:2: 2 columns"):
        read_labels(settings.label_file)


def test_pages_are_labelled_as_the_file_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = data_with(tmp_path, {"a": PAGE})
    labelling.main(["--data", str(data), "news/a"])
    blocks = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert blocks["2"] == "Rain"
    read = tmp_path / "read.jsonl"
    read.write_text(json.dumps({"page": "news/a", "main": "2-4", "open": "5"}), encoding="utf-8")
    labelling.main(["--data", str(data), "--pack", str(read)])
    rows = capsys.readouterr().out.splitlines()[1:]
    settings = settings_with(tmp_path / "labels.tsv", rows)
    original, rewritten = labelled_examples(data, settings)
    assert original.label.tolist() == [0, 0, 1, 1, 1, 0, 0]
    assert original.judged.tolist() == [True] * 5 + [False, True]
    assert (original.block_weights() > 0).tolist() == original.judged.tolist()
    assert original.group == "a.example"
    assert rewritten.is_variant
    assert rewritten.label.sum() >= 2
    assert (~rewritten.judged).sum() == 1


def test_another_page_than_the_labelled_one_is_refused(tmp_path: Path) -> None:
    data = data_with(tmp_path, {"a": "<p>Something else now stands here.</p>"})
    row = row_of("news/a", ["Rain", "It rained for three days in the valley."], [0, 1], [])
    settings = settings_with(tmp_path / "labels.tsv", [row])
    with pytest.raises(InputError, match="news/a: 0 of 2 labelled blocks"):
        list(labelled_examples(data, settings))
    settings = settings_with(tmp_path / "labels.tsv", [row.replace("\ta\t", "\tb\t")])
    with pytest.raises(InputError, match="no page b, which is labelled"):
        list(labelled_examples(data, settings))


def test_training_learns_labelled_pages_and_repeats_itself(tmp_path: Path) -> None:
    pages, rows = {}, []
    for i in range(12):
        pages[f"p{i}"] = PAGE.replace("three", str(i + 2)).replace("river", f"river {i}")
    data = data_with(tmp_path / "data", pages)
    for page_id in pages:
        source = pages[page_id]
        texts = ["Home", "Rain", "Rain", *source.split("<p>")[1].split("</p>")[:1]]
        texts.append(source.split("<p>")[2].split("</p>")[0])
        rows.append(row_of(f"news/{page_id}", texts, [2, 3, 4], []))
    settings = settings_with(
        tmp_path / "labels.tsv", rows, sets=(), trees=20, min_samples_leaf=5, class_sites=2
    )
    files = []
    for _ in range(2):
        ((fold, model),) = train(data, settings)
        assert fold is None
        model.save(tmp_path / "blocks.npz")
        files.append((tmp_path / "blocks.npz").read_bytes())
    assert files[0] == files[1]
    assert np.isfinite(model.forest.threshold).all()
