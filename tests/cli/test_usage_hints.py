"""Guarantee: a wrong first step is one line that names the remedy, exit code 2, and nothing is written."""

from __future__ import annotations

import gzip
import hashlib
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PARQUET_LIKE = {
    "orders.parquet": (
        b"PAR1\x15\x04\x15\x10\x15\x14L\x15\x02\n" + b"\x00" * 90,
        "Parquet file",
        "--select COLUMN",
    ),
    "orders.arrow": (b"ARROW1\0\0\xff\xff\xff\xff\x10\n\0\0", "Arrow file", "--select COLUMN"),
    "stream.arrows": (b"\xff\xff\xff\xff\x10\0\0\n\0", "Arrow stream", "--select COLUMN"),
    "orders.orc": (b"ORC\n\x0b\x08\x00\n\x13", "ORC file", "Parquet or CSV"),
    "orders.avro": (b"Obj\x01\x04\x16avro.schema\n", "Avro file", "JSON lines"),
    "lines.xz": (b"\xfd7zXZ\0\0\x04\n", "xz", "unpack it first"),
    "lines.bz2": (b"BZh91AY&SY\x8f\xb1\n", "bzip2", "unpack it first"),
    "lines.zip": (b"PK\x03\x04\x14\0\0\0\n", "zip archive", "unpack it first"),
    "twice.gz": (gzip.compress(gzip.compress(b"a line\n")), "gzip twice", "unpack it first"),
    "base.db": (b"SQLite format 3\0\x10\0\n", "SQLite", "CSV"),
    "orders.parquet.gz": (gzip.compress(b"PAR1\x15\x04\x15\x10\n\0"), "Parquet file", "--select COLUMN"),
}
HASHES = "".join(f"{hashlib.sha1(str(i).encode()).hexdigest().upper()}:{i}\n" for i in range(30))
#: Commands that read lines, up to the name of the input.
READERS = [
    ["dedup", "-o", "x.out"],
    ["build", "x.out"],
    ["build", "x.out", "--kind", "xor"],
    ["build", "x.out", "--kind", "cascade", "lines.txt", "--except"],
    ["check", "a.bloom"],
    ["insert", "a.bloom"],
    ["seen", "--state", "new.bloom", "--expected", "1000"],
]


def assert_refused(done: subprocess.CompletedProcess[bytes], *words: str) -> None:
    result = done.stderr.decode()
    assert done.returncode == 2, result
    assert done.stdout == b""
    assert result.count("\n") == 1, result
    assert all(word in result for word in words), result


@pytest.mark.parametrize("name", PARQUET_LIKE)
@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_binary_file_is_refused_with_the_remedy(
    fullbloom: Any, name: str, command: list[str], tmp_path: Path
) -> None:
    data, what, remedy = PARQUET_LIKE[name]
    (tmp_path / name).write_bytes(data)
    (tmp_path / "lines.txt").write_text("a\n")
    assert fullbloom("build", "-q", "a.bloom", "lines.txt", cwd=tmp_path).returncode == 0
    before = sorted(tmp_path.iterdir())
    assert_refused(fullbloom(*command, name, cwd=tmp_path), what, remedy)
    assert_refused(fullbloom(*command, "-", cwd=tmp_path, stdin=data), what, remedy)
    assert sorted(tmp_path.iterdir()) == before


