"""Dumps, mailboxes, office documents and LaTeX: the text that went in, and nothing lost unsaid."""

from __future__ import annotations

import bz2
import gzip
import io
import random
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from curation.extract.extractor import Extractor
from curation.extract.extractor import default_settings as extract_settings
from curation.readers.documents import others_of
from curation.readers.read import read, read_at
from curation.readers.records import Damage, Event, Page, Skipped
from curation.readers.suffixes import READ
from curation.readers.wikitext import to_html
from curation.recipe import load
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.runners.execute import Executor, parse_beam_args
from tests.readers.archives import default_settings

#: Words in scripts with and without spaces.
_WORDS = (
    "river bee market garden copper winter Straße Fluß été naïf река пчела рынок صيف نهر سوق "
    "नदी बाज़ार แม่น้ำ 蜜蜂 市場 冬天 ποταμός μέλι גשר"
).split()
Block = tuple[str, Any]


def blocks_of(rng: random.Random) -> list[Block]:
    """Return what a page says: headings, paragraphs, lists and tables of random words."""

    def words(most: int) -> str:
        return " ".join(rng.choice(_WORDS) + str(rng.randrange(50)) for _ in range(most))

    found: list[Block] = []
    for _ in range(rng.randrange(3, 8)):
        found.append(("heading", words(3)))
        for _ in range(rng.randrange(1, 4)):
            kind = rng.choice(["paragraph", "paragraph", "list", "table"])
            if kind == "paragraph":
                found.append((kind, words(rng.randrange(8, 60))))
            elif kind == "list":
                found.append((kind, [words(rng.randrange(2, 9)) for _ in range(4)]))
            else:
                found.append((kind, [[words(2) for _ in range(3)] for _ in range(3)]))
    return found


def plain(blocks: list[Block]) -> str:
    flat: list[str] = []
    for _, content in blocks:
        rows = content if isinstance(content, list) else [content]
        flat += [cell for row in rows for cell in (row if isinstance(row, list) else [row])]
    return "\n".join(flat)


def score(gold: str, text: str) -> float:
    """Return the F1 of runs of four words."""

    def runs(of: str) -> Counter[tuple[str, ...]]:
        found = re.findall(r"[^\s|]+", of.replace("- ", " "))
        return Counter(tuple(found[i : i + 4]) for i in range(len(found) - 3))

    a, b = runs(gold), runs(text)
    same = (a & b).total()
    return 2 * same / max(1, a.total() + b.total())


def wikitext(blocks: list[Block]) -> str:
    made = ["{{Infobox|name={{nowrap|x}}|a=[[b|c]]}}", "[[File:x.jpg|thumb|A [[map]]]]"]
    for kind, content in blocks:
        if kind == "heading":
            made.append(f"== {content} ==")
        elif kind == "paragraph":
            first, _, rest = content.partition(" ")
            noise = "<ref name=a>{{cite|x=[[y]]}}</ref>{{citation needed|date=1}}<!-- [[x]] -->"
            made.append(f"'''[[Page|{first}]]''' {rest}{noise}\n")
        elif kind == "list":
            made += [f"* ''{item}''" for item in content]
        else:
            rows = ["\n|-\n| style=x | " + " || ".join(row) for row in content]
            made.append('{| class="w"' + "".join(rows) + "\n|}")
    return "\n".join([*made, "== References ==", "{{Reflist}}", "[[Category:X]]", "[[de:X]]"])


def latex(blocks: list[Block]) -> str:
    made = ["\\documentclass{article}\n\\title{T \\emph{u}}\n\\begin{document}\n\\maketitle"]
    for kind, content in blocks:
        if kind == "heading":
            made.append(f"\\section{{{content}}}\\label{{sec:x}}")
        elif kind == "paragraph":
            first, _, rest = content.partition(" ")
            made.append(f"\\textbf{{{first}}} % told\n{rest}\\cite{{a,b}}\\footnote{{No.}}\n")
        elif kind == "list":
            items = "".join(f"\n\\item \\emph{{{item}}}" for item in content)
            made.append("\\begin{itemize}" + items + "\n\\end{itemize}")
        else:
            rows = " \\\\\n".join(" & ".join(row) for row in content)
            made.append("\\begin{tabular}{|l|l|l|}\n" + rows + "\n\\end{tabular}\n")
    return "\n".join([*made, "\\end{document}\nbehind"])


