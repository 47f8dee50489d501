"""Rights signals: what robots.txt, headers and pages say about the use of a page.

`parse_robots` and `parse_tdm_file` read a site's files, `parse_directives` and `reservation` its
headers, `read_page` a page. Each signal keeps its exact value; only `Policy` decides.
"""

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.rights.page import read_page as read_page
    from curation.rights.preferences import preferences as preferences
    from curation.rights.robots import for_agents as for_agents
    from curation.rights.robots import parse_directives as parse_directives
    from curation.rights.robots import parse_robots as parse_robots
    from curation.rights.tdm import reservation as reservation

lazily(
    __name__,
    page="read_page",
    preferences="preferences",
    robots="for_agents parse_directives parse_robots",
    tdm="reservation",
)
