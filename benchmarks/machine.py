"""The machine and the versions a record was made with. No names of hosts, users or directories."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.model import ROOT

PACKAGES = (
    "fullbloom", "numpy", "pyarrow", "polars", "rbloom", "abloom", "fastbloom-rs",
    "pybloomfiltermmap3", "pybloom-live", "pyfusefilter", "pyxorfilter", "binaryfuse", "sketch-oxide",
    "fastconstmap",
)  # fmt: skip


def _field(path: str, name: str) -> str:
    try:
        for line in Path(path).read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    except OSError:
        pass
    return "unknown"


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    except OSError:
        return ""
    return (done.stdout or done.stderr).partition("\n")[0].strip() if done.returncode == 0 else ""


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def commit() -> str:
    """The short commit, with `+changes` when tracked files differ from it."""
    short = _first_line(["git", "rev-parse", "--short=12", "HEAD"])
    if not short:
        return "uncommitted"
    dirty = _first_line(["git", "status", "--porcelain", "--untracked-files=no"])
    return short + ("+changes" if dirty else "")


def describe() -> dict[str, Any]:
    """Everything a reader needs to judge the figures."""
    from fullbloom import _core

    kib = _field("/proc/meminfo", "MemTotal").split()[0]
    huge = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(kib) / 2**20, 1) if kib.isdigit() else None,
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "huge_pages": huge.read_text().strip() if huge.exists() else "unknown",
        "load_average_at_start": round(os.getloadavg()[0], 2),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "simd": _core.isa(),
        "sort": _first_line(["sort", "--version"]),
        "awk": _first_line(["awk", "-W", "version"]) or _first_line(["awk", "--version"]),
        "versions": {name: _version(name) for name in PACKAGES},
        "commit": commit(),
    }
