"""Nonsense is refused by the right error, with the value in the message, before anything is allocated.

Each case runs here and again in a process of its own whose address space is limited, where an attempt to
allocate first would end in an abort.
"""

from __future__ import annotations

import inspect
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from cases import for_each

import fullbloom
from fullbloom import _core, registry

# Generous for a slow, busy machine; a case takes microseconds unless it hangs.
HANG_SECONDS = 60
LIMIT = 1 << 30

F, S, W = "BloomFilter", "ScalableBloomFilter", "BloomFilter.with_shape"
HUGE = 10**18
# Too large for 64-bit hashes, or for any memory: whichever is seen first.
IMPOSSIBLE = "ParameterError|FilterMemoryError"

# (expression, error class, what its message must contain)
CASES: list[tuple[str, str, str]] = [
    (f"{F}(0)", "ParameterError", "0"),
    (f"{F}(-1)", "ParameterError", "-1"),
    (f"{F}(10**18)", IMPOSSIBLE, str(HUGE)),
    (f"{F}(10**18, 0.5)", IMPOSSIBLE, str(HUGE)),
    (f"{F}(10**15)", "FilterMemoryError", "bytes"),
    (f"{F}(10**15, layout='classic')", "FilterMemoryError", "bytes"),
    (f"{F}(10**15, layout='blocked')", "FilterMemoryError", "bytes"),
    (f"{F}(10**15, layout='partitioned')", "FilterMemoryError", "bytes"),
    (f"{F}(10**15, layout='split')", IMPOSSIBLE, "0000"),
    (f"{F}(10**13, layout='blocked')", "FilterMemoryError", "bytes"),
    (f"{F}(10**11)", "FilterMemoryError", "bytes"),
    (f"{F}(10**12, 1e-6, layout='blocked')", "FilterMemoryError", "bytes"),
    (f"{F}(2**63)", IMPOSSIBLE, str(2**63)),
    (f"{F}(2**64 - 1)", IMPOSSIBLE, str(2**64 - 1)),
    (f"{F}(2**64)", "ParameterError", str(2**64)),
    (f"{F}(10**40)", "ParameterError", str(10**40)),
    (f"{F}(True)", "ParameterTypeError", "True"),
    (f"{F}(1.5)", "ParameterTypeError", "1.5"),
    (f"{F}(1e18)", "ParameterTypeError", "1e+18"),
    (f"{F}('x')", "ParameterTypeError", "'x'"),
    (f"{F}(None)", "ParameterTypeError", "None"),
    (f"{F}([5])", "ParameterTypeError", "[5]"),
    (f"{F}(float('nan'))", "ParameterTypeError", "nan"),
    *[
        (f"{cls}(100, {fpr})", "ParameterError", shown)
        for cls in (F, S)
        for fpr, shown in [
            ("float('nan')", "NaN|nan"),
            ("float('inf')", "inf"),
            ("float('-inf')", "-inf"),
            ("0", "0"),
            ("0.0", "0"),
            ("-0.0", "0"),
            ("1", "1"),
            ("1.0", "1"),
            ("1.5", "1.5"),
            ("-1", "-1"),
            ("1e-300", "1e-300"),
            ("5e-324", "5e-324"),
            ("1e-16", "1e-16"),
        ]
    ],
    (f"{F}(100, 'x')", "ParameterTypeError", "'x'"),
    (f"{F}(100, True)", "ParameterTypeError", "True"),
    (f"{F}(100, None)", "ParameterTypeError", "None"),
    (f"{F}(100, 1j)", "ParameterTypeError", "1j"),
    (f"{F}(100, '0.01')", "ParameterTypeError", "0.01"),
    (f"{F}(2**60, 1e-10)", IMPOSSIBLE, "1e-10"),
    (f"{F}(100, layout='round')", "ParameterError", "round"),
    (f"{F}(100, layout='')", "ParameterError", '""'),
    (f"{F}(100, layout=5)", "ParameterTypeError", "5"),
    (f"{F}(100, layout=None)", "ParameterTypeError", "None"),
    (f"{F}(100, scheme='md5')", "ParameterError", "md5"),
    (f"{F}(100, hash='md4')", "ParameterError", "md4"),
    (f"{F}(100, hash=3)", "FullbloomError", "3"),
    (f"{F}(100, hash='md5', secret=b'sixteen secrets!')", "ParameterError", "md5"),
    (f"{F}(10**9, 0.01, hash='murmur3-32')", "ParameterError", "murmur3-32"),
    (f"{F}(100, scheme=3)", "FullbloomError", "3"),
    (f"{F}(100, layout='blocked', scheme='mcg')", "ParameterError", "mcg"),
    (f"{F}(100, layout='split', scheme='columns')", "ParameterError", "columns"),
    (f"{F}(100, layout='classic', scheme='parquet')", "ParameterError", "parquet"),
    (f"{F}(100, seed=-1)", "ParameterError", "-1"),
    (f"{F}(100, seed=2**64)", "ParameterError", str(2**64)),
    (f"{F}(100, seed=1.5)", "ParameterTypeError", "1.5"),
    (f"{F}(100, seed='a')", "ParameterTypeError", "'a'"),
    (f"{F}(100, seed=True)", "ParameterTypeError", "True"),
    (f"{F}(100, secret=b'short')", "ParameterError", "5"),
    (f"{F}(100, secret=b'')", "ParameterError", "0"),
    (f"{F}(100, secret=b'x' * 17)", "ParameterError", "17"),
    (f"{F}(100, secret='sixteen symbols!')", "ParameterTypeError", "str"),
    (f"{F}(100, secret=16)", "ParameterTypeError", "int"),
    (f"{F}(100, secret=[0] * 16)", "ParameterTypeError", "list"),
    (f"{W}(0, 7)", "ParameterError", "0"),
    (f"{W}(-5, 7)", "ParameterError", "-5"),
    (f"{W}(2**62, 7)", "ParameterError", str(2**62)),
    (f"{W}(2**64, 7)", "ParameterError", str(2**64)),
    (f"{W}(2**58, 7)", "FilterMemoryError", str(2**55)),
    (f"{W}(2**45, 7)", "FilterMemoryError", str(2**42)),
    (f"{W}(2**58, 8, layout='blocked')", "FilterMemoryError", str(2**55)),
    (f"{W}(2**58, 8, layout='split')", "ParameterError", str(2**58)),
    (f"{W}(1.5, 7)", "ParameterTypeError", "1.5"),
    (f"{W}(1000, 0)", "ParameterError", "0"),
    (f"{W}(1000, -1)", "ParameterError", "-1"),
    (f"{W}(1000, 65)", "ParameterError", "65"),
    (f"{W}(1000, 10**6)", "ParameterError", "1000000"),
    (f"{W}(1000, 2**40)", "ParameterError", str(2**40)),
    (f"{W}(1000, 'x')", "ParameterTypeError", "'x'"),
    (f"{W}(1024, 7, layout='blocked')", "ParameterError", "7"),
    (f"{W}(1024, 16, layout='blocked')", "ParameterError", "16"),
    (f"{W}(1024, 7, layout='split')", "ParameterError", "7"),
    (f"{W}(1000, 7, capacity=0)", "ParameterError", "0"),
    (f"{W}(1000, 7, capacity=-1)", "ParameterError", "-1"),
    (f"{W}(1000, 7, capacity=1.5)", "ParameterTypeError", "1.5"),
    (f"{S}(0)", "ParameterError", "0"),
    (f"{S}(-1)", "ParameterError", "-1"),
    (f"{S}(10**18)", IMPOSSIBLE, str(HUGE)),
    (f"{S}(10**15)", "FilterMemoryError", "bytes"),
    (f"{S}(1.5)", "ParameterTypeError", "1.5"),
    *[
        (f"{S}(100, growth={value})", error, shown)
        for value, error, shown in [
            ("0.5", "ParameterError", "0.5"),
            ("0", "ParameterError", "0"),
            ("-2", "ParameterError", "-2"),
            ("1025", "ParameterError", "1025"),
            ("float('nan')", "ParameterError", "NaN|nan"),
            ("float('inf')", "ParameterError", "inf"),
            ("'x'", "ParameterTypeError", "'x'"),
            ("True", "ParameterTypeError", "True"),
        ]
    ],
    *[
        (f"{S}(100, tightening={value})", error, shown)
        for value, error, shown in [
            ("0", "ParameterError", "0"),
            ("1", "ParameterError", "1"),
            ("1.5", "ParameterError", "1.5"),
            ("-0.5", "ParameterError", "-0.5"),
            ("float('nan')", "ParameterError", "NaN|nan"),
            ("'x'", "ParameterTypeError", "'x'"),
        ]
    ],
    (f"{S}(100, 1e-15)", "ParameterError", "1e-15|5e-16|e-16"),
    (f"{F}(100).update([1], threads=0)", "ParameterError", "0"),
    (f"{F}(100).update([1], threads=-1)", "ParameterError", "-1"),
    (f"{F}(100).add_many([1], threads=2**64)", "ParameterError", str(2**64)),
    (f"{F}(100).contains_many([1], threads=1.5)", "ParameterTypeError", "1.5"),
    (f"{F}(100).contains_many([1], threads=None)", "ParameterTypeError", "None"),
    ("hash_key('a', seed=-1)", "ParameterError", "-1"),
    ("hash_key('a', secret=b'short')", "ParameterError", "5"),
    ("hash_many(['a'], seed=2**64)", "ParameterError", str(2**64)),
    ("open('/nonexistent', mode='w')", "FullbloomError|FileNotFoundError", "w|nonexistent"),
    ("_core.fpr_at('blocked', 1024, 8, 1e18)", "", ""),
    ("_core.fpr_at('classic', 1024, 8, float('nan'))", "ParameterError", "NaN|nan"),
    ("_core.fpr_at('classic', 1024, 8, -1)", "ParameterError", "-1"),
    ("_core.fpr_at('classic', 0, 8, 1)", "ParameterError", "0"),
    ("_core.capacity_at('blocked', 2**40, 8, 0.999)", "", ""),
    ("_core.capacity_at('classic', 2**58, 1, 0.999999999)", "", ""),
    ("_core.size_for('classic', 10**18, 0.01)", IMPOSSIBLE, str(HUGE)),
    ("_core.layout_for(10**15, 0.01)", IMPOSSIBLE, "0000"),
    ("_core.layout_for(10**12, 0.01)", "", ""),
    ("_core.shapes_within('auto', 1024)", "ParameterError", "auto"),
    ("_core.shapes_within('classic', 0)", "ParameterError", "0"),
    ("_core.shapes_within('split', 2**58)", "ParameterError", str(2**58)),
    ("_core.least_fpr(-1)", "ParameterError", "-1"),
    *[
        (f"{cls}({arguments})", "ParameterError", shown)
        for cls, arguments, shown in [
            ("CountingBloomFilter", "1000, counter_bits=5", "counter_bits must be 2, 3, 4, 8 or 16, got 5"),
            ("CountingBloomFilter", "1000, counter_bits=2**40", "counter_bits"),
            ("CountingBloomFilter", "1000, counter_bits=3, layout='blocked'", "classic"),
            ("CountingBloomFilter", "1000, threshold=16", "threshold must be between 1 and 15"),
            ("CountingBloomFilter", "1000, threshold=0", "threshold"),
            ("CountingBloomFilter", "1000, layout='split'", "auto, classic or blocked"),
            ("VariableIncrementFilter", "1000, increments=3", "increments must be 2, 4 or 8, got 3"),
            ("VariableIncrementFilter", "1000, increments=2**63", "increments must be 2, 4 or 8"),
            ("VariableIncrementFilter", "1000, counter_bits=3", "counter_bits must be between 4 and 16"),
            ("VariableIncrementFilter", "1000, counter_bits=17", "counter_bits"),
            (
                "SpectralBloomFilter",
                "1000, mode='other'",
                "mode must be one of minimum-selection, minimal-increase, recurring-minimum",
            ),
            ("SpectralBloomFilter", "1000, counter_bits=12", "counter_bits must be 8, 16, 32 or 64, got 12"),
            ("CuckooFilter", "100, bucket_size=3", "bucket_size must be 1, 2, 4 or 8, got 3"),
            ("CuckooFilter", "100, fingerprint_bits=33", "between 4 and 32"),
            ("CuckooFilter", "100, fingerprint_bits=3", "between 4 and 32"),
            ("CuckooFilter", "100, semi_sort=True, bucket_size=2", "semi_sort needs a bucket_size of 4"),
            ("CuckooFilter", "100, fpr=1e-12", "fpr must be at least"),
            ("DynamicCuckooFilter", "100, max_stages=0", "max_stages must be between 1 and"),
            ("DynamicCuckooFilter", "100, max_stages=1025", "between 1 and 1024, got 1025"),
            ("DynamicCuckooFilter", "100, max_stages=2**40", "got 1099511627776"),
            ("DynamicCuckooFilter", "100, bucket_size=3", "bucket_size must be 1, 2, 4 or 8, got 3"),
            ("DynamicCuckooFilter", "100, fingerprint_bits=33", "between 4 and 32"),
            (
                "DynamicCuckooFilter",
                "100, fingerprint_bits=4, bucket_size=8, max_stages=1024",
                "fingerprint_bits must be larger",
            ),
            ("DynamicCuckooFilter", "100, 1e-8, max_stages=100", "share of each of 100 stages in fpr 1e-8"),
            ("DLeftCountingFilter", "100, subtables=1", "subtables"),
            ("DLeftCountingFilter", "100, subtables=9", "subtables"),
            ("DLeftCountingFilter", "100, cells=5", "cells"),
            ("DLeftCountingFilter", "100, cells=65", "cells"),
            ("DLeftCountingFilter", "100, cells=2**40", "cells"),
            ("DeletableBloomFilter", "100, regions=0", "regions"),
            ("DeletableBloomFilter", "100, regions=-1", "regions"),
            ("DeletableBloomFilter", "100, regions=10**9", "regions"),
            ("PrefixFilter", "1000, 1e-7", "at least 1e-6"),
            ("ZoneFilter", "5, universe=1", "universe"),
            ("ZoneFilter", "5, universe=2**60 + 1", "universe"),
            ("ZoneFilter", "5, secret=b'sixteen secrets!'", "secret"),
            ("ZoneFilter", "10**6", "capacity=1000000"),
            ("BitSet", "100, secret=True", "no secret"),
            ("BitSet", "100, secret=b'sixteen secrets!'", "no secret"),
        ]
    ],
    ("SpectralBloomFilter(1000, mode=3)", "ParameterTypeError", "mode must be a str"),
    ("RetouchedBloomFilter(100).retouch(1, 'best')", "ParameterError", "minimum-fn"),
    ("RetouchedBloomFilter(100).retouch(1, 3)", "ParameterTypeError", "scheme"),
    *[
        (f"RetouchedBloomFilter(100).clear_random({share})", "ParameterError", "share")
        for share in ("-0.1", "1.5", "float('nan')")
    ],
]


