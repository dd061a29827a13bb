"""The documentation site as ``make docs`` builds it, for its tests."""

from __future__ import annotations

import fcntl
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "docs"
HTML = BUILT / "html"
_PYTHON = BUILT / "venv" / "bin" / "python"


def build_site() -> None:
    """Build the site again where a page changed, one process at a time; skip without its tools."""
    if not _PYTHON.exists():
        pytest.skip("the site's tools are not installed: run make docs")
    if importlib.util.find_spec("fullbloom_server") is None:
        pytest.skip("the service's native module is not built: run make build")
    command = [str(_PYTHON), "-m", "sphinx", "--builder", "html", "-q", "--fail-on-warning", "--keep-going"]
    command += ["--conf-dir", "docs", "build/docs/source", "build/docs/html"]
    with (BUILT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([sys.executable, "-m", "scripts.docsite"], cwd=ROOT, check=True, timeout=300)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def list_pages() -> list[Path]:
    """Return the pages of the built site."""
    return sorted(path for path in HTML.rglob("*.html") if "_static" not in path.parts)
