"""Settings of the filter stage; defaults with their sources in configs/defaults/filter.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from curation.config import Positive, Settings, Share, merge, nearest, read_yaml
from curation.filters.names import CONTENT, NAMES, NEEDS, with_signals
from curation.models import ModelFile
from curation.resources import (
    ArrayFolder,
    NamedFile,
    NamedPath,
    TextFolder,
    root,
)
from curation.user_code import FILES, Arguments, UserCode

Action = Literal["replace", "remove", "keep"]
#: Kinds of personal data; where spans overlap, the earlier kind holds.
PersonalKind = Literal[
    "private_key",
    "access_token",
    "iban",
    "card",
    "national_id",
    "us_ssn",
    "email",
    "ip",
    "phone",
]


class GopherSettings(Settings):
    dialect: Literal["datatrove", "dclm", "unicode"] = Field(
        description="tool whose meaning of words and lines the signals follow; `unicode`: dclm's, "
        "with words between all white space"
    )


class C4Settings(Settings):
    terminal_punctuation: bool = Field(description="drop lines without a terminal mark at the end")


class FineWebSettings(Settings):
    closers_end_lines: bool = Field(
        description="count quotes and brackets that close behind a terminal mark"
    )
    colons_end_lines: bool = Field(
        description="count colons used as a full stop: Armenian `:`, Ethiopic `::` and `፡፡`"
    )


class SignalSettings(Settings):
    """What is measured; lists are folders with one file per language."""

    gopher: GopherSettings
    c4: C4Settings
    fineweb: FineWebSettings
    stop_words: TextFolder | None = Field(description="folder of <language>.txt, one word a line")
    dirty_words: TextFolder | None = Field(
        description="folder of <language>.txt, one phrase a line; those behind `?` count at most "
        "as often as the others of the document"
    )
    allowed_words: TextFolder | None = Field(
        description="folder of <language>.txt: phrases that excuse the dirty words in them"
    )
    reference: ArrayFolder | None = Field(description="folder of <language>.npz word distributions")
    unlabelled_language: str | None = Field(
        description="language of the texts where there is no language column at all, for lists"
    )


class RuleCode(UserCode):
    """A function or class that measures texts."""

    group: ClassVar[str] = "curation.rules"


class CustomSignal(NamedTuple):
    """A signal that code of the user's own measures."""

    code: RuleCode
    settings: dict[str, Any]


class Rule(Settings):
    """A document is removed where the signal is below `min` or above `max`.

    In a recipe `signal` may be left out: see `names.with_signals`.
    """

    signal: str
    min: float | None = None
    max: float | None = None
    python: RuleCode | None = Field(
        None, description="function of texts that gives a number for each: measures the signal"
    )
    files: dict[str, NamedPath] | None = Field(None, description=FILES)
    settings: Arguments = Field(
        default={},
        validate_default=True,
        description="arguments of that function by name, or of its class",
    )

    @model_validator(mode="after")
    def _bounds(self) -> Rule:
        if self.min is None and self.max is None:
            raise ValueError("a rule needs min, max or both; write null to turn a rule off")
        return self


Rules = dict[str, dict[str, Rule | None] | None]


class Exemption(Settings):
    """Documents, identified by a signal, that are exempt from some rules."""

    signal: str
    min: float = Field(description="value of the signal from which a document is of the kind")
    unless: dict[str, float] = Field(
        default_factory=dict,
        description="signals and the values beyond which a document is of no kind after all",
    )
    rules: tuple[str, ...] = Field(description="families (`gopher`) or rules (`gopher.stop_words`)")


class OverruleSettings(Settings):
    """Good pages that fail a rule all the same stay; the rule is recorded in column `overruled`."""

    quality: Share = Field(description="quality from which a document overrules a rule")
    rules: tuple[str, ...] = Field(
        description="families (`gopher`) or rules (`gopher.stop_words`) that can be overruled"
    )
    model: ModelFile = Field(
        description="scores the documents that fail a rule where there is no column `quality`"
    )


class CopySettings(Settings):
    """Copies of passages within a document, all but the first of which are cut."""

    min_characters: Positive = Field(
        description="characters of the shortest passage, white space aside"
    )
    max_share: Share = Field(
        description="share of a document's characters in copies beyond which it stays as it is, "
        "for the rules on repetition to judge"
    )


class EditSettings(Settings):
    """Which lines are cut out of documents before they are measured."""

    c4: bool = Field(description="lines and citations as C4 cuts them (limits in signals.c4)")
    llama3: bool = Field(description="lines of repeated n-grams")
    copies: CopySettings | None = Field(description="passages held again; null: they stay")


class PersonalData(Settings):
    action: Action = Field(
        description="replace by the placeholder, remove the document, or only count (keep)"
    )
    placeholder: str


class PiiSettings(Settings):
    """What is taken for personal data, and what becomes of it."""

    kinds: dict[PersonalKind, PersonalData] = Field(description="kinds left out are not searched")
    words: NamedFile = Field(description="file of the words that distinguish numbers and addresses")


class BlockListSettings(Settings):
    lists: dict[str, NamedPath] = Field(
        description="reason -> file, folder or URL: UT1 categories and archives of them, plain "
        "lists, AdBlock domain rules; of several UT1 categories the one that the reason names"
    )
    allow: tuple[NamedPath, ...] = Field(description="files of hosts that are never blocked")
    soft_words: NamedFile | None = Field(description="file of words that block a URL together")
    min_soft_words: Positive = Field(description="different soft words that block a URL")


