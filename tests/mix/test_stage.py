"""The stages `mix` and `tokenize` on files: named inputs, named mixes, the plan, the search."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from curation.errors import ConfigError, InputError
from curation.inputs import source_names
from curation.recipe import load
from curation.tokenize import TokenShards
from curation.tokenize.megatron import read_index
from pipelines.cli import main
from pipelines.plan import input_files
from tests.folders import differences

DOMAINS = ("general", "math_reasoning", "code", "multilingual")


def documents(rows: int, source: str, seed: int) -> pa.Table:
    """Classified documents of an input, each of its own text."""
    rng = np.random.default_rng(seed)
    words = ["river", "stone", "sum", "proof", "def", "return", "haus", "strasse", "of", "the"]
    texts = [" ".join(rng.choice(words, rng.integers(20, 200))) for _ in range(rows)]
    places = [{"file": f"{source}/part.jsonl.gz", "offset": k} for k in range(rows)]
    return pa.table(
        {
            "id": [f"{source}-{seed}-{k}" for k in range(rows)],
            "url": [f"https://{source}.example/{k}" for k in range(rows)],
            "date": pa.array(rng.integers(10**15, 17 * 10**14, rows), pa.timestamp("us", "UTC")),
            "text": pa.array(texts, pa.large_string()),
            "title": [""] * rows,
            "source": pa.array(places, pa.struct([("file", pa.string()), ("offset", pa.int64())])),
            "domain": rng.choice(DOMAINS, rows, p=[0.5, 0.2, 0.2, 0.1]),
            "quality": rng.random(rows) * 5,
            "topic": ["art"] * rows,
            "format": ["news"] * rows,
        }
    )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three shards of documents from two inputs, and a recipe with three mixes."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "in").mkdir()
    for k, source in enumerate(("web", "books", "web")):
        pq.write_table(documents(150, source, k), folder / "in" / f"{source}-{k}.parquet")
    recipe = {
        "name": "three",
        "description": "a test",
        "extends": "llama3",
        "inputs": {"web": ["w/*.gz"], "books": {"paths": ["b/*.gz"], "weight": 2, "max_epochs": 1}},
        "mix": {
            "budget": 40000,
            "mixes": {
                "annealing": {
                    "budget": 20000,
                    "repeats": {"by": "quality", "curve": [[0, 0], [0.4, 0], [1, 3]]},
                    "domains": {
                        "general": {"share": 0.1},
                        "math_reasoning": {"share": 0.4},
                        "code": {"share": 0.4},
                        "multilingual": {"share": 0.1},
                    },
                },
                "long_context": {"budget": 15000, "min_tokens": 150},
            },
        },
        "tokenize": {"mixes": {"long_context": {"context_length": 16384}}},
    }
    (folder / "three.yaml").write_text(yaml.safe_dump(recipe))
    return folder


def curate(corpus: Path, *arguments: str) -> None:
    common = ["--recipe", str(corpus / "three.yaml"), "--workers", "0", "--quiet"]
    assert main([*arguments, *common]) == 0


@pytest.fixture(scope="module")
def mixed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("run") / "out"
    stages = ["--stages", "mix,tokenize", "--input", f"{corpus}/in", "--output", str(output)]
    recipe = str(corpus / "three.yaml")
    assert main(["run", recipe, *stages, "--workers", "0", "--quiet"]) == 0
    return output


def manifest(folder: Path) -> dict:
    return json.loads((folder / "manifest.json").read_text())


def test_every_mix_has_its_shares_and_its_shards(mixed: Path) -> None:
    for mix, shares in {
        "": (0.5, 0.25, 0.17, 0.08),
        "annealing": (0.1, 0.4, 0.4, 0.1),
        "long_context": (0.5, 0.25, 0.17, 0.08),
    }.items():
        notes = manifest(mixed / "mix" / mix)["notes"]
        for domain, share in zip(DOMAINS, shares, strict=True):
            (row,) = [r for r in notes["mix"] if r["domain"] == domain]
            # Two inputs, each to half a document of at most 202 tokens.
            assert abs(row["kept"] - share * notes["budget"]) <= 202
        drawn = manifest(mixed / "mix" / mix)["counts"]["tokens"]
        counts = manifest(mixed / "tokenize" / mix)["counts"]
        length = 16384 if mix == "long_context" else 8192
        shards = TokenShards(mixed / "tokenize" / mix, 1)
        assert counts["tokens"] == drawn and shards.context_length == length
        assert shards.samples * length == drawn + counts["padding"]
    long = pa.concat_tables(
        pq.read_table(p) for p in (mixed / "mix/long_context/documents").glob("*.parquet")
    )
    assert min(long["tokens"].to_pylist()) >= 150
    short = manifest(mixed / "mix/long_context")["counts"]["removed"]["mix.too_short"]
    assert short["documents"] > 0
    assert not list(mixed.rglob(".work"))
    assert json.loads((mixed / "report.json").read_text())["problems"] == []


def test_inputs_keep_to_weight_and_epochs(mixed: Path) -> None:
    for row in manifest(mixed / "mix")["notes"]["inputs"]:
        assert row["weight"] == {"web": 1, "books": 2}[row["source"]]
        assert row["source"] != "books" or row["epochs"] <= 1


def test_why_follows_a_document_through_all_mixes(
    mixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = pq.read_table(next((mixed / "mix/annealing/documents").glob("*.parquet")))
    assert main(["why", kept["id"][0].as_py(), "--run", str(mixed)]) == 0
    printed = capsys.readouterr().out
    assert "mix/annealing: kept" in printed and "tokenize/annealing: written" in printed
    assert "mix/long_context: " in printed


def test_saved_tokens_and_fresh_ones_make_the_same_shards(
    corpus: Path, mixed: Path, tmp_path: Path
) -> None:
    curate(corpus, "tokenize", "--input", f"{mixed}/mix/documents", "--output", str(tmp_path))
    names = [p.name for p in (mixed / "tokenize").glob("tokens-*")]
    assert names
    for name in names:
        assert (mixed / "tokenize" / name).read_bytes() == (
            tmp_path / "tokenize" / name
        ).read_bytes()


def test_the_order_of_all_documents_does_not_depend_on_their_shards(
    corpus: Path, tmp_path: Path
) -> None:
    """One order over the whole data set, whatever file a document came in, cut at any place."""
    tables = [pq.read_table(p) for p in sorted((corpus / "in").glob("*.parquet"))]
    whole = pa.concat_tables(tables)
    (tmp_path / "one").mkdir()
    (tmp_path / "five").mkdir()
    pq.write_table(whole, tmp_path / "one" / "all.parquet")
    order = np.random.default_rng(0).permutation(whole.num_rows)
    for k, rows in enumerate(np.array_split(order, 5)):
        pq.write_table(whole.take(rows), tmp_path / "five" / f"{k}.parquet")
    outputs = []
    for name in ("one", "five"):
        output = tmp_path / f"out-{name}"
        few = "--set=tokenize.shard_tokens=20000"
        curate(corpus, "tokenize", f"--input={tmp_path}/{name}", f"--output={output}", few)
        outputs.append({p.name: p.read_bytes() for p in (output / "tokenize").glob("tokens-*")})
    assert len(outputs[0]) >= 4 and outputs[0] == outputs[1]
    indices = sorted((tmp_path / "out-one/tokenize/index").glob("*.parquet"))
    ids = [i for p in indices for i in dict.fromkeys(pq.read_table(p)["id"].to_pylist())]
    assert sorted(ids) == sorted(whole["id"].to_pylist())
    # Documents of the three shards are spread evenly: an urn without memory would do as well.
    first = [i.split("-")[1] for i in ids[: len(ids) // 2]]
    assert all(55 <= first.count(k) <= 95 for k in "012")
    assert all(len(read_index(p).lengths) for p in (tmp_path / "out-one/tokenize").glob("*.idx"))


@pytest.mark.usefixtures("forked_processes")
def test_workers_change_no_byte(corpus: Path, mixed: Path, tmp_path: Path) -> None:
    arguments = ["--stages", "mix,tokenize", "--input", f"{corpus}/in", "--output", str(tmp_path)]
    recipe = str(corpus / "three.yaml")
    assert main(["run", recipe, *arguments, "--workers", "2", "--quiet"]) == 0
    assert differences(mixed, tmp_path) == []


def test_a_budget_is_drawn_alike_after_an_interruption(
    corpus: Path, mixed: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    shutil.copytree(mixed, again)
    (again / "mix" / "manifest.json").unlink()
    next((again / "mix" / "documents").glob("web*")).unlink()
    arguments = ["--stages", "mix,tokenize", "--input", f"{corpus}/in", "--output", str(again)]
    assert main(["run", str(corpus / "three.yaml"), *arguments, "--workers", "0", "--quiet"]) == 0
    assert differences(mixed, again) == []


def planned(capsys: pytest.CaptureFixture[str], run: Path, *arguments: str) -> dict:
    before = {p: p.stat().st_mtime_ns for p in run.rglob("*")}
    assert main(["plan", "--run", str(run), "--json", *arguments]) == 0
    assert {p: p.stat().st_mtime_ns for p in run.rglob("*")} == before
    return json.loads(capsys.readouterr().out)


def test_a_planned_budget_is_what_its_mix_draws(
    mixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = planned(capsys, mixed, "--tokens", "40K")
    notes = manifest(mixed / "mix")["notes"]
    drawn = {row["domain"]: row["kept"] for row in notes["mix"]}
    assert {row["domain"]: row["drawn"] for row in found["domains"]} == drawn
    available = {row["domain"]: row["available"] for row in notes["mix"]}
    assert {row["domain"]: row["tokens"] for row in found["domains"]} == available
    for rows in (found["domains"], found["buckets"]):
        for name in ("documents", "tokens", "distinct", "drawn"):
            assert sum(row[name] for row in rows) == found[name]
    assert found["recipe"] == "mix: {budget: 40_000}" and found["rank"] > found["rank_at_random"]
    twice, tenfold = found["more"]
    assert found["kept_share"] > twice["kept_share"] > tenfold["kept_share"]
    assert found["rank"] < twice["rank"] < tenfold["rank"]


def test_a_plan_fits_on_a_terminal_and_takes_other_settings(
    mixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["plan", "--run", str(mixed), "--tokens", "60000"]
    assert main([*command, "--set", "mix.domains.code.max_epochs=0.5"]) == 0
    table, _, facts = capsys.readouterr().out.partition("\n\n")
    assert all(len(line) <= 80 for line in table.splitlines())
    assert table.splitlines()[1].startswith("up to 1.00") and "code is short of" in facts
    assert planned(capsys, mixed, "--tokens", "60000")["distinct"] < sum(
        row["available"] for row in manifest(mixed / "mix")["notes"]["mix"]
    )
    alike = planned(capsys, mixed, "--tokens", "60000", "--set", "mix.repeats=null")
    assert alike["rank"] == pytest.approx(alike["rank_at_random"], abs=0.1)


def test_a_large_run_is_planned_by_a_sample(
    mixed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = planned(capsys, mixed, "--tokens", "40000")
    monkeypatch.setattr("pipelines.commands.plan._MOST", 150)
    found = planned(capsys, mixed, "--tokens", "40000")
    assert whole["counted"] == "450 of 450" and found["counted"].endswith(" of 450")
    assert found["counted"] != whole["counted"]
    for name in ("tokens", "drawn"):
        assert found[name] == pytest.approx(whole[name], rel=0.25)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tokens", "many"], "argument --tokens: expected a number, 0 or more, got"),
        (["--tokens", "8191"], "less than one sequence of 8,192 tokens (tokenize.context_length)"),
        (["--tokens", "1B", "--set", "mix.on_shortage=stop"], "code is short of"),
        (["--tokens", "1B", "--set", "filter.x=1"], "plan takes keys below mix and tokenize"),
        (["--tokens", "1B", "--set", "mix.repeat=1"], "did you mean 'repeats'?"),
    ],
)
def test_an_impossible_budget_is_refused(
    mixed: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["plan", "--run", str(mixed), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_budget_needs_a_quality_to_choose_by(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pq.read_table(next((corpus / "in").glob("web-0*")))
    place = table.schema.get_field_index("quality")
    for name, rows in {
        "none": table.drop_columns(["quality"]),
        "null": table.set_column(place, "quality", pa.nulls(150, pa.float64())),
    }.items():
        (tmp_path / name).mkdir()
        pq.write_table(rows, tmp_path / name / "web.parquet")
        out = tmp_path / f"out-{name}"
        mix = ["mix", f"--input={tmp_path}/{name}", f"--output={out}", "--set", "mix.budget=20K"]
        assert main([*mix, "--workers", "0", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["plan", "--run", str(tmp_path / "out-none"), "--tokens", "10K"]) == 2
    assert "run the recipe as far as `classify`" in capsys.readouterr().err
    found = planned(capsys, tmp_path / "out-null", "--tokens", "10K")
    (line,) = (line for line in found["advice"] if "no quality to choose by" in line)
    assert "general" in line and len(found["buckets"]) <= 2


def test_the_plan_is_what_is_drawn_then(
    corpus: Path, mixed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    curate(corpus, "mix", "--plan", "--input", f"{corpus}/in", "--output", str(tmp_path))
    printed = capsys.readouterr().out
    assert "mix/annealing\n" in printed and "books x2" in printed
    assert not list(tmp_path.rglob("*.parquet"))
    for row in manifest(mixed / "mix")["notes"]["mix"]:
        line = next(line for line in printed.splitlines() if line.startswith(row["domain"]))
        assert f"{row['kept']:,}" in line.split() and f"{row['available']:,}" in line.split()


def test_the_plan_of_a_table_is_what_is_drawn_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = documents(60, "web", 7).drop_columns(["source", "date", "topic", "format"])
    rows = rows.set_column(
        rows.column_names.index("quality"), "quality", pa.nulls(60, pa.float32())
    )
    lines = "".join(json.dumps(row) + "\n" for row in rows.to_pylist())
    (tmp_path / "rows.jsonl").write_text(lines)
    arguments = ["mix", "--input", f"{tmp_path}/rows.jsonl", "--output", str(tmp_path / "out")]
    arguments += ["--workers", "0", "--quiet"]
    assert main([*arguments, "--plan"]) == 0
    printed = capsys.readouterr().out
    assert not (tmp_path / "out" / "mix" / "manifest.json").exists()
    assert main(arguments) == 0
    for row in manifest(tmp_path / "out" / "mix")["notes"]["mix"]:
        line = next(line for line in printed.splitlines() if line.startswith(row["domain"]))
        assert f"{row['kept']:,}" in line.split() and f"{row['available']:,}" in line.split()


def test_named_inputs_name_their_files(tmp_path: Path) -> None:
    for name in ("w", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.jsonl").write_text("{}\n")
    recipe = tmp_path / "r.yaml"
    content = {
        "name": "r",
        "description": "",
        "extends": "llama3",
        "inputs": {"web": [f"{tmp_path}/w/*"], "books": {"paths": [f"{tmp_path}/b"], "weight": 3}},
        "mix": {"sources": {"web": {"weight": 0.5}}},
    }
    recipe.write_text(yaml.safe_dump(content))
    loaded = load(str(recipe))
    assert [f.name for f in input_files(loaded)] == ["books/x.jsonl", "web/x.jsonl"]
    assert {k: v.weight for k, v in loaded.mix.sources.items()} == {"web": 0.5, "books": 3}
    replaced = input_files(loaded, [f"books={tmp_path}/w", f"{tmp_path}/b/x.jsonl"])
    assert [f.name for f in replaced] == ["x.jsonl", "books/x.jsonl"]


def test_source_names_come_from_the_first_folder() -> None:
    files = ["books/a.gz", "web/b/c.gz", "books", "other/x", None, "a.gz"]
    rows = [{"file": f, "offset": 0} for f in files]
    source = pa.array([*rows, None], pa.struct([("file", pa.string()), ("offset", pa.int64())]))
    assert source_names(source, ["books", "web"]).to_pylist() == [
        "books",
        "web",
        *["unnamed"] * 5,
    ]


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("inputs={a b: [x]}", "invalid name"),
        (
            "inputs={web: {paths: [x], wieght: 2}}",
            r"wieght: unknown key; did you mean 'weight'",
        ),
        ("mix.mixes={annealing: {budgett: 1}}", r"mix.mixes.annealing.budgett: unknown key"),
        ("mix.mixes={annealing: {domains: {code: {share: 0.9}}}}", "sum to"),
        ("mix.mixes={tokens: {}}", "is a stage's folder"),
        ("tokenize.mixes={anealing: {}}", "no mix named 'anealing'"),
    ],
)
def test_wrong_names_are_refused(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load("llama3", [assignment])


def test_tokenize_alone_takes_all_mixes_of_the_run(
    corpus: Path, mixed: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    shutil.copytree(mixed, output)
    shutil.rmtree(output / "tokenize")
    recipe = str(corpus / "three.yaml")
    arguments = ["--stages", "tokenize", "--output", str(output), "--workers", "0", "--quiet"]
    assert main(["run", recipe, *arguments]) == 0
    for mix in ("", "annealing", "long_context"):
        names = [p.name for p in (mixed / "tokenize" / mix).glob("tokens-*")]
        assert names
        for name in names:
            data = (output / "tokenize" / mix / name).read_bytes()
            assert data == (mixed / "tokenize" / mix / name).read_bytes()


def test_a_changed_mix_redoes_that_one_only(corpus: Path, mixed: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    shutil.copytree(mixed, output)
    arguments = ["--stages", "mix,tokenize", "--input", f"{corpus}/in", "--output", str(output)]
    changed = ["--set", "mix.mixes.long_context.budget=9000", "--workers", "0", "--quiet"]
    assert main(["run", str(corpus / "three.yaml"), *arguments, *changed]) == 0
    for mix in ("", "annealing"):
        documents = [p.read_bytes() for p in (output / "mix" / mix / "documents").iterdir()]
        assert documents == [p.read_bytes() for p in (mixed / "mix" / mix / "documents").iterdir()]
        old, new = (manifest(folder / "mix" / mix)["key"] for folder in (mixed, output))
        assert old == new
    assert manifest(output / "mix/long_context")["notes"]["budget"] == 9000
    assert not list(output.rglob(".work"))


def test_a_folder_of_an_inputs_name_is_not_that_input(tmp_path: Path) -> None:
    for place in ("books", "n/books"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "a.jsonl").write_text("{}\n")
    recipe = load("llama3", ["mix.sources={books: {weight: 2}}"])
    with pytest.raises(InputError, match=r"n/books/a\.jsonl: begins with the folder 'books'"):
        input_files(recipe, [f"books={tmp_path}/books", f"{tmp_path}/n"])
    assert [f.name for f in input_files(recipe, [f"{tmp_path}/n"])] == ["books/a.jsonl"]


def test_documents_without_a_domain_have_the_domain_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"text": f"Text {domain}.", "domain": domain} for domain in ("general", None, " ")]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["mix", "--input", str(tmp_path / "t.jsonl"), "--output", str(tmp_path / "out")]
    command += ["--workers", "0", "--quiet", "--set", "mix.budget=all"]
    assert main(command) == 1
    assert "no share for the domains ['unknown']" in capsys.readouterr().err
    key = "mix.domains.unknown={share: 0, max_epochs: 1}"
    assert main([*command, "--set", key]) == 0
    (kept,) = (tmp_path / "out/mix/documents").glob("*.parquet")
    assert pq.read_table(kept)["domain"].to_pylist() == ["general"]
    (gone,) = (tmp_path / "out/mix/removed").glob("*.parquet")
    assert pq.read_table(gone)["domain"].to_pylist() == [None, " "]


@pytest.mark.parametrize("wrong", [None, -1, 0.5, 1 << 32, float("nan")])
def test_copies_that_are_no_number_are_told(
    wrong: float | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = documents(3, "web", 0).append_column("repeats", pa.array([1, 0, wrong]))
    pq.write_table(table, tmp_path / "a.parquet")
    command = ["tokenize", "--input", str(tmp_path / "a.parquet"), "--workers", "0", "--quiet"]
    assert main([*command, "--output", str(tmp_path / "out")]) == 1
    assert "column `repeats` has a null, negative, broken or huge value" in capsys.readouterr().err