def of_every_class() -> Iterator[tuple[str, str, str]]:
    """Values that no class accepts as capacity, rate, seed or secret."""
    for row in fullbloom.variants():
        cls = row["class"]
        if registry.is_built(row, "included", "excluded"):
            yield from of_a_closed_world(cls)
            continue
        if "static" in row["capabilities"]:
            yield from of_a_built_class(
                cls, values=", [3, 4]" if registry.is_built(row, "key", "value") else ""
            )
            continue
        parameters = inspect.signature(getattr(fullbloom, cls)).parameters
        first, rated = next(iter(parameters.values())), "fpr" in parameters
        for value, error, shown in [
            ("0", "ParameterError", "0"),
            ("-1", "ParameterError", "-1"),
            ("10**18", IMPOSSIBLE, f"{HUGE}|bytes"),
            ("2**63", IMPOSSIBLE, f"{2**63}|bytes"),
            ("2**64 - 1", IMPOSSIBLE, f"{2**64 - 1}|bytes"),
            ("2**64", "ParameterError", str(2**64)),
            ("'x'", "ParameterTypeError", "'x'"),
            ("float('nan')", "ParameterTypeError", "nan"),
            ("1e18", "ParameterTypeError", "1e+18"),
            ("True", "ParameterTypeError", "True"),
            ("[5]", "ParameterTypeError", "[5]"),
        ]:
            yield f"{cls}({value})", error, shown
        if first.default is inspect.Parameter.empty:
            yield f"{cls}(None)", "ParameterTypeError", "None"
            yield f"{cls}()", "TypeError", first.name
        for value, error, shown in [
            ("0", "ParameterError", "0"),
            ("1", "ParameterError", "1"),
            ("-0.5", "ParameterError", "-0.5"),
            ("float('nan')", "ParameterError", "NaN|nan"),
            ("float('inf')", "ParameterError", "inf"),
            ("1e-300", "ParameterError", "1e-300"),
            ("'x'", "ParameterTypeError", "'x'"),
            ("None", "ParameterTypeError", "None"),
        ]:
            yield f"{cls}(100, {value})", *((error, shown) if rated else ("TypeError", "positional"))
        for options, error, shown in [
            ("seed=-1", "ParameterError", "-1"),
            ("seed=2**64", "ParameterError", str(2**64)),
            ("seed='a'", "ParameterTypeError", "'a'"),
            ("secret=b'short'", "ParameterError", "5"),
            ("secret='sixteen symbols!'", "ParameterTypeError", "str"),
            ("no_such_option=1", "TypeError", "no_such_option"),
        ]:
            yield f"{cls}(100, {options})", error, shown
        for arguments, error, shown in [
            ("0", "ParameterError", "0"),
            ("'x'", "ParameterTypeError", "'x'"),
            ("100, 1.5", "ParameterError", "1.5"),
            ("2**64 - 1, 1e-15", IMPOSSIBLE, ""),
        ]:
            yield f"{cls}.nbytes_for({arguments})", error, shown


