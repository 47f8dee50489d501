"""Readers: turn any input file into pages, set damage aside, and recover what can be read."""
