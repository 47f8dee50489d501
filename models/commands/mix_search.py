"""Mixture search over a run's documents: one sample, then one small task per proxy run."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import InputError
from curation.mix.columns import cell_names, grouped, rows
from curation.mix.keys import sample_values
from curation.mix.mix_settings import Mixture
from curation.mix.plan import MixPlan
from curation.tokenize.tokenizer import load_tokenizer
from models.mixes.proxy import run_proxy
from models.mixes.search import (
    Proposal,
    SearchSettings,
    Space,
    first_round,
    near_round,
    propose,
    sample_streams,
)
from pipelines.engine.stage import StageRun
from pipelines.mix import SavedIds, plan
from pipelines.runners.tasks import Progress, Result, Task, output_fingerprint, records_of
from pipelines.storage.exchange import read_columns, scratch
from pipelines.storage.files import SCRATCH, Folder, fingerprint

_SAMPLE = f"{SCRATCH}/data/sample.npz"


@dataclass(frozen=True)
class SampleDomains:
    """One task: sample training and held-out streams of every domain."""

    settings_key: str
    settings: SearchSettings
    mixture: Mixture
    limits: dict[str, int]  # tokens to train on by domain
    marks: int
    boundary: int
    name: str = "sample"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        found: dict[str, list[tuple[float, bool, npt.NDArray[np.uint32]]]] = {}
        for shard in task.payload:
            for domain, documents in self._chosen(folder, shard).items():
                found.setdefault(domain, []).extend(documents)
        streams = {}
        for domain, limit in self.limits.items():
            ordered = sorted(found.get(domain, []), key=lambda document: document[0])
            train, held_out = sample_streams(
                [ids for _, _, ids in ordered],
                [aside for _, aside, _ in ordered],
                limit,
                self.settings.held_out_tokens,
                self.boundary,
            )
            streams[f"train.{domain}"], streams[f"held_out.{domain}"] = train, held_out
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **streams)
        return Result({_SAMPLE: folder.write_bytes(_SAMPLE, buffer.getvalue())})

    def _chosen(
        self, folder: Folder, shard: str
    ) -> dict[str, list[tuple[float, bool, npt.NDArray[np.uint32]]]]:
        """Return a shard's candidates for the sample, by domain: value, held out, and ids."""
        narrow = grouped(read_columns(folder, scratch("narrow", shard)), self.mixture)
        ids = SavedIds(folder, shard).all()
        lengths = narrow.column("tokens").to_numpy() - self.marks
        starts = np.cumsum(lengths) - lengths
        used = np.minimum(lengths, self.settings.document_tokens)
        hashes = narrow.column("id_hash").to_numpy()
        # One uniform value decides both whether a document is held out and its rank.
        values = sample_values(hashes, self.settings.seed)
        aside = values < self.settings.held_out
        eligible = rows(narrow, cell_names(narrow), self.mixture).eligible
        domains = narrow.column("domain").to_numpy(zero_copy_only=False)
        chosen = {}
        for domain, limit in self.limits.items():
            found: list[tuple[float, bool, npt.NDArray[np.uint32]]] = []
            for side, most in ((False, limit), (True, self.settings.held_out_tokens)):
                mine = np.flatnonzero(eligible & (domains == domain) & (aside == side))
                mine = mine[np.argsort(values[mine], kind="stable")]
                # No more than this can be in the sample, whatever other shards have.
                last = int(np.searchsorted(np.cumsum(used[mine] + 1), most)) + 1
                found += [
                    (float(values[k]), side, np.array(ids[starts[k] : starts[k] + used[k]]))
                    for k in mine[:last]
                ]
            chosen[domain] = found
        return chosen


@dataclass(frozen=True)
class RunProxies:
    """Train and measure the proxy of one mixture."""

    settings_key: str
    settings: SearchSettings
    domains: tuple[str, ...]
    tokens: int
    vocabulary: int
    name: str = "proxy"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        sample = np.load(io.BytesIO(folder.read_bytes(_SAMPLE)))
        losses = run_proxy(
            [sample[f"train.{d}"] for d in self.domains],
            [sample[f"held_out.{d}"] for d in self.domains],
            task.payload,
            self.tokens,
            self.vocabulary,
            self.settings.discount,
        )
        progress(1, 1)
        name = _result(task.name)
        data = json.dumps({"shares": task.payload, "losses": losses}).encode()
        return Result({name: folder.write_bytes(name, data)})


