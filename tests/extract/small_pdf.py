"""Small PDF written in code."""

from __future__ import annotations

from collections.abc import Sequence

#: x, y and size in points, and the text in Latin-1.
Line = tuple[float, float, float, str]


def write_pdf(
    pages: Sequence[Sequence[Line]],
    rotate: int = 0,
    font: str = "/Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding",
    further: Sequence[bytes] = (),
    drawn: str = "",
) -> bytes:
    """Return a PDF with these lines, each a text object of its own.

    `further` are objects from number 4 on, `drawn` goes into the content of every page.
    """
    first = 4 + len(further)
    kids = " ".join(f"{first + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        f"<< {font} >>".encode(),
        *further,
    ]
    for number, lines in enumerate(pages):
        content = (drawn + "\n".join(_text(*line, rotate) for line in lines)).encode("latin-1")
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Rotate %d /Resources"
            b" << /Font << /F 3 0 R >> /XObject << /I 4 0 R >> >> /Contents %d 0 R >>"
            % (rotate, first + 2 * number + 1),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        ]
    out = b"%PDF-1.5\n"
    places = []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (count, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n%s" % (count, table) + trailer


def _text(x: float, y: float, size: float, text: str, rotate: int) -> str:
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    place = f"0 1 -1 0 {600 - y} {x}" if rotate == 90 else f"1 0 0 1 {x} {y}"
    return f"BT /F {size} Tf {place} Tm ({escaped}) Tj ET"


def paragraph(
    text: Sequence[str], x: float = 70, y: float = 700, size: float = 10, step: float = 12
) -> list[Line]:
    """Return lines below each other."""
    return [(x, y - n * step, size, line) for n, line in enumerate(text)]
