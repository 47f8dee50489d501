"""Generated documents of mathematics: worked problems, proofs in TeX, pages of a textbook.

Public documents of mathematics come from few sources, and a classifier learns those by heart. These
are written for this project, in ten languages; numbers, names and wording vary, always by the same
seed.
"""

from __future__ import annotations

import random
import re

Row = dict[str, str]

_NAMES = (
    "Ada Boris Chen Dina Emeka Farida Goran Hana Ivo Jaya Kofi Lena Marek Nadia Omar Paula Quentin "
    "Rosa Sven Tariq Uma Vera Wen Ximena Yusuf Zoe"
).split()
_THINGS = (
    "apples pencils stamps marbles tickets bricks cards shells coins books eggs bottles plums "
    "candles tiles seedlings"
).split()
_PLACES = "market school bakery library farm harbour workshop museum garden station".split()

# {a} < {b} < {c} are whole numbers, {n} and {m} names, {t} and {u} things, {p} a place.
_WORDED = (
    "{n} has {b} {t} and gives {a} of them to {m}. How many {t} are left? {n} keeps {b} - {a} = "
    "{b-a} {t}.",
    "A {p} sells {t} in boxes of {a}. {n} buys {b} boxes and {m} buys {c}. How many {t} do they "
    "have together? They buy {b} + {c} = {b+c} boxes, so {a} × {b+c} = {a*(b+c)} {t}.",
    "A train covers {a*b} km in {a} hours. At the same speed, how far does it go in {c} hours? "
    "Its speed is {a*b} / {a} = {b} km per hour, and {b} * {c} = {b*c} km.",
    "{n} is {a} years old and {m} is {b} years older. In how many years will {m} be {c+a+b}? "
    "Now {m} is {a} + {b} = {a+b}; {c+a+b} - {a+b} = {c} years remain.",
    "The sum of two numbers is {a+b} and their difference is {b-a}. Find them. Adding both "
    "equations, 2x = {2*b}, so x = {b} and y = {a}.",
    "A tank holds {a*b*2} litres. One pipe fills it at {a} litres a minute and another at {b}. "
    "How long do both take? Together they bring {a+b} litres a minute, so the time is "
    "{a*b*2}/{a+b} minutes.",
    "{n} saves ${a} every week. After {b} weeks {n} spends half of the money on {t} at the {p}. "
    "How much remains? {a} times {b} is {a*b} dollars, and half of it is ${a*b/2}.",
    "What is {a}% of {100*b}? One percent of {100*b} is {b}, therefore {a} percent is {a*b}.",
    "A rectangle is {a} m wide and {b} m long. Find perimeter and area. The perimeter is 2({a} "
    "+ {b}) = {2*(a+b)} m and the area {a} · {b} = {a*b} square metres.",
    "The average of {a}, {b} and x is {c}. Solve for x. The three add up to 3 · {c} = {3*c}, "
    "hence x = {3*c} - {a+b} = {3*c-a-b}.",
    "How many ways are there to choose 2 of {b} {t}? There are {b}·{b-1}/2 = {b*(b-1)/2} pairs.",
    "A bag has {a} red and {b} blue {t}. One is drawn at random. What is the probability that "
    "it is red? Of {a+b} equally likely outcomes {a} are favourable, so it is {a}/{a+b}.",
    "If {a} workers at the {p} need {b} days, how many days do {2*a} workers need? The work is "
    "{a*b} worker-days, so {a*b} divided by {2*a} gives {b/2} days.",
    "{n} reads {a} pages on Monday, twice as many on Tuesday and {b} on Wednesday. How many "
    "pages are read of a book of {3*a+b+c}? {a} + {2*a} + {b} = {3*a+b}, so {c} pages remain.",
    "The price of a coat falls from {10*b} to {9*b} dollars. By how many percent? The "
    "difference is {b}, and {b}/{10*b} = 0.1, that is 10%.",
    "Find the remainder when {a*b+1} is divided by {b}. Since {a*b+1} = {a}·{b} + 1, it is 1.",
    "{n} drives {a} miles to the {p}, then {b} miles to {m}, and back the same way. What is the "
    "distance? ({a} + {b}) × 2 = {2*(a+b)} miles.",
    "Each of {a} shelves at the {p} has {b} {t} and {c} {u}. How many things is that? {a} * "
    "({b} + {c}) = {a*(b+c)}.",
)
_FOREIGN = (
    "{n} kauft {a} Hefte zu je {b} Cent. Wie viel bezahlt sie? Rechnung: {a} · {b} = {a*b} Cent.",
    "Berechne den Flächeninhalt eines Dreiecks mit der Grundseite g = {a} cm und der Höhe h = "
    "{b} cm. A = g · h / 2 = {a*b/2} cm².",
    "Löse die Gleichung {a}x + {b} = {a*c+b}. Subtrahiere {b} auf beiden Seiten: {a}x = {a*c}, "
    "also x = {c}.",
    "{n} achète {a} cahiers à {b} euros et paie avec un billet de {a*b+c} euros. Combien lui "
    "rend-on ? {a} × {b} = {a*b}, donc il reste {c} euros.",
    "Résoudre l'équation {a}x - {b} = {a*c-b}. On ajoute {b} : {a}x = {a*c}, d'où x = {c}.",
    "{n} tiene {b} canicas y pierde {a}. ¿Cuántas le quedan? {b} - {a} = {b-a} canicas.",
    "Calcula el perímetro de un rectángulo de {a} cm por {b} cm. P = 2({a} + {b}) = {2*(a+b)} cm.",
    "У {n} было {b} яблок, она отдала {a}. Сколько осталось? {b} − {a} = {b-a} яблок.",
    "Решите уравнение {a}x + {b} = {a*c+b}. Вычтем {b} из обеих частей: {a}x = {a*c}, x = {c}.",
    "小明有{b}个苹果,给了小红{a}个,还剩多少个?{b} - {a} = {b-a}(个)。答:还剩{b-a}个。",
    "解方程 {a}x + {b} = {a*c+b}。两边同时减去{b},得 {a}x = {a*c},所以 x = {c}。",
    "一個長方形的長是{b}公分,寬是{a}公分,求面積。{a} × {b} = {a*b}(平方公分)。",
    "りんごが{b}個あります。{a}個食べると、残りは何個ですか。{b} - {a} = {b-a}。答え {b-a}個。",
    "{n} ha {b} euro e ne spende {a}. Quanti ne restano? {b} - {a} = {b-a} euro.",
    "{n} comprou {a} caixas com {b} lápis cada. Quantos lápis tem? {a} × {b} = {a*b} lápis.",
    "{n} ma {b} jabłek i oddaje {a}. Ile zostało? {b} - {a} = {b-a} jabłek.",
    "{n} {b} elma aldı, {a} tanesini verdi. Kaç elma kaldı? {b} - {a} = {b-a} elma.",
)
# Statements with their proofs, in TeX. {X}, {Y}, {Z} are capital letters, {x}, {y} small ones.
_TEX = (
    r"\begin{theorem} Let ${X}$ be a finite set with $|{X}| = {a}$. Then ${X}$ has $2^{{a}}$ "
    r"subsets. \end{theorem} \begin{proof} Every ${x} \in {X}$ is in a subset or not, "
    r"independently of the others. \end{proof}",
    r"\begin{lemma} If $f \colon {X} \to {Y}$ and $g \colon {Y} \to {Z}$ are injective, so is "
    r"$g \circ f$. \end{lemma} \begin{proof} Suppose $g(f({x})) = g(f({y}))$. Then $f({x}) = "
    r"f({y})$ and hence ${x} = {y}$. \qed \end{proof}",
    r"\begin{defn} A relation $R \subseteq {X} \times {X}$ is \emph{transitive} iff for all "
    r"${x}, {y}, z \in {X}$: $R{x}{y}$ and $R{y}z$ imply $R{x}z$. \end{defn} \begin{prob} Show "
    r"that $R \cap S$ is transitive if $R$ and $S$ are. \end{prob}",
    r"\begin{prop} $\Gamma \vdash \varphi \rightarrow \psi$ iff $\Gamma \cup \{\varphi\} \vdash "
    r"\psi$. \end{prop} \begin{proof} From left to right, apply modus ponens. For the converse, "
    r"use induction on the length of the derivation. \end{proof}",
    r"\section{Limits} We say that $\lim_{n \to \infty} {x}_n = {y}$ if for every $\varepsilon "
    r"> 0$ there is an $N$ with $|{x}_n - {y}| < \varepsilon$ for all $n \geq N$. "
    r"\begin{example} ${x}_n = \frac{{a}}{n}$ converges to $0$: take $N > {a} / \varepsilon$. "
    r"\end{example}",
    r"\[ \int_0^{{a}} {x}^{{b}} \, d{x} = \frac{{a}^{{b+1}}}{{b+1}} \] by the fundamental "
    r"theorem of calculus, since $\frac{d}{d{x}} {x}^{{b+1}} = {b+1} {x}^{{b}}$.",
    r"\subsection{Induction} Claim: $\sum_{k=1}^{n} k = \frac{n(n+1)}{2}$. For $n = 1$ both "
    r"sides are $1$. If it holds for $n$, then $\sum_{k=1}^{n+1} k = \frac{n(n+1)}{2} + (n + 1) "
    r"= \frac{(n+1)(n+2)}{2}$.",
    r"Let $\mathfrak{M}$ be a structure and $s$ an assignment. $\mathfrak{M}, s \models \exists "
    r"{x} \, \varphi$ iff there is some $m \in |\mathfrak{M}|$ with $\mathfrak{M}, s[m/{x}] "
    r"\models \varphi$. Truth of a sentence does not depend on $s$.",
    r"\begin{thm} There are infinitely many primes. \end{thm} \begin{proof} Given $p_1, \dots, "
    r"p_{{a}}$, no $p_i$ divides $p_1 \cdots p_{{a}} + 1$. \end{proof}",
    r"The matrix $A = \begin{pmatrix} {a} & {b} \\ 0 & {c} \end{pmatrix}$ has determinant ${a} "
    r"\cdot {c} = {a*c}$, so it is invertible over $\mathbb{Q}$, with eigenvalues ${a}$ and "
    r"${c}$.",
    r"A group homomorphism $\phi \colon {X} \to {Y}$ satisfies $\phi({x}{y}) = "
    r"\phi({x})\phi({y})$. Its kernel $\ker \phi = \{ {x} \in {X} : \phi({x}) = e \}$ is "
    r"normal: $\phi({y}{x}{y}^{-1}) = e$.",
    r"\begin{exercise} Prove that $\sqrt{{b}} + \sqrt{{c}}$ is algebraic, and find its minimal "
    r"polynomial over $\mathbb{Q}$. \end{exercise}",
)
_TEXTBOOK = (
    "Definition. A function f: {X} → {Y} is bijective if every y ∈ {Y} is f(x) for exactly one "
    "x ∈ {X}.",
    "Example {a}. Solve x² − {a+b}x + {a*b} = 0. Factoring gives (x − {a})(x − {b}) = 0, so x = "
    "{a} or x = {b}.",
    "Theorem {a}.{b}. Every bounded monotone sequence of real numbers converges. Proof. Let s "
    "be its supremum; for ε > 0 some term exceeds s − ε, and so do all later ones. ∎",
    "The slope of the line through ({a}, {b}) and ({c}, {b+c}) is m = (y₂ − y₁)/(x₂ − x₁) = "
    "{c}/{c-a}. Parallel lines have the same slope.",
    "In the following exercises, graph each function and name its domain and range. {a}. f(x) = "
    "{b}x − {c} {b}. g(x) = |x + {a}| {c}. h(x) = √(x − {a})",
    "Recall the law of sines: a / sin α = b / sin β = c / sin γ. In a right triangle with legs "
    "{a} and {b}, the hypotenuse is √({a*a} + {b*b}) by the theorem of Pythagoras.",
    "To add fractions, bring them to a common denominator: 1/{a} + 1/{b} = {b}/{a*b} + "
    "{a}/{a*b} = {a+b}/{a*b}.",
    "Let X be a random variable with P(X = {a}) = 1/4 and P(X = {b}) = 3/4. Its expectation is "
    "E[X] = {a}/4 + 3·{b}/4, its variance E[X²] − E[X]².",
    "Suppose, for contradiction, that log₂ {2*a+1} = p/q with integers p, q > 0. Then 2ᵖ = "
    "{2*a+1}^q, but the left side is even and the right side odd.",
    "A geometric series with ratio |r| < 1 has the sum a/(1 − r). With a = {a} and r = 1/{b} we "
    "get {a*b}/{b-1}.",
    "Evaluate the expression for x = {a}: {b}x³ − {c}x + 1 = {b}·{a**3} − {c}·{a} + 1.",
    "The derivative of f(x) = x^{b} is f'(x) = {b}x^{b-1}; at x = {a} the tangent has that slope.",
)
_NUMBER = re.compile(r"\{([0-9+\-*/() ]*[abc][abc0-9+\-*/() ]*)\}")
_KINDS = ("worded", "foreign", "tex", "textbook")


