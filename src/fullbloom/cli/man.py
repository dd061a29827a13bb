"""``fullbloom man``: manual pages, generated from the parser, so they match this version."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fullbloom.cli.options import Options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HELP = "show a manual page, or write all of them"
DETAIL = """On a terminal the page is shown by man, otherwise its source goes to standard output.
--output writes the pages of all commands, for a system's packages or for ~/.local/share/man/man1."""
EXAMPLE = "fullbloom man dedup > fullbloom-dedup.1"
QUIET = "print nothing"


@dataclass(frozen=True, kw_only=True)
class ManOptions(Options):
    """Options of ``fullbloom man``."""

    #: The command whose page is shown.
    about: str | None
    #: The folder of all pages.
    output: str | None


OPTIONS = ManOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "about", nargs="?", metavar="COMMAND", help="the command; without, the page of the program"
    )
    parser.add_argument("--output", metavar="FOLDER", help="write the pages of all commands into this folder")


def run(options: ManOptions) -> int:
    """Show one page, or write all."""
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.parser import build_parser
    from fullbloom.cli.printable import shorten
    from fullbloom.cli.standard import flush

    pages = render_pages(build_parser())
    if options.output is not None:
        return _write(options, Path(options.output), pages)
    name = "fullbloom" if options.about is None else f"fullbloom-{options.about}"
    if name not in pages:
        known = ", ".join(page.removeprefix("fullbloom-") for page in list(pages)[1:])
        raise Refusal(f"there is no command {shorten(str(options.about))!r}; there are {known}")
    if options.json:
        import json

        flush(json.dumps({"page": name, "text": pages[name]}) + "\n")
    elif not options.quiet and not (sys.stdout.isatty() and _show(name, pages[name])):
        flush(pages[name])
    return 0


def _write(options: ManOptions, folder: Path, pages: Mapping[str, str]) -> int:
    """Write the pages, each atomically."""
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.state import lock_output
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.report import report

    if options.about is not None:
        raise Refusal("--output writes the pages of all commands: drop COMMAND")
    paths = {name: str(folder / f"{name}.1") for name in pages}
    for name, path in paths.items():
        with lock_output(path, "--output"):
            output = Output(path)
            try:
                output.write(pages[name].encode())
                output.commit()
            finally:
                output.discard()
    report(options, {"files": list(paths.values())}, list(paths.values()), stdout_is_free=True)
    return 0


def _show(name: str, text: str) -> bool:
    """Show a page with the system's ``man``; return False if that is missing or fails."""
    import shutil
    import subprocess
    import tempfile

    program = shutil.which("man")
    if program is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / f"{name}.1"
        page.write_text(text, encoding="utf-8")
        return subprocess.run([program, str(page)], check=False).returncode == 0  # noqa: S603 - a file of ours


def render_pages(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the source of each page by its name, that of the program first."""
    subs = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
    summaries = {choice.dest: choice.help or "" for choice in subs._choices_actions}  # noqa: SLF001
    pages = {
        "fullbloom": "\n".join(
            [*_head("fullbloom", "filters for files and streams"), *_program(parser, summaries)]
        )
    }
    for name, sub in subs.choices.items():
        page = f"fullbloom-{name}"
        pages[page] = "\n".join([*_head(page, summaries[name]), *_command(sub)])
    return {name: f"{text}\n" for name, text in pages.items()}


def _head(name: str, summary: str) -> Iterator[str]:
    from fullbloom import __version__

    yield f'.TH "{_plain(name.upper())}" "1" "" "fullbloom {__version__}" "User commands"'
    yield from (".SH NAME", f"{_plain(name)} \\- {_plain(summary)}")


def _program(parser: argparse.ArgumentParser, summaries: Mapping[str, str]) -> Iterator[str]:
    yield from (
        ".SH SYNOPSIS",
        "\\fBfullbloom\\fR \\fICOMMAND\\fR [\\fIoption\\fR ...] [\\fIargument\\fR ...]",
    )
    yield from (".SH DESCRIPTION", _plain(parser.description or ""), ".SH COMMANDS")
    for name, summary in summaries.items():
        yield from (".TP", f"\\fBfullbloom\\-{_plain(name)}\\fR(1)", _plain(summary))
    yield from (".SH NOTES", _plain(parser.epilog or ""))


def _command(parser: argparse.ArgumentParser) -> Iterator[str]:
    named = [action for action in parser._actions if not action.option_strings]  # noqa: SLF001
    arguments = "".join(f" {_argument(action)}" for action in named)
    yield from (".SH SYNOPSIS", f"\\fB{_plain(parser.prog)}\\fR [\\fIoption\\fR ...]{arguments}")
    yield from (".SH DESCRIPTION", _plain(parser.description or ""))
    for group in parser._action_groups:  # noqa: SLF001
        actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]  # noqa: SLF001
        if actions:
            yield f".SH {_plain(group.title or '').upper()}"
        for action in actions:
            yield from (".TP", _option(action), _plain((action.help or "").replace("%%", "%")))
    *_, example = (parser.epilog or "").partition("\n\n")
    yield from (".SH EXAMPLE", ".nf", _plain(example.strip()), ".fi")
    yield from (".SH SEE ALSO", "\\fBfullbloom\\fR(1)")


def _value(action: argparse.Action) -> str:
    """Return the name of an option's or argument's value."""
    if action.metavar is None and action.choices:
        return "|".join(f"\\fB{_plain(str(choice))}\\fR" for choice in action.choices)
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return f"\\fI{_plain(metavar)}\\fR"


def _argument(action: argparse.Action) -> str:
    value = _value(action)
    return {"*": f"[{value} ...]", "+": f"{value} ...", "?": f"[{value}]"}.get(str(action.nargs), value)


def _option(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else f" {_value(action)}"
    if not action.option_strings:
        return _value(action)
    return ", ".join(f"\\fB{_plain(flag)}\\fR{value}" for flag in action.option_strings)


def _plain(text: str) -> str:
    """Return ``text`` without requests and escapes; a hyphen stays copyable."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", " ".join(escaped.split()))
