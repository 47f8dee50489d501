"""What the suffixes of input files say: their format, and how they are compressed."""

#: Codecs by suffix.
COMPRESSED = {
    ".gz": "gzip",
    ".lz4": "lz4",
    ".bz2": "bzip2",
    ".xz": "xz",
    ".zst": "zstd",
    ".zstd": "zstd",
}
#: JSON with an object a line, or (`.json`) over several, or an array.
JSON_LINES = (".jsonl", ".ndjson", ".json")
TABLES = (".parquet", ".arrow", *JSON_LINES, ".csv", ".tsv")
HTML = (".html", ".htm", ".xhtml")
ARCHIVES = (".warc", ".arc", ".wet", ".wat", ".wacz")
OFFICE = (".docx", ".odt", ".epub")
#: Those that are read in a folder, without the user's own.
READ = (*ARCHIVES, *TABLES, *HTML, *OFFICE, ".mbox", ".txt")


def without_compression(name: str) -> str:
    """Return a file's name in lower case without the suffix of its compression."""
    lower = name.lower()
    return next((lower.removesuffix(s) for s in COMPRESSED if lower.endswith(s)), lower)
