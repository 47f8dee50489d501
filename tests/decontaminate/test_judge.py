"""What becomes of documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curation.decontaminate.catalog import build_catalog
from curation.decontaminate.decontaminate_settings import EvalSettings, default_settings
from curation.decontaminate.index import load_background
from curation.decontaminate.items import Item
from curation.decontaminate.judge import FOUND, Decontaminated, Decontaminator
from curation.decontaminate.overlap import overlap, summary

TRAIN = (
    "A freight train leaves Kassel at noon carrying 340 crates of porcelain, and a courier on a "
    "red motorbike follows it forty minutes later. How many crates reach Marburg unbroken?"
)
BEES = "Which beekeeper in Tartu patented the copper smoker?"
PASSAGE = (
    "The copper smoker was an ornament of every Estonian apiary. Its inventor, the beekeeper Jaan "
    "Tammsaar in Tartu, patented the copper smoker in 1911 and died poor in a rented room."
)
SKY = "Which of the following is true?"
CHOICES = (
    "Penguins nest in the Sahara during monsoons",
    "Basalt floats on glycerine",
    "Neon signs were first exhibited in Paris by Georges Claude",
)
ITEMS = [
    Item("sums", "1", TRAIN, (), "312"),
    Item("bees", "7", BEES, (), "Jaan Tammsaar", PASSAGE),
    Item("facts", "x", SKY, CHOICES, CHOICES[2]),
]
ACTING = dict.fromkeys(("sums", "bees", "facts", "set"), ("question",))
FILLER = (
    "Our garden centre opens at nine on weekdays, and the café sells plum cake until it is gone. "
    * 5
)


def decontaminator(**settings: Any) -> Decontaminator:
    evals = {
        name: EvalSettings(files=("-",), **settings.pop(name, {}))
        for name in ("sums", "bees", "facts")
    }
    changed = default_settings().model_copy(update=settings | {"evals": evals})
    return Decontaminator(changed, build_catalog(ITEMS, load_background(changed.background)))


def decontaminator_of(questions: list[str]) -> Decontaminator:
    """The default settings on questions of one set."""
    settings = default_settings().model_copy(update={"evals": {"set": EvalSettings(files=("-",))}})
    items = [Item("set", str(k), question) for k, question in enumerate(questions)]
    return Decontaminator(settings, build_catalog(items, load_background(settings.background)))


def judged(*texts: str, **settings: Any) -> Decontaminated:
    source = {"file": "web/a.warc", "offset": 0}
    rows = [{"id": str(i), "text": text, "source": source} for i, text in enumerate(texts)]
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("text", pa.large_string()),
            ("source", pa.struct([("file", pa.string()), ("offset", pa.int64())])),
        ]
    )
    return decontaminator(**settings).apply(pa.RecordBatch.from_pylist(rows, schema))


def reasons(*texts: str, **settings: Any) -> list[str | None]:
    return judged(*texts, **settings).verdicts.reason.to_pylist()  # type: ignore[no-any-return]


def test_questions_are_found_however_they_are_wrapped() -> None:
    words = TRAIN.split()
    wrapped = "\n".join(" ".join(words[i : i + 3]) for i in range(0, len(words), 3))
    edited = TRAIN.replace("noon", "midnight").replace("red", "small blue")
    styled = "## " + TRAIN.upper().replace(",", "").replace(" ", " **", 1)
    for text in (TRAIN, wrapped, edited, styled):
        assert reasons(FILLER + text + FILLER) == ["contamination.sums"]
    assert reasons(FILLER) == [None]


def test_halves_in_different_places_are_seen_together() -> None:
    words = TRAIN.split()
    halves = " ".join(words[:15]), " ".join(words[15:])
    for first, second in (halves, halves[::-1]):
        text = f"{FILLER}{first}\n{FILLER * 6}{second}\n{FILLER}"
        assert reasons(text) == ["contamination.sums"]
        assert reasons(f"{FILLER}{first}\n{FILLER * 6}") == [None]
        cut = judged(text, action="cut")
        assert [row["text"] for row in cut.edits.to_pylist()] == [first, second]


def test_the_half_that_all_items_share_is_seen_with_the_other() -> None:
    """Of a template no n-gram is indexed, and another item's own half is no item."""
    shared = (
        "Here is a ledger where every line names a lighthouse, its keeper, the year it was lit and "
        "how far its beam reaches over the water on a clear night, in nautical miles."
    )
    own = [
        f"Which keeper of lighthouse {one} lit lamp {17 * k + 3} after {two}?"
        for k, (one, two) in enumerate(zip("abcdefghij" * 6, "klmnopqrst" * 6, strict=True))
    ]
    own[4] = "Which keeper, Ondine or Barnabas, rowed 41 miles to the wreck of the Amaranth?"
    judge = decontaminator_of([f"{shared} {question}" for question in own])
    texts = [f"{FILLER}{own[4]}\n{FILLER * 6}{shared}\n{FILLER}", f"{FILLER}{shared}\n{FILLER}"]
    found = [[f.id for f in some if f.action == "remove"] for some in judge.find(pa.array(texts))]
    assert found == [["4"], []]