def html(blocks: list[Block]) -> str:
    made = []
    for kind, content in blocks:
        if kind == "list":
            made.append("<ul>" + "".join(f"<li>{escape(i)}</li>" for i in content) + "</ul>")
        elif kind == "table":
            rows = ("".join(f"<td>{escape(c)}</td>" for c in row) for row in content)
            made.append("<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>")
        else:
            tag = "h2" if kind == "heading" else "p"
            made.append(f"<{tag}>{escape(content)}</{tag}>")
    return "".join(made)


def docx(blocks: list[Block]) -> bytes:
    def paragraph(text: str, style: str = "") -> str:
        half = len(text) // 2
        runs = f"<w:r><w:t>{text[:half]}</w:t></w:r><w:del><w:r><w:delText>x</w:delText></w:r>"
        runs += f"</w:del><w:r><w:instrText>PAGE</w:instrText><w:t>{text[half:]}</w:t></w:r>"
        return f"<w:p><w:pPr>{style}</w:pPr>{runs}</w:p>"

    made = []
    for kind, content in blocks:
        if kind == "list":
            made += [paragraph(item, "<w:numPr/>") for item in content]
        elif kind == "table":
            rows = ("".join(f"<w:tc>{paragraph(c)}</w:tc>" for c in row) for row in content)
            made.append("<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in rows) + "</w:tbl>")
        else:
            style = '<w:pStyle w:val="berschrift2"/>' if kind == "heading" else ""
            made.append(paragraph(content, style))
    styles = '<w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>'
    return package(
        {
            "word/document.xml": f"<w:document xmlns:w='w'>{''.join(made)}</w:document>",
            "word/styles.xml": f"<w:styles xmlns:w='w'>{styles}</w:styles>",
            "docProps/core.xml": "<c xmlns:dc='dc'><dc:title>A  title</dc:title></c>",
        }
    )


def odt(blocks: list[Block]) -> bytes:
    made = []
    for kind, content in blocks:
        if kind == "list":
            items = (f"<text:list-item><text:p>{i}</text:p></text:list-item>" for i in content)
            made.append(f"<text:list>{''.join(items)}</text:list>")
        elif kind == "table":
            cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
            rows = ("".join(map(cell.format, row)) for row in content)
            rows = (f"<table:table-row>{row}</table:table-row>" for row in rows)
            made.append(f"<table:table>{''.join(rows)}</table:table>")
        elif kind == "heading":
            made.append(f'<text:h text:outline-level="2">{content}</text:h>')
        else:
            text = content.replace(" ", "<text:s/>", 1)
            note = "<text:note><text:note-body><text:p>No</text:p></text:note-body></text:note>"
            made.append(f"<text:p>{text}{note}</text:p>")
    names = "xmlns:text='t' xmlns:table='b'"
    return package(
        {
            "content.xml": f"<doc {names}>{''.join(made)}</doc>",
            "meta.xml": "<c xmlns:dc='dc'><dc:title>A title</dc:title></c>",
        }
    )


def epub(blocks: list[Block]) -> bytes:
    half = len(blocks) // 2
    page = (
        "<?xml version='1.0'?><!DOCTYPE html><html xmlns='x'><head><title/></head><body><a id='x'/>"
    )
    chapters = {
        f"OEBPS/a {n}.xhtml": f"{page}{html(some)}</body></html>"
        for n, some in enumerate((blocks[:half], blocks[half:]))
    }
    items = "".join(f'<item id="c{n}" href="a%20{n}.xhtml"/>' for n in (1, 0))
    spine = "".join(f'<itemref idref="c{n}"/>' for n in (0, 1))
    return package(
        {
            **chapters,
            "META-INF/container.xml": '<c><rootfile full-path="OEBPS/b.opf"/></c>',
            "OEBPS/b.opf": f"<p xmlns:dc='d'><dc:title>A title</dc:title>{items}{spine}</p>",
        }
    )


def package(files: dict[str, str | bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return made.getvalue()


def wiki_page(title: str, text: str, namespace: int = 0, more: str = "") -> str:
    revision = "<revision><timestamp>2024-05-06T07:08:09Z</timestamp><model>wikitext</model>"
    return (
        f"<page><title>{escape(title)}</title><ns>{namespace}</ns>{more}{revision}"
        f'<text bytes="1" xml:space="preserve">{escape(text)}</text></revision></page>\n'
    )


_SITE = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="de"><siteinfo>'
    "<base>https://de.wiki.example/wiki/Start</base><namespaces>"
    '<namespace key="6" case="first-letter">Datei</namespace></namespaces></siteinfo>\n'
)


def dump(pages: list[str]) -> bytes:
    return f"{_SITE}{''.join(pages)}</mediawiki>".encode()


def posts(rows: list[dict[str, Any]]) -> bytes:
    lines = (
        "  <row " + " ".join(f'{k}="{escape(str(v))}"' for k, v in row.items()) + " />\n"
        for row in rows
    )
    text = '\ufeff<?xml version="1.0" encoding="utf-8"?>\n<posts>\n' + "".join(lines)
    return (text + "</posts>").encode()


def post(number: int, body: str, question: int = 0, votes: int = 0, **more: Any) -> dict[str, Any]:
    kind = {"ParentId": question} if question else {"Title": f"T{number}", "Tags": "<a><b-c>"}
    return {
        "Id": number,
        "PostTypeId": 2 if question else 1,
        "CreationDate": "2024-05-06T07:08:09.123",
        "Score": votes,
        "Body": body,
        "ContentLicense": "CC BY-SA 4.0",
        **kind,
        **more,
    }


def mail(subject: str, body: str, kind: str = "plain", number: int = 1) -> str:
    return (
        f"From a@b.example Mon May  6 07:08:09 2024\nSubject: {subject}\nMessage-ID: <{number}@x>\n"
        "Date: Mon, 06 May 2024 07:08:09 +0200\nMIME-Version: 1.0\n"
        f"Content-Type: text/{kind}; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{body}\n\n"
    )


def events_of(path: Path, data: bytes, **settings: Any) -> list[Event]:
    path.write_bytes(data)
    return list(read(str(path), default_settings(**settings)))


def text_of(page: Event) -> str:
    assert isinstance(page, Page)
    if page.kind == "text":
        return page.content.decode()
    assert page.is_whole
    return Extractor(extract_settings()).extract(page.content, whole=True).text


_MAKERS: dict[str, Callable[[list[Block]], bytes]] = {
    "a.docx": docx,
    "a.odt": odt,
    "a.epub": epub,
    "a.tex": lambda blocks: latex(blocks).encode(),
    "a.xml": lambda blocks: dump([wiki_page("T", wikitext(blocks))]),
    "Posts.xml": lambda blocks: posts([post(1, html(blocks))]),
    "a.mbox": lambda blocks: mail("T", html(blocks), "html").encode(),
}


@pytest.mark.parametrize("name", _MAKERS)
def test_the_text_that_went_in(name: str, tmp_path: Path) -> None:
    scores = []
    for seed in range(20):
        blocks = blocks_of(random.Random(seed))
        (page,) = events_of(tmp_path / name, _MAKERS[name](blocks))
        scores.append(score(plain(blocks), text_of(page)))
    assert sum(scores) / len(scores) >= 0.97, (scores, text_of(page))


def test_articles_of_a_dump(tmp_path: Path) -> None:
    pages = [
        wiki_page("Biene & Wespe", "Eine '''Biene'''. [[Datei:x.jpg|mini|Nein]]"),
        wiki_page("Diskussion:Biene", "Rede", namespace=1),
        wiki_page("Imme", "#WEITERLEITUNG [[Biene]]", more='<redirect title="Biene" />'),
        "<page><title>Kaputt</title><ns>0</ns>",
        wiki_page("Böse", "<nowiki>[[x]]</nowiki> &lt;b&gt;"),
        "<page><title>Nochmal</ti></page>\n",
        wiki_page("Ende", "Gut"),
    ]
    found = events_of(tmp_path / "a.xml", dump(pages))
    first, talk, redirect, broken, second, wrong, last = found
    assert isinstance(first, Page)
    assert first.url == "https://de.wiki.example/wiki/Biene_&_Wespe"
    assert (first.fields, str(first.date)) == (
        {"title": "Biene & Wespe"},
        "2024-05-06 07:08:09+00:00",
    )
    assert text_of(first) == "Eine Biene."
    assert (talk, redirect) == (Skipped("namespace:1"), Skipped("redirect"))
    assert [e.reason for e in (broken, wrong) if isinstance(e, Damage)] == ["mediawiki.bad_xml"] * 2
    assert text_of(second) == "[[x]] <b>"
    assert text_of(last) == "Gut"
    assert [e.offset for e in found if isinstance(e, Page)] == [0, 4, 6]
    assert read_at(str(tmp_path / "a.xml"), 4, default_settings()) == second
    packed = events_of(tmp_path / "a.xml.gz", gzip.compress(dump(pages)))
    assert packed == found
    begun = b"\xef\xbb\xbf<?xml version='1.0'?>\r\n<!-- of May -->\r\n" + dump(pages)
    assert events_of(tmp_path / "b.xml", begun) == found
    part = events_of(tmp_path / "wiki-pages-articles1.xml-p1p41242.bz2", bz2.compress(dump(pages)))
    assert part == found


@pytest.mark.parametrize(
    ("odd", "read"),
    [
        (b"&#x0E;", "\ufffd"),  # as in the dump of apple.stackexchange.com
        (b"&#xD800;&#56320;", "\ufffd\ufffd"),
        (b"\x0b\xef\xbf\xbe", "\ufffd\ufffd"),
        (b"harb\xffour", "harb\ufffdour"),
        (b"&#8984; &#x2318; &#60;", "\u2318 \u2318 <"),
    ],
)
def test_characters_that_xml_does_not_have_cost_no_record(
    odd: bytes, read: str, tmp_path: Path
) -> None:
    article = dump([wiki_page("Biene", "Text X.")]).replace(b"X", odd)
    thread = posts([post(7, "Wie?"), post(9, "Text X.", question=7)]).replace(b"X", odd)
    for path, data in ((tmp_path / "a.xml", article), (tmp_path / "Posts.xml", thread)):
        (page,) = events_of(path, data)
        assert isinstance(page, Page) and f"Text {read}." in text_of(page).replace("&lt;", "<")
        assert page.mended == ("xml.bad_character" if "\ufffd" in read else "")


def test_streams_of_a_dump_behind_one_that_is_broken(tmp_path: Path) -> None:
    streams = [bz2.compress(_SITE.encode())]
    for n in range(4):
        pages = "".join(wiki_page(f"P{n}-{k}", f"Text {n} {k}. " * 200) for k in range(20))
        streams.append(bz2.compress(pages.encode()))
    sound = events_of(tmp_path / "a.xml.bz2", b"".join(streams))
    assert len(sound) == 80 and all(isinstance(event, Page) for event in sound)
    streams[2] = streams[2][: len(streams[2]) // 2]
    found = events_of(tmp_path / "a.xml.bz2", b"".join(streams))
    titles = {(e.fields or {}).get("title") for e in found if isinstance(e, Page)}
    assert {f"P{n}-{k}" for n in (0, 2, 3) for k in range(20)} <= titles
    assert "bzip2.corrupt" in {e.reason for e in found if isinstance(e, Damage)}
    cut = events_of(tmp_path / "a.xml.bz2", b"".join(streams[:2])[:-20])
    assert {e.reason for e in cut if isinstance(e, Damage)} & {"bzip2.truncated"}


def test_questions_with_their_answers(tmp_path: Path) -> None:
    rows = [
        post(4, "<p>Erst & gut</p>", question=7, votes=3),
        post(7, "<p>Wie?</p><pre><code>a  b\n  c</code></pre>", votes=5, AcceptedAnswerId=9),
        post(8, "<p>Mehr</p>", question=7, votes=11),
        post(9, "<p>So</p>", question=7, votes=-1),
        post(10, "<p>Wem?</p>", question=99),
        post(11, "<p>Was?</p>"),
        {"Id": 12, "PostTypeId": 5, "Body": "x"},
        {"Id": "x", "PostTypeId": 1},
    ]
    found = events_of(tmp_path / "Posts.xml", posts(rows))
    pages = [event for event in found if isinstance(event, Page)]
    assert [text_of(page).split() for page in pages] == [
        "T7 Wie? a b c So Mehr Erst & gut".split(),
        "T11 Was?".split(),
    ]
    assert pages[0].fields == {
        "title": "T7",
        "score": 5,
        "accepted": True,
        "answer_scores": [-1, 11, 3],
        "tags": ["a", "b-c"],
        "license": "CC BY-SA 4.0",
    }
    reasons = [e.reason for e in found if not isinstance(e, Page)]
    assert sorted(reasons) == [
        "post_type:5",
        "stackexchange.bad_post",
        "stackexchange.no_question",
    ]
    kinds = others_of(str(tmp_path / "Posts.xml"), "Posts.xml", default_settings())
    assert "answer_scores" in kinds
    last = pages[-1]
    assert read_at(str(tmp_path / "Posts.xml"), last.offset, default_settings()) == last


def test_messages_of_a_mailbox(tmp_path: Path) -> None:
    attached = (
        "From a\nSubject: =?utf-8?q?B=C3=A4r?=\nContent-Type: multipart/mixed; boundary=Q\n\n"
        "--Q\nContent-Type: text/plain; charset=latin-1\n"
        "Content-Transfer-Encoding: quoted-printable\n\nGr=FC=DFe\n--Q\n"
        "Content-Type: image/png\n\nxx\n--Q--\n\n"
    )
    image = "From a\nContent-Type: image/png\n\nxx\n\n"
    text = mail("Zeit", "Hallo\n>From hier\nFrom dort", number=3)
    data = (attached + image + text + mail("H", "<p>Ja</p>", "html")).encode()
    bear, picture, quoted, made = events_of(tmp_path / "a.mbox", data)
    assert isinstance(bear, Page) and isinstance(quoted, Page)
    assert (text_of(bear).strip(), (bear.fields or {})["title"], bear.url) == ("Grüße", "Bär", "")
    assert isinstance(picture, Damage) and picture.reason == "mailbox.no_text"
    assert text_of(quoted) == "Hallo\nFrom hier\nFrom dort"
    assert (quoted.url, str(quoted.date)) == ("mid:3@x", "2024-05-06 05:08:09+00:00")
    assert text_of(made) == "Ja"
    odd = mail("H", "Hi\n\nFrom here on it is text.") + mail("L", "Grüße aus Köln, schöne Grüße")
    odd = odd.replace("charset=utf-8", "charset=x-unknown")
    (said, german) = events_of(tmp_path / "c.mbox", odd.encode("cp1252"))
    assert isinstance(said, Page) and isinstance(german, Page)
    assert text_of(said) == "Hi\n\nFrom here on it is text."
    assert text_of(german) == "Grüße aus Köln, schöne Grüße"
    big = events_of(
        tmp_path / "b.mbox", (mail("A", "x" * 5000) + text).encode(), max_record_bytes=1024
    )
    assert [getattr(e, "reason", "") for e in big] == ["mailbox.too_large", ""]


def test_what_latex_says(tmp_path: Path) -> None:
    source = r"""\newcommand{\sys}{Foo\-Bar}
\begin{document}
\section*{Intro}
The \sys{} costs 5\% of \$10: na\"{\i}ve caf\'e, $a_i \le \$5$ \textcolor{red}{now}.
\begin{equation} E = mc^2 % so
\end{equation}
\begin{lstlisting}[language=C]
int x;  % 2
\end{lstlisting}
Write \verb|50%| and go.
\begin{comment}no\end{comment}
\end{document}"""
    (page,) = events_of(tmp_path / "a.tex", source.encode())
    assert text_of(page).split("\n\n") == [
        "Intro",
        r"The FooBar costs 5% of $10: naïve café, $a_i \le \$5$ now.",
        "\\begin{equation} E = mc^2 % so\n\\end{equation}",
        "int x;  % 2",
        "Write 50% and go.",
    ]


def test_latex_as_pandoc_and_papers_have_it(tmp_path: Path) -> None:
    source = r"""\def\eg{e.g.}
\begin{document}
\section[a \texttt{b}]{\texorpdfstring{\protect\hypertarget{x}{}{}a \texttt{b}}{a b}}\label{x}
It\textquotesingle s \textless{}b\textgreater{}, \eg{} one~\cite{c}, \textcolor{red}{two}.
\begin{itemize}
\item three
\end{itemize}

{\def\LTcaptype{none} % no number
\begin{longtable}[]{@{}ll@{}}
\multirow{2}{*}{four} & five \\
\end{longtable}
}
\begin{center}
{\large six}
\end{center}
\begin{Highlighting}[]
\NormalTok{$ echo "$x" \textgreater{} a\_b}
\NormalTok{seven}
\end{Highlighting}
Eight \(x\).
\end{document}"""
    (page,) = events_of(tmp_path / "a.tex", source.encode())
    assert text_of(page).split("\n\n") == [
        "a b",
        "It's <b>, e.g. one, two.",
        "- three",
        "four \t five",
        "six",
        '$ echo "$x" > a_b\nseven',
        r"Eight \(x\).",
    ]


_BOMB = "<!DOCTYPE a [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
    f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(9)
)
_BINARY = b"\x7fELF\2\1\1" + random.Random(1).randbytes(999)
_ZEROS = b"<w:document xmlns:w='w'>" + b" " * (4 << 20)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.docx", package({"word/document.xml": _BOMB + "]><w>&j;</w>"}), "office.corrupt"),
        ("a.docx", package({"word/document.xml": _ZEROS}), "office.too_large"),
        ("a.docx", package({"x": "y"}), "office.no_document"),
        ("a.docx", docx([("paragraph", "x")])[:-30], "office.corrupt"),
        ("a.docx", b"<html>no package", "office.corrupt"),
        ("a.docx", docx([("paragraph", "x")])[:300], "office.corrupt"),
        ("a.epub", epub([("paragraph", "x")])[:300], "office.corrupt"),
        ("a.odt", package({"content.xml": b"\0\1\2" * 999}), "office.corrupt"),
        ("a.odt", package({"content.xml": "<a><b></a>"}), "office.corrupt"),
        ("a.epub", package({"META-INF/container.xml": "<a/>"}), "office.corrupt"),
        ("a.xml", _SITE.encode() + b"<page>" + b"x" * (2 << 20), "mediawiki.too_large"),
        ("a.xml", _SITE.encode() + f"<page>{_BOMB}]>&j;</page>".encode(), "mediawiki.bad_xml"),
        ("a.xml", _SITE.encode() + b"<page><title>", "mediawiki.truncated"),
        ("a.xml", _SITE.encode(), "mediawiki.no_record"),
        ("a.xml", b"<posts><rov Id='1' />", "stackexchange.no_record"),
        ("a.xml", b"<posts><row Id='1' PostTypeId='1' &j; />", "stackexchange.bad_xml"),
        ("a.tex", b"\\begin{document}" + b"{" * (2 << 20), "latex.too_large"),
        ("a.tex", _BINARY, "http.binary"),
        ("a.tex.gz", gzip.compress(_BINARY, mtime=0), "http.binary"),
        ("a.tex", package({"a.tex": "x"}), "wacz.no_archive"),
        ("a.csv", _BINARY, "file.unknown_format"),
        ("Posts.7z", b"7z\xbc\xaf\x27\x1c" + _BINARY, "file.unknown_format"),
        ("a.tsv", package({"a.tsv": "text"}), "wacz.no_archive"),
        ("a.xml", _BINARY, "file.unknown_format"),
        ("a.mbox", _BINARY, "mailbox.garbage"),
        ("a.mbox", mail("A", "\1\2\3" * 99).encode(), "mailbox.no_text"),
        *((f"a{suffix}", b"", "file.empty") for suffix in READ if suffix != ".wacz"),
        ("a.csv.gz", gzip.compress(b"", mtime=0), "file.unknown_format"),
    ],
)
def test_hostile_files(name: str, data: bytes, reason: str, tmp_path: Path) -> None:
    found = events_of(tmp_path / name, data, max_record_bytes=1 << 20)
    assert reason in [event.reason for event in found if isinstance(event, Damage)]
    assert not [event for event in found if isinstance(event, Page)]


