"""The parser: one subcommand a module, and the options that several share."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import TYPE_CHECKING, NoReturn

from bloomery import __version__
from bloomery.cli import units

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from _typeshed import SupportsWrite

COMMANDS = ("dedup", "seen", "build", "check", "info", "merge", "plan", "completion")

DESCRIPTION = """Have I seen this line? Bloom filters for files and streams."""
EPILOG = """exit codes: 0 done, or all found; 1 some absent (check); 2 an error, told in one line on
stderr, or a closed pipe; 130 stopped by Ctrl-C. Sizes: 500K, 64M, 2G (powers of 1024). Input may be
gzip or zstd; "-" is standard input."""


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` whose errors are one line."""

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print it; argparse itself passes over an output that cannot be written."""
        (file or sys.stdout).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 after one line on stderr."""
        self.exit(2, f"bloomery: {' '.join(message.split())} (see {self.prog} --help)\n")


def command(name: str) -> ModuleType:
    """Return the module of a command: ``HELP``, ``EXAMPLE``, ``configure`` and ``run``."""
    return importlib.import_module(f"bloomery.cli.{name}")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of a command, whose options may stand between its files."""
    parser, commands = _parsers()
    if arguments and arguments[0] in commands:
        # Not through the parent: argparse does not intermix where there are subparsers.
        return commands[arguments[0]].parse_intermixed_args(_only_options_dashed(arguments[1:]))
    return parser.parse_args(arguments)


def _only_options_dashed(arguments: Sequence[str]) -> list[str]:
    """Return ``arguments`` without "--", the files after it so that none looks like an option.

    Before Python 3.13 intermixed parsing takes them for options.
    """
    if "--" not in arguments:
        return list(arguments)
    end = arguments.index("--")
    files = arguments[end + 1 :]
    dashed = [f"./{file}" if file.startswith("-") and file != "-" else file for file in files]
    return [*arguments[:end], *dashed]


def build_parser() -> Parser:
    """Return the parser of all commands; completion scripts and tests walk through it."""
    return _parsers()[0]


def _parsers() -> tuple[Parser, Mapping[str, Parser]]:
    parser = Parser(prog="bloomery", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    parser.add_argument("-V", "--version", action="version", version=f"bloomery {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True, parser_class=Parser)
    for name in COMMANDS:
        module = command(name)
        summary: str = module.HELP
        sub = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}. {module.DETAIL}".strip(),
            epilog=f"example:\n  {module.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.configure(sub)
        common = sub.add_argument_group("report")
        common.add_argument("--json", action="store_true", help="print the report as one JSON object")
        common.add_argument("-q", "--quiet", action="store_true", help=module.QUIET)
        sub.set_defaults(run=module.run)
    return parser, commands.choices


QUIET = "print no progress, warnings or report"


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the files to read."""
    parser.add_argument("files", nargs="*", metavar="FILE", help='input; "-" or none is standard input')


def add_records(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the key within a record."""
    group = parser.add_argument_group("records")
    group.add_argument(
        "--select",
        metavar="COLUMN",
        help="the key is this column, by name or number from 1 (CSV, TSV), or this dotted key (JSON lines)",
    )
    group.add_argument(
        "--format", choices=("csv", "tsv", "jsonl"), help="of the input; guessed from the file name otherwise"
    )
    group.add_argument("--no-header", action="store_true", help="the first CSV or TSV record is data")


def add_secret(parser: argparse.ArgumentParser) -> None:
    """Add the file with the secret of a keyed filter."""
    parser.add_argument(
        "--secret-file", metavar="FILE", help="secret of a keyed filter: 16 bytes, or 32 hexadecimal digits"
    )


def add_shape(parser: argparse.ArgumentParser, *, fpr: float) -> None:
    """Add what a new filter is made from; ``fpr`` is the default, told in the help."""
    from bloomery.cli.filters import kinds

    rows = kinds()
    layouts = dict.fromkeys(layout for row in rows for layout in row["layouts"])
    group = parser.add_argument_group("filter")
    group.add_argument("--fpr", type=units.rate, metavar="P", help=f"false-positive rate (default {fpr:g})")
    group.add_argument(
        "--kind",
        choices=[row["name"] for row in rows],
        metavar="NAME",
        help=f"structure: {', '.join(row['name'] for row in rows)} (default: by the need)",
    )
    group.add_argument("--layout", choices=["auto", *layouts], default="auto", help="arrangement of the bits")
    group.add_argument("--seed", type=int, metavar="N", help="seed of the hash (default 0)")
    add_secret(group)  # type: ignore[arg-type]
