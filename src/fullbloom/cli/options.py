"""Common options of commands: their values and their declarations."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from fullbloom.cli import units
from fullbloom.cli.failures import Refusal

if TYPE_CHECKING:
    import argparse

    from fullbloom.cli.filters.kinds import Kind
    from fullbloom.cli.window import Window

QUIET = "print no progress, warnings or report"
#: Default of --max-line: for lines, since a file of one line is seldom a file of lines, and for records,
#: whose cells or values are Python objects.
_LONGEST_LINE, _LONGEST_RECORD = 64 << 20, 16 << 20
#: The default of --fpr of ``fullbloom build``.
BUILD_FPR = 0.01
#: The part of its --memory for Python and blocks under way, and the share for freed memory in pieces.
OWN_MEMORY, _FREED = 40 << 20, 16
#: The share of --memory for the longest line and the longest record, and the least that they get.
_LINES, _RECORDS, _LEAST = 128, 512, 1 << 16
_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_COLUMNAR = {".parquet": "parquet", ".pq": "parquet"} | dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow")
_SUFFIXES |= _COLUMNAR
#: The formats of records, and the types of their keys.
RECORD_FORMATS = ("csv", "tsv", "jsonl", "parquet", "arrow")
RECORD_TYPES = ("auto", "str", "int", "float", "bool", "uuid")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of every command."""

    json: bool
    quiet: bool
    #: The key to look up, of commands that take one.
    key: str | None = None