@pytest.mark.parametrize(
    "part",
    [
        "{{",
        "[[",
        "]]}}",
        "{|\n",
        "<math>",
        "<ref>",
        "*#:",
        "=",
        "[http://",
        "'''",
        "<!--",
        "|\n",
        "a",
    ],
)
def test_wikitext_that_never_ends(part: str) -> None:
    """Takes minutes if it isn't linear."""
    to_html(part * 100_000, frozenset({"file"}))
    to_html("[http://" + part * 100_000, frozenset({"file"}))


@pytest.mark.parametrize("part", ["<body", "<a", "a", "/", "<a /"])
def test_chapters_that_never_end(part: str, tmp_path: Path) -> None:
    book = epub([("paragraph", "x")])
    with zipfile.ZipFile(io.BytesIO(book)) as file:
        files: dict[str, str | bytes] = {n: file.read(n) for n in file.namelist()}
    files["OEBPS/a 1.xhtml"] = "<" + part * 100_000
    (page,) = events_of(tmp_path / "a.epub", package(files))
    assert isinstance(page, Page)


@pytest.mark.parametrize("part", ["<base>/", "/", '<namespace key="6"', ">"])
def test_heads_of_dumps_that_never_end(part: str, tmp_path: Path) -> None:
    head = f"<mediawiki><base>{part * 100_000}"
    found = events_of(tmp_path / "a.xml", (head + wiki_page("T", "Text")).encode())
    assert isinstance(found[-1], Page)


