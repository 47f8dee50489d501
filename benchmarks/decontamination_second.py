"""A second planted set, by another generator: other ways to plant, other look-alikes, other items.

Items are the sets in FOLDER/evals in other parts than `decontamination.py` takes, and any others:
`sets` has dev/*.jsonl and report/*.jsonl with question, choices, answer and passage, each file a set
(`exams-hr.jsonl`: in Croatian). Of each half, every second item is indexed; the others are
look-alikes. Rules are chosen on `dev`; `report` is for figures.
"""

from __future__ import annotations

import ast
import difflib
import gzip
import html
import json
import lzma
import random
import re
import sysconfig
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import regex

from curation.decontaminate.items import Item, read_items

HALVES = ("dev", "report")
Sets = dict[str, list[Item]]
Document = tuple[str, str, Item | None]  # kind, text, the item that it holds

_LANGUAGES = {
    "dev": ("en", "zh", "de", "ar", "ro", "th", "hi"),
    "report": ("en", "es", "el", "ru", "tr", "vi", "zh", "hi"),
}
#: Letters that are about a word, in scripts that set none apart.
_DENSE = {"zh": 2, "th": 4}
#: Tasks of which an item says less than the template around it.
_BARE = (
    "bbh-boolean_expressions",
    "bbh-dyck_languages",
    "bbh-multistep_arithmetic_two",
    "definitions",
)
_CODE = ("humaneval", "cruxeval", "codeio")
_LICENCES = [p for p in sorted(Path("/usr/share/common-licenses").glob("*")) if p.is_file()] or [
    Path(__file__).parents[1] / "LICENSE"
]
_SWAPPED = {
    "+": "-",
    "-": "+",
    "*": "+",
    "<": ">=",
    ">": "<=",
    "<=": ">",
    ">=": "<",
    "==": "!=",
    "!=": "==",
    "and": "or",
    "or": "and",
    "min": "max",
    "max": "min",
    "True": "False",
    "False": "True",
    "append": "insert",
    "lower": "upper",
    "upper": "lower",
}
_SWAPS = r"==|!=|<=|>=|->|>>>|[+\-*<>]|\b(?:and|or|min|max|True|False|append|lower|upper)\b|\b\d+\b"

