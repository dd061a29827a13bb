"""Duplicates among the keys of many elements, by distributed single-shot filters and repartition."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections import Counter
from functools import partial
from itertools import chain, compress, pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from fullbloom._core import hash_key, hash_many
from fullbloom.errors import (
    FormatError,
    FullbloomError,
    KeyTypeError,
    ParameterError,
    ParameterTypeError,
    PeerError,
)

from .element import CountingElement
from .key_bytes import decode_keys, encode_key, encode_keys
from .packets import HashPackets, decode_indexes, encode_indexes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fullbloom.keys import Key

    from .element import ProcessingElement

__all__ = ["DuplicateReport", "Round", "find_duplicates"]

T = TypeVar("T")

_HASHES = 1 << 64
_HASH_BYTES = 8
#: Step between the seeds of two rounds, odd so that all of 2^64 rounds differ.
_NEXT_SEED = 0x9E3779B97F4A7C15
#: Number of hashes of an element, and the most that it sends to one owner.
_SIZES = struct.Struct("<QQ")
_LEAST_FPR = 1e-9
#: By default, a peer may have as many keys as take 2 GB here.
_MOST_KEYS = 1 << 24


class Round(NamedTuple):
    """What one element did in one round."""

    #: Rate of the round's filter; None for the exact comparison.
    fpr: float | None
    #: Distinct keys that the element sent.
    num_keys: int
    #: How many of them the owners returned as duplicates.
    num_returned: int
    #: Bits of all messages that the element sent to others.
    bits_sent: int


class DuplicateReport(NamedTuple):
    """The duplicates among the keys of one element."""

    #: For each key, in the order given, whether it is a duplicate.
    mask: list[bool]
    #: The rounds, in their order.
    rounds: list[Round]

    @property
    def bits_sent(self) -> int:
        """Bits of all messages that the element sent to others."""
        return sum(each.bits_sent for each in self.rounds)


def find_duplicates(
    element: ProcessingElement,
    keys: Iterable[Key],
    *,
    fprs: Sequence[float] = (0.125,),
    exact: bool = True,
    keep: Literal["first", False] = False,
    seed: int = 0,
    secret: bytes | None = None,
    encode: Callable[[Any], bytes] = encode_key,
    max_keys: int = _MOST_KEYS,
) -> DuplicateReport:
    """Find the keys that occur more than once in all elements together; all elements call this function.

    Each element owns a range of hashes. In a round, every element sends its distinct hashes to their owners
    in Golomb-coded packets, and an owner returns which of them it received from two elements: a Bloom
    filter with one hash (k = 1), spread over the elements and used once. Keys that are not returned are
    unique for certain; only the others take part in the next round, with fresh hashes.

    fprs: rate of each round's filter, the share of unique keys that it returns; a loose one, then tight
    ones, filters repeatedly. exact: finally send the returned keys themselves to owners, which compare them,
    so that the result is exact. With False, the keys that the last round returned count as duplicates: a
    unique key does at the product of the rates. No duplicate is missed in either case. With no ``fprs``, all
    keys are sent (repartition). keep: False marks all occurrences of a duplicate; "first" leaves out the
    first, in the order of ranks and positions, so that removing the marked keys removes the duplicates.
    encode: bytes of a key for the exact comparison, different for different keys. All elements must pass
    equal options, which they compare first: ``encode`` by the name of the function. max_keys: keys that each
    element may have, 2^24 by default. It bounds the memory that a peer can make this element take, some 120
    bytes per key; packets are so dense that the length of a message does not.

    Sends about n (log2(P / fpr) + 1.5) bits for n keys in P elements, plus the answers
    (`theory.single_shot_bits`), instead of n whole keys. Costs some 5 us per key. Raises ``PeerError`` if a
    peer fails or sends invalid data, ``KeyTypeError`` for a key without bytes, ``ParameterError`` for invalid
    options. Anyone who can predict hashes can send unique keys into the later rounds: pass a ``secret`` for
    untrusted keys.

    Source: Sanders, Schlag, Müller, "Communication efficient algorithms for fundamental big data problems",
    IEEE Big Data 2013; repartition: Shatdal, Naughton, "Processing aggregates in parallel database systems",
    1994.

    >>> from fullbloom.compose.networked import run_local
    >>> shards = [["ada", "alan", "alan"], ["grace", "ada"], ["edsger"]]
    >>> reports = run_local(3, lambda element: find_duplicates(element, shards[element.rank]))
    >>> [report.mask for report in reports]
    [[True, True, True], [False, True], [False]]
    """
    _check_options(fprs, exact, keep, max_keys)
    if isinstance(keys, (str, bytes)):
        raise KeyTypeError(f"keys must be an iterable of keys, got one {type(keys).__name__}")
    keys = list(keys)
    if len(keys) > max_keys:
        raise ParameterError(
            f"an element may have {max_keys} keys, got {len(keys)}; raise max_keys in all elements"
        )
    counter, rounds = CountingElement(element), []
    options: tuple[float | str, ...] = (*map(float, fprs), exact, bool(keep), _name(encode) if exact else "")
    _compare_options(counter, hash_key(options, seed=seed, secret=secret))
    candidates, mask = list(range(len(keys))), [False] * len(keys)
    for number, fpr in enumerate([*fprs, None] if exact else fprs):
        # The last round decides about the first occurrence; earlier ones must keep all.
        first = bool(keep) and (fpr is None or (not exact and number == len(fprs) - 1))
        hashes = _hash(keys, candidates, (seed + number * _NEXT_SEED) % _HASHES, secret)
        if number == 0:
            groups = _group_repeats(keys, hashes, encode if exact else None)
            # One occurrence of a key speaks for all within an element.
            candidates = sorted(groups)
            hashes = [hashes[at] for at in candidates]
        before = counter.bits_sent if number else 0
        if fpr is None:
            names = [encode(keys[at]) for at in candidates]
            found = _compare_keys(counter, names, hashes, first=first, most=max_keys)
            returned, num_sent = [name in found for name in names], len(names)
        else:
            flagged, num_sent = _filter_hashes(counter, hashes, fpr, first=first, most=max_keys)
            returned = [value in flagged for value in hashes]
        candidates = list(compress(candidates, returned))
        rounds.append(Round(fpr, num_sent, len(candidates), counter.bits_sent - before))
    for at in candidates:
        mask[at] = True
    for at, others in groups.items():
        if others:
            mask[at] |= not keep
            for other in others:
                mask[other] = True
    return DuplicateReport(mask, rounds)


def _check_options(fprs: Sequence[float], exact: bool, keep: object, max_keys: int) -> None:
    for fpr in fprs:
        if not isinstance(fpr, (int, float)):
            raise ParameterTypeError(f"fprs must be numbers, got {fpr!r}")
        if not _LEAST_FPR <= fpr < 1.0:
            raise ParameterError(f"fprs must be from {_LEAST_FPR} to 1 (exclusive), got {fpr}")
    if not fprs and not exact:
        raise ParameterError("give at least one rate in fprs, or exact=True")
    if keep not in (False, "first"):
        raise ParameterError(f'keep must be False or "first", got {keep!r}')
    if type(max_keys) is not int:
        raise ParameterTypeError(f"max_keys must be an int, got {max_keys!r}")
    if not 1 <= max_keys < _HASHES:
        raise ParameterError(f"max_keys must be at least 1 and below 2**64, got {max_keys}")


def _name(function: Callable[[Any], bytes]) -> str:
    """Return what a function is called, which is the same in all processes of one program."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _compare_options(element: CountingElement, token: int) -> None:
    """Compare a hash of the options: elements with other seeds or secrets would miss duplicates silently."""
    own = token.to_bytes(_HASH_BYTES, "little")
    for source, theirs in enumerate(_exchange(element, [own] * element.size)):
        if theirs != own:
            raise PeerError(source, "uses other options, or another secret")


