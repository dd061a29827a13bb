"""A disk that pauses: syncs, or writes of the log, wait as long as a file exists."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest

#: Interposed by LD_PRELOAD. The registry, which SQLite syncs, goes on.
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void pause_while(int fd, const char *variable, const char *part) {
    char link[64], path[4096], reached[4096];
    const char *file = getenv(variable);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!file || length < 0) return;
    path[length] = 0;
    if (!strstr(path, part) || access(file, F_OK) != 0) return;
    snprintf(reached, sizeof reached, "%s.reached", file);
    close(open(reached, O_WRONLY | O_CREAT, 0600));
    while (access(file, F_OK) == 0) usleep(2000);
}

static int pass(const char *name, int fd) {
    pause_while(fd, "PAUSE_LOG", "/log/");
    pause_while(fd, "PAUSE_FILTERS", "/filters/");
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return real(fd);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    pause_while(fd, "PAUSE_WRITES", "/log/");
    ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    return real(fd, bytes, length, at);
}

int fsync(int fd) { return pass("fsync", fd); }
int fdatasync(int fd) { return pass("fdatasync", fd); }
"""


class SlowDisk:
    """The variables of a service whose disk pauses, and the pauses."""

    def __init__(self, folder: Path):
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("there is no C compiler to build the interposed syncs")
        source, self._library = folder / "slow.c", folder / "slow.so"
        source.write_text(SOURCE)
        words = [compiler, "-shared", "-fPIC", "-o", self._library, source, "-ldl"]
        subprocess.run(words, check=True, capture_output=True)
        self._files = {f"PAUSE_{what}": folder / what for what in ("LOG", "FILTERS", "WRITES")}

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which the service starts."""
        return {"LD_PRELOAD": str(self._library)} | {name: str(path) for name, path in self._files.items()}

    @contextlib.contextmanager
    def paused(self, what: str):
        """Syncs of the "log" or of the "filters", or "writes" of the log, wait until the end of the block."""
        file = self._files[f"PAUSE_{what.upper()}"]
        self._reached(what).unlink(missing_ok=True)
        file.touch()
        try:
            yield
        finally:
            file.unlink(missing_ok=True)

    def has_paused(self, what: str) -> bool:
        """Return whether anything waits since the pause began."""
        return self._reached(what).exists()

    def _reached(self, what: str) -> Path:
        file = self._files[f"PAUSE_{what.upper()}"]
        return file.with_name(f"{file.name}.reached")
