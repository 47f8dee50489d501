"""Code of the user's own in a recipe: found, hashed, called; its errors and decisions are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from curation.errors import AlarmError, ConfigError, WorkerError
from curation.recipe import load
from curation.user_code import UserCode
from pipelines.cli import main
from pipelines.plan import plan
from pipelines.process import await_ends
from pipelines.reading.explorer import Explorer
from pipelines.report.collect import collect
from pipelines.run import run_plan
from pipelines.runners.execute import Executor, parse_beam_args

pytestmark = pytest.mark.usefixtures("forked_processes")

TEXTS = ["A calm page about bees and flowers.", "BUY NOW! BUY NOW!", "boom", "Another calm page."]

RULES = """
def share_of_capitals(texts):
    if any("boom" in text for text in texts):
        raise RuntimeError("no booms")
    return [sum(c.isupper() for c in t) / max(1, len(t)) for t in texts]
"""

STAGE = """
import pyarrow as pa
import pyarrow.compute as pc
from curation.judging import Judged


def long_enough(batch, characters=10):
    return pc.greater_equal(pc.utf8_length(batch["text"]), characters)


class Judge:
    def __init__(self, word, most):
        self.word, self.most = word, most

    def __call__(self, batch):
        found = pc.count_substring(pc.utf8_lower(batch["text"]), self.word)
        over = pc.greater(found, self.most)
        reason = pc.if_else(over, "too_often", None)
        return Judged({"found": found}, reason, value=found, threshold=self.most)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with pages and code."""
    monkeypatch.chdir(tmp_path)
    rows = [{"text": t, "url": f"http://a.example/{i}"} for i, t in enumerate(TEXTS)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (tmp_path / "my_rules.py").write_text(RULES)
    (tmp_path / "my_stage.py").write_text(STAGE)
    return tmp_path


def recipe_of(home: Path, body: str) -> str:
    path = home / "mine.yaml"
    path.write_text(f"extends: llama3\nname: mine\n{body}")
    return str(path)


FILTERED = """
stages: [extract, filter]
extract: {min_characters: 1}
filter:
  rules: {gopher: null, repetition: null, c4: null, fineweb: null, llama3: null, code: null,
    mathematics: null, mine: {shouting: {python: "my_rules:share_of_capitals", max: 0.3}}}
"""

STAGED = """
stages: [extract, long-enough, buys]
extract: {min_characters: 1}
long-enough: {python: "my_stage.py:long_enough", settings: {characters: 6}}
buys: {python: "my_stage.py:Judge", settings: {word: buy, most: 1}, adds: [found]}
"""


def run_of(recipe: str, *settings: str, workers: int = 0, strict: bool = False) -> dict[str, Any]:
    work = plan(load(recipe, settings), "out", ["in.jsonl"])
    with Executor(parse_beam_args([], workers)) as executor:
        return run_plan(work, executor, strict=strict)


@pytest.fixture
def told_by(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command prints, run here and now."""

    def told(*arguments: str) -> str:
        capsys.readouterr()
        assert main(list(arguments)) == 0
        return capsys.readouterr().out

    return told


def rows(place: str) -> list[dict[str, Any]]:
    return pq.read_table(f"out/{place}").to_pylist()


def test_a_rule_is_a_signal_like_others(home: Path, told_by: Callable[..., str]) -> None:
    recipe = recipe_of(home, FILTERED)
    manifests = run_of(recipe)
    removed = {r["text"]: r for r in rows("filter/removed")}
    assert removed[TEXTS[1]]["reason"] == "mine.shouting"
    assert removed[TEXTS[1]]["value"] == pytest.approx(12 / 17)
    assert removed[TEXTS[1]]["threshold"] == 0.3
    kept = rows("filter/documents")
    assert [r["text"] for r in kept] == [TEXTS[0], TEXTS[3]]
    assert all(0 < r["signals"]["mine_shouting"] < 0.1 for r in kept)
    code = manifests["filter"]["code"]
    assert list(code) == ["my_rules:share_of_capitals"]
    told = json.loads(told_by("why", "http://a.example/1", "--run", "out", "--json"))
    (decision,) = (d for d in told[0]["decisions"] if d["stage"] == "filter")
    assert decision["reason"] == "mine.shouting"
    assert any(rule["rule"] == "mine.shouting" for rule in decision["rules"])
    explorer = Explorer("out")
    limits = explorer.limits({})["limits"]
    (limit,) = (str(each["limit"]) for each in limits if each["reason"] == "mine.shouting")
    assert explorer.change({"limit": limit, "threshold": "0.9"})["gained"] == 1


