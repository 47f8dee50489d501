"""Other extraction engines behind one signature, so that a recipe can name any of them."""

from collections.abc import Callable
from typing import Any

from curation.errors import raising, require, told
from curation.extract.extract_settings import CustomEngine, ExtractSettings

#: HTML text and settings to main content; "" when there is none.
Engine = Callable[[str, str | None, ExtractSettings], str]


def _trafilatura(html: str, url: str | None, settings: ExtractSettings) -> str:
    import logging

    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # reasons go into the output

    text = trafilatura.extract(
        html,
        url=url,
        favor_precision=settings.favor == "precision",
        favor_recall=settings.favor == "recall",
        include_comments=settings.comments,
        include_tables=True,
        # Its memory of paragraphs seen before would make a page's text depend on earlier pages.
        deduplicate=False,
        output_format="txt",
        with_metadata=False,
    )
    return text or ""


def _resiliparse(html: str, url: str | None, settings: ExtractSettings) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return str(
        extract_plain_text(
            html, main_content=True, alt_texts=True, comments=settings.comments, noscript=False
        )
    )


# By name, which is also that of the package.
_ENGINES: dict[str, Engine] = {"trafilatura": _trafilatura, "resiliparse": _resiliparse}


def check_installed(name: str | CustomEngine) -> None:
    """Raise ConfigError when the package of an engine other than `curation` is not installed.

    So it does for an engine of the user's own that can't be loaded.
    """
    if isinstance(name, CustomEngine):
        from curation.judging import check_opens  # here and below: settings need no Arrow

        check_opens(name.python, name.settings, "extract.engine", positional=2)
    elif name in _ENGINES:
        require(name, "extract.engine")


def text_engine(name: str | CustomEngine) -> Engine:
    """Return the engine of that name, other than `curation`. Raises ConfigError without its
    package."""
    check_installed(name)
    if isinstance(name, CustomEngine):
        from curation.judging import opened

        return _named(opened(name.python, name.settings, positional=2), name.python.reference)
    return _ENGINES[name]


def _named(function: Callable[[str, str | None], Any], name: str) -> Engine:
    """Return the engine of the user's own, whose errors have its name."""

    def engine(html: str, url: str | None, settings: ExtractSettings) -> str:
        with raising(lambda error: RuntimeError(f"{name}: {told(error)}"), MemoryError):
            found = function(html, url)
            if not isinstance(found, str | None):
                raise TypeError(f"returned {type(found).__name__}, not a string")
        return found or ""

    return engine


def engine_packages(name: str | CustomEngine) -> list[str]:
    """Distributions whose version decides the engine's output."""
    if isinstance(name, CustomEngine):
        return []
    packages = {"curation": ["numpy", "regex"], "trafilatura": ["trafilatura", "lxml"]}
    return packages.get(name, [name])
