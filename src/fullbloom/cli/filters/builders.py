"""Builders: how all lines become a filter, one class for each thing that a structure takes.

A structure takes lines one by one, all keys at once, keys with their values, or the keys of two sets.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from array import array
from typing import TYPE_CHECKING, Any

import fullbloom
from fullbloom import _core, registry
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.create import create_growing, create_sized
from fullbloom.cli.io.blocks import split_lines
from fullbloom.cli.io.reader import Target
from fullbloom.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.io.blocks import Block, Blocks
    from fullbloom.cli.io.reader import Reader
    from fullbloom.cli.options import BuildOptions

_FIRST_STAGE = 1 << 16
_NUMBER = re.compile(rb"[0-9]{1,20}")
_MAX_VALUE = (1 << 64) - 1


def create_builder(options: BuildOptions, reader: Reader) -> Builder:
    """Return the builder of --kind."""
    structure = options.structure
    if not structure.is_built_at_once:
        return _AddBuilder(options, reader)
    if structure.is_two_set:
        return _TwoSetBuilder(options, reader)
    return _MapBuilder(options, reader) if structure.is_map else _KeyBuilder(options, reader)


class Builder(ABC):
    """Builds one filter from the sets of lines or records of a reader."""

    def __init__(self, options: BuildOptions, reader: Reader) -> None:
        """Read nothing yet."""
        self.options, self.reader = options, reader
        self.cls: Any = registry.get_class(options.structure.row)

    def build(self) -> tuple[Filter, int]:
        """Read all sets; return the filter, and how many lines or records were read."""
        lines = self.reader.fill(self.create_targets())
        try:
            return self.finish(), lines
        except (MemoryError, fullbloom.ParameterError) as error:
            if (text := self.explain(error)) is None:
                raise
            raise Refusal(text) from None

    @abstractmethod
    def create_targets(self) -> Sequence[Target]:
        """Return what takes the keys, one target for each set of the reader."""

    @abstractmethod
    def finish(self) -> Filter:
        """Return the filter of all keys that the targets took."""

    def explain(self, error: Exception) -> str | None:
        """Return an error of `finish` in terms of options and lines, None if it already is."""
        # The core knows only its own part of the memory.
        needed = re.search(r"need (\d+) bytes of memory", str(error))
        if not isinstance(error, MemoryError) or needed is None or self.options.memory is None:
            return None
        return self.options.describe_needed_memory(int(needed[1]))


class _AddBuilder(Builder):
    """Adds lines one by one to an empty filter."""

    def create_targets(self) -> Sequence[Target]:
        options, structure = self.options, self.options.structure
        capacity = options.capacity or self.reader.num_lines
        if structure.is_growing or capacity is None:
            if options.kind is not None and not structure.is_growing:
                raise Refusal(
                    f"--kind {options.kind} has a fixed size, and a pipe cannot be counted first: "
                    "give --capacity"
                )
            self._seen = create_growing(options, capacity or _FIRST_STAGE, options.target_fpr, quick=False)
        else:
            self._seen = create_sized(options, capacity, options.target_fpr, quick=False)
        return [Target.of_filter(self._seen, structure.row)]

    def finish(self) -> Filter:
        return self._seen


class _KeyBuilder(Builder):
    """Builds a static filter from all keys at once."""

    def create_targets(self) -> Sequence[Target]:
        self._keys = _core.KeyBuffer(**self.options.hash_keywords, memory=self.options.work_memory)
        return [Target.of_buffer(self._keys)]

    def finish(self) -> Filter:
        options = self.options
        return self.cls.build_hashed(
            self._keys,
            options.target_fpr,
            threads=options.threads,
            progress=self.reader.watch,
            memory=options.work_memory,
            **({} if options.capacity is None else {"capacity": options.capacity}),
        )


class _MapBuilder(Builder):
    """Builds a map from lines of a key, a tab and a number; 16 bytes per line are held meanwhile."""

    def create_targets(self) -> Sequence[Target]:
        self._hashes, self._values = array("Q"), array("Q")
        return [Target(None, self._add_lines, None)]

    def _add_lines(self, block: Block) -> int:
        keys, before = [], len(self._values)
        for line in split_lines(block):
            key, tab, value = line.rpartition(b"\t")
            number = int(value) if _NUMBER.fullmatch(value) else _MAX_VALUE + 1
            if not tab or number > _MAX_VALUE:
                raise Refusal(self._describe_fault(line))
            keys.append(key)
            self._values.append(number)
        self._hashes.extend(fullbloom.hash_many(keys, **self.options.hash_keywords))
        return len(self._values) - before

    def _describe_fault(self, line: bytes) -> str:
        # The line is not shown if keys are secret.
        shown = "" if self.options.secret_file else f"; it is {printable(line.decode(errors='replace'))}"
        return (
            f"{self.reader.sets[0].name}: line {len(self._values) + 1:,} of the input is not a key, a tab "
            f"and a whole number up to 2**64 - 1, which --kind {self.options.kind} is built from{shown}"
        )

    def finish(self) -> Filter:
        options = self.options
        return self.cls.build_hashed(
            self._hashes,
            self._values,
            fpr=options.target_fpr,
            threads=options.threads,
            progress=self.reader.watch,
            **options.hash_keywords,
        )

    def explain(self, error: Exception) -> str | None:
        if isinstance(error, MemoryError):
            return super().explain(error)
        text = str(error)
        if "together" in text:
            most, fpr = max(self._values), self.options.target_fpr
            return f"numbers up to {most} at --fpr {fpr:g} take more than 64 bits; give a higher --fpr"
        found = re.search(r"keys number (\d+) and (\d+) \(from 0\)", text)
        if found is None:
            return text
        first, second = (int(number) + 1 for number in found.groups())
        return text.replace(found[0], f"lines {first:,} and {second:,} of the input")


class _TwoSetBuilder(Builder):
    """Builds a filter that separates two sets."""

    def create_targets(self) -> Sequence[Target]:
        options = self.options
        self._keywords = dict(options.hash_keywords)
        self._levels: dict[str, Any] = {
            "kind": options.levels or self.cls.kinds()[0],
            "layout": options.layout,
            **self._keywords,
        }
        if options.like is not None:
            old: Any = fullbloom.open(options.like, verify="full", secret=self._keywords["secret"])
            if type(old) is not self.cls:
                raise Refusal(
                    f"{options.like}: holds a {type(old).__name__}, "
                    f"which --kind {options.kind} cannot be like"
                )
            self._levels, self._keywords["seed"] = {"like": old}, old.seed
        memory = options.work_memory
        half = None if memory is None else max(memory // 2, 1)
        self._sets = [_core.KeyBuffer(**self._keywords, memory=half) for _ in self.reader.sets]
        return [Target.of_buffer(keys) for keys in self._sets]

    def finish(self) -> Filter:
        options = self.options
        return self.cls.build(
            *self._sets,
            **self._levels,
            threads=options.threads,
            progress=self.reader.watch,
            memory=options.work_memory,
        )

    def explain(self, error: Exception) -> str | None:
        if isinstance(error, MemoryError) or "overlap" not in str(error):
            return super().explain(error)
        remedy = "take it out of one of the two sets"
        options, found = self.options, re.search(r"the hash (\d+)", str(error))
        is_hidden = options.has_records or options.has_hashes or options.secret_file is not None
        if is_hidden or found is None or not all(blocks.is_repeatable for blocks in self.reader.sets):
            return f"a key is in both sets; {remedy}"
        (name, line), (other, _) = (self._find_line(blocks, int(found[1])) for blocks in self.reader.sets)
        return f"{name} and {other} have a line in common: {printable(line)}; {remedy}"

    def _find_line(self, blocks: Blocks, wanted: int) -> tuple[str, str]:
        """Return the file and the line of a hash."""
        found = (blocks.inputs[0].name, "")
        for block in blocks:  # to the end, which closes the files
            lines = split_lines(block)
            keys = fullbloom.hash_many(lines, **self._keywords)
            if wanted in keys:
                found = (blocks.name, lines[keys.index(wanted)].decode(errors="replace"))
        return found
