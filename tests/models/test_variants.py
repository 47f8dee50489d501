"""Pages made from pages, for training."""

from __future__ import annotations

import random

import numpy as np

from curation.config import read_values
from curation.extract import blocks as s
from curation.extract.decide import Limits
from curation.extract.extractor import default_settings
from curation.extract.features import COUNT, stated
from curation.extract.model import load
from curation.extract.native import _judge_blocks
from curation.extract.scan import scan
from models.training.extract import variants
from models.training.extract.pages import block_texts

PAGE = (
    "<title>A story</title><body><h1>A story</h1>"
    + "".join(f'<p class="text">Paragraph {i} of the story.</p>' for i in range(20))
    + "<footer>Imprint</footer>"
)
OTHER = (
    '<body><ul class="posts">' + "".join(f"<li>Post {i} says so</li>" for i in range(9)) + "</ul>"
)


def scanned(html: str) -> s.Page:
    return scan(html.encode(), 512, 10_000)


def test_shortened_ends_the_content_early_and_leaves_the_rest() -> None:
    page = scanned(PAGE)
    label = np.array([1.0] * 21 + [0.0])
    words = np.array([2.0] + [5.0] * 20 + [1.0])
    left = variants.shortened(label, words, (20, 30), random.Random(1))
    assert left is not None
    texts = block_texts(variants.subset(page, left))
    assert texts[0] == "A story"
    assert texts[-1] == "Imprint"
    assert 4 <= len(texts) - 2 <= 6
    assert variants.shortened(label, words, (90, 99), random.Random(1)) is None


def test_foreign_content_stops_at_its_limit() -> None:
    label, words = np.array([0.0, 1, 1, 0, 1, 1]), np.full(6, 10.0)
    assert variants.foreign_content(label, words, 15, random.Random(0)).tolist() == [1, 2]


def test_grafted_reads_as_one_page() -> None:
    page, other = scanned(PAGE), scanned(OTHER)
    made = variants.grafted(page, other, np.array([2, 3]))
    assert block_texts(made) == [*block_texts(page), "Post 2 says so", "Post 3 says so"]
    parents = made.e_parent[made.b_element[-2:]]
    assert (
        made.e_tag[parents].tolist() == other.e_tag[other.e_parent[other.b_element[2:4]]].tolist()
    )
    assert made.e_parent[0] == -1
    assert (made.e_parent[1:] < np.arange(1, len(made.e_parent))).all()
    assert made.e_tokens[-1] == len(made.tokens)
    same = np.diff(made.e_tokens)[len(page.e_parent) :] == np.diff(other.e_tokens)[1:]
    assert same.all()
    source, blocks = PAGE.encode(), np.arange(len(made.b_start))
    settings = default_settings()
    told = (tuple(made), tuple(stated(source, made)), (blocks >= 0, blocks))
    limits = settings.comments, tuple(read_values(settings.decision, Limits))
    _, measured, *_ = _judge_blocks(*told, load(settings.model).arrays, limits)
    assert measured.shape == (len(blocks), COUNT)
