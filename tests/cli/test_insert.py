"""`fullbloom insert`: the file is the old one or the new, and with --in-place sound however a run ends."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import termios

import pytest
from support import eventually, variants_with

import fullbloom as package
from fullbloom import registry
from fullbloom.cli.filters.kinds import list_kinds

KINDS = [row for row in list_kinds() if not registry.is_forgetful(row)]
FORGETTING = [row for row in list_kinds() if registry.is_forgetful(row)]


def create(row, path, *keys, capacity=1000):
    seen = registry.get_class(row)(capacity, 0.01)
    seen.update(keys)
    seen.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("row", KINDS, ids=lambda row: row["name"])
def test_a_filter_of_any_kind_takes_more_lines(fullbloom, tmp_path, row):
    create(row, tmp_path / "f", "a", "b")
    done = fullbloom("insert", "f", "--json", cwd=tmp_path, stdin=b"b\nc\nd\r\nc", check=0)
    result = json.loads(done.stdout)
    found = package.open(tmp_path / "f", verify="full")
    assert type(found).__name__ == row["class"]
    assert all(key in found for key in "abcd")
    assert (result["lines"], result["num_added"]) == (4, found.num_added)
    assert result["new"] == found.num_added - 2
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("row", KINDS, ids=lambda row: row["name"])
def test_in_place_is_accepted_for_kinds_that_support_it(fullbloom, refused, tmp_path, row):
    before = create(row, tmp_path / "f", "a")
    number = (tmp_path / "f").stat().st_ino
    done = fullbloom("insert", "--in-place", tmp_path / "f", stdin=b"b\nc\n")
    if "write-in-place" not in row["capabilities"]:
        assert "--in-place" in refused(done)
        assert (tmp_path / "f").read_bytes() == before
        return
    assert done.returncode == 0
    assert (tmp_path / "f").stat().st_ino == number
    found = package.open(tmp_path / "f", verify="full")
    assert all(key in found for key in "abc")


@pytest.mark.parametrize("row", FORGETTING, ids=lambda row: row["name"])
def test_kinds_that_forget_are_refused(fullbloom, refused, tmp_path, row):
    before = create(row, tmp_path / "f", "a")
    assert "seen --state" in refused(fullbloom("insert", tmp_path / "f", stdin=b"b\n"))
    assert (tmp_path / "f").read_bytes() == before


@pytest.mark.parametrize("variant", variants_with("pairs"), ids=lambda variant: variant.id)
def test_kinds_that_take_no_lines_are_refused(fullbloom, refused, tmp_path, variant):
    variant.make().save(tmp_path / "f")
    assert "takes no lines" in refused(fullbloom("insert", tmp_path / "f", stdin=b"b\n"))


@pytest.mark.parametrize("in_place", [[], ["--in-place"]], ids=["whole", "in place"])
def test_invalid_files_are_refused_and_unchanged(fullbloom, refused, tmp_path, in_place):
    row = registry.find_by_role("plain")
    good = create(row, tmp_path / "f", "a")
    (tmp_path / "cut").write_bytes(good[:-1])
    (tmp_path / "flipped").write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    (tmp_path / "text").write_bytes(b"b\n")
    os.mkfifo(tmp_path / "pipe")
    for name in ("cut", "flipped", "text", "pipe", "none", ".", "", "f/x"):
        done = fullbloom("insert", *in_place, name, cwd=tmp_path, stdin=b"b\n")
        assert "Traceback" not in refused(done)
    assert (tmp_path / "cut").read_bytes() == good[:-1]
    assert (tmp_path / "text").read_bytes() == b"b\n"
    assert "both" in refused(fullbloom("insert", *in_place, "f", "f", cwd=tmp_path))
    refused(fullbloom("insert", *in_place, "f", "text", "none", cwd=tmp_path))
    assert (tmp_path / "f").read_bytes() == good
    assert {path.name for path in tmp_path.iterdir()} == {"cut", "f", "flipped", "text", "pipe"}


def test_a_full_filter_is_refused_and_unchanged(fullbloom, refused, tmp_path):
    row = registry.get_row("cuckoo")
    before = create(row, tmp_path / "f", "a", capacity=100)
    assert "full" in refused(
        fullbloom("insert", tmp_path / "f", stdin=b"".join(b"%d\n" % i for i in range(9999)))
    )
    assert (tmp_path / "f").read_bytes() == before


def test_a_keyed_filter_needs_its_secret(fullbloom, refused, tmp_path):
    (tmp_path / "secret").write_bytes(bytes(range(16)))
    keyed = ["--secret-file", tmp_path / "secret"]
    fullbloom("build", tmp_path / "f", *keyed, stdin=b"a\n", check=0)
    assert "secret" in refused(fullbloom("insert", tmp_path / "f", stdin=b"b\n"))
    fullbloom("insert", tmp_path / "f", *keyed, stdin=b"b\n", check=0)
    fullbloom("check", tmp_path / "f", *keyed, stdin=b"a\nb\n", check=0)


def test_insert_reads_keys_from_a_column(fullbloom, refused, tmp_path):
    create(registry.find_by_role("plain"), tmp_path / "f", "a")
    (tmp_path / "rows.csv").write_bytes(b"id,text\nb,x\nc,y\n")
    fullbloom("insert", "f", "--select", "id", "rows.csv", cwd=tmp_path, check=0)
    found = package.open(tmp_path / "f")
    assert all(key in found for key in "abc")
    assert "--select" in refused(fullbloom("insert", "f", "--no-header", "rows.csv", cwd=tmp_path))


def test_insert_through_a_symbolic_link_keeps_the_link(fullbloom, tmp_path):
    create(registry.find_by_role("plain"), tmp_path / "real", "a")
    (tmp_path / "link").symlink_to("real")
    for words in (["insert"], ["insert", "--in-place"]):
        fullbloom(*words, tmp_path / "link", stdin=words[-1].encode(), check=0)
    assert (tmp_path / "link").is_symlink()
    found = package.open(tmp_path / "real", verify="full")
    assert all(key in found for key in ("a", "insert", "--in-place"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
@pytest.mark.parametrize("in_place", [[], ["--in-place"]], ids=["whole", "in place"])
def test_a_stopped_run_leaves_a_sound_file(fullbloom, program, refused, tmp_path, in_place, number):
    before = create(registry.find_by_role("plain"), tmp_path / "f", "a")
    words = [*program, "insert", "-q", *in_place, str(tmp_path / "f"), "-", str(tmp_path / "pipe")]
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b"b\n")
        process.stdin.close()
        with (tmp_path / "pipe").open("wb", buffering=0) as pipe:  # opens when the first input was read
            assert "another run" in refused(fullbloom("insert", tmp_path / "f", stdin=b"z\n"))
            pipe.write(b"c\n")
            process.send_signal(number)
            process.wait(timeout=60)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    if not in_place:
        assert (tmp_path / "f").read_bytes() == before
    elif number == signal.SIGKILL:
        assert fullbloom("check", "--verify", "full", tmp_path / "f", stdin=b"a\n").returncode == 2
        fullbloom("insert", "--in-place", tmp_path / "f", stdin=b"b\nc\n", check=0)
    found = package.open(tmp_path / "f", verify="full")
    assert "a" in found
    assert not in_place or "b" in found
    fullbloom("insert", tmp_path / "f", stdin=b"d\n", check=0)
    assert "d" in package.open(tmp_path / "f", verify="full")


@pytest.mark.parametrize("command", ["merge", "build"])
def test_a_file_is_replaced_by_one_run_at_a_time(fullbloom, program, refused, tmp_path, command):
    row = KINDS[0]
    create(row, tmp_path / "f", "a")
    create(row, tmp_path / "g", "b")
    words = {"merge": ["f", "f", "g"], "build": ["f", "lines"]}[command]
    (tmp_path / "lines").write_bytes(b"b\n")
    adding = [*program, "insert", "-q", str(tmp_path / "f"), "-"]
    with subprocess.Popen(adding, stdin=subprocess.PIPE) as process:
        process.stdin.write(b"c\n")
        process.stdin.flush()
        # A run reads lines once it has the lock; the lock's file is there a moment earlier.
        eventually(lambda: fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)) == bytes(4))
        assert "another run" in refused(fullbloom(command, *words, cwd=tmp_path))
        process.communicate(timeout=60)
    fullbloom(command, *words, cwd=tmp_path, check=0)
    seen = package.open(tmp_path / "f")
    assert ("b" in seen, "c" in seen) == (True, command == "merge")
    assert {path.name for path in tmp_path.iterdir()} == {"f", "g", "lines"}
