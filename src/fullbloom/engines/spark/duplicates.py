"""Duplicates across partitions: hashes go to owners, answers come back, only candidates are shuffled."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window, functions

from fullbloom.engines import hash_sets
from fullbloom.engines.kinds import create_mergeable
from fullbloom.engines.spark.batches import limit_batches_by_rows
from fullbloom.engines.spark.candidates import hash_columns, keep_candidates
from fullbloom.engines.spark.sessions import (
    SHOWN,
    check_frame,
    count_local_cores,
    is_repeatable,
    pick,
)
from fullbloom.engines.spark.shipping import TranslateErrors, ship
from fullbloom.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Values of digits per row, at least, in the first round, and in those of fewer rows: one row of these is a
#: candidate by chance. Four times as many cost each row two bits more.
_SPREAD, _LATER_SPREAD = 8, 64
#: Rows of which a task sorts the digits, about 0.5 GB with all copies, where tasks share a machine.
_ROWS_PER_SET = 1 << 24
#: Rows per owner, at most, and owners.
_ROWS_PER_OWNER, _MOST_OWNERS = 1 << 22, 1 << 10
#: Share of candidates beyond which all rows are shuffled, which costs less.
_MOST_CANDIDATES = 0.3
#: Rate of the filter of repeated digits.
_FPR = 0.001
#: In the names of types that have neither hashes nor an order.
_INCOMPARABLE = re.compile(r"\bmap<|\bvariant\b")
_SENT, _ANSWERED = "owner int, sent binary, repeated binary", "owner int, repeated binary"


def find_duplicates(frame: Any, columns: str | Sequence[str], *, rounds: int = 2) -> Any:
    """Return the rows whose values in ``columns`` occur in at least one other row, all of them.

    The result is exact, and values are equal as in ``groupBy``: nulls are equal, and so are NaN. In each
    round, partitions send some digits of 64-bit hashes to the owners of these digits, 1 to 2 bytes per row,
    and the owners answer which occur repeatedly. Only rows that every round left as candidates are shuffled
    and compared. The frame is counted and read once per round now, and again with the result, so it must give
    the same rows each time: where Spark says that it does not, this groups all rows.

    Raises ParameterError if a column does not exist, or has maps or variants, and if ``rounds`` is not from 1
    to 3; EngineError if a worker lacks this package.
    """
    names = [columns] if isinstance(columns, str) else [*columns]
    condition = _find_candidates(frame, names, rounds)
    candidates = frame if condition is None else frame.where(condition)
    count = _choose_name(frame, "count")
    window = Window.partitionBy(*(pick(candidates, name) for name in names))
    counted = candidates.withColumn(count, functions.count(functions.lit(1)).over(window))
    return counted.where(counted[count] > 1).drop(count)


def deduplicate(frame: Any, columns: str | Sequence[str] | None = None, *, rounds: int = 2) -> Any:
    """Return the rows of a DataFrame with one row for each value of ``columns`` (all columns by default).

    The result is that of ``dropDuplicates``, which may keep any of equal rows. Rows that `find_duplicates`
    rules out stay where they are; only candidates are shuffled. It pays if few rows are duplicates: if more
    than 30 % are candidates, this is ``dropDuplicates``. The errors are those of `find_duplicates`.
    """
    names = frame.columns if columns is None else [columns] if isinstance(columns, str) else [*columns]
    condition = _find_candidates(frame, names, rounds)
    if condition is None:
        return frame.dropDuplicates(names)
    return frame.where(~condition).union(frame.where(condition).dropDuplicates(names))


def _find_candidates(frame: Any, columns: list[str], rounds: int) -> Any:
    """Return a Column that is True for each row with an equal row; None if all rows are candidates."""
    types = check_frame(frame, columns)
    if not 1 <= rounds <= 3:  # noqa: PLR2004 - the digits of a hash suffice for three
        raise ParameterError(f"rounds must be from 1 to 3, got {rounds}")
    for column, one in zip(columns, types, strict=True):
        name = one.simpleString()
        if _INCOMPARABLE.search(name):
            raise ParameterError(
                f"column {column[:SHOWN]!r} has the type {name[:SHOWN]}, whose values Spark does not compare"
            )
    # Texts that a collation calls equal have other bytes, and so other hashes.
    if not is_repeatable(frame) or any("collate" in one.simpleString() for one in types):
        return None
    rows = total = frame.count()
    hashes = hash_columns(frame, columns)
    condition, shift = None, 0
    for number in range(rounds):
        spread = _LATER_SPREAD if number or rounds == 1 else _SPREAD
        bits = max(8, math.ceil(math.log2(spread * max(1, rows))))
        if shift + bits > 64:  # noqa: PLR2004 - the bits of a hash
            break
        source = frame if condition is None else frame.where(condition)
        repeated = _exchange(source.select(hashes.alias("hash")), rows, shift, bits)
        digits = functions.shiftrightunsigned(functions.shiftleft(hashes, shift), 64 - bits)
        known = create_mergeable("spark", max(1, len(repeated)), _FPR)
        known.update(repeated)
        found = keep_candidates(frame.sparkSession, digits, known)
        condition, shift = found if condition is None else condition & found, shift + bits
        # Each repeated digit is that of two rows, at least; chance adds rows that share no key.
        rows = max(2 * len(repeated), 1)
        if rows > _MOST_CANDIDATES * total:
            return None
    return condition


def _exchange(hashes: Any, rows: int, shift: int, bits: int) -> Any:
    """Return the digits of hashes that occur repeatedly, as an array."""
    owners = min(_MOST_OWNERS, max(1, -(-rows // _ROWS_PER_OWNER)))
    owner_bits = (owners - 1).bit_length()
    cores = count_local_cores(hashes.sparkSession)
    if cores:  # sets of more rows take fewer bits per row
        hashes = hashes.coalesce(max(cores, rows // _ROWS_PER_SET))
    send = ship("send_hashes", shift, bits, owner_bits)
    answer = ship("answer_hashes", bits, owner_bits)
    answered = (
        hashes.mapInArrow(send, _SENT).repartition(1 << owner_bits, "owner").mapInArrow(answer, _ANSWERED)
    )
    with TranslateErrors(), limit_batches_by_rows(hashes):
        answers = [(row["owner"], bytes(row["repeated"])) for row in answered.collect()]
    return hash_sets.join(answers, bits, owner_bits)


def _choose_name(frame: Any, name: str) -> str:
    while name in frame.columns:
        name += "_"
    return name