#: What no build takes.
OF_A_BUILD = [
    ("threads=0", "ParameterError", "0"),
    ("threads=None", "ParameterTypeError", "None"),
    ("memory=0", "ParameterError", "0"),
    ("memory='1G'", "ParameterTypeError", "'1G'"),
    ("progress=5", "ParameterTypeError", "int"),
    ("seed=-1", "ParameterError", "-1"),
    ("secret=b'short'", "ParameterError", "5"),
    ("no_such_option=1", "TypeError", "no_such_option"),
]


def of_a_built_class(cls: str, values: str) -> Iterator[tuple[str, str, str]]:
    """Values that no class accepts that is built from all its keys at once."""
    for options, error, shown in [
        ("0", "ParameterError", "0"),
        ("1.0", "ParameterError", "1"),
        ("float('nan')", "ParameterError", "NaN|nan"),
        ("1e-300", "ParameterError", "1e-300"),
        ("'x'", "ParameterTypeError", "'x'"),
        *OF_A_BUILD,
    ]:
        named = f"fpr={options}" if values and "=" not in options else options
        yield f"{cls}.build([1, 2]{values}, {named})", error, shown
    yield f"{cls}.build('ab'{values})", "KeyTypeError", "str"
    yield f"{cls}.build(5{values})", "TypeError", "int"
    yield f"{cls}.build([[1], 2]{values})", "KeyTypeError", "list"
    yield f"{cls}.build_hashed(['a', 5]{values})", "KeyTypeError", "hash"
    yield f"{cls}(100)", "TypeError", cls
    for arguments, error, shown in [
        ("0", "ParameterError", "0"),
        ("'x'", "ParameterTypeError", "'x'"),
        ("100, 1.5", "ParameterError", "1.5"),
    ]:
        yield f"{cls}.nbytes_for({arguments})", error, shown


