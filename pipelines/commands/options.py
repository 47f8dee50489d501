"""Options and argument types shared by several commands."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.errors import ConfigError

if TYPE_CHECKING:
    from pipelines.storage.files import Folder


def add_set(parser: argparse.ArgumentParser, what: str, example: str) -> None:
    """Declare `--set KEY=VALUE`, applied by `curation.config.assign`."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="assignments",
        help=f"change a value of {what}, e.g. --set {example} (repeatable)",
    )


def add_recipe_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of every command that runs stages."""
    parser.set_defaults(beam_args=[])
    add_set(parser, "the recipe", "dedup-documents.verify.threshold=0.8")
    add_workers(parser, "local processes (default: one per CPU; 0: run inside this process)")
    text = "start over instead of resuming; also remove what an earlier recipe left"
    add_flag(parser, "--fresh", text)
    parser.add_argument(
        "--no-sync",
        action="store_false",
        dest="sync",
        help="don't wait for files to reach the disk: for scratch disks; a power failure may lose "
        "finished work",
    )
    add_flag(parser, "--strict", "stop at a stage that raises an alarm (exit code 1)")
    add_dry_run(parser)
    add_json(parser, "with --dry-run: ")
    add_flag(parser, "--quiet", "show no progress and no summary")
    parser.add_argument(
        "--log-format",
        choices=["auto", "bar", "plain"],
        default="auto",
        help="progress as live bars or plain lines (default: bars on a terminal, else lines)",
    )


def add_index(parser: argparse.ArgumentParser) -> None:
    """Declare `--index`."""
    parser.add_argument(
        "--index",
        action="append",
        default=[],
        metavar="RUN",
        help="also deduplicate against this finished run (repeatable; the first has priority)",
    )


def read_text(path: str, option: str = "") -> str:
    """Return the text of a file that an option names. Raises ConfigError."""
    try:
        return Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{option} {path}: can't be read as text: {error}".lstrip()) from None


def port(text: str) -> int:
    """Parse a port number."""
    found = count(text, "a port number")
    if found >= 1 << 16:
        raise argparse.ArgumentTypeError(f"expected a port number below 65536, got {text}")
    return found


def count(text: str, what: str = "a number") -> int:
    """Parse a number, 0 or more."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"expected {what}, 0 or more, got {text!r}")
    return number


def add_flag(parser: argparse.ArgumentParser, name: str, help: str) -> None:
    """Declare an option without a value."""
    parser.add_argument(name, action="store_true", help=help)


def add_run(parser: argparse.ArgumentParser) -> None:
    """Declare `--run`."""
    parser.add_argument("--run", required=True, metavar="DIR", help="run folder")


def add_json(parser: argparse.ArgumentParser, when: str = "") -> None:
    """Declare `--json`."""
    add_flag(parser, "--json", f"{when}machine-readable")


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Declare `--dry-run`."""
    add_flag(parser, "--dry-run", "say what would be written, and write nothing")


def end_dry_run(
    options: argparse.Namespace,
    *places: Any,
    documents: int | None = None,
    known: bytes | None = b"",
) -> None:
    """Refuse places as `refuse_outputs` does; with `--dry-run`, print what would be written; exit.

    Args:
        documents: how many are written, if that is known.
    """
    from pipelines.storage.files import Folder  # slow

    folders = [Folder(getattr(p, "url", None) or str(p)) for p in places if p]
    # What has its own place in a run, which no option names, may be written there again.
    is_named = getattr(options, "output", None) or getattr(options, "prepared", None)
    refuse_outputs(folders, known, bool(is_named))
    if options.dry_run:
        _print_writes(folders, documents, getattr(options, "json", False))
        raise SystemExit(0)


def refuse_outputs(folders: Sequence[Folder], known: bytes | None, is_named: bool) -> None:
    """Raise ConfigError where a named place is a run's own, and for a file that is not replaced.

    That is one which does not begin with what is `known` of the command's own files; None: any.
    """
    from pipelines.run_folder import refuse_own  # slow

    for folder in folders:
        if is_named:  # what is withdrawn may be a run, which is withdrawn again
            refuse_own(folder, root=not folder.exists("withdrawn.json"))
        if known == b"" or not folder.fs.isfile(folder.path()):
            continue
        if known is None or folder.read_bytes("", end=len(known)) != known:
            raise ConfigError(
                f"{folder.shown}: already exists, and is not replaced; give another --output"
            )


def _print_writes(folders: Sequence[Folder], documents: int | None, as_json: bool) -> None:
    """Print what is in these places and would be written or replaced."""
    from pipelines.terminal import say, say_json  # slow

    found = []
    for folder in folders:
        sizes = (folder.tree() or {"": folder.size("") or 0}) if folder.exists() else {}
        found.append({"path": folder.shown, "files": len(sizes), "bytes": sum(sizes.values())})
    if as_json:
        say_json({"documents": documents, "writes": found})
        return
    for path, files, size in map(dict.values, found):
        say(f"would write {path} (now {files:,} files, {size:,} bytes)")
    say(f"{'' if documents is None else f'{documents:,} documents; '}nothing was written")


def add_workers(parser: argparse.ArgumentParser, help: str) -> None:
    """Declare `--workers`."""
    kind = functools.partial(count, what="a number of processes")
    parser.add_argument("--workers", type=kind, default=None, metavar="N", help=help)


def add_input(parser: argparse.ArgumentParser, help: str) -> None:
    """Declare `--input`, which may be repeated and takes several values each time."""
    many: dict[str, Any] = {"nargs": "+", "action": "extend", "default": []}
    parser.add_argument("--input", **many, metavar="PATH", help=help)
