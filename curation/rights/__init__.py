"""Rights: what robots.txt, headers and pages say of how a page may be used.

`parse_robots` and `parse_tdm_file` read a site's files, `parse_directives` and `reservation` its
headers, `read_page` a page. Each signal comes with its exact value; none of them decides anything.
"""

from curation.rights.directives import Directive, for_agents, parse_directives
from curation.rights.licences import Licence, licence_of, spdx_identifiers
from curation.rights.page import PageRights, Statement, read_page
from curation.rights.robots import Access, RobotsFile, Rule, parse_robots
from curation.rights.signals import KINDS, Signal, document_rights, response_of
from curation.rights.tdm import Reservation, TdmFile, parse_tdm_file, reservation

__all__ = [
    "KINDS",
    "Access",
    "Directive",
    "Licence",
    "PageRights",
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
    "read_page",
    "reservation",
    "response_of",
    "spdx_identifiers",
]
