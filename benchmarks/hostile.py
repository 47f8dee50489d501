"""Pages made to hurt: CPU time per byte, peak memory and outcome of each.

    python benchmarks/hostile.py [--data DIR] [--engine curation] [--scale 1.0] [--only NAME,NAME]
    python benchmarks/hostile.py --chain [--data DIR] [--bytes 900000]

Each page is generated, and extracted in a process of its own. The allowance is ten times the median
time per byte of ordinary pages, those of DIR (`<set>/html/*.html`) or, without it, of pages made
here, and 500 MB of resident memory, interpreter and models included. Exits with 1 when a page goes
over it or ends its process.

With `--chain`, shapes of less than 1 MB go through every stage (benchmarks/shapes.py): files through
the reader, pages through extraction, texts through all that is done to texts. A byte (of a file as
it lies on the disk) may cost twenty times what a byte of ordinary pages costs in all stages together.
The table has the dearest shapes of each stage.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import functools
import json
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import shapes
from curation.extract import Extractor, PageTooLargeError, default_settings
from curation.readers import read
from curation.recipe import load

ALLOWED_RATIO = 10  # times the median time per byte
ALLOWED_IN_CHAIN = 20
ALLOWED_BYTES = 500 * 10**6
_CPU_SECONDS = 60  # then the kernel ends the process
_MIB = 1 << 20

_WORDS = b"The harbour wall was rebuilt after the flood of that year, and it has stood since. "
_PARAGRAPH = b"<p>" + _WORDS * 6 + b"</p>\n"
ARTICLE = b"<h1>Harbour walls</h1>\n" + _PARAGRAPH * 4

Maker = Callable[[float], bytes]
CASES: dict[str, Maker] = {}


def case(maker: Maker) -> Maker:
    """Register a generator: the size of its page grows with its argument, 1.0 is full size."""
    CASES[maker.__name__] = maker
    return maker


def page(body: bytes, head: bytes = b"") -> bytes:
    return b"<!doctype html><title>Hostile</title>" + head + b"<body>" + body


# ------------------------------------------------------------------------------------- nesting


@case
def nested_20_000(scale: float) -> bytes:
    """A paragraph at the bottom of 20,000 elements: its text must come back."""
    n = int(20_000 * scale)
    return page(b"<div>" * n + ARTICLE + b"</div>" * n)


@case
def nested_million(scale: float) -> bytes:
    return page(b"<div>" * int(1_000_000 * scale) + ARTICLE)


@case
def nested_million_with_text(scale: float) -> bytes:
    return page(b"<div>a" * int(1_000_000 * scale) + ARTICLE)


@case
def nested_million_inline(scale: float) -> bytes:
    return page(ARTICLE + b"<b><i><a href=x>" * int(333_333 * scale) + b"deep")


@case
def nested_tables(scale: float) -> bytes:
    n = int(20_000 * scale)
    return page(ARTICLE + b"<table><tr><td>x" * n + b"</td></tr></table>" * n)


@case
def nested_lists(scale: float) -> bytes:
    return page(ARTICLE + b"<ul><li>item " * int(100_000 * scale))


@case
def nested_tables_unclosed_cells(scale: float) -> bytes:
    return page(ARTICLE + b"<table><tr>" * int(500 * scale) + b"<td>x" * int(100_000 * scale))


@case
def broken_nesting(scale: float) -> bytes:
    soup = (
        b"<b><p>one</b></div><table><tr><div>two</p></td><li><h1>three</h2></table></span><td>"
        b"<a href=x><form><p>four</a></form></li></ul><pre>five</div></pre><tr></table>"
    )
    return page(ARTICLE + soup * int(20_000 * scale))


@case
def end_tags_only(scale: float) -> bytes:
    return page(ARTICLE + b"</p></div></td>" * int(300_000 * scale))


@case
def far_end_tags(scale: float) -> bytes:
    """Each end tag looks far up the stack for a start tag that isn't there to be closed."""
    opened = b"<section>" + b"<table><tr><td>" * 160
    return page(ARTICLE + opened + b"</section></aside>x" * int(300_000 * scale))


# ------------------------------------------------------------------------------------ quantity


