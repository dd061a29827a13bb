from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from support import write_parquet

from fullbloom import ForeignFilter
from fullbloom.cli import main
from fullbloom.cli.filters.state import lock_file

ROLES = ("-o", "--dupes-output", "--state")


@pytest.mark.parametrize("other", ["x", "./x", "link", "hard"])
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("roles", [*itertools.combinations(ROLES, 2), *((None, role) for role in ROLES[1:])])
def test_one_file_in_two_roles_is_refused_before_reading(fullbloom, refused, tmp_path, roles, exists, other):
    if not exists and (None in roles or other == "hard"):
        pytest.skip("needs a file that exists")
    if exists:
        (tmp_path / "x").write_bytes(b"a\na\n")
        os.link(tmp_path / "x", tmp_path / "hard")
    (tmp_path / "link").symlink_to("x")
    first, second = roles
    options = [*([first] if first else []), "x", second, other]
    text = refused(fullbloom("dedup", *options, *(["-"] if first else []), cwd=tmp_path, stdin=b"b\n"))
    assert "both" in text
    assert (tmp_path / "x").exists() == exists
    assert not exists or (tmp_path / "x").read_bytes() == b"a\na\n"


def test_a_file_may_be_deduplicated_in_place(fullbloom, tmp_path):
    (tmp_path / "in").write_bytes(b"a\nb\na\n")
    fullbloom("dedup", "-o", "in", "./in", cwd=tmp_path, check=0)
    assert (tmp_path / "in").read_bytes() == b"a\nb\n"


def test_standard_output_counts_as_a_role(program, refused, tmp_path):
    (tmp_path / "in").write_bytes(b"a\na\n")
    for role in ("--dupes-output", "--state"):
        command = f"{' '.join(program)} dedup in {role} d > d"
        refused(subprocess.run(["bash", "-c", command], cwd=tmp_path, stderr=subprocess.PIPE, timeout=60))


def test_build_and_seen_do_not_overwrite_their_input(fullbloom, refused, tmp_path):
    (tmp_path / "in").write_bytes(b"a\n")
    refused(fullbloom("build", "in", "./in", cwd=tmp_path))
    refused(fullbloom("seen", "in", "--state", "./in", cwd=tmp_path))
    assert (tmp_path / "in").read_bytes() == b"a\n"


#: Commands that replace the file "out", but for backup: of two at once, either copy may remain. The lock
#: comes before a server is asked.
REPLACING = [
    "build out in",
    "convert out out --to split",
    "convert part out --to split",
    "merge out out part",
    "delta out day next",
    "delta out out change --apply",
    "insert out in",
    "dedup -o out in",
    "dedup -o out out",
    "dedup --dupes-output out in",
    "dedup --state out in",
    "seen --state out in",
    "sync --write out in",
    "parquet probe --column user --keys in --arrow out users.parquet",
    "redis-save redis://127.0.0.1:1 words out",
    "man --output .",
]


@pytest.mark.parametrize("words", REPLACING)
def test_a_file_that_another_run_uses_is_not_replaced(fullbloom, refused, tmp_path, words):
    (tmp_path / "in").write_bytes(b"1\n2\n")
    (tmp_path / "rest").write_bytes(b"3\n")
    write_parquet(tmp_path / "users.parquet")
    for build in ("part in", "day in --except rest --kind cascade", "next in --except rest --like day"):
        kind = ["--kind", "cascade"] if "--like" in build else []
        fullbloom("build", *build.split(), *kind, cwd=tmp_path, check=0)
    fullbloom("delta", "change", "day", "next", cwd=tmp_path, check=0)
    name = "fullbloom.1" if words.startswith("man") else "out"
    source = "day" if "--apply" in words else "in" if words.startswith("sync") else "part"
    shutil.copy(tmp_path / source, tmp_path / name)
    before = (tmp_path / name).read_bytes()
    if words.startswith("sync"):
        (tmp_path / "in").write_bytes(b"1\n2\n4\n")
    with lock_file(str(tmp_path / name)):
        text = refused(fullbloom(*words.split(), cwd=tmp_path))
    assert f"{name}: another run uses this file" in text
    assert (tmp_path / name).read_bytes() == before


def test_a_device_may_have_every_role(fullbloom):
    fullbloom("dedup", "-o", "/dev/null", "--dupes-output", "/dev/null", stdin=b"a\na\n", check=0)


