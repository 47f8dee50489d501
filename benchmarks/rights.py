"""Rights: agreement with vectors of robots.txt, with pages' statements, and what reading costs.

    python benchmarks/rights.py [--robots FILE] [--pages FILE] [--cost DIR]

`--robots`: JSON lines (gzip) of `{robots, agent, url, allowed, source}`, of google/robotstxt,
scrapy/protego, RFC 9309 or any other. `--pages`: JSON lines (gzip) of `{id, html, headers, licence,
jurisdiction, scope, tdm_reserved, tdm_policy, noai, ...}`. `--cost`: a folder or an archive
(`.tar.xz`) of HTML pages. Each prints agreement by source, every difference, and CPU time of one
thread, that of extraction beside that of reading rights: for groups of pages, as in a run, and page
by page.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import itertools
import json
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from curation.extract import PageTooLargeError, native
from curation.extract.extractor import default_settings
from curation.readers.charset import utf8_html
from curation.rights import for_agents, parse_directives, parse_robots, read_page, reservation
from pipelines.extract import GROUP_BYTES, GROUP_RECORDS

_DIRECTIVES = ("noai", "noimageai", "noindex", "nofollow", "noarchive")
_WARM, _MOST_PAGES = 50, 1500


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--robots", type=Path)
    parser.add_argument("--pages", type=Path)
    parser.add_argument("--cost", type=Path)
    options = parser.parse_args()
    if options.robots:
        robots(options.robots)
    if options.pages:
        pages(options.pages)
    if options.cost:
        cost(options.cost)


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def robots(path: Path) -> None:
    """Print how many verdicts are those of the vectors, by source."""
    right: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for vector in _lines(path):
        file = parse_robots(vector["robots"].encode())
        same = file.access(vector["agent"], vector["url"]).allowed == vector["allowed"]
        source = vector["source"].split(" tests")[0].split(" robots_test")[0]
        every[source] += 1
        right[source] += same
        if not same:
            print(f"  differs: {vector['source']}: {vector['agent']} {vector['url']}")
    for source, count in sorted(every.items()):
        print(f"robots  {source:<40} {right[source]:>5} of {count}")


def pages(path: Path) -> None:
    """Print how many facts of pages and headers are read as the cases say, by fact."""
    right: Counter[str] = Counter()
    cases = _lines(path)
    for case in cases:
        for name, value in facts(case).items():
            right[name] += value == case[name]
            if value != case[name]:
                print(f"  differs: {case['id']}: {name} {value!r}, not {case[name]!r}")
    for name, count in right.items():
        print(f"pages   {name:<40} {count:>5} of {len(cases)}")


def facts(case: dict[str, Any]) -> dict[str, Any]:
    """Return what a page and its headers say, in the words of the cases."""
    rights = read_page(case["html"].encode())
    headers: dict[str, list[str]] = {}
    for name, value in case["headers"].items():
        headers.setdefault(name.lower(), []).extend([value] if isinstance(value, str) else value)
    directives = [*rights.directives]
    for value in headers.get("x-robots-tag", []):
        directives += parse_directives(value)
    said = for_agents(directives, ())
    reserved = rights.reservation or reservation(
        headers.get("tdm-reservation", []), headers.get("tdm-policy", [])
    )
    scopes = [s.scope for s in rights.statements if s.licence]
    return {
        "licence": rights.licence and rights.licence.name,
        "jurisdiction": rights.licence and rights.licence.jurisdiction,
        "scope": "page" if "page" in scopes else "part" if scopes else "none",
        "tdm_reserved": reserved and reserved.reserved,
        "tdm_policy": reserved and reserved.policy,
        **{name: name in said for name in _DIRECTIVES},
    }


def cost(path: Path) -> None:
    """Print CPU time per page of extraction and of reading rights, in groups and page by page."""
    for most in (GROUP_RECORDS, 1):
        seconds: Counter[str] = Counter()
        count = size = 0
        for group in _groups(itertools.islice(_html(path), _MOST_PAGES), most):
            spent = _spent(group)
            if count >= _WARM:
                seconds.update(spent)
                size += sum(map(len, group))
                seconds["pages"] += len(group)
            count += len(group)
        pages = seconds.pop("pages")
        print(f"cost    {pages:.0f} pages of {size / pages / 1000:.0f} kB, in groups of {most}")
        for name, total in seconds.items():
            print(f"cost    {name:<12} {1000 * total / pages:.3f} ms of CPU per page")
        print(f"cost    share        {seconds['rights'] / seconds['extraction']:.1%}")


def _spent(sources: list[bytes]) -> Counter[str]:
    """CPU seconds that the pages of a group take: first rights, then extraction, as in a run."""
    settings = default_settings()
    seconds: Counter[str] = Counter()
    contents = []
    for source in sources:
        content, _ = utf8_html(source, None)
        start = time.thread_time()
        read_page(content)
        seconds["rights"] += time.thread_time() - start
        contents.append(content)
    for content in contents:
        start = time.thread_time()
        with contextlib.suppress(PageTooLargeError):
            native.result(native.judge(content, settings), settings)
        seconds["extraction"] += time.thread_time() - start
    return seconds


def _groups(pages: Iterator[bytes], most: int) -> Iterator[list[bytes]]:
    """Yield groups as extraction makes them."""
    group: list[bytes] = []
    for page in pages:
        group.append(page)
        if len(group) == most or sum(map(len, group)) >= GROUP_BYTES:
            yield group
            group = []
    if group:
        yield group


def _html(path: Path) -> Iterator[bytes]:
    if path.is_dir():
        for file in sorted(path.rglob("*.htm*")):
            yield file.read_bytes()
        return
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith((".html", ".htm")):
                content = archive.extractfile(member)
                assert content is not None
                yield content.read()


if __name__ == "__main__":
    main()
