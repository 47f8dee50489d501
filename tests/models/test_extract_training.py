"""Labels of blocks and what training makes of them."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

from curation.errors import ConfigError, InputError
from models.training.extract import labelling, train
from models.training.extract.fillings import Texts
from models.training.extract.labels import HEADER, keys_of, read_labels, row_of
from models.training.extract.pages import labelled_examples, made_examples, words_of
from models.training.extract.settings import ExtractTraining, default_training
from models.training.extract.skeletons import (
    Skeleton,
    filled,
    read_skeletons,
    skeleton_examples,
)
from models.training.saving import save_blocks

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
    own = {"kind": "forum", "language": "de", "html": "<ul><li>Impressum</ul>{{#3}}<p k>{{m}}{{/}}"}
    skeletons = tmp_path / "skeletons.jsonl.gz"
    skeletons.write_bytes(
        gzip.compress("\n".join(json.dumps({"name": n, **own}) for n in "ab").encode())
    )
    settings = settings_with(
        tmp_path / "labels.tsv", rows, sets=(), trees=20, min_samples_leaf=5, class_sites=2,
        skeleton_file=str(skeletons),
    )  # fmt: skip
    files = []
    for _ in range(2):
        ((fold, model),) = train(data, settings)
        assert fold is None
        save_blocks(model, tmp_path / "blocks.npz")
        files.append((tmp_path / "blocks.npz").read_bytes())
    assert files[0] == files[1]
    assert np.isfinite(model.forest.threshold).all()


def skeleton(html: str, language: str = "en") -> Skeleton:
    return Skeleton("000", "article", language, html)


def made(html: str, seed: int = 0, language: str = "en") -> tuple[str, str]:
    texts = Texts(default_training().text_file)
    return filled(skeleton(html, language), texts, random.Random(seed))


def test_marks_of_a_skeleton_hold_for_what_stands_inside_and_are_gone_from_the_page() -> None:
    plain, signed = made(
        "<title k>Rain</title><div id=a k><p>It rained<p x>Advert<ul><li>one<li X>two</li></ul>"
        "<br>three</div><p>Menu<div o>Me too &nbsp;</div>"
    )
    assert plain == (
        "<title>Rain</title><div id=a><p>It rained<p>Advert<ul><li>one<li>two</li></ul>"
        "<br>three</div><p>Menu<div>Me too &nbsp;</div>"
    )
    words = signed.replace("<", " <").replace(">", "> ").split()
    assert [word[1:] for word in words if word[0] == "\ue000"] == ["It", "rained", "one", "three"]


def test_places_of_a_skeleton_are_filled_and_repeated() -> None:
    plain, _ = made("<ul>{{#2-4}}<li>{{t}}{{#3}}<b>{{date}}, {{n}}</b>{{/}}</li>{{/}}</ul>{{T}}")
    assert "{{" not in plain
    assert plain.count("<li>") in (2, 3, 4)
    assert plain.count("<b>") == 3 * plain.count("<li>")
    items = re.findall(r"<li>(.*?)<b>", plain)
    assert len(set(items)) == len(items)


@pytest.mark.parametrize("language", ["en", "ja", "el"])
def test_a_paragraph_has_about_the_words_asked_for(language: str) -> None:
    plain, _ = made("{{m:40-60}}|{{p:5-8}}|{{m:3}}", language=language)
    sizes = [len(words_of(part)) for part in plain.split("|")]
    most = [200, 40, 20] if language == "ja" else [100, 16, 6]
    assert all(0 < size <= limit for size, limit in zip(sizes, most, strict=True))


def test_a_skeleton_is_filled_alike_by_the_same_seed_only() -> None:
    html = "<h1 k>{{T}}</h1>{{#5}}<p k>{{m}}</p>{{/}}"
    assert made(html, 1) == made(html, 1)
    assert made(html, 1) != made(html, 2)


@pytest.mark.parametrize("html", ["{{/}}", "{{#3}}<p>", "<p>{{verse}}</p>", "<p>{{p:3 words}}</p>"])
def test_a_malformed_skeleton_is_named(html: str) -> None:
    with pytest.raises(ConfigError, match="skeleton 000"):
        made(html)


def test_every_skeleton_makes_a_page_with_content_and_without() -> None:
    settings = default_training().model_copy(update={"skeleton_copies": 1})
    examples = list(skeleton_examples(settings))
    assert len(examples) > 250
    for example in examples:
        assert 0 < example.label.mean() < 1, example.name
        assert "\ue000" not in example.source.decode(), example.name


def test_skeletons_of_a_kind_and_the_pages_made_of_them_count_less(tmp_path: Path) -> None:
    html = "<div k>" + "<p>{{m:60-60}}</p>" * 9 + "</div><div>{{p}}</div><div>{{t}}</div>"
    rows = [
        {"name": kind, "kind": kind, "language": "en", "html": html}
        for kind in ("article", "documentation")
    ]
    path = tmp_path / "skeletons.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    settings = default_training().model_copy(
        update={
            "skeleton_file": str(path),
            "skeleton_copies": 1,
            "skeleton_weights": {"documentation": 0.25},
        }
    )
    examples = list(skeleton_examples(settings))
    assert [one.weight for one in examples] == [
        settings.skeleton_weight,
        0.25 * settings.skeleton_weight,
    ]
    made = {(one.kind, one.weight) for one in made_examples(examples, settings)}
    shortened = settings.shortened_weight
    assert made == {("article", shortened), ("documentation", 0.25 * shortened)}


def test_a_row_that_is_no_skeleton_is_named(tmp_path: Path) -> None:
    path = tmp_path / "skeletons.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"name": "000"}\n'))
    with pytest.raises(ConfigError, match=r"skeletons\.jsonl\.gz:1: not a skeleton"):
        read_skeletons(str(path))
