"""Renamed recipe keys: the old name is accepted with a warning."""

from __future__ import annotations

import logging
from typing import Any

from curation.errors import ConfigError

_LOG = logging.getLogger(__name__)

#: Old path of a key to its new last part.
RENAMED = {
    "extract.decision.kin_share": "template_share",
    "extract.decision.alike_share": "sibling_share",
}


def rename_keys(tree: dict[str, Any], source: str) -> dict[str, Any]:
    """Return a recipe's tree with the current names of its keys; warn about each old one.

    Raises ConfigError if a key is given by both names.
    """
    for path, name in RENAMED.items():
        *above, old = path.split(".")
        tree = _renamed(tree, above, old, name, f"{source}: {path}")
    return tree


def rename_assignment(assignment: str) -> str:
    """Return `key.path=value` with the key's current name; warn about an old one."""
    path, equals, value = assignment.partition("=")
    if path.strip() not in RENAMED:
        return assignment
    above, name = path.strip().rpartition(".")[0], RENAMED[path.strip()]
    _LOG.warning("--set %s is now called %s", path.strip(), name)
    return f"{above}.{name}{equals}{value}"


def _renamed(
    tree: dict[str, Any], above: list[str], old: str, name: str, where: str
) -> dict[str, Any]:
    if above:
        inner = tree.get(above[0])
        if not isinstance(inner, dict):
            return tree
        return tree | {above[0]: _renamed(inner, above[1:], old, name, where)}
    if old not in tree:
        return tree
    if name in tree:
        raise ConfigError(f"{where}: the old name of {name!r}, which is also given")
    _LOG.warning("%s is now called %s", where, name)
    return {name if key == old else key: value for key, value in tree.items()}
