"""`curate ablate`: n-grams, transformers, what a user sees."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from curation.ablate.compare import count_all, train_all
from curation.ablate.experiment import Experiment
from curation.ablate.results import RESULTS, Outcome, summary, write
from curation.ablate.training import Training, rate_at
from pipelines.cli import main
from tests.ablate.made import made, texts


def _silent(text: str) -> None:
    """Say nothing."""


def _values(outcome: Outcome) -> dict[tuple[str, str], list[float]]:
    found = summary(outcome)["measures"]
    return {(m["label"], m["unit"]): [r["value"] for r in m["runs"].values()] for m in found}


def _each_is_best_at_its_own(outcome: Outcome) -> None:
    values = _values(outcome)
    fish, law = values["fish", "bits per byte"]
    assert fish < law
    fish, law = values["law", "bits per byte"]
    assert law < fish
    answer = values["quiz", "bits per byte of the answer"]
    assert answer[0] < answer[1]
    assert values["quiz", "accuracy"][0] == 1


def test_trigrams() -> None:
    _each_is_best_at_its_own(count_all(made(), 2000, [1, 2], _silent))


def test_counting_more_than_there_is_counts_all() -> None:
    found = made()
    once, again = (count_all(found, k * found.corpora[0].tokens, [1], _silent) for k in (1, 3))
    np.testing.assert_array_equal(once.found[0][0].texts["law"], again.found[0][0].texts["law"])


@pytest.mark.parametrize("schedule", ["cosine", "wsd"])
def test_learning_rates_rise_and_fall(schedule: str) -> None:
    training = Training("tiny", 100 * 64 * 8, 64, 8, schedule=schedule)  # type: ignore[arg-type]
    rates = [rate_at(training, step) for step in range(100)]
    assert rates[:5] == sorted(rates[:5]) and max(rates) == pytest.approx(training.peak)
    assert rates[6:] == sorted(rates[6:], reverse=True)
    assert rates[-1] < 0.12 * training.peak
    assert (rates[50] == training.peak) == (schedule == "wsd")


def _train(experiment: Experiment, tokens: int = 4096, **options: object) -> Outcome:
    training = Training("tiny", tokens, context=32, batch=4, points=2, **options)  # type: ignore[arg-type]
    return train_all(experiment, training, [1, 2], "cpu", 1, _silent)


def test_transformers(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    outcome = _train(made())
    _each_is_best_at_its_own(outcome)
    write(outcome, tmp_path / "a")
    write(_train(made()), tmp_path / "b")
    for name in RESULTS:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    curve = outcome.found[0][0].curve
    assert [tokens for tokens, _ in curve] == [2048, 4096]


def test_a_transformer_sees_nothing_of_what_comes_after() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from curation.ablate.training import SIZES
    from curation.ablate.transformer import Transformer

    torch.manual_seed(1)
    model = Transformer(SIZES["tiny"], 100, 16)
    ids = torch.randint(0, 100, (2, 16))
    other = ids.clone()
    other[:, 9:] = (other[:, 9:] + 1) % 100
    one, two = model(ids), model(other)
    assert torch.equal(one[:, :9], two[:, :9])
    assert not torch.allclose(one[:, 9:], two[:, 9:])


@pytest.mark.parametrize(("size", "millions"), [("2M", 2), ("5M", 5), ("20M", 20)])
def test_sizes_are_what_their_names_say(size: str, millions: int) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from curation.ablate.training import SIZES
    from curation.ablate.transformer import Transformer

    count = Transformer(SIZES[size], SIZES[size].vocabulary + 1, 32).parameter_count()
    assert count / 1e6 == pytest.approx(millions, rel=0.15)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, topic, seed in (("a", "fish", 1), ("b", "law", 1), ("gold", "fish", 2)):
        rows = [json.dumps({"text": t.text, "url": t.url}) for t in texts(topic, 30, seed)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    (tmp_path / "law.txt").write_text(texts("law", 1, 3)[0].text)
    quiz = [{"question": "what swims", "choices": ["cod", "court"], "answer": 0}]
    (tmp_path / "quiz.jsonl").write_text("\n".join(map(json.dumps, quiz)))
    return tmp_path


def test_the_command(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["ablate", str(files / "a.jsonl"), f"other={files / 'b.jsonl'}", "--instant"]
    command += ["--eval", f"gold={files / 'gold.jsonl'}", "--eval", f"law={files / 'law.txt'}"]
    command += ["--task", f"mmlu={files / 'quiz.jsonl'}", "--output", str(files / "out")]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "- a is better than other by" in shown.out and "other, seed 3" in shown.err
    content = json.loads((files / "out" / "results.json").read_text())
    assert [run["name"] for run in content["runs"]] == ["a", "other"]
    assert {m["label"] for m in content["measures"]} == {"gold", "law", "mmlu"}
    assert content["measures"][0]["groups"] == 7


def test_a_run_against_its_own_first_stage(sample_run: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.txt"
    gold.write_text("The council met on Tuesday to discuss the budget of the town.")
    command = ["ablate", f"all={sample_run / 'extract'}", f"kept={sample_run}"]
    command += [f"shards={sample_run / 'tokenize'}", "--instant", "--vocabulary", "1024"]
    assert main([*command, "--eval", str(gold), "--output", str(tmp_path), "--quiet"]) == 0
    runs = {r["name"]: r for r in json.loads((tmp_path / "results.json").read_text())["runs"]}
    assert runs["all"]["documents"] > 0
    assert runs["kept"]["bytes"] == pytest.approx(runs["shards"]["bytes"], rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--instant"], "nothing to measure with"),
        (["--instant", "--eval", "gold=none.jsonl"], "none.jsonl"),
        (["--instant", "--task", "hellswag=quiz.jsonl"], "hellaswag"),
        (["--instant", "--eval", "gold=gold.jsonl", "--vocabulary", "99"], "--vocabulary 99"),
        (["--instant", "--eval", "gold=gold.jsonl", "--tokens", "0"], "from 1 on"),
    ],
)
def test_mistakes(
    files: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(files)
    assert main(["ablate", "a.jsonl", "b.jsonl", "--output", "out", *arguments]) in (1, 2)
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_without_torch_one_line_says_so(files: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from pipelines.cli import main\n"
        "sys.exit(main(['ablate', 'a.jsonl', '--eval', 'g=gold.jsonl', '--output', 'out']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=files)
    assert done.returncode == 2
    assert "pip install 'curation[ablate]'" in done.stderr and done.stderr.count("\n") == 1


def test_a_prepared_experiment_trains_elsewhere(files: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    command = ["ablate", str(files / "a.jsonl"), str(files / "b.jsonl"), "--prepare"]
    command += ["--eval", f"gold={files / 'gold.jsonl'}", "--size", "tiny", "--quiet"]
    assert main([*command, "--output", str(files / "out")]) == 0
    train = [sys.executable, "-m", "curation.ablate", str(files / "out"), "--size", "tiny"]
    train += [
        "--context",
        "16",
        "--batch",
        "2",
        "--tokens",
        "512",
        "--seeds",
        "1",
        "--device",
        "cpu",
    ]
    done = subprocess.run(train, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (files / "out" / "results.md").read_text() in done.stdout
