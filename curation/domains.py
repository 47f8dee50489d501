"""The domains of documents, assigned by `classify` and weighted by `mix`."""

from __future__ import annotations

from typing import Literal, get_args

Domain = Literal["general", "math_reasoning", "code", "multilingual"]
DOMAINS: tuple[str, ...] = get_args(Domain)
