"""Real shells on a terminal of their own, to press Tab in."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shlex
import struct
import subprocess
import sys
import termios
from pathlib import Path

#: Seconds without a byte from a shell that hangs.
_GUARD = 60
#: Stands for the program: says what it was given, between marks that no echo of the shell has.
STUB = f"""#!{sys.executable} -IS
import json, sys
sys.stdout.write("<" + "<" + json.dumps(sys.argv[1:]) + ">" + ">\\n")
"""


#: Makes the terminal the one that job control goes by, which fish wants, and becomes the shell.
STARTER = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Shell:
    """An interactive shell in ``folder``, with ``fullbloom`` a program that prints its words."""

    def __init__(self, name: str, folder: Path, *, lazily: str | None = None, start: str = "") -> None:
        """Start it with its start-up file ``start``; ``lazily`` is a script to be found at the first Tab."""
        self._folder = folder
        home = folder / ".home"
        programs = folder / ".programs"
        for instance in (home, programs):
            instance.mkdir()
        (programs / "fullbloom").write_text(STUB)
        (programs / "fullbloom").chmod(0o755)
        words = getattr(self, f"_{name}")(home, start, lazily)
        ours, theirs = pty.openpty()
        # Wide, so that no shell scrolls or wraps what is typed.
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 400, 0, 0))
        self._terminal = ours
        self._process = subprocess.Popen(
            [sys.executable, "-c", STARTER, name, *words],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, start_new_session=True,
            env={"HOME": str(home), "ZDOTDIR": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8",
                 "PATH": f"{programs}:{os.environ['PATH']}"},
        )  # fmt: skip
        os.close(theirs)
        self.seen = b""
        self.type("fullbloom ready", tab=False)

    @staticmethod
    def _bash(home: Path, start: str, lazily: str | None) -> list[str]:
        assert lazily is None
        (home / ".bashrc").write_text(f"bind 'set enable-bracketed-paste off'\n{start}\n")
        return ["--noprofile", "--rcfile", str(home / ".bashrc"), "-i"]

    @staticmethod
    def _zsh(home: Path, start: str, lazily: str | None) -> list[str]:
        found = ""
        if lazily is not None:
            (home / "functions").mkdir()
            (home / "functions" / "_fullbloom").write_text(lazily)
            found = f"fpath=({shlex.quote(str(home / 'functions'))} $fpath)\n"
        # As an installation asks for it; -u does not ask whether folders of root's may be written by others.
        (home / ".zshrc").write_text(
            f"unset zle_bracketed_paste\n{found}autoload -Uz compinit && compinit -u\n{start}\n"
        )
        return ["-d", "-i"]

    @staticmethod
    def _fish(home: Path, start: str, lazily: str | None) -> list[str]:
        config = home / ".config" / "fish"
        (config / "completions").mkdir(parents=True)
        # Without this folder each first start reads all pages of the manual, for a minute of a core.
        (home / ".local" / "share" / "fish" / "generated_completions").mkdir(parents=True)
        (config / "config.fish").write_text(f"set -g fish_greeting\n{start}\n")
        if lazily is not None:
            (config / "completions" / "fullbloom.fish").write_text(lazily)
        return ["-i"]

    def type(self, text: str, *, tab: bool = True) -> list[str]:
        """Type ``text`` and Tab, then Enter; return the words that the program was given."""
        self.seen = b""
        os.write(self._terminal, text.encode() + (b"\t\r" if tab else b"\r"))
        while b">>" not in self.seen.rpartition(b"<<")[2] or b"<<" not in self.seen:
            if not select.select([self._terminal], [], [], _GUARD)[0]:
                raise TimeoutError(f"{text!r}: {self.seen[-2000:]!r}")
            self.seen += os.read(self._terminal, 1 << 16)
        words: list[str] = json.loads(self.seen.rpartition(b"<<")[2].partition(b">>")[0])
        return words

    def close(self) -> None:
        """End the shell."""
        self._process.kill()  # interactive shells ignore SIGTERM
        self._process.wait(timeout=_GUARD)
        os.close(self._terminal)
