"""Curation: what a training corpus is made of, as pure functions on strings and Arrow arrays."""

__version__ = "0.1.0"
