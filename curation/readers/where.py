"""A condition on the columns of a table, in the words of SQL's `WHERE`.

    url_host_tld = 'de' AND (content_languages LIKE 'deu%' OR content_languages IS NULL)

Comparisons of a column with values (`=`, `<>`, `!=`, `<`, `<=`, `>`, `>=`, `[NOT] LIKE`, `[NOT] IN
(...)`, `[NOT] BETWEEN`, `IS [NOT] NULL`), joined by `AND`, `OR`, `NOT` and parentheses. Values are
strings in single quotes, numbers, TRUE and FALSE. Names with other signs than letters, digits and
`_` are in double quotes. A comparison with null is neither true nor false, as in SQL.
"""

import operator
import re
from typing import Any

import pyarrow.compute as pc

from curation.errors import ConfigError

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>'(?:[^']|'')*')|(?P<number>[-+]?\d+(?:\.\d+)?)"""
    r"""|(?P<name>"[^"]+"|[^\W\d]\w*)|(?P<sign><>|!=|<=|>=|[=<>(),])|(?P<end>$))"""
)
_COMPARISONS = {"=": operator.eq, "<>": operator.ne, "!=": operator.ne, "<": operator.lt}
_COMPARISONS |= {"<=": operator.le, ">": operator.gt, ">=": operator.ge}
#: Parentheses and `NOT` inside each other, at most.
_DEEPEST = 50


def parse_where(condition: str) -> pc.Expression:
    """Return the condition as an expression of Arrow. Raises ConfigError, naming the place."""
    parser = _Parser(condition)
    found = parser.either(0)
    if parser.kind != "end":
        raise parser.unexpected("AND, OR or the end")
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.step()

    def step(self) -> str:
        """Go to the next token; return the text of the one that is left."""
        left = getattr(self, "token", "")
        found = _TOKEN.match(self._text, self._at)
        self._begin = self._at
        if found is None:
            raise self.unexpected("a column, a value or a sign")
        self.kind = found.lastgroup or "end"
        self.token = found[self.kind]
        self._begin, self._at = found.start(self.kind), found.end()
        return left

    def unexpected(self, wanted: str) -> ConfigError:
        place = f"at character {self._begin + 1}, {self._text[self._begin :][:20]!r}"
        return ConfigError(f"readers.index.where: {place}: expected {wanted}")

    def took(self, *words: str) -> bool:
        """Go over the next token if it is one of these words or signs."""
        if self.kind not in ("name", "sign") or self.token.upper() not in words:
            return False
        self.step()
        return True

    def take(self, word: str) -> None:
        if not self.took(word):
            raise self.unexpected(word)

    def either(self, depth: int) -> pc.Expression:
        found = self._both(depth)
        while self.took("OR"):
            found = found | self._both(depth)
        return found

    def _both(self, depth: int) -> pc.Expression:
        found = self._one(depth)
        while self.took("AND"):
            found = found & self._one(depth)
        return found

    def _one(self, depth: int) -> pc.Expression:
        if depth > _DEEPEST:
            raise self.unexpected(f"no more than {_DEEPEST} parentheses")
        if self.took("NOT"):
            return ~self._one(depth + 1)
        if self.took("("):
            found = self.either(depth + 1)
            self.take(")")
            return found
        if self.kind != "name":
            raise self.unexpected("a column")
        return self._about(pc.field(self.step().strip('"')))

    def _about(self, column: pc.Expression) -> pc.Expression:
        """Return what is said of a column."""
        if self.took("IS"):
            negated = self.took("NOT")
            self.take("NULL")
            return column.is_valid() if negated else column.is_null()
        if self.token in _COMPARISONS:
            return _COMPARISONS[self.step()](column, self._value())
        negated = self.took("NOT")
        if self.took("LIKE"):
            if self.kind != "string":
                raise self.unexpected("a string")
            found = pc.match_like(column, self._value())
        elif self.took("BETWEEN"):
            least = self._value()
            self.take("AND")
            found = (column >= least) & (column <= self._value())
        elif self.took("IN"):
            found = column.isin(self._values())
        else:
            raise self.unexpected("a comparison, LIKE, IN, BETWEEN or IS NULL")
        return ~found & column.is_valid() if negated else found

    def _values(self) -> list[Any]:
        self.take("(")
        found = [self._value()]
        while self.took(","):
            found.append(self._value())
        self.take(")")
        return found

    def _value(self) -> Any:
        if self.kind == "string":
            return self.step()[1:-1].replace("''", "'")
        if self.kind == "number":
            number = self.step()
            return float(number) if "." in number else int(number)
        for word in ("TRUE", "FALSE"):
            if self.took(word):
                return word == "TRUE"
        raise self.unexpected("a value")
