# ruff: noqa: E501 (pages)
"""Rights that follow a text: planted originals, mirrors, translations, quotations and templates."""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.rights.policy import Policy, is_copy
from curation.rights.rights_settings import default_settings
from curation.schema import EXTRACTED, RIGHTS
from pipelines.commands import withdraw
from tests.conftest import curate, curate_well

Row = dict[str, Any]
DAYS = [datetime.datetime(2026, 1, day, tzinfo=datetime.UTC) for day in range(1, 29)]
#: What a site says that forbids training, each in another way.
DENIALS = [
    ("directive", "head", "*", "noai"),
    ("tdm", "header", None, "1"),
    ("content_signal", "header", None, "search=yes, ai-train=no"),
    ("content_usage", "header", None, "train-ai=n"),
    ("rsl", "head", None, "https://o.example/l.xml / prohibits=ai-train"),
]
ALLOWED = ("content_signal", "header", None, "ai-train=yes")
POLICY = ["rights.honour=[train]", "rights.follow={near: 0.8}"]


def signals(*given: tuple[str, str, str | None, str]) -> list[dict[str, str | None]]:
    return [dict(zip(("kind", "place", "agent", "value"), one, strict=True)) for one in given]


def page(
    name: str,
    text: list[str],
    host: str,
    day: int | None,
    *said: tuple[str, str, str | None, str],
    licence: str | None = None,
) -> Row:
    return {
        "id": name,
        "url": f"https://{host}/{name}",
        "date": None if day is None else DAYS[day],
        "text": " ".join(text),
        "title": "",
        "source": {"file": "planted", "offset": 0},
        "rights": {"licence": licence, "signals": signals(*said)},
    }


def words(seed: int, count: int) -> list[str]:
    letters = np.random.default_rng(seed).integers(97, 123, (count, 5))
    return ["".join(map(chr, word)) for word in letters.tolist()]


def planted(clusters: int) -> tuple[list[Row], set[str], set[str]]:
    """Return pages, and the ids of those that must go and that must stay."""
    rows, go, stay = list[Row](), set[str](), set[str]()
    template = words(10**6, 150)
    for i in range(clusters):
        text, host, site = words(i, 400), f"o{i}.example", f"m{i}.example"
        said = DENIALS[i % len(DENIALS)]
        if said[0] == "rsl":
            said = (*said[:3], f"https://{host}/l.xml / prohibits=ai-train")
        head = words(clusters + i, 8)
        original = page(f"o{i}", text, host, 5, said)
        canonical = ("canonical", "head", None, f"https://{host}/o{i}")
        told = [(9, ()), (5, (canonical,)), (2, (canonical,)), (None, ())][i % 4]
        mirrors = [
            page(f"m{i}", [*head, *text], site, told[0], *told[1]),
            page(f"n{i}", text, f"n{i}.example", 11 + i % 9),
        ]
        rows += [original, *mirrors]
        go |= {row["id"] for row in (original, *mirrors)}
        others = [
            page(f"t{i}", words(7 * 10**6 + i, 400), f"t{i}.example", 9),  # a translation
            page(f"q{i}", [*words(3 * 10**6 + i, 250), *text[:120]], f"q{i}.example", 9),
            page(f"b{i}", [*template, *words(4 * 10**6 + i, 200)], host, 9),  # one template
            page(f"f{i}", words(5 * 10**6 + i, 400), f"f{i}.example", 1),  # its copy forbids
        ]
        rows += others
        stay |= {row["id"] for row in others}
        rows.append(page(f"g{i}", [*others[-1]["text"].split(), *head], f"g{i}.example", 9, said))
        go.add(f"g{i}")
    return rows, go, stay


def write(folder: Path, rows: list[Row], shards: int = 3) -> Path:
    folder.mkdir(parents=True)
    schema = pa.schema([EXTRACTED.field(name) for name in rows[0]])
    for i in range(shards):
        pq.write_table(pa.Table.from_pylist(rows[i::shards], schema), folder / f"s{i}.parquet")
    return folder


def run(
    given: Path, out: Path, *changes: str, runner: str = "local", tokenized: bool = False
) -> Path:
    command = ["run", "llama3", "--input", given, "--output", out, "--workers", "0"]
    stages = ["dedup-documents", "rights", *(["tokenize"] if tokenized else [])]
    sets = (f"stages=[{', '.join(stages)}]", "dedup-documents.per_language=false", *POLICY)
    for change in (*sets, *changes):
        command += ["--set", change]
    command += ["--stages", ",".join(stages)]
    curate_well([*command, "--", f"--runner={runner}"])
    return out


