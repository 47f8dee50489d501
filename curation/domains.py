"""What a document is about in the large, as `classify` says it and `mix` shares it out."""

from __future__ import annotations

from typing import Literal, get_args

Domain = Literal["general", "math_reasoning", "code", "multilingual"]
DOMAINS: tuple[str, ...] = get_args(Domain)
