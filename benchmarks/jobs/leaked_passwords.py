"""Publish 5 million hashes of leaked passwords as one file, in the format of the public lists."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.docsite.curves import draw_bars
from scripts.docsite.pictures import GREEN, GREY

import fullbloom
from benchmarks.isolation import isolated
from benchmarks.jobs.shown import Figures, Shown, read_memory
from benchmarks.units import write_bytes, write_seconds

PAGE = "docs/how-to/leaked-passwords.md"
HASHES, FPR, LOOKUPS, OPENS = 5_000_000, 1e-6, 200_000, 200
OURS, NAIVE = "binary fuse file", "Python set of the list"


def hash_password(number: int) -> str:
    """The hash of a password, as the lists have it."""
    return hashlib.sha1(b"password-%d" % number, usedforsecurity=False).hexdigest().upper()


def write_list(path: Path) -> None:
    """The list: a hash and a count per line."""
    with path.open("w", encoding="ascii") as out:
        out.writelines(f"{hash_password(number)}:{number % 97 + 1}\n" for number in range(HASHES))


def build(source: str, target: str) -> Figures:
    """Seconds of `fullbloom build`."""
    begun = time.perf_counter()
    command = [str(Path(sys.executable).with_name("fullbloom")), "build", "--quiet", "--hex"]
    subprocess.run([*command, "--kind", "binary-fuse", "--fpr", str(FPR), target, source], check=True)
    return {"seconds": time.perf_counter() - begun}


def _ask(known: object, *, decode: bool) -> Figures:
    absent = [hash_password(HASHES + number) for number in range(LOOKUPS)]
    present = [hash_password(number % HASHES) for number in range(LOOKUPS)]
    convert = bytes.fromhex if decode else str
    begun = time.process_time()
    wrong = sum(convert(one) in known for one in absent)  # type: ignore[operator]
    found = sum(convert(one) in known for one in present)  # type: ignore[operator]
    seconds = time.process_time() - begun
    assert found == LOOKUPS
    return {"lookup": seconds / (2 * LOOKUPS), "wrong": wrong}


def use_file(path: str) -> Figures:
    """Opening the file and looking passwords up."""
    known, times = fullbloom.open(path), []
    for _ in range(OPENS):
        begun = time.perf_counter()
        fullbloom.open(path)
        times.append(time.perf_counter() - begun)
    return {
        "open": sorted(times)[OPENS // 2],
        "memory": Path(path).stat().st_size,
        **_ask(known, decode=False),
    }


def use_set(path: str) -> Figures:
    """Reading the list into a set, 20 bytes per hash, and looking passwords up."""
    before, begun = read_memory(), time.perf_counter()
    with Path(path).open(encoding="ascii") as lines:
        known = {bytes.fromhex(line[:40]) for line in lines}
    seconds = time.perf_counter() - begun
    return {"open": seconds, "memory": read_memory() - before, **_ask(known, decode=True)}


def measure() -> Figures:
    """The list, the file and the set."""
    with tempfile.TemporaryDirectory(prefix="fullbloom-job-") as folder:
        source, target = Path(folder) / "pwned.txt", Path(folder) / "pwned.bloom"
        write_list(source)
        built = build(str(source), str(target))
        return {
            "hashes": HASHES,
            "fpr": FPR,
            "lookups": LOOKUPS,
            "list_bytes": source.stat().st_size,
            "file_bytes": target.stat().st_size,
            "build_seconds": built["seconds"],
            "runs": {
                OURS: isolated("benchmarks.jobs.leaked_passwords:use_file", {"path": str(target)}),
                NAIVE: isolated("benchmarks.jobs.leaked_passwords:use_set", {"path": str(source)}),
            },
        }


def show(figures: Figures) -> Shown:
    """The table of the page."""
    ours, naive = figures["runs"][OURS], figures["runs"][NAIVE]
    return Shown(
        f"{figures['list_bytes'] / figures['file_bytes']:.0f} times fewer bytes than the list; "
        f"opens in {write_seconds(ours['open'])}",
        f"A list of {figures['hashes'] // 1_000_000} million hashes, {write_bytes(figures['list_bytes'])}, "
        "becomes a file of "
        f"{write_bytes(figures['file_bytes'])} in {write_seconds(figures['build_seconds'])}: "
        f"{figures['list_bytes'] / figures['file_bytes']:.0f} times less to publish. It opens in "
        f"{write_seconds(ours['open'])} instead of {write_seconds(naive['open'])}.",
        ["", "ready after", "memory", "per lookup", f"absent of {figures['lookups']:,} refused"],
        [
            [
                name,
                write_seconds(one["open"]),
                write_bytes(one["memory"]) + (", mapped" if name == OURS else ""),
                write_seconds(one["lookup"]),
                str(one["wrong"]),
            ]
            for name, one in figures["runs"].items()
        ],
    )


def draw(figures: Figures) -> str:
    """The picture of the page."""
    naive = figures["runs"][NAIVE]["memory"]
    return draw_bars(
        "Bytes of a list of leaked passwords: as text, as a set in memory, and as a file of a filter",
        "bytes",
        [
            (
                "the file of the filter",
                figures["file_bytes"] / 1e6,
                write_bytes(figures["file_bytes"]),
                GREEN,
            ),
            ("the list as text", figures["list_bytes"] / 1e6, write_bytes(figures["list_bytes"]), GREY),
            ("Python set in memory", naive / 1e6, write_bytes(naive), GREY),
        ],
    )