def ids(out: Path, kind: str) -> dict[str, Row]:
    return {row["id"]: row for row in pq.read_table(out / kind).to_pylist()}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str], set[str]]:
    place = tmp_path_factory.mktemp("follow")
    rows, go, stay = planted(40)
    return run(write(place / "in", rows), place / "out"), go, stay


def test_copies_go_and_nothing_else(done: tuple[Path, set[str], set[str]]) -> None:
    out, go, stay = done
    left = set(ids(out, "rights/documents"))
    assert left == stay and not left & go
    removed = ids(out, "rights/removed")
    copies = {name: row for name, row in removed.items() if row["reason"] == "rights.copy"}
    assert len(copies) == 40
    for name, row in copies.items():
        assert row["kept_id"] == f"o{name[1:]}" and row["threshold"] == 0.8
        assert 0.8 <= row["value"] <= 1.0
    said = {row["id"]: row for row in pq.read_table(out / "rights/signals").to_pylist()}
    assert said["n0"]["reason"] == "rights.copy" and said["n0"]["value"] == "noai"


def test_withdrawal_takes_copies_along(tmp_path: Path) -> None:
    """Copies go with a withdrawn document; the original of one that is withdrawn comes back."""
    first, second, third = (words(i, 300) for i in (1, 2, 3))
    rows = [
        page("a", first, "asks.example", 2),
        page("a-mirror", first, "b.example", 9),
        page("a-later", [*words(8, 5), *first], "c.example", 12),
        page("older", second, "d.example", 2),
        page("taken", second, "asks.example", 9),
        page("other", third, "e.example", 3),
    ]
    (tmp_path / "hosts").write_text("asks.example\n")
    out = run(write(tmp_path / "in", rows), tmp_path / "out", "rights.honour=[]")
    assert set(ids(out, "rights/documents")) == {"a-later", "taken", "other"}
    command = ["withdraw", "--run", out, "--hosts", tmp_path / "hosts", "--workers", "0"]
    told = curate_well([*command, "--output", tmp_path / "gone"])
    assert "2 documents withdrawn, 2 removed before" in told
    record = pq.read_table(tmp_path / "gone/withdrawn.parquet").to_pylist()
    assert {row["id"]: (row["reason"], row["value"]) for row in record} == {
        "a": ("withdrawn.host", "asks.example"),
        "taken": ("withdrawn.host", "asks.example"),
        "a-mirror": ("withdrawn.copy", "a"),
        "a-later": ("withdrawn.copy", "a"),
    }
    assert set(ids(tmp_path / "gone", "dedup-documents/documents")) == {"older"}
    curate_well([*command, "--output", tmp_path / "same", "--near", "1"])
    assert len(pq.read_table(tmp_path / "same/withdrawn.parquet")) == 2
    answer = curate(*command, "--near", "2")
    assert answer.returncode == 2 and "expected a share" in answer.stderr


def test_what_a_stage_removed_before_and_copies_of_an_uncompared_run(tmp_path: Path) -> None:
    rows = [
        page("one", words(1, 300), "one.example", 3),
        page("v", words(5, 300), "deny.example", 5, DENIALS[0]),
        page("may", [*words(5, 300), *words(12, 8)], "may.example", 5, ALLOWED),
    ]
    out = run(write(tmp_path / "in", rows), tmp_path / "out", tokenized=True)
    policy = "{honour: [train], follow: {near: 0.8}}"
    told = curate_well(["withdraw", "--run", out, "--rights", policy])
    assert "0 documents withdrawn, 1 removed before" in told  # as the stage decided
    alone = tmp_path / "alone"
    shutil.copytree(out / "tokenize", alone / "tokenize")
    answer = curate("withdraw", "--run", alone, "--url-prefix", "https:", "--near", "0.8")
    assert answer.returncode == 2 and "copies are not known" in answer.stderr