class FilterSettings(Settings):
    signals: SignalSettings
    edits: EditSettings
    rules: Rules
    by_language: dict[str, Rules] = Field(
        description="rules that replace others as a whole, or null: off"
    )
    default_languages: tuple[str, ...] = Field(
        description="languages for which `rules` are meant as they are; others without an entry "
        "in by_language are reported"
    )
    paths: bool = Field(
        description="documents that are code or mathematics have rules of their own; what is "
        "neither is judged without the lines of code and formulas in it. false: all is prose"
    )
    exempt: dict[str, Exemption | None] = Field(description="null: no such kind")
    overrule: OverruleSettings | None = Field(
        description="quality that overrules a rule; null: none does"
    )
    pii: PiiSettings
    blocklists: BlockListSettings

    @model_validator(mode="before")
    @classmethod
    def _name_signals(cls, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        named = dict(tree)
        if "rules" in tree:
            named["rules"] = with_signals(tree["rules"], {}, "rules")
        if isinstance(tree.get("by_language"), dict):
            named["by_language"] = {
                language: with_signals(rules, named.get("rules"), f"by_language.{language}")
                for language, rules in tree["by_language"].items()
            }
        return named

    @model_validator(mode="after")
    def _custom_signals_for_all_languages(self) -> FilterSettings:
        for where, family, name, rule in self.each_rule():
            if where != "rules" and rule.python is not None:
                raise ValueError(
                    f"{where}.{family}.{name}.python: a signal is measured for all languages: name "
                    f"it in rules.{family}.{name}, and here its limits"
                )
        return self

    @model_validator(mode="after")
    def _known_kinds(self) -> FilterSettings:
        for kind, held in self.exemptions.items():
            if held.signal not in CONTENT:
                hint = nearest(held.signal, CONTENT)
                raise ValueError(f"exempt.{kind}.signal: unknown signal {held.signal!r}{hint}")
            everything = [self.rules, *self.by_language.values()]
            for name in held.rules:
                _check_rule(f"exempt.{kind}.rules", name, everything)
            for name in held.unless:
                if name not in NAMES:
                    hint = nearest(name, NAMES)
                    raise ValueError(f"exempt.{kind}.unless: unknown signal {name!r}{hint}")
        return self

    @model_validator(mode="after")
    def _known_overruled(self) -> FilterSettings:
        for name in self.overrule.rules if self.overrule is not None else ():
            _check_rule("overrule.rules", name, [self.rules, *self.by_language.values()])
        return self

    @model_validator(mode="after")
    def _known_switches(self) -> FilterSettings:
        for language, changes in self.by_language.items():
            for family, members in changes.items():
                if members is None:
                    _check_rule(f"by_language.{language}", family, [self.rules])
                for name in [n for n, rule in (members or {}).items() if rule is None]:
                    _check_rule(f"by_language.{language}", f"{family}.{name}", [self.rules])
        return self

    def each_rule(self) -> Iterator[tuple[str, str, str, Rule]]:
        """Yield the rules that are switched on, those of each language after the others: the key
        under which they are (`rules` or `by_language.de`), family, name, rule."""
        own = ((f"by_language.{n}", rules) for n, rules in self.by_language.items())
        for where, rules in (("rules", self.rules), *own):
            for family, members in rules.items():
                held = (members or {}).items()
                yield from ((where, family, name, rule) for name, rule in held if rule is not None)

    def unmeasured(self) -> str | None:
        """What is wrong where a rule can never fire: no list is named that its signal takes.

        A language's threshold for a rule that `rules` switches off is no mistake then.
        """
        for where, family, name, rule in self.each_rule():
            key = NEEDS.get(rule.signal)
            off = (self.rules.get(family) or {}).get(name, rule) is None
            if key is not None and getattr(self.signals, key) is None and not off:
                return (
                    f"{where}.{family}.{name}: its signal is not measured: name what it "
                    f"takes in filter.signals.{key}, or switch the rule off with null"
                )
        return None

    def languages(self) -> Iterator[tuple[str, str]]:
        """Every language that these settings name, with the key that names it."""
        yield from (("by_language", language) for language in self.by_language)
        yield from (("default_languages", language) for language in self.default_languages)

    @property
    def custom_signals(self) -> dict[str, CustomSignal]:
        """The signals that code of the user's own measures, by name, in the order of the rules."""
        return {
            rule.signal: CustomSignal(rule.python, rule.settings)
            for where, _, _, rule in self.each_rule()
            if where == "rules" and rule.python is not None
        }

    @property
    def exemptions(self) -> dict[str, Exemption]:
        """The kinds that are not switched off."""
        return {kind: held for kind, held in self.exempt.items() if held is not None}


def _check_rule(where: str, name: str, among: Sequence[Rules]) -> None:
    """Raise ValueError unless the name is that of a family or `family.rule` among these.

    Those of the defaults are known, too: a recipe may have replaced them all.
    """
    among = [*among, default_tree()["rules"]]
    family, _, rule = name.partition(".")
    held = [rules[family] for rules in among if family in rules]
    # Of a family that is switched off as a whole, the rules are not known.
    if held and (not rule or any(members is None or rule in members for members in held)):
        return
    known = sorted({family for rules in among for family in rules})
    if held:
        known = sorted({f"{family}.{n}" for members in held for n in members or {}})
    raise ValueError(
        f"{where}: no rule or family {name!r}{nearest(name, known)} (there are: {', '.join(known)})"
    )


@cache
def default_tree() -> dict[str, Any]:
    """configs/defaults/filter.yaml as it is; don't change the returned value."""
    return read_yaml(root() / "configs/defaults/filter.yaml")


def default_settings(**changes: Any) -> FilterSettings:
    """The default settings with changes laid over them: `default_settings(edits={"c4": False})`."""
    return FilterSettings.model_validate(merge(default_tree(), changes))
