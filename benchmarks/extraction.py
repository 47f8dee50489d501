"""Extraction against public gold text: every engine, every set, quality and speed.

    python benchmarks/extraction.py --data DIR [--models DIR] [--engines a,b] [--sets a,b] [--every N]

DIR holds `<set>/html/<id>.html` and `<set>/gold.jsonl`, itself, in `data/` or in an archive
`dev.tar.xz`. Scores are those of the Scrapinghub article
extraction benchmark: multisets of 4-grams of words (each Han character and kana one word), precision
averaged over pages with text, recall over all pages, F1 of both averages; an empty answer counts as
it is. Besides these, pages with faults are counted (extraction_faults.py), and the kinds of page that
a set tells apart are scored each by itself. Sets that the shipped model may learn from are scored by models that saw no page of the same
site: `--models` names the folder that `python -m models.training.extract --cross-fit` wrote. Without
it they are left out for the engine `curation`. With `--all-sets` every set is scored so, by the
models that `python -m models.training.extract --all-sets` wrote to measure the method.

Speed is CPU time of one thread on the same pages, engines interleaved page by page; the bare parse
is lexbor through selectolax, which also finds the listings of a page whose indentation code lines
should have. Without it both figures are left out, as are engines that are not installed, and the
output says so: pip install 'curation[engines]' selectolax, and --no-deps readability-lxml (it asks for
an old chardet) with lxml_html_clean, cssselect.

All engines on all 2,835 pages of the development half take about 10 minutes of CPU time; `--every 10`
gives a first look in one.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import json
import logging
import re
import statistics
import sys
import tarfile
import tempfile
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import forms
from benchmarks.extraction_faults import Faults, Shown
from curation.extract import Extractor, PageTooLargeError, native
from curation.extract.extract_settings import ExtractSettings
from curation.extract.extractor import default_settings
from curation.extract.model import Model, read_model
from curation.readers.charset import decode_html, utf8_html
from models.training.extract import model_name
from models.training.extract.pages import fold_of, group_of
from models.training.extract.settings import default_training

TEXT_SETS = (
    "scrapinghub wcxb cleaneval cleanportaleval dragnet l3s-gn1 readability magichtml-article "
    "magichtml-forum daniel crawl-to-the-future mathcode-llmwebkit"
).split()
PHRASE_SET = "trafilatura-eval"
CODE_SET = "mathcode-llmwebkit"
ENGINES = ("curation", "trafilatura", "resiliparse", "readability")

#: Whether lexbor can be asked.
LEXBOR = importlib.util.find_spec("selectolax") is not None

_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(f"[{_HAN}]|[^\\W{_HAN}]+")
_FENCE = re.compile(r"^[ \t]*```[^\n]*\n(.*?)^[ \t]*```", re.S | re.M)
_FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$([^$\n]{2,400}?)(?<!\\)\$", re.S)
_WHITE, _NUMBER = re.compile(r"\s+"), re.compile(r"^\s*\d+ ?")
_STYLE = re.compile(r"\\(?:left|right|displaystyle|,|;|!|quad)(?![a-zA-Z])|[\s{}$]")


def words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text))


def shingles(text: str) -> Counter[tuple[str, ...]]:
    """Multiset of 4-grams; a shorter text is one shingle."""
    found = words(text)
    if not found:
        return Counter()
    return Counter(tuple(found[i : i + 4]) for i in range(max(1, len(found) - 3)))


def precision_recall(gold: str, answer: str) -> tuple[float, float]:
    wanted, given = shingles(gold), shingles(answer)
    if not wanted and not given:
        return 1.0, 1.0
    shared = sum((wanted & given).values())
    return shared / max(given.total(), 1), shared / max(wanted.total(), 1)


def f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@dataclass
class Score:
    """Scores of an engine on a set."""

    precision: list[float] = field(default_factory=list)
    recall: list[float] = field(default_factory=list)
    phrases: list[int] = field(default_factory=lambda: [0, 0, 0])  # hits, false, missed
    code: list[int] = field(default_factory=lambda: [0] * 8)
    faults: Faults = field(default_factory=Faults)
    kinds: dict[str, Score] = field(default_factory=dict)

    def add(self, row: dict[str, Any], html: bytes, shown: Shown, answer: str) -> None:
        """Score an answer, by itself and with the pages of its kind where the set says a kind."""
        self._add(row, html, answer)
        if row.get("text"):
            self.faults.add(row["text"], answer, shown)
        if kind := row.get("page_type"):
            self.kinds.setdefault(kind, Score())._add(row, html, answer)

    def _add(self, row: dict[str, Any], html: bytes, answer: str) -> None:
        gold = row.get("text")
        if gold is None:
            self._phrases(row, answer)
            return
        if row.get("gold_format") == "markdown":
            self.code = [
                a + b for a, b in zip(self.code, formulas_and_code(gold, html, answer), strict=True)
            ]
        if len(words(gold)) < 5:
            return
        precision, recall = precision_recall(gold, answer)
        if words(answer):
            self.precision.append(precision)
        self.recall.append(recall)

    def _phrases(self, row: dict[str, Any], answer: str) -> None:
        text = _plain(answer)
        wanted = [_plain(phrase) in text for phrase in row.get("with") or []]
        unwanted = [_plain(phrase) in text for phrase in row.get("without") or []]
        self.phrases[0] += sum(wanted)
        self.phrases[1] += sum(unwanted)
        self.phrases[2] += len(wanted) - sum(wanted)

    def figures(self) -> tuple[float, float, float]:
        """F1, precision, recall."""
        if self.recall:
            p = statistics.mean(self.precision) if self.precision else 0.0
            r = statistics.mean(self.recall)
        else:
            hits, false, missed = self.phrases
            p, r = hits / max(hits + false, 1), hits / max(hits + missed, 1)
        return f1(p, r), p, r


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", text)).strip()


def formulas_and_code(gold: str, html: bytes, answer: str) -> list[int]:
    """Formulas found and wanted, by the sets' scorer and without its mistakes; code lines found with
    the gold's indentation, with the page's, with any, and wanted.

    Formulas are compared without white space, braces and commands that only set the style. The
    scorer takes what is between the dollars of two formulas for one more where the gold is a
    table in HTML; what holds a tag is no formula. Some gold texts have lost the indentation that
    the page's own <pre> has, which is what a reader of the text wants.
    """
    listings = _FENCE.findall(gold)
    wanted = Counter(
        bare
        for one, other in _FORMULA.findall(_FENCE.sub("\n", gold))
        if len(bare := _STYLE.sub("", one or other)) >= 3
    )
    text = _STYLE.sub("", answer)
    found = {formula: min(count, text.count(formula)) for formula, count in wanted.items()}
    real = [formula for formula in wanted if "</" not in formula]
    lines = Counter(
        line.rstrip() for code in listings for line in code.split("\n") if len(line.strip()) >= 4
    )
    exact = Counter(line.rstrip() for line in answer.split("\n"))
    loose = Counter(line.strip() for line in answer.split("\n"))
    kept = sum(min(count, exact[line]) for line, count in lines.items())
    stripped = Counter(line.strip() for line in lines.elements())
    anyhow = sum(min(count, loose[line]) for line, count in stripped.items())
    on_page: dict[str, set[str]] = defaultdict(set)
    for line in listed_lines(html) if LEXBOR else ():
        on_page[_WHITE.sub("", line)].add(line)
    as_listed = 0
    for line, count in lines.items():
        forms = on_page[_WHITE.sub("", line)] or {line}
        as_listed += min(count, sum(exact[form] for form in forms))
    return [
        sum(found.values()), wanted.total(),
        sum(found[formula] for formula in real), sum(wanted[formula] for formula in real),
        kept, as_listed, anyhow, lines.total(),
    ]  # fmt: skip


def listed_lines(html: bytes) -> list[str]:
    """Lines of the listings of a page, read by lexbor, with and without line numbers."""
    from selectolax.lexbor import LexborHTMLParser

    source = re.sub(r"<br\s*/?>", "\n", decode_html(html, None)[0], flags=re.I)
    tree = LexborHTMLParser(source)
    lines = [
        line.rstrip().replace("\u00a0", " ")
        for node in tree.css("pre, .line")
        for line in (node.text(deep=True) or "").split("\n")
        if line.strip()
    ]
    return lines + [_NUMBER.sub("", line) for line in lines if _NUMBER.match(line)]


@contextlib.contextmanager
def sets_in(data: Path) -> Iterator[Path]:
    """The folder of the sets, unpacked for the time being where they lie in an archive."""
    for place in (data, data / "data"):
        if any(place.glob("*/gold.jsonl")):
            yield place
            return
    archive = data if data.is_file() else data / "dev.tar.xz"
    if not archive.exists():
        raise SystemExit(f"{data}: neither sets (<set>/gold.jsonl) nor dev.tar.xz")
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
        with sets_in(Path(folder)) as place:
            yield place


def rows_of(data: Path, name: str, every: int = 1) -> Iterator[tuple[dict[str, Any], bytes]]:
    with (data / name / "gold.jsonl").open(encoding="utf-8") as file:
        for line in itertools.islice(file, 0, None, every):
            row = json.loads(line)
            yield row, (data / name / "html" / f"{row['id']}.html").read_bytes()


def readability(html: bytes) -> str:
    """Text of the summary that readability-lxml makes, a line for each block."""
    import lxml.html
    from readability import Document

    try:
        tree = lxml.html.fromstring(Document(decode_html(html, None)[0]).summary())
    except Exception:  # it raises on pages without a body, and lxml on what it makes of others
        return ""
    for element in tree.iter():
        if element.tag not in _INLINE:
            element.tail = "\n" + (element.tail or "")
    return str(tree.text_content())


_INLINE = frozenset(
    "a abbr b bdi big cite code em font i mark q s small span strong sub sup tt u".split()
)


def extractor(settings: ExtractSettings, engine: str) -> Callable[[bytes], str]:
    """Page to text; "" where a limit refuses the page."""
    if engine == "readability":
        return readability
    chosen = Extractor(settings.model_copy(update={"engine": engine}))

    def call(html: bytes) -> str:
        try:
            return chosen.extract(html).text
        except PageTooLargeError:
            return ""

    return call


@dataclass
class Runner:
    """An engine with its settings; for `curation` on training sets, the models by fold."""

    engine: str
    settings: ExtractSettings
    folds: list[Model]
    learned: frozenset[str]

    def can(self, name: str) -> bool:
        return self.engine != "curation" or name not in self.learned or bool(self.folds)

    def answer(self, name: str, row: dict[str, Any], html: bytes) -> str:
        call = extractor(self.settings, self.engine)
        if self.engine == "curation" and name in self.learned:
            model = self.folds[fold_of(group_of(row), len(self.folds))]
            with using(model):
                return call(html)
        return call(html)


class using:  # noqa: N801  (reads as a statement)
    """Let the engine `curation` judge by another model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __enter__(self) -> None:
        self.shipped = native.load
        native.load = lambda _: self.model  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        native.load = self.shipped