def documents(count: int, seed: int) -> list[dict[str, str]]:
    """So many documents of each kind, with `text`, `label` and `source`, one source per kind."""
    return [
        {
            "text": _document(random.Random(f"{seed} {kind} {number}"), kind),
            "label": "math_reasoning",
            "source": f"generated:{kind}",
        }
        for kind in _KINDS
        for number in range(count)
    ]


def _document(source: random.Random, kind: str) -> str:
    if kind == "worded":
        return _joined(source, _WORDED, source.randint(1, 6), "nmtup")
    if kind == "foreign":
        return _joined(source, _FOREIGN, source.randint(2, 6), "n")
    if kind == "textbook":
        return _joined(source, _TEXTBOOK, source.randint(3, 8), "XY")
    body = _joined(source, _TEX, source.randint(2, 6), "XYZxy")
    if source.random() < 0.5:
        return body
    return "\\documentclass{article}\n\\begin{document}\n" + body + "\n\\end{document}"


def _joined(source: random.Random, templates: tuple[str, ...], size: int, places: str) -> str:
    end = source.choice(["\n", "\n\n", " "])
    return end.join(_filled(source, t, places) for t in source.sample(templates, size))


def _filled(source: random.Random, template: str, places: str) -> str:
    """The template with numbers, letters and names in its places."""
    a, b, c = sorted(source.sample(range(2, source.choice([12, 40, 200])), 3))
    words = dict(zip("nm", source.sample(_NAMES, 2), strict=True))
    words |= dict(zip("tu", source.sample(_THINGS, 2), strict=True))
    words |= {"p": source.choice(_PLACES)}
    words |= dict(zip("XYZ", source.sample("ABCDEFGHKMSTUV", 3), strict=True))
    words |= dict(zip("xy", source.sample("abcuvwxyst", 2), strict=True))

    def number(found: re.Match[str]) -> str:
        value = eval(found[1], {"__builtins__": {}}, {"a": a, "b": b, "c": c})
        return f"{value:.12g}"

    for place in places:
        template = template.replace(f"{{{place}}}", words[place])
    return _NUMBER.sub(number, template)