#: Functions that many have written.
_TRIVIAL = [
    "def f(a, b): return a + b",
    "def f(x):\n    return x",
    "def f(a, b):\n    return a * b",
    "def f(x, y):\n    return x - y",
    "def add(a, b):\n    return a + b",
    "def f(nums):\n    return sum(nums)",
    "def f(s):\n    return s.upper()",
    "def f(text):\n    return text.lower()",
    "def f(lst):\n    for i in range(len(lst)):\n        print(lst[i])",
    "def f(n):\n    if n == 0:\n        return 1\n    return n * f(n - 1)",
    "def f(array):\n    return array[::-1]",
    "def f(d):\n    return d.items()",
    "def f(text):\n    return text.split(',')",
    "def f(a):\n    a.sort()\n    return a",
    "def f(nums):\n    nums.reverse()\n    return nums",
    "def f(text, char):\n    return text.count(char)",
]
#: What pages and tests say everywhere.
_STOCK = [
    "Which of the following is true? None of the above. All of the above.",
    "Choose the correct answer. Select all that apply.",
    "Which of the following statements is correct?\nA. Only I\nB. Only II\nC. Both I and II\nD. Neither I nor II",
    "If you have any questions, please do not hesitate to contact us.",
    "What is the capital of the country? How many people live there? Who was the first president?",
    "Welche der folgenden Aussagen ist richtig? Kreuzen Sie die richtige Antwort an.",
    "¿Cuál de las siguientes afirmaciones es correcta? Elige la respuesta correcta.",
    "Quelle est la bonne réponse ? Toutes les réponses sont correctes.",
    "下列说法正确的是。以上都不是。请选择正确答案。",
    "Какое из следующих утверждений верно? Выберите правильный ответ.",
    "Aşağıdakilerden hangisi doğrudur? Doğru seçeneği işaretleyiniz.",
    "Phát biểu nào sau đây là đúng? Chọn đáp án đúng.",
    "Read the passage and answer the questions below. Write your answer in the space provided.",
    "Given an integer n, return the n-th Fibonacci number. Given a string, return it reversed.",
    "Write a function that takes a list of integers and returns the sum of the even ones.",
    "Alice and Bob are playing a game. At the start of the game each of them has a ball.",
    "Are you sure you want to delete this file? This action cannot be undone.",
    "What would you like to do next? Do you want to continue?",
]
_PROVERBS = "A bird in the hand is worth two in the bush.|All that glitters is not gold.|Wer andern eine Grube gräbt, fällt selbst hinein.|Morgenstund hat Gold im Mund.|No por mucho madrugar amanece más temprano.|Chi dorme non piglia pesci.|Pierre qui roule n'amasse pas mousse.|Тише едешь, дальше будешь.|千里之行，始于足下。|Damlaya damlaya göl olur.|Có công mài sắt, có ngày nên kim.|अब पछताए होत क्या जब चिड़िया चुग गई खेत।|A stitch in time saves nine.|The early bird catches the worm.|Nie chwal dnia przed zachodem słońca.|Actions speak louder than words.|You can lead a horse to water but you can't make it drink.".split(
    "|"
)
#: A question, its choices (the first is right), and a textbook's sentence that says nearly the same.
_DEFINITIONS = """
What is the process by which water vapour turns into liquid water called?|condensation;evaporation;sublimation;melting|Condensation is the process by which water vapour turns into liquid water, as on a cold window.
Which organelle is responsible for producing most of the energy in a eukaryotic cell?|the mitochondrion;the ribosome;the nucleus;the Golgi apparatus|The mitochondrion is the organelle responsible for producing most of the energy in a eukaryotic cell.
What is the term for the difference between the highest and the lowest value in a data set?|range;mean;mode;variance|The range is the difference between the highest and the lowest value in a data set.
Which type of rock is formed when magma cools and solidifies beneath the surface of the Earth?|intrusive igneous rock;sedimentary rock;shale;marble|Intrusive igneous rock is formed when magma cools and solidifies beneath the surface of the Earth.
What is the name of the force that opposes the relative motion of two surfaces in contact?|friction;gravity;tension;buoyancy|Friction is the force that opposes the relative motion of two surfaces in contact.
Which hormone regulates the amount of glucose in the blood by promoting its uptake into cells?|insulin;adrenaline;thyroxine;cortisol|Insulin is a hormone that regulates the amount of glucose in the blood by promoting its uptake into cells.
What do economists call a market structure in which a single firm supplies the whole market?|monopoly;oligopoly;duopoly;perfect competition|A monopoly is a market structure in which a single firm supplies the whole market.
Which data structure stores elements so that the last one added is the first one removed?|stack;queue;heap;linked list|A stack is a data structure that stores elements so that the last one added is the first one removed.
What is the angle between the incident ray and the normal at the point of incidence called?|angle of incidence;angle of refraction;critical angle;angle of elevation|The angle of incidence is the angle between the incident ray and the normal at the point of incidence.
Which layer of the atmosphere contains most of the ozone that absorbs ultraviolet radiation from the sun?|the stratosphere;the troposphere;the mesosphere;the exosphere|The stratosphere is the layer of the atmosphere that contains most of the ozone that absorbs ultraviolet radiation from the sun.
What is the tendency of an object to resist any change in its state of motion?|inertia;momentum;acceleration;impulse|Inertia is the tendency of an object to resist any change in its state of motion.
Which philosophical doctrine holds that the morality of an action depends only on its consequences?|consequentialism;deontology;nihilism;stoicism|Consequentialism is the philosophical doctrine which holds that the morality of an action depends only on its consequences.
What is the legal principle by which courts follow the decisions of earlier cases with similar facts?|stare decisis;habeas corpus;res judicata;mens rea|Stare decisis is the legal principle by which courts follow the decisions of earlier cases with similar facts.
Which blood vessels carry oxygenated blood away from the heart to the tissues of the body?|arteries;veins;capillaries;venules|Arteries are the blood vessels that carry oxygenated blood away from the heart to the tissues of the body.
What is the movement of water molecules across a semipermeable membrane from low to high solute concentration?|osmosis;diffusion;active transport;filtration|Osmosis is the movement of water molecules across a semipermeable membrane from low to high solute concentration.
Which network protocol translates human-readable domain names into numerical addresses of machines?|DNS;DHCP;FTP;SMTP|DNS is the network protocol that translates human-readable domain names into numerical addresses of machines.
What is a sudden and permanent change in the nucleotide sequence of the genome of an organism?|a mutation;an allele;a codon;a plasmid|A mutation is a sudden and permanent change in the nucleotide sequence of the genome of an organism.
Which figure of speech compares two unlike things by means of the words like or as?|simile;metaphor;hyperbole;irony|A simile is a figure of speech that compares two unlike things by means of the words like or as.
What is the ratio of the output work of a machine to the work put into it called?|efficiency;power;torque;mechanical advantage|The efficiency of a machine is the ratio of its output work to the work put into it.
Which economic indicator measures the total value of goods and services produced within a country in a year?|gross domestic product;consumer price index;balance of trade;money supply|Gross domestic product measures the total value of goods and services produced within a country in a year.
What is the smallest unit of an element that retains the chemical properties of that element?|an atom;a molecule;an ion;an isotope|An atom is the smallest unit of an element that retains the chemical properties of that element.
Which cognitive bias leads people to favour information that confirms what they already believe?|confirmation bias;anchoring;hindsight bias;halo effect|Confirmation bias leads people to favour information that confirms what they already believe.
What is the point in the orbit of a planet at which it is farthest from the sun?|aphelion;perihelion;apogee;equinox|Aphelion is the point in the orbit of a planet at which it is farthest from the sun.
Which sorting algorithm repeatedly divides the list into halves, sorts them and combines the results?|merge sort;bubble sort;selection sort;radix sort|Merge sort is a sorting algorithm that repeatedly divides the list into halves, sorts them and combines the results.
What is the practice of growing different crops in succession on the same piece of land?|crop rotation;irrigation;terracing;fallowing|Crop rotation is the practice of growing different crops in succession on the same piece of land.
Which branch of medicine deals with the diagnosis and treatment of disorders of the nervous system?|neurology;nephrology;oncology;cardiology|Neurology is the branch of medicine that deals with the diagnosis and treatment of disorders of the nervous system.
What is the distance between two successive crests of a transverse wave known as?|wavelength;amplitude;frequency;period|The wavelength is the distance between two successive crests of a transverse wave.
Which theorem states that the square of the hypotenuse equals the sum of the squares of the other two sides?|the Pythagorean theorem;Fermat's last theorem;the binomial theorem;Euler's theorem|The Pythagorean theorem states that the square of the hypotenuse equals the sum of the squares of the other two sides.
What is the gradual wearing away of rock and soil by wind, water or ice called?|erosion;deposition;subduction;weathering|Erosion is the gradual wearing away of rock and soil by wind, water or ice.
Which accounting document shows the assets, liabilities and equity of a company at a given date?|the balance sheet;the income statement;the ledger;the invoice|The balance sheet is an accounting document that shows the assets, liabilities and equity of a company at a given date.
What is the part of the plant cell that contains chlorophyll and carries out photosynthesis?|the chloroplast;the vacuole;the cell wall;the cytoplasm|The chloroplast is the part of the plant cell that contains chlorophyll and carries out photosynthesis.
Which kind of memory loses its contents as soon as the power supply is switched off?|volatile memory;flash memory;read-only memory;optical storage|Volatile memory is the kind of memory that loses its contents as soon as the power supply is switched off.
What is the study of the distribution and determinants of disease in human populations?|epidemiology;pathology;immunology;toxicology|Epidemiology is the study of the distribution and determinants of disease in human populations.
Which gas makes up about seventy-eight percent of the air in the atmosphere of the Earth?|nitrogen;oxygen;argon;carbon dioxide|Nitrogen is a gas that makes up about seventy-eight percent of the air in the atmosphere of the Earth.
What is the minimum amount of energy that reacting molecules must have for a reaction to occur?|activation energy;binding energy;enthalpy;entropy|The activation energy is the minimum amount of energy that reacting molecules must have for a reaction to occur.
Which document guarantees the freedom of speech, religion and the press to citizens of the United States?|the First Amendment;the Magna Carta;the Mayflower Compact;the Monroe Doctrine|The First Amendment guarantees the freedom of speech, religion and the press to citizens of the United States.
What is a word that has the same or nearly the same meaning as another word called?|a synonym;an antonym;a homonym;an acronym|A synonym is a word that has the same or nearly the same meaning as another word.
Which muscle separates the chest cavity from the abdomen and contracts when we breathe in?|the diaphragm;the biceps;the deltoid;the trapezius|The diaphragm is the muscle which separates the chest cavity from the abdomen and contracts when we breathe in.
What is the value that divides an ordered set of observations into two equal halves?|the median;the mode;the mean;the quartile|The median is the value that divides an ordered set of observations into two equal halves.
Which type of bond forms when two atoms share one or more pairs of electrons?|a covalent bond;an ionic bond;a hydrogen bond;a metallic bond|A covalent bond is the type of bond that forms when two atoms share one or more pairs of electrons.
"""


