"""Settings of the readers."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from curation.config import Settings
from curation.user_code import CodeSettings, UserCode

#: Bytes kept of each damaged place: enough to see what it is.
KEEP_RAW_BYTES = 4096
#: The MIME type that asks for PDF, and how PDF begins.
PDF, PDF_MAGIC = "application/pdf", b"%PDF-"
#: What to do about a table without texts.
NAME_COLUMN = "name its column of texts: --set readers.text_columns=[NAME]"

Suffix = Annotated[str, Field(pattern=r"^\.[A-Za-z0-9.]+$")]


class FormatCode(UserCode):
    """A function of an open binary file that yields rows."""

    group: ClassVar[str] = "curation.readers"


class CustomFormat(CodeSettings):
    """A custom file format."""

    python: FormatCode = Field(
        description="function of an open binary file that yields mappings of column to value"
    )


class ReaderSettings(Settings):
    """What to read and how much of it; the defaults are in `configs/defaults/readers.yaml`."""

    sample: float | None = Field(
        gt=0, le=1, description="share of the documents to read, drawn by address; null: all"
    )
    record_types: tuple[str, ...] = Field(
        description="WARC record types that may hold a document; ARC records count as `response`"
    )
    text_types: tuple[str, ...] = Field(
        description="MIME types read as plain text, in lower case; `*` matches anything but HTML"
    )
    pdf: bool = Field(description="read PDF files and records (extra `pdf`)")
    max_record_bytes: int = Field(
        ge=1024, description="larger records, lines and decoded bodies are set aside, in bytes"
    )
    keep_truncated: bool = Field(
        description="keep the readable part of a truncated record as a page; false: set it aside"
    )
    text_columns: tuple[str, ...] = Field(
        description="tables: the first of these that a row has is its text"
    )
    html_columns: tuple[str, ...] = Field(
        description="tables: the first of these that a row has is its HTML, unless it has text"
    )
    url_columns: tuple[str, ...] = Field(
        description="tables: the first of these that a row has is its URL"
    )
    normalize_text: Literal["none", "nfc", "repair"] | None = Field(
        description="what becomes of text that is not HTML: nothing (`none`), Unicode's composed "
        "form (`nfc`), or also trimmed lines and mojibake undone (`repair`); null: `none` for "
        "texts in tables, `repair` for plain text in archives and files"
    )
    index: dict[Literal["base", "where"], str] = Field(
        description="tables that name records of archives: `base`, the folder or URL where these "
        "are, and `where`, a condition of SQL on the rows"
    )
    formats: dict[Suffix, CustomFormat] = Field(
        description="custom file formats, by suffix such as `.chat`"
    )
    split_bytes: int = Field(
        ge=1024,
        description="larger files are read by several tasks, in ranges of at most this many bytes",
    )
    date_columns: tuple[str, ...] = Field(
        description="tables: the first of these that a row has is its date"
    )

    @property
    def own_suffixes(self) -> tuple[str, ...]:
        """Suffixes that are read besides those that always are."""
        return (*self.formats, ".pdf") if self.pdf else (*self.formats,)

    @property
    def contents(self) -> tuple[str, ...]:
        """Columns of texts, and of pages."""
        return (*self.text_columns, *self.html_columns)

    @property
    def most(self) -> str:
        """The largest record, with the setting's name, for what is set aside."""
        return f"{self.max_record_bytes} bytes (readers.max_record_bytes)"