@case
def siblings_million(scale: float) -> bytes:
    return page(b"<p>a" * int(1_000_000 * scale))


@case
def siblings_of_words(scale: float) -> bytes:
    return page(b"<p>five words in a line</p>\n" * int(400_000 * scale))


@case
def table_100_000_cells(scale: float) -> bytes:
    row = b"<tr>" + b"<td>12.5</td>" * 100 + b"</tr>\n"
    return page(ARTICLE + b"<table>" + row * int(1_000 * scale) + b"</table>")


@case
def table_of_formatted_cells(scale: float) -> bytes:
    row = b"<tr>" + b'<td class="n"><b><i>7</i></b> <a href="/x">y</a></td>' * 300 + b"</tr>"
    return page(ARTICLE + b"<table>" + row * int(300 * scale) + b"</table>")


@case
def links_100_000(scale: float) -> bytes:
    return page(ARTICLE + b"".join(b'<a href="/%d">link</a> ' % i for i in range(int(1e5 * scale))))


@case
def empty_spans(scale: float) -> bytes:
    return page(ARTICLE + b"<span></span>" * int(1_000_000 * scale))


@case
def line_breaks(scale: float) -> bytes:
    return page(ARTICLE + b"a<br><br>" * int(500_000 * scale))


@case
def options(scale: float) -> bytes:
    return page(ARTICLE + b"<form><select>" + b"<option>one" * int(300_000 * scale))


@case
def classes(scale: float) -> bytes:
    names = b" ".join(b"name-%d-part" % i for i in range(60))
    return page(ARTICLE + (b'<div class="' + names + b'">x</div>') * int(20_000 * scale))


# ----------------------------------------------------------------------------------- long things


@case
def script_50_mb(scale: float) -> bytes:
    line = b"var a = '<div>' + \"</p>\" + b < c && d; // -->\n"
    return page(b"<script>" + line * int(50 * _MIB * scale / len(line)) + b"</script>" + ARTICLE)


@case
def text_20_mb(scale: float) -> bytes:
    """One text node: its text must come back."""
    return page(b"<p>" + _WORDS * int(20 * _MIB * scale / len(_WORDS)))


@case
def text_20_mb_han(scale: float) -> bytes:
    sentence = "這座港口的堤壩在那年洪水之後重建,至今依然屹立。".encode()
    return page(b"<p>" + sentence * int(20 * _MIB * scale / len(sentence)))


@case
def text_beyond_the_first_plane(scale: float) -> bytes:
    """Python needs four bytes for every character of such a page."""
    return page(
        b"<p>" + "\U0001f30a wave ".encode() + _WORDS * int(60 * _MIB * scale / len(_WORDS))
    )


@case
def white_space(scale: float) -> bytes:
    return page(ARTICLE + b"<p>a" + b" \n\t" * int(5_000_000 * scale) + b"b</p>")


@case
def one_word(scale: float) -> bytes:
    return page(ARTICLE + b"<p>" + b"a" * int(20 * _MIB * scale))


@case
def combining_marks(scale: float) -> bytes:
    """Normal forms order marks: every mark against all before it, if done naively."""
    marks = "\u0316\u0301".encode() * int(500_000 * scale)
    return page(ARTICLE + b"<p>e" + marks + b"</p>")


@case
def double_encoded(scale: float) -> bytes:
    text = "naïve café – “déjà vu” ".encode().decode("latin-1").encode()
    return page(ARTICLE + b"<p>" + text * int(100_000 * scale))


@case
def attribute_20_mb(scale: float) -> bytes:
    return page(b'<div title="' + b"x > y < z " * int(2 * _MIB * scale) + b'">' + ARTICLE)


@case
def class_20_mb(scale: float) -> bytes:
    return page(b'<div class="' + b"alpha-beta " * int(2 * _MIB * scale) + b'">' + ARTICLE)


@case
def style_20_mb(scale: float) -> bytes:
    return page(b'<div style="' + b"color:red;" * int(2 * _MIB * scale) + b'">' + ARTICLE)


@case
def attributes_million(scale: float) -> bytes:
    names = b" ".join(b"a%d=1" % i for i in range(int(1_000_000 * scale)))
    return page(b"<div " + names + b">" + ARTICLE)


