"""Build the sample archives: `python data_samples/build.py --out data_samples [--check]`.

The same sources give the same bytes with the same compression libraries; `--check` rebuilds and
compares. Needs brotli, lz4 and zstandard besides the standard library.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import brotli
import lz4.frame
import zstandard

sys.path.insert(0, str(Path(__file__).resolve().parent))

from synth.archive import (
    arc_file_header,
    arc_record,
    chunked,
    encode_body,
    gzip_member,
    http_request,
    http_response,
    pack_gzip,
    pack_lz4,
    pack_zstd,
    record_id,
    sha1,
    warc_record,
)
from synth.catalogue import SCRIPTS, Capture, catalogue
from synth.damage import DAMAGES, GARBAGE, Broken
from synth.dice import Dice
from synth.pages import Page

COLUMNS = (
    "url", "date", "file", "kind", "language", "script", "encoding", "fate", "group",
    "must_contain", "must_contain_source", "must_not_contain", "note",
)  # fmt: skip
DAMAGED = "damaged-00008.warc.gz"
_PIXEL = bytes.fromhex(
    "47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b"
)


def _http_date(stamp: str) -> str:
    """RFC 1123 date of a WARC date, without the locale."""
    year, month, day = (int(x) for x in stamp[:10].split("-"))
    months = "JanFebMarAprMayJunJulAugSepOctNovDec"
    shift = (0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4)[month - 1]
    y = year - (month < 3)
    weekday = (y + y // 4 - y // 100 + y // 400 + shift + day) % 7
    name = "SunMonTueWedThuFriSat"[weekday * 3 : weekday * 3 + 3]
    return f"{name}, {day:02} {months[month * 3 - 3 : month * 3]} {year} {stamp[11:19]} GMT"


def _http(page: Page) -> bytes:
    """The server's answer: bodies plain, gzip, brotli, deflate (both kinds), zstd or chunked."""
    dice = Dice("http " + page.url + page.date)
    coding = dice.pick(("", "", "gzip", "gzip", "br", "deflate", "deflate-raw", "zstd"))
    body = page.body()
    headers = [
        ("Date", _http_date(page.date)),
        ("Server", page.server),
        ("Content-Type", page.content_type()),
        *page.extra_headers,
    ]
    if coding:
        body = encode_body(body, coding)
        headers.append(("Content-Encoding", coding.removesuffix("-raw")))
    if dice.below(3) == 0:
        headers.append(("Transfer-Encoding", "chunked"))
        body = chunked(body, dice.pick((512, 1400, 4096)))
    else:
        headers.append(("Content-Length", str(len(body))))
    return http_response(page.status, headers, body)


def _warcinfo(name: str) -> bytes:
    text = "software: Curation sample builder\r\nformat: WARC File Format 1.0\r\n"
    headers = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Date", "2024-04-01T00:00:00Z"),
        ("WARC-Filename", name),
        ("WARC-Record-ID", record_id("warcinfo", name)),
        ("Content-Type", "application/warc-fields"),
    ]
    return warc_record(headers, text.encode())


def _head(kind: str, page: Page, mime: str) -> list[tuple[str, str]]:
    return [
        ("WARC-Type", kind),
        ("WARC-Target-URI", page.url),
        ("WARC-Date", page.date),
        ("WARC-Record-ID", record_id(kind, page.url, page.date)),
        ("Content-Type", mime),
    ]


def _warc(page: Page, number: int) -> list[bytes]:
    """Records of one page; some come with request, metadata, an image or a revisit beside them."""
    answer = _http(page)
    payload = answer.split(b"\r\n\r\n", 1)[1]
    head = _head("response", page, "application/http; msgtype=response")
    version = "1.1" if number % 4 == 3 else "1.0"
    records = [
        warc_record(
            [*head, ("WARC-IP-Address", "192.0.2.7"), ("WARC-Payload-Digest", sha1(payload))],
            answer,
            version,
        )
    ]
    parts = urlsplit(page.url)
    if number % 3 == 0:
        request = http_request(parts.netloc, parts.path)
        mime = "application/http; msgtype=request"
        records.insert(0, warc_record(_head("request", page, mime), request))
    if number % 5 == 0:
        block = b"fetchTimeMs: 312\r\ncharset-detected: unknown\r\n"
        records.append(warc_record(_head("metadata", page, "application/warc-fields"), block))
    if number % 11 == 0:
        image = http_response("200 OK", [("Content-Type", "image/gif")], _PIXEL)
        picture = _head("response", page, "application/http; msgtype=response")
        picture[1] = ("WARC-Target-URI", f"{parts.scheme}://{parts.netloc}/dot-{number}.gif")
        picture[3] = ("WARC-Record-ID", record_id("image", page.url, page.date))
        records.append(warc_record(picture, image))
    if number % 13 == 0:
        head = _head("revisit", page, "application/http; msgtype=response")
        head[2] = ("WARC-Date", "2024-05-01T00:00:00Z")
        profile = "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"
        head += [("WARC-Profile", profile), ("WARC-Refers-To-Date", page.date)]
        records.append(warc_record(head, http_response("304 Not Modified", [], b"")))
    return records


def _wet(page: Page) -> bytes:
    head = _head("conversion", page, "text/plain")
    head.append(("WARC-Identified-Content-Language", page.language))
    return warc_record(head, page.plain.encode())


def _arc(page: Page) -> bytes:
    stamp = "".join(c for c in page.date if c.isdigit())
    answer = http_response(
        page.status, [("Server", page.server), ("Content-Type", page.content_type())], page.body()
    )
    return arc_record(page.url, stamp, page.mime, answer, "192.0.2.33")


