"""Tables of what was kept and removed, by grade, rule, language, page type and topic."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from yields.pages import Label
from yields.runs import Fate

#: A reader would keep these; grade 2 is arguable, grades below are rubbish.
GOOD, ARGUABLE = 3, 2
Judged = list[tuple[Label, Fate]]


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table under its title."""
    print(f"\n{title}\n")
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")


def percent(part: float, whole: float) -> str:
    """Return a share in percent with one decimal; a dash where there is nothing to share."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def by_grade(judged: Judged) -> None:
    """Print what is removed of each grade, by documents and by characters."""
    groups: list[tuple[str, Callable[[int], bool]]] = [
        ("good: 3, 4, 5", lambda grade: grade >= GOOD),
        ("of these 4, 5", lambda grade: grade > GOOD),
        ("arguable: 2", lambda grade: grade == ARGUABLE),
        ("rubbish: 0, 1", lambda grade: grade < ARGUABLE),
        *((f"grade {n}", lambda grade, n=n: grade == n) for n in range(5, -1, -1)),  # type: ignore[misc]
    ]
    rows = []
    for name, belongs in groups:
        members = [fate for label, fate in judged if belongs(label.grade)]
        removed = [fate for fate in members if fate.after is None]
        characters = sum(len(fate.before) for fate in members)
        lost = sum(len(fate.before) for fate in removed)
        cut = sum(_cut(fate) for fate in members)
        rows.append(
            (
                name,
                len(members),
                len(removed),
                percent(len(removed), len(members)),
                percent(len(members) - len(removed), len(members)),
                percent(lost, characters),
                percent(cut, characters),
                percent(lost + cut, characters),
            )
        )
    header = (
        "grade",
        "documents",
        "removed",
        "removed %",
        "kept %",
        "characters in removed documents",
        "cut from kept documents",
        "characters lost",
    )
    table("Removed by grade, duplicates left out", header, rows)
    gone = Counter(_class(label) for label, fate in judged if fate.after is None)
    print(
        f"\nOf {gone.total()} removed documents {percent(gone['good'], gone.total())} are good, "
        f"{percent(gone['arguable'], gone.total())} arguable, "
        f"{percent(gone['rubbish'], gone.total())} rubbish."
    )


def by_rule(judged: Judged) -> None:
    """Print for each stage and rule how many good, arguable and rubbish documents it removes."""
    stages: dict[str, Counter[str]] = defaultdict(Counter)
    rules: dict[str, Counter[str]] = defaultdict(Counter)
    for label, fate in judged:
        if fate.after is None:
            stages[f"**{fate.stage}**"][_class(label)] += 1
            rules[fate.reason][_class(label)] += 1
    rows = [
        (name, counts.total(), counts["good"], counts["arguable"], counts["rubbish"],
         percent(counts["good"], counts.total()))
        for group in (stages, rules)
        for name, counts in sorted(group.items(), key=lambda item: (-item[1].total(), item[0]))
    ]  # fmt: skip
    header = ("stage, rule", "removed", "good", "arguable", "rubbish", "good of removed")
    table("Removed by stage and rule", header, rows)


def by_group(judged: Judged, name: str, group: Callable[[Label], str], least: int) -> None:
    """Print what is lost of good and kept of rubbish documents, by a label's group.

    Groups with fewer than `least` documents share the last line.
    """
    sizes = Counter(group(label) for label, _ in judged)
    members: dict[str, Judged] = defaultdict(list)
    for label, fate in judged:
        key = group(label)
        members[key if sizes[key] >= least else "others"].append((label, fate))
    rows = []
    for key, found in sorted(
        members.items(), key=lambda item: (item[0] == "others", -len(item[1]))
    ):
        good = [fate for label, fate in found if _class(label) == "good"]
        poor = [fate for label, fate in found if _class(label) == "rubbish"]
        lost = sum(fate.after is None for fate in good)
        characters = sum(len(fate.before) for fate in good)
        gone = sum(len(fate.before) if fate.after is None else _cut(fate) for fate in good)
        kept = sum(fate.after is not None for fate in poor)
        rows.append(
            (
                key or "unknown",
                len(found),
                len(good),
                lost,
                percent(lost, len(good)),
                percent(gone, characters),
                len(poor),
                percent(kept, len(poor)),
            )
        )
    header = (
        name,
        "documents",
        "good",
        "good removed",
        "good removed %",
        "good characters lost",
        "rubbish",
        "rubbish kept",
    )
    table(f"By {name}", header, rows)


def compare(tools: dict[str, Judged]) -> None:
    """Print the main figures of several tools on the same pages, one column for each."""
    columns = []
    for judged in tools.values():
        cells: list[str] = []
        for wanted in (lambda g: g >= GOOD, lambda g: g > GOOD, lambda g: g == ARGUABLE,
                       lambda g: g < ARGUABLE):  # fmt: skip
            found = [fate for label, fate in judged if wanted(label.grade)]
            kept = [fate for fate in found if fate.after is not None]
            cells.append(f"{percent(len(kept), len(found))} of {len(found)}")
        gone = Counter(_class(label) for label, fate in judged if fate.after is None)
        left = Counter(_class(label) for label, fate in judged if fate.after is not None)
        text = sum(len(fate.after or "") for label, fate in judged if label.grade >= GOOD)
        cells += [
            f"{percent(gone['good'], gone.total())} of {gone.total()}",
            f"{percent(left['rubbish'], left.total())} of {left.total()}",
            f"{text / 1e6:.2f} M",
        ]
        columns.append(cells)
    names = (
        "good documents kept (grades 3 to 5)",
        "of these grades 4 and 5",
        "arguable kept (grade 2)",
        "rubbish kept (grades 0 and 1)",
        "good among removed",
        "rubbish among kept",
        "characters of good text kept",
    )
    rows = [(name, *cells) for name, cells in zip(names, zip(*columns, strict=True), strict=True)]
    table("The same pages", ("", *tools), rows)


def _class(label: Label) -> str:
    if label.grade >= GOOD:
        return "good"
    return "arguable" if label.grade == ARGUABLE else "rubbish"


def _cut(fate: Fate) -> int:
    """Return the characters that a kept document lost."""
    return 0 if fate.after is None else max(0, len(fate.before) - len(fate.after))
