"""HTML pages that show documents: nothing of a document can load or run anything in them."""

from __future__ import annotations

import base64
import hashlib
import re

#: Elements that load, run or lead elsewhere. The page's policy forbids all that, too; some ways,
#: such as connecting early to a named host, no policy covers.
_ACTIVE = re.compile(
    rb"<(/?)(script|link|base|meta|iframe|frame|object|embed|applet|portal|form)\b", re.IGNORECASE
)
_REFERENCES = re.compile(
    rb"\s(?:src|srcset|href|action|ping|poster|background|data|formaction|xlink:href|on\w+)\s*=",
    re.IGNORECASE,
)


def head(title: str, style: str, frames: bool = False) -> str:
    """Beginning of a page: its only style, and a policy that allows that style and nothing else.

    `title` is HTML. Without script, image, font, form or connection, whatever a page brings into
    the document has no effect even where it is not escaped. Attributes `style=` have none either,
    unless `frames` are shown: the policy applies to a frame's content too, and other pages have
    styles of their own. They still load nothing.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    styles = "'unsafe-inline'" if frames else f"'sha256-{digest}'"
    policy = f"default-src 'none'; style-src {styles}; base-uri 'none'; form-action 'none'"
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>\n"
        f'<meta http-equiv=Content-Security-Policy content="{policy}">\n'
        "<meta name=viewport content='width=device-width'>\n"
        f"<title>{title}</title><style>{style}</style>"
    )


def harmless(page: bytes) -> bytes:
    """A page whose active elements have unknown names, and whose references lead nowhere."""
    page = _ACTIVE.sub(rb"<\1x-\2", page)
    return _REFERENCES.sub(lambda m: m[0].replace(m[0].strip(), b"data-was-" + m[0].strip()), page)