def test_the_same_template_with_other_numbers_and_words_stays() -> None:
    other = (
        TRAIN.replace("340", "85")
        .replace("porcelain", "melons")
        .replace("Kassel", "Gdynia")
        .replace("Marburg", "Torun")
        .replace("red motorbike", "steam tractor")
        .replace("forty", "ten")
    )
    assert reasons(FILLER + other) == [None]


def test_a_passage_alone_is_marked() -> None:
    result = judged(FILLER + PASSAGE)
    assert result.verdicts.reason.to_pylist() == [None]
    (marks,) = result.batch["contamination"].to_pylist()
    assert [(m["set"], m["item"], m["part"]) for m in marks] == [("bees", "7", "passage")]
    assert reasons(FILLER + PASSAGE, parts=("question", "passage")) == ["contamination.bees"]
    # RACE's passages were written for it, as its mapping says.
    assert reasons(FILLER + PASSAGE, bees={"mapping": "race"}) == ["contamination.bees"]


def test_short_items_need_their_answer_or_every_word() -> None:
    short = BEES.replace("patented", "invented")
    assert reasons(FILLER + BEES + FILLER) == ["contamination.bees"]
    assert reasons(FILLER + short + FILLER) == [None]
    assert reasons(f"{FILLER} {short} It was Jaan Tammsaar. {FILLER}") == ["contamination.bees"]


def test_short_items_that_say_enough_may_have_an_edit() -> None:
    asks = "Which Latvian cellist restored the windmill near Talsi after the flood of the harbour?"
    ours = decontaminator_of([asks])
    texts = [asks.replace("near", "by"), asks.replace("Latvian cellist", "Danish dentist")]
    found = list(ours.find([FILLER + text + FILLER for text in texts]))
    assert [[f.action for f in some] for some in found] == [["remove"], ["touched"]]


@pytest.mark.parametrize(
    "source",
    [
        "Sphagnum is the moss from whose spongy cushions the crofters of Jura cut and dried fuel.",
        "For a lamp, the moss from whose spongy cushions the crofters of Jura cut fuel is dried.",
    ],
)
def test_what_a_question_asks_about_is_not_the_question(source: str) -> None:
    asks = (
        "Please name the moss from whose spongy cushions the crofters of Jura cut and dried fuel."
    )
    ours = decontaminator_of([asks])
    some, edited = ours.find([FILLER + source, FILLER + asks.replace("spongy", "soft")])
    assert [f.action for f in some] == ["touched"]
    assert [f.action for f in edited] == ["remove"]


def test_choices_alone_are_marked() -> None:
    choices = tuple(f"{c} and so does its neighbour in the {c.split()[1]} country" for c in CHOICES)
    item = Item("facts", "x", "How might an ornithologist dispute this?", choices)
    settings = default_settings()
    settings = settings.model_copy(update={"evals": {"facts": EvalSettings(files=("-",))}})
    ours = Decontaminator(settings, build_catalog([item], load_background(settings.background)))
    listed = "\n".join(
        f"({letter}) {choice}" for letter, choice in zip("ABC", choices, strict=True)
    )
    alone, whole = ours.find([FILLER + listed, f"{FILLER}{item.question}\n{listed}"])
    assert {(f.part, f.action) for f in alone} == {("choices", "mark"), ("question", "touched")}
    assert {("choices", "mark"), ("question", "remove")} <= {(f.part, f.action) for f in whole}


def test_a_stock_question_counts_with_its_choices_only() -> None:
    assert reasons(FILLER + SKY + FILLER) == [None]
    options = "\n".join(f"({letter}) {c}" for letter, c in zip("ABC", CHOICES, strict=True))
    assert reasons(f"{FILLER}{SKY}\n{options}\n{FILLER}") == ["contamination.facts"]


def test_removed_documents_say_why() -> None:
    result = judged(FILLER, FILLER + TRAIN, FILLER)
    verdicts = result.verdicts
    assert verdicts.value.to_pylist() == [None, 1.0, None]
    assert verdicts.threshold.to_pylist() == [None, default_settings().threshold, None]
    (row,) = result.found.to_pylist()
    assert (row["id"], row["set"], row["item"], row["part"]) == ("1", "sums", "1", "question")
    assert row["input"] == "web" and row["exact"] == 1 and row["action"] == "remove"
    text = (FILLER + TRAIN).encode()
    assert text[row["start"] : row["end"]].decode() == TRAIN.rstrip("?") == row["text"]
    assert row["item_text"] == TRAIN