def test_an_exception_costs_its_document_alone(home: Path, told_by: Callable[..., str]) -> None:
    recipe = recipe_of(home, FILTERED)
    manifests = run_of(recipe)
    (failed,) = (r for r in rows("filter/removed") if r["reason"] == "error.filter")
    assert failed["text"] == "boom"
    notes = manifests["filter"]["notes"]
    assert notes["errors"][0]["id"] == failed["id"]
    assert "share_of_capitals: RuntimeError: no booms" in notes["errors"][0]["detail"]
    assert failed["id"] in notes["alarms"][0]["alarm"] and "in.jsonl" in notes["alarms"][0]["alarm"]
    assert "no booms" in told_by("why", "http://a.example/2", "--run", "out")
    alarm = f"filter: {notes['alarms'][0]['alarm']}"
    ended = told_by("run", recipe, "--input", "in.jsonl", "--output", "out")
    assert alarm in " ".join(ended.split())
    assert f"{alarm}." in json.loads(Path("out/report.json").read_text())["alarms"]
    with pytest.raises(AlarmError, match="no booms"):
        run_of(recipe, strict=True)


def test_a_thread_that_never_ends_keeps_no_run_waiting(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(await_ends, "__defaults__", (1,))
    (home / "my_rules.py").write_text(
        "import threading\n"
        "def share_of_capitals(texts):\n"
        "    threading.Thread(target=threading.Event().wait).start()\n"
        "    return [0.0] * len(texts)\n"
    )
    manifests = run_of(recipe_of(home, FILTERED), workers=2)
    assert len(rows("filter/documents")) == len(TEXTS) and "filter" in manifests


def test_changed_code_redoes_what_depends_on_it(home: Path) -> None:
    recipe = recipe_of(home, FILTERED)
    first = run_of(recipe)
    assert run_of(recipe)["filter"]["key"] == first["filter"]["key"]
    (home / "my_rules.py").write_text(RULES.replace("isupper", "islower"))
    second = run_of(recipe)
    assert second["extract"]["key"] == first["extract"]["key"]
    assert second["filter"]["key"] != first["filter"]["key"]
    assert [r["text"] for r in rows("filter/documents")] == [TEXTS[1]]


def test_each_module_of_a_package_is_hashed_unless_it_is_installed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of an editable package, or of one that is only on the path, change at one version."""
    place, about = home / "site", home / "site/mine_of_many-1.dist-info"
    (place / "mine_of_many/deep").mkdir(parents=True)
    (place / "mine_of_many/__init__.py").touch()
    (place / "mine_of_many/rules.py").write_text("from mine_of_many.deep.helper import f\n")
    monkeypatch.syspath_prepend(place)
    hashes = []
    for record in ("", "mine.pth,,\n", "mine_of_many/__init__.py,,\nmine_of_many/rules.py,,\n"):
        for content in ("f = len\n", "f = max\n"):
            (place / "mine_of_many/deep/helper.py").write_text(content)
            if record:
                about.mkdir(exist_ok=True)
                (about / "METADATA").write_text("Name: mine-of-many\nVersion: 1\n")
                (about / "top_level.txt").write_text("mine_of_many\n")
                (about / "RECORD").write_text(record)
            hashes.append(UserCode("mine_of_many.rules:f").found.sha256)
    assert len({*hashes}) == 5 and hashes[4] == hashes[5]


@pytest.mark.parametrize("workers", [0, 2])
def test_stages_anywhere(home: Path, workers: int, told_by: Callable[..., str]) -> None:
    recipe = recipe_of(home, STAGED)
    manifests = run_of(recipe, workers=workers)
    assert [r["reason"] for r in rows("long-enough/removed")] == ["long-enough.long_enough"]
    assert manifests["long-enough"]["counts"]["documents_removed"] == 1
    (removed,) = rows("buys/removed")
    assert (removed["reason"], removed["value"], removed["threshold"]) == ("buys.too_often", 2, 1)
    assert [r["found"] for r in rows("buys/documents")] == [0, 0]
    told = told_by("why", "http://a.example/1", "--run", "out")
    assert "buys: removed by buys.too_often, value 2, threshold 1\n    found 2" in told
    page = told_by("report", "--run", "out")
    assert "out/report.html" in page and "buys.too_often" in Path("out/report.html").read_text()


def test_a_stage_that_fails_on_a_document(home: Path) -> None:
    (home / "my_stage.py").write_text(
        "from curation.judging import Judged\n"
        "def count(batch):\n"
        "    if 'boom' in batch['text'].to_pylist():\n"
        "        raise ValueError('it went off')\n"
        "    return Judged({'n': [len(t) for t in batch['text'].to_pylist()]})\n"
    )
    recipe = recipe_of(
        home,
        "stages: [extract, count]\nextract: {min_characters: 1}\n"
        "count: {python: 'my_stage.py:count', adds: [n]}\n",
    )
    manifests = run_of(recipe)
    (failed,) = rows("count/removed")
    assert (failed["text"], failed["reason"], failed["n"]) == ("boom", "error.count", None)
    assert [r["n"] for r in rows("count/documents")] == [len(TEXTS[i]) for i in (0, 1, 3)]
    assert "ValueError: it went off" in manifests["count"]["notes"]["alarms"][0]["alarm"]


ENGINE = """
def body(html, url, mark="p"):
    if "boom" in html:
        raise ERROR("no booms")
    return html.split(f"<{mark}>")[1].split("<")[0]
"""

CLASSIFIERS = """
import pyarrow as pa
import pyarrow.compute as pc


def shouts(texts):
    if "boom" in texts:
        raise RuntimeError("no booms")
    return [sum(c.isupper() for c in t) / len(t) for t in texts]


class Kind:
    def __init__(self, word):
        self.word = word

    def __call__(self, texts: pa.Array):
        return pc.if_else(pc.match_substring(texts, self.word), "advert", "page")
"""

OUTPUT = """
import json


def lines(sequences, folder):
    with open(f"{folder}/tokens.jsonl", "w") as file:
        for row in sequences.tolist():
            file.write(json.dumps(row) + "\\n")
"""


@pytest.mark.parametrize(
    ("workers", "error"),
    [(0, "RuntimeError"), (2, "RuntimeError"), (0, "SystemExit"), (0, "CancelledError")],
)
def test_an_engine(home: Path, workers: int, error: str, told_by: Callable[..., str]) -> None:
    """Errors that aren't an `Exception`, too, cost only their page."""
    imported = f"from asyncio import CancelledError\nERROR = {error}\n"
    (home / "engine.py").write_text(imported + ENGINE)
    pages = [{"html": f"<html><p>{t}</p>", "url": f"http://a.example/{t}"} for t in TEXTS]
    (home / "in.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    engine = "extract: {min_characters: 1, engine: {python: 'engine.py:body'}}"
    run_of(recipe_of(home, f"stages: [extract]\n{engine}\n"), workers=workers)
    assert [r["text"] for r in rows("extract/documents")] == [TEXTS[i] for i in (0, 1, 3)]
    assert [r["reason"] for r in rows("extract/removed")] == ["extract.error"]
    detail = rows("extract/set_aside")[0]["detail"]
    assert f"engine.py:body: {error}: no booms" in detail
    assert detail in told_by("why", rows("extract/removed")[0]["id"], "--run", "out")


def test_classifiers(home: Path, told_by: Callable[..., str]) -> None:
    (home / "mine.py").write_text(CLASSIFIERS)
    recipe = recipe_of(
        home,
        """
stages: [extract, classify]
extract: {min_characters: 1}
classify:
  min_quality: {general: 0, math_reasoning: 0, code: 0, multilingual: 0}
  drop_topics: []
  drop_formats: []
  classifiers:
    shouting: {python: "mine:shouts", max: 0.5}
    kind: {python: "mine:Kind", settings: {word: flowers}, gives: label, drop: [advert]}
""",
    )
    manifests = run_of(recipe)
    removed = {r["text"]: r for r in rows("classify/removed")}
    assert {t: r["reason"] for t, r in removed.items()} == {
        TEXTS[0]: "classify.kind",
        TEXTS[1]: "classify.shouting",
        TEXTS[2]: "error.classify",
    }
    assert removed[TEXTS[1]]["threshold"] == 0.5
    (kept,) = rows("classify/documents")
    assert kept["kind"] == "page" and 0 < kept["shouting"] < 0.1
    assert len(manifests["classify"]["code"]) == 2
    told = told_by("why", kept["id"], "--run", "out")
    assert "classify.shouting" in told and "(max 0.5)" in told
    assert f"shouting {kept['shouting']:.6g}, kind page" in told
    assert "kind advert" in told_by("why", removed[TEXTS[0]]["id"], "--run", "out")


def test_an_output_format(home: Path) -> None:
    (home / "output.py").write_text(OUTPUT)
    formats = "tokenize: {context_length: 8, formats: [{python: 'output.py:lines'}]}"
    recipe = recipe_of(
        home, f"stages: [extract, tokenize]\nextract: {{min_characters: 1}}\n{formats}\n"
    )
    run_of(recipe)
    (written,) = Path("out/tokenize/lines").rglob("tokens.jsonl")
    sequences = [json.loads(line) for line in written.read_text().splitlines()]
    assert sequences and all(len(row) == 8 for row in sequences)
    names = json.loads(Path("out/tokenize/manifest.json").read_text())["files"]
    assert str(written.relative_to("out/tokenize")) in names


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "extract: {engine: {python: 'my_rules.py:none'}}\nstages: [extract]",
            r"extract\.engine\.python: my_rules\.py: 'none' is not in it",
        ),
        (
            "classify: {classifiers: {language: {python: 'my_rules.py:share_of_capitals'}}}\n"
            "stages: [extract, classify]",
            "documents have a column of this name",
        ),
        (
            "classify: {classifiers: {x: {}}}\nstages: [extract, classify]",
            r"classifiers\.x: give either python or model",
        ),
        (
            "mine: {python: 'none.py:f'}\nstages: [extract, mine]",
            r"mine\.python: none\.py: no such",
        ),
        ("mine: {python: 'my_stage.py:g'}\nstages: [extract, mine]", "'g' is not in it"),
        (
            "mine: {python: 'my_stage.py:long_enuff'}\nstages: [extract, mine]",
            "did you mean 'long_enough'",
        ),
        ("mine: {python: 'broken.py:f'}\nstages: [extract, mine]", "line 1: SyntaxError"),
        (
            "mine: {python: 'no_module_here:f'}\nstages: [extract, mine]",
            "no module 'no_module",
        ),
        ("mine: {python: 'word'}\nstages: [extract, mine]", "no entry point of curation.stages"),
        (
            "mine: {python: 'my_stage.py:long_enough', settings: {chars: 3}}\n"
            "stages: [extract, mine]",
            "no argument 'chars'; did you mean 'characters'",
        ),
        ("mine: {python: 'my_stage.py:Judge'}\nstages: [extract, mine]", "'word' has no value"),
        ("Mine: {python: 'my_stage.py:Judge'}\nstages: [extract, Mine]", "lower-case letters"),
        (
            "mine: {python: 'my_stage.py:long_enough', reads: [language]}\nstages: [extract, mine]",
            "mine needs the column 'language'; identify-language adds it",
        ),
        ("stages: [extract, mine]", "unknown stage 'mine'"),
        (
            "tokenize: {formats: [{python: 'formats.py:index'}]}\nstages: [extract, tokenize]",
            "there is a folder 'index' already",
        ),
        (
            "filter: {rules: {mine: {x: {python: 'my_rules:share_of_capitals'}}}}\n"
            "stages: [extract, filter]",
            "a rule needs min, max or both",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(home: Path, body: str, message: str) -> None:
    (home / "broken.py").write_text("def f(:\n")
    (home / "formats.py").write_text("def index(sequences, folder):\n    pass\n")
    recipe = recipe_of(home, body)
    assert main(["run", recipe, "--input", "in.jsonl", "--output", "out"]) == 2
    with pytest.raises(ConfigError, match=message):
        run_of(recipe)


def test_code_is_found_beside_the_recipe_and_travels(home: Path, monkeypatch: Any) -> None:
    """Workers of a cluster have no such file: the task list has its text."""
    from pipelines.runners.tasklist import describe, restore

    recipe = load(recipe_of(home, STAGED))
    monkeypatch.chdir("/")
    section = recipe.settings("long-enough")
    classes: dict[str, type] = {}
    described = json.loads(json.dumps(describe(section, classes)))
    for file in home.glob("*.py"):
        file.unlink()
    again = restore(described, classes.values())
    assert again.python.load().__name__ == "long_enough"
    assert recipe.model_dump(mode="json", by_alias=True)["long-enough"]["python"] == (
        "my_stage.py:long_enough"
    )


@pytest.mark.parametrize("stage", ["dedup-urls", "dedup-documents"])
def test_a_preference_among_duplicates(home: Path, stage: str) -> None:
    """The greatest number wins; a document without one loses."""
    (home / "mine.py").write_text(
        "from curation.judging import Judged\n"
        "def prefer(batch, likes='b'):\n"
        "    given = {'a': -2.0, 'b': -1.0, likes: 1.5}\n"
        "    found = [given.get(u[-1]) for u in batch['url'].to_pylist()]\n"
        "    return Judged({'preference': found})\n"
    )
    text = "The same text about bees and flowers, many words long, on every page. " * 3
    urls = [f"http://x.example/{name}" for name in "cab"]
    if stage == "dedup-urls":
        urls = [f"http://x.example/p?utm_source=/{name}" for name in "cab"]
    pages = [{"text": text + u * (stage == "dedup-urls"), "url": u} for u in urls]
    (home / "in.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    body = f"stages: [extract, mine, {stage}]\n{stage}:\n  survivor: {{policy: [preferred, id]}}\n"
    if stage == "dedup-documents":
        body += "  per_language: false\n"
    for likes, kept in (("b", urls[2]), ("a", urls[1])):
        own = f"mine: {{python: 'mine.py:prefer', settings: {{likes: {likes}}}}}\n"
        run_of(recipe_of(home, body + own))
        assert [r["url"] for r in rows(f"{stage}/documents")] == [kept]
    for column in ("preferrence", "preference"):
        (home / "mine.py").write_text(
            "from curation.judging import Judged\n"
            f"def prefer(batch):\n    return Judged({{'{column}': ['x'] * len(batch)}})\n"
        )
        with pytest.raises(WorkerError, match="reads numbers of 'preference'"):
            run_of(recipe_of(home, f"{body}mine: {{python: 'mine.py:prefer'}}\n"))


_NO_DOCUMENT = """
classify: {min_quality: {general: 1, multilingual: 1}}
filter: {rules: {mine: {x: {python: "never.py:f", max: 1}}}}
mine: {python: "never.py:f"}
stages: [extract, classify, """


@pytest.mark.parametrize("stage", ["filter", "mine"])
def test_code_that_fails_on_no_documents_ends_no_run(home: Path, stage: str) -> None:
    """A stage before it removed them all."""
    (home / "never.py").write_text(_NEVER)
    manifests = run_of(recipe_of(home, f"{_NO_DOCUMENT}{stage}]\n"))
    assert manifests[stage]["counts"]["documents_in"] == 0


_NEVER = """
def f(given):
    return nosuch


def g(html, url):
    return nosuch


class F:
    def __call__(self, batch):
        return nosuch
"""


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "stages: [extract, filter]\n"
            'filter: {rules: {mine: {x: {python: "never.py:f", max: 1}}}}\n',
            "filter: never.py:f failed on all that it was given (5)",
        ),
        (
            'stages: [extract, mine]\nmine: {python: "never.py:f"}\n',
            "mine: f failed on all that it was given (5)",
        ),
        (
            'stages: [extract, mine]\nmine: {python: "never.py:F"}\n',
            "mine: F failed on all that it was given (5)",
        ),
        (
            'stages: [extract, classify]\nclassify: {classifiers: {x: {python: "never.py:f"}}}\n',
            "classify: never.py:f failed on all that it was given (5)",
        ),
        (
            'stages: [extract, dedup-urls]\nextract: {engine: {python: "never.py:g"}}\n',
            "extract: never.py:g failed on all that it was given (1)",
        ),
        (
            'stages: [extract]\nreaders: {formats: {.chat: {python: "never.py:f"}}}\n',
            "extract: never.py:f failed on all that it was given (2)",
        ),
    ],
    ids=["rule", "function", "class", "classifier", "engine", "reader"],
)
def test_code_that_never_works_fails_the_run(
    home: Path, capsys: pytest.CaptureFixture[str], body: str, says: str
) -> None:
    (home / "never.py").write_text(_NEVER)
    (home / "in").mkdir()
    (home / "in.jsonl").rename(home / "in/texts.jsonl")
    (home / "in/page.html").write_text("<p>A page that an engine is to read.")
    for name in ("one", "two"):
        (home / f"in/{name}.chat").write_text("{}")
    if "engine" in body:
        (home / "in/texts.jsonl").unlink()
    command = ["run", recipe_of(home, body), "--input", "in", "--workers", "0", "--quiet"]
    command += ["--set", "extract.min_characters=1"]
    for _ in range(2):  # the stage is complete the second time, and no better
        capsys.readouterr()
        assert main(command) == 1
        (told,) = (n for n in capsys.readouterr().err.splitlines() if "curate: error" in n)
        assert f"{says}: NameError: name 'nosuch' is not defined" in told
    (entry,) = (e for e in collect("out")["funnel"] if e["stage"] == says.partition(":")[0])
    assert entry["documents_in"] == entry["documents"] + entry["documents_removed"]
    (home / "never.py").write_text("def f(given):\n    yield {'text': 'A chat about bees.'}\n")
    if "formats" in body:
        assert main(command) == 0
        assert len(rows("extract/documents")) == 7


