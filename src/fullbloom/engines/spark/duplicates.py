"""Duplicates across partitions: hashes go to owners, answers come back, only candidates are shuffled."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window, functions
from pyspark.sql import types as spark_types

from fullbloom.engines import hash_sets
from fullbloom.engines.kinds import create_mergeable
from fullbloom.engines.spark import plans
from fullbloom.engines.spark.batches import limit_by_rows
from fullbloom.engines.spark.candidates import hash_columns, keep_candidates, keep_in_groups
from fullbloom.engines.spark.sessions import SHOWN, check_frame, check_total_size, count_local_cores, pick
from fullbloom.engines.spark.shipping import TranslateErrors, ship
from fullbloom.errors import FilterMemoryError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Repeated digits that the driver holds at once, 1 GiB, and that one filter of 230 MiB has.
_MOST_DIGITS = 1 << 27
#: Share of candidates beyond which all rows are shuffled, which costs less.
_MOST_CANDIDATES = 0.3
#: In the names of types that have neither hashes nor an order.
_INCOMPARABLE = re.compile(r"\bmap<|\bvariant\b")
_SENT, _ANSWERED = "owner int, sent binary, repeated binary", "owner int, size long, repeated binary"


def find_duplicates(
    frame: Any, columns: str | Sequence[str], *, rounds: int = 2, is_repeatable: bool | None = None
) -> Any:
    """Return the rows whose values in ``columns`` occur in at least one other row, all of them.

    The result is exact, and values are equal as in ``groupBy``: nulls are equal, and so are NaN. In each
    round, partitions send some digits of 64-bit hashes to the owners of these digits, 1 to 2 bytes per row,
    and the owners answer which occur repeatedly. Only rows that every round left as candidates are shuffled
    and compared. One column of integers whose range has at most 8 to 16 times as many values as the frame has
    rows takes one round and 1 to 6 bits per row, because the integers are the digits.

    The frame is counted and read once per round now, and again with the result, so it must give the same rows
    each time. Where its plan does not show that, this groups all rows, which reads them once: a limit, a
    sample, a random function, or Python code, such as a UDF or ``createDataFrame`` of a list. Persist such a
    frame, or pass ``is_repeatable=True`` if it gives the same rows. Nobody sees a source that changes in
    between, or the loss of an executor that held persisted rows; ``checkpoint()`` survives that.

    The driver holds at most 134 million repeated digits at a time; more are looked up in several filters. If
    these do not fit on an executor, this warns and groups all rows.

    Raises ParameterError if a column does not exist, or has maps or variants, and if ``rounds`` is not from 1
    to 3; EngineError if a worker lacks this package.
    """
    names = [columns] if isinstance(columns, str) else [*columns]
    condition = _find_candidates(frame, names, rounds, is_repeatable=is_repeatable)
    candidates = frame if condition is None else frame.where(condition)
    count = _choose_name(frame, "count")
    window = Window.partitionBy(*(pick(candidates, name) for name in names))
    counted = candidates.withColumn(count, functions.count(functions.lit(1)).over(window))
    return counted.where(counted[count] > 1).drop(count)


def deduplicate(
    frame: Any,
    columns: str | Sequence[str] | None = None,
    *,
    rounds: int = 2,
    is_repeatable: bool | None = None,
) -> Any:
    """Return the rows of a DataFrame with one row for each value of ``columns`` (all columns by default).

    The result is that of ``dropDuplicates``, which may keep any of equal rows. Rows that `find_duplicates`
    rules out stay where they are; only candidates are shuffled. It pays if few rows are duplicates: if more
    than 30 % are candidates, or the frame may give other rows the next time, this is ``dropDuplicates``. The
    parameters and errors are those of `find_duplicates`.
    """
    names = frame.columns if columns is None else [columns] if isinstance(columns, str) else [*columns]
    condition = _find_candidates(frame, names, rounds, is_repeatable=is_repeatable)
    if condition is None:
        return frame.dropDuplicates(names)
    return frame.where(~condition).union(frame.where(condition).dropDuplicates(names))


def _find_candidates(frame: Any, columns: list[str], rounds: int, *, is_repeatable: bool | None) -> Any:
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
    if any("collate" in one.simpleString() for one in types):
        return None
    if not (plans.is_repeatable(frame) if is_repeatable is None else is_repeatable):
        return None
    if len(columns) == 1 and isinstance(types[0], spark_types.IntegralType):
        rows, least, values = _read_range(frame, columns[0])
        if rows - values > _MOST_CANDIDATES * rows:
            return None
        exact = hash_sets.choose_exact_shape(rows, values)
        if exact is not None:
            return _find_integers(frame, columns[0], rows, least, values, exact)
    else:
        rows = frame.count()
    return _find_hashes(frame, hash_columns(frame, columns), rows, rounds)


def _find_hashes(frame: Any, hashes: Any, rows: int, rounds: int) -> Any:
    """Return a Column that is True for each row whose hash occurs again; None if all rows are candidates."""
    condition, shift, total = None, 0, rows
    for number in range(rounds):
        shape = hash_sets.choose_shape(
            rows, hash_sets.LATER_SPREAD if number or rounds == 1 else hash_sets.SPREAD
        )
        if shift + shape.bits > 64:  # noqa: PLR2004 - the bits of a hash
            break
        source = frame if condition is None else frame.where(condition)
        answered = _exchange(source.select(hashes.alias("hash")), rows, shift, shape)
        digits = functions.shiftrightunsigned(functions.shiftleft(hashes, shift), 64 - shape.bits)
        found, repeated = _look_up_repeated(digits, answered, rows, total, shape)
        if found is None:
            return None
        condition, shift = found if condition is None else condition & found, shift + shape.bits
        # Each repeated digit is that of two rows, at least; chance adds rows that share no key.
        rows = max(2 * repeated, 1)
    return condition


def _read_range(frame: Any, column: str) -> tuple[int, int, int]:
    """Return the number of rows, the least integer, and the number of values up to the greatest and null."""
    key = pick(frame, column)
    counts = functions.count(functions.lit(1)), functions.min(key), functions.max(key)
    rows, least, greatest = frame.agg(*counts).first()
    return (rows, 0, 1) if least is None else (rows, least, greatest - least + 2)


def _find_integers(
    frame: Any, column: str, rows: int, least: int, values: int, shape: hash_sets.Shape
) -> Any:
    """Return a Column that is True for each row whose integer occurs again, by the integers themselves."""
    place = pick(frame, column).cast("long") - functions.lit(least).cast("long")
    place = functions.coalesce(place, functions.lit(values - 1).cast("long"))  # nulls come last
    aligned = functions.shiftleft(place, 64 - shape.bits)  # where `Collector` looks for digits
    answered = _exchange(frame.select(aligned.alias("hash")), rows, 0, shape)
    return _look_up_repeated(place, answered, rows, rows, shape)[0]


def _exchange(hashes: Any, rows: int, shift: int, shape: hash_sets.Shape) -> Any:
    """Return a frame of the owners' answers: the digits of hashes that occur repeatedly."""
    cores = count_local_cores(hashes.sparkSession)
    if cores:  # sets of more rows take fewer bits per row
        hashes = hashes.coalesce(max(cores, rows // hash_sets.ROWS_PER_SET))
    send = ship("send_hashes", shift, shape.bits, shape.owner_bits)
    answer = ship("answer_hashes", shape.bits, shape.owner_bits)
    sent = limit_by_rows(hashes).mapInArrow(send, _SENT)
    return sent.repartition(1 << shape.owner_bits, "owner").mapInArrow(answer, _ANSWERED)


def _look_up_repeated(
    digits: Any, answered: Any, rows: int, total: int, shape: hash_sets.Shape
) -> tuple[Any, int]:
    """Return a Column that is True where ``digits`` occur repeatedly, and how many do.

    None instead of the Column if that leaves too many of ``total`` rows, or too many for the executors.
    """
    if rows <= 2 * _MOST_DIGITS:  # each of the repeated digits is that of two rows
        known, repeated = _create_filter(answered, shape)
        if 2 * repeated > _MOST_CANDIDATES * total:
            return None, repeated
        return keep_candidates(answered.sparkSession, digits, known), repeated
    answered = answered.persist()
    try:
        with TranslateErrors():
            repeated = int(answered.groupBy().sum("size").first()[0] or 0)
        if 2 * repeated > _MOST_CANDIDATES * total:
            return None, repeated
        group_bits = min(shape.owner_bits, max(0, -(-repeated // _MOST_DIGITS) - 1).bit_length())
        nbytes = create_mergeable("spark", max(1, repeated), hash_sets.REPEATED_FPR).nbytes
        try:
            check_total_size(answered.sparkSession, nbytes)
        except FilterMemoryError as error:
            warnings.warn(f"all rows are compared, because {error}", RuntimeWarning, stacklevel=5)
            return None, repeated
        owner = functions.shiftright("owner", shape.owner_bits - group_bits)
        groups = (
            _create_filter(answered.where(owner == group), shape)[0] for group in range(1 << group_bits)
        )
        return keep_in_groups(answered.sparkSession, digits, groups, shape.bits - group_bits), repeated
    finally:
        answered.unpersist()


def _create_filter(answered: Any, shape: hash_sets.Shape) -> tuple[Any, int]:
    """Return a filter of the digits in some answers, and how many there are."""
    with TranslateErrors():
        answers = [(row["owner"], bytes(row["repeated"])) for row in answered.collect()]
    repeated = hash_sets.join(answers, shape.bits, shape.owner_bits)
    known = create_mergeable("spark", max(1, len(repeated)), hash_sets.REPEATED_FPR)
    known.update(repeated)
    return known, len(repeated)


def _choose_name(frame: Any, name: str) -> str:
    while name in frame.columns:
        name += "_"
    return name
