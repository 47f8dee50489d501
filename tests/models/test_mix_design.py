"""Experiments of anyone: mixtures written, results read, shares proposed from them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from curation.errors import ConfigError, InputError
from curation.recipe import load
from curation.resources import root
from models.mixes.design import Design, draw_design
from models.mixes.fit import Fitted, fit_results, read_results
from models.mixes.laws import Exponential, cross_validated, fit_exponential, fits
from models.mixes.search import SearchSettings, Space
from pipelines.cli import main
from tests.mix.test_stage import corpus as corpus  # a fixture

SPACE = Space(
    ("web", "code", "books", "talk"), np.array([0.6, 0.2, 0.15, 0.05]), np.array([1, 0.5, 0.4, 0.1])
)
AVAILABLE = {"web": 9000, "code": 500, "books": 400, "talk": 100}
LAW = Exponential(
    np.array([2.0, 1.0]),
    np.array([2.0, 3.0]),
    np.array([[-0.5, -1.0], [-4.0, -0.2], [-0.5, -3.0], [0.2, 0.0]]),
)


def searching(**changes: object) -> SearchSettings:
    defaults = yaml.safe_load((root() / "configs/train/search.yaml").read_text())
    return SearchSettings.model_validate(defaults | changes)


def designed(count: int = 64, frozen: tuple[str, ...] = ()) -> Design:
    return draw_design(SPACE, count, 1000, AVAILABLE, searching(min_share=0.01), frozen)


def results(design: Design, noise: float = 0.003) -> list[str]:
    rng = np.random.default_rng(0)
    lines = []
    for name, shares in design.runs.items():
        web, code = LAW.predict(shares[None])[0] + rng.normal(0, noise, 2)
        lines.append(json.dumps({"run": name, "losses": {"web": web}, "scores": {"code": -code}}))
    return lines


def fitted(design: Design, lines: list[str]) -> Fitted:
    settings = searching(candidates=8000, resamples=10, min_share=0.01)
    return fit_results(read_results(lines, "results.jsonl", design), settings, 4, {})


def test_mixtures_keep_to_what_there_is() -> None:
    design = designed()
    every = np.array(list(design.runs.values()))
    assert np.allclose(every.sum(axis=1), 1) and len(np.unique(every, axis=0)) == 64
    assert (every <= SPACE.most + 1e-9).all() and every[0].tolist() == SPACE.shares.tolist()
    plain = json.loads(json.dumps(design.as_dict()))
    again = Design.from_dict(plain)
    assert np.allclose(np.array(list(again.runs.values())), every, atol=1e-5)
    run = plain["runs"][3]
    assert sum(run["shares"].values()) == pytest.approx(1, abs=1e-12)
    for domain, weight in run["weights"].items():
        assert weight * AVAILABLE[domain] == pytest.approx(run["shares"][domain] * 1000, abs=0.01)


def test_the_first_mixture_is_the_recipes_as_far_as_there_is_enough() -> None:
    most = np.array([0.2, 0.4, 0.1, 0.9])
    space = Space(SPACE.domains, np.array([0.3, 0.3, 0.3, 0.1]), most)
    design = draw_design(space, 8, 1000, AVAILABLE, searching(min_share=0.01))
    every = np.array(list(design.runs.values()))
    # web and books give all they have, then code, whose part of the rest is more than it has
    assert np.allclose(every[0], [0.2, 0.4, 0.1, 0.3])
    assert np.allclose(every.sum(axis=1), 1) and (every <= most + 1e-9).all()
    assert design.as_dict()["prior"] == [0.3, 0.3, 0.3, 0.1]


def test_frozen_domains_keep_their_proportions() -> None:
    every = np.array(list(designed(frozen=("web", "books")).runs.values()))
    assert np.allclose(every[:, 0] / every[:, 2], 4)
    assert every[:, 1].std() > 0.02 and (every <= SPACE.most + 1e-9).all()
    with pytest.raises(ConfigError, match="no domain 'cod'; did you mean 'code'"):
        designed(frozen=("web", "cod"))
    with pytest.raises(InputError, match="nothing to vary"):
        designed(frozen=SPACE.domains)
    with pytest.raises(ConfigError, match="at least 2"):
        designed(1)


def test_the_law_that_made_the_losses_predicts_best() -> None:
    shares = np.array(list(designed(80).runs.values()))
    losses = LAW.predict(shares)
    errors = {
        name: np.abs(cross_validated(shares, losses, fit, 5, 0) - losses).max()
        for name, fit in fits(1e-6, True).items()
    }
    assert min(errors, key=lambda name: errors[name]) == "exponential"
    straight = 3 - shares @ np.array([[1.0], [2.0], [0.5], [0.1]])
    linear = fits(1e-9, True)["linear"]
    assert np.abs(cross_validated(shares, straight, linear, 5, 0) - straight).max() < 1e-5


def test_shares_go_where_losses_fall() -> None:
    design = designed()
    found = fitted(design, results(design))
    assert found.shares.sum() == pytest.approx(1)
    assert found.shares[1] > 0.25 and found.shares[2] > 0.2  # code and books help, within limits
    assert (found.shares <= SPACE.most + 1e-9).all()
    assert (found.low <= found.shares + 0.02).all() and (found.shares <= found.high + 0.02).all()
    at_prior = LAW.predict(SPACE.shares[None])[0]
    at_proposal = LAW.predict(found.shares[None])[0]
    runs = LAW.predict(np.array(list(design.runs.values()))).sum(axis=1)
    assert at_proposal.sum() < at_prior.sum() and at_proposal.sum() < np.percentile(runs, 10)
    # scores are read as losses below 0
    assert found.results.targets == ("web", "code") and found.ranks[found.law] > 0.9


def test_noise_widens_intervals_and_next_runs_differ() -> None:
    design = designed()
    clear, noisy = (fitted(design, results(design, noise)) for noise in (0.001, 0.2))
    assert (noisy.high - noisy.low).sum() > (clear.high - clear.low).sum()
    assert len(noisy.settled) <= len(clear.settled)
    assert len(np.unique(noisy.next_runs, axis=0)) == 4
    assert (np.diff(noisy.gains) <= 1e-9).all() and (noisy.next_runs <= SPACE.most + 1e-9).all()


def test_settled_domains_move_together_in_the_next_runs() -> None:
    design = designed()
    found = fitted(design, results(design, 0.01))
    held = [SPACE.domains.index(d) for d in found.settled]
    if 1 < len(held) < len(SPACE.domains):
        ratios = found.next_runs[:, held] / found.shares[held]
        assert np.allclose(ratios, ratios[:, :1])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON"),
        ('{"run": "run-000"}', "line 2: neither `losses` nor `scores`"),
        ('{"run": "run-00", "losses": {"web": 1}}', "line 2: no run 'run-00' in the design"),
        ('{"run": "run-000", "losses": {"web": "1"}}', "line 2: losses.web: '1' is not a number"),
        ('{"shares": {"web": 1}, "losses": {"web": 1}}', "not of the design's domains"),
        ('{"run": "run-001", "losses": {"all": 1}}', "line 2: targets all, but line 1 has"),
    ],
)
def test_bad_results_name_their_line(line: str, message: str) -> None:
    design = designed()
    lines = results(design)
    with pytest.raises(InputError, match=f"results.jsonl: .*{message}"):
        read_results([lines[0], line, *lines[1:]], "results.jsonl", design)
    with pytest.raises(InputError, match="2 runs, too few"):
        read_results(lines[:2], "results.jsonl", design)
    with pytest.raises(InputError, match=r"no mix-design\.json"):
        read_results(lines, "results.jsonl", None)


def test_the_command_designs_and_fits(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    common = ["--recipe", str(corpus / "three.yaml"), "--set", "mix.budget=20000"]
    inputs = ["--input", f"{corpus}/in", "--output", str(out), "--quiet", "--workers", "0"]
    assert main(["mix", "--design", "12", *common, *inputs]) == 0
    told = capsys.readouterr().out
    assert "12 mixtures of 20,000 tokens" in told
    command = f"--stages mix,tokenize --output runs --input {corpus}/in --set mix.budget=20000"
    assert told.splitlines()[-1].endswith(command)
    design = Design.from_dict(json.loads((out / "mix-design.json").read_text()))
    recipe = yaml.safe_load((out / "mix-design.yaml").read_text())
    assert len(recipe["mix"]["mixes"]) == 12
    loaded = load(str(out / "mix-design.yaml"))
    assert loaded.mix.mixture("run-003").domains["code"].share == pytest.approx(
        design.runs["run-003"][design.space.domains.index("code")], abs=1e-6
    )
    assert main(["mix", "--design", "12", *common, *inputs]) == 0  # the same once more
    before = (out / "mix-design.json").read_bytes()
    assert main(["mix", "--design", "11", *common, *inputs]) == 2
    assert "another design; --fresh" in capsys.readouterr().err
    assert (out / "mix-design.json").read_bytes() == before
    assert main(["mix", "--design", "12", "--fresh", *common, *inputs]) == 0
    capsys.readouterr()
    lines = [
        json.dumps({"run": name, "losses": {"all": 3 - shares[0] + shares[1] ** 2}})
        for name, shares in design.runs.items()
    ]
    (tmp_path / "results.jsonl").write_text("\n".join(lines))
    fit = ["mix", "--fit", str(tmp_path / "results.jsonl"), "--output", str(out), *common[:2]]
    assert main([*fit, "--json", "--next", "3"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((out / "mix-fit.json").read_text())
    assert len(printed["next"]) == 3 and printed["runs"] == 12
    assert main(fit) == 0
    assert "tells most" in capsys.readouterr().out
    assert main([*fit, "--target", "al=2"]) == 2
    assert "no target 'al'; did you mean 'all'" in capsys.readouterr().err
    assert main([*fit, "--target", "all=2"]) == 0
    assert main(["mix", "--plan"]) == 2
    assert main(["mix", "--fit", str(tmp_path / "none.jsonl")]) != 0


def test_a_law_is_found_again_from_its_own_losses() -> None:
    rng = np.random.default_rng(1)
    shares = rng.dirichlet([2, 2, 2, 2], 60)
    noisy = LAW.predict(shares) + rng.normal(0, 0.003, (60, 2))
    fitted = fit_exponential(shares[:45], noisy[:45], 1e-6)
    assert np.abs(fitted.predict(shares[45:]) - LAW.predict(shares[45:])).max() < 0.02
