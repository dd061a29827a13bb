"""``fullbloom show``: every cell of a small file, regions of a large one, a key's cells, and bad input."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time

import pytest

import fullbloom as package
from fullbloom.cells import read_cells


@pytest.fixture
def small(tmp_path):
    made = package.BloomFilter(100, fpr=0.01, layout="classic", seed=1)
    made.update(["cat", "dog"])
    made.save(tmp_path / "small.bloom")
    return made, tmp_path / "small.bloom"


def rows(text: str) -> str:
    """The characters of all rows of a map, in order."""
    return "".join(re.findall(r"^ *[\d,]+  (\S+)$", text, re.MULTILINE))


def test_every_cell_of_a_small_filter_is_drawn(fullbloom, small):
    made, path = small
    text = fullbloom("show", path, check=0).stdout.decode()
    drawn = rows(text)
    set_cells = {cell for key in ("cat", "dog") for cell in made.positions(key)}
    assert len(drawn) == made.num_bits
    assert {cell for cell, char in enumerate(drawn) if char == "#"} == set_cells
    assert set(drawn) == {".", "#"}
    assert "BloomFilter" in text
    assert f"{made.num_bits:,} bits, {100 * made.fill:.1f} % set" in text
    assert text.isascii()


def test_a_keys_cells_are_marked(fullbloom, small):
    made, path = small
    text = fullbloom("show", "--key", "cat", path, check=0).stdout.decode()
    marked = {cell for cell, char in enumerate(rows(text)) if char == "*"}
    assert marked == set(made.positions("cat"))
    assert "probably in the filter" in text
    absent = fullbloom("show", "--key", "nobody", path, check=0).stdout.decode()
    missing = {cell for cell, char in enumerate(rows(absent)) if char == "o"}
    held = {cell for cell, value in enumerate(read_cells(made.to_bytes())[0].read_values()) if value}
    assert missing == set(made.positions("nobody")) - held
    assert "certainly absent" in absent


@pytest.mark.parametrize(
    ("kind", "text", "key"),
    [
        ("int", "-7", -7),
        ("float", "2.5", 2.5),
        ("bool", "True", True),
        ("str", "7", "7"),
        ("uuid", "12345678-1234-5678-1234-567812345678", None),
    ],
)
def test_a_key_has_the_type_that_is_given(fullbloom, tmp_path, kind, text, key):
    import uuid

    key = uuid.UUID(text) if kind == "uuid" else key
    made = package.BloomFilter(100, fpr=1e-9)
    made.add(key)
    made.save(tmp_path / "f.bloom")
    done = fullbloom("show", "--json", f"--key={text}", "--key-type", kind, tmp_path / "f.bloom", check=0)
    assert json.loads(done.stdout)["key"] == {"found": True, "positions": made.positions(key)}


def test_a_key_of_another_type_gives_a_hint(fullbloom, tmp_path):
    made = package.BloomFilter(100)
    made.update(range(50))
    made.save(tmp_path / "f.bloom")
    done = fullbloom("show", tmp_path / "f.bloom", "--key", "7", check=0)
    assert b"give --key-type int for a number" in done.stderr
    assert b"--select" not in done.stderr
    quiet = fullbloom("show", tmp_path / "f.bloom", "--key", "7", "--key-type", "int", check=0)
    assert quiet.stderr == b""


def test_counters_are_digits(fullbloom, tmp_path):
    made = package.CountingBloomFilter(50, seed=1)
    for times, key in ((2, "two"), (12, "twelve")):
        made.update([key] * times)
    made.save(tmp_path / "f.bloom")
    drawn = rows(fullbloom("show", tmp_path / "f.bloom", check=0).stdout.decode())
    alone = set(made.positions("two")) - set(made.positions("twelve"))
    assert {drawn[cell] for cell in alone} == {"2"}
    assert {drawn[cell] for cell in made.positions("twelve")} == {"+"}


def test_a_large_filter_is_drawn_by_region(fullbloom, tmp_path):
    made = package.BitSet(1_000_000)
    made.update(range(250_000))
    made.update(range(500_000, 1_000_000, 2))
    made.save(tmp_path / "f.bloom")
    done = fullbloom("show", tmp_path / "f.bloom", "--key", "3", "--key-type", "int", check=0)
    text = done.stdout.decode()
    [each] = re.findall(r"a character is ([\d,]+) of them", text)
    size = int(each.replace(",", ""))
    drawn = rows(text)
    assert drawn[0] == "*", "the region of the key"
    assert set(drawn[1 : 250_000 // size]) == {"#"}
    assert set(drawn[250_000 // size + 1 : 500_000 // size]) == {"."}
    assert set(drawn[500_000 // size + 1 :]) == {"5"}


@pytest.mark.parametrize("columns", [1, 40, 80, 200])
def test_the_map_is_as_wide_as_the_terminal(fullbloom, small, columns):
    _, path = small
    text = fullbloom("show", path, env={**os.environ, "COLUMNS": str(columns)}, check=0).stdout.decode()
    longest = max(len(line) for line in text.splitlines() if re.match(r" *[\d,]+  \S+$", line))
    assert longest <= max(columns, 20)
    assert longest > columns // 3


def test_the_json_report_has_the_fill_of_regions(fullbloom, tmp_path):
    made = package.ScalableBloomFilter(1000)
    made.update(range(5000))
    made.save(tmp_path / "f.bloom")
    facts = json.loads(fullbloom("show", "--json", tmp_path / "f.bloom", check=0).stdout)
    assert (facts["class"], facts["num_added"]) == ("ScalableBloomFilter", made.num_added)
    assert facts["key"] is None
    assert len(facts["sections"]) == made.stages
    for section in facts["sections"]:
        assert len(section["region_set"]) <= 64
        assert sum(section["region_set"]) == section["set"]
        assert section["fill"] == section["set"] / section["cells"]


@pytest.mark.parametrize("row", package.variants(), ids=lambda row: row["name"])
def test_every_kind_is_shown(fullbloom, row, request):
    golden = request.config.rootpath / "tests" / "golden"
    name = f"{row['name']}-{row['layouts'][0]}" if row["layouts"] else row["name"]
    text = fullbloom(
        "show", golden / f"{name}.bloom", "--key", "5", "--key-type", "int", check=0
    ).stdout.decode()
    assert row["class"] in text
    assert rows(text)
    assert ("its cells:" in text) == ("positions" in row["capabilities"])


def test_nothing_untrusted_reaches_the_terminal(fullbloom, small, tmp_path):
    _, path = small
    evil = tmp_path / "evil\x1b[2J\nname.bloom"
    evil.write_bytes(path.read_bytes())
    text = fullbloom("show", evil, "--key", "\x1b[31mkey", check=0).stdout.decode()
    assert "\x1b" not in text
    assert "key" not in text.replace("the key", "").replace("keys added", ""), "a key is not repeated"


def on_terminal(words, *, columns=100, **environment):
    """The output of the command on a terminal."""
    here, there = pty.openpty()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    keep = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS"}}
    env = {**keep, "TERM": "xterm", "PYTHONUTF8": "1", **environment}
    process = subprocess.Popen(words, stdout=there, stdin=there, stderr=there, env=env)
    os.close(there)
    read, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([here], [], [], 0.1)[0]:
            try:
                read += os.read(here, 65536)
            except OSError:  # the other end is closed
                break
    assert process.wait(timeout=60) == 0, read
    os.close(here)
    return read.decode()


def test_a_terminal_has_blocks_and_colours_unless_no_color_is_set(small, program):
    made, path = small
    words = [*program, "show", "--key", "cat", str(path)]
    text = on_terminal(words)
    assert "█" in text
    assert text.count("\x1b[1;32m*\x1b[0m") == len(made.positions("cat"))
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        found = on_terminal(words, **plain)
        assert found.isascii()
        assert "\x1b" not in found
    assert "\x1b" in on_terminal(words, NO_COLOR=""), "an empty NO_COLOR counts as not set"


def test_quiet_prints_nothing(fullbloom, small):
    assert fullbloom("show", "--quiet", small[1], check=0).stdout == b""


def test_bad_input_is_one_line(fullbloom, refused, small, tmp_path):
    _, path = small
    refused(fullbloom("show", tmp_path / "missing.bloom"))
    refused(fullbloom("show", tmp_path))
    (tmp_path / "text").write_text("no filter\n" * 100)
    refused(fullbloom("show", tmp_path / "text"))
    (tmp_path / "cut").write_bytes(path.read_bytes()[:-10])
    refused(fullbloom("show", tmp_path / "cut"))
    for at in (70, 300):
        damaged = bytearray(path.read_bytes())
        damaged[at] ^= 1
        (tmp_path / "damaged").write_bytes(damaged)
        refused(fullbloom("show", "--verify", "full", tmp_path / "damaged"))
    assert "--key-type int" in refused(fullbloom("show", path, "--key", "seven", "--key-type", "int"))
    assert "true or false" in refused(fullbloom("show", path, "--key", "yes", "--key-type", "bool"))
    assert "a UUID" in refused(fullbloom("show", path, "--key", "x", "--key-type", "uuid"))
    assert "9" * 100 not in refused(fullbloom("show", path, "--key", "9" * 9999, "--key-type", "int"))
    assert "add --key" in refused(fullbloom("show", path, "--key-type", "int"))
    assert "did you mean --key" in refused(fullbloom("show", path, "--kye", "x"))
    assert "did you mean show" in refused(fullbloom("shwo", path))
    assert "did you mean show" in refused(fullbloom("draw", path))


def test_a_keyed_file_needs_its_secret(fullbloom, refused, tmp_path):
    made = package.BloomFilter(100, secret=b"sixteen secrets!")
    made.add("cat")
    made.save(tmp_path / "f.bloom")
    refused(fullbloom("show", tmp_path / "f.bloom"))
    (tmp_path / "secret").write_bytes(b"sixteen secrets!")
    done = fullbloom(
        "show", tmp_path / "f.bloom", "--key", "cat", "--secret-file", tmp_path / "secret", check=0
    )
    assert b"probably in the filter" in done.stdout
    assert b"sixteen" not in done.stdout


def test_a_file_without_cells_to_draw_is_refused_with_the_command_that_reads_it(fullbloom, tmp_path):
    package.SignatureIndex(64, 3).save(tmp_path / "index.bloom")
    message = fullbloom("show", tmp_path / "index.bloom", check=2).stderr.decode()
    assert "fullbloom info" in message
    assert "Traceback" not in message
