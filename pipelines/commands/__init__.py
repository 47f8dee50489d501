"""The commands of `curate`, one module each."""

from typing import NamedTuple


class Command(NamedTuple):
    """A command: the module that declares its options with `add` and does it with `run`."""

    module: str  # its full name; one of `pipelines.commands` begins with a dot
    purpose: str
    example: str
    after: str = ""  # the command that it follows in the help; empty: it is the last