def load(data: Path, half: str, sets: Path | None = None) -> Sets:
    """Return the sets of a half by name."""
    found: Sets = defaultdict(list)
    tasks = sorted({row["task"] for row in _rows(data, "bbh")})
    tasks = tasks[1::2] if half == "dev" else tasks[::2]
    for row in _rows(data, "bbh"):
        if row["task"] in tasks:
            found[f"bbh-{row['task']}"].append(_item(f"bbh-{row['task']}", row))
    for row in _rows(data, "xquad"):
        # Paragraphs differ between the halves, in all languages.
        paragraph = int(row["id"].split("/")[1][:8], 16) % 2
        if row["lang"] in _LANGUAGES[half] and paragraph == HALVES.index(half):
            found[f"xquad-{row['lang']}"].append(_item(f"xquad-{row['lang']}", row))
    for row in list(_rows(data, "cruxeval"))[HALVES.index(half) :: 2]:
        item = _item("cruxeval", row)
        found["cruxeval"].append(item._replace(question=f"{item.question}\n{row['input']}"))
    for name in ("svamp", "humaneval") if half == "dev" else ():
        found[name] += [_item(name, row) for row in _rows(data, name)]
    for path in sorted((sets / half).glob("*.jsonl")) if sets else ():
        found[path.stem] += read_items(path.stem, [str(path)])
    return dict(found)


