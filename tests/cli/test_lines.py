from __future__ import annotations

import gzip
import resource
import struct
import subprocess

import pytest
import zstandard

import fullbloom as package

MEBI = 1 << 20


def _frame(content: bytes = b"", *, blocks: bytes = b"", window: int = 17) -> bytes:
    """Return a zstd frame of raw ``content``, or of ``blocks`` as they are, with a window of 2^window."""
    head = b"\x28\xb5\x2f\xfd" + bytes((0, (window - 10) << 3))
    return head + (blocks or (len(content) << 3 | 1).to_bytes(3, "little") + content)


def _zeros_zstd(nbytes: int) -> bytes:
    """Return zeros as blocks of one repeated byte: 4 bytes for 128 KiB."""
    count = nbytes >> 17
    runs = [((1 << 17) << 3 | 1 << 1 | (i == count - 1)).to_bytes(3, "little") + b"\0" for i in range(count)]
    return _frame(blocks=b"".join(runs))


SKIPPABLE = b"\x5a\x2a\x4d\x18" + struct.pack("<I", 300_000) + bytes(300_000)
PACKS = ("gzip", "zstd")
ENDLESS = 300 * MEBI


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """The directory of one line of 300 MiB, as it is and packed."""
    folder = tmp_path_factory.mktemp("endless")
    with (folder / "None").open("wb") as file:
        file.truncate(ENDLESS)
    with gzip.open(folder / "gzip", "wb", compresslevel=1) as file:
        for _ in range(ENDLESS // MEBI):
            file.write(bytes(MEBI))
    (folder / "zstd").write_bytes(_zeros_zstd(ENDLESS))
    return folder


@pytest.fixture
def within(program, tmp_path):
    """Run a command whose address space is limited; the interpreter alone takes 60 MB of it."""

    def run(*arguments, most, stdin=None):
        done = subprocess.run(
            [*program, *map(str, arguments)],
            stdin=stdin, capture_output=True, timeout=60, cwd=tmp_path, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
        )  # fmt: skip
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return done

    return run


#: How each command reads lines; what unpacks is below all of them, so that four meet packed ones.
READING = [
    ["dedup", "--memory", "64M"],
    ["dedup", "--memory", "64M", "--verify"],
    ["dedup", "--memory", "64M", "--select", "1", "--format", "csv"],
    ["check", "f", "--max-line", "4M"],
    ["dedup", "--memory", "64M", "--select", "1", "--format", "tsv"],
    ["dedup", "--memory", "64M", "--select", "a", "--format", "jsonl"],
    ["dedup", "--max-line", "4M"],
    ["dedup", "--max-line", "4M", "--select", "1", "--format", "csv"],
    ["seen", "--max-line", "4M"],
    ["seen", "--mark", "--max-line", "4M"],
    ["build", "out", "--max-line", "4M"],
]
CASES = [(None, options) for options in READING]
CASES += [(pack, options) for pack in PACKS for options in READING[:4]]


@pytest.mark.parametrize(
    ("pack", "options"), CASES, ids=lambda value: value if isinstance(value, str) else " ".join(value or ())
)
def test_an_endless_line_is_refused_in_little_memory(within, refused, endless, tmp_path, options, pack):
    package.BloomFilter(9).save(tmp_path / "f")
    text = refused(within(*options, endless / str(pack), most=ENDLESS))
    assert f"{pack}: the line at byte 0 is longer than" in text
    assert "--max-line" in text


@pytest.mark.parametrize("pack", PACKS)
def test_a_decompression_bomb_stays_within_the_memory_limit(fullbloom, tmp_path, pack):
    rows = b"".join(b"%0999d\n" % (i % 3) for i in range(64 << 10))
    packed = gzip.compress(rows) if pack == "gzip" else zstandard.compress(rows)
    (tmp_path / "in").write_bytes(packed)
    facts = fullbloom("dedup", "--memory", "40M", "--json", tmp_path / "in", check=0).stderr
    assert b'"lines_in": 65536, "lines_out": 3' in facts
    peak = int(facts.split(b'"peak_memory": ')[1].split(b",")[0])
    assert peak <= 1.05 * 40 * MEBI


def test_max_line_limits_lines_to_the_byte(fullbloom, refused, tmp_path):
    most = 1 << 16
    for ending in (b"", b"\n", b"\nb\n"):
        for before in (b"", b"x\n", b"x\n" * 300_000):
            fits, more = (before + b"h" * length + ending for length in (most, most + 1))
            options = ["dedup", "--no-output", "--max-line", "64K"]
            fullbloom(*options, stdin=fits, check=0)
            assert f"the line at byte {len(before):,} is longer than" in refused(
                fullbloom(*options, stdin=more)
            )
    (tmp_path / "a").write_bytes(b"h" * most)
    (tmp_path / "b").write_bytes(b"h" * (most + 1))
    done = fullbloom("dedup", "--max-line", "64K", tmp_path / "a", tmp_path / "a", check=0)
    assert done.stdout == b"h" * most + b"\n"
    assert f"{tmp_path / 'b'}: the line at byte 0" in refused(
        fullbloom("dedup", "--max-line", "64K", tmp_path / "a", tmp_path / "b")
    )


@pytest.mark.parametrize("piped", [True, False])
@pytest.mark.parametrize("order", ["first", "between", "last", "only"])
def test_zstd_frames_without_data_are_skipped(fullbloom, tmp_path, piped, order):
    text = b"a\nb\na\n"
    frame = zstandard.compress(text)
    parts = {"first": [SKIPPABLE, frame], "between": [frame, SKIPPABLE, frame], "last": [frame, SKIPPABLE]}
    packed = b"".join(parts.get(order, [SKIPPABLE]))
    (tmp_path / "in").write_bytes(packed)
    done = fullbloom("dedup", "-" if piped else tmp_path / "in", stdin=packed, check=0)
    assert done.stdout == (b"" if order == "only" else b"a\nb\n")


@pytest.mark.parametrize(
    "options", [{"level": 1}, {"level": 19}, {"write_checksum": True}, {"write_content_size": False}], ids=str
)
@pytest.mark.parametrize("nbytes", [0, 1, 200, 300, 70_000, 3_000_000])
def test_every_form_of_a_zstd_frame_is_read(fullbloom, tmp_path, options, nbytes):
    text = bytes(range(97, 107)) * (nbytes // 10) + b"z" * (nbytes % 10)
    packer = zstandard.ZstdCompressor(**options)
    (tmp_path / "in").write_bytes(packer.compress(text) + packer.compress(text))
    assert fullbloom("dedup", tmp_path / "in", check=0).stdout == text * 2


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 8, 11, -1, -4])
def test_a_frame_cut_anywhere_is_refused(fullbloom, refused, cut):
    packed = SKIPPABLE[:12].replace(b"\xe0\x93\x04", b"\x04\0\0") + zstandard.ZstdCompressor(
        write_checksum=True
    ).compress(b"a\nb\n" * 1000)
    text = fullbloom("dedup", stdin=packed[:cut])
    if 0 < cut < 4:  # no magic yet: a line like any other
        assert text.returncode == 0
    else:
        assert "cut short" in refused(text)


