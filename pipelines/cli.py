"""The command line: `curate`. Each command is a function; errors are one line on stderr."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Sequence

from curation import __version__
from curation.errors import ConfigError, CurationError, StoreError, WorkerError
from pipelines.commands import INDEXED_STAGES
from pipelines.commands.options import add_set
from pipelines.process import check_address_space, stoppable, temporary_folder
from pipelines.terminal import Warnings, tell

STAGE_COMMANDS = {
    "extract": "web archives, pages and tables to documents",
    "dedup-urls": "keep one capture of each URL",
    "identify-language": "add each document's language",
    "dedup-documents": "remove exact and near duplicates",
    "dedup-lines": "remove lines that repeat across documents",
    "filter": "measure and judge documents by heuristic rules",
    "classify": "score quality, domain, topic and format",
    "mix": "draw the training mixture",
    "tokenize": "write token shards",
}


_GOES_ON = "the same command goes on from here"


class _Parser(argparse.ArgumentParser):
    """Reports usage errors as one line."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise ConfigError(f"{message} (see `{self.prog} --help`)")


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point: 0 success, 2 usage or configuration error, 1 the run failed.

    130 after Ctrl-C and 143 after SIGTERM. Without `argv` the process is the command's own.
    """
    if argv is not None:
        return _main(list(argv))
    with stoppable(), temporary_folder():
        return _main(sys.argv[1:])


def _main(arguments: list[str]) -> int:
    logging.lastResort = Warnings(tell)
    own, beam = _split(arguments)
    debug = "--debug" in own
    if not debug:  # Beam logs the traceback of what fails in a step; here one line tells of it
        logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    try:
        options = build_parser().parse_args(own)
        options.beam_args = beam
        check_address_space()
        return int(options.command(options) or 0)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        if debug:
            tell("".join(traceback.format_exception(error)).rstrip())
        tell(f"curate: error: {line_of(error)}")
        return error.exit_code if isinstance(error, CurationError) else 1


def line_of(error: Exception) -> str:
    """What happened and what to do, in one line."""
    message = str(error)
    if isinstance(error, OSError):  # a full disk, a folder that may not be read
        place = f"{error.filename}: " if error.filename is not None else ""
        message = f"{place}{error.strerror or error}"
    if isinstance(error, OSError | StoreError | WorkerError) and _GOES_ON not in message:
        message = f"{message}; once that is mended, {_GOES_ON}"
    elif not isinstance(error, OSError | CurationError):
        message = f"{type(error).__name__}: {error} (this is a bug; --debug shows where)"
    return " ".join(message.split())


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" in arguments:
        at = arguments.index("--")
        return arguments[:at], arguments[at + 1 :]
    return arguments, []


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    parser = _Parser(
        prog="curate",
        description="Web crawls to clean, deduplicated, mixed and tokenised training shards.",
        epilog="example: curate run sample --output out",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"curate {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    _add_run(commands)
    for stage, purpose in STAGE_COMMANDS.items():
        _add_stage(commands, stage, purpose)
    _add_extract_file(commands)
    _add_why(commands)
    _add_report(commands)
    _add_verify(commands)
    _add_export(commands)
    _add_withdraw(commands)
    _add_train(commands)
    _add_worker_pool(commands)
    _add_listings(commands)
    return parser


def _command(
    commands: argparse._SubParsersAction, name: str, purpose: str, example: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=purpose,
        description=purpose[0].upper() + purpose[1:] + ".",
        epilog=f"example: {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _add_recipe_options(parser: argparse.ArgumentParser) -> None:
    add_set(parser, "the recipe", "dedup-documents.verify.threshold=0.8")
    parser.add_argument(
        "--workers",
        type=_workers,
        default=None,
        metavar="N",
        help="local processes (default: one per CPU; 0: run inside this process)",
    )
    parser.add_argument(
        "--exchange",
        choices=["auto", "files", "beam"],
        default="auto",
        help="how keys travel between shards: as files that many tasks read, or by Beam's "
        "GroupByKey (default: files here, beam on a cluster); the results are the same",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="start over instead of resuming; what an earlier recipe left goes, too",
    )
    parser.add_argument(
        "--no-sync",
        action="store_false",
        dest="sync",
        help="don't wait until files are on the disk: for scratch disks; a power failure may cost "
        "finished work",
    )
    parser.add_argument(
        "--strict", action="store_true", help="stop at a stage that raises an alarm (exit code 1)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress, no summary")
    parser.add_argument(
        "--log-format",
        choices=["auto", "bar", "plain", "json"],
        default="auto",
        help="progress as live bars, plain lines or JSON lines (default: bars, on a terminal)",
    )


def _add_index(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--index",
        action="append",
        default=[],
        metavar="RUN",
        help="deduplicate against this finished run, too (repeatable; the first has priority)",
    )


def _workers(text: str) -> int:
    return _number(text, "a number of processes")


def _port(text: str) -> int:
    port = _number(text, "the number of a port")
    if port >= 1 << 16:
        raise argparse.ArgumentTypeError(f"expected the number of a port, below 65536, got {text}")
    return port


def _count(text: str) -> int:
    return _number(text, "a number")


def _number(text: str, what: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"expected {what}, got {text!r}")
    return number


def _add_run(commands: argparse._SubParsersAction) -> None:
    parser = _command(
        commands,
        "run",
        "run all stages of a recipe",
        "curate run llama3 --input 'crawl/*.warc.gz' --output out\n"
        "         curate run fineweb --input s3://bucket/*.warc.gz --output s3://bucket/out -- "
        "--runner=FlinkRunner --flink_master=host:8081",
    )
    parser.add_argument("recipe", metavar="RECIPE", help="a recipe file or a built-in name")
    parser.add_argument(
        "--input",
        nargs="+",
        action="extend",
        default=[],
        metavar="GLOB",
        help="files, folders, globs or URLs; NAME=GLOB for an input that the recipe names",
    )
    parser.add_argument("--output", default="out", metavar="DIR", help="run folder (default: out)")
    parser.add_argument("--stages", default="", metavar="A,B", help="only these stages")
    _add_index(parser)
    _add_recipe_options(parser)
    parser.set_defaults(command=_run)


def _add_stage(commands: argparse._SubParsersAction, stage: str, purpose: str) -> None:
    at = list(STAGE_COMMANDS).index(stage)
    source = f"out/{list(STAGE_COMMANDS)[at - 1]}" if at else "'crawl/*.warc.gz'"
    parser = _command(
        commands, stage, purpose, f"curate {stage} --input {source} --output out --recipe llama3"
    )
    parser.add_argument(
        "--input",
        nargs="+",
        action="extend",
        default=[],
        required=stage != "filter",
        metavar="PATH",
        help="a stage folder, or files by path, glob or URL",
    )
    parser.add_argument(
        "--output",
        required=stage != "filter",
        metavar="DIR",
        help=f"run folder; the stage writes DIR/{stage}",
    )
    parser.add_argument("--recipe", default="llama3", metavar="RECIPE", help="default: llama3")
    if stage in INDEXED_STAGES:
        _add_index(parser)
    _add_recipe_options(parser)
    parser.set_defaults(command=_run, stages=stage)
    if stage == "mix":
        before = parser.add_mutually_exclusive_group()
        before.add_argument(
            "--plan", action="store_true", help="only count and show the token table of every mix"
        )
        before.add_argument(
            "--search", action="store_true", help="only propose shares, from small proxy runs"
        )
        parser.set_defaults(command=_mix)
    if stage == "filter":
        _add_what_if(parser)


def _add_what_if(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `--what-if`."""
    group = parser.add_argument_group(
        "other thresholds on a finished run",
        "curate filter --what-if --run out --sweep filter.rules.fineweb.line_punct.min=0.05,0.1",
    )
    group.add_argument(
        "--what-if",
        action="store_true",
        help="show what --set and --sweep would change, from the signals alone; nothing is written",
    )
    group.add_argument("--run", metavar="DIR", help="run folder")
    group.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="KEY=V1,V2,...",
        help="try each value; several sweeps try every combination (repeatable)",
    )
    group.add_argument(
        "--samples",
        type=_count,
        default=2,
        metavar="N",
        help="documents shown per change (default: 2)",
    )
    group.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(command=_filter)


