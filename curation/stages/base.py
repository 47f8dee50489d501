"""The description of a stage: all that the rest of the toolkit needs to know about one."""

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from curation.config import Settings, read_yaml
from curation.models import ModelFile, locate
from curation.resources import root
from curation.user_code import walk

S = TypeVar("S", bound=Settings)

#: A rule that compares a number: `rule`, `value` (None: not measured), `min` or `max`; `signal`.
Limit = dict[str, Any]


class Columns(NamedTuple):
    """Columns that a stage reads besides those that every document has."""

    needed: tuple[str, ...] = ()
    used: tuple[str, ...] = ()  # where they are present
    unless: str = ""  # the setting under which it does without those that it needs


class Stage(Generic[S]):
    """Base of the descriptions in `curation.stages`, one module each.

    Subclasses set the class variables and override what differs. The code that runs a stage is the
    module of the same name in `pipelines` (`dedup-urls`: `pipelines.dedup_urls`); its defaults are
    `configs/defaults/<name>.yaml`.
    """

    name: str
    purpose: str
    settings: type[S]
    #: The stage that it usually follows; empty for the first.
    after: ClassVar[str] = ""
    #: Recipes do without it unless they name it.
    optional: ClassVar[bool] = False
    #: Columns that the documents have afterwards.
    adds: ClassVar[tuple[str, ...]] = ()
    #: Packages whose version can change the stage's bytes, besides pyarrow, which writes them all.
    packages: ClassVar[tuple[str, ...]] = ()
    #: It reads raw input and makes the documents.
    is_source: ClassVar[bool] = False
    #: Columns of the documents that a source makes, where they are always the same.
    makes: ClassVar[tuple[str, ...] | None] = None
    #: No stage reads what it writes.
    is_sink: ClassVar[bool] = False
    #: It runs once for each named mix, too.
    per_mix: ClassVar[bool] = False
    #: It keeps one of several documents, which `kept_id` of the others names.
    keeps_one: ClassVar[bool] = False
    #: It measures documents by signals, so that `why` shows all its limits of a removed one, too.
    has_signals: ClassVar[bool] = False
    #: Keys of its settings that decide what it removes by what it measures: a run that only
    #: measures keeps these documents, and a policy sets these keys.
    decides_by: ClassVar[tuple[str, ...]] = ()
    #: Steps of its work, each of which needs the whole of the one before.
    passes: ClassVar[int] = 1
    #: Module of `pipelines.commands` with further options of its command; empty: it has none.
    command: ClassVar[str] = ""
    #: CPU milliseconds that a document of the sample takes, for how long a run will take.
    cost: ClassVar[float] = 1.0
    #: Columns whose values the manifest counts, with the title of their table in the report.
    counted: ClassVar[tuple[tuple[str, str], ...]] = ()
    #: Columns that `why` shows.
    shown: ClassVar[tuple[str, ...]] = ()
    #: Table next to the documents whose rows `why` shows, by folder; `tell` words them.
    beside: ClassVar[str] = ""

    def defaults(self) -> dict[str, Any]:
        """Return every setting with its default. Packages with a stage of their own override it."""
        return read_yaml(root() / "configs" / "defaults" / f"{self.name}.yaml")

    def reads(self, settings: S) -> Columns:
        """Return the columns that it reads under these settings."""
        return Columns()

    def looks_back(self, settings: S) -> str:
        """Return the earlier stage whose removed documents it reads, too; empty for none."""
        return ""

    def adds_of(self, settings: S) -> tuple[str, ...]:
        """Return the columns that it adds under these settings."""
        return self.adds

    def also(self, recipe: Any) -> dict[str, Settings]:
        """Return other parts of the recipe that decide its output, by name."""
        return {}

    def prepare(self, tree: dict[str, Any], recipe: str) -> None:
        """Complete a recipe's tree in place before it is validated. Raises ConfigError."""

    def check_recipe(self, settings: S, recipe: Any) -> None:
        """Check what the settings say of other sections. Raises ValueError with the key."""

    def check(self, settings: S, recipe: Any, known: Mapping[str, Collection[str]]) -> None:
        """Check what the settings name against `known`: by column, the values that it can have.

        Columns that are not in `known` come with the input. Raises ConfigError.
        """

    def check_unnamed(self, settings: S, path: str) -> None:
        """Check that it takes documents of an input without a name, whose file is `path`.

        Raises ConfigError.
        """

    def values(self, settings: S) -> dict[str, Collection[str]]:
        """Return all values of the columns that it adds, where they can be listed."""
        return {}

    def load(self, settings: S) -> None:
        """Load models, to see that they fit together. Raises ConfigError."""

    def packages_of(self, settings: S, also: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the packages under these settings; `also`: what `also` returns.

        Raises ConfigError where one is absent.
        """
        return self.packages

    def models(self, settings: S, also: Mapping[str, Any]) -> dict[str, str]:
        """Return SHA-256 of the models by key; `also`: what `also` returns. Raises ConfigError."""
        parts = {self.name: settings, **also}
        found = (walk(part, name, (ModelFile,)) for name, part in parts.items())
        models = sorted((key, model) for some in found for key, model, _ in some)
        return {key.removeprefix(f"{self.name}."): locate(model)[1] for key, model in models}

    def mixes(self, settings: S) -> tuple[str, ...]:
        """Return the names of mixes that the settings describe."""
        return ()

    def sources(self, settings: S) -> tuple[str, ...]:
        """Return the names of inputs that the settings describe."""
        return ()

    def of_mix(self, settings: S, mix: str) -> Settings:
        """Return the settings for a mix by name; the empty name is the mix without one."""
        return settings

    def limits(self, settings: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Limit]:
        """Yield the rules that compare a number of a document.

        `settings` are those in the stage's manifest, `row` is the document.
        """
        yield from ()

    def shows(self, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the columns of the user's own that `why` shows; `settings` as in `limits`."""
        return ()

    def tell(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Yield the lines in which `why` shows a document's rows of the table next to it."""
        yield from ()

    @property
    def is_indexed(self) -> bool:
        """Whether a finished run of it can be an index for a later one."""
        return "index" in self.settings.model_fields

    @property
    def module(self) -> str:
        """The module of `pipelines` that runs it."""
        return f"pipelines.{self.name.replace('-', '_')}"


def limit(rule: str, value: float | None, **facts: float | str | None) -> Limit:
    """Return a limit as `Stage.limits` yields it; facts that are None are left out."""
    measured = None if value != value else value  # NaN
    return {"rule": rule, "value": measured} | {k: v for k, v in facts.items() if v is not None}


@functools.cache
def _sentences() -> dict[str, str]:
    return read_yaml(root() / "configs" / "measures.yaml")


def meaning(rule: str, signal: str | None = None) -> str:
    """Return in a sentence what a rule measures; empty for one of the user's own."""
    names = (signal, rule, rule.partition(".")[0])
    return next((_sentences()[name] for name in names if name in _sentences()), "")
