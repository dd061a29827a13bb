"""Where the GIL can be off, Fullbloom leaves it off, and the tests beside this one run so."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig

import fullbloom

GIL = not sysconfig.get_config_var("Py_GIL_DISABLED")


def test_importing_fullbloom_leaves_the_gil_as_it_was() -> None:
    code = """if True:
        import sys
        enabled = getattr(sys, "_is_gil_enabled", lambda: True)
        before = enabled()
        import fullbloom
        fullbloom.BloomFilter(10).update([1, "a"])
        print(before, enabled())
    """
    env = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=env)
    assert run.stdout.split() == [str(GIL), str(GIL)]


def test_these_tests_run_without_the_gil_where_it_can_be_off() -> None:
    assert fullbloom.__name__ in sys.modules
    assert getattr(sys, "_is_gil_enabled", lambda: True)() == GIL