def _add_extract_file(commands: argparse._SubParsersAction) -> None:
    parser = _command(
        commands,
        "extract-file",
        "show the main content of one page, and why it is what it is",
        "curate extract-file page.html --explain view.html\n"
        "         curate extract-file crawl.warc.gz@9763 --json",
    )
    parser.add_argument(
        "page",
        metavar="PAGE",
        help="an HTML file, - for standard input, or a record of an archive as FILE@OFFSET",
    )
    parser.add_argument("--url", metavar="URL", help="address of the page")
    parser.add_argument("--charset", metavar="NAME", help="encoding that the HTTP header named")
    parser.add_argument("--recipe", default="llama3", metavar="RECIPE", help="default: llama3")
    parser.add_argument("--engine", metavar="NAME", help="engine instead of the recipe's")
    parser.add_argument("--markdown", action="store_true", help="markdown instead of plain text")
    add_set(parser, "the recipe", "extract.comments=false")
    parser.add_argument("--json", action="store_true", help="text, title and facts as JSON")
    parser.add_argument(
        "--explain", metavar="OUT.html", help="write every block with its score, fate and reason"
    )
    parser.set_defaults(command=_extract_file)


def _add_why(commands: argparse._SubParsersAction) -> None:
    parser = _command(
        commands,
        "why",
        "every decision taken on one document",
        "curate why http://links0.example/partners.html --run out",
    )
    parser.add_argument("document", metavar="ID_OR_URL")
    parser.add_argument("--run", required=True, metavar="DIR", help="run folder")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(command=_why)