@dataclass(frozen=True, kw_only=True)
class LineOptions(Options):
    """Options of commands that read lines."""

    files: list[str]
    max_line: int | None
    #: Of commands that read records, and of those that bound their memory.
    select: list[str] | None = None
    memory: int | None = None

    @property
    def longest_line(self) -> int:
        """Bytes of the longest line to accept: a share of --memory, if that is given."""
        if self.max_line is not None:
            return self.max_line
        most, parts = (_LONGEST_LINE, _LINES) if self.select is None else (_LONGEST_RECORD, _RECORDS)
        return most if self.memory is None else max(_LEAST, min(most, self.memory // parts))


@dataclass(frozen=True, kw_only=True)
class RecordOptions(LineOptions):
    """Options of commands that read lines, records, or hashes."""

    format: str | None
    no_header: bool
    delimiter: str | None
    key_type: list[str] | None
    skip_bad: bool
    threads: int
    secret_file: str | None
    #: Of some of these commands: keys are hashes, or their texts are compared, marked, or kept at the last.
    hex: bool | None = False
    sha1_of: bool = False
    exact: bool = False
    mark: bool = False
    keep: str = "first"
    #: The type as which whole lines are read, for a filter of another program; text for any other.
    line_type: str | None = None

    @property
    def has_hashes(self) -> bool:
        """Whether keys are hashes of lines."""
        return bool(self.hex or self.sha1_of)

    @property
    def has_records(self) -> bool:
        """Whether records are read: with a chosen key, by several threads, or for the last of a key."""
        chosen = bool(self.select) or self.threads > 1 or self.keep == "last" or self.line_type is not None
        return not self.has_hashes and chosen

    def check_records(self) -> None:
        """Refuse options that need ``--select`` without it, and those that exclude it."""
        if self.select is not None and self.has_hashes:
            raise Refusal(f"--select and {'--hex' if self.hex else '--sha1-of'} exclude each other")
        if self.select and "" in self.select:
            raise Refusal("--select names a column or key, got an empty text; name one, or drop it")
        if self.select is None:
            idle = {
                "--format": self.format,
                "--no-header": self.no_header,
                "--delimiter": self.delimiter,
                "--key-type": self.key_type,
                "--skip-bad": self.skip_bad,
            }
            for option, given in idle.items():
                if given:
                    raise Refusal(
                        f"{option} is of use with --select only: add --select COLUMN, or drop {option}"
                    )
        elif self.key_type and len(self.key_type) not in {1, len(self.select)}:
            raise Refusal(
                f"--key-type is given once for all --select or once for each of {len(self.select)}, "
                f"got {len(self.key_type)}"
            )

    def find_format(self, name: str) -> str:
        """Return csv, tsv, jsonl, parquet or arrow, by --format or the name; lines without ``--select``."""
        if not self.select:
            return "lines"
        if self.format:
            return self.format
        bare = name.removesuffix(".gz").removesuffix(".zst").lower()
        for suffix, known in _SUFFIXES.items():
            if bare.endswith(suffix):
                return known
        raise Refusal(
            f"{name}: cannot tell the format from the name; give --format csv, tsv, jsonl, parquet or arrow"
        )

    @cached_property
    def columnar_format(self) -> str | None:
        """Parquet or arrow if the inputs are that, None if they are text; refuses a mixture."""
        if not self.select:
            return None
        formats = {self.find_format(name) for name in self.files or ["standard input"]}
        found = formats & set(_COLUMNAR.values())
        if found and len(formats) > 1:
            raise Refusal(f"the files are {' and '.join(sorted(formats))}; give files of one format")
        return found.pop() if found else None

    @property
    def needs_output_file(self) -> bool:
        """Whether columns can only be written to a file, because the state is saved once they are whole."""
        return False


@dataclass(frozen=True, kw_only=True)
class FilterOptions(RecordOptions):
    """Options of commands that create a filter."""

    fpr: float | None
    kind: str | None
    layout: str
    seed: int | None
    expected: int | None = None
    window: Window | None = None
    #: The secret of this run, from `draw_hash`.
    secret: bytes | None = field(default=None, repr=False)

    def draw_hash(self, *, keyed: bool) -> Self:
        """Return options with a random seed, or ``keyed`` with a secret, unless they have one already.

        With the public hash, an author of lines can make any other line look like a duplicate.
        """
        if self.seed is not None or self.secret_file is not None:
            return self
        if keyed:
            return replace(self, secret=os.urandom(16))
        return replace(self, seed=int.from_bytes(os.urandom(8), "little"))

    @cached_property
    def hash_keywords(self) -> dict[str, Any]:
        """Seed and secret, as constructors take them; the file of the secret is read once."""
        from fullbloom.cli.secret import read_secret

        secret = read_secret(self.secret_file) if self.secret is None else self.secret
        return {"seed": self.seed or 0, "secret": secret}

    @cached_property
    def structure(self) -> Kind:
        """--kind as the registry describes it; looked up once."""
        from fullbloom.cli.filters.kinds import find_kind

        return find_kind(self.kind)


@dataclass(frozen=True, kw_only=True)
class StateOptions(FilterOptions):
    """Options of commands whose filter may be saved from run to run."""

    state: str | None
    save_every: float


@dataclass(frozen=True, kw_only=True)
class BuildOptions(FilterOptions):
    """Options of ``fullbloom build``."""

    out: str
    capacity: int | None
    #: Files of the other set of lines, names of levels, and an earlier version: of --kind of two sets.
    rest: list[str] | None
    levels: str | None
    like: str | None

    @property
    def target_fpr(self) -> float:
        """--fpr, or its default."""
        return self.fpr or BUILD_FPR

    @property
    def needs_count(self) -> bool:
        """Whether the filter is sized by the number of lines."""
        structure = self.structure
        return self.capacity is None and not (structure.is_growing or structure.is_built_at_once)

    @property
    def work_memory(self) -> int | None:
        """Bytes of --memory for hashes and for building, None without --memory."""
        return None if self.memory is None else self.memory - OWN_MEMORY - self.memory // _FREED

    def describe_needed_memory(self, needed: int) -> str:
        """Return the message about --memory if hashes and building need ``needed`` bytes."""
        whole = (needed + OWN_MEMORY) * _FREED // (_FREED - 1) + (1 << 20)
        return (
            f"--memory {units.size_text(self.memory or 0)} is too little for so many lines on "
            f"{self.threads} threads; give {whole >> 20}M or more, or fewer threads"
        )


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the files to read."""
    parser.add_argument("files", nargs="*", metavar="FILE", help='input; "-" or none is standard input')
    parser.add_argument(
        "--max-line",
        type=units.line_size,
        metavar="SIZE",
        help="refuse longer lines (default 64M, records 16M; less in a small --memory)",
    )


def add_records(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the key within a record."""
    group = add_select(parser)
    group.add_argument(
        "--format",
        metavar="FORMAT",
        choices=RECORD_FORMATS,
        help="csv, tsv, jsonl, parquet or arrow; guessed from the file name otherwise",
    )
    group.add_argument(
        "--key-type",
        choices=RECORD_TYPES,
        action="append",
        metavar="TYPE",
        help="type of the key in Python and in data frames: str, int, float, bool or uuid; once for all "
        "--select or once for each (default auto: text in CSV and TSV, their own types in JSON)",
    )


def add_select(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options of records except their format and the type of keys; return the group."""
    group = parser.add_argument_group("records")
    group.add_argument(
        "--select",
        metavar="COLUMN",
        action="append",
        help="the key is this column, by name or number from 1 (CSV, TSV, Parquet, Arrow), or this dotted "
        "key (JSON lines, structs); given more than once, the key is the tuple",
    )
    group.add_argument("--no-header", action="store_true", help="the first CSV or TSV record is data")
    group.add_argument(
        "--delimiter",
        type=units.delimiter,
        metavar="CHAR",
        help='between cells, such as ";" or "tab" (default: a comma in CSV, a tab in TSV)',
    )
    group.add_argument(
        "--skip-bad", action="store_true", help="leave out records that cannot be read, and count them"
    )
    group.add_argument(
        "--threads", type=units.count, default=1, metavar="N", help="threads that read records (default 1)"
    )
    return group


def add_hashes(parser: argparse.ArgumentParser) -> None:
    """Add the choice of hashes as keys."""
    import argparse

    group = parser.add_argument_group("hashes, as lists of leaked passwords have them")
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        "--hex",
        action=argparse.BooleanOptionalAction,
        help="a line is a hash in hexadecimal digits, upper or lower case, alone or as HASH:count",
    )
    either.add_argument(
        "--sha1-of",
        action="store_true",
        help="a line is the text to hash: the key is its SHA-1, as with --hex",
    )


def add_state(parser: argparse.ArgumentParser) -> None:
    """Add the filter that is saved from run to run."""
    parser.add_argument(
        "--state", metavar="FILE", help="continue with this filter; created if missing, saved at the end"
    )
    parser.add_argument(
        "--save-every",
        type=units.seconds,
        default=60.0,
        metavar="SECONDS",
        help="save the state in between, too (default 60)",
    )


def add_secret(parser: argparse.ArgumentParser) -> None:
    """Add the file with the secret of a keyed filter."""
    parser.add_argument(
        "--secret-file", metavar="FILE", help="secret of a keyed filter: 16 bytes, or 32 hexadecimal digits"
    )


def _require_adding(kind: str) -> str:
    """Return a --kind to which lines can be added; refuse any other."""
    import argparse

    from fullbloom.cli.filters.kinds import list_built_at_once

    if any(kind == row["name"] for row in list_built_at_once()):
        remedy = f"it is built from all lines at once: fullbloom build --kind {kind}"
        raise argparse.ArgumentTypeError(f"a {kind} filter takes no lines later; {remedy}")
    return kind


def add_shape(parser: argparse.ArgumentParser, *, fpr: float, seed: str, builds: bool = False) -> None:
    """Add the parameters of a new filter; ``fpr`` and ``seed`` are the defaults, shown in the help.

    A command that ``builds`` has all lines before it creates a filter, so its --kind may be a static one.
    """
    from fullbloom.cli.filters.kinds import list_built_at_once, list_kinds

    rows = list_kinds() + (list_built_at_once() if builds else ())
    layouts = dict.fromkeys(layout for row in rows for layout in row["layouts"])
    group = parser.add_argument_group("filter")
    group.add_argument("--fpr", type=units.rate, metavar="P", help=f"false-positive rate (default {fpr:g})")
    group.add_argument(
        "--kind",
        type=str if builds else _require_adding,
        choices=[row["name"] for row in rows],
        metavar="NAME",
        help=f"structure: {', '.join(row['name'] for row in rows)} (default: by the need)",
    )
    group.add_argument(
        "--layout",
        choices=["auto", *layouts],
        default="auto",
        metavar="NAME",
        help=f"arrangement of the bits: {', '.join(['auto', *layouts])} (default: auto)",
    )
    group.add_argument("--seed", type=units.seed, metavar="N", help=f"seed of the hash ({seed})")
    add_secret(group)  # type: ignore[arg-type]