def of_a_closed_world(cls: str) -> Iterator[tuple[str, str, str]]:
    """Values that no class accepts that is built from two sets."""
    for options, error, shown in OF_A_BUILD:
        yield f"{cls}.build([1, 2], [3], {options})", error, shown
    for sets, error, shown in [
        ("'abc', []", "KeyTypeError", "str"),
        ("[], 'abc'", "KeyTypeError", "str"),
        ("5, []", "TypeError", "int"),
        ("[], [[1]]", "KeyTypeError", "list"),
        ("[1]", "TypeError", "excluded"),
        ("[5, 1, 2], [3, 4, 2]", "ParameterError", "key 2 of included and key 2 of excluded"),
        ("iter([1]), iter([1])", "ParameterError", "overlap"),
        (
            "range(10**5), range(99_999, 10**6)",
            "ParameterError",
            "key 99999 of included and key 0 of excluded",
        ),
    ]:
        yield f"{cls}.build({sets})", error, shown
    yield f"{cls}(100)", "TypeError", cls
    yield f"7 in {cls}.build([7], [8])", "TypeError", "not iterable|not a container|includes"


_KNOWN = {case[0] for case in CASES}
CASES += [case for case in of_every_class() if case[0] not in _KNOWN]

# Reads an expression a line; runs each in a forked child with limited memory and a limited life.
PROGRAM = """
import json, os, resource, signal, sys
import fullbloom
from fullbloom import _core
limit, seconds = int(sys.argv[1]), int(sys.argv[2])
public = {name: getattr(fullbloom, name) for name in [*fullbloom.__all__, "open"]}
names = {**public, "_core": _core}
for line in sys.stdin:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(seconds)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            eval(json.loads(line), names)
            answer = [[], ""]
        except BaseException as error:
            answer = [[c.__name__ for c in type(error).__mro__], str(error)]
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps([code, text]), flush=True)
"""


