"""HTML pages that show documents safely: no document can load or run anything in them."""

import base64
import hashlib
import re

#: Elements that load, run or link elsewhere. The page's CSP forbids that, too, but does not cover
#: everything, such as preconnecting to a host.
_ACTIVE = re.compile(
    rb"<(/?)(script|link|base|meta|iframe|frame|object|embed|applet|portal|form)\b", re.IGNORECASE
)
_REFERENCES = re.compile(
    rb"\s(?:src|srcset|href|action|ping|poster|background|data|formaction|xlink:href|on\w+)\s*=",
    re.IGNORECASE,
)


def head(title: str, style: str) -> str:
    """Return the beginning of a page: its only style, and a CSP that allows nothing else.

    `title` is HTML. Without scripts, images, fonts, forms or connections, content of a document
    has no effect even if it is not escaped. Neither have `style=` attributes.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    allowed = f"default-src 'none'; style-src 'sha256-{digest}'"
    policy = f"{allowed}; base-uri 'none'; form-action 'none'"
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>\n"
        f'<meta http-equiv=Content-Security-Policy content="{policy}">\n'
        "<meta name=viewport content='width=device-width'>\n"
        f"<title>{title}</title><style>{style}</style>"
    )


def harmless(page: bytes) -> bytes:
    """Return a page with its active elements renamed and its references disabled."""
    page = _ACTIVE.sub(_renamed, page)
    return _REFERENCES.sub(lambda m: m[0].replace(m[0].strip(), b"data-was-" + m[0].strip()), page)


def _renamed(tag: re.Match[bytes]) -> bytes:
    """Return a tag of another element; a script's is of one whose content is hidden and no
    markup."""
    end, name = tag.groups()
    if name.lower() == b"script":
        return b"</xmp" if end else b"<xmp hidden"
    return b"<%bx-%b" % (end, name)