def _hash(keys: Sequence[Key], candidates: Sequence[int], seed: int, secret: bytes | None) -> list[int]:
    """Return the hash of each candidate, of the round with this seed."""
    part = keys if len(candidates) == len(keys) else [keys[at] for at in candidates]
    return [int(value) for value in hash_many(part, seed=seed, secret=secret)]


def _group_repeats(
    keys: Sequence[Key], hashes: Sequence[int], encode: Callable[[Any], bytes] | None
) -> dict[int, list[int]]:
    """Return the positions of first occurrences within the element, each with those of its repeats.

    encode: returns what to compare for equal hashes, which do not make equal keys; None compares hashes.
    """
    counts = Counter(hashes)
    if len(counts) == len(hashes):
        return {at: [] for at in range(len(hashes))}
    groups: dict[int, list[int]] = {}
    firsts: dict[bytes | int, int] = {}
    for at, value in enumerate(hashes):
        first = at
        if counts[value] > 1:
            first = firsts.setdefault(encode(keys[at]) if encode else value, at)
        if first == at:
            groups[at] = []
        else:
            groups[first].append(at)
    return groups


def _filter_hashes(
    element: CountingElement, hashes: Sequence[int], fpr: float, *, first: bool, most: int
) -> tuple[set[int], int]:
    """Return the hashes that owners received from two elements, and the number of hashes sent.

    first: leave out those that no element of a lower rank sent. most: hashes that an element may have.
    """
    size = element.size
    slices = _split_by_owner(sorted(set(hashes)), size)
    lengths = [len(part) for part in slices]
    sizes = _share_sizes(element, sum(lengths), max(lengths), most)
    total, largest = sum(each[0] for each in sizes), max(each[1] for each in sizes)
    if largest == 0:
        return set(), 0
    packets = HashPackets(largest, max(1, round(total / (size * fpr))))
    # Within its owner's range, a hash is the rest of its 64 bits scaled by the number of owners.
    within = [[value * size % _HASHES for value in part] for part in slices]
    incoming = _exchange(element, [packets.encode(part) for part in within])
    received = [
        _decode(partial(packets.decode, most=stated), source, packet)
        for source, (packet, (_, stated)) in enumerate(zip(incoming, sizes, strict=True))
    ]
    marked = _mark_shared(received, first=first)
    answers = [encode_indexes(found, len(values)) for found, values in zip(marked, received, strict=True)]
    flagged: set[int] = set()
    for owner, answer in enumerate(_exchange(element, answers)):
        values = packets.round_hashes(within[owner])
        distinct = list(dict.fromkeys(values))
        chosen = {distinct[index] for index in _decode_answer(owner, answer, len(distinct))}
        flagged.update(
            value for value, rounded in zip(slices[owner], values, strict=True) if rounded in chosen
        )
    return flagged, len(hashes)