def test_cuts_take_the_span_and_keep_the_rest() -> None:
    text = f"Før. {TRAIN} Etter: {TRAIN.lower()} Slutt."
    result = judged(text, sums={"action": "cut"})
    assert result.batch["text"].to_pylist() == ["Før.  Etter:  Slutt."]
    cuts = result.edits.to_pylist()
    assert [cut["reason"] for cut in cuts] == ["contamination.sums"] * 2
    assert [cut["text"] for cut in cuts] == [TRAIN, TRAIN.lower()]
    raw = text.encode()
    for cut in cuts:
        assert raw[cut["position"] :].startswith(cut["text"].encode())


def test_nothing_left_is_removed() -> None:
    result = judged(TRAIN, sums={"action": "cut"})
    assert result.verdicts.reason.to_pylist() == ["contamination.sums"]
    assert result.batch["text"].to_pylist() == [TRAIN]  # as it was
    assert result.edits.num_rows == 0


def test_actions_and_thresholds_are_of_the_set() -> None:
    assert reasons(TRAIN, sums={"action": "mark"}) == [None]
    edited = (
        TRAIN.replace("porcelain", "glass").replace("courier", "rider").replace("Marburg", "Fulda")
    )
    assert reasons(edited) == ["contamination.sums"]
    assert reasons(edited, sums={"threshold": 0.99}) == [None]
    assert reasons(TRAIN, action="mark") == [None]


@pytest.mark.parametrize("texts", [[], [""], ["", TRAIN, ""], [None]])
def test_odd_batches(texts: list[str]) -> None:
    result = judged(*texts)
    assert result.batch.num_rows == len(texts) == len(result.verdicts.reason)
    assert result.found.schema == FOUND


def test_batches_do_not_matter() -> None:
    texts = [FILLER + TRAIN, FILLER, PASSAGE, BEES + TRAIN]
    whole = judged(*texts, bees={"action": "cut"})
    alone = [judged(text, bees={"action": "cut"}) for text in texts]
    assert whole.verdicts.reason.to_pylist() == [a.verdicts.reason[0].as_py() for a in alone]
    assert whole.batch["text"].to_pylist() == [a.batch["text"][0].as_py() for a in alone]


def test_the_table() -> None:
    found = judged(FILLER + TRAIN, PASSAGE, FILLER).found
    catalog = build_catalog(ITEMS, load_background(default_settings().background))
    detectable = np.ones(len(ITEMS), np.bool_)
    rows = overlap("filter", catalog.items, detectable, [found], FOUND, ACTING)
    states = {(r["input"], r["set"]): r["state"] for r in rows.to_pylist()}
    assert states["", "sums"] == states["web", "sums"] == "dirty"
    assert states["", "bees"] == "touched" and states["", "facts"] == "clean"
    shares = summary(rows)
    assert [row["set"] for row in shares] == ["sums", "bees", "facts"] * 2
    assert shares[0]["dirty"] == 1 and shares[0]["documents"] == 1 and shares[2]["clean"] == 1


def test_items_that_cannot_be_found_are_not_clean() -> None:
    code = "def f(a, b):\n    return a + b"
    many = [f"Evaluate the Boolean expression now: not {w}" for w in ("true", "false") * 20]
    questions = [TRAIN, "Really?", code, "of the and to in a", *many]
    ours = decontaminator_of(questions)
    detectable = ours.detectable()
    assert detectable[:4].tolist() == [True, False, False, False]
    # An item is found in its own words, or is said to be undetectable.
    for question, can in zip(questions, detectable.tolist(), strict=True):
        (found,) = ours.find([f"{FILLER}\n{question}\n{FILLER}"])
        assert any(f.action == "remove" for f in found) == can
    rows = overlap("x", ours.items, detectable, [], FOUND, ACTING)
    assert rows["state"].to_pylist()[:4] == ["clean", *["undetectable"] * 3]
    assert summary(rows)[0]["undetectable"] == round(1 - detectable.mean(), 4)


def test_choices_may_be_in_another_order() -> None:
    item = Item("facts", "x", SKY, CHOICES, CHOICES[2])
    settings = default_settings().model_copy(
        update={"evals": {"facts": EvalSettings(files=("-",))}}
    )
    ours = Decontaminator(settings, build_catalog([item], load_background(settings.background)))
    listed = [f"({letter}) {CHOICES[k]}" for letter, k in zip("ABC", (2, 0, 1), strict=True)]
    (found,) = ours.find([f"{FILLER}\n{SKY}\n" + "\n".join(listed)])
    best = found[0]
    assert (best.part, best.action, best.score) == ("question", "remove", 1.0)


def test_a_definition_with_the_words_of_a_question_is_not_the_question() -> None:
    asks = "What is the gland by which the musk deer of Bhutan marks juniper stumps at dusk?"
    ours = decontaminator_of([asks])
    statement = asks.replace("What", "The caudal gland").replace("?", ".")
    said, asked = ours.find([FILLER + statement + FILLER, FILLER + asks + FILLER])
    assert [f.action for f in said] == ["touched"]
    assert [f.action for f in asked] == ["remove"]