def test_a_parquet_file_is_refused_where_lines_are_expected(fullbloom: Any, tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"user_id": range(1000)}), tmp_path / "plain.txt")
    assert_refused(
        fullbloom("dedup", "plain.txt", "-o", "x.parquet", cwd=tmp_path), "Parquet", "--select COLUMN"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["plain.txt"]


@pytest.mark.parametrize("words", [b"ORCA\nORC\nPAR1\nBZhang\nObject\nPK\n", b"PAR1", b"BZh\n\n"])
def test_lines_that_begin_like_a_signature_are_accepted(fullbloom: Any, words: bytes, tmp_path: Path) -> None:
    done = fullbloom("dedup", "-q", cwd=tmp_path, stdin=words)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.split() == list(dict.fromkeys(words.split()))


def test_a_filter_file_is_refused_where_lines_are_expected(fullbloom: Any, tmp_path: Path) -> None:
    assert fullbloom("build", "-q", "a.bloom", cwd=tmp_path, stdin=b"a\n").returncode == 0
    assert_refused(fullbloom("dedup", "a.bloom", cwd=tmp_path), "filter file", "fullbloom info")


@pytest.mark.parametrize(
    "command", [["build", "x.bloom"], ["build", "x.bloom", "--kind", "xor"], ["insert", "a.bloom"]]
)
def test_a_list_of_counted_hashes_is_refused_where_lines_are_expected(
    fullbloom: Any, command: list[str], tmp_path: Path
) -> None:
    (tmp_path / "leaked.txt").write_text(HASHES)
    assert fullbloom("build", "-q", "a.bloom", cwd=tmp_path, stdin=b"a\n").returncode == 0
    before = (tmp_path / "a.bloom").read_bytes()
    assert_refused(fullbloom(*command, "leaked.txt", cwd=tmp_path), "HASH:count", "--hex", "--no-hex")
    assert (tmp_path / "a.bloom").read_bytes() == before
    assert not (tmp_path / "x.bloom").exists()
    for option in ("--hex", "--no-hex"):
        assert fullbloom(*command, option, "-q", "leaked.txt", cwd=tmp_path).returncode == 0


def test_a_list_of_counted_hashes_is_refused_in_lookups_of_a_filter_of_hashes(
    fullbloom: Any, tmp_path: Path
) -> None:
    (tmp_path / "leaked.txt").write_text(HASHES)
    assert fullbloom("build", "--hex", "-q", "a.bloom", "leaked.txt", cwd=tmp_path).returncode == 0
    assert_refused(
        fullbloom("check", "--count", "a.bloom", "leaked.txt", cwd=tmp_path),
        "HASH:count",
        "--hex",
        "--no-hex",
    )
    found = fullbloom("check", "--hex", "--count", "a.bloom", "leaked.txt", cwd=tmp_path)
    assert (found.returncode, int(found.stdout)) == (0, HASHES.count("\n"))


def test_lines_that_only_begin_like_hashes_are_accepted(fullbloom: Any, tmp_path: Path) -> None:
    mixed = HASHES.splitlines(keepends=True)[0] + "a line\n"
    assert fullbloom("build", "-q", "x.bloom", cwd=tmp_path, stdin=mixed.encode()).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["build", "--column", "a", "x.bloom"], "--select COLUMN"),
        (["build", "--fp", "0.1", "x.bloom"], "--fpr"),
        (["build", "--error-rate", "0.1", "x.bloom"], "--fpr"),
        (["build", "--capcity", "10", "x.bloom"], "--capacity"),
        (["serve", "--port", "80"], "--http HOST:PORT"),
        (["check", "a.bloom", "--output", "x"], "> FILE"),
        (["create", "x.bloom"], "build"),
        (["contains", "x.bloom"], "check"),
        (["dedpu"], "dedup"),
        (["plan", "--items", "10", "--needs", "deletion"], "use remove for deletion"),
    ],
)
def test_a_mistyped_word_gets_a_suggestion(
    fullbloom: Any, arguments: list[str], meant: str, tmp_path: Path
) -> None:
    assert_refused(fullbloom(*arguments, cwd=tmp_path), meant)
    assert list(tmp_path.iterdir()) == []


def test_the_need_delete_suggests_remove(fullbloom: Any, tmp_path: Path) -> None:
    done = fullbloom("plan", "--items", "10", "--needs", "delete", cwd=tmp_path)
    assert b"use --needs remove" in done.stdout + done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of Windows are no pseudo-terminals")
def test_binary_output_to_a_terminal_is_refused(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": range(1000)}), tmp_path / "a.parquet")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "fullbloom", "dedup", "--select", "a", "a.parquet"]
    done = subprocess.run(command, cwd=tmp_path, stdout=theirs, stderr=subprocess.PIPE, timeout=60)
    os.close(theirs)
    os.set_blocking(ours, False)
    try:
        shown = os.read(ours, 1 << 16)
    except (BlockingIOError, OSError):
        shown = b""
    finally:
        os.close(ours)
    assert done.returncode == 2
    assert b"does not go to a terminal" in done.stderr
    assert shown == b""