@pytest.fixture(params=["build", "merge"])
def write_filter(request, fullbloom, tmp_path):
    (tmp_path / "in").write_bytes(b"a\n")
    fullbloom("build", tmp_path / "part", tmp_path / "in", check=0)
    source = {"build": "in", "merge": "part"}[request.param]
    return [request.param, "-q"], tmp_path / source


def test_a_filter_written_to_a_link_replaces_the_file_behind_it(fullbloom, tmp_path, write_filter):
    (tmp_path / "link").symlink_to("real")
    command, source = write_filter
    for _ in range(2):
        fullbloom(*command, tmp_path / "link", source, check=0)
        assert (tmp_path / "link").is_symlink()
        fullbloom("check", tmp_path / "real", "-q", stdin=b"a\n", check=0)


def test_a_filter_is_written_to_a_named_pipe(fullbloom, program, tmp_path, write_filter):
    os.mkfifo(tmp_path / "pipe")
    command, source = write_filter
    process = subprocess.Popen([*program, *command, tmp_path / "pipe", source])
    (tmp_path / "copy").write_bytes((tmp_path / "pipe").read_bytes())
    assert process.wait(timeout=60) == 0
    assert (tmp_path / "pipe").is_fifo()
    fullbloom("check", tmp_path / "copy", "-q", stdin=b"a\n", check=0)


@pytest.mark.long
def test_a_pipe_without_a_reader_is_named_and_ctrl_c_ends_the_wait(program, tmp_path, write_filter):
    os.mkfifo(tmp_path / "pipe")
    command, source = write_filter
    process = subprocess.Popen([*program, *command, tmp_path / "pipe", source], stderr=subprocess.PIPE)
    line = process.stderr.readline()
    assert line.startswith(b"fullbloom: waiting for a reader of ")
    assert line.endswith(b"pipe\n")
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert (process.returncode, rest) == (130, b"fullbloom: interrupted\n")
    waiting = subprocess.Popen([*program, *command, tmp_path / "pipe", source], stderr=subprocess.PIPE)
    waiting.stderr.readline()
    (tmp_path / "copy").write_bytes((tmp_path / "pipe").read_bytes())
    assert waiting.communicate(timeout=60) == (None, b"")
    assert waiting.returncode == 0
    assert (tmp_path / "copy").stat().st_size


def test_a_filter_written_to_a_device_leaves_it_a_device(fullbloom, refused, tmp_path, write_filter):
    command, source = write_filter
    try:
        os.mknod(tmp_path / "null", 0o20666, os.makedev(1, 3))
        (tmp_path / "null").read_bytes()
    except OSError:
        pytest.skip("devices need root")
    fullbloom(*command, tmp_path / "null", source, check=0)
    assert (tmp_path / "null").is_char_device()
    refused(fullbloom(*command, tmp_path, source))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc/self/fd, to name a descriptor")
@pytest.mark.parametrize("command", ["dedup", "convert", "delta", "sync", "insert", "merge"])
def test_an_output_and_its_name_are_on_the_disk_when_the_command_ends(
    fullbloom, tmp_path, monkeypatch, command
):
    """The file is synced before it has its name, its folder afterwards, and only then the state is saved."""
    folder, state = tmp_path / "folder", tmp_path / "states" / "s"
    folder.mkdir()
    state.parent.mkdir()
    lines, other, out = (tmp_path / name for name in ("lines", "other", "out"))
    lines.write_bytes(b"a\n")
    other.write_bytes(b"b\n")
    out = folder / "out"
    cascades = [tmp_path / "1.cascade", tmp_path / "2.cascade"]
    if command == "delta":
        for part, (inside, rest) in zip(cascades, ((lines, other), (other, lines)), strict=True):
            fullbloom("build", "--kind", "cascade", "--except", rest, part, inside, check=0)
    elif command in {"convert", "insert", "merge"}:
        for path in (tmp_path / "f", out):
            path.write_bytes(ForeignFilter("spark", 100).to_foreign())
    elif command == "sync":
        out.write_bytes(b"b\n")
    words = {
        "dedup": ["-o", out, "--state", state, lines],
        "convert": [tmp_path / "f", out, "--to", "spark"],
        "delta": [out, *cascades],
        "sync": ["--write", out, lines],
        "insert": [out, lines],
        "merge": [out, out, out],
    }[command]
    synced, real = [], os.fsync
    former = out.stat().st_ino if out.exists() else None

    def fsync(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append((path.parent if path.is_file() else path, out.exists() and out.stat().st_ino != former))
        assert path.is_file() or not state.exists()
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    assert main([command, "--quiet", *map(str, words)]) in {0, 1}
    assert [named for path, named in synced if path == folder] == [False, True]