def quality(data: Path, sets: list[str], runners: dict[str, Runner], every: int) -> None:
    table: dict[str, dict[str, Score]] = {engine: {} for engine in runners}
    for name in sets:
        for engine, runner in runners.items():
            if runner.can(name):
                table[engine][name] = Score()
        for row, html in rows_of(data, name, every):
            shown = Shown.of(utf8_html(html, None)[0])
            for engine, runner in runners.items():
                if name in table[engine]:
                    table[engine][name].add(row, html, shown, runner.answer(name, row, html))
        for engine in runners:
            if name in table[engine]:
                fitted = engine == "curation" and name in runners[engine].learned
                _print_score(name, engine, table[engine][name], fitted)
    _print_table(sets, table)


def _print_score(name: str, engine: str, score: Score, fitted: bool) -> None:
    value, p, r = score.figures()
    pages = len(score.recall) or "phrases"
    note = " cross-fitted" if fitted else ""
    print(f"{name:22} {engine:12} F1 {value:.3f} P {p:.3f} R {r:.3f} n {pages}{note}", flush=True)
    for kind, part in sorted(score.kinds.items()):
        value, p, r = part.figures()
        print(f"  {kind:20} {engine:12} F1 {value:.3f} P {p:.3f} R {r:.3f} n {len(part.recall)}")
    if score.faults.pages:
        print(f"{'':22} {engine:12} pages with {score.faults}")
    if name == CODE_SET and score.code[3] and score.code[-1]:
        print(f"{'':22} {engine:12} {code_figures(score.code)}")


