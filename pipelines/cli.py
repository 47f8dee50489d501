"""The command line: `curate`. Commands are modules; errors are one line on stderr."""

import argparse
import functools
import importlib
import importlib.metadata
import importlib.util
import logging
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from typing import Any

from curation import __version__
from curation.errors import ConfigError, CurationError, StoreError, WorkerError
from pipelines.commands import Command
from pipelines.process import check_address_space, own_process, stoppable, temporary_folder
from pipelines.terminal import Warnings, tell

#: Every stage is a command, too, unless one here has its name.
COMMANDS = {
    "run": Command(
        ".run",
        "run all stages of a recipe",
        "curate run llama3 --input 'crawl/*.warc.gz' --output out\n"
        "         curate run fineweb --input s3://bucket/*.warc.gz --output s3://bucket/out -- "
        "--runner=FlinkRunner --flink_master=host:8081",
    ),
    "measure": Command(
        ".apply",
        "run a recipe up to its mix; record what thresholds would remove, and keep it",
        "curate measure llama3 --input 'crawl/*.warc.gz' --output measured",
    ),
    "policy": Command(
        ".policy",
        "write the thresholds of a measured run, and what each removes, to a file for approval",
        "curate policy --run measured --output policy.yaml --by 'A. Name'",
    ),
    "apply": Command(
        ".apply",
        "run a recipe with an approved policy; stop if the corpus has drifted from it",
        "curate apply llama3 --policy policy.yaml --input 'crawl/*.warc.gz' --output out",
    ),
    "extract-file": Command(
        ".extract_file",
        "extract the main content of one page and explain the decisions",
        "curate extract-file page.html --explain\n"
        "         curate extract-file crawl.warc.gz@9763 --json",
    ),
    "plan": Command(
        ".plan",
        "show what a token budget would draw of a run's documents, by quality, and how often",
        "curate plan --run out --tokens 20B",
    ),
    "why": Command(
        ".why",
        "show every decision taken on one document",
        "curate why http://links0.example/partners.html --run out",
    ),
    "view": Command(
        ".view",
        "explore a run in a browser: funnel, signals, documents, duplicates",
        "curate view --run out\n"
        "         curate view --run out --compare out-before --input 'crawl/*.warc.gz'",
    ),
    "sample": Command(
        ".why",
        "show a random sample of the documents that a rule removed, or of an index's records",
        "curate sample --run out --rule gopher.word_count -n 50 --seed 1\n"
        "         curate sample --input part-00000.parquet -n 1000 --output few.parquet",
    ),
    "report": Command(
        ".reports", "write report.html and report.json of a run", "curate report --run out"
    ),
    "verify": Command(
        ".verify",
        "check a run's files, counts and tokens against its manifests",
        "curate verify --run out --sample 0.01",
    ),
    "receipt": Command(
        ".verify",
        "say what of some hosts, and which copies of it, is in a run, so that others can check it",
        "curate receipt --run out --hosts hosts.txt --output receipt.json\n"
        "         curate receipt --verify receipt.json --root HASH",
    ),
    "export": Command(
        ".export",
        "export documents to the formats of other tools",
        "curate export --run out --stage classify --to jsonl.zst --split train=0.99,val=0.01",
    ),
    "withdraw": Command(
        ".withdraw",
        "withdraw documents from a run; restore what was removed only as their duplicate",
        "curate withdraw --run out --url-prefix https://openfolio.example/ --output back",
    ),
    "summary": Command(
        ".reports",
        "write the public summary of a run's training data, with the SQL for every number",
        "curate summary --run out --answers answers.yaml",
    ),
    "trace": Command(
        ".trace",
        "find a passage in the documents that a run tokenized or removed",
        "curate trace --run out 'twenty words or more of a text'",
    ),
    "new": Command(
        ".new",
        "create a template for a custom rule or stage, with a test",
        "curate new rule shouting",
    ),
    "warm-up": Command(
        ".warm_up",
        "compile the kernels that stages need before a run",
        "curate warm-up --recipe sample",
    ),
    "cancel": Command(
        ".processes",
        "end the run that is at work in a folder, with its jobs",
        "curate cancel --run out",
    ),
    "worker-pool": Command(
        ".processes",
        "run a pool of Python workers on a node of a Flink or Spark cluster",
        "curate worker-pool --port 50000",
    ),
    "completion": Command(
        ".completion",
        "print a script that lets a shell complete commands, options and their values",
        "curate completion bash > ~/.local/share/bash-completion/completions/curate\n"
        "         curate completion zsh > ~/.zfunc/_curate   # a folder of $fpath\n"
        "         curate completion fish > ~/.config/fish/completions/curate.fish",
    ),
    "runs": Command(".listings", "list the runs in a folder and below it", "curate runs work"),
    "recipes": Command(".listings", "list the built-in recipes", "curate recipes sample"),
    "models": Command(".listings", "list the built-in models", "curate models --json"),
}

#: Arguments that need no command's options.
_NONE = "--version"
#: Choices that an error lists.
_FEW = 8
_GOES_ON = "run the same command again to resume"