def _jsonl(pages: Sequence[Page]) -> bytes:
    lines = [
        json.dumps(
            {"url": p.url, "date": p.date, "language": p.language, "text": p.plain},
            ensure_ascii=bool(i % 2),
        )
        for i, p in enumerate(pages)
    ]
    lines.insert(
        2, '{"url": "https://cut.example/", "date": "2024-02-01T00:00:00Z", "text": "The li'
    )
    return ("\n".join(lines) + "\n").encode()


def _archive(name: str, pages: Sequence[Page]) -> bytes:
    if name.endswith(".jsonl.gz"):
        return gzip_member(_jsonl(pages))
    if name.endswith(".arc.gz"):
        header = arc_file_header(name.removesuffix(".gz"), "20240401000000")
        return pack_gzip([header, *(_arc(p) for p in pages)])
    if name.endswith(".wet.gz"):
        return pack_gzip([_warcinfo(name), *(_wet(p) for p in pages)])
    records = [_warcinfo(name)]
    for number, page in enumerate(pages):
        records += _warc(page, number)
    if name.endswith(".zst"):
        return pack_zstd(records, dictionary=True)
    if name.endswith(".lz4"):
        return pack_lz4(records)
    return pack_gzip(records)


def _damaged(reserved: Sequence[Page]) -> tuple[bytes, list[Broken], list[Page]]:
    """Sound pages between broken ones: the sound ones must all be found."""
    broken = [damage(page) for damage, page in zip(DAMAGES, reserved, strict=False)]
    sound = list(reserved[len(DAMAGES) :])
    parts = [pack_gzip([_warcinfo(DAMAGED)])]
    for i, one in enumerate(broken):
        parts.append(one.data)
        if i % 2 == 1 and i // 2 < len(sound):
            parts.append(GARBAGE if i == 7 else b"")
            parts.append(pack_gzip(_warc(sound[i // 2], 1)))
    return b"".join(parts), broken, sound


def _row(file: str, page: Page, fate: str | None = None) -> str:
    text_file = file.endswith((".wet.gz", ".jsonl.gz"))
    whole = fate is None
    excludes = page.excludes
    if text_file:  # menus and footers stand in such records as text; repeated lines still go
        excludes = tuple(x for x in excludes if page.plain.count(x) and x not in page.plain[-400:])
    cells = {
        "url": page.url,
        "date": page.date,
        "file": file,
        "kind": page.kind,
        "language": page.language,
        "script": SCRIPTS.get(page.language, "Latin"),
        "encoding": "utf-8" if text_file else page.encoding.codec,
        "fate": page.fate if fate is None else fate,
        "group": page.group,
        "must_contain": " ¶ ".join(page.contains if whole else ()),
        "must_contain_source": " ¶ ".join(page.source_contains if whole else ()),
        "must_not_contain": " ¶ ".join(excludes if whole else ()),
        "note": page.note,
    }
    values = [cells[name] for name in COLUMNS]
    if any("\t" in v or "\n" in v for v in values):
        raise ValueError(f"{page.url}: tab or line break in an expectation")
    return "\t".join(values)


def libraries() -> dict[str, str]:
    """Versions that decide on the compressed bytes."""
    return {
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        "brotli": brotli.__version__,
        "zstd": ".".join(str(x) for x in zstandard.ZSTD_VERSION),
        "lz4": lz4.library_version_string(),
    }


def build() -> dict[str, bytes]:
    """Every file of the sample by name."""
    captures, reserved = catalogue()
    by_file: dict[str, list[Page]] = {}
    for capture in captures:
        by_file.setdefault(capture.file, []).append(capture.page)
    for name in by_file:
        by_file[name] = Dice("order " + name).shuffled(by_file[name])
    files = {name: _archive(name, by_file[name]) for name in sorted(by_file)}
    rows = [_row(name, page) for name in sorted(by_file) for page in by_file[name]]
    files[DAMAGED], broken, sound = _damaged(reserved)
    rows += [_row(DAMAGED, page) for page in sound]
    for b in broken:
        note = f"mended: {b.mended}" if b.mended else "unreadable"
        rows.append(_row(DAMAGED, replace(b.page, note=note), b.fate))
    lost = Page("", "", "garbage", "und", "", note="bytes between two records")
    rows.append(_row(DAMAGED, lost, "set_aside:gzip.garbage|set_aside:warc.garbage|skipped"))
    cut = Capture(
        "records-00007.jsonl.gz",
        Page("https://cut.example/", "2024-02-01T00:00:00Z", "article", "en", ""),
    )
    rows.append(_row(cut.file, cut.page, "set_aside:jsonl.bad_json"))
    urls = Counter(tuple(row.split("\t")[:2]) for row in rows)
    twice = [key for key, count in urls.items() if count > 1]
    if twice:
        raise ValueError(f"address captured twice at one time: {twice[:3]}")
    files["expected.tsv"] = ("\n".join(["\t".join(COLUMNS), *rows]) + "\n").encode()
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    manifest = {"libraries": libraries(), "sha256": sums}
    files["manifest.json"] = (json.dumps(manifest, indent=1) + "\n").encode()
    return files


def differences(folder: Path, files: dict[str, bytes]) -> list[str]:
    """Names of the files in `folder` that are absent or differ from `files`."""
    return [
        name
        for name, data in files.items()
        if not (folder / name).is_file() or (folder / name).read_bytes() != data
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build the synthetic sample archives.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to or check")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(argv)
    files = build()
    if options.check:
        wrong = differences(options.out, files)
        for name in wrong:
            print(f"{name}: differs from a rebuild", file=sys.stderr)
        recorded = json.loads((options.out / "manifest.json").read_text())["libraries"]
        if wrong and recorded != libraries():
            print(f"built with {recorded}, here are {libraries()}", file=sys.stderr)
        return 1 if wrong else 0
    options.out.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (options.out / name).write_bytes(data)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
