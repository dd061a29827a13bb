"""What the module declares to an interpreter that can run without the GIL."""

from __future__ import annotations

import subprocess
import sys
import sysconfig

import pytest

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.mark.skipif(not FREE_THREADED, reason="this interpreter always has the GIL")
def test_importing_bloomery_switches_the_gil_on() -> None:
    code = "import sys; off = sys._is_gil_enabled(); import bloomery; print(off, sys._is_gil_enabled())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() == ["False", "True"]