def _result(task: str) -> str:
    return f"{SCRATCH}/data/proxy/{task}.json"


def search(run: StageRun, settings: SearchSettings) -> tuple[Proposal, list[float], dict[str, Any]]:
    """Propose shares for a run's mix; return proposal, the proxy's losses at it, and all runs.

    Raises InputError if the documents or the budget leave nothing to search.
    """
    planned = plan(run)
    space = space_of(planned.plan)
    mix = planned.plan
    tokens = min(settings.tokens, mix.budget)
    available = {row["domain"]: row["available"] for row in mix.rows()}
    # Scale the distinct tokens down with the budget: a domain repeats as often for the proxy as in
    # the real run.
    limits = {d: max(1, round(available[d] * tokens / mix.budget)) for d in space.domains}
    limits = {d: min(limit, tokens) for d, limit in limits.items()}
    tokenizer = load_tokenizer(run.also["tokenize"].tokenizer)
    key = fingerprint([run.settings_key, settings.model_dump(mode="json"), planned.fingerprint])
    step = SampleDomains(
        key, settings, run.settings, limits, run.also["tokenize"].marks, tokenizer.vocab_size
    )
    task = Task("all", (("plan", planned.fingerprint),), 0, [s.name for s in run.inputs])
    run.run(step, [task])
    _check_sample(run.folder, space)
    found = output_fingerprint(records_of(run.folder, step, [task]))
    proxies = RunProxies(key, settings, space.domains, tokens, tokenizer.vocab_size)
    shares = first_round(space, settings)
    losses = _losses(run, proxies, shares.tolist(), found, "first")
    proposal = propose(
        space,
        shares,
        np.array(losses),
        len(shares) - 1,
        space.shares,
        settings.concentration,
        settings,
    )
    for number in range(settings.near_rounds):
        centre = proposal.shares
        near = near_round(space, centre, number, settings)
        losses += _losses(run, proxies, near.tolist(), found, f"near-{number}")
        shares = np.concatenate([shares, near])
        proposal = propose(
            space,
            shares,
            np.array(losses),
            len(near),
            centre,
            settings.near_concentration,
            settings,
        )
    (measured,) = _losses(run, proxies, [proposal.shares.tolist()], found, "proposed")
    runs = {
        "domains": list(space.domains),
        "tokens": tokens,
        "distinct_tokens": limits,
        "shares": shares.tolist(),
        "losses": losses,
    }
    return proposal, measured, runs


def space_of(mix: MixPlan) -> Space:
    """Return the domains with a share and tokens, and the most each can fill of the budget."""
    rows = [row for row in mix.rows() if row["share"] > 0 and row["available"] > 0]
    if len(rows) < 2:
        raise InputError("mix: a search needs documents of at least two domains with a share")
    shares = np.array([row["share"] for row in rows])
    most = np.array([row["at_most"] / mix.budget for row in rows])
    return Space(tuple(row["domain"] for row in rows), shares / shares.sum(), np.minimum(most, 1.0))


def _check_sample(folder: Folder, space: Space) -> None:
    sample = np.load(io.BytesIO(folder.read_bytes(_SAMPLE)))
    for domain in space.domains:
        for kind in ("train", "held_out"):
            if len(sample[f"{kind}.{domain}"]) < 2:
                raise InputError(f"mix: too few documents of {domain} to search with")


def _losses(
    run: StageRun, step: RunProxies, shares: Sequence[list[float]], sample: str, prefix: str
) -> list[list[float]]:
    tasks = [
        Task(f"{prefix}-{i:05d}", (("sample", sample), ("shares", repr(one))), 0, one)
        for i, one in enumerate(shares)
    ]
    run.executor.run(run.stage, replace(step, name=prefix), run.folder, tasks)
    results = run.folder.each(run.folder.read_json, [_result(t.name) for t in tasks])
    return [result["losses"] for result in results]
