"""Words that mark mathematics, programming and names of sites, in several languages.

Part of what the features are: a change needs another FEATURES_VERSION and models trained again.
Lower case; a word is in one list only.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from curation.bytes.hash_tables import of_hashes

MATH = """
theorem theorems lemma lemmas proof proofs corollary proposition axiom conjecture equation
equations inequality polynomial polynomials integer integers logarithm exponent exponents fraction
fractions denominator numerator quotient divisor divisible prime derivative integral integrals
matrix matrices vector vectors eigenvalue eigenvalues determinant algebra algebraic geometry
geometric trigonometry theta sine cosine sin cos tan log ln sqrt triangle rectangle hypotenuse
perpendicular parallel radius diameter circumference perimeter coefficient coefficients variables
quadratic linear nonlinear cubic slope intercept graph vertex vertices parabola hyperbola ellipse
asymptote permutation permutations combinatorics probability bijection injective surjective
countable cardinal ordinal subset subsets union intersection modulo congruent arithmetic calculate
solve solving solution solutions simplify factoring evaluate multiply multiplied divide divided
subtract sum product equals equal satisfies satisfy implies iff suppose hence therefore thus
denote denotes denoted formula formulas rational irrational positive negative nonnegative finite
infinite convergence converges sequence manifold topology homomorphism isomorphism metric norm
tensor euclidean cartesian coordinates axis degrees angle angles percent ratio total qed mathbb
mathcal mathrm frac cdot leq geq forall exists infty mathematics mathematical mathematician math
satz beweis gleichung gleichungen ungleichung matrizen vektor ganzzahl bruch ableitung mathematik
théorème preuve démonstration équation équations polynôme entier matrice vecteur dérivée intégrale
mathématiques teorema demostración ecuación ecuaciones polinomio matriz entero derivada
matemáticas dimostrazione equazione polinomi matematica equação demonstração matemática теорема
доказательство уравнение уравнения матрица вектор многочлен производная интеграл лемма математика
математики
"""

CODE = """
def return import class const let var function func fn void int str string bool boolean null none
nil true false public private protected static final async await struct enum impl trait interface
extends implements typedef include printf println print console foreach elif endif try catch
except finally throw throws raise lambda self args argv kwargs yield github git npm pip sudo apt
bash shell docker kubernetes container api apis sdk cli json yaml xml html css
javascript typescript python java rust golang ruby php perl scala kotlin swift sql mysql
postgresql sqlite database query server client backend frontend framework library libraries module
modules package packages dependency dependencies compiler compile compiled runtime debug debugging
debugger repository repo commit branch code coding codebase programming programmer programmers
developer developers software syntax parameter parameters argument arguments method methods object
objects array arrays variable callback endpoint endpoints url uri config configuration configure
install installation installed plugin plugins localhost linux unix windows ubuntu terminal command
commands script scripts file files directory folder stdin stdout regex iterator instance instances
constructor deploy deployment refactor refactoring devops agile scrum algorithm algorithms
microservices serverless webhook wasm toolchain ide kernel cache caching react angular django flask
rails node webpack android firmware opensource llm programmierung programmieren programmiersprache
entwickler datei befehl quellcode quelltext datenbank skript schnittstelle logiciel développeur
fichier programmation serveur programación programador código desarrollador servidor programação
desenvolvedor programmazione sviluppatore programowanie programista yazılım программирование код
файл разработчик функция переменная сервер библиотека скрипт
"""

#: Last parts of names of sites; those that are endings of source files as well are not among them.
SITES = """
com org net info edu gov biz eu de uk fr it es nl be at ch ru cz se no fi dk br mx ar cn jp kr tw au
nz ca us ua tr gr hu ro onion
"""

MATH_WORD, CODE_WORD, SITE = 1, 2, 3
_MASK = (1 << 64) - 1


@cache
def table(seed: int, prime: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    """Return the kinds of the words by hash, as `hash_tables.find` takes them.

    The hash is FNV-1a over code points, as features compute it of a token.
    """
    kinds: dict[int, int] = {}
    for kind, words in ((MATH_WORD, MATH), (CODE_WORD, CODE), (SITE, SITES)):
        for word in words.split():
            h = seed
            for character in word:
                h = ((h ^ ord(character)) * prime) & _MASK
            kinds[h] = kind
    return of_hashes(kinds)
