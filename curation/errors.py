"""Errors that reach a user. Each carries one clear line; the command line prints only that line."""

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any

from curation.credentials import redact


class CurationError(Exception):
    """A run failed. The command line exits with `exit_code` and prints the message.

    Messages contain files and URLs; secrets in them are redacted.
    """

    exit_code = 1

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(redact(a) if isinstance(a, str) else a for a in arguments))


class ConfigError(CurationError):
    """A recipe, option or command line is invalid; nothing has been started."""

    exit_code = 2


class InputError(CurationError):
    """An input can't be used at all (missing, unreadable, of an unknown format).

    Damage inside a readable input never raises: it is set aside with its location and reason.
    """


class StoreError(CurationError):
    """A request to a remote file system failed permanently or too often, or a disk is full."""


class WorkerError(CurationError):
    """A worker process died or a step failed inside it."""


class AlarmError(CurationError):
    """A stage raised an alarm, and the user asked to stop on alarms."""


class DriftError(CurationError):
    """A policy's rules remove different shares of a corpus from those approved."""


#: Characters of somebody else's message that are kept.
_MOST_TOLD = 1000


def told(error: BaseException, most: int = _MOST_TOLD) -> str:
    """Return kind and message of an error of code that isn't ours, cut after `most` characters."""
    try:
        message = str(error)
    except Exception as failed:
        message = f"its message can't be read ({type(failed).__name__})"
    return f"{type(error).__name__}: {message[:most]}"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its kind if it has none."""
    return (str(error) or type(error).__name__).splitlines()[0]


@contextlib.contextmanager
def raising(
    wrap: Callable[[BaseException], Exception], *let_through: type[BaseException]
) -> Iterator[None]:
    """Raise `wrap(error)` in place of any error of code that isn't ours.

    This includes errors that are not an `Exception`, such as SystemExit and asyncio's
    CancelledError. KeyboardInterrupt and the end of a generator pass, and so do errors of the kinds
    `let_through`.
    """
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except let_through:
        raise
    except BaseException as error:
        raise wrap(error) from error


#: The extra that installs a package, by the package's or its module's name in lower case.
EXTRAS = {
    "aiohttp": "http",
    "apache_beam": "dataflow",  # the modules that its own extra brings
    "gcsfs": "gcs",
    "huggingface_hub": "hf",
    "pypdfium2": "pdf",
    "rapidfuzz": "train-extractor",
    "resiliparse": "engines",
    "s3fs": "s3",
    "tokenizers": "tokenizers",
    "torch": "torch",
}


def require(module: str, user: str) -> Any:
    """Import and return a module that an extra installs.

    Raises ConfigError, with what needs it (`user`, an option or a file) and what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing(module, user, error) from None


def missing(package: str, user: str, error: ImportError | None = None) -> ConfigError:
    """Return the error for a package that is absent or, by `error`, can't be imported."""
    extra = EXTRAS.get(package.partition(".")[0].lower())
    wanted = f"curation[{extra}]" if extra else "curation"
    absent = error is None or isinstance(error, ModuleNotFoundError)
    name = (error and error.name) or package
    return ConfigError(
        f"{user}: needs {name}: pip install '{wanted}'{'' if absent else f' ({error})'}"
    )
