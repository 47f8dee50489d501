"""The figures of a run: summed from its manifests and documents, with the SQL of each."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError
from curation.stages import find
from curation.summary.croissant import croissant
from curation.summary.document import (
    card,
    check_answers,
    filled,
    markdown,
    metadata,
    template,
    to_add,
)
from curation.summary.figures import (
    COLUMNS,
    LABELS,
    Figure,
    Tally,
    files,
    grouped_sql,
    quoted,
    removed_sql,
    signals_sql,
    top_count,
    top_sql,
    total_sql,
)
from curation.summary.statements import statements
from pipelines.run_folder import RECIPE_FILE, load_run, root_hash, run_recipe
from pipelines.storage.files import Folder
from pipelines.storage.manifest import Manifest, files_of, read_manifest
from pipelines.storage.shards import open_parquet, read_kinds

#: The Commission's template and the datasheet.
EU, DATASHEET = "eu-summary", "datasheet"
#: Figures with more rows than a document shows are also written as CSV files.
_SHOWN_ROWS = 25
#: Top domains that the Commission's template asks for: their percentage, and most of them.
TOP, TOP_OF_SMES = (10, None), (5, 1000)
#: Families of reasons that count as measures against unlawful content, and as opt-outs.
UNSAFE = ("blocklist.", "llama3.dirty", "pii.")
RIGHTS = ("rights.",)
_SIZES = ("documents", "bytes")
_DAYS = ("first_day", "last_day")


@dataclass(frozen=True)
class RunFacts:
    """A run with its manifests. `mix`: the name of the mix that is described, or empty."""

    folder: Folder
    stages: tuple[str, ...]
    mix: str

    @classmethod
    def of(cls, run: str, mix: str = "") -> RunFacts:
        """Open a run. Raises ConfigError if there is no run or no such mix."""
        folder, stages = load_run(run)
        branches = {stage.partition("/")[2] for stage in stages}
        if mix not in branches:
            have = ", ".join(sorted(branches - {""})) or "none"
            raise ConfigError(f"--mix {mix}: no such mix; {folder.shown} has: {have}")
        own = tuple(stage for stage in stages if stage.partition("/")[2] in ("", mix))
        replaced = {stage.partition("/")[0] for stage in own if "/" in stage}
        return cls(folder, tuple(stage for stage in own if stage not in replaced), mix)

    @cached_property
    def manifests(self) -> dict[str, Manifest]:
        """Manifests by stage, in order."""
        return {stage: read_manifest(self.folder / stage) for stage in self.stages}

    @cached_property
    def texts(self) -> str:
        """The stage whose documents are tokenized, or would be. Raises ConfigError."""
        kept = [stage for stage in self.stages if self._files(stage, "documents")]
        if not kept:
            raise ConfigError(f"{self.folder.shown}: no stage with documents")
        return kept[-1]

    @cached_property
    def sink(self) -> str | None:
        """The stage that wrote the tokens."""
        return next((stage for stage in reversed(self.stages) if find(stage).is_sink), None)

    @cached_property
    def recipe(self) -> dict[str, Any]:
        """The recipe of the run; empty if the folder has none."""
        return run_recipe(self.folder) if self.folder.exists(RECIPE_FILE) else {}

    @cached_property
    def root(self) -> str:
        """The root hash of the run."""
        return root_hash(self.folder, load_run(self.folder.url)[1])

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns of the documents that are tokenized."""
        with open_parquet(
            self.folder / self.texts, self._files(self.texts, "documents")[0]
        ) as file:
            return file.schema_arrow

    def _files(self, stage: str, kind: str) -> list[str]:
        return list(files_of(self.manifests[stage], kind))

    def _folders(self, kind: str) -> list[str]:
        return [f"{stage}/{kind}" for stage in self.stages if self._files(stage, kind)]

    def figures(self) -> dict[str, Figure]:
        """Return all figures by name."""
        return {figure.name: figure for figure in self._figures()}

    def _figures(self) -> Iterator[Figure]:
        yield from self._of_documents(self._tally())
        if self.sink is not None:
            tokens = self.manifests[self.sink]["counts"]["tokens"]
            sql = (
                f"SELECT CAST(sum(length) AS BIGINT) AS tokens FROM {files([f'{self.sink}/index'])}"
            )
            yield Figure("tokens", sql, ("tokens",), ((tokens,),))
        yield self._of_stages()
        yield from self._of_removed()
        yield from self._of_edits()
        yield from self._of_personal_data()

    def _tally(self) -> Tally:
        tally = Tally()
        columns = [name for name in COLUMNS if name in self.schema.names]
        for batch in read_kinds(self.folder / self.texts, ["documents"], columns):
            tally.add(batch)
        return tally

    def _of_documents(self, tally: Tally) -> Iterator[Figure]:
        table = files([f"{self.texts}/documents"])
        sizes = (tally.documents, tally.characters, tally.bytes)
        yield Figure("size", total_sql(table), ("documents", "characters", "bytes"), (sizes,))
        for key in (*LABELS, "licence"):
            if key in tally.groups:
                rows = tuple((n, s.documents, s.bytes) for n, s in tally.ranked(key))
                yield Figure(f"by_{key}", grouped_sql(key, table), (key, *_SIZES), rows)
        collections = tuple(
            (name, size.documents, size.bytes, size.first_day, size.last_day)
            for name, size in tally.ranked("collection")
        )
        sql = grouped_sql("collection", table, days=True)
        yield Figure("collections", sql, ("collection", *_SIZES, *_DAYS), collections)
        hosts = [(name, s.documents, s.bytes) for name, s in tally.ranked("host") if name]
        for name, (percent, most) in (("top_hosts", TOP), ("top_hosts_sme", TOP_OF_SMES)):
            rows = tuple(hosts[: top_count(len(hosts), percent, most)])
            yield Figure(name, top_sql(table, percent, most), ("host", *_SIZES), rows)
        if "rights" in self.schema.names:
            signals = tuple((*key, count) for key, count in sorted(tally.signals.items()))
            columns = ("kind", "place", "signals")
            yield Figure("rights_signals", signals_sql(table), columns, signals)

    def _of_stages(self) -> Figure:
        stages = [stage for stage in self.stages if self._files(stage, "documents")]
        selected = [
            f"SELECT {n} AS place, {quoted(stage)} AS stage, count(*) AS documents, "
            "CAST(coalesce(sum(length(text)), 0) AS BIGINT) AS characters "
            f"FROM {files([f'{stage}/documents'])}"
            for n, stage in enumerate(stages, 1)
        ]
        counts = [self.manifests[stage]["counts"] for stage in stages]
        rows = [
            (n, stage, own["documents"], own["characters"])
            for n, (stage, own) in enumerate(zip(stages, counts, strict=True), 1)
        ]
        sql = " UNION ALL ".join(selected) + " ORDER BY place"
        return Figure("stages", sql, ("place", "stage", "documents", "characters"), tuple(rows))

    def _of_removed(self) -> Iterator[Figure]:
        folders = self._folders("removed")
        if not folders:
            return
        every = sorted(
            (stage.partition("/")[0], reason, own["documents"], own["characters"])
            for stage, manifest in self.manifests.items()
            for reason, own in manifest["counts"].get("removed", {}).items()
        )
        families = {"removed": (), "removed_unsafe": UNSAFE, "removed_rights": RIGHTS}
        for name, prefixes in families.items():
            rows = tuple(r for r in every if not prefixes or r[1].startswith(prefixes))
            columns = ("stage", "reason", "documents", "characters")
            yield Figure(name, removed_sql(files(folders), prefixes), columns, rows)

    def _of_edits(self) -> Iterator[Figure]:
        """Count lines and passages cut out of kept documents, or replaced in them."""
        folders = self._folders("edits")
        if not folders:
            return
        cuts, sizes = Counter[str](), Counter[str]()
        for folder in folders:
            place = self.folder / folder.removesuffix("/edits")
            for batch in read_kinds(place, ["edits"], ["reason", "text"]):
                reasons = batch["reason"].to_pylist()
                cuts.update(reasons)
                lengths = pc.binary_length(batch["text"]).to_pylist()
                for reason, size in zip(reasons, lengths, strict=True):
                    sizes[reason] += size
        sql = (
            "SELECT reason, count(*) AS cuts, CAST(sum(strlen(text)) AS BIGINT) AS bytes "
            f"FROM {files(folders)} GROUP BY 1 ORDER BY 1"
        )
        rows = tuple((reason, cuts[reason], sizes[reason]) for reason in sorted(cuts))
        yield Figure("cuts", sql, ("reason", "cuts", "bytes"), rows)

    def _of_personal_data(self) -> Iterator[Figure]:
        """Count personal data by kind, which only the manifests record."""
        found = [
            (stage, key)
            for stage, manifest in self.manifests.items()
            for key in sorted(manifest["counts"])
            if key.startswith("personal_data.")
        ]
        if not found:
            return
        selected, rows = [], []
        for stage, key in found:
            kind = key.removeprefix("personal_data.")
            path = quoted(f'$.counts."{key}"')
            selected.append(
                f"SELECT {quoted(kind)} AS kind, CAST(json_extract(content, {path}) AS BIGINT) "
                f"AS items FROM read_text({quoted(f'{stage}/manifest.json')})"
            )
            rows.append((kind, self.manifests[stage]["counts"][key]))
        sql = " UNION ALL ".join(selected) + " ORDER BY kind"
        yield Figure("personal_data", sql, ("kind", "items"), tuple(sorted(rows)))


