"""The domains of documents, assigned by `classify` and weighted by `mix`."""

from __future__ import annotations

from typing import Literal, get_args

ByContent = Literal["math_reasoning", "code"]  # the others are what is left, by language
Domain = Literal["general", "math_reasoning", "code", "multilingual"]
DOMAINS: tuple[str, ...] = get_args(Domain)
BY_CONTENT: tuple[str, ...] = get_args(ByContent)