def _rows(data: Path, name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(data / f"evals/{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def _item(name: str, row: dict[str, Any]) -> Item:
    answer = row.get("answer") or ""
    if isinstance(answer, list):
        answer = answer[0]
    return Item(name, row["id"], row["question"], (), str(answer), row.get("context") or "")


def language(item: Item) -> str:
    """Return the language in a set's name; others are English."""
    name = item.set.rpartition("-")[2]
    return name if len(name) == 2 and "-" in item.set else "en"


def units(text: str, lang: str) -> list[str]:
    """Return words, or groups of letters that are about one."""
    if lang in _DENSE:
        return regex.findall(rf"(?:\S\p{{M}}*){{1,{_DENSE[lang]}}}", text)
    return text.split()


def glued(parts: Sequence[str], lang: str) -> str:
    return ("" if lang in _DENSE else " ").join(parts)


def _filler(data: Path, half: str) -> dict[str, list[str]]:
    """Return other texts by language, and code."""
    k = HALVES.index(half)
    found: dict[str, list[str]] = defaultdict(list)
    with lzma.open(data / "multilingual/train.jsonl.xz", "rt", encoding="utf-8") as file:
        for n, row in enumerate(map(json.loads, file)):
            if n % 2 == k and len(found[row["lang"]]) < 800 and len(row["text"]) > 200:
                found[row["lang"]].append(row["text"])
    with gzip.open(data / "quality/dev.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [row["text"] for row in map(json.loads, file)]
    found["en"] = [text for text in texts if len(text.split()) > 150][k::2]
    sources = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[k::2]
    code = [path.read_text("utf-8", "replace") for path in sources]
    found["code"] = [text for text in code if 2000 < len(text) < 40000]
    return {lang: texts for lang, texts in found.items() if texts}


class Generator:
    """Plants items of one half."""

    def __init__(self, data: Path, half: str, seed: int) -> None:
        self.random = random.Random(f"{half}{seed}")
        self.filler = _filler(data, half)
        self.vocabulary = {
            lang: [w for text in texts[:60] for w in units(text, lang) if w.isalpha()]
            for lang, texts in self.filler.items()
        }

    def stuff(self, least: int, lang: str) -> str:
        lang = lang if lang in self.filler else "en"
        parts: list[str] = []
        count = 0
        while count < least:
            text = self.random.choice(self.filler[lang])
            some = units(text, lang) if lang in _DENSE else text.split(" ")
            at = self.random.randrange(max(1, len(some) - least))
            some = some[at : at + least - count + 6]
            parts.append(glued(some, lang))
            count += len(some)
        return self.random.choice(["\n", " "]).join(parts)

    def document(self, text: str, lang: str, times: float = 2) -> str:
        size = max(40, int(len(units(text, lang)) * times / 2))
        between = self.random.choice(["\n\n", "\n", "\n\n"])
        return between.join([self.stuff(size, lang), text, self.stuff(size, lang)])

    def word(self, lang: str) -> str:
        return self.random.choice(self.vocabulary.get(lang) or self.vocabulary["en"])

    def edited(self, text: str, edits: int, lang: str) -> str:
        parts = units(text, lang)
        for first in range(0, len(parts), 20):
            block = range(first, min(first + 20, len(parts)))
            whole = len(block) >= 20 or self.random.random() < len(block) / 20
            for i in self.random.sample(block, min(edits if whole else edits - 1, len(block))):
                word = self.word(lang)
                parts[i] = self.random.choice([word, "", glued([parts[i], word], lang)])
        return glued([part for part in parts if part], lang)

    def substituted(self, item: Item) -> str:
        """One word replaced; without choices or answer only where there are some to leave out."""
        lang = language(item)
        parts = units(item.question, lang)
        parts[self.random.randrange(len(parts))] = self.word(lang)
        text = glued(parts, lang)
        if self.random.random() < 0.5 and not item.choices:
            return text
        if item.choices:
            text += "\n" + self.listed(item.choices)
        if self.random.random() < 0.5 or not item.choices:
            text += "\n" + item.answer
        return text

    def listed(self, choices: Sequence[str]) -> str:
        style = self.random.choice(["{L}. ", "({L}) ", "{L}) ", "({l}) ", "- ", "{n}. "])
        return "\n".join(
            style.format(L="ABCDEFGH"[i], l="abcdefgh"[i], n=i + 1) + choice
            for i, choice in enumerate(choices[:8])
        )

    def full(self, item: Item) -> str:
        text = item.question
        if item.choices:
            text += "\n" + self.listed(item.choices)
        if item.answer:
            text += self.random.choice(["\nAnswer: ", "\n", "\nA: "]) + item.answer
        return text

    def reordered(self, item: Item) -> str:
        choices = list(item.choices)
        while len({*choices}) > 1 and tuple(choices) == item.choices:
            self.random.shuffle(choices)
        return f"{item.question}\n{self.listed(choices)}"

    def wrapped(self, text: str, lang: str) -> str:
        parts = units(text, lang)
        return "\n".join(glued(parts[i : i + 8], lang) for i in range(0, len(parts), 8))

    def restyled(self, text: str) -> str:
        def mark(match: re.Match[str]) -> str:
            return self.random.choice([match.group(), "", " –", ";"])

        text = re.sub(r"[.,;:?!](?=\s|$)", mark, text).replace('"', "”").replace("'", "’")
        return self.random.choice([str.upper, str.lower, str.title])(text)

    def split(self, text: str, lang: str) -> str:
        parts = units(text, lang)
        pieces = self.random.choice([2, 2, 3] if len(parts) < 45 else [2, 3, 4])
        if len(parts) > pieces * 5 + 10:
            cuts = sorted(self.random.sample(range(5, len(parts) - 4), pieces - 1))
        else:
            cuts = [len(parts) * k // pieces for k in range(1, pieces)]
        found = [
            glued(parts[a:b], lang) for a, b in zip([0, *cuts], [*cuts, len(parts)], strict=True)
        ]
        whole = found[0]
        for piece in found[1:]:
            between = ""
            if self.random.random() < 0.6:
                some = self.stuff(self.random.choice([8, 15, 30]), lang)
                between = some.replace("\n", " ") + "\n\n"
            whole += f"\n\n{between}{piece}"
        return whole

    def marked_up(self, text: str) -> str:
        kind = self.random.randrange(3)
        if kind == 0:
            inner = html.escape(text).replace("\n", "</p>\n<p>")
            return f'<div class="q"><p>{inner}</p></div>'
        if kind == 1:
            return "**" + text.replace("\n", "**\n\n> ")
        lines = enumerate(text.split("\n"))
        return "\n".join(f"* _{line}_" if i % 2 else f"### {line}" for i, line in lines)

    def reformatted(self, text: str) -> str:
        lines = text.strip("\n").split("\n")
        kind = self.random.randrange(4)
        if kind == 0:
            tabs = [re.sub("^ +", lambda m: "\t" * (len(m.group()) // 4) or " ", x) for x in lines]
            return "\n".join(tabs)
        if kind == 1:
            return "class Solution:\n" + "\n".join("    " + line for line in lines)
        if kind == 2:
            return "\n".join(f"{i + 1:3d}  {line}" for i, line in enumerate(lines))
        if '"""' not in text:
            lines = [
                f"{line}  # {self.word('en')} {self.word('en')}"
                if line.strip() and self.random.random() < 0.15
                else line
                for line in lines
            ]
        return "```python\n" + "\n".join(lines) + "\n```"

    def mutated(self, text: str) -> str | None:
        """Another function: operators, constants or a condition changed. None: nothing to change."""
        found = [m for m in re.finditer(_SWAPS, text) if m.group() not in ("->", ">>>")]
        if not found:
            return None
        chosen = self.random.sample(found, min(len(found), self.random.choice([1, 2, 2, 3])))
        other = text
        for match in sorted(chosen, key=lambda m: -m.start()):
            old = match.group()
            new = _SWAPPED.get(old) or str(int(old) + self.random.choice([1, 2, 7]))
            other = other[: match.start()] + new + other[match.end() :]
        # A list cut short by what is planted may not parse: only whole functions tell.
        try:
            if ast.dump(ast.parse(other)) == ast.dump(ast.parse(text)):
                return None
        except SyntaxError:
            pass
        return other if other != text else None


def plant(
    data: Path, half: str, each: int, seed: int, sets: Path | None = None
) -> tuple[list[Item], list[Document]]:
    """Return the items to index, and documents with and without such items."""
    own = Generator(data, half, seed)
    rng = own.random
    every = load(data, half, sets)
    indexed = {name: items[::2] for name, items in every.items()}
    others = {name: items[1::2] for name, items in every.items()}
    definitions = [line.split("|") for line in _DEFINITIONS.strip().splitlines()]
    definitions = definitions[HALVES.index(half) :: 2]
    indexed["definitions"] = [
        Item("definitions", str(i), asks, tuple(c.split(";")) if i % 2 else (), c.partition(";")[0])
        for i, (asks, c, _) in enumerate(definitions)
    ]

    def size(item: Item) -> int:
        return len(units(item.question, language(item)))

    def full_size(item: Item) -> int:
        return len(units(" ".join([item.question, *item.choices]), language(item)))

    def is_code(item: Item) -> bool:
        return item.set in _CODE

    def picked(wanted: Callable[[Item], bool], count: int = each) -> list[Item]:
        usable = {
            name: [item for item in items if wanted(item)]
            for name, items in sorted(indexed.items())
            if name not in _BARE
        }
        names = [name for name, items in usable.items() if items]
        return [rng.choice(usable[rng.choice(names)]) for _ in range(count)] if names else []

    def asked(item: Item) -> str:
        return item.question if size(item) >= 20 else own.full(item)

    documents: list[Document] = []

    def put(
        kind: str, wanted: Callable[[Item], bool], make: Callable[[Item], str], times: float = 2
    ) -> None:
        for item in picked(wanted):
            lang = "code" if is_code(item) and rng.random() < 0.6 else language(item)
            documents.append((kind, own.document(make(item), lang, times), item))

    def long(item: Item) -> bool:
        return size(item) >= 20

    def enough(item: Item) -> bool:
        return full_size(item) >= 9

    def short(item: Item) -> bool:
        return 8 <= size(item) < 20

    put("whole item", lambda i: full_size(i) >= 8, own.full)
    put("question alone", lambda i: size(i) >= 9, lambda i: i.question)
    put("1 substitution, short", lambda i: short(i) and not is_code(i), own.substituted)
    put("1 edit in 20", long, lambda i: own.edited(i.question, 1, language(i)))
    put("2 edits in 20", long, lambda i: own.edited(i.question, 2, language(i)))
    put("wrapped", enough, lambda i: own.wrapped(asked(i), language(i)))
    put(
        "case and punctuation",
        lambda i: enough(i) and not is_code(i),
        lambda i: own.restyled(asked(i)),
    )
    put("20 times filler", enough, asked, 20)
    put("split", long, lambda i: own.split(i.question, language(i)))
    put(
        "split, short or with choices",
        lambda i: bool(i.choices) and full_size(i) >= 24,
        lambda i: own.split("\n".join([i.question, *i.choices]), language(i)),
    )
    put("choices reordered", lambda i: bool(i.choices) and full_size(i) >= 12, own.reordered)
    put("markup", enough, lambda i: own.marked_up(asked(i)))
    put("under 20 words", short, own.full)
    put(
        "code, reformatted",
        lambda i: is_code(i) and i.question.count("\n") >= 3,
        lambda i: own.reformatted(i.question),
    )
    languages = {language(item) for items in indexed.values() for item in items}
    for lang in sorted(languages - {"en"}):
        chosen = picked(lambda i, lang=lang: language(i) == lang and enough(i), each // 2)  # type: ignore[misc]
        for n, item in enumerate(chosen):
            text = asked(item)
            ways: list[Callable[[str], str]] = [
                str,
                lambda t, i=item, lang=lang: own.edited(t, 1, lang) if long(i) else t,  # type: ignore[misc]
                lambda t, lang=lang: own.wrapped(t, lang),  # type: ignore[misc]
                own.restyled,
                own.marked_up,
            ]
            documents.append((f"language {lang}", own.document(ways[n % 5](text), lang), item))
    pool = [item for items in indexed.values() for item in items]
    makers = _look_alikes(own, pool, _foreign(rng, indexed, others), [d[2] for d in definitions])
    for k in range(len(documents)):
        kind, make = makers[k % len(makers)]
        documents.append((f"not: {kind}", make(), None))
    return pool, documents


def _foreign(rng: random.Random, indexed: Sets, others: Sets) -> list[Item]:
    """Items that are not indexed, and not nearly the same as one that is."""
    return [
        item
        for name, items in sorted(others.items())
        for item in rng.sample(items, min(len(items), 40))
        if not _twin(item, indexed[name])
    ]


def _twin(item: Item, indexed: list[Item]) -> bool:
    """Whether an indexed item says the same, all but a word in ten."""
    own = _words(item)
    for other in indexed:
        theirs = _words(other)
        if abs(len(own) - len(theirs)) * 10 > max(len(own), len(theirs)):
            continue
        if sorted(filter(str.isdigit, own)) != sorted(filter(str.isdigit, theirs)):
            continue
        matcher = difflib.SequenceMatcher(None, own, theirs, False)
        if matcher.quick_ratio() >= 0.85 and matcher.ratio() >= 0.85:
            return True
    return False


def _words(item: Item) -> list[str]:
    return re.findall(r"\w+", " ".join([item.question, *item.choices]).lower())


def _look_alikes(
    own: Generator, pool: list[Item], foreign: list[Item], sentences: list[str]
) -> list[tuple[str, Callable[[], str]]]:
    """Makers of documents in which no item is, by kind."""
    rng = own.random
    quoted = [item for item in pool if item.passage]
    functions = [i for i in pool if i.set in ("cruxeval", "codeio") and i.question.count("\n") >= 2]

    def sentence() -> str:
        item = rng.choice(quoted)
        every = re.split(r"(?<=[.!?。।])\s*", item.passage)
        with_answer = [s for s in every if item.answer and item.answer in s]
        return own.document(rng.choice(with_answer or every), language(item))

    def passage() -> str:
        item = rng.choice(quoted)
        return own.document(item.passage, language(item))

    def licence() -> str:
        text = rng.choice(_LICENCES).read_text("utf-8", "replace")
        at = rng.randrange(max(1, len(text) - 4000))
        return own.document(text[at : at + 4000], "en")

    def sibling() -> str:
        item = rng.choice(foreign)
        lang = "code" if item.set in _CODE else language(item)
        return own.document(rng.choice([item.question, own.full(item)]), lang)

    def near_copy() -> str:
        while True:
            if text := own.mutated(rng.choice(functions).question):
                return own.document(text, "code")

    return [
        ("stock phrases", lambda: own.document("\n".join(rng.sample(_STOCK, 8)), "en")),
        ("proverbs", lambda: own.document("\n".join(rng.sample(_PROVERBS, 8)), "en")),
        ("licences", licence),
        ("quoted passages", passage),
        ("quoted sentence", sentence),
        *[("siblings", sibling)] * 3,
        ("definitions", lambda: own.document(rng.choice(sentences), "en")),
        ("near copies of code", near_copy),
        ("trivial code", lambda: own.document("\n\n".join(rng.sample(_TRIVIAL, 6)), "code")),
    ]
