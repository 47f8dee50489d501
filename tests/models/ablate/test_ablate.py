"""`curate ablate`: n-grams, transformers, what a user sees."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from models.ablate.compare import Note, count_all, train_all
from models.ablate.experiment import Corpus, Experiment
from models.ablate.instant import accuracy, exchange
from models.ablate.layout import layout
from models.ablate.prepare import Text, experiment
from models.ablate.results import RESULTS, Outcome, summary, write
from models.ablate.store import FILE, Store
from models.ablate.training import SIZES, Training, rate_at
from pipelines.cli import main
from tests.models.ablate.made import made, texts, vocabulary


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


def test_what_is_exchanged_for_another_topic_is_missing() -> None:
    found = made()
    some = experiment(
        vocabulary(), [("law", texts("law", 9, 4)), ("fish", texts("fish", 9, 4))], [], []
    )
    measured = exchange(replace(found, corpora=(found.corpora[0], *some.corpora)), [1, 2])
    bits = [[one.texts["fish"].sum() for one in seeds] for seeds in measured]
    assert min(bits[1]) > bits[0][0] and bits[0][0] == bits[0][1]
    assert max(bits[2]) < min(bits[1])


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


_TINY = Training("tiny", 4096, context=32, batch=4, points=2)


def _train(
    experiment: Experiment, folder: Path, together: int = 1, note: Note = _silent
) -> Outcome:
    store = Store(experiment, folder / FILE)
    return train_all(experiment, _TINY, [1, 2], "cpu", together, note, store)


def test_transformers(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    outcome = _train(made(), tmp_path / "a")
    _each_is_best_at_its_own(outcome)
    write(outcome, tmp_path / "a")
    write(_train(made(), tmp_path / "b", together=2), tmp_path / "b")
    for name in (*RESULTS, FILE):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    curve = outcome.found[0][0].curve
    assert [tokens for tokens, _ in curve] == [2048, 4096]


def test_a_command_that_was_stopped_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    whole = summary(_train(made(), tmp_path))
    path = tmp_path / FILE
    lines = path.read_text().splitlines()
    assert len(lines) == 4
    path.write_text(lines[0] + "\n" + lines[1] + "\n" + lines[2][:100])
    notes: list[str] = []
    assert summary(_train(made(), tmp_path, note=notes.append)) == whole
    assert [note.split(":")[0] for note in notes] == ["fish, seed 2", "law, seed 2"]
    assert summary(_train(made(), tmp_path)) == whole  # the line that was cut off harms no other


def test_what_is_measured_already_needs_no_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    whole = summary(_train(made(), tmp_path))
    monkeypatch.setitem(sys.modules, "torch", None)
    assert summary(_train(made(), tmp_path)) == whole


def test_other_data_are_other_models(tmp_path: Path) -> None:
    found = made()
    measured = count_all(found, 2000, [1], _silent).found[0][0]
    store = Store(found, tmp_path / FILE)
    store.add(0, 1, _TINY, measured, {"device": "cpu", "torch": "2"})
    again = Store(found, tmp_path / FILE)
    kept = again.find(0, 1, _TINY)
    assert kept is not None and kept.curve == measured.curve
    np.testing.assert_array_equal(kept.texts["law"], measured.texts["law"])
    assert again.find(1, 1, _TINY) is None and again.find(0, 2, _TINY) is None
    assert again.find(0, 1, replace(_TINY, rate=1e-4)) is None
    swapped = Corpus("fish", found.corpora[1].documents, found.corpora[1].keys)
    other = replace(found, corpora=(swapped, *found.corpora[1:]))
    assert Store(other, tmp_path / FILE).find(0, 1, _TINY) is None


def test_models_together_learn_what_each_learns_alone() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from models.ablate.trainer import Job, train

    jobs = [Job(0, 1, _TINY), Job(1, 1, replace(_TINY, rate=1e-3, weight_decay=0.5))]
    jobs.append(Job(0, 2, _TINY))
    both = train(made(), jobs, "cpu")
    for job, found in zip(jobs, both, strict=True):
        (alone,) = train(made(), [job], "cpu")
        for label, bits in alone.texts.items():
            np.testing.assert_allclose(found.texts[label], bits, rtol=2e-3)
        np.testing.assert_allclose(found.tasks["quiz"], alone.tasks["quiz"], rtol=2e-2, atol=0.02)


def test_a_transformer_sees_nothing_of_what_comes_after() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from models.ablate.transformer import Transformers

    models = Transformers(SIZES["tiny"], 100, 16, [1, 2])
    ids, wanted = torch.randint(0, 100, (2, 2, 3, 16), generator=torch.Generator().manual_seed(1))
    other = ids.clone()
    other[..., 9:] = (other[..., 9:] + 1) % 100
    one, two = models.nats(ids, wanted), models.nats(other, wanted)
    assert torch.equal(one[..., :9], two[..., :9])
    assert not torch.allclose(one[..., 9:], two[..., 9:])


def test_steps_are_those_of_adamw() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from models.ablate.optimizer import AdamW

    dice = torch.Generator().manual_seed(3)
    start = torch.randn(2, 12, generator=dice)
    values, gradients = start.clone(), torch.zeros(2, 12)
    rates, decay = torch.tensor([0.1, 0.01]), torch.tensor([0.1, 0.5])
    ours = AdamW(values, gradients, 8, decay)
    theirs = []
    for k in range(2):
        matrix, scale = (torch.nn.Parameter(part.clone()) for part in start[k].split((8, 4)))
        groups = [
            {"params": [matrix], "weight_decay": float(decay[k])},
            {"params": [scale], "weight_decay": 0.0},
        ]
        theirs.append(torch.optim.AdamW(groups, lr=float(rates[k]), betas=(0.9, 0.95)))
    for step in range(5):
        # Of the first step the gradient is longer than allowed, of the others not.
        gradients.copy_(torch.randn(2, 12, generator=dice) * (3 if step == 0 else 0.1))
        for k, other in enumerate(theirs):
            weights = [group["params"][0] for group in other.param_groups]
            for weight, part in zip(weights, gradients[k].split((8, 4)), strict=True):
                weight.grad = part.clone()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            other.step()
        ours.step(rates)
        assert not gradients.any()
    for k, other in enumerate(theirs):
        expected = torch.cat([group["params"][0].detach() for group in other.param_groups])
        torch.testing.assert_close(values[k], expected)


@pytest.mark.parametrize(("size", "millions"), [("2M", 2), ("5M", 5), ("20M", 20), ("150M", 150)])
def test_sizes_are_what_their_names_say(size: str, millions: int) -> None:
    count = layout(SIZES[size], SIZES[size].vocabulary + 1).count
    assert count / 1e6 == pytest.approx(millions, rel=0.15)


def test_what_trigrams_count_of_a_long_document_is_its_share_whatever_the_seed() -> None:
    long = Text(" ".join(text.text for text in texts("law", 600, 1)), "https://long.example/")
    runs = [("run", [long, *texts("fish", 100, 1)])]
    found = experiment(vocabulary(), runs, [("fish", texts("fish", 12, 2))], [])
    half = found.corpora[0].tokens // 2
    outcome = count_all(found, half, range(1, 13), _silent)
    (measure,) = summary(outcome)["measures"]
    seeds = measure["runs"]["run"]["seeds"]
    # .37 where seeds decide whether the long document is counted whole or not at all.
    assert max(seeds) - min(seeds) < 0.15


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
    assert accuracy() in shown.out
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
    assert "pip install 'curation[torch]'" in done.stderr and done.stderr.count("\n") == 1


def test_a_prepared_experiment_trains_elsewhere(files: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    command = ["ablate", str(files / "a.jsonl"), str(files / "b.jsonl"), "--prepare"]
    command += ["--eval", f"gold={files / 'gold.jsonl'}", "--size", "tiny", "--quiet"]
    assert main([*command, "--output", str(files / "out")]) == 0
    train = [sys.executable, "-m", "models.ablate", str(files / "out"), "--size", "tiny"]
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
