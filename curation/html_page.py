"""HTML pages that show documents: nothing of a document can load or run anything in them."""

from __future__ import annotations

import base64
import hashlib


def head(title: str, style: str) -> str:
    """Beginning of a page: its only style, and a policy that allows that style and nothing else.

    `title` is HTML. Without script, image, font, form or connection, whatever a page brings into
    the document has no effect even where it is not escaped. Attributes `style=` have none either.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>\n"
        f'<meta http-equiv=Content-Security-Policy content="{policy}">\n'
        "<meta name=viewport content='width=device-width'>\n"
        f"<title>{title}</title><style>{style}</style>"
    )