class Limited:
    """A process that evaluates expressions in children whose memory and life are limited."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", PROGRAM, str(LIMIT), str(HANG_SECONDS)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def outcome(self, expression: str) -> tuple[list[str], str]:
        """Class names (with bases) and message of the error of an expression."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(expression) + "\n")
        self.process.stdin.flush()
        code, text = json.loads(self.process.stdout.readline())
        assert code != -signal.SIGALRM, f"still at work after {HANG_SECONDS} s"
        assert code == 0, f"ended by {code}"
        classes, message = json.loads(text)
        return classes, message


@pytest.fixture(scope="module")
def limited() -> Iterator[Limited]:
    """The one process of this module."""
    instance = Limited()
    yield instance
    assert instance.process.stdin is not None
    instance.process.stdin.close()
    assert instance.process.wait(timeout=60) == 0


@pytest.mark.long
@for_each(("expression", "error", "shown"), CASES, ids=[case[0] for case in CASES])
def test_invalid_arguments_are_refused_before_allocation(
    expression: str, error: str, shown: str, limited: Limited
) -> None:
    classes, message = limited.outcome(expression)
    if not error:
        assert classes == [], message
        return
    assert set(error.split("|")) & set(classes), f"{classes[:2]} {message}"
    assert any(part in message for part in shown.split("|")), message
    assert set(classes) & {"ValueError", "TypeError", "MemoryError", "OSError"}, "also a built-in exception"
    assert len(message) < 300
    # What fits into limited memory was already seen not to hang: the same again in this process.
    names: dict[str, Any] = {name: getattr(fullbloom, name) for name in [*fullbloom.__all__, "open"]}
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the class is compared below
        eval(expression, {**names, "_core": _core})
    assert type(caught.value).__name__ == classes[0]
    assert str(caught.value) == message


