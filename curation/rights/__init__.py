"""Rights signals: what robots.txt, headers and pages say about the use of a page.

`parse_robots` and `parse_tdm_file` read a site's files, `parse_directives` and `reservation` its
headers, `read_page` a page. Each signal keeps its exact value; only `Policy` decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.rights.directives import Directive, for_agents, parse_directives
    from curation.rights.licences import Licence, licence_of, spdx_identifiers
    from curation.rights.page import PageRights, Statement, read_page
    from curation.rights.policy import Policy
    from curation.rights.preferences import preferences
    from curation.rights.robots import Access, RobotsFile, Rule, parse_robots
    from curation.rights.signals import KINDS, Signal, document_rights, response_of
    from curation.rights.tdm import Reservation, TdmFile, parse_tdm_file, reservation

__all__ = [
    "KINDS",
    "Access",
    "Directive",
    "Licence",
    "PageRights",
    "Policy",
    "Reservation",
    "RobotsFile",
    "Rule",
    "Signal",
    "Statement",
    "TdmFile",
    "document_rights",
    "for_agents",
    "licence_of",
    "parse_directives",
    "parse_robots",
    "parse_tdm_file",
    "preferences",
    "read_page",
    "reservation",
    "response_of",
    "spdx_identifiers",
]

_MODULES = {
    "directives": ("Directive", "for_agents", "parse_directives"),
    "licences": ("Licence", "licence_of", "spdx_identifiers"),
    "page": ("PageRights", "Statement", "read_page"),
    "policy": ("Policy",),
    "preferences": ("preferences",),
    "robots": ("Access", "RobotsFile", "Rule", "parse_robots"),
    "signals": ("KINDS", "Signal", "document_rights", "response_of"),
    "tdm": ("Reservation", "TdmFile", "parse_tdm_file", "reservation"),
}
lazily(__name__, _MODULES)
