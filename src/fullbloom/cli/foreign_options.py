"""Options of commands that read filters of other programs: what the bytes of such a filter do not say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from fullbloom.cli import units
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.foreign import Description, find_line_type
from fullbloom.cli.options import RECORD_FORMATS, RECORD_TYPES, Options, RecordOptions, add_select

if TYPE_CHECKING:
    import argparse

#: The types of keys that only filters of other programs have.
FOREIGN_TYPES = ("any", "long", "bytes", "utf-8", "utf-16", "double", "hash", "uint64")


@dataclass(frozen=True, kw_only=True)
class ForeignOptions(Options):
    """Options of commands that read files of other programs."""

    format: str | None
    key_type: str | None
    num_bits: int | None
    num_hashes: int | None
    order: Literal["lsb", "msb"] | None
    block_hash: bytes | None
    members: str | None

    @property
    def description(self) -> Description:
        """What these say of the file."""
        return Description(
            format=self.format,
            key_type=self.key_type,
            num_bits=self.num_bits,
            num_hashes=self.num_hashes,
            order=self.order,
            block_hash=self.block_hash,
            members=self.members,
        )


@dataclass(frozen=True, kw_only=True)
class KnownFilterOptions(RecordOptions):
    """Options of commands that read lines or records for a filter that exists, also one of another program.

    --format and --key-type are those of the records or of the filter, by their value; given twice, of both.
    """

    filter: str
    formats: list[str] | None
    types: list[str] | None
    num_bits: int | None
    num_hashes: int | None
    order: Literal["lsb", "msb"] | None
    block_hash: bytes | None
    members: str | None
    #: Of the records: found among ``formats`` and ``types``.
    format: str | None = None
    key_type: list[str] | None = None

    def __post_init__(self) -> None:
        """Tell the formats and types of records from those of the filter."""
        of_records = [name for name in self.formats or [] if self.select and name in RECORD_FORMATS]
        object.__setattr__(self, "format", of_records[-1] if of_records else None)
        kinds = [kind for kind in self.types or [] if kind in RECORD_TYPES]
        object.__setattr__(self, "key_type", kinds or None)

    @property
    def description(self) -> Description:
        """What the options say of the filter's file."""
        names = [name for name in self.formats or [] if not (self.select and name in RECORD_FORMATS)]
        kind = next((kind for kind in self.types or [] if kind != "auto"), None)
        return Description(
            format=names[-1] if names else None,
            key_type=kind,
            is_of_records=self.select is not None and kind in RECORD_TYPES,
            num_bits=self.num_bits,
            num_hashes=self.num_hashes,
            order=self.order,
            block_hash=self.block_hash,
            members=self.members,
        )

    def for_own(self) -> Self:
        """Return the options for a filter of fullbloom's; refuse what only others have."""
        others = [kind for kind in self.types or [] if kind not in RECORD_TYPES]
        if others:
            raise Refusal(f"--key-type {others[0]} is for filters of other programs; drop it")
        self.check_records()
        return self

    def check_formats(self) -> None:
        """Refuse options of records without ``--select``, where a format would apply to the filter."""
        if self.select is not None:
            return
        given = {"--no-header": self.no_header, "--delimiter": self.delimiter}
        given["--format"] = any(name in RECORD_FORMATS and name != "parquet" for name in self.formats or [])
        for option, value in given.items():
            if value:
                raise Refusal(f"{option} is of use with --select only: add --select COLUMN, or drop {option}")

    def for_foreign(self, seen: Any) -> Self:
        """Return the options for a filter of another program, whose keys have a type of their own."""
        if self.select is not None and len(self.select) > 1:
            raise Refusal("the keys of another program's filter are single values; give --select once")
        named = next(iter(self.types or []), None)
        kind = find_line_type(seen.key_type if named in {None, "auto"} else named)
        chosen = self.key_type if named in {"bool", "uuid"} else [kind] if kind != "str" else self.key_type
        return replace(self, line_type=kind, types=chosen)


def add_format(parser: argparse.ArgumentParser) -> None:
    """Declare how a file of another program is read."""
    group = parser.add_argument_group("files of other programs")
    group.add_argument(
        "--format", metavar="NAME", help="format of the file, if its lengths do not say: see docs/formats.md"
    )
    group.add_argument(
        "--key-type", metavar="TYPE", help="type of its keys, where files do not record it: utf-8, long, ..."
    )
    add_shape_of_bits(group)


def add_shape_of_bits(group: argparse._ArgumentGroup) -> None:
    """Declare what else a file of another program may not say."""
    group.add_argument("--num-bits", type=units.count, metavar="M", help="bits of a file of bits alone")
    group.add_argument("--num-hashes", type=units.count, metavar="K", help="hashes of a file of bits alone")
    group.add_argument(
        "--order", choices=("lsb", "msb"), help="first bit of a byte of bits alone: the lowest or the highest"
    )
    group.add_argument(
        "--block-hash",
        type=units.block_hash,
        metavar="HEX",
        help="hash of the block of a BIP 158 filter, 64 digits in the order of the network protocol",
    )
    group.add_argument(
        "--members",
        metavar="FILE",
        help="keys that are known members, one per line: refuse the filter unless it has all of them",
    )


def add_known_records(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the key within a record, for a filter that may be one of another program."""
    group = add_select(parser)
    group.add_argument(
        "--format",
        metavar="FORMAT",
        action="append",
        dest="formats",
        help="of the records: csv, tsv, jsonl, parquet or arrow, guessed from the file name otherwise; or of "
        "FILTER, if its bytes do not say: see docs/formats.md",
    )
    group.add_argument(
        "--key-type",
        choices=(*RECORD_TYPES, *FOREIGN_TYPES),
        action="append",
        dest="types",
        metavar="TYPE",
        help="type of the key in Python and in data frames: str, int, float, bool or uuid; once for all "
        "--select or once for each (default auto: text in CSV and TSV, their own types in JSON). Of a filter "
        "of another program, the type of its keys: utf-8, long, ...",
    )
    add_shape_of_bits(parser.add_argument_group("filters of other programs"))
