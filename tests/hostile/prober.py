"""Run in a process of its own: opens damaged variations of golden files and does everything with them.

For each line ``FILE {payload|params} ROUNDS`` of its input a fork prints one JSON object: how often a
variation was opened, how many there were, and what went wrong. Memory is limited and every variation has an
alarm, so that a hang, a crash or an allocation by a lying number ends the fork; its last line then names the
variation. After it comes the line ``end`` with the exit code.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hostile.container import File

import fullbloom

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HANG_SECONDS = 60
#: What the process may take beyond what it has at the start.
ROOM = 64 << 20
KEYS = [*range(300), "a", b"\xff", 1.5, ("t", 1), *(f"key-{i}" for i in range(30))]
NAN = struct.unpack("<Q", struct.pack("<d", float("nan")))[0]
INFINITY = struct.unpack("<Q", struct.pack("<d", float("inf")))[0]
WILD = (0, 1, 2, 3, 6, 61, 63, 65, 2**31, 2**32, 2**62, 2**63, 2**64 - 1, NAN, INFINITY)


def payloads(stored: bytes, rounds: int) -> Iterator[tuple[str, bytes]]:
    """The golden file with other cells, under valid checksums."""
    rng = random.Random(len(stored))
    plain = File.parse(stored)
    size = len(plain.payload)

    cells = bytearray(size)  # 255 where a section lies: what is between sections must stay zero
    for i, (_, _, _, length, _, _) in enumerate(plain.sections):
        cells[plain.start(i) : plain.start(i) + length] = b"\xff" * length

    def with_payload(payload: bytes) -> bytes:
        instance = File.parse(stored)
        instance.payload = bytes(map(int.__and__, payload, cells))
        return instance.build()

    yield "zeros", with_payload(b"\0" * size)
    yield "ones", with_payload(b"\xff" * size)
    for pattern in (b"\x55", b"\xaa", b"\x01", b"\x80", b"\0\xff", b"\x7f\0\0\0\0\0\0\0", b"\x11" * 8):
        yield f"pattern {pattern.hex()}", with_payload((pattern * size)[:size])
    for i, (_, _, _, length, _, _) in enumerate(plain.sections):
        start = plain.start(i)
        for name, fill in (("zeros", b"\0"), ("ones", b"\xff")):
            payload = plain.payload[:start] + fill * length + plain.payload[start + length :]
            yield f"section {i} {name}", with_payload(payload)
    for round_ in range(rounds):
        yield f"round {round_}", with_payload(disturbed(plain.payload, round_ % 4, rng))


def disturbed(payload: bytes, kind: int, rng: random.Random) -> bytes:
    """Noise, flipped bits, a wild word, or a run of one byte."""
    size, changed = len(payload), bytearray(payload)
    if kind == 0:
        return rng.randbytes(size)
    if kind == 1:
        for _ in range(rng.choice([1, 3, 20])):
            bit = rng.randrange(8 * size)
            changed[bit // 8] ^= 1 << bit % 8
    elif kind == 2:
        at = 8 * rng.randrange(max(1, size // 8))
        changed[at : at + 8] = rng.choice(WILD).to_bytes(8, "little")
    else:
        at = rng.randrange(size)
        length = min(rng.randrange(1, 200), size - at)
        changed[at : at + length] = rng.choice([b"\0", b"\xff", rng.randbytes(1)]) * length
    return bytes(changed)


def params(stored: bytes, rounds: int) -> Iterator[tuple[str, bytes]]:
    """The golden file with other header parameters, under valid checksums."""
    rng = random.Random(len(stored))
    plain = File.parse(stored)
    for i, (tag, index, zero, value) in enumerate(plain.params):
        for wild in (*WILD, value + 1, max(value, 1) - 1, value ^ 1 << 63, 2 * value, value // 2):
            instance = File.parse(stored)
            instance.params[i] = (tag, index, zero, wild % 2**64)
            yield f"param {i} (tag {tag}, index {index}) = {wild:#x}", instance.build()
        instance = File.parse(stored)
        del instance.params[i]
        instance.num_params -= 1
        yield f"param {i} (tag {tag}, index {index}) missing", instance.move_sections(stored).build()
    for round_ in range(rounds):
        instance = File.parse(stored)
        for _ in range(rng.randint(2, 4)):
            i = rng.randrange(len(instance.params))
            tag, index, zero, value = instance.params[i]
            value = rng.choice([*WILD, value ^ 1 << rng.randrange(64), value + 1, value - 1])
            instance.params[i] = (tag, index, zero, value % 2**64)
        yield f"round {round_}", instance.build()


def operations(opened: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every lookup in a filter, and every change to a copy of it."""
    row = next(row for row in fullbloom.variants() if row["class"] == type(opened).__name__)
    pairs = bool({"label", "value"} & set(row["capabilities"]))
    yield from questions(opened)
    try:
        copy = opened.copy()
    except fullbloom.FormatError:  # found out when every cell is looked at
        return
    yield "equal to the copy", lambda: opened == copy
    yield from changes(copy, opened, pairs=pairs)
    for name in having(copy, "__contains__"):
        yield f"{name} again", lambda: [key in copy for key in KEYS]
    yield "loads", lambda: fullbloom.loads(copy.to_bytes()) == copy
    for name in having(copy, "clear"):
        yield name, copy.clear
        yield "add after clear", lambda: [copy.add(key, 1) if pairs else copy.add(key) for key in KEYS[:20]]