class _Parser(argparse.ArgumentParser):
    """Reports usage errors as one line, with the name that was probably meant."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise ConfigError(f"{message} (see `{self.prog} --help`)")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and refuse what the command doesn't take: here its options are known.

        What follows `--` is the runner's, where a command has one; else no option, such as an id.
        """
        if "--" in args and self.get_default("beam_args") is not None:
            at = args.index("--")
            self.set_defaults(beam_args=args[at + 1 :])
            args = args[:at]
        parsed, rest = super().parse_known_args(args, namespace)
        if rest:
            name = rest[0].partition("=")[0]
            kind = "option" if name.startswith("-") else "argument"
            options = self._option_string_actions if name.startswith("--") else ()
            self.error(f"{name}: unknown {kind}{_nearest(name, options)}")
        return parsed, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            few = f" ({', '.join(names)})" if len(names) <= _FEW else ""
            given = " ".join([*action.option_strings[:1], str(value)])
            kind = "value" if action.option_strings else str(action.metavar or "value").lower()
            self.error(f"{given}: unknown {kind}{_nearest(value, names)}{few}")


def _nearest(name: str, candidates: Iterable[str]) -> str:
    from curation.config import nearest  # slow

    return nearest(name, candidates)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point: 0 success, 2 usage or configuration error, 1 the run failed.

    130 after Ctrl-C and 143 after SIGTERM. Without `argv` the process is the command's own.
    """
    if argv is not None:
        return _main(list(argv))
    own_process()
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed: a file of the run would get its number
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (until the end)
        getattr(sys, name).reconfigure(errors="backslashreplace")  # what a locale lacks
    with stoppable(), temporary_folder():
        return _main(sys.argv[1:])


def _main(arguments: list[str]) -> int:
    logging.lastResort = Warnings(tell)
    own = [*arguments[1:], "--help"] if arguments[:1] == ["help"] else arguments or ["--help"]
    debug = "--debug" in own
    if not debug:  # Beam logs tracebacks of failed steps; here one line is printed instead
        logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    try:
        _check_encoding(own)
        check_address_space()
        options = build_parser(own).parse_args(own)
        options.whole = functools.partial(build_parser, whole=True)
        options.typed = arguments
        return int(options.command(options) or 0)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        if debug:
            tell("".join(traceback.format_exception(error)).rstrip())
        tell(f"curate: error: {line_of(error)}")
        return error.exit_code if isinstance(error, CurationError) else 1


def _check_encoding(arguments: Sequence[str]) -> None:
    """Raise ConfigError for an argument that is not valid UTF-8, or was read as something else."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            from curation.stores import misread  # slow

            raise ConfigError(f"{argument}: {misread()}") from None


def line_of(error: Exception) -> str:
    """Return what happened and what to do, in one line."""
    message = str(error)
    if isinstance(error, OSError):  # a full disk, a folder that may not be read
        place = f"{error.filename}: " if error.filename is not None else ""
        message = f"{place}{error.strerror or error}"
    if isinstance(error, OSError | StoreError | WorkerError) and _GOES_ON not in message:
        message = f"{message}; fix that, then {_GOES_ON}"
    elif not isinstance(error, OSError | CurationError):
        message = f"{type(error).__name__}: {error} (this is a bug; --debug shows where)"
    return " ".join(message.split())


def build_parser(arguments: Sequence[str] = (), whole: bool = False) -> argparse.ArgumentParser:
    """Return the parser. Only the command in the arguments has its options declared, or all."""
    parser = _Parser(
        prog="curate",
        description="Web crawls to clean, deduplicated, mixed and tokenised training shards.",
        epilog="`curate help COMMAND` shows its options; example: curate run sample --output out",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"curate {__version__}")
    parsers = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    version = _NONE if _NONE in arguments else None
    asked = next((argument for argument in arguments if not argument.startswith("-")), version)
    for name, command in _commands(asked).items():
        chosen = parsers.add_parser(
            name,
            help=command.purpose,
            description=command.purpose[0].upper() + command.purpose[1:] + ".",
            epilog=f"example: {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        chosen.add_argument("--debug", action="store_true", help="show the traceback of an error")
        if whole or name == asked:
            module = importlib.import_module(command.module, "pipelines.commands")
            chosen.set_defaults(command=getattr(module, "run", None))
            module.add(chosen, name)
    return parser


def _commands(asked: str | None) -> dict[str, Command]:
    """Return all commands in the order of the help; what is slow to find, only if needed."""
    if asked in COMMANDS or asked == _NONE:
        return COMMANDS
    further = plug_ins()
    if asked in further:
        return further
    from curation.stages import known_stages  # slow; signal handlers come first

    first, *others = COMMANDS
    stages = {name: _stage_command(stage) for name, stage in known_stages().items()}
    found = {first: COMMANDS[first]} | stages | {name: COMMANDS[name] for name in others}
    order = [*found]
    for name in [name for name in further if name not in found]:
        after = further[name].after
        order.insert(order.index(after) + 1 if after in order else len(order), name)
    return {name: (found | further)[name] for name in order}


def plug_ins() -> dict[str, Command]:
    """Return the commands in the tables `COMMANDS` of the modules that entry points name.

    That of `models` is found in a checkout, too, which may not be installed.
    """
    named = {entry.module for entry in importlib.metadata.entry_points(group="curation.commands")}
    own = {"models.commands"} if importlib.util.find_spec("models") else set()
    if named - {"models.commands"}:
        from curation.user_code import seek_cycles_at_exit  # slow, seldom needed

        seek_cycles_at_exit()
    tables = map(importlib.import_module, sorted(named | own))
    return {name: command for table in tables for name, command in table.COMMANDS.items()}


def _stage_command(stage: Any) -> Command:
    from curation.stages import find

    before = stage.after
    while before and find(before).optional:
        before = find(before).after
    source = "'crawl/*.warc.gz'" if stage.is_source else f"out/{before}"
    example = f"curate {stage.name} --input {source} --output out --recipe llama3"
    return Command(".stage", stage.purpose, example)


if __name__ == "__main__":
    sys.exit(main())