def summary_files(
    facts: RunFacts, answers: dict[str, str]
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return a run's summaries by file, with a person's answers by field, and the fields to fill.

    Raises ConfigError for answers to unknown fields.
    """
    templates = {EU: template("eu"), DATASHEET: template("datasheet")}
    check_answers(answers, list(templates.values()))
    figures = facts.figures()
    texts = statements(
        figures,
        facts.recipe,
        facts.stages,
        {n: v for m in facts.manifests.values() for n, v in m.get("software", {}).items()},
        facts.schema.names,
        facts.root,
    )
    name = facts.manifests[facts.texts].get("recipe", {}).get("name", "run")
    run = {"recipe": name, "mix": facts.mix or "main", "root": facts.root}
    documents = {
        file: filled(form, texts, figures, answers, run) for file, form in templates.items()
    }
    found = dict[str, bytes]()
    for file, document in documents.items():
        found |= {f"{file}.json": _json(document), f"{file}.md": markdown(document).encode()}
    for file, figure in figures.items():
        if len(figure.rows) > _SHOWN_ROWS or file.startswith("top_hosts"):
            found[f"{file}.csv"] = _csv(figure)
    place = f"{facts.texts}/documents"  # as the run folder has it
    described = croissant(name, place, facts.schema, figures, texts, answers, facts.root)
    page = card(metadata(name, place, figures, answers), markdown(documents[DATASHEET]))
    found |= {"croissant.json": _json(described), "README.md": page.encode()}
    return dict(sorted(found.items())), to_add(documents[EU])


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _csv(figure: Figure) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(figure.columns)
    writer.writerows(figure.rows)
    return text.getvalue().encode()