@case
def tag_name_10_mb(scale: float) -> bytes:
    return page(ARTICLE + b"<" + b"x" * int(10 * _MIB * scale) + b">tail")


@case
def title_10_mb(scale: float) -> bytes:
    return b"<title>" + _WORDS * int(10 * _MIB * scale / len(_WORDS)) + b"</title>" + ARTICLE


@case
def code_10_mb(scale: float) -> bytes:
    lines = b"\n".join(b"%d  if a &lt; b: return c" % i for i in range(int(400_000 * scale)))
    return page(ARTICLE + b"<pre><code>" + lines + b"</code></pre>")


@case
def code_pieces(scale: float) -> bytes:
    return page(ARTICLE + b"<p>text <code>x</code> <pre>a = 1</pre>" * int(50_000 * scale))


# ------------------------------------------------------------------------------ what never ends


@case
def comments_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<!-- <p>a " * int(500_000 * scale))


@case
def cdata_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<![CDATA[ <p>a " * int(300_000 * scale))


@case
def templates_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<template><svg><p>a " * int(300_000 * scale))


@case
def quotes_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<a href=\"x><p title='y>" * int(300_000 * scale))


@case
def scripts_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<script><style><textarea><title>a " * int(200_000 * scale))


@case
def hidden_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<div hidden><span style='display:none'>a " * int(200_000 * scale))


@case
def angle_brackets(scale: float) -> bytes:
    return page(ARTICLE + b"<" * int(10_000_000 * scale))


@case
def tag_starts(scale: float) -> bytes:
    return page(ARTICLE + b"<a <b </c <!d <?e " * int(500_000 * scale))


@case
def no_end_tag_found(scale: float) -> bytes:
    """Every element of another kind looks for its end once."""
    return page(ARTICLE + b"<svg><math><iframe><canvas><audio></x" * int(200_000 * scale))


# ----------------------------------------------------------------------------------- references


@case
def billion_laughs(scale: float) -> bytes:
    levels = b"".join(
        b'<!ENTITY lol%d "%s">' % (i, b"&lol%d;" % (i - 1) * 10) for i in range(1, 10)
    )
    doctype = b'<!DOCTYPE lolz [<!ENTITY lol0 "lol">' + levels + b"]>"
    return doctype + page(ARTICLE + b"<p>" + b"&lol9;" * int(300_000 * scale))


@case
def references(scale: float) -> bytes:
    return page(ARTICLE + b"<p>" + b"&amp;&notit;&#x1F30A;&ngE;&" * int(300_000 * scale))


@case
def endless_references(scale: float) -> bytes:
    n = int(5_000_000 * scale)
    return page(ARTICLE + b"<p>&#" + b"9" * n + b"; &" + b"a" * n + b"; &#x" + b"f" * n)


@case
def nuls(scale: float) -> bytes:
    return page(ARTICLE + b"<p>a\0b<di\0v>\0" * int(500_000 * scale) + b"\0" * int(5e6 * scale))


@case
def control_characters(scale: float) -> bytes:
    return page(ARTICLE + b"<p>" + bytes(range(1, 32)) * int(200_000 * scale))


@case
def bytes_at_random(scale: float) -> bytes:
    state, out = 1, bytearray()
    for _ in range(int(500_000 * scale)):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        out += (state >> 32).to_bytes(4, "little")
    return page(ARTICLE + bytes(out))


# ------------------------------------------------------------------------------------- encodings


@case
def utf16_without_mark(scale: float) -> bytes:
    return page(ARTICLE * int(1_000 * scale)).decode().encode("utf-16-le")


@case
def utf16_odd(scale: float) -> bytes:
    lone = b"\x00\xd8" * int(2_000_000 * scale)
    return codecs.BOM_UTF16_LE + page(ARTICLE).decode().encode("utf-16-le") + lone + b"\x41"


@case
def utf7(scale: float) -> bytes:
    head = b"<meta charset=utf-7>"
    return page(ARTICLE + b"+ADw-script+AD4-alert(1)+ADw-/script+AD4-" * int(1e5 * scale), head)


@case
def meta_many(scale: float) -> bytes:
    return b"<meta charset='x" * int(300_000 * scale) + page(ARTICLE + b"\xe9")


@case
def escapes(scale: float) -> bytes:
    return page(ARTICLE + b"\x1b$B" * int(1_000_000 * scale))


# ------------------------------------------------------------------------------ formulas and data


@case
def formula_deep(scale: float) -> bytes:
    return page(ARTICLE + b"<math>" + b"<mrow><msup>" * int(8_000 * scale) + b"<mi>x</math>")


@case
def formula_endless(scale: float) -> bytes:
    return page(
        ARTICLE + b"<math>" + b"<mrow><mi>x</mi></mrow>" * int(200_000 * scale) + b"</math>"
    )


@case
def formulas_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<math><mi>x</mi><p>a" * int(200_000 * scale))


@case
def formulas_100_000(scale: float) -> bytes:
    return page(ARTICLE + b"<p><math><mi>x</mi></math> a" * int(100_000 * scale))


@case
def formulas_backtracking(scale: float) -> bytes:
    """A formula whose parts look like the beginning of an annotation."""
    inner = b"<annotation encoding=" * int(8_000 * scale)
    return page(ARTICLE + (b"<math>" + inner + b"</math>") * 10)


@case
def formula_scripts(scale: float) -> bytes:
    one = b'<script type="math/tex">{{{{\\displaystyle x</script> a '
    return page(ARTICLE + b"<p>" + one * int(100_000 * scale))


@case
def formulas_asciimath(scale: float) -> bytes:
    """Brackets that may be matrices, and bars that nothing closes."""
    one = b'<script type="math/asciimath">' + b"[[(x|{" * 700 + b"</script> a "
    return page(ARTICLE + b"<p>" + one * int(240 * scale))


@case
def formulas_drawn(scale: float) -> bytes:
    """KaTeX's HTML without its source, one deep, many flat."""
    deep = b'<p>a <span class="katex-html">' + b'<span class="vlist">' * int(20_000 * scale)
    flat = b'<p>a <span class="katex-html"><span class="mord">x</span></span>' * int(20_000 * scale)
    return page(ARTICLE + flat + deep)


@case
def formulas_bare(scale: float) -> bytes:
    return page(ARTICLE + b'<p>a <span class="math">x' * int(100_000 * scale))


@case
def cells_of_many_rows(scale: float) -> bytes:
    row = b'<tr><td rowspan="900" colspan=2>a<td rowspan=1000>b<td>c'
    return page(ARTICLE + b"<table>" + row * int(50_000 * scale) + b"</table>")


@case
def streamed_parts(scale: float) -> bytes:
    """Parts within parts, and one that comes again and again."""
    deep = b'<div hidden id="S:0"><template id="B:1"></template><!--$?-->' * int(20_000 * scale)
    again = b'$RC("B:1","S:0")<template id="B:1"></template>' * int(20_000 * scale)
    return page(ARTICLE + deep + again)


@case
def state_unclosed(scale: float) -> bytes:
    """Scripts of a framework's state that never end, on a page without text."""
    return page(
        b'<script id="__NEXT_DATA__" type="application/json">{"a":[' * int(50_000 * scale)
        + b'window.__INITIAL_STATE__ = {"b":' * int(50_000 * scale)
    )


@case
def textareas_read_only(scale: float) -> bytes:
    return page(
        ARTICLE + b"<textarea readonly>a<b>\n</textarea><textarea readonly>" * int(50_000 * scale)
    )


@case
def shortcodes_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<p>" + b"[vc_row a=" * int(200_000 * scale))


@case
def formula_images(scale: float) -> bytes:
    return page(ARTICLE + b'<p><img class=tex alt="$\\frac{1}{2}$"> a ' * int(100_000 * scale))


@case
def linked_data(scale: float) -> bytes:
    n = int(2_000_000 * scale)
    head = b'<script type="application/ld+json">%s</script>'
    body = b'{"articleBody": "' + b"&lt;p&gt;<a" * n + b'"}'
    return page(ARTICLE, head % (b'["articleBody"' + b"[" * n) + head % body)


@case
def stated_answers(scale: float) -> bytes:
    n = int(50_000 * scale)
    stated = b'<script type="application/ld+json">{"@type":"Answer","text":"%s"}</script>'
    blocks = b"".join(b"<div>what is at number %d, in words</div>" % i for i in range(n))
    return page(ARTICLE + blocks, stated % (b"what is at number 1, in figures. " * n))


# ------------------------------------------------------------------------------------ measurement


def _peak() -> int:
    """Highest resident memory since `_reset_peak`, in bytes."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _reset_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _measure(answer: Connection, name: str, scale: float, extractor: Extractor) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    html = CASES[name](scale)
    extractor.extract(page(ARTICLE))  # a new process first copies the memory that it writes to
    _reset_peak()
    start = time.process_time()
    try:
        outcome = f"{len(extractor.extract(html).text):,} characters"
    except PageTooLargeError as error:
        outcome = str(error)
    except BaseException as error:
        outcome = f"error: {type(error).__name__}: {str(error)[:100]}"
    answer.send((len(html), time.process_time() - start, _peak(), outcome))


def measure(name: str, scale: float, extractor: Extractor) -> tuple[int, float, int, str]:
    """Bytes, CPU seconds, peak memory and outcome of a case, in a process of its own."""
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    process = context.Process(target=_measure, args=(theirs, name, scale, extractor))
    process.start()
    theirs.close()
    try:
        return mine.recv()  # type: ignore[no-any-return]
    except EOFError:
        process.join()
        return 0, float("inf"), 0, f"error: the process ended with {process.exitcode}"


def ordinary_pages(data: Path | None, most: int) -> list[bytes]:
    """Pages of a folder, or else made here."""
    if data:
        paths = sorted(data.glob("*/html/*.html"))
        if pages := [path.read_bytes() for path in paths[:: max(1, len(paths) // most)]]:
            return pages
    item = b'<li class="menu-item level-1"><a class="menu-link" href="/topic/a">A topic</a></li>\n'
    menu = b'<nav class="menu"><div class="inner"><ul>' + item * 60 + b"</ul></div></nav>"
    script = b"<script>" + b"var settings = {};" * 600 + b"</script>"
    card = b'<div class="card"><h3><a href="/b">Other news</a></h3><p>A few words.</p></div>'
    return [page(menu + script + ARTICLE + _PARAGRAPH * n + card * 20 + menu) for n in range(100)]


def ordinary(data: Path | None, extractor: Extractor, most: int = 300) -> float:
    """Median seconds per byte of ordinary pages."""
    pages = ordinary_pages(data, most)
    spent = []
    for html in pages:
        start = time.process_time()
        extractor.extract(html)
        spent.append((time.process_time() - start) / max(len(html), 1))
    return statistics.median(spent)


# -------------------------------------------------------------------------------------- the chain


def _seconds(run: Callable[[], object], times: int = 3) -> float:
    spent = []
    for _ in range(times):
        start = time.process_time()
        run()
        spent.append(time.process_time() - start)
        if len(spent) > 1 and spent[-1] > 1:  # the first time may compile patterns
            break
    return min(spent)


def _reading(folder: Path, file: shapes.File, content: bytes) -> Callable[[], object]:
    path = folder / str(len(list(folder.iterdir()))) / file.name
    path.parent.mkdir()
    path.write_bytes(content)
    settings = load("sample").readers
    if file.small_records:
        settings = settings.model_copy(update={"max_record_bytes": 1 << 16})
    return lambda: sum(1 for _ in read(str(path), settings))


def _warc(pages: list[bytes]) -> bytes:
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    return b"".join(shapes.warc(http + html) for html in pages)


def chain(data: Path | None, size: int) -> int:
    """Print the dearest shapes of every stage; return how many are over the allowance."""
    extractor = Extractor(default_settings())
    pages = ordinary_pages(data, 100)
    found = [extractor.extract(html).text for html in pages]
    texts = pa.array([text for text in found if text], pa.large_string())
    runs: dict[str, dict[str, tuple[int, Callable[[], object]]]] = {"read": {}, "extract": {}}
    with tempfile.TemporaryDirectory() as scratch:
        archive, folder = _warc(pages), Path(scratch)
        runs["read"][""] = 0, _reading(folder, shapes.File("a.warc", bytes), archive)
        runs["extract"][""] = 0, lambda: [extractor.extract(html) for html in pages]
        for name, file in shapes.FILES.items():
            content = file.make(size)
            if len(content) < 1 << 20:
                runs["read"][name] = len(content), _reading(folder, file, content)
        for name, maker in CASES.items():
            html = maker(size * 0.02 / len(maker(0.02)))
            runs["extract"][name] = len(html), functools.partial(_extracted, extractor, html)
        for name, make in shapes.ENCODED.items():
            html = make(size)
            runs["extract"][name] = len(html), functools.partial(_extracted, extractor, html)
        for stage, function in shapes.stages().items():
            runs[stage] = {"": (0, functools.partial(function, texts))}
            for name, text in shapes.TEXTS.items():
                shape = pa.array([text(size)], pa.large_string())
                runs[stage][name] = (
                    len(shape[0].as_py().encode()), functools.partial(function, shape)
                )  # fmt: skip
        spent = {stage: _warm_seconds(shown.pop("")[1]) for stage, shown in runs.items()}
        usual = sum(spent.values()) / sum(map(len, pages))
        print(f"a byte of ordinary pages: {usual * 1e9:.0f} ns in the whole chain")
        return sum(_dearest(stage, shown, usual) for stage, shown in runs.items())


def _warm_seconds(run: Callable[[], object]) -> float:
    run()
    return _seconds(run)


def _extracted(extractor: Extractor, html: bytes) -> None:
    with contextlib.suppress(PageTooLargeError):
        extractor.extract(html)


def _dearest(
    stage: str, runs: dict[str, tuple[int, Callable[[], object]]], usual: float, most: int = 5
) -> int:
    ratios = {name: _seconds(run) / max(size, 1) / usual for name, (size, run) in runs.items()}
    ordered = sorted(ratios, key=ratios.__getitem__, reverse=True)
    over = [name for name in ordered if ratios[name] > ALLOWED_IN_CHAIN]
    print(f"{stage}: {len(over)} of {len(ratios)} over")
    for name in ordered[: max(most, len(over))]:
        print(f"    {ratios[name]:8.1f} x  {name}", flush=True)
    return len(over)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="ordinary pages to compare with")
    parser.add_argument("--engine", default="curation")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the pages")
    parser.add_argument("--only", default="", metavar="NAME,NAME")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--chain", action="store_true", help="all stages instead of extraction")
    parser.add_argument("--bytes", type=int, default=900_000, help="of each shape, with --chain")
    options = parser.parse_args()
    if options.chain:
        return int(chain(options.data, options.bytes) > 0)
    extractor = Extractor(default_settings().model_copy(update={"engine": options.engine}))
    for warm_up in (ARTICLE, "<p>é</p>".encode() + b"<p>a" * 25_000):  # compiled code is loaded
        extractor.extract(page(warm_up))
    median = ordinary(options.data, extractor)
    print(
        f"ordinary pages: {median * 1e9:.1f} ns per byte (median); allowed: {ALLOWED_RATIO} times"
    )
    failed, figures = 0, {}
    for name in options.only.split(",") if options.only else CASES:
        size, seconds, peak, outcome = measure(name, options.scale, extractor)
        per_byte = seconds / max(size, 1)
        over = per_byte > ALLOWED_RATIO * median or peak > ALLOWED_BYTES
        bad = over or outcome.startswith("error")
        failed += bad
        figures[name] = {"bytes": size, "seconds": seconds, "peak": peak, "outcome": outcome}
        print(
            f"{'FAIL' if bad else 'ok':4} {name:29} {size / 1e6:6.1f} MB {seconds:7.2f} s "
            f"{per_byte * 1e9:8.1f} ns/byte {per_byte / median:6.1f} x {peak / 1e6:5.0f} MB  {outcome}",
            flush=True,
        )
    if options.json:
        report: dict[str, Any] = {"nanoseconds_per_byte": median * 1e9, "cases": figures}
        options.json.write_text(json.dumps(report, indent=1))
    print(f"{len(figures) - failed} of {len(figures)} within the allowance")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