def having(instance: Any, *names: str) -> list[str]:
    """Those of the methods that the class has."""
    return [name for name in names if hasattr(instance, name)]


def questions(opened: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """All lookups."""
    for name in having(opened, "__contains__"):
        yield name, lambda: [key in opened for key in KEYS]
    for name in having(opened, "contains_many", "includes_many"):
        yield name, lambda name=name: getattr(opened, name)(KEYS)
    for name in having(opened, "verify"):
        yield name, lambda: opened.verify(KEYS, [])
    for name in having(opened, "fpr", "info", "approx_count", "to_bytes", "stage_info"):
        yield name, getattr(opened, name)
    yield "repr", lambda: repr(opened)
    names = [name for name in dir(type(opened)) if name[0] != "_" and hasattr(type(opened), name)]
    yield "attributes", lambda: [getattr(opened, name) for name in names]
    for name in having(opened, "count", "label", "get", "depth"):
        yield name, lambda name=name: [getattr(opened, name)(key) for key in KEYS[:50]]
    for name in having(opened, "count_many", "label_many", "get_many", "depth_many"):
        yield name, lambda name=name: getattr(opened, name)(KEYS)
    yield "equal", lambda: opened == opened  # noqa: PLR0124


def changes(copy: Any, opened: Any, *, pairs: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """All changes."""
    for name in having(copy, "add"):
        yield name, lambda: [copy.add(key, 1) if pairs else copy.add(key) for key in KEYS[:100]]
    for name in [] if pairs else having(copy, "add_many"):
        yield name, lambda: copy.add_many(KEYS)
    for name in having(copy, "remove", "discard"):
        yield name, lambda name=name: [quietly(getattr(copy, name), key) for key in KEYS[:150]]
    for name in having(copy, "discard_many", "remove_many"):
        yield name, lambda name=name: quietly(getattr(copy, name), KEYS)
    for name in having(copy, "positions"):
        yield name, lambda: [copy.positions(key) for key in KEYS[:50]]
    for name in having(copy, "jaccard"):
        yield name, lambda: (copy & opened, copy.jaccard(opened), copy < opened, copy.isdisjoint(opened))
    for name in having(copy, "intersection_count"):
        yield name, lambda: (copy & opened, copy.intersection_count(opened))
    for name in having(copy, "merge"):
        yield name, lambda: copy.merge(opened)
        yield "merge with itself", lambda: copy.merge(copy)
    for name in having(copy, "grow", "compact"):
        yield name, getattr(copy, name)


def quietly(call: Callable[[Any], Any], key: Any) -> None:
    """Call it; KeyError is an answer."""
    with contextlib.suppress(KeyError):
        call(key)


def wrong_with(data: bytes, path: Path) -> tuple[int, list[str]]:
    """How often ``data`` was opened, and what then went wrong."""
    path.write_bytes(data)
    opened, problems = 0, []
    for way, read in (
        ("header", lambda: fullbloom.open(path, verify="header")),
        ("loads", lambda: fullbloom.loads(data)),
    ):
        try:
            found = read()
        except (fullbloom.FormatError, fullbloom.ParameterError) as error:
            if "internal" in str(error):
                problems.append(f"{way}: {error}")
            continue
        except BaseException as error:  # noqa: BLE001 - a panic is a BaseException
            problems.append(f"{way}: {type(error).__name__}: {error}")
            continue
        opened += 1
        at = "copy"
        try:
            for name, operation in operations(found):
                at = name
                # A table may be full: that is told, not a fault.
                with contextlib.suppress(fullbloom.FilterFull):
                    operation()
        except (fullbloom.ParameterError, fullbloom.FormatError) as error:
            # What was opened by its header is checked when it is written.
            checked = way == "header" and at == "to_bytes"
            if not checked and at not in {
                "add",
                "add_many",
                "grow",
                "merge",
                "merge with itself",
                "add after clear",
            }:
                problems.append(f"{way}, {at}: {type(error).__name__}: {error}")
        except BaseException as error:  # noqa: BLE001
            problems.append(f"{way}, {at}: {type(error).__name__}: {error}")
    return opened, problems


def main(golden: str, kind: str, rounds: int) -> None:
    """Probe all variations and print the outcome."""
    warnings.simplefilter("ignore")
    stored = Path(golden).read_bytes()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM,) * 2)
    opened, total, problems = 0, 0, []
    with tempfile.TemporaryDirectory() as directory:
        for name, data in {"payload": payloads, "params": params}[kind](stored, rounds):
            print(name, flush=True)
            signal.alarm(HANG_SECONDS)
            times, wrong = wrong_with(data, Path(directory) / "probe.bloom")
            opened, total = opened + times, total + 1
            problems += [f"{name}: {text}"[:300] for text in wrong]
    signal.alarm(0)
    print(json.dumps({"opened": opened, "variations": total, "problems": problems}))


def serve() -> None:
    """Probe in a fork for each line of the input: Python starts and imports once, not for each file."""
    for line in sys.stdin:
        golden, kind, rounds = line.rsplit(" ", 2)
        child = os.fork()
        if not child:
            code = 1
            try:
                main(golden, kind, int(rounds))
                code = 0
            except BaseException:  # noqa: BLE001 - reported, with the exit code
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print("end", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
