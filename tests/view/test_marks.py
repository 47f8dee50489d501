"""Marked texts say what was there before and what is left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.reading.document import Cut, Edit, Segment, mark

_LINES = st.lists(
    st.sampled_from(["", "a", "é\n", "词词\n", "one two\n", "\n", "x@y.z "]), max_size=8
)


def before(segments: list[Segment]) -> str:
    return "".join(s.text for s in segments if s.kind != "added")


def after(segments: list[Segment]) -> str:
    return "".join(s.text for s in segments if s.kind != "cut")


@given(_LINES, _LINES)
def test_whatever_a_stage_left_is_found_by_comparison(old: list[str], new: list[str]) -> None:
    found = mark("".join(old), [Edit("s", [], "".join(new))])
    assert before(found) == "".join(old)
    assert after(found) == "".join(new)


@given(_LINES, st.data())
def test_cuts_are_marked_where_they_were(pieces: list[str], data: st.DataObject) -> None:
    gone = data.draw(st.lists(st.booleans(), min_size=len(pieces), max_size=len(pieces)))
    cuts, at = [], 0
    for piece, cut in zip(pieces, gone, strict=True):
        if cut and piece:
            cuts.append(Cut("r", at, piece))
        at += len(piece.encode())
    left = "".join(p for p, cut in zip(pieces, gone, strict=True) if not cut)
    found = mark("".join(pieces), [Edit("s", cuts, left)])
    assert before(found) == "".join(pieces)
    assert [s.text for s in found if s.kind == "cut"] == [c.text for c in cuts]
    assert all(s.reason == "r" for s in found if s.kind == "cut")


def test_two_stages_and_a_replacement() -> None:
    text = "keep\nmenu\nwrite to me@example.org today\nfooter\n"
    first = Edit("dedup-lines", [Cut("lines.frequent", 5, "menu\n")], text.replace("menu\n", ""))
    second = Edit(
        "filter",
        [Cut("c4.short", len("keep\nwrite to me@example.org today\n"), "footer\n")],
        "keep\nwrite to <email> today\n",
    )
    found = mark(text, [first, second])
    assert before(found) == text
    assert after(found) == second.after
    assert Segment("menu\n", "cut", "dedup-lines", "lines.frequent") in found
    assert Segment("footer\n", "cut", "filter", "c4.short") in found


def test_a_cut_that_is_not_there_is_left_out() -> None:
    assert mark("abc", [Edit("s", [Cut("r", 1, "zz")], "abc")]) == [Segment("abc")]
