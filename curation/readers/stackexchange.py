"""Posts of Stack Exchange's data dump (`Posts.xml`): a question and its answers are one document.

Answers come in any place behind their question, so posts are sorted on disk first, in the temporary
folder, which takes about the room of the file. The accepted answer comes first, then those of
higher score. Posts of other types (tag wikis, ...) are skipped and counted.
"""

import html
import itertools
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from curation.errors import StoreError
from curation.readers.records import Fault, Row, Skipped
from curation.readers.xml_records import elements, parsed

COLUMNS = {
    "score": pa.int64(),
    "accepted": pa.bool_(),  # whether the first answer is the accepted one
    "answer_scores": pa.list_(pa.int64()),  # in the order of the answers
    "tags": pa.list_(pa.string()),
    "license": pa.string(),
}
_QUESTION, _ANSWER = "1", "2"
_TAG = re.compile(r"[^<>|]+")
_TABLE = "CREATE TABLE posts (question INTEGER, is_answer INTEGER, id INTEGER, post BLOB)"
_SORTED = "SELECT question, post FROM posts ORDER BY question, is_answer, id, rowid"


def rows(file: IO[bytes], longest: int) -> Iterator[Row]:
    """Yield what is no post, then a row for each question, by their numbers.

    Raises StoreError where the temporary folder is full.
    """
    try:
        with (
            tempfile.TemporaryDirectory(prefix="curation-posts-") as folder,
            closing(sqlite3.connect(Path(folder) / "posts", isolation_level=None)) as posts,
        ):
            posts.execute("PRAGMA journal_mode=OFF")
            posts.execute(_TABLE)
            posts.execute("BEGIN")
            yield from _stored(posts, file, longest)
            found = posts.execute(_SORTED)
            for _, group in itertools.groupby(found, key=lambda row: row[0]):
                yield from _documents((post for _, post in group), longest)
    except sqlite3.OperationalError as error:
        raise StoreError(f"{tempfile.gettempdir()}: {error}") from error


def _stored(posts: sqlite3.Connection, file: IO[bytes], longest: int) -> Iterator[Fault | Skipped]:
    """Store the posts; yield what is none."""
    for element in itertools.islice(elements(file, b"<row ", b"/>", longest), 1, None):
        found = element if isinstance(element, Fault) else parsed(element)
        if isinstance(found, Fault):
            yield found
            continue
        post = found[0]
        kind = post.get("PostTypeId", "")
        if kind not in (_QUESTION, _ANSWER):
            yield Skipped(f"post_type:{kind if kind.isdecimal() else 'unknown'}")
            continue
        number, question = post.get("Id", ""), post.get("ParentId", "")
        question = number if kind == _QUESTION else question
        if not (number.isascii() and number.isdecimal() and question.isdecimal()):
            yield Fault("bad_post", f"Id {number[:20]!r}, ParentId {question[:20]!r}")
            continue
        row = (int(question[:18]), kind == _ANSWER, int(number[:18]), element)
        posts.execute("INSERT INTO posts VALUES (?, ?, ?, ?)", row)


def _documents(posts: Iterator[bytes], longest: int) -> Iterator[Row]:
    """Yield the document of a question with its answers; faults for what has no question."""
    size, held, told = 0, list[Mapping[str, str]](), ""
    for post in posts:
        size += len(post)
        if size > longest:
            yield Fault("too_large", f"over {longest} bytes (readers.max_record_bytes)")
            return
        element = parsed(post)
        assert not isinstance(element, Fault)  # it was parsed when it was stored
        found, mended = element
        is_question = found.get("PostTypeId") == _QUESTION
        if held and is_question:
            yield Fault("bad_post", f"a second question {found.get('Id')}")
        elif not held and not is_question:
            what = f"answer {found.get('Id')} to {found.get('ParentId')}"
            yield Fault("no_question", f"{what}, which is not in the file")
        else:
            held.append(found.attrib)
            told = told or mended
    if held:
        yield _document(held[0], held[1:]), told


def _document(question: Mapping[str, str], answers: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    accepted = question.get("AcceptedAnswerId", "")
    ordered = sorted(answers, key=lambda post: (post.get("Id") != accepted, -_score(post)))
    title = question.get("Title", "")
    parts = [f"<h1>{html.escape(title, quote=False)}</h1>"]
    parts += (f"<div>{post.get('Body', '')}</div>" for post in (question, *ordered))
    return {
        "html": "\n<hr>\n".join(parts),
        "title": title,
        "date": question.get("CreationDate"),
        "score": _score(question),
        "accepted": bool(ordered) and ordered[0].get("Id") == accepted,
        "answer_scores": [_score(post) for post in ordered],
        "tags": _TAG.findall(question.get("Tags", "")),
        "license": question.get("ContentLicense"),
    }


def _score(post: Mapping[str, str]) -> int:
    score = post.get("Score", "0")
    return int(score) if re.fullmatch(r"-?[0-9]{1,18}", score) else 0
