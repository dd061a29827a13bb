"""Guarantee: duplicates over many elements are found exactly, or with the stated errors and bits."""

from __future__ import annotations

import functools
import random
import tracemalloc
from collections import Counter
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from cases import for_each
from networked.processes import run_processes

from fullbloom import GolombSet, theory
from fullbloom.compose.networked import (
    CountingElement,
    LocalElement,
    ProcessingElement,
    find_duplicates,
    run_local,
)
from fullbloom.compose.networked import packets as packets_module
from fullbloom.compose.networked.key_bytes import decode_keys, encode_key, encode_keys
from fullbloom.compose.networked.packets import HashPackets, decode_indexes, encode_indexes
from fullbloom.compose.networked.rice import decode_list, encode_list
from fullbloom.errors import FormatError, KeyTypeError, ParameterError, ParameterTypeError, PeerError

SECRET = b"sixteen secrets!"
SIGMAS = 4.0
#: Most bytes of a container beside its codes and its index, and of a short list.
HEADER = 320
SHORT_HEADER = 7


def draw_shards(draw: random.Random) -> list[list[Any]]:
    """Keys of all kinds in shards of unequal sizes, some of them empty, with repeats within and between."""
    size, most = draw.randint(1, 9), draw.choice([1, 5, 100, 2000])
    pool: list[Any] = [
        draw.choice([f"key {number}", number, number / 3, UUID(int=number), number << 70, b"\xff%d" % number])
        for number in range(3 * most)
    ]
    return [draw.choices(pool, k=draw.choice([0, draw.randint(0, most), most])) for _ in range(size)]


def name(key: Any) -> tuple[type, Any]:
    """What tells keys apart here: 1 and 1.0 are two keys."""
    return type(key), key


@pytest.mark.long
@for_each("seed", range(12))
@for_each("fprs", [(), (0.125,), (0.5, 0.01), (0.3, 0.3, 0.001)])
def test_the_result_is_exact_after_the_last_round(seed: int, fprs: tuple[float, ...]) -> None:
    draw = random.Random(seed)
    shards = draw_shards(draw)
    options: dict[str, Any] = {"fprs": fprs, "seed": seed, "secret": draw.choice([None, SECRET])}
    counts = Counter(name(key) for shard in shards for key in shard)
    reports = run_local(
        len(shards), lambda element: find_duplicates(element, shards[element.rank], **options)
    )
    assert [report.mask for report in reports] == [
        [counts[name(key)] > 1 for key in shard] for shard in shards
    ]
    assert all(len(report.rounds) == len(fprs) + 1 for report in reports)

    reports = run_local(
        len(shards), lambda element: find_duplicates(element, shards[element.rank], keep="first", **options)
    )
    kept = [
        name(key)
        for shard, report in zip(shards, reports, strict=True)
        for key, is_marked in zip(shard, report.mask, strict=True)
        if not is_marked
    ]
    # The first occurrences, in order: what dict.fromkeys keeps.
    assert kept == list(dict.fromkeys(name(key) for shard in shards for key in shard))


@for_each("seed", range(8))
def test_accepting_false_positives_misses_no_duplicate(seed: int) -> None:
    shards = draw_shards(random.Random(seed))
    counts = Counter(name(key) for shard in shards for key in shard)
    for fprs in ((0.125,), (0.4, 0.05)):
        reports = run_local(
            len(shards),
            lambda element, fprs=fprs: find_duplicates(element, shards[element.rank], fprs=fprs, exact=False),
        )
        kept = run_local(
            len(shards),
            lambda element, fprs=fprs: find_duplicates(
                element, shards[element.rank], fprs=fprs, exact=False, keep="first"
            ),
        )
        seen: set[Any] = set()
        for shard, report, first in zip(shards, reports, kept, strict=True):
            for key, is_marked, is_dropped in zip(shard, report.mask, first.mask, strict=True):
                assert is_marked or counts[name(key)] == 1
                assert is_dropped or name(key) not in seen
                assert is_marked or not is_dropped
                seen.add(name(key))


class Recorder(CountingElement):
    """Keeps the messages that it sends."""

    def __init__(self, element: ProcessingElement) -> None:
        super().__init__(element)
        self.sent: list[bytes] = []

    def send(self, to: int, message: bytes) -> None:
        self.sent.append(message)
        super().send(to, message)