def _print_table(sets: list[str], table: dict[str, dict[str, Score]]) -> None:
    """F1 of every engine on every set, and its mean over the sets with text gold."""
    print(f"\n{'F1':22} " + " ".join(f"{engine:>12}" for engine in table))
    for name in sets:
        cells = [
            f"{scores[name].figures()[0]:12.3f}" if name in scores else f"{'-':>12}"
            for scores in table.values()
        ]
        print(f"{name:22} " + " ".join(cells))
    cells = []
    for scores in table.values():
        figures = [
            scores[name].figures()[0] for name in sets if name in scores and name != PHRASE_SET
        ]
        whole = len(figures) == len([name for name in sets if name != PHRASE_SET])
        cells.append(f"{statistics.mean(figures):12.4f}" if figures and whole else f"{'-':>12}")
    print(f"{'macro (text gold)':22} " + " ".join(cells))
    _print_faults(table)


def _print_faults(table: dict[str, dict[str, Score]]) -> None:
    """Pages with each fault, over all sets, and the mean precision and recall of the sets."""
    for engine, scores in table.items():
        faults = Faults()
        for score in scores.values():
            faults += score.faults
        figures = [score.figures() for score in scores.values() if score.recall]
        if figures:
            _, p, r = (statistics.mean(column) for column in zip(*figures, strict=True))
            print(f"{engine:12} P {p:.4f} R {r:.4f}; pages with {faults}")
    print(flush=True)


