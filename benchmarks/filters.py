"""Share of good documents that the default rules keep.

  python benchmarks/filters.py [--data FOLDER] [--blocklists HOSTS]

FOLDER holds quality/dev.jsonl.gz (graded pages), domain/dev.jsonl.gz (labelled by domain) and
lid/dev.jsonl.gz (labelled by language). Kept shares are by grade, by domain, and by language: short
texts of a language are joined to documents of `--characters`. `benchmarks/floor.py` shows the speed.

`--blocklists HOSTS` writes a made-up category of UT1 with that many hosts, loads it as a folder and as
the archive that UT1 publishes, and checks a million URLs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tarfile
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from curation.filters.apply import Filter
from curation.filters.blocklists import load as load_blocklists
from curation.filters.filter_settings import default_settings
from curation.language import identify

DATA = Path(__file__).parents[2] / "shared" / "data"
LEAST = 3  # documents of a group that are worth a line


def rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def batch(texts: list[str], languages: list[str]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "id": [str(i) for i in range(len(texts))],
            "url": [""] * len(texts),
            "text": pa.array(texts, pa.large_string()),
            "language": languages,
        }
    )


def timed(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


#: Endings of hosts in UT1's list `adult`, the frequent ones more often.
ENDINGS = ["com"] * 50 + ["net"] * 8 + ["org"] * 4 + "de fr ru info xxx nl it pl eu co.uk".split()
ENDINGS += "com.br blogspot.com tumblr.com free.fr xn--p1ai".split()


def listed_host(i: int) -> str:
    """Host `i` of a made-up list: most are two labels, some longer, IDN or an IPv4 address."""
    mixed = i * 2654435761 % 2**32
    name = f"{mixed:x}"[: 3 + mixed % 6] + f"{i:x}"
    ending = ENDINGS[mixed % len(ENDINGS)]
    match mixed % 100:
        case 0:
            return f"{mixed >> 24 or 1}.{mixed >> 16 & 255}.{mixed >> 8 & 255}.{mixed & 255}"
        case 1:
            return f"bücher-{name}.{ending}"
        case 2:
            return f"xn--{name}-kva.{ending}"
        case n if n < 15:
            return f"{name[:4]}.{name}.{ending}"
        case n if n < 20:
            return f"www-{name}.{ending}"
    return f"{name}.{ending}"


def write_ut1(folder: Path, hosts: int) -> Path:
    """Write a category of UT1 with that many hosts, and the archive of it as UT1 publishes it."""
    category = folder / "adult"
    category.mkdir()
    with (category / "domains").open("w", encoding="utf-8", newline="") as file:
        for i in range(hosts):
            end = "\r\n" if i % 10 == 3 else "\n"
            file.write(f"{listed_host(i)}{'.' if i % 1000 == 7 else ''}{end}")
            if i % 10_000 == 0:
                file.write("# comment\n\n")
    urls = (f"{listed_host(7 * i)}/~user{i}/pictures\n" for i in range(hosts // 50))
    (category / "urls").write_text("".join(urls), "utf-8")
    (category / "expressions").write_text("(^|[-.?+=/_0-9])(hot|xx)x([-.?+=/_0-9]|$)\n")
    (category / "usage").write_text("black\n")
    with tarfile.open(folder / "adult.tar.gz", "w:gz", compresslevel=6) as archive:
        archive.add(category, "adult")
    return folder / "adult.tar.gz"


def block_lists(hosts: int, urls: int = 1_000_000) -> None:
    """Print seconds to load a made-up UT1 category, and microseconds per URL checked."""
    with tempfile.TemporaryDirectory() as folder:
        archive = write_ut1(Path(folder), hosts)
        unpacked = sum(f.stat().st_size for f in (Path(folder) / "adult").iterdir())
        settings = default_settings().blocklists
        asked = pa.array(
            f"https://{'www.' if i % 3 else ''}{listed_host(2 * i)}/a/page?id={i}"
            for i in range(urls)
        )
        load_blocklists(settings).check(asked[:2])  # compile
        packed = archive.stat().st_size
        print(f"{hosts} hosts, {unpacked / 1e6:.0f} MB, packed {packed / 1e6:.0f} MB")
        for name in ("adult", "adult.tar.gz"):
            lists = {"adult": str(Path(folder) / name)}
            one = settings.model_copy(update={"lists": lists})
            seconds = timed(lambda one=one: load_blocklists(one))  # type: ignore[misc]
            print(f"  {name:13} loaded in {seconds:.2f} CPU s")
        blocker = load_blocklists(one)
        check = timed(lambda: blocker.check(asked))
        inside = [i for i in range(urls) if 2 * i < hosts]
        missed = blocker.check(asked.take(pa.array(inside))).null_count
        others = pa.array(f"https://{listed_host(hosts + i)}.example/" for i in range(10_000))
        wrong = len(others) - blocker.check(others).null_count
    print(f"  {1e6 * check / urls:.2f} microseconds of CPU per URL")
    print(f"  of {len(inside)} listed hosts {missed} pass, of {len(others)} others {wrong} do not")


def kept(groups: dict[str, list[tuple[str, str]]]) -> None:
    """Print the share of each group's (text, language) that the default filter keeps, and why."""
    held = Filter(default_settings())
    for name in sorted(groups):
        members = groups[name]
        if len(members) < LEAST:
            continue
        texts, languages = map(list, zip(*members, strict=True))
        reasons = held.apply(batch(texts, languages)).verdicts.reason.to_pylist()
        lost = Counter(reason for reason in reasons if reason)
        share = 1 - lost.total() / len(members)
        told = ", ".join(f"{reason} {n}" for reason, n in lost.most_common(3))
        print(f"  {name:36} {len(members):5} {share:6.3f}  {told}")


def joined(found: list[dict[str, Any]], characters: int) -> dict[str, list[tuple[str, str]]]:
    """Texts of a language, joined to documents of at least so many characters."""
    documents: dict[str, list[tuple[str, str]]] = defaultdict(list)
    parts: dict[str, list[str]] = defaultdict(list)
    for row in found:
        label = row["lang"]
        parts[label].append(row["text"])
        if sum(map(len, parts[label])) >= characters:
            documents[label].append(("\n".join(parts.pop(label)), label))
    return documents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--characters", type=int, default=1500)
    parser.add_argument("--blocklists", type=int, metavar="HOSTS")
    options = parser.parse_args()
    if options.blocklists:
        block_lists(options.blocklists)
        return
    graded = rows(options.data / "quality" / "dev.jsonl.gz")
    labels, _ = identify([row["text"] for row in graded])
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row, label in zip(graded, labels, strict=True):
        groups[f"grade {int(row['quality'])}, {row['domain']}"].append((row["text"], label))
        if row["quality"] >= 3:
            groups[f"grade 3 and more, {label}"].append((row["text"], label))
    for row in rows(options.data / "domain" / "dev.jsonl.gz"):
        source = row["source"].split("(")[0]
        name = row["lang"] if row["label"] == "multilingual" else source
        groups[f"{row['label']}, {name}"].append((row["text"], row["lang"]))
    print("kept, graded and labelled pages")
    kept(groups)
    print(f"kept, texts joined to {options.characters} characters")
    kept(joined(rows(options.data / "lid" / "dev.jsonl.gz"), options.characters))


if __name__ == "__main__":
    main()