@pytest.mark.parametrize(
    "part",
    [
        "{",
        "$",
        "\\(",
        "\\begin{a}",
        "\\label{",
        "\\label{a}",
        "\\begin{verbatim}",
        "\\section{",
        "\\$",
        "%",
        "~",
    ],
)
def test_latex_that_never_ends(part: str, tmp_path: Path) -> None:
    (page,) = events_of(tmp_path / "a.tex", b"\\begin{document}" + part.encode() * 100_000)
    assert isinstance(page, Page)


def test_verbatim_latex_that_never_ends(tmp_path: Path) -> None:
    """Each with another mark, and no second one."""
    source = "".join(f"\\verb{chr(0x4E00 + n)}" for n in range(20_000))
    (page,) = events_of(tmp_path / "a.tex", source.encode())
    assert isinstance(page, Page)


@pytest.mark.parametrize(
    ("recipe", "name", "data"),
    [
        (
            "wikipedia",
            "dewiki.xml.bz2",
            bz2.compress(_MAKERS["a.xml"](blocks_of(random.Random(1)))),
        ),
        ("stackexchange", "Posts.xml", posts([post(1, "<p>Wie?</p>"), post(2, "<p>So.</p>", 1)])),
    ],
)
def test_recipes_for_a_downloaded_file(recipe: str, name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    made = load(recipe)
    work = plan(made, str(tmp_path / "out"), [str(tmp_path / name)], ["extract"])
    with Executor(parse_beam_args([], 0)) as executor:
        run_plan(work, executor)
    (file,) = (tmp_path / "out/extract/documents").glob("*.parquet")
    (document,) = pq.read_table(file).to_pylist()
    assert document["title"]
    if recipe == "stackexchange":
        assert (document["answer_scores"], document["license"]) == ([0], "CC BY-SA 4.0")