@pytest.mark.parametrize("answer", ["None", "float('nan')"])
@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            'filter]\nfilter: {rules: {mine: {x: {python: "mute.py:f", max: 1}}}}\n',
            "filter: the code for mine_x gave no answer for any of 4 documents",
        ),
        (
            'classify]\nclassify: {classifiers: {x: {python: "mute.py:f"}}}\n',
            "classify: the code for x gave no answer for any of 4 documents",
        ),
    ],
    ids=["rule", "classifier"],
)
def test_code_that_never_answers_raises_an_alarm(
    home: Path, body: str, says: str, answer: str
) -> None:
    """Of a rule for one language that no document has, that may be right."""
    body = f"extract: {{min_characters: 1}}\nstages: [extract, {body}"
    never = f"def f(texts):\n    return [{answer}] * len(texts)\n"
    once = f"def f(texts):\n    return [1.0 if t == 'boom' else {answer} for t in texts]\n"
    (home / "mute.py").write_text(never)
    run_of(recipe_of(home, body))
    assert f"{says}." in collect("out")["alarms"]
    with pytest.raises(AlarmError, match=says):
        run_of(recipe_of(home, body), strict=True)
    (home / "mute.py").write_text(once)
    run_of(recipe_of(home, body))
    assert f"{says}." not in collect("out")["alarms"]


def test_code_that_works_once_fails_no_run(home: Path) -> None:
    recipe = recipe_of(home, STAGED.replace("long_enough", "seldom"))
    (home / "my_stage.py").write_text(
        f"{STAGE}\n\ndef seldom(batch, characters=10):\n"
        "    assert batch['text'].to_pylist() == ['boom']\n    return [True]\n"
    )
    assert run_of(recipe)["long-enough"]["counts"]["documents_removed"] == len(TEXTS) - 1
