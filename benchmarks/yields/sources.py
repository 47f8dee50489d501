"""Python's standard library and generated TeX as documents of a recipe: what comes out whole."""

from __future__ import annotations

import ast
import platform
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from yields.runs import Fate, fates, order, run
from yields.structure import parsed
from yields.tables import percent, table

FILES, SIZES, SEED = 60, (3_000, 60_000), 4
TEXTS = 30
PYTHON, TEX = "python.parquet", "tex.parquet"
_APART = ("site-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo")
_ENVIRONMENT = re.compile(r"\\(begin|end)\{(\w+\*?)\}")


def library(count: int = FILES, seed: int = SEED) -> dict[str, str]:
    """Return a sample of the running interpreter's standard library: text by file name."""
    root = Path(sysconfig.get_paths()["stdlib"])
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if set(name.parts) & set(_APART):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if SIZES[0] < len(text) < SIZES[1]:
            found[name.as_posix()] = text
    return {name: found[name] for name in random.Random(seed).sample(sorted(found), count)}


def tex(count: int = TEXTS, seed: int = SEED) -> list[str]:
    """Return generated articles in TeX; they share a preamble and the lines of environments."""
    dice = random.Random(seed)
    return [_article(dice, number) for number in range(count)]


_THINGS = "group ring field module lattice graph manifold operator measure sequence".split()
_TRAITS = "finite compact abelian bounded connected smooth closed separable regular cyclic".split()
_CLAIMS = (
    "Every {a} {t} of order {n} has a {b} {u} that is invariant under the action of degree {m}.",
    "Let the {t} be {a} and let {n} of its components be {b}; then the {u} has index {m}.",
    "A {b} {u} embeds into a {a} {t} whenever its dimension is at most {n}, and {m} is best possible.",
    "The number of {a} subsets of a {t} with {n} generators is divisible by {m} if it is {b}.",
)


def _article(dice: random.Random, number: int) -> str:
    def claim() -> str:
        return dice.choice(_CLAIMS).format(
            a=dice.choice(_TRAITS), b=dice.choice(_TRAITS), t=dice.choice(_THINGS),
            u=dice.choice(_THINGS), n=dice.randint(2, 400), m=dice.randint(2, 90),
        )  # fmt: skip

    def sum_of(power: int) -> str:
        return f"\\sum_{{k=1}}^{{{dice.randint(3, 99)}}} k^{{{power}}}"

    lines = ["\\documentclass{article}", "\\usepackage{amsmath}", "\\usepackage{amsthm}",
             "\\newtheorem{theorem}{Theorem}", "\\begin{document}",
             f"\\title{{On {dice.choice(_TRAITS)} {dice.choice(_THINGS)}s, part {number + 1}}}",
             "\\maketitle"]  # fmt: skip
    for section in range(4):
        lines += [f"\\section{{The {dice.choice(_TRAITS)} case {section + 1}}}", claim(), claim()]
        lines += ["\\begin{theorem}", claim(), "\\begin{equation}"]
        lines += [f"{sum_of(section + 1)} \\leq \\frac{{{dice.randint(2, 999)}}}{{n^{{2}}}}"]
        lines += ["\\end{equation}", "\\end{theorem}", "\\begin{proof}", claim(), "Hence $n = 1$."]
        lines += ["\\begin{align*}", f"x_{{{dice.randint(1, 99)}}} &= {sum_of(2)} \\\\"]
        lines += [f"&= {dice.randint(2, 999)}", "\\end{align*}", "This completes the proof."]
        lines += ["\\end{proof}", ""]
    return "\n".join([*lines, "\\end{document}"])


