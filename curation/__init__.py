"""Curation: what a training corpus is made of, as pure functions on strings and Arrow arrays."""

import os
from pathlib import Path

from curation.kernels import place_cache

__version__ = "0.1.0"

place_cache(os.environ, Path(__file__).parent)
