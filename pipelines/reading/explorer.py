"""The questions that the page asks of a run, each with its answer as JSON-like values."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from curation.config import differences
from curation.errors import ConfigError
from curation.filters.margins import Bits, Limit, Margin
from curation.policy import Approval
from curation.stages import meaning
from pipelines.reading import document, search, sums
from pipelines.reading.compare import Comparison
from pipelines.reading.document import Inputs
from pipelines.reading.funnel import token_facts
from pipelines.reading.ledger import DIMENSIONS, load, write_ledger
from pipelines.reading.policies import made, measured_stages, policy_text
from pipelines.reading.search import FATE, Masks
from pipelines.reading.signals import Signals, measuring_stage
from pipelines.reading.sums import Bins, bins_for, histogram
from pipelines.run_folder import all_stages, load_run, root_hash, run_recipe, stale_stages
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest
from pipelines.terminal import snippet

#: Most rows of an answer, bins of a histogram, languages of a change, characters of a snippet.
_ROWS, _BINS, _LANGUAGES, _SNIPPET, _SETTINGS = 500, 72, 12, 280, 200
#: Values of each of two runs that the bins of both are made for.
_SAMPLED = 1 << 17
#: Groups of documents in a histogram: kept, removed by the rule in question, by others.
_GROUPS = ("kept", "removed", "other")

Query = Mapping[str, str]
Answer = Any
#: Questions whose answers are small, take a look at all documents, and never change.
_COUNTS = (
    *("funnel", "values", "limits", "signal", "hosts", "clusters"),
    *("compare", "sides", "compared"),
)
#: The other questions that a method of their name answers.
_OTHERS = (
    *("run", "documents", "text", "document", "spans", "difference", "blocks", "change"),
    *("nearest", "policy", "flipped"),
)
#: Answers of each question, and margins of limits, that are remembered.
_REMEMBERED, _MARGINS = 32, 2
#: What views ask for first, in the page's words.
_FIRST_LOOKS: tuple[tuple[str, Query], ...] = (
    ("values", {"dimension": "language", "most": "500"}),
    ("clusters", {}),
    ("hosts", {"order": "tokens"}),
)


class Explorer:
    """A run, opened for reading. Answers are dictionaries and lists; queries are strings."""

    def __init__(
        self,
        directory: str,
        other: str | None = None,
        inputs: list[str] | None = None,
        prepared: Path | None = None,
        most: int | None = None,
        other_prepared: Path | None = None,
    ) -> None:
        self._directory = directory
        self.folder, self.all_stages = load_run(directory)
        self.root = root_hash(self.folder, self.all_stages)
        self.ledger = load(self.folder, self.all_stages, self.root, prepared, most)
        self.masks = Masks(self.ledger)
        self.inputs = Inputs(self.folder, self.ledger.stages[0], inputs or [])
        self._other, self._other_prepared = other, other_prepared

    @functools.cached_property
    def signals(self) -> Signals:
        stage = measuring_stage(self.ledger.stages)
        if stage is None:
            raise ConfigError("this run has no stage that computes signals")
        return Signals(self.folder, self.ledger, stage)

    def warm(self) -> None:
        """Find out what first looks at every view need, before anybody asks."""
        if len(self.ledger):
            self.document({"row": "0"})
        if measuring_stage(self.ledger.stages) is not None:
            limits = self.questions["limits"]({})["limits"]
            for limit in sorted(limits, key=lambda limit: -limit["removed"])[:1]:
                shown = {"limit": str(limit["limit"])}
                self.questions["signal"](shown)
                self._margin(shown)
        for question, query in _FIRST_LOOKS:
            self.questions[question](query)
        if self._other is not None:
            self.questions["sides"]({})
            for signal in self.questions["compare"]({})["signals"][:1]:
                self.questions["compared"]({"signal": signal})

    @functools.cached_property
    def other(self) -> Explorer:
        """The run that this one is compared with. Raises ConfigError if there is none."""
        if self._other is None:
            raise ConfigError("start with --compare RUN2 to see two runs side by side")
        return Explorer(self._other, prepared=self._other_prepared)

    @functools.cached_property
    def comparison(self) -> Comparison:
        return Comparison(self.ledger, self.other.ledger)

    @functools.cached_property
    def questions(self) -> dict[str, Callable[[Query], Answer]]:
        """Answers by name, as the page asks for them. Counts of the whole run are remembered."""
        found: dict[str, Callable[[Query], Answer]] = {
            **{name: getattr(self, name) for name in (*_COUNTS, *_OTHERS)},
            "lines": lambda _: sums.lines(self.folder, self.ledger.stages),
            "mix": lambda _: sums.mixes(self.folder, self.all_stages),
            "errors": lambda _: sums.set_aside(self.folder, self.ledger.stages),
        }
        return found | {name: _remembered(found[name]) for name in _COUNTS}

    def run(self, query: Query) -> Answer:
        """Return the run's recipe, stages, dimensions and totals."""
        manifest = read_manifest(self.folder / self.ledger.stages[-1])
        first = read_manifest(self.folder / self.ledger.stages[0])
        last = read_manifest(self.folder / self.all_stages[-1])
        return {
            "run": self.folder.shown,
            "recipe": manifest["recipe"],
            "root": self.root,
            "stages": self.ledger.stages,
            "dimensions": [n for n in DIMENSIONS if len(self.ledger.values[n]) > 1],
            "documents": len(self.ledger),
            "kept": manifest["counts"]["documents"],
            "records": first["counts"].get("records"),
            **token_facts(manifest, last),
            "tokens_per_character": self.tokens_per_character,
            "stale": stale_stages(self.folder, self.all_stages),
            "unfinished": self._unfinished(),
            "measured": self._measured,
            "has_signals": measuring_stage(self.ledger.stages) is not None,
            "has_inputs": bool(self.inputs.given),
            "compared": None if self._other is None else Folder(self._other).shown,
            "meanings": self.meanings,
        }

    @functools.cached_property
    def meanings(self) -> dict[str, str]:
        """What signals, and reasons for which documents were removed, measure, in sentences."""
        named: dict[str, str | None] = {f.reason: None for f in self.ledger.fates if f.reason}
        if measuring_stage(self.ledger.stages) is not None:
            named |= {limit.reason: limit.signal for limit in self.signals.judges.limits}
            named |= {name: name for name in self.signals.names}
        found = {name: meaning(name, signal) for name, signal in named.items()}
        return {name: sentence for name, sentence in found.items() if sentence}

    @functools.cached_property
    def _measured(self) -> bool:
        """Whether the run only measured: thresholds removed nothing, and nothing was mixed."""
        return bool(run_recipe(self.folder).get("measure"))

    def _unfinished(self) -> list[str]:
        wanted = all_stages(self.folder)
        if self._measured:
            wanted = measured_stages(wanted)
        return [stage for stage in wanted if stage not in self.all_stages]

    def trouble(self, error: Exception) -> str:
        """Return what to say of an error that no question expects."""
        run = self.folder.shown
        if not self._is_unchanged():
            return f"{run}: removed or written again since it was opened; run `curate view` again"
        if isinstance(error, OSError) and error.filename:
            return f"{error.filename}: {error.strerror}"
        if isinstance(error, pa.ArrowException | OSError):
            what = str(error).partition("\n")[0]
            return f"{run}: a file is damaged ({what}); `curate verify --run {run}` says which"
        return f"{type(error).__name__}: {error} (this is a bug)"

    def _is_unchanged(self) -> bool:
        try:
            return root_hash(self.folder, self.all_stages) == self.root
        except Exception:  # whatever is left of it
            return False

    @functools.cached_property
    def tokens_per_character(self) -> float | None:
        return sums.tokens_per_character(self.ledger)

    def mask(self, query: Query) -> Bits | None:
        """The mask of the filters in a query."""
        return self.masks.of(_filters(query))

    def funnel(self, query: Query) -> Answer:
        return sums.funnel(self.ledger, self.mask(query))

    def values(self, query: Query) -> Answer:
        """Counts by the values of every dimension; a dimension's own filter doesn't narrow it."""
        most = _number(query, "most", 12)
        wanted = [query["dimension"]] if "dimension" in query else DIMENSIONS
        found = {}
        for name in wanted:
            others = {k: v for k, v in query.items() if k != name}
            found[name] = sums.values(
                self.ledger, self.mask(others), name, min(most, _ROWS), weighed=False
            )
        return found

    def hosts(self, query: Query) -> Answer:
        """Hosts by a count, with their commonest reasons and personal data."""
        mask = self.mask(query)
        order = query.get("order", "tokens")
        if order not in ("tokens", "documents", "kept", "removed", "characters"):
            raise ConfigError(f"hosts can't be ordered by {order!r}")
        found = sums.values(self.ledger, mask, "host", _ROWS, order)
        names = [row["value"] for row in found["values"]]
        reasons = sums.host_reasons(self.ledger, mask, names)
        personal = sums.personal_data(self.folder, self.ledger.stages)
        for row in found["values"]:
            row["reasons"] = reasons[row["value"]]
            row["personal"] = personal.get(row["value"], 0)
        return found

    def clusters(self, query: Query) -> Answer:
        mask = self.mask(query)
        first, most = _number(query, "first", 0), min(_number(query, "most", 25), _ROWS)
        found = sums.clusters(self.folder, self.ledger, mask, first, most)
        lost = np.zeros(len(self.ledger), bool)
        lost[self.ledger.copies.rows] = True
        lost = lost if mask is None else lost & mask
        found["hosts"] = sums.values(self.ledger, lost, "host", 30)["values"]
        return found

    def documents(self, query: Query) -> Answer:
        """A page of a table of documents."""
        first, most = _number(query, "first", 0), min(_number(query, "most", 50), _ROWS)
        rows = search.find_urls(self.folder, self.ledger, self.mask(query), query.get("q", ""))
        page = search.ordered(
            self.ledger, rows, query.get("sort", ""), query.get("down") == "1", first, most
        )
        return {"all": len(rows), "rows": self._described(page.tolist())}

    def _described(self, rows: Sequence[int], also: Sequence[str] = ()) -> list[dict[str, Any]]:
        return search.described(self.folder, self.ledger, rows, also)

    def text(self, query: Query) -> Answer:
        """Documents whose text contains `q`."""
        if not query.get("q"):
            raise ConfigError("enter the words to search for")
        start, most = _number(query, "start", 0), min(_number(query, "most", 100), _ROWS)
        found = search.find_text(
            self.folder, self.ledger, self.mask(query), query["q"], start, most
        )
        rows = [row for row, _ in found["found"]]
        found["rows"] = [
            known | {"passage": passage}
            for known, (_, passage) in zip(self._described(rows), found.pop("found"), strict=True)
        ]
        return found

    def document(self, query: Query) -> Answer:
        return document.page_of(self.folder, self.ledger, self._row(query, "row"))

    def spans(self, query: Query) -> Answer:
        return document.spans_of(self.folder, self.all_stages, self.ledger, self._row(query, "row"))

    def difference(self, query: Query) -> Answer:
        rows = self._row(query, "row"), self._row(query, "with")
        return document.difference(self.folder, self.ledger, *rows)

    def blocks(self, query: Query) -> Answer:
        return self.inputs.blocks(self._source(query))

    def html(self, query: Query) -> bytes:
        """Return the page of a document with active content disabled."""
        return self.inputs.html(self._source(query))

    def _source(self, query: Query) -> dict[str, Any]:
        read = self.ledger.read(self.folder, [self._row(query, "row")], ["source"])
        return read[0]["source"]  # type: ignore[no-any-return]

    def _row(self, query: Query, name: str) -> int:
        row = _number(query, name, -1)
        if not 0 <= row < len(self.ledger):
            raise ConfigError(f"no document {query.get(name)!r}")
        return row

    def limits(self, query: Query) -> Answer:
        """Every threshold with the documents that it removes, and signals without any."""
        removed = sums.removed_by_language(self.ledger, self.mask(query), self.signals.stage)
        present = {name for _, name in removed} | {*self.ledger.values["language"]}
        heard = self.signals.judges.languages(present)
        all_limits = self.signals.judges.limits
        gone = functools.lru_cache(1)(lambda reason: self._gone(reason, query))
        sides = {
            (limit.reason, limit.side) for limit, of in zip(all_limits, heard, strict=True) if of
        }
        both = {reason for reason, n in Counter(reason for reason, _ in sides).items() if n > 1}
        limits = [
            {
                "limit": number,
                "reason": limit.reason,
                "key": limit.key,
                "signal": limit.signal,
                "side": limit.side,
                "threshold": limit.threshold,
                "language": limit.language,
                "removed": int(self.signals.decided.fails(number)[gone(limit.reason)].sum())
                if limit.reason in both or self._measured
                else sum(removed.get((limit.reason, name), 0) for name in heard[number]),
            }
            for number, limit in enumerate(all_limits)
            if heard[number]
        ]
        judged = {limit["signal"] for limit in limits}
        return {
            "stage": self.signals.stage,
            "documents": len(self.signals.rows),
            "limits": limits,
            "others": [n for n in self.signals.names if n not in judged],
        }

    def _gone(self, reason: str, query: Query) -> Any:
        """Places, among documents with signals, of those that a rule removed, by any side."""
        groups, mask = self._groups(reason), self.mask(query)
        removed = groups == _GROUPS.index("removed")
        return np.flatnonzero(removed if mask is None else removed & self.signals.of(mask))

    def signal(self, query: Query) -> Answer:
        """A histogram of a signal: kept, removed by its rule, removed by others.

        With a limit, of the documents whose language it is for.
        """
        signals, mask = self.signals, self.mask(query)
        limit = self._limit(query) if "limit" in query else None
        name = query.get("signal", "") if limit is None else limit.signal
        if name not in signals.names:
            raise ConfigError(f"no signal {name!r}")
        values = signals.column(name)
        groups = self._groups(None if limit is None else limit.reason)
        if limit is not None:
            heard = signals.heard[int(query["limit"])]
            ours = np.isin(self.ledger.values["language"], heard)[self.ledger.codes["language"]]
            mask = ours if mask is None else mask & ours
        if mask is not None:
            here = signals.of(mask)
            values, groups = values[here], groups[here]
        bins = bins_for(values, _BINS, () if limit is None else (limit.threshold,))
        return _histogram(name, [(values, groups)], bins)

    def _groups(self, reason: str | None) -> Any:
        """Number in _GROUPS of each document with signals.

        Where a run only measured, those that fail a rule count as removed by it.
        """
        if self._measured:
            return self._measured_groups(reason)
        stage = self.signals.stage
        at = self.ledger.stages.index(stage)
        codes = [
            0 if self.ledger.stage_of_fate[i] > at else 1 if reason in (fate.reason, None) else 2
            for i, fate in enumerate(self.ledger.fates)
        ]
        return np.array(codes, np.uint8)[self.signals.of(self.ledger.numbers["fate"])]

    def _measured_groups(self, reason: str | None) -> Any:
        decided, limits = self.signals.decided, self.signals.judges.limits
        heard = self.signals.heard
        groups = np.where(decided.failing > 0, _GROUPS.index("other" if reason else "removed"), 0)
        for number, limit in enumerate(limits):
            if heard[number] and limit.reason == reason:
                groups[decided.fails(number)] = _GROUPS.index("removed")
        return groups.astype(np.uint8)

    def change(self, query: Query) -> Answer:
        """What a threshold would change."""
        limit, threshold = self._limit(query), _float(query, "threshold")
        margin = self._margin(query)
        change = margin.change(threshold)
        ratio = self.tokens_per_character
        rows = margin.flipped(threshold)
        return {
            "threshold": threshold,
            **change._asdict(),
            "gained_tokens": None if ratio is None else round(change.gained_weight * ratio),
            "lost_tokens": None if ratio is None else round(change.lost_weight * ratio),
            "alone": len(margin.values),
            "languages": self._by_language(rows),
            "setting": f"{limit.key}={threshold:.10g}",
        }

    def policy(self, query: Query) -> Answer:
        """The policy of a measured run with the thresholds `set` (KEY=VALUE, one on a line)."""
        changes = query.get("set", "").splitlines()
        nobody = Approval(by=None, date=None, notes=None)
        policy = made(self._directory, changes, nobody)
        return {"policy": policy_text(policy, self.folder.shown)}

    def _by_language(self, rows: Any) -> list[dict[str, Any]]:
        codes = self.ledger.codes["language"][rows]
        at = self.ledger.stages.index(self.signals.stage)
        kept = self.ledger.stage_of_fate[self.ledger.numbers["fate"][rows]] > at
        names = self.ledger.values["language"]
        lost = np.bincount(codes[kept], minlength=len(names))
        gained = np.bincount(codes[~kept], minlength=len(names))
        order = np.argsort(-(lost + gained), kind="stable")[:_LANGUAGES]
        return [
            {"language": names[i], "gained": int(gained[i]), "lost": int(lost[i])}
            for i in order
            if gained[i] or lost[i]
        ]

    def nearest(self, query: Query) -> Answer:
        """Documents just on each side of a threshold."""
        limit = self._limit(query)
        sides = self._margin(query).nearest(_float(query, "threshold"), _number(query, "most", 10))
        values = self.signals.column(limit.signal)
        found = {}
        for name, rows in zip(("below", "above"), sides, strict=True):
            shown = self._described(rows, ["text"])
            numbers = np.array([row["row"] for row in shown], self.signals.rows.dtype)
            places = np.searchsorted(self.signals.rows, numbers)
            for row, value in zip(shown, values[places].tolist(), strict=True):
                row |= {"text": snippet(row["text"], _SNIPPET), "signal": value}
            found[name] = shown
        return found

    def _margin(self, query: Query) -> Margin:
        """Return the margin of a limit among the documents that filters leave."""
        asked = {"limit": str(_number(query, "limit", -1))} | _filters(query)
        return self._margin_of(asked)  # type: ignore[no-any-return]

    @functools.cached_property
    def _margin_of(self) -> Callable[[Query], Any]:
        return _remembered(
            lambda query: self.signals.margin(int(query["limit"]), self.mask(query)), _MARGINS
        )

    def _limit(self, query: Query) -> Limit:
        number = _number(query, "limit", -1)
        if not 0 <= number < len(self.signals.judges.limits):
            raise ConfigError(f"no limit {query.get('limit')!r}")
        return self.signals.judges.limits[number]

    def compare(self, query: Query) -> Answer:
        """Return what flips between the two runs, and how their settings and counts differ."""
        held, other = self.comparison, self.other
        theirs = held.theirs
        both = (self, other)
        return {
            "runs": [self.folder.shown, other.folder.shown],
            "settings": differences(*(run_recipe(run.folder) for run in both))[:_SETTINGS],
            "mixes": [sums.mixes(run.folder, run.all_stages) for run in both],
            "signals": self._common_signals(),
            "documents": [len(self.ledger), len(theirs)],
            "only": [held.only_ours, held.only_theirs],
            "same": held.same,
            "flips": held.flips(),
            "funnels": [sums.funnel(held.ours, None), sums.funnel(theirs, None)],
        }

    def sides(self, query: Query) -> Answer:
        """Return counts of both runs by language, domain and topic."""
        return {
            name: [
                sums.values(run.ledger, None, name, 30, weighed=False)["values"]
                for run in (self, self.other)
            ]
            for name in ("language", "domain", "topic")
        }

    def _common_signals(self) -> list[str]:
        """Return the signals that both runs measured."""
        both = (self, self.other)
        if any(measuring_stage(run.ledger.stages) is None for run in both):
            return []
        theirs = {*self.other.signals.names}
        return [name for name in self.signals.names if name in theirs]

    def compared(self, query: Query) -> Answer:
        """Return the histograms of a signal in both runs, of what the measuring stage kept."""
        name = query.get("signal", "")
        if name not in self._common_signals():
            raise ConfigError(f"no signal {name!r} in both runs")
        sides = [run.signals.column(name)[run.signals.kept] for run in (self, self.other)]
        few = [side[:: max(1, len(side) // _SAMPLED)] for side in sides]
        bins = bins_for(np.concatenate(few), _BINS)
        parts = [(side, np.full(len(side), run, np.uint8)) for run, side in enumerate(sides)]
        answer = _histogram(name, parts, bins)
        medians = [
            None if np.isnan(side).all() else float(np.nanmedian(side, overwrite_input=True))
            for side in sides
        ]
        return answer | {"medians": medians}

    def flipped(self, query: Query) -> Answer:
        """Documents that ended so in this run and so in the other."""
        rows = self.comparison.rows(query.get("was", ""), query.get("now", ""))
        return {"rows": self._described(rows[:100])}


def prepare(directory: str, place: Path) -> int:
    """Write what a large run is asked for, in columns; return its bytes."""
    folder, stages = load_run(directory)
    ledger = write_ledger(folder, stages, place)
    stage = measuring_stage(ledger.stages)
    if stage is not None:
        Signals(folder, ledger, stage).write(place)
    return sum(file.stat().st_size for file in place.iterdir())


def _remembered(
    ask: Callable[[Query], Answer], most: int = _REMEMBERED
) -> Callable[[Query], Answer]:
    """The same question, which keeps its latest answers.

    Who asks what is being found out ahead waits for that, rather than finding it out once more.
    """
    asking = threading.Lock()

    @functools.lru_cache(most)
    def answer(items: tuple[tuple[str, str], ...]) -> Answer:
        return ask(dict(items))

    def one_at_a_time(query: Query) -> Answer:
        with asking:
            return answer(tuple(sorted(query.items())))

    return one_at_a_time


def _histogram(name: str, parts: Sequence[tuple[Any, Any]], bins: Bins) -> dict[str, Any]:
    """Return the histogram of a signal, of parts with values and their groups of _GROUPS."""
    counts = np.sum([histogram(*part, len(_GROUPS), bins) for part in parts], axis=0)
    measured = [values for values, _ in parts if not np.isnan(values).all()]
    return {
        "signal": name,
        "edges": bins.edges.tolist(),
        "scale": bins.scale,
        "counts": {group: counts[i].tolist() for i, group in enumerate(_GROUPS)},
        "documents": sum(len(values) for values, _ in parts),
        "unmeasured": sum(int(np.isnan(values).sum()) for values, _ in parts),
        "range": [float(min(map(np.nanmin, measured))), float(max(map(np.nanmax, measured)))]
        if measured
        else None,
    }


def _filters(query: Query) -> dict[str, str]:
    return {k: v for k, v in query.items() if k in FATE or k in DIMENSIONS}


def _number(query: Query, name: str, default: int) -> int:
    try:
        return int(query.get(name, default))
    except ValueError:
        raise ConfigError(f"{name}: expected a number, got {query[name]!r}") from None


def _float(query: Query, name: str) -> float:
    try:
        return float(query[name])
    except (KeyError, ValueError):
        raise ConfigError(f"{name}: expected a number, got {query.get(name)!r}") from None