def test_a_size_that_the_limit_refuses_is_a_memory_error(limited: Limited) -> None:
    for layout in ("classic", "blocked", "split", "partitioned", "two-block"):
        classes, message = limited.outcome(f"{F}(2 * 10**9, 0.01, layout='{layout}')")
        assert "FilterMemoryError" in classes, (layout, classes)
        assert "MemoryError" in classes
        assert "bytes" in message


def test_a_growing_filter_that_cannot_grow_keeps_its_keys() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROW, str(LIMIT)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.split() == ["FilterMemoryError", "True", "True"]


GROW = """
import resource, sys
import fullbloom
f = fullbloom.ScalableBloomFilter(1000, 0.01, growth=1024)
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
added = 0
try:
    for start in range(0, 10**9, 10000):
        keys = list(range(start, start + 10000))
        f.update(keys)
        added = start + 10000
except fullbloom.FullbloomError as error:
    print(type(error).__name__)
print(added > 1_000_000, all(f.contains_many(range(0, added, 7))))
"""


def test_messages_name_the_range_and_the_remedy() -> None:
    with pytest.raises(fullbloom.ParameterError) as caught:
        fullbloom.BloomFilter(100, 1.5)
    assert str(caught.value) == "fpr must be between 0 and 1 (exclusive), got 1.5"
    with pytest.raises(fullbloom.ParameterTypeError, match=r"int\(\.\.\.\)"):
        fullbloom.BloomFilter(1e6)  # type: ignore[arg-type]


def test_numpy_integers_are_accepted_as_integers() -> None:
    import numpy as np

    assert fullbloom.BloomFilter(np.int64(100), np.float32(0.01)).capacity == 100
