"""Compare a finished run on the sample archives with `data_samples/expected.tsv`."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

#: The chain when the run folder holds no recipe; a run may have fewer stages.
STAGES = (
    "extract", "dedup-urls", "identify-language", "dedup-documents", "dedup-lines", "filter",
    "classify", "mix", "tokenize",
)  # fmt: skip
SEPARATOR = " ¶ "
#: Fate of a record that the reader passes over as no document: it is counted, and nowhere stored.
SKIPPED = "skipped"

Key = tuple[str, str]  # url, date as in the WARC record


@dataclass(frozen=True)
class Place:
    """Where a run has put one document: `keep`, `<stage>:<reason>` or `set_aside:<reason>`."""

    fate: str
    text: str
    value: float | None = None
    language: str | None = None

    def __str__(self) -> str:
        return self.fate if self.value is None else f"{self.fate} ({self.value:.3g})"


def expectations(path: Path) -> list[dict[str, str]]:
    """Rows of expected.tsv."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def stages_of(run: Path) -> list[str]:
    """Stages of the run in their order, as far as their folders are there."""
    recipe = run / "recipe.yaml"
    names: Iterable[str] = STAGES
    if recipe.is_file():
        names = yaml.safe_load(recipe.read_text(encoding="utf-8"))["stages"]
    return [name for name in names if (run / name).is_dir()]


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("*.parquet")):
        table = pq.read_table(file)
        # Dates as text: no time zone data needed.
        if "date" in table.column_names:
            at = table.column_names.index("date")
            stamps = [
                None if v is None else f"{v.isoformat(timespec='seconds')[:19]}Z"
                for v in table["date"].cast(pa.timestamp("us")).to_pylist()
            ]
            table = table.set_column(at, "date", pa.array(stamps, pa.string()))
        yield from table.to_pylist()


def _key(row: dict[str, Any]) -> Key:
    return row["url"] or "", row["date"] or ""


def places(run: Path) -> tuple[dict[Key, list[Place]], list[dict[str, Any]]]:
    """Every end of every document by address and date, and the rows set aside.

    Documents that the mixture left out count as kept: they passed every judgement.
    """
    found: dict[Key, list[Place]] = {}
    stages = stages_of(run)
    for stage in stages:
        for row in _rows(run / stage / "removed"):
            sampled = row["reason"].startswith("mix.")
            place = Place(
                "keep" if sampled else f"{stage}:{row['reason']}",
                row["text"] or "",
                None if sampled else row["value"],
                row.get("language"),
            )
            found.setdefault(_key(row), []).append(place)
    last = [s for s in stages if any((run / s / "documents").glob("*.parquet"))][-1]
    for row in _rows(run / last / "documents"):
        found.setdefault(_key(row), []).append(
            Place("keep", row["text"], language=row.get("language"))
        )
    return found, list(_rows(run / "extract" / "set_aside"))


def matches(fate: str, expected: str) -> bool:
    """Whether a fate is among alternatives such as `filter:gopher.*|keep`."""
    return any(
        fate.startswith(one[:-1]) if one.endswith("*") else fate == one
        for one in expected.split("|")
    )


def _phrases(cell: str) -> list[str]:
    return [x for x in cell.split(SEPARATOR) if x]


def _folded(text: str) -> str:
    return " ".join(text.split())


def _check_text(row: dict[str, str], text: str) -> Iterator[str]:
    """Deviations of a kept text; white space may be laid out again, but not inside code."""
    plain = _folded(text)
    for phrase in _phrases(row["must_contain"]):
        if _folded(phrase) not in plain:
            yield f"lacks {phrase!r}"
    for phrase in _phrases(row["must_contain_source"]):
        if phrase not in text:
            yield f"lacks {phrase!r}"
    for phrase in _phrases(row["must_not_contain"]):
        if _folded(phrase) in plain:
            yield f"still contains {phrase!r}"


def _aside(rows: list[dict[str, Any]], row: dict[str, str]) -> dict[str, Any] | None:
    """Take the set-aside record of a page out of `rows`; the address may have been lost."""
    for found in rows:
        fits = found["url"] == row["url"] if found["url"] else (
            found["source"]["file"] == row["file"]
            and matches(f"set_aside:{found['reason']}", row["fate"])
        )  # fmt: skip
        if fits:
            rows.remove(found)
            return found
    return None


def _check_row(row: dict[str, str], ends: list[Place], aside: list[dict[str, Any]]) -> list[str]:
    if len(ends) > 1:
        return [f"found {len(ends)} times: {', '.join(map(str, ends))}"]
    if not ends:
        record = _aside(aside, row)
        if record is None:
            return [] if matches(SKIPPED, row["fate"]) else ["found nowhere"]
        ends = [Place(f"set_aside:{record['reason']}", "")]
    if not matches(ends[0].fate, row["fate"]):
        return [f"is {ends[0]}, expected {row['fate']}"]
    if ends[0].fate != "keep":
        return []
    named = ends[0].language
    wrong = [] if named in (None, row["language"]) else [f"identified as {named}"]
    return [*wrong, *_check_text(row, ends[0].text)]


def check_mended(run: Path, rows: list[dict[str, str]]) -> list[str]:
    """Whether each broken record whose beginning can be read was mended."""
    counts = json.loads((run / "extract" / "manifest.json").read_text(encoding="utf-8"))["counts"]
    wanted = Counter(
        row["note"].removeprefix("mended: ") for row in rows if row["note"].startswith("mended: ")
    )
    return [
        f"mended.{reason}: {counts.get(f'mended.{reason}', 0)} records, expected {count}"
        for reason, count in sorted(wanted.items())
        if counts.get(f"mended.{reason}", 0) != count
    ]


def check_fates(run: Path, expected: Path) -> list[str]:
    """One line for each deviation of the run in folder `run` from the table at `expected`.

    Every page of the table must have exactly one end, the expected one; a kept page must hold the
    phrases of its content and none of its surroundings; nothing may be there that is not in the
    table.
    """
    rows = expectations(expected)
    found, aside = places(run)
    deviations = check_mended(run, rows)
    for row in rows:
        key = (row["url"], row["date"])
        ends = found.pop(key, [])
        name = f"{row['kind']} {row['language']} {row['url']} {row['date']}"
        deviations += [f"{name}: {what}" for what in _check_row(row, ends, aside)]
    for (url, date), ends in found.items():
        deviations.append(f"{url} {date}: {ends[0]}, not in the table")
    for record in aside:
        where = f"{record['source']['file']} at {record['source']['offset']}"
        deviations.append(f"{where}: set aside for {record['reason']}, not in the table")
    return deviations


def main() -> int:
    """`python -m tests.fates RUN [expected.tsv]` prints the deviations."""
    import sys

    root = Path(__file__).resolve().parent.parent
    expected = Path(sys.argv[2]) if len(sys.argv) > 2 else root / "data_samples" / "expected.tsv"
    deviations = check_fates(Path(sys.argv[1]), expected)
    print("\n".join(deviations))
    print(f"{len(deviations)} deviations")
    return 1 if deviations else 0


if __name__ == "__main__":
    raise SystemExit(main())
