"""Guarantee: sets of lines are compared exactly and merged; no peer hangs, floods or deceives."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import shlex
import sys
import tracemalloc
import zlib

import pytest
from cases import for_each

from fullbloom.cli import main
from fullbloom.cli.filters.state import lock_file
from fullbloom.cli.sync import _add as add_lines
from fullbloom.compose import CharacteristicSketch, RatelessEncoder
from fullbloom.recipes import sync


def lines_of(path):
    return path.read_bytes().splitlines()


def serving(program, *words):
    return shlex.join([*program, "sync", *(str(word) for word in words)])


@pytest.fixture
def pair(tmp_path):
    """Two files of 20,000 lines, 60 and 40 of them of one alone; one has repetitions and no last newline."""
    draw = random.Random(3)
    universe = [f"line {draw.getrandbits(60)} {number}" for number in range(20_060)]
    here, there = universe[:20_000], [*universe[:19_940], *universe[20_000:20_040]]
    draw.shuffle(there)
    (tmp_path / "here").write_text("\n".join([*here, *here[:50]]))
    (tmp_path / "there").write_text("\n".join(there) + "\n")
    return tmp_path / "here", tmp_path / "there", set(here), set(there)


def read_differences(done):
    lines = done.stdout.decode().splitlines()
    return [{line[2:] for line in lines if line.startswith(mark)} for mark in ("< ", "> ")], len(lines)


@pytest.mark.parametrize("way", ["files", "pipe"])
def test_differences_are_printed_exactly(fullbloom, program, pair, way):
    here, there, mine, theirs = pair
    other = [there] if way == "files" else ["--with", serving(program, "--serve", there)]
    done = fullbloom("sync", here, *other, check=1)
    assert read_differences(done) == ([mine - theirs, theirs - mine], 100)
    assert b"60 lines here alone, 40 there" in done.stderr
    assert fullbloom("sync", "--quiet", here, *other, check=1).stdout == b""
    assert fullbloom("sync", here, "--with", serving(program, "--serve", here), check=0).stdout == b""


@pytest.mark.parametrize("way", ["files", "pipe"])
def test_two_sets_are_merged_on_both_sides(fullbloom, program, pair, way):
    here, there, mine, theirs = pair
    other = [there] if way == "files" else ["--with", serving(program, "--serve", there, "--write")]
    before = here.read_bytes()
    fullbloom("sync", "--write", here, *other, check=0)
    assert here.read_bytes().startswith(before + b"\n")
    assert set(here.read_text().splitlines()) == set(there.read_text().splitlines()) == mine | theirs
    assert len(lines_of(there)) == len(mine | theirs)
    assert b"0 lines here alone, 0 there" in fullbloom("sync", here, there, check=0).stderr


def test_the_peer_writes_only_with_write(fullbloom, program, pair):
    here, there, mine, theirs = pair
    before = there.read_bytes()
    done = fullbloom("sync", "--write", here, "--with", serving(program, "--serve", there), check=1)
    assert b"takes no lines" in done.stderr
    assert there.read_bytes() == before
    assert set(here.read_text().splitlines()) == mine | theirs


@pytest.mark.parametrize(("at_most", "symbols"), [(100, False), (300, False), (99, True), (1, True)])
def test_few_differences_take_one_short_message(fullbloom, program, pair, at_most, symbols):
    here, there, mine, theirs = pair
    over = ("--with", serving(program, "--serve", there), "--at-most", at_most)
    done = fullbloom("sync", here, *over, check=1)
    assert read_differences(done) == ([mine - theirs, theirs - mine], 100)
    stats = json.loads(fullbloom("sync", "--json", "--quiet", here, *over, check=1).stdout)
    assert (stats["symbols"] > 0) == symbols
    # The sketch, 40 hashes and their packed lines of some 30 bytes, and a greeting.
    assert symbols or stats["received"] + stats["sent"] < 8 * (at_most + 6) + 40 * (8 + 30) + 100


def test_expecting_too_many_differences_is_refused(fullbloom, program, pair):
    here, there, *_ = pair
    over = ("--with", serving(program, "--serve", there))
    assert b"1024" in fullbloom("sync", here, *over, "--at-most", "1025", check=2).stderr
    assert b"--with" in fullbloom("sync", here, there, "--at-most", "5", check=2).stderr


def test_traffic_is_proportional_to_the_difference(program, pair, monkeypatch, capsys):
    here, there, *_ = pair
    # Of some thousand secrets one takes twice as many symbols.
    monkeypatch.setattr(sync.secrets, "token_bytes", lambda length: bytes(range(length)))
    over = serving(program, "--serve", there)
    assert main(["sync", "--json", "--quiet", str(here), "--with", over]) == 1
    stats = json.loads(capsys.readouterr().out)
    assert (stats["mine"], stats["theirs"]) == (60, 40)
    # 100 differences: 2 symbols each at most where they are so few, 15 bytes per symbol, and 40 hashes and
    # lines.
    assert stats["sent"] + stats["received"] <= 200 * 15 + 40 * (8 + 30) + 40 * 25


def peer(code):
    return shlex.join([sys.executable, "-c", "import os, sys, time\n" + code])


GREETED = "os.read(0, 99); os.write(1, b'h' + (1).to_bytes(4, 'little') + b'\\0'); os.read(0, 99)\n"
PEERS = {
    "another program": ("os.write(1, b'SSH-2.0-OpenSSH_9.6 hello\\n' * 50); time.sleep(9)", "does not speak"),
    "nothing": ("sys.exit(3)", "ended too early"),
    "silence": ("time.sleep(60)", "sent nothing for 1 seconds"),
    "a length that lies": (
        "os.read(0, 99); os.write(1, b'h\\xff\\xff\\xff\\xff')",
        "announces 4,294,967,295 bytes",
    ),
    "half of a frame": (
        GREETED + "os.write(1, b's\\x10\\0\\0\\0' + b'x'); time.sleep(60)",
        "sent nothing for 1 sec",
    ),
    "symbols of something else": (
        GREETED + "os.write(1, b's\\x20\\0\\0\\0' + b'x' * 32)",
        "no coded symbols",
    ),
    "no symbols": (GREETED + "os.write(1, b's\\0\\0\\0\\0'); time.sleep(60)", "no symbols where some"),
    "symbols of another secret": (
        GREETED + "from fullbloom.compose import RatelessEncoder\n"
        "s = RatelessEncoder([1]).produce(9); os.write(1, b's' + len(s).to_bytes(4, 'little') + s)",
        "another seed or secret",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(("code", "result"), PEERS.values(), ids=PEERS)
def test_a_peer_that_sends_nonsense_is_reported_in_one_line(fullbloom, refused, tmp_path, code, result):
    (tmp_path / "f").write_bytes(b"a\nb\n")
    seconds = "1" if "sent nothing" in result else "60"  # a busy machine takes seconds to start a peer
    assert result in refused(fullbloom("sync", "--timeout", seconds, tmp_path / "f", "--with", peer(code)))
    assert (tmp_path / "f").read_bytes() == b"a\nb\n"


def test_an_endless_peer_is_stopped_by_the_limit():
    """In this process, so that the number of the secret is known."""

    class Endless:
        def __init__(self):
            self.out, self.taken, self.head = b"", 0, b""

        def write(self, data):
            kind, payload = data[:1], data[5:]
            if kind == b"H":
                self.head = RatelessEncoder([], secret=payload[-16:]).produce(1)[:24]
                answer = b"h", b"\0"
            else:
                noise = random.Random(self.taken)
                wanted = int.from_bytes(payload, "little")
                answer = b"s", self.head + b"".join(noise.randbytes(12) + b"\2" for _ in range(wanted))
                self.head = b""
            self.out += answer[0] + len(answer[1]).to_bytes(4, "little") + answer[1]

        def read(self, count):
            self.taken += count
            found, self.out = self.out[:count], self.out[count:]
            return found

    channel = Endless()
    with pytest.raises(sync.FormatError, match="limit"):
        sync.ask([b"a", b"b"], channel, limit=100_000)
    assert channel.taken < 120_000


class Scripted:
    """A peer that sends the given frames, whatever it receives."""

    def __init__(self, *frames):
        self.left = b"".join(kind + len(data).to_bytes(4, "little") + data for kind, data in frames)

    def write(self, data):
        pass

    def read(self, count):
        if len(self.left) < count:
            raise EOFError("the peer ended before it had said all")
        found, self.left = self.left[:count], self.left[count:]
        return found


FOREIGN = RatelessEncoder([1, 2], secret=bytes(16)).produce(8)


@pytest.mark.parametrize(
    ("frames", "at_most"),
    [
        ([(b"s", FOREIGN)], None),
        ([(b"c", CharacteristicSketch([1, 2], 4, secret=bytes(16)).to_bytes())], 4),
    ],
    ids=["symbols", "sketch"],
)
def test_data_under_another_secret_is_invalid_data_from_the_peer(frames, at_most):
    """What `ask` documents is one error for all of it; each run draws a secret of its own."""
    with pytest.raises(sync.FormatError, match="another seed or secret"):
        sync.ask([b"a", b"b"], Scripted((b"h", b"\0"), *frames), at_most=at_most)


@for_each("at_most", [None, 4])
@for_each("seed", range(20))
def test_whatever_a_peer_sends_is_a_result_or_one_of_the_documented_errors(seed, at_most):
    """A peer that answers correctly, of whose bytes a few change."""
    draw = random.Random(seed)

    class Noisy(Scripted):
        def write(self, data):
            kind, payload = data[:1], data[5:]
            if kind == b"H":
                self.side = sync.Side([b"b", b"c"], payload[-16:])
                hashes, options = list(self.side.by_hash), {"hashed": True, "secret": self.side.secret}
                self.encoder = RatelessEncoder(hashes, **options)
                self.sketch = CharacteristicSketch(hashes, 4, **options)
            keys = [payload[at : at + 8] for at in range(0, len(payload), 8)] if kind == b"W" else []
            lines = [self.side.by_hash[int.from_bytes(key, "little")] for key in keys]
            name, answer = {
                b"H": lambda: (b"h", b"\0"),
                b"C": lambda: (b"c", self.sketch.to_bytes()),
                b"S": lambda: (b"s", self.encoder.produce(int.from_bytes(payload, "little"))),
                b"W": lambda: (b"l", self.side.checksum.to_bytes(8, "little") + sync.pack_lines(lines)),
            }[kind]()
            frame = bytearray(name + len(answer).to_bytes(4, "little") + answer)
            if draw.random() < 0.3:
                frame[draw.randrange(min(len(frame), 60))] ^= 1 << draw.randrange(8)
            self.left += bytes(frame)

    for _ in range(50):
        with contextlib.suppress(sync.FormatError, EOFError):
            done = sync.ask([b"a", b"b"], Noisy(), at_most=at_most, limit=100_000)
            assert (done.mine, done.theirs) == ([b"a"], [b"c"])


HELLO = (b"H", b"fullbloom sync 1" + bytes(16))
MANY = sync.pack_lines([b"ab"] * 300_000)
BOMB = zlib.compress(b"a\n" * (1 << 20))


@pytest.mark.parametrize(
    ("frames", "result"),
    [
        ([(b"H", b"fullbloom sync 2" + bytes(16))], "another version"),
        ([(b"H", b"x")], "another version"),
        ([(b"W", b"")], "does not speak"),
        ([HELLO, (b"S", b"\0\0\0\0")], "has no end"),
        ([HELLO, (b"S", b"\xff\xff\xff\xff")], "has no end"),
        ([HELLO, *[(b"S", (1 << 16).to_bytes(4, "little"))] * 9], "has no end"),
        ([HELLO, (b"W", bytes(8))], "not here"),
        ([HELLO, (b"W", bytes(80))], "announces 80 bytes where 16"),
        ([HELLO, (b"W", b""), (b"L", bytes(8) + b"junk")], "do not unpack"),
        ([HELLO, (b"W", b""), (b"L", bytes(8) + BOMB)], "longer than 1,000,000 bytes"),
        ([HELLO, (b"W", b""), (b"L", bytes(8) + MANY)], "300,000 lines where 1,024 may be missing"),
        ([HELLO, (b"W", b""), (b"L", bytes(8) + sync.pack_lines([b"c"]))], "checksums"),
    ],
)
def test_a_serving_side_refuses_forged_frames(frames, result):
    taken = []
    with pytest.raises(sync.FormatError, match=result):
        sync.serve([b"a", b"b"], Scripted(*frames), take=taken.append, limit=1_000_000)
    assert not taken


def test_many_short_lines_take_no_more_memory_than_their_text():
    """A line of two bytes is an object of fifty, so their number is checked before they are cut apart."""
    peer = Scripted(HELLO, (b"W", b""), (b"L", bytes(8) + MANY))
    tracemalloc.start()
    try:
        with pytest.raises(sync.FormatError, match="may be missing"):
            sync.serve([b"a"], peer, take=print, limit=1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_a_line_is_sent_once_and_no_more_lines_than_the_limit():
    """Ten thousand times one line of 100 kB made an answer of a gigabyte."""
    lines = [b"x" * 100_000, *(b"%d" % number for number in range(10_000))]
    keys = list(sync.Side(lines, bytes(16)).by_hash)
    words = [key.to_bytes(8, "little") for key in keys]

    def heard(wanted, limit):
        peer, said = Scripted(HELLO, (b"W", b"".join(wanted))), []
        peer.write = said.append
        try:
            done = sync.serve(lines, peer, limit=limit)
        finally:
            assert sum(map(len, said)) < limit
        return done.mine

    for wanted in ([words[0]] * 10_000, [*words[:50], words[7]]):
        with pytest.raises(sync.FormatError, match="a line twice; each is sent once"):
            heard(wanted, 1 << 20)
    with pytest.raises(sync.FormatError, match="10,001 lines of 148,891 bytes, the limit is 148,890"):
        heard(words, 148_890)
    assert heard(words, 148_891) == lines


def test_a_client_that_wants_nothing_more_ends_the_session():
    done = sync.serve([b"a"], Scripted(HELLO, (b"W", b"")), take=print)
    assert (done.mine, done.theirs, done.taken) == ([], [], False)


def test_misuse_is_refused_in_one_line(fullbloom, refused, tmp_path):
    (tmp_path / "f").write_bytes(b"a\n")
    (tmp_path / "g.gz").write_bytes(gzip.compress(b"b\n"))
    f = tmp_path / "f"
    assert "two files" in refused(fullbloom("sync", f))
    assert "two files" in refused(fullbloom("sync", f, f, "--with", "true"))
    assert "takes no other files" in refused(fullbloom("sync", f, "--serve", f))
    assert "not allowed" in refused(fullbloom("sync", "--serve", f, "--with", "true"))
    assert "empty" in refused(fullbloom("sync", f, "--with", " "))
    assert "quotation" in refused(fullbloom("sync", f, "--with", "'a"))
    assert "no-such-command" in refused(fullbloom("sync", f, "--with", "no-such-command x"))
    assert "each its own" in refused(fullbloom("sync", "--write", f, f))
    assert "not a plain file" in refused(fullbloom("sync", "--write", f, tmp_path / "g.gz"))
    assert f.read_bytes() == b"a\n"
    assert b"> b" in fullbloom("sync", f, tmp_path / "g.gz", check=1).stdout


def test_lines_that_came_since_the_comparison_stay_and_are_not_added_twice(fullbloom, refused, tmp_path):
    (tmp_path / "f").write_bytes(b"a\nb\r\n")
    add_lines(str(tmp_path / "f"), [b"b", b"c", b""])
    assert (tmp_path / "f").read_bytes() == b"a\nb\r\nc\n\n"
    (tmp_path / "g").write_bytes(b"d\n")
    with lock_file(str(tmp_path / "f")):
        assert "another run" in refused(fullbloom("sync", "--write", tmp_path / "f", tmp_path / "g"))
    assert (tmp_path / "f").read_bytes() == b"a\nb\r\nc\n\n"
    fullbloom("sync", "--write", tmp_path / "f", tmp_path / "g", check=0)
    assert set(lines_of(tmp_path / "f")) == {b"a", b"b", b"c", b"", b"d"}
