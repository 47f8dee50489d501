"""Tries: which failures may pass, and how often and when to ask again."""

import errno
import http.client
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from curation.credentials import redact
from curation.errors import CurationError, StoreError

T = TypeVar("T")
U = TypeVar("U")
_LOG = logging.getLogger(__name__)

#: Tries of one request; with the pauses below about 90 seconds on average, within which an object
#: store that throttles has made room.
TRIES = 8
#: Pauses are drawn evenly from 0 to so many seconds, doubled each time up to the longest ("full
#: jitter", https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
FIRST_PAUSE = 2.0
LONGEST_PAUSE = 60.0

#: Error numbers that s3fs gives to answers 500, 503 and unknown ones, and those of broken networks.
_PASSING = {
    getattr(errno, name)
    for name in (
        "EAGAIN EBUSY ECONNABORTED ECONNREFUSED ECONNRESET EHOSTUNREACH EINTR EIO ENETUNREACH "
        "EPIPE EREMOTEIO ETIMEDOUT"
    ).split()
    if hasattr(errno, name)
}
_LASTING = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError)
#: Answers of HTTP that may be others next time: timeout, too early, too many requests.
_PASSING_ANSWERS = {408, 425, 429}
#: Errors of libraries that need not be installed: broken connections and answers.
_PASSING_TYPES = {
    "aiohttp.client_exceptions.ClientError",
    "botocore.exceptions.ConnectionError",
    "botocore.exceptions.HTTPClientError",
    "botocore.parsers.ResponseParserError",
    "google.auth.exceptions.TransportError",
    "requests.exceptions.ConnectionError",
    "requests.exceptions.Timeout",
    "requests.exceptions.ChunkedEncodingError",
}


#: What resolvers say of a host that they don't know. "Temporary failure" may pass.
_UNKNOWN_HOST = ("Name or service not known", "nodename nor servname", "No address associated")


class UnfinishedError(OSError):
    """An answer without error, but not with all that was asked for."""


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, _LASTING) or is_unknown_host(error):
        return False
    if isinstance(error, TimeoutError | ConnectionError | http.client.HTTPException | EOFError):
        return True
    status = _http_status(error)
    if status is not None:
        return status >= 500 or status in _PASSING_ANSWERS
    if isinstance(error, UnfinishedError):
        return True
    if isinstance(error, OSError) and error.errno in _PASSING:
        return True
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    return bool(names & _PASSING_TYPES)


def is_unknown_host(error: BaseException) -> bool:
    """Return whether there is no such host, or no network that would know it."""
    return any(words in str(error) for words in _UNKNOWN_HOST)


def _http_status(error: BaseException) -> int | None:
    """Return the status of the answer that an error of aiohttp, gcsfs, requests or botocore
    holds."""
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return status if isinstance(status, int) else None
    for place in (error, answer):
        for name in ("status", "code", "status_code"):
            status = getattr(place, name, None)
            if isinstance(status, int | str) and str(status).isdigit():
                return int(status)
    return None


def persistently(url: str, action: Callable[[], T]) -> T:
    """Do something, again after a pause while its failure may pass.

    `action` must come to the same when done twice. Raises FileNotFoundError as it comes, and
    StoreError with the URL for whatever else is in the way.
    """
    for tried in range(1, TRIES + 1):
        try:
            return action()
        except (FileNotFoundError, CurationError):
            raise
        except Exception as error:
            reason = redact(f"{type(error).__name__}: {error}".splitlines()[0])
            if is_unknown_host(error):
                raise StoreError(f"{url}: no such host, or no network ({reason})") from error
            if not is_transient(error):
                raise StoreError(f"{url}: {reason}") from error
            if tried == TRIES:
                raise StoreError(f"{url}: gave up after {TRIES} tries: {reason}") from error
            pause = random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (tried - 1)))
            _LOG.info("%s: try %d failed (%s); again in %.1f s", redact(url), tried, reason, pause)
            time.sleep(pause)
    raise AssertionError


def each(action: Callable[[U], T], items: Iterable[U], at_once: int = 32) -> Iterator[T]:
    """Results in order, several under way at a time: an object store answers slowly, but many."""
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(action, items)