@pytest.mark.long
@for_each("items", [600, 5_000, 40_000, 300_000])
@for_each("seed", range(2))
def test_bits_and_rates_are_those_of_the_formulas(items: int, seed: int) -> None:
    draw = random.Random(seed + items)
    size, fpr = draw.randint(2, 6), 2.0 ** -draw.uniform(1, 8)
    items -= items % size

    def job(element: LocalElement) -> tuple[Any, list[bytes]]:
        recorder = Recorder(element)
        own = range(element.rank * (items // size), (element.rank + 1) * (items // size))
        return find_duplicates(recorder, own, fprs=(fpr,), exact=False, seed=seed), recorder.sent

    results = run_local(size, job)
    returned = sum(report.rounds[0].num_returned for report, _ in results)
    share = theory.single_shot_fpr(fpr, size)
    # A collision returns two keys, which doubles the variance.
    assert abs(returned - items * share) <= SIGMAS * (2 * items * share) ** 0.5, (returned, items * share)
    assert returned == sum(sum(report.mask) for report, _ in results)

    packets = [message for _, sent in results for message in sent[2 * (size - 1) : 3 * (size - 1)]]
    law, sent = theory.single_shot_bits(items, size, fpr), 8 * sum(map(len, packets))
    # A code has a geometric number of zeros, of mean below 2, so a deviation below 2 per key; and the number
    # of hashes that stay in their element varies.
    spread = SIGMAS * (2 + law / items) * items**0.5
    # A container has an index, a header, and gaps that end with their block of 128 keys.
    more = sum(0.14 * items / size**2 + 8 * HEADER for packet in packets if packet[0] == 1)
    assert law - spread - law / 128 <= sent <= law + spread + more + 8 * SHORT_HEADER * len(packets), (
        sent,
        law,
    )

    # In all: the answers, too.
    answers = theory.single_shot_answer_bits(items, size, returned / items)
    whole = sum(report.bits_sent for report, _ in results)
    assert whole == 8 * sum(len(message) for _, sent in results for message in sent)
    small = 8 * (8 + 16 + SHORT_HEADER) * len(packets)
    assert whole - sent <= answers * (1 + 0.04 * (items > 60_000)) + SIGMAS * 2 * items**0.5 + small


@pytest.mark.parametrize("seed", range(3))
def test_all_bits_are_within_five_percent_of_the_formulas_from_a_thousand_hashes_per_packet(
    seed: int,
) -> None:
    draw = random.Random(seed)
    size = draw.randint(2, 8)
    items, fpr = size * size * draw.randint(1000, 3000), 2.0 ** -draw.uniform(1, 8)

    def job(element: LocalElement) -> tuple[int, int]:
        own = range(element.rank, items, size)
        report = find_duplicates(element, own, fprs=(fpr,), exact=False, seed=seed)
        return report.bits_sent, report.rounds[0].num_returned

    sent, returned = map(sum, zip(*run_local(size, job), strict=True))
    law = theory.single_shot_bits(items, size, fpr)
    law += theory.single_shot_answer_bits(items, size, returned / items)
    assert abs(sent / law - 1) <= 0.05, (sent, law)


@pytest.mark.parametrize("seed", range(4))
def test_repeated_filters_leave_the_product_of_their_rates(seed: int) -> None:
    draw = random.Random(seed)
    size, items = draw.randint(2, 5), 60_000
    fprs = (draw.uniform(0.2, 0.6), draw.uniform(0.05, 0.3))

    def job(element: LocalElement) -> list[bool]:
        own = range(element.rank, items, size)
        return find_duplicates(element, own, fprs=fprs, exact=False, seed=seed, secret=SECRET).mask

    wrong = sum(map(sum, run_local(size, job)))
    expected = items * theory.single_shot_fpr(fprs[0], size) * theory.single_shot_fpr(fprs[1], size)
    assert abs(wrong - expected) <= SIGMAS * (2 * expected) ** 0.5, (wrong, expected)


def test_filtering_first_sends_far_less_than_sending_all_keys() -> None:
    def job(element: LocalElement, fprs: tuple[float, ...]) -> int:
        keys = [f"https://example.org/a/long/path/{element.rank}/{number}" for number in range(20_000)]
        return find_duplicates(element, keys, fprs=fprs).bits_sent

    bits = [sum(run_local(4, lambda element, fprs=fprs: job(element, fprs))) for fprs in ((), (0.05,))]
    # A key has 46 bytes on average; a value about 8 bits.
    assert bits[1] * 10 < bits[0]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("size", [2, 3, 8])
def test_processes_find_exactly_the_duplicates(size: int) -> None:
    items, shared = 6000, 500

    def job(element: ProcessingElement) -> list[bool]:
        keys = [f"shared {number}" for number in range(shared)]
        keys += [f"own {element.rank} {number}" for number in range(items - shared)]
        return find_duplicates(element, keys, fprs=(0.2, 0.01)).mask

    for outcome in run_processes(size, job):
        assert outcome.value == [number < shared for number in range(items)]


@pytest.fixture(params=["containers", "short lists"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes all packets, or as usual only those of many hashes, containers of the core."""
    if request.param == "containers":
        monkeypatch.setattr(packets_module, "_LONG", 1)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("seed", range(40))
def test_a_peer_that_lies_is_an_error_with_its_rank_or_changes_nothing_else(seed: int) -> None:
    draw = random.Random(seed)
    size, liar, lie = draw.randint(2, 5), 0, draw.choice(["cut", "flip", "noise", "empty", "repeat", "long"])
    at = draw.randrange(6 * (size - 1))

    class Liar(Recorder):
        def send(self, to: int, message: bytes) -> None:
            if len(self.sent) == at:
                forged = bytearray(message)
                if lie == "flip" and forged:
                    forged[draw.randrange(len(forged))] ^= 1 << draw.randrange(8)
                message = {
                    "cut": message[: draw.randrange(max(1, len(message)))],
                    "flip": bytes(forged),
                    "noise": draw.randbytes(draw.choice([1, 16, 1000])),
                    "empty": b"",
                    "repeat": self.sent[-1] if self.sent else b"",
                    "long": message + b"\0",
                }[lie]
            super().send(to, message)

    def job(element: LocalElement) -> int:
        own: ProcessingElement = Liar(element) if element.rank == liar else element
        keys = [*range(500), *range(1000 * element.rank + 1000, 1000 * element.rank + 2000)]
        return len(find_duplicates(own, keys).mask)

    try:
        assert run_local(size, job, timeout=60) == [1500] * size
    except PeerError as error:
        assert error.rank == liar, (lie, at, error)


def test_sizes_and_answers_that_cannot_be_are_refused() -> None:
    for sizes in ((100,), (1, 2), (100, 49), (1 << 40, 1 << 40), (1 << 63, 1 << 63)):
        message = b"".join(size.to_bytes(8, "little") for size in sizes)

        class Liar(CountingElement):
            def send(self, to: int, honest: bytes) -> None:
                # The first message is that of the options, the second that of the sizes.
                super().send(to, message if self.messages_sent == 1 else honest)  # noqa: B023

        with pytest.raises(PeerError, match="rank 1 sent an invalid packet"):
            run_local(
                2, lambda element: find_duplicates(Liar(element) if element.rank else element, range(100))
            )


@for_each("at", [2, 3], ids=["packet", "answer"])
def test_a_container_under_a_secret_is_an_error_with_its_rank(at: int) -> None:
    """A set that needs a secret is a valid file, but no packet has one."""
    keyed = b"\1" + GolombSet.build_hashed([1, 2, 3], 0.1, capacity=3, secret=SECRET).to_bytes()

    class Liar(CountingElement):
        def send(self, to: int, message: bytes) -> None:
            # The options and the sizes come first.
            super().send(to, keyed if self.messages_sent == at else message)

    with pytest.raises(PeerError, match="rank 1 sent an invalid packet") as caught:
        run_local(2, lambda element: find_duplicates(Liar(element) if element.rank else element, range(100)))
    assert caught.value.rank == 1
    for decode in (HashPackets(3, 30).decode, decode_indexes):
        with pytest.raises(FormatError, match="secret"):
            decode(keyed, 10)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("seed", range(20))
def test_packets_return_what_was_put_in_and_refuse_the_rest(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(50):
        count, share = draw.choice([1, 2, 3, 10, 1000]), draw.random() ** 2
        indexes = [index for index in range(count) if draw.random() < share]
        message = encode_indexes(indexes, count)
        assert decode_indexes(message, count) == indexes
        if indexes and message[0] in (0, 1):
            with pytest.raises(FormatError, match=r"below|at most"):
                decode_indexes(message, indexes[-1])
        capacity, values = draw.choice([1, 5, 1000]), draw.choice([1, 50, 10**6, 10**12])
        packets = HashPackets(capacity, values)
        hashes = sorted({draw.getrandbits(64) for _ in range(draw.randint(0, capacity))})
        packet = packets.encode(hashes)
        assert packets.decode(packet, capacity) == sorted({each * packets.universe >> 64 for each in hashes})
        if packet:
            found = packets.decode(packet, capacity)
            with pytest.raises(FormatError, match="at most"):
                packets.decode(packet, len(found) - 1)
            container = bytes([1]) + GolombSet.build_hashed([], capacity=capacity + 1).to_bytes()
            with pytest.raises(FormatError, match="was due"):
                packets.decode(container, capacity)
        keys = list({draw.randbytes(draw.choice([0, 1, 127, 128, 300])) for _ in range(draw.randint(0, 20))})
        message = encode_keys(keys)
        assert decode_keys(message, len(keys)) == keys
        forged = bytearray(message + b"\0")
        forged[draw.randrange(len(forged))] ^= 1 << draw.randrange(8)
        with suppress(FormatError):
            decode_keys(bytes(forged[: draw.randint(0, len(forged))]), 100)
    with pytest.raises(FormatError, match="start with a byte up to 3, got 7"):
        decode_indexes(b"\x07", 10)
    for broken in (b"\x01", bytes(16), encode_keys([b"a", b"b"])[:-1], encode_keys([b"a", b"a"])):
        with pytest.raises(FormatError):
            decode_keys(broken, 100)


@pytest.mark.parametrize("seed", range(5))
def test_any_bytes_are_a_list_below_the_universe_or_a_format_error(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(2000):
        universe = draw.choice([1, 7, 1000, 10**9, 1 << 60])
        values = sorted({draw.randrange(universe) for _ in range(draw.randint(0, 30))})
        data = encode_list(values, universe)
        assert decode_list(data, universe) == values
        forged = bytearray(data or b"\1\1\0\0\0\0")
        for _ in range(draw.randint(1, 3)):
            forged[draw.randrange(len(forged))] ^= 1 << draw.randrange(8)
        forged = forged[: draw.randint(0, len(forged))] + draw.randbytes(draw.choice([0, 0, 1, 9]))
        with suppress(FormatError):
            found = decode_list(bytes(forged), universe)
            assert found == sorted(set(found))
            assert all(0 <= value < universe for value in found)
            assert len(found) <= 8 * len(forged)


def test_a_list_longer_than_its_values_take_is_refused() -> None:
    """The decoder holds a letter per bit, so a peer must not choose their number."""
    header = bytes([1]) + (1).to_bytes(4, "little")
    with pytest.raises(FormatError, match="too many for 1 values"):
        decode_list(header + bytes(100_000), 1 << 60)
    many = bytes([1]) + (1 << 20).to_bytes(4, "little")
    with pytest.raises(FormatError, match="at most 65535 values"):
        decode_list(many + b"\xff" * (1 << 18), 1 << 60)


def test_most_values_of_a_large_universe_fit_in_a_list() -> None:
    draw = random.Random(1)
    for count, universe in [(1, (1 << 62) - 1), (5, 1 << 61), (65_535, 1 << 61), (65_535, 65_536), (3, 4)]:
        for low in (0, max(0, universe - 2 * count)):
            values = sorted({*draw.sample(range(low, universe), count - 1), universe - 1})
            assert decode_list(encode_list(values, universe), universe) == values


class Forger(CountingElement):
    """Sends forged messages, by their number, in the place of honest ones."""

    def __init__(self, element: ProcessingElement, forged: dict[int, bytes]) -> None:
        super().__init__(element)
        self.forged = forged

    def send(self, to: int, message: bytes) -> None:
        super().send(to, self.forged.get(self.messages_sent, message))


def run_forged(forged: dict[int, bytes], **options: Any) -> int:
    """Run two elements, of which rank 1 forges messages; return the peak of Python's memory in rank 0."""
    peaks: list[int] = []

    def job(element: LocalElement) -> None:
        if element.rank:
            find_duplicates(Forger(element, forged), range(100), **options)
            return
        tracemalloc.start()
        try:
            find_duplicates(element, range(100), **options)
        finally:
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    with pytest.raises(PeerError, match="rank 1 sent an invalid packet"):
        run_local(2, job)
    return peaks[0]


def test_a_peer_cannot_take_more_memory_than_max_keys_allows() -> None:
    """Packets hold four values in a byte, and a value takes 40 bytes when it is read."""
    draw, count = random.Random(1), 400_000
    sizes = count.to_bytes(8, "little") * 2
    packets = HashPackets(count, round((count + 100) / (2 * 0.9)))
    packet = packets.encode(sorted({draw.getrandbits(64) for _ in range(count)}))
    # Message 0 has the options, 1 the sizes, 2 the packet.
    assert run_forged({1: sizes, 2: packet}, fprs=(0.9,), max_keys=1000) < 4 << 20
    keys = encode_keys([number.to_bytes(3, "big") for number in range(400_000)])
    assert run_forged({1: keys}, fprs=(), max_keys=1000) < 4 << 20
    many = b"".join(number.to_bytes(8, "little") for number in (1 << 31, 1 << 30))
    assert run_forged({1: many}, fprs=(0.125,)) < 4 << 20
    # More lengths than the number of keys that was stated.
    endless = (5).to_bytes(8, "little") + count.to_bytes(8, "little") + bytes(count)
    assert run_forged({1: endless}, fprs=()) < 4 << 20


def test_more_keys_than_max_keys_are_refused_before_anything_is_sent() -> None:
    element = CountingElement(LocalElement.group(2)[0])
    with pytest.raises(ParameterError, match="may have 10 keys, got 11; raise max_keys in all elements"):
        find_duplicates(element, range(11), max_keys=10)
    assert element.messages_sent == 0
    for most, error in ((0, ParameterError), (1 << 64, ParameterError), (1.5, ParameterTypeError)):
        with pytest.raises(error, match="max_keys"):
            find_duplicates(element, [1], max_keys=most)  # type: ignore[arg-type]
    with pytest.raises(PeerError, match="may have 10 keys, got 11; max_keys= raises"):
        run_local(2, lambda e: find_duplicates(e, range(10 + e.rank), max_keys=10 + e.rank))


def test_a_single_text_is_no_collection_of_keys() -> None:
    with pytest.raises(KeyTypeError, match="one str"):
        run_local(1, lambda element: find_duplicates(element, "ada"))


def test_equal_keys_have_equal_bytes_and_others_do_not() -> None:
    equal = [("é", "é".encode()), (True, 1), (0.0, -0.0), (float("nan"), -float("nan"))]
    for one, other in equal:
        assert encode_key(one) == encode_key(other)
    numbers = [
        *range(-300, 300),
        *(sign * 2**bits + step for sign in (1, -1) for bits in range(8, 80) for step in (-1, 0, 1)),
    ]
    distinct = {encode_key(key) for key in [*numbers, *(float(n) for n in range(9)), *map(str, range(9))]}
    assert len(distinct) == len(set(numbers)) + 18
    with pytest.raises(KeyTypeError, match="encode="):
        encode_key((1, 2))
    reports = run_local(
        2,
        lambda element: find_duplicates(
            element, [(1, "a"), (element.rank, "b")], encode=lambda k: repr(k).encode()
        ),
    )
    assert [report.mask for report in reports] == [[True, False]] * 2
    # Without a comparison, any key will do.
    keys = [(1, "a"), (1, "a"), (2, "b")]
    reports = run_local(2, lambda element: find_duplicates(element, keys[: 3 * element.rank], exact=False))
    assert reports[1].mask[:2] == [True, True]


def test_invalid_options_are_refused_before_anything_is_sent() -> None:
    element = LocalElement.group(2)[0]
    for options, error, match in (
        ({"fprs": (1.0,)}, ParameterError, "fprs must be from 1e-09 to 1"),
        ({"fprs": (0.0,)}, ParameterError, "fprs"),
        ({"fprs": ("a",)}, ParameterTypeError, "fprs must be numbers"),
        ({"fprs": (), "exact": False}, ParameterError, "at least one rate"),
        ({"keep": "last"}, ParameterError, 'keep must be False or "first"'),
        ({"keep": True}, ParameterError, 'keep must be False or "first"'),
    ):
        with pytest.raises(error, match=match):
            find_duplicates(element, [1], **options)  # type: ignore[arg-type]
    with pytest.raises(KeyTypeError):
        run_local(2, lambda element: find_duplicates(element, [object()]))


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"secret": SECRET},
        {"fprs": (0.1,)},
        {"exact": False},
        {"keep": "first"},
        {"encode": lambda key: b"%d" % key},
        {"encode": functools.partial(int.to_bytes, length=8, byteorder="big")},
    ],
)
def test_elements_with_other_options_are_refused(other: dict[str, Any]) -> None:
    def job(element: LocalElement) -> Any:
        return find_duplicates(element, range(100), **(other if element.rank == 1 else {}))

    with pytest.raises(PeerError, match="uses other options, or another secret"):
        run_local(3, job)
