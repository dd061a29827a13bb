"""Guarantee: access logs are read whatever their lines hold, and drawn traces follow Zipf's law."""

from __future__ import annotations

import gzip
import random
import time
from collections import Counter
from datetime import UTC, datetime
from itertools import islice

import pytest

from fullbloom import ParameterError, ParameterTypeError
from fullbloom.recipes.traces import AccessLog, draw_zipf, measure_one_hit_share, parse_request

SEED = 1970
COMBINED = '203.0.113.9 - ann [17/May/2015:10:05:03 +0200] "GET /a?b=c HTTP/1.1" 200 2048 "http://x/" "curl"'
BROKEN = [
    COMBINED[:40],
    COMBINED.replace("17/May", "32/May"),
    COMBINED.replace("May", "Mai"),
    COMBINED.replace("+0200", "+9900"),
    COMBINED.replace("GET /a?b=c HTTP/1.1", "-"),
    COMBINED.replace("GET /a?b=c HTTP/1.1", "\\x16\\x03\\x01"),
    COMBINED.replace(" 200 ", " ok "),
    COMBINED.replace("2048", "2" * 30),
    "\0" * 100,
    "[" * 60_000,
    '"' * 60_000,
    "\\" * 60_000,
    "a - - [17/May/2015:10:05:03 +0200] " * 1500,
]


def test_the_fields_of_both_formats_are_read():
    common = COMBINED[: COMBINED.index(' "http')]
    for line in (COMBINED, common, common + " 0.013"):
        request = parse_request(line)
        assert request == (
            "203.0.113.9",
            datetime(2015, 5, 17, 8, 5, 3, tzinfo=UTC),
            "GET",
            "/a?b=c",
            200,
            2048,
        )
        assert request.is_cacheable


def test_quotes_in_a_request_and_spaces_in_a_name_are_read():
    line = COMBINED.replace("ann", "ann lee").replace("/a?b=c", '/a\\"b')
    assert parse_request(line).target == '/a\\"b'
    assert not parse_request(COMBINED.replace("GET", "POST")).is_cacheable
    assert not parse_request(COMBINED.replace(" 200 ", " 500 ")).is_cacheable
    assert parse_request(COMBINED.replace("2048", "-")).size == 0


@pytest.mark.parametrize("line", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_line_is_skipped_soon(line):
    start = time.process_time()
    log = AccessLog([line, COMBINED])
    assert [request.target for request in log] == ["/a?b=c"]
    assert (log.lines, log.skipped) == (2, 1)
    assert time.process_time() - start < 2  # linear in the line: some milliseconds


def test_random_damage_is_counted_and_never_raises():
    draw = random.Random(SEED)
    lines = []
    for _ in range(3000):
        line = bytearray(COMBINED, "ascii")
        for _ in range(draw.randint(0, 4)):
            at = draw.randrange(len(line))
            line[at : at + draw.randint(0, 9)] = draw.randbytes(draw.randint(0, 3)).replace(b"\n", b"")
        lines.append(bytes(line) + b"\n")
    log = AccessLog(lines)
    found = list(log)
    assert len(found) + log.skipped == log.lines == 3000, SEED
    assert log.skipped > 100


def test_a_line_without_end_takes_bounded_memory(tmp_path):
    path = tmp_path / "access.log"
    path.write_bytes(COMBINED.encode() + b"\n" + b"x" * 5_000_000 + b"\n\n" + COMBINED.encode())
    longest = 0

    class Watched:
        def __init__(self, file):
            self.file = file

        def readline(self, size):
            nonlocal longest
            longest = max(longest, size)
            return self.file.readline(size)

    with path.open("rb") as file:
        log = AccessLog(Watched(file))
        assert len(list(log)) == 2
    assert (log.lines, log.skipped) == (3, 1)
    assert longest < 100_000


def test_compressed_logs_and_text_files_are_read_alike(tmp_path):
    path, packed = tmp_path / "access.log", tmp_path / "access.log.gz"
    line = COMBINED.replace("/a?", "/\N{SNOWMAN}?")
    path.write_text(f"{line}\r\n" * 100, encoding="utf-8", newline="")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with path.open(encoding="utf-8") as text, gzip.open(packed) as compressed:
        assert list(AccessLog(text)) == list(AccessLog(compressed)) == [parse_request(line)] * 100


def test_drawn_traces_follow_the_law():
    draw = random.Random(SEED)
    for _ in range(5):
        objects, exponent = draw.randint(2, 2000), draw.uniform(0, 2)
        trace = list(islice(draw_zipf(objects, exponent, seed=draw.getrandbits(32)), 20_000))
        assert min(trace) >= 1
        assert max(trace) <= objects
        total = sum(rank**-exponent for rank in range(1, objects + 1))
        counts = Counter(trace)
        for rank in {1, 2, objects}:
            chance = rank**-exponent / total
            error = (20_000 * chance * (1 - chance)) ** 0.5
            assert abs(counts[rank] - 20_000 * chance) <= 6 * error + 6, (SEED, objects, exponent)


def test_a_seed_repeats_a_trace():
    assert list(islice(draw_zipf(99, seed=5), 2000)) == list(islice(draw_zipf(99, seed=5), 2000))


@pytest.mark.parametrize("arguments", [(0,), (5, -1.0), (5, float("nan"))])
def test_laws_that_do_not_exist_are_refused(arguments):
    with pytest.raises(ParameterError):
        draw_zipf(*arguments)


def test_the_one_hit_share_counts_objects():
    assert measure_one_hit_share([]) == 0.0
    assert measure_one_hit_share("abcb") == pytest.approx(2 / 3)


@pytest.mark.parametrize("path", ["access.log", b"access.log"])
def test_a_path_is_no_log(path):
    with pytest.raises(ParameterTypeError, match="an open file"):
        AccessLog(path)
