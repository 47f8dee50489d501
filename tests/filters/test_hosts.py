"""Hosts with much personal data."""

from __future__ import annotations

from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pytest

from curation.filters.personal_hosts import HOSTS, count_hosts, most_personal, total
from curation.hosts import ascii_host

URLS = [
    "https://A.example/1",
    "http://a.example:80/2",
    "https://b.example/",
    "no url",
    None,
    "http://[x",
]


def test_hosts_are_counted_and_summed() -> None:
    first = count_hosts(pa.array(URLS), np.array([3, 2, 9, 1, 1, 1]))
    second = count_hosts(pa.array(URLS), np.array([1, 0, 0, 0, 0, 0]))
    nothing = count_hosts(pa.array(URLS), np.zeros(6, np.int64))
    assert first.schema == second.schema == nothing.schema == HOSTS
    assert set(nothing["items"].to_pylist()) == {0}
    assert total([first, second, nothing]).sort_by("host").to_pylist() == [
        {"host": "", "pages": 9, "documents": 3, "items": 3},
        {"host": "a.example", "pages": 6, "documents": 3, "items": 6},
        {"host": "b.example", "pages": 3, "documents": 1, "items": 9},
    ]
    assert count_hosts(pa.array([], pa.string()), np.zeros(0, np.int64)).num_rows == 0
    expected = [
        {"host": "b.example", "documents": 1, "items": 9},
        {"host": "a.example", "documents": 3, "items": 6},
        {"host": "", "documents": 3, "items": 3},
    ]
    assert most_personal([first, nothing, second], 3, 10) == expected
    assert most_personal([second, first], 4, 1) == expected[:1]
    assert most_personal([], 1, 10) == []


@pytest.mark.parametrize("before", ["", "u@", "u:p@"])
@pytest.mark.parametrize(
    "host", ["A-1.example", "a..b", "127.0.0.1", "[::1]", "bücher.example", "a_b"]
)
@pytest.mark.parametrize("after", ["", "/", "?q@x", "#f", ":80/", "\n", "\\x", "/a?b=http://c/"])
@pytest.mark.parametrize("scheme", ["http://", "https://", "HTTPS://", "ftp://", "//"])
def test_hosts_are_those_of_the_standard_library(
    scheme: str, before: str, host: str, after: str
) -> None:
    url = scheme + before + host + after
    (found,) = count_hosts(pa.array([url]), np.ones(1, np.int64))["host"].to_pylist()
    host = urlsplit(url).hostname or ""
    assert found == (host if host.isascii() else ascii_host(host))