def test_a_share_that_is_given_counts_before_the_policys(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    withdraw.add(parser, "withdraw")
    given = ["--run", str(tmp_path), "--rights", "{follow: {near: 0.8}}"]
    for more, near in (([], 0.8), (["--near", "1"], 1.0)):
        assert withdraw._withdrawn(parser.parse_args([*given, *more])).near == near


def test_a_receipt_that_others_can_check(tmp_path: Path) -> None:
    text = words(1, 300)
    rows = [
        page("a", text, "www.asks.example", 2, ("directive", "head", "*", "noai")),
        page("mirror", [*text, *words(9, 5)], "b.example", 9),
        page("kept", words(2, 300), "asks.example", 9),
        page("its-copy", words(2, 300), "c.example", 12),
        page("other", words(3, 300), "d.example", 3),
    ]
    out = run(write(tmp_path / "in", rows), tmp_path / "out", tokenized=True)
    (tmp_path / "hosts").write_text("asks.example\n")
    (tmp_path / "in.txt").write_text(" ".join(words(3, 300)[:100]))
    (tmp_path / "not.txt").write_text(" ".join(words(99, 300)))
    file = tmp_path / "receipt.json"
    command = ["receipt", "--run", out, "--hosts", tmp_path / "hosts", "--output", file]
    texts = ["--text", tmp_path / "in.txt", "--text", tmp_path / "not.txt"]
    told = curate_well([*command, *texts])
    assert (
        "documents: 2, in the tokens: 0" in told and "copies elsewhere: 2, in the tokens: 1" in told
    )
    assert "no span of 20 words or more is in any document" in told
    found = json.loads(file.read_text())
    root = curate_well(["verify", "--run", out]).split()[-1]
    assert found["root"] == root
    by_id = {one["id"]: one for one in found["documents"]}
    assert {name: one.get("copy_of") for name, one in by_id.items()} == {
        "a": None,
        "kept": None,
        "mirror": "a",
        "its-copy": "kept",
    }
    reasons = [(one["id"], s.get("reason")) for one in found["documents"] for s in one["said"]]
    assert ("mirror", "rights.copy") in reasons and ("kept", "document.exact") in reasons
    assert any("length" in said for said in by_id["its-copy"]["said"])
    assert [len(text["found"]) for text in found["texts"]] == [1, 0]
    check = ["receipt", "--verify", file, "--root", root]
    assert "matches its root" in curate_well(check)
    assert "matches its root" in curate_well([*check, "--run", out])
    for change, run_too, message in (
        (('"rights.copy"', '"rights.train"'), True, "does not say this of"),
        ((root, "0" * 64), False, ""),
        (("dedup-documents/manifest.json", "dedup-urls/manifest.json"), False, "not the root"),
        (("its-copy", "it"), True, "does not say this of it"),
        (('"copy_of": "a"', '"copy_of": "kept"'), False, "no row says that it is a copy of kept"),
    ):
        file.write_text(json.dumps(found).replace(*change))
        answer = curate(*check, *(["--run", out] if run_too else []))
        assert answer.returncode == (1 if message else 0) and message in answer.stdout
    assert curate("receipt", "--verify", file, "--root", "1" * 64).returncode == 1
    for left_out in ("mirror", "its-copy", "a"):
        rest = [one for one in found["documents"] if one["id"] != left_out]
        file.write_text(json.dumps({**found, "documents": rest}))
        told = curate(*check, "--run", out).stdout
        assert f"{left_out}: the receipt does not say" in told or f"has {left_out} of" in told
    silent = [{**one, "said": one["said"][:-1]} for one in found["documents"]]
    file.write_text(json.dumps({**found, "documents": silent}))
    assert "has its-copy of c.example, which" in curate(*check, "--run", out).stdout
    file.write_text(json.dumps(found))
    shutil.copytree(out, tmp_path / "part", ignore=shutil.ignore_patterns("removed"))
    assert "may be left out" in curate_well([*check, "--run", tmp_path / "part"])
    more = {**found, "hosts": [*found["hosts"], "d.example"]}
    file.write_text(json.dumps(more))
    answer = curate(*check, "--run", out)
    assert "has other of d.example, which the receipt leaves out" in answer.stdout
    lines = json.dumps(found)
    for changed, code in (
        ({**found, "proves": "all", "does_not_prove": ""}, 1),
        ({**found, "near": None}, 1),
        (json.loads(lines.replace('"row": 0', '"row": -1')), 1),
        ({}, 2),
    ):
        file.write_text(json.dumps(changed))
        where = ["--run", out] if changed.get("near", 0) is None else []
        assert curate(*check, *where).returncode == code
    file.write_text("[" * 100_000)
    assert "not a receipt" in curate(*check).stderr
    file.write_text(json.dumps({**found, "texts": [{**found["texts"][0], "found": []}]}))
    assert "what it says of texts is not checked" in curate_well([*check, "--run", out])
    answer = curate(*check, "--run", tmp_path / "nowhere")
    assert answer.returncode == 2 and "no file that the receipt names" in answer.stderr
    file.write_text("{}")
    assert curate(*check).returncode == 2
    assert curate(*command).returncode == 2 and file.read_text() == "{}"  # no receipt
    file.unlink()
    (tmp_path / "hosts").write_text("nobody.example\n")
    assert "documents: 0, in the tokens: 0" in curate_well(command)


@pytest.mark.parametrize(
    ("one", "other", "copied"),
    [
        ((9, "a.example"), (5, "b.example"), True),
        ((5, "a.example"), (9, "b.example"), False),
        ((5, "a.example"), (5, "b.example"), None),
        ((None, "a.example"), (5, "b.example"), None),
        ((2, "a.example"), (5, "a.example"), True),  # one site speaks
        ((2, "a.example", ("canonical", "head", None, "https://b.example/x")), (5, "b.example"), True),
        ((2, "a.example", ("canonical", "head", None, "//b.example/x")), (5, "b.example"), True),
        ((9, "a.example"), (5, "b.example", ("canonical", "header", None, "https://a.example/")), False),
        ((2, "a.example", ("tdm", "head", None, "1 https://b.example/p")), (5, "b.example"), True),
        ((2, "a.example", ("licence", "head", None, "https://b.example/p")), (5, "b.example"), False),
    ],
)  # fmt: skip
def test_which_is_the_copy(one: Any, other: Any, copied: bool | None) -> None:
    pages = [page("x", ["x"], given[1], given[0], *given[2:]) for given in (one, other)]
    assert is_copy(*pages) is copied


@pytest.mark.parametrize("honour", [["train"], ["robots", "tdm", "noai"], ["rsl", "search"]])
def test_denials_of_many_are_those_of_each(honour: list[str]) -> None:
    said = [
        *DENIALS,
        ALLOWED,
        ("robots", "robots.txt", "*", "Disallow: /\x1f"),
        ("tdm", "head", None, "0"),
        ("noindex", None, None, None),  # as a table may have it
    ]
    draw = np.random.default_rng(5)
    drawn = (draw.integers(0, len(said), draw.integers(0, 5)).tolist() for _ in range(300))
    rows = [{"licence": None, "signals": signals(*(said[i] for i in some))} for some in drawn]
    column = pa.array([*rows, None], RIGHTS)
    update = {"honour": tuple(honour), "retroactive": False}
    settings = default_settings().model_copy(update=update)
    each = [Policy(settings).rulings(column.slice(i, 1))[0] for i in range(len(column))]
    assert Policy(settings).rulings(column) == each and any(each) and not all(each)
    for start in (0, 7, 299):
        assert Policy(settings).rulings(column.slice(start, 40)) == each[start : start + 40]


def test_where_nobody_knows_the_original(tmp_path: Path) -> None:
    """A copy whose own site permits training stays unless the strictest reading is chosen."""
    text, denied = words(1, 300), ("directive", "head", "*", "noai")
    shared = words(3, 300)
    rows = [
        page("e", shared, "e.example", 1),  # the original of all three, which may be used
        page("f", shared, "f.example", 5, denied),
        page("g", [*shared, *words(4, 8)], "g.example", 9),
        page("a", text, "a.example", 5, denied),
        page("b", text, "b.example", 5, ALLOWED),
        page("c", words(2, 300), "c.example", None, denied),
        page("d", words(2, 300), "d.example", None),
    ]
    rows.append(page("both", words(6, 300), "h.example", 5, denied, ALLOWED))
    given = write(tmp_path / "in", rows)
    assert set(ids(run(given, tmp_path / "out"), "rights/documents")) == {"b", "g"}
    counts = json.loads((tmp_path / "out/rights/manifest.json").read_text())["counts"]
    assert counts["conflicts"] == counts["conflicts.content_signal+directive"] == 1
    strict = run(given, tmp_path / "strict", "rights.contradictions=strictest")
    assert set(ids(strict, "rights/documents")) == {"g"}


def test_a_licence_that_copies_contradict_is_unknown(tmp_path: Path) -> None:
    rows = [
        page("original", words(1, 300), "a.example", 2),
        page("scraper", words(1, 300), "b.example", 9, licence="CC-BY-4.0"),
        page("author", words(2, 300), "c.example", 9, licence="CC-BY-4.0"),
        page("reprint", words(2, 300), "d.example", 12),
        page("one", words(3, 300), "e.example", 2, licence="CC-BY-NC-4.0"),
        page("two", words(3, 300), "f.example", 9, licence="CC-BY-4.0"),
        page("same", words(4, 300), "g.example", 2, licence="CC0-1.0"),
        page("mirror", words(4, 300), "h.example", 9, licence="CC0-1.0"),
    ]
    given = write(tmp_path / "in", rows)
    oldest = "dedup-documents.survivor.policy=[newest, id]"
    kept = ids(run(given, tmp_path / "out", oldest), "rights/documents")
    licences = {name: row["rights"]["licence"] for name, row in kept.items()}
    assert licences == {"scraper": None, "reprint": None, "two": None, "mirror": "CC0-1.0"}
    wanted = run(given, tmp_path / "open", oldest, "rights.licences={require: [open]}")
    # A document without a licence that is required is kept for no other one.
    assert set(ids(wanted, "rights/documents")) == {"author", "mirror"}
    reasons = {name: row["reason"] for name, row in ids(wanted, "rights/removed").items()}
    assert reasons == {"scraper": "rights.licence", "two": "rights.licence"}
    # What the original's site says now is told with the copy that is kept.
    (tmp_path / "new/a.example").mkdir(parents=True)
    (tmp_path / "new/a.example/robots.txt").write_text(
        "Content-Signal: ai-train=no\nUser-agent: *\n"
    )
    drift = ["rights", "--what-if", "--run", tmp_path / "out", "--site-files", tmp_path / "new"]
    (row,) = json.loads(curate_well([*drift, "--json"]))["by_host"]
    assert [row[n] for n in ("reason", "host")] == ["rights.copy", "b.example"]
    assert "copies" in curate_well(drift)


def test_follow_needs_the_clusters(tmp_path: Path) -> None:
    given = write(tmp_path / "in", [page("a", words(1, 300), "a.example", 5)])
    command = ["run", "llama3", "--input", given, "--output", tmp_path / "out"]
    for change in POLICY:
        command += ["--set", change]
    for stages in ("[rights]", "[rights, dedup-documents]"):
        answer = curate(*command, "--set", f"stages={stages}")
        assert answer.returncode == 2 and "put rights after dedup-documents" in answer.stderr
    answer = curate(*command, "--stages", "rights")
    assert answer.returncode == 1 and "run both in one run" in answer.stderr


def test_the_cost_and_the_reasons_are_told(done: tuple[Path, set[str], set[str]]) -> None:
    out, _, _ = done
    told = curate_well(["why", "n0", "--run", out])
    assert "removed by rights.copy, value 1, value noai, threshold 0.8" in told
    assert "copy of: o0" in told and "of the original: directive in head for *: noai" in told
    costs = json.loads(curate_well(["rights", "--what-if", "--run", out, "--json"]))
    by_name = {cost["policy"]: cost["documents"] for cost in costs["policies"]}
    assert by_name["train, follow: {near: 0.8}"] == 40 and by_name["train"] == 0
    assert by_name["the recipe's policy"] == 40


def test_what_newer_files_of_sites_would_remove(
    done: tuple[Path, set[str], set[str]], tmp_path: Path
) -> None:
    out, _, stay = done
    for host, said in (
        ("t1.example", "User-agent: *\nContent-Signal: ai-train=no\n"),
        ("t2.example", "User-agent: *\nDisallow:\n"),
        ("g3.example", "User-agent: *\nDisallow:\n"),
    ):
        (tmp_path / "new" / host).mkdir(parents=True)
        (tmp_path / "new" / host / "robots.txt").write_text(said)
    command = ["rights", "--what-if", "--run", out, "--site-files", tmp_path / "new"]
    found = json.loads(curate_well([*command, "--json"]))
    assert found["documents"] == len(stay) and found["would_go"]["documents"] == 1
    (row,) = found["by_host"]
    named = [row[name] for name in ("reason", "signal", "host", "documents")]
    assert named == ["rights.train", "content_signal", "t1.example", 1]
    assert row["characters"] == len(ids(out, "rights/documents")["t1"]["text"])
    assert "t1.example" in curate_well(command)
    answer = curate("rights", "--run", out, "--site-files", tmp_path / "new")
    assert answer.returncode == 2 and "--site-files needs --what-if" in answer.stderr


def test_any_runner_writes_the_same_bytes(
    done: tuple[Path, set[str], set[str]], tmp_path: Path
) -> None:
    out, _, _ = done
    other = run(out.parent / "in", tmp_path / "beam", runner="DirectRunner")
    assert (other / "SHA256SUMS").read_text() == (out / "SHA256SUMS").read_text()


if __name__ == "__main__":  # python -m tests.rights.test_follow FOLDER CLUSTERS
    place, count = Path(sys.argv[1]), int(sys.argv[2])
    planted_rows, to_go, to_stay = planted(count)
    kept = set(ids(run(write(place / "in", planted_rows), place / "out"), "rights/documents"))
    print(f"gone {len(to_go - kept):,} of {len(to_go):,}, lost {len(to_stay - kept):,} others")