def test_bytes_that_are_not_a_zstd_frame_are_refused(fullbloom, refused):
    assert "no frame begins with" in refused(fullbloom("dedup", stdin=zstandard.compress(b"a\n") + b"junk"))
    reserved = _frame(blocks=(9 << 3 | 3 << 1 | 1).to_bytes(3, "little") + b"123456789")
    assert "damaged zstd data" in refused(fullbloom("dedup", stdin=reserved))


def test_a_window_beyond_the_memory_is_refused(fullbloom, refused):
    text = refused(fullbloom("dedup", "--memory", "64M", stdin=_frame(b"a\n", window=26)))
    assert "window of 64.0 MiB, more than 4.0 MiB" in text
    assert fullbloom("dedup", stdin=_frame(b"a\n", window=26), check=0).stdout == b"a\n"
    # More memory is a remedy only where there was less than the largest window takes.
    assert "more --memory" in text
    text = refused(fullbloom("dedup", stdin=_frame(b"a\n", window=28)))
    assert "more than 128.0 MiB; pack it with a smaller one" in text


@pytest.mark.parametrize("size", ["0", "1K", "-1", "x", "9" * 5000])
@pytest.mark.parametrize("command", [["dedup"], ["seen"], ["build", "o"], ["check", "f"]], ids=" ".join)
def test_an_unusable_max_line_is_refused(fullbloom, refused, command, size):
    assert "--max-line" in refused(fullbloom(*command, f"--max-line={size}"))