def _add_report(commands: argparse._SubParsersAction) -> None:
    parser = _command(
        commands, "report", "write report.html and report.json of a run", "curate report --run out"
    )
    parser.add_argument("--run", required=True, metavar="DIR", help="run folder")
    parser.set_defaults(command=_report)


def _add_verify(commands: argparse._SubParsersAction) -> None:
    parser = _command(
        commands,
        "verify",
        "whether a run's files, counts and tokens are what its manifests say",
        "curate verify --run out --sample 0.01",
    )
    parser.add_argument("--run", required=True, metavar="DIR", help="run folder")
    parser.add_argument(
        "--sample",
        type=float,
        default=0.01,
        metavar="SHARE",
        help="share of the spans of tokens that are traced back (default: %(default)s)",
    )
    parser.add_argument(
        "--input",
        nargs="+",
        action="extend",
        default=[],
        metavar="GLOB",
        help="the run's raw input: tokens are traced back to its records, too",
    )
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(command=_verify)


def _add_withdraw(commands: argparse._SubParsersAction) -> None:
    parser = _command(
        commands,
        "withdraw",
        "give back what was removed only as a duplicate of withdrawn documents",
        "curate withdraw --run out --url-prefix https://openfolio.example/ --output back",
    )
    parser.add_argument(
        "--run",
        required=True,
        nargs="+",
        metavar="DIR",
        help="run folder, and further ones that had it as an index",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--url-prefix",
        action="append",
        metavar="PREFIX",
        help="documents whose URL starts like this are withdrawn (repeatable)",
    )
    what.add_argument("--ids", metavar="FILE", help="so are those with these ids, one a line")
    parser.add_argument(
        "--output", metavar="DIR", help="run folder of what comes back (default: RUN/withdrawn)"
    )
    parser.add_argument(
        "--workers", type=_workers, default=None, metavar="N", help="local processes"
    )
    parser.set_defaults(command=_withdraw)


def _add_worker_pool(commands: argparse._SubParsersAction) -> None:
    parser = _command(
        commands,
        "worker-pool",
        "serve Python workers on a node of a Flink or Spark cluster",
        "curate worker-pool --port 50000",
    )
    parser.add_argument("--port", type=_port, default=50000, help="(default: %(default)s)")
    parser.add_argument(
        "--host", default="localhost", help="address to listen at (default: %(default)s)"
    )
    parser.add_argument(
        "--trust-network",
        action="store_true",
        help="listen at an address that other machines reach: all of them can run code here",
    )
    parser.set_defaults(command=_worker_pool)


def _add_listings(commands: argparse._SubParsersAction) -> None:
    parser = _command(commands, "recipes", "the built-in recipes", "curate recipes sample")
    parser.add_argument("recipe", nargs="?", help="print this recipe with every value")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(command=_recipes)
    parser = _command(commands, "models", "the built-in models", "curate models --json")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(command=_models)


def _add_export(commands: argparse._SubParsersAction) -> None:
    from pipelines.commands.export_options import add_options

    example = "curate export --run out --stage classify --to jsonl.zst --split train=0.99,val=0.01"
    add_options(_command(commands, "export", "write documents in other tools' formats", example))


def _add_train(commands: argparse._SubParsersAction) -> None:
    from pipelines.commands.train import add_train

    add_train(
        _command(
            commands,
            "train",
            "train a model that the stages use",
            "curate train quality --input labelled.jsonl.gz --output my-quality",
        )
    )


def _worker_pool(options: argparse.Namespace) -> int:
    from pipelines.commands.worker_pool import run

    return run(options)


def _run(options: argparse.Namespace) -> int:
    from pipelines.commands.run import run

    return run(options)


def _filter(options: argparse.Namespace) -> int:
    if options.what_if:
        from pipelines.commands.what_if import what_if

        return what_if(options)
    for name in ("input", "output"):
        if not getattr(options, name):
            raise ConfigError(f"--{name} is required (see `curate filter --help`)")
    for name in ("run", "sweep"):
        if getattr(options, name):
            raise ConfigError(f"--{name} goes with --what-if")
    return _run(options)


def _mix(options: argparse.Namespace) -> int:
    from pipelines.commands.mix import mix

    return mix(options)


def _extract_file(options: argparse.Namespace) -> int:
    from pipelines.commands.extract_file import extract_file

    return extract_file(options)


def _why(options: argparse.Namespace) -> int:
    from pipelines.commands.why import why

    return why(options)


def _report(options: argparse.Namespace) -> int:
    from pipelines.commands.report import report

    return report(options)


def _verify(options: argparse.Namespace) -> int:
    from pipelines.commands.verify import verify

    return verify(options)


def _withdraw(options: argparse.Namespace) -> int:
    from pipelines.commands.withdraw import withdraw

    return withdraw(options)


def _recipes(options: argparse.Namespace) -> int:
    from pipelines.commands.listings import recipes

    return recipes(options)


def _models(options: argparse.Namespace) -> int:
    from pipelines.commands.listings import models

    return models(options)


if __name__ == "__main__":
    sys.exit(main())