def code_figures(counts: list[int]) -> str:
    found, wanted, real, formulas, exact, as_listed, anyhow, lines = counts
    on_page = (
        f"{as_listed}/{lines} = {as_listed / lines:.3f}" if LEXBOR else "unknown (no selectolax)"
    )
    return (
        f"formulas {real}/{formulas} = {real / formulas:.3f} (as the sets' scorer counts them "
        f"{found}/{wanted}), code lines with the page's indentation {on_page}, with the gold's "
        f"{exact / lines:.3f}, with any {anyhow / lines:.3f}"
    )


_LEGACY = "<p>Der Zug nach Düsseldorf fährt über Köln, für Gäste heißt das: früh aufstehen.".encode(
    "latin-1"
)


def speed(data: Path, sets: list[str], engines: list[str], per_set: int) -> None:
    """CPU milliseconds per page of every engine and of the bare parse."""
    pages = []
    for name in sets:
        listed = [html for _, html in rows_of(data, name)]
        step = max(1, len(listed) // per_set)
        pages += listed[::step][:per_set]
    calls: dict[str, Callable[[bytes], object]] = {}
    if LEXBOR:
        from selectolax.lexbor import LexborHTMLParser

        calls["lexbor parse"] = lambda html: LexborHTMLParser(decode_html(html, None)[0])
    for engine in engines:
        calls[engine] = extractor(default_settings(), engine)
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():  # imports, tables and compiled code are not what is measured
        for html in [*pages[::per_set], _LEGACY]:
            call(html)
    for html in pages:
        for name, call in calls.items():
            start = time.thread_time()
            call(html)
            spent[name].append((time.thread_time() - start) * 1e3)
    size = sum(map(len, pages)) / len(pages) / 1e3
    print(
        f"{len(pages)} pages, {size:.0f} kB on average; CPU milliseconds, one thread, interleaved"
    )
    slow = statistics.mean(spent.get("trafilatura") or [float("nan")])
    bare = statistics.mean(spent.get("lexbor parse") or [float("nan")])
    for name, times in spent.items():
        mean = statistics.mean(times)
        times = sorted(times)
        print(
            f"{name:14} {1e3 / mean:7.0f} pages/s  mean {mean:7.2f}  median "
            f"{statistics.median(times):7.2f}  p99 {times[int(len(times) * 0.99)]:8.1f}  worst "
            f"{times[-1]:8.1f}  x trafilatura {slow / mean:6.1f}  x bare parse {mean / bare:6.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", type=Path, help="folder with blocks-fold<k>.npz")
    parser.add_argument(
        "--all-sets",
        action="store_true",
        help="score every set by models cross-fitted on all sets (all-sets-fold<k>.npz), which are "
        "for measuring only and never shipped",
    )
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--sets", default=",".join([*TEXT_SETS, PHRASE_SET]))
    parser.add_argument("--every", type=int, default=1, metavar="N", help="score each Nth page")
    parser.add_argument("--speed-pages", type=int, default=16, help="pages per set; 0: no timing")
    parser.add_argument(
        "--forms", action="store_true", help="only the forms of benchmarks/forms.py"
    )
    parser.add_argument("--no-quality", action="store_true", help="only the timing")
    if "--forms" in sys.argv[1:]:  # which needs no data
        forms.report([])
        return
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    sets = options.sets.split(",")
    engines = []
    for engine in options.engines.split(","):
        if importlib.util.find_spec(engine):
            engines.append(engine)
        else:
            print(f"{engine} is not installed")
    training = default_training()
    if options.all_sets:
        training = training.with_all_sets()
    learned = frozenset([*training.sets, PHRASE_SET])
    folds = []
    if options.models:
        names = [model_name(fold, options.all_sets) for fold in range(training.folds)]
        folds = [read_model(options.models / name, name) for name in names]
    if not LEXBOR:
        print(
            "selectolax is not installed: the bare parse is not timed, and code lines are not compared "
            "with the indentation of the page's listings"
        )
    with sets_in(options.data) as data:
        if not options.no_quality:
            settings = default_settings()
            runners = {
                engine: Runner(
                    engine,
                    settings.model_copy(update={"comments": engine == "curation"}),
                    folds,
                    learned,
                )
                for engine in engines
            }
            quality(data, sets, runners, options.every)
        if options.speed_pages:
            timed = [name for name in sets if name != PHRASE_SET]
            speed(data, timed, engines, options.speed_pages)


if __name__ == "__main__":
    main()
