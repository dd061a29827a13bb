"""The parser: one subcommand per module."""

from __future__ import annotations

import argparse
import importlib
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from fullbloom import __version__
from fullbloom.cli.printable import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from _typeshed import SupportsWrite


class Command(Protocol):
    """The members of a command's module."""

    HELP: str
    DETAIL: str
    EXAMPLE: str
    #: The effect of ``--quiet``.
    QUIET: str
    #: The type of its options.
    OPTIONS: type[Any]

    def configure(self, parser: argparse.ArgumentParser, /) -> None:
        """Declare the options."""

    def run(self, options: Any, /) -> int:
        """Do the work and return the exit code."""


class Commands(Mapping[str, Command]):
    """The modules of the commands, each imported on first use: all of them take 25 ms."""

    _NAMES = (
        "dedup",
        "seen",
        "build",
        "insert",
        "check",
        "info",
        "show",
        "merge",
        "convert",
        "parquet",
        "delta",
        "sync",
        "serve",
        "token",
        "backup",
        "restore",
        "redis-load",
        "redis-save",
        "redis-info",
        "plan",
        "completion",
        "man",
    )

    def __getitem__(self, name: str) -> Command:
        """Import it."""
        if name not in self._NAMES:
            raise KeyError(name)
        module: Any = importlib.import_module(f"fullbloom.cli.{name.replace('-', '_')}")
        return module  # type: ignore[no-any-return] # a module's members are unknown to mypy

    def __iter__(self) -> Iterator[str]:
        """Name them in the order of the help."""
        return iter(self._NAMES)

    def __len__(self) -> int:
        """Count them."""
        return len(self._NAMES)


COMMANDS = Commands()

DESCRIPTION = """Have I seen this line? Bloom filters for files and streams."""
EPILOG = """"fullbloom help COMMAND" describes one. Exit codes: 0 done, or all found; 1 some absent
(check); 2 an error, printed in one line on stderr, or a closed pipe; 130 stopped by Ctrl-C. Sizes: 500K,
64M, 2G (powers of 1024); numbers of keys: 500K, 1M, 1e6 (powers of 1000). Input may be gzip or zstd;
"-" is standard input."""
_PROGRAM = "fullbloom"
#: Between two paragraphs.
_APART = "\n\n"
_WIDEST = 100


class Wrapped(argparse.HelpFormatter):
    """Wraps texts to the terminal; indented text, such as an example, is unchanged."""

    def __init__(self, prog: str, **named: Any) -> None:
        """Use the width of the terminal, up to a readable width."""
        super().__init__(prog, width=min(shutil.get_terminal_size().columns - 2, _WIDEST), **named)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _wrap(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        def paragraph(part: str) -> str:
            return part if part.startswith("  ") else "\n".join(_wrap(part, width))

        return textwrap.indent("\n".join(paragraph(part) for part in text.split(_APART)), indent)


def _wrap(text: str, width: int) -> list[str]:
    """Return ``text`` in lines; a name such as ``d-left`` is not split, so it can be searched and copied."""
    return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` whose errors are one line."""

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help; argparse itself ignores an output that cannot be written."""
        (file or sys.stdout).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 after one line on stderr."""
        wrong = re.search(r"argument COMMAND: invalid choice: '([^']*)'", message)
        if wrong:
            message = f"there is no command {wrong[1]!r}{self._suggest_command(wrong[1])}"
        unknown = re.search(r"unrecognized arguments: (-\S+)", message)
        if unknown:
            message += self._suggest_option(unknown[1])
        self.exit(2, f"fullbloom: {one_line(message)} (see {self.prog} --help)\n")

    def _suggest_command(self, word: str) -> str:
        from fullbloom.cli.suggestions import suggest_command

        meant = suggest_command(word, COMMANDS)
        return f"; did you mean {meant}?" if meant else f"; there are {', '.join(COMMANDS)}"

    def _suggest_option(self, word: str) -> str:
        from fullbloom.cli.suggestions import suggest_option

        meant = suggest_option(word, self._option_string_actions)
        if meant is None and word.partition("=")[0] in {"-o", "--out", "--output"}:
            return "; the lines go to standard output: add > FILE"
        return f"; did you mean {meant}?" if meant else ""


def parse(arguments: Sequence[str]) -> tuple[Command, Any]:
    """Return the command and its options, which may come between its files."""
    if arguments[:1] == ["help"]:
        names = [word for word in arguments[1:] if word not in {"help", "--help", "-h"}]
        arguments = [*names[:1], "--help"]
    name = next(iter(arguments), "")
    if name not in list(COMMANDS):
        values = vars(build_parser().parse_args(arguments))
        command = COMMANDS[values.pop("command")]
        return command, command.OPTIONS(**values)
    # Not through the parent: argparse does not intermix where there are subparsers.
    command = COMMANDS[name]
    parser = Parser(prog=f"{_PROGRAM} {name}", **_texts(command))
    _configure(parser, command)
    return command, command.OPTIONS(**vars(parser.parse_intermixed_args(_protect_files(arguments[1:]))))


def _protect_files(arguments: Sequence[str]) -> list[str]:
    """Return ``arguments`` without "--", with the files after it written so that none looks like an option.

    Before Python 3.13 intermixed parsing treats them as options.
    """
    if "--" not in arguments:
        return list(arguments)
    end = arguments.index("--")
    files = arguments[end + 1 :]
    dashed = [f"./{file}" if file.startswith("-") and file != "-" else file for file in files]
    return [*arguments[:end], *dashed]


def build_parser() -> Parser:
    """Return the parser of all commands; completion scripts and tests walk through it."""
    parser = Parser(
        prog=_PROGRAM,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=Wrapped,
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"fullbloom {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True, parser_class=Parser)
    for name, command in COMMANDS.items():
        _configure(commands.add_parser(name, help=command.HELP, **_texts(command)), command)
    return parser


def _texts(command: Command) -> dict[str, Any]:
    """Return the keywords of a command's parser."""
    return {
        "description": f"{command.HELP[0].upper()}{command.HELP[1:]}. {command.DETAIL}".strip(),
        "epilog": f"example:{_APART}  {command.EXAMPLE}",
        "formatter_class": Wrapped,
        "allow_abbrev": False,
    }


def _configure(parser: argparse.ArgumentParser, command: Command) -> None:
    """Declare a command's options: its own and the common ones."""
    command.configure(parser)
    common = parser.add_argument_group("report")
    common.add_argument("--json", action="store_true", help="print the report as one JSON object")
    common.add_argument("-q", "--quiet", action="store_true", help=command.QUIET)