def write(folder: Path) -> list[Path]:
    """Write both kinds as Parquet that `curate run` reads; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {PYTHON: list(library().values()), TEX: tex()}
    for name, members in texts.items():
        kind = name.split(".")[0]
        urls = [f"https://{kind}{i}.example/" for i in range(len(members))]
        pq.write_table(pa.table({"url": urls, "text": members}), folder / name)
    return [folder / name for name in texts]


def measure(recipe: str, folder: Path, settings: Sequence[str]) -> None:
    """Run the recipe on both kinds and print what is whole at the end."""
    output = folder / "run"
    run(recipe, write(folder), output, settings)
    found = fates(output)
    code = {row: fate for (name, row), fate in found.items() if name == PYTHON}
    articles = {row: fate for (name, row), fate in found.items() if name == TEX}
    _code(list(library().values()), code)
    _tex(tex(), articles, output)


def _code(sources: list[str], found: dict[int, Fate]) -> None:
    kept = {row: fate.after for row, fate in found.items() if fate.after is not None}
    trees = {row: parsed(text) for row, text in kept.items()}
    equal = sum(
        tree is not None and ast.dump(tree) == ast.dump(ast.parse(sources[row]))
        for row, tree in trees.items()
    )
    same = sum(text.strip() == sources[row].strip() for row, text in kept.items())
    total = len(sources)
    rows = [
        ("kept", len(kept), percent(len(kept), total)),
        ("parse", sum(tree is not None for tree in trees.values()),
         percent(sum(tree is not None for tree in trees.values()), total)),
        ("same syntax tree", equal, percent(equal, total)),
        ("same text", same, percent(same, total)),
    ]  # fmt: skip
    version = platform.python_version()
    table(f"{total} files of Python {version}'s library", ("files", "count", "share"), rows)
    _reasons(found)


def _tex(texts: list[str], found: dict[int, Fate], output: Path) -> None:
    kept = {row: fate.after for row, fate in found.items() if fate.after is not None}
    before = Counter(line for row in kept for line in texts[row].split("\n") if line.strip())
    after = Counter(line for text in kept.values() for line in text.split("\n") if line.strip())
    lost = before - after
    paired = sum(_balanced(text) for text in kept.values())
    same = sum(text.strip() == texts[row].strip() for row, text in kept.items())
    rows = [
        ("texts kept", len(kept), percent(len(kept), len(texts))),
        ("texts unchanged", same, percent(same, len(texts))),
        ("texts whose environments are all closed", paired, percent(paired, len(texts))),
        ("lines lost in kept texts", lost.total(), percent(lost.total(), before.total())),
        *(
            (f"lines cut by {stage}, all texts", count, "")
            for stage, count in _cuts(output, TEX).items()
        ),
    ]
    table(f"{len(texts)} generated articles in TeX", ("TeX", "count", "share"), rows)
    _reasons(found)
    if lost:
        shown = ", ".join(f"`{line}` {n}" for line, n in lost.most_common(5))
        print(f"\nMost frequent lost lines: {shown}")


def _cuts(output: Path, name: str) -> dict[str, int]:
    """Return the edits of each stage in the documents of one input file."""
    stages = order(output)
    files = sorted((output / stages[0] / "documents").glob("*.parquet"))
    ids = {
        row["id"]
        for file in files
        for row in pq.read_table(file, columns=["id", "source"]).to_pylist()
        if Path(row["source"]["file"]).name == name
    }
    counts = {}
    for stage in stages:
        edits = sorted((output / stage / "edits").glob("*.parquet"))
        if edits:
            cut = [i for f in edits for i in pq.read_table(f, columns=["id"])["id"].to_pylist()]
            counts[stage] = sum(i in ids for i in cut)
    return counts


def _balanced(text: str) -> bool:
    opened: list[str] = []
    for kind, name in _ENVIRONMENT.findall(text):
        if kind == "begin":
            opened.append(name)
        elif not opened or opened.pop() != name:
            return False
    return not opened


def _reasons(found: dict[int, Fate]) -> None:
    reasons = Counter(fate.reason for fate in found.values() if fate.after is None)
    if reasons:
        print("\nRemoved: " + ", ".join(f"{reason} {n}" for reason, n in reasons.most_common()))