def _compare_keys(
    element: CountingElement, names: Sequence[bytes], hashes: Sequence[int], *, first: bool, most: int
) -> set[bytes]:
    """Return the keys that their owners received from two elements, by comparison of the keys."""
    parts: list[list[bytes]] = [[] for _ in range(element.size)]
    for name, value in zip(names, hashes, strict=True):
        parts[value * element.size >> 64].append(name)
    incoming = _exchange(element, [encode_keys(part) for part in parts])
    received = [
        _decode(partial(decode_keys, most=most), source, message) for source, message in enumerate(incoming)
    ]
    marked = _mark_shared(received, first=first)
    answers = [encode_indexes(found, len(keys)) for found, keys in zip(marked, received, strict=True)]
    shared: set[bytes] = set()
    for owner, answer in enumerate(_exchange(element, answers)):
        part = parts[owner]
        shared.update(part[index] for index in _decode_answer(owner, answer, len(part)))
    return shared


def _split_by_owner(hashes: Sequence[int], size: int) -> list[Sequence[int]]:
    """Cut ascending hashes at the ends of the owners' ranges."""
    ends = [bisect_left(hashes, -(-owner * _HASHES // size)) for owner in range(size + 1)]
    return [hashes[low:high] for low, high in pairwise(ends)]


def _share_sizes(element: CountingElement, count: int, largest: int, limit: int) -> list[tuple[int, int]]:
    """Return the number of hashes, up to ``limit``, and the largest packet of each element, by rank."""
    messages = _exchange(element, [_SIZES.pack(count, largest)] * element.size)

    def read(message: bytes) -> tuple[int, int]:
        if len(message) != _SIZES.size:
            raise FormatError(f"two sizes take {_SIZES.size} bytes, got {len(message)}")
        total, most = _SIZES.unpack(message)
        if total > limit:
            raise FormatError(f"an element may have {limit} keys, got {total}; max_keys= raises this limit")
        # The largest of several parts is at least their mean.
        if not total <= most * element.size <= total * element.size:
            raise FormatError(f"{total} hashes cannot have a largest packet of {most}")
        return total, most

    return [_decode(read, source, message) for source, message in enumerate(messages)]


def _exchange(element: CountingElement, messages: Sequence[bytes]) -> list[bytes]:
    """Send a message to each element and return one from each; the own one stays here."""
    for distance in range(1, element.size):
        to = (element.rank + distance) % element.size
        element.send(to, messages[to])
    incoming = list(messages)
    for distance in range(1, element.size):
        source = (element.rank - distance) % element.size
        incoming[source] = element.receive(source)
    return incoming


def _decode(decode: Callable[[bytes], T], source: int, message: bytes) -> T:
    """Decode a message; raise ``PeerError`` for its sender if it is invalid."""
    try:
        return decode(message)
    except FullbloomError as error:
        raise PeerError(source, f"sent an invalid packet: {error}") from error


def _decode_answer(owner: int, answer: bytes, count: int) -> list[int]:
    return _decode(lambda data: decode_indexes(data, count), owner, answer)


def _mark_shared(received: Sequence[Sequence[T]], *, first: bool) -> list[list[int]]:
    """Return, for each element, the indexes of its values that another element sent, too.

    The values of an element are distinct. first: only those that an element of a lower rank sent.
    """
    # Sorting runs that are sorted is a merge, and takes less memory than counting.
    shared = {a for a, b in pairwise(sorted(chain.from_iterable(received))) if a == b}  # type: ignore[type-var]
    seen: set[T] = set()
    marked = []
    for values in received:
        wanted = seen if first else shared
        marked.append([index for index, value in enumerate(values) if value in wanted])
        seen |= shared.intersection(values)
    return marked
