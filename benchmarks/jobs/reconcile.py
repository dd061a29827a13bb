"""Find the lines that differ between two files of a million lines: two processes talk over a pipe."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.docsite.curves import Axis, Series, draw_lines
from scripts.docsite.pictures import GREEN, GREY

from benchmarks.jobs.shown import Figures, Shown
from benchmarks.units import write_bytes, write_seconds

PAGE = "docs/how-to/reconcile.md"
LINES, DIFFERENT = 1_000_000, [10, 100, 1_000, 10_000]
STATED = 1_000


def list_lines(start: int, stop: int) -> list[str]:
    """Names of objects, as a listing has them."""
    return [
        f"objects/{number * 0x9E3779B97F4A7C15 % (1 << 64):016x}/part-{number % 32}\n"
        for number in range(start, stop)
    ]


def sync(folder: Path, different: int) -> Figures:
    """Bytes and seconds of one sync, half of the lines missing on each side."""
    here, there, half = folder / "here.txt", folder / "there.txt", different // 2
    here.write_text("".join(list_lines(0, LINES)), encoding="ascii")
    there.write_text("".join(list_lines(half, LINES + half)), encoding="ascii")
    program = str(Path(sys.executable).with_name("fullbloom"))
    sent, received = folder / "sent", folder / "received"
    serve = f"tee {sent} | {program} sync --serve {there} | tee {received}"
    begun = time.perf_counter()
    done = subprocess.run(
        [program, "sync", str(here), "--with", f"bash -c '{serve}'"],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - begun
    lines = done.stdout.splitlines()
    assert len(lines) == different, done.stderr
    return {
        "different": different,
        "bytes": sent.stat().st_size + received.stat().st_size,
        "lines_bytes": sum(
            len(line) - 1 for line in lines if line[0] == ">"
        ),  # no mark and space, but a line end
        "seconds": seconds,
    }


def measure() -> Figures:
    """Several numbers of differences, and the whole file."""
    with tempfile.TemporaryDirectory(prefix="fullbloom-job-") as name:
        folder = Path(name)
        rows = [sync(folder, different) for different in DIFFERENT]
        whole = (folder / "here.txt").read_bytes()
        return {
            "lines": LINES,
            "rows": rows,
            "file_bytes": len(whole),
            "gzip_bytes": len(gzip.compress(whole, 6)),
        }


def show(figures: Figures) -> Shown:
    """The table of the page."""
    stated = next(row for row in figures["rows"] if row["different"] == STATED)
    return Shown(
        f"{figures['gzip_bytes'] / stated['bytes']:,.0f} times fewer bytes than the compressed file",
        f"Two files of {figures['lines'] // 1_000_000} million lines, {write_bytes(figures['file_bytes'])} "
        f"each, of which {STATED:,} lines differ: {write_bytes(stated['bytes'])} over the pipe, both ways, "
        f"{figures['gzip_bytes'] / stated['bytes']:,.0f} times less than the file compressed by gzip.",
        ["lines that differ", "bytes sent", "of these, the missing lines", "time", "the file by gzip"],
        [
            [
                f"{row['different']:,}",
                write_bytes(row["bytes"]),
                write_bytes(row["lines_bytes"]),
                write_seconds(row["seconds"]),
                write_bytes(figures["gzip_bytes"]),
            ]
            for row in figures["rows"]
        ],
    )


def draw(figures: Figures) -> str:
    """The picture of the page."""
    counts = [row["different"] for row in figures["rows"]]
    return draw_lines(
        "Bytes sent against the lines that differ: a sync grows with the difference, the file does not",
        Axis("lines that differ, of a million", lambda value: f"{value:,.0f}"),
        Axis("bytes sent", write_bytes),
        [
            Series("fullbloom sync", GREEN, [(row["different"], row["bytes"]) for row in figures["rows"]]),
            Series("the file by gzip", GREY, [(one, figures["gzip_bytes"]) for one in counts], marks=False),
        ],
    )
