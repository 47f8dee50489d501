"""Settings of line deduplication as its kernels take them."""

from __future__ import annotations

from typing import NamedTuple


class Zone(NamedTuple):
    """The lines near the beginning and the end of a document: a number or a share, if more."""

    top: int
    bottom: int
    top_share: float
    bottom_share: float


class Limits(NamedTuple):
    """`PatternSettings` as the kernel takes them."""

    edge_share: float
    host_share: float
    site_share: float
    heading_hosts: int
    heading_characters: int
    sentence_characters: int
    sentence_share: float
    sentence_repeats: int
