from __future__ import annotations

import gzip
import json
import os
import re

import numpy as np
import pytest
import zstandard
from support import chance, scatter_of_mean

from fullbloom import registry
from fullbloom.cli import main
from fullbloom.cli.dedup.job import Job
from fullbloom.cli.filters.kinds import list_kinds
from fullbloom.recipes.dedup import Load, Tally, add_new


@pytest.mark.parametrize(
    "options", [[], ["--expected", "60000"], ["--memory", "32M"], ["--kind", "scalable"]]
)
def test_output_equals_that_of_an_ordered_set(fullbloom, exact, lines, options):
    done = fullbloom("dedup", "--fpr", "1e-12", *options, stdin=lines, check=0)
    assert done.stdout == exact(lines)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize("piped", [True, False])
def test_compressed_input_is_decompressed(fullbloom, exact, lines, tmp_path, pack, piped):
    half = lines.index(b"\n", len(lines) // 2) + 1
    packed = pack(lines[:half]) + pack(lines[half:])  # two members, two frames
    (tmp_path / "packed").write_bytes(packed)
    done = fullbloom("dedup", "--seed", 1, "-" if piped else tmp_path / "packed", stdin=packed, check=0)
    assert done.stdout == exact(lines)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_truncated_compressed_input_is_refused(fullbloom, refused, lines, pack):
    packed = pack(lines)
    assert "cut short" in refused(fullbloom("dedup", "--no-output", stdin=packed[: len(packed) // 2]))


def test_files_without_final_newline_do_not_run_together(fullbloom, tmp_path):
    for name, text in (("a", b"x\ny"), ("empty", b""), ("b", b"y\nz"), ("last", b"")):
        (tmp_path / name).write_bytes(text)
    done = fullbloom("dedup", *(tmp_path / name for name in ("a", "empty", "b", "last")), check=0)
    assert done.stdout == b"x\ny\nz"


def test_a_line_longer_than_a_block_is_kept_whole(fullbloom):
    huge = b"h" * (3 << 20)
    done = fullbloom("dedup", stdin=b"a\n" + huge + b"\n" + huge + b"\na\n" + huge + b"!\n", check=0)
    assert done.stdout == b"a\n" + huge + b"\n" + huge + b"!\n"


def test_dropped_lines_are_written_to_dupes_output(fullbloom, exact, lines, tmp_path):
    done = fullbloom(
        "dedup", "--seed", 1, "--dupes-output", tmp_path / "d", "-o", tmp_path / "o", stdin=lines, check=0
    )
    assert done.stdout == b""
    kept = (tmp_path / "o").read_bytes()
    assert kept == exact(lines)
    dropped = (tmp_path / "d").read_bytes()
    assert sorted((kept.rstrip(b"\n") + b"\n" + dropped).splitlines()) == sorted(lines.splitlines())


def test_verify_is_exact_with_a_terrible_rate(fullbloom, exact, lines, tmp_path):
    (tmp_path / "in").write_bytes(lines)
    bad = fullbloom("dedup", "--expected", "1000", "--fpr", "0.5", tmp_path / "in", check=1)
    assert bad.stdout != exact(lines)
    good = fullbloom("dedup", "--verify", "--expected", "1000", "--fpr", "0.5", tmp_path / "in", check=0)
    assert good.stdout == exact(lines)


def test_verify_refuses_input_that_cannot_be_read_twice(fullbloom, refused):
    assert "regular file" in refused(fullbloom("dedup", "--verify", stdin=b"a\n"))


@pytest.mark.parametrize("options", [["--verify"], ["--keep", "last"]])
def test_an_input_that_grows_between_two_passes_is_refused(monkeypatch, capsys, tmp_path, options):
    (tmp_path / "in").write_bytes(b"a\nb\n")
    rewind = Job.rewind

    def grow(job):
        with (tmp_path / "in").open("ab") as file:
            file.write(b"a\n")
        rewind(job)

    monkeypatch.setattr(Job, "rewind", grow)
    assert main(["dedup", *options, "-o", str(tmp_path / "o"), str(tmp_path / "in")]) == 2
    assert "between its two passes" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def loss(fullbloom, folder, part, *options, check=0):
    """How many more lines ``part`` was expected to lose than it lost, and how many it was expected to.

    It ends with repeats: with nothing but new lines no more could be expected than were dropped.
    """
    number = len(part) * 10 // 11
    # A file: what is read of a pipe at once, and so what is lost, differs from run to run.
    source = folder / "numbers.txt"
    source.write_bytes(b"".join(b"%d\n" % i for i in part))
    done = fullbloom("dedup", *options, "--json", "--no-output", source, check=check)
    facts = json.loads(done.stdout)
    return facts["expected_wrongly_dropped"] - (number - facts["lines_out"]), facts[
        "expected_wrongly_dropped"
    ]


def with_repeats(start, stop):
    """Numbers of which the last eleventh are the first ones again."""
    return [*range(start, stop), *range(start, start + (stop - start) // 10)]


def test_the_expected_loss_matches_the_measured_loss(fullbloom, tmp_path):
    n = 20_000
    part, options = with_repeats(0, n), ["--expected", n, "--fpr", "0.05"]
    off, expected = np.sum(
        [loss(fullbloom, tmp_path, part, *options, "--seed", seed) for seed in range(8)], axis=0
    )
    # Line by line: each is lost with the chance that was expected of it.
    assert abs(off) <= chance(expected)
    assert expected > chance(expected)


@pytest.mark.long
@pytest.mark.parametrize("options", [["45000", "--fpr", "1e-4"], ["300000", "--fpr", "0.3"]])
@pytest.mark.parametrize("layout", ["blocked", "classic"])
def test_the_expected_loss_matches_the_measured_loss_at_high_loss(fullbloom, tmp_path, options, layout):
    n = 300_000
    overfull = int(options[0] == "45000")
    options = ["--expected", *options, "--layout", layout]
    offs = []
    for seed in range(5):
        seeded, state = [*options, "--seed", seed], ["--state", tmp_path / f"s{seed}"]
        whole = loss(fullbloom, tmp_path, with_repeats(0, n), *seeded, check=overfull)
        # In two runs with a state: what the first one lost is known to the second.
        first = loss(fullbloom, tmp_path, with_repeats(0, n // 2), *seeded, *state, check=overfull)
        second = loss(fullbloom, tmp_path, with_repeats(n // 2, n), *seeded, *state, check=overfull)
        offs.append([off for off, _ in (whole, first, second)])
    for values in zip(*offs, strict=True):
        mean, bound = scatter_of_mean(values, cases=3)
        assert abs(mean) <= bound, values


KINDS = [row["name"] for row in list_kinds()]


@pytest.mark.parametrize("deferred", [True, False], ids=["deferred", "direct"])
@pytest.mark.parametrize("blocks", [1, 5, 40])
@pytest.mark.parametrize("kind", KINDS)
def test_the_expected_loss_matches_the_measured_loss_in_any_order(kind, blocks, deferred):
    n, off = 4000, []
    for seed in range(48):
        row = registry.get_row(kind)
        seen = registry.get_class(row)(n // 4 if row["role"] == "growing" else n, 0.05, seed=seed)
        load, tally = Load(seen), Tally()
        for block in np.array_split(np.arange(n), blocks):
            at, keys = 0, block.tolist()
            while at < len(keys):
                part = keys[at : None if deferred else at + load.step()]
                if deferred:
                    new = [
                        key for key, known in zip(part, seen.contains_many(part), strict=True) if not known
                    ]
                    seen.update(new)
                    kept = len(new)
                else:
                    kept = sum(add_new(part, seen))
                tally.count(len(part), kept, load.count_lost(kept, deferred=deferred))
                at += len(part)
        off.append(tally.records - tally.kept - tally.lost)
    mean, bound = scatter_of_mean(off)
    assert abs(mean) <= bound


@pytest.mark.parametrize("kind", KINDS)
def test_the_expected_loss_of_one_block_matches_the_measured_loss(kind):
    """A block is cut where the rate of the filter would change within it."""
    n, off = 4000, []
    block = b"".join(b"%d%s\n" % (i, b"x" * (i % 7)) for i in range(n))
    for seed in range(48):
        seen = registry.get_class(registry.get_row(kind))(n, 0.05, seed=seed)
        load, tally = Load(seen), Tally()
        for part in load.parts(block):
            keys = bytes(part).splitlines()
            kept = sum(add_new(keys, seen))
            tally.count(len(keys), kept, load.count_lost(kept))
        assert tally.records == n
        off.append(tally.records - tally.kept - tally.lost)
    mean, bound = scatter_of_mean(off)
    assert abs(mean) <= bound


def test_an_overfull_filter_is_reported_even_with_quiet(fullbloom, tmp_path):
    data = b"".join(b"%d\n" % i for i in range(50_000))
    done = fullbloom("dedup", "-q", "--expected", "1000", "--no-output", stdin=data, check=1)
    assert done.stderr.count(b"\n") == 1
    assert b"sized for 1,000" in done.stderr
    assert b"dropped" in done.stderr
    assert fullbloom("dedup", "-q", "--expected", "50000", stdin=data, check=0).stderr == b""
    state = ["--expected", "1000", "--state", tmp_path / "s"]
    assert fullbloom("dedup", "-q", *state, stdin=data, check=1).stderr.count(b"\n") == 1
    # By then nothing is kept any more, so what is kept says nothing about the loss.
    again = fullbloom(
        "dedup", "-q", "--state", tmp_path / "s", stdin=b"new %d\n" * 500 % (*range(500),), check=1
    )
    assert again.stderr.count(b"\n") == 1
    assert b"up to" in again.stderr or b"probably" in again.stderr
    (tmp_path / "in").write_bytes(data)
    for options in (["dedup", "-q"], ["seen", "-q"], ["seen", "-q", "--mark"], ["seen", "-q", "--old-only"]):
        (tmp_path / "s").unlink()
        done = fullbloom(*options, *state, tmp_path / "in", check=1)
        assert (done.stderr.count(b"\n"), b"sized for 1,000" in done.stderr) == (1, True)
        fullbloom(*options, "--expected", "50000", tmp_path / "in", check=0)
    verified = fullbloom("dedup", "-q", "--verify", "--expected", "1000", tmp_path / "in", check=0)
    assert verified.stdout == data


@pytest.mark.parametrize(("lines", "result"), [(11_000, 0), (40_000, 1)])
def test_dedup_and_seen_report_a_full_filter_in_the_same_way(fullbloom, lines, result):
    """A tenth more than was expected is no harm: of all lines, less than --fpr are treated as duplicates."""
    data = b"".join(b"%d\n" % i for i in range(lines))
    for command in (["dedup"], ["seen"], ["seen", "--mark"], ["dedup", "--select", "1", "--format", "tsv"]):
        seed = ["--seed", "1"] if command[0] == "dedup" else []
        done = fullbloom(
            *command, *seed, "-q", "--expected", "10000", "--fpr", "0.01", stdin=data, check=result
        )
        assert done.stderr.count(b"\n") == result


@pytest.mark.parametrize("lines", [50_000, 400_000])
def test_an_overfull_state_is_reported_in_every_run(fullbloom, tmp_path, lines):
    """The first block is looked up before it fills the filter; later it keeps no line and reports no loss."""
    state, seed = ["--state", tmp_path / "s"], ["--seed", "1"]
    first = b"".join(b"%d\n" % i for i in range(1000))
    kind = ["--kind", "bloom", "--fpr", "0.01", "--expected", "1000"]
    assert fullbloom("dedup", "-q", *kind, *seed, *state, stdin=first, check=0).stderr == b""
    data = b"".join(b"%d\n" % i for i in range(lines))
    for _ in range(2):
        done = fullbloom("dedup", "-q", *state, stdin=data, check=1)
        assert done.stderr.count(b"\n") == 1
        assert b"dropped" in done.stderr
        assert b"100%" in done.stderr


@pytest.mark.parametrize("extra", [[], ["--expected", "18000000"]])
def test_peak_memory_is_within_5_percent_of_the_limit(fullbloom, tmp_path, extra):
    asked = 40 << 20
    text = os.urandom(8 << 20).hex()
    (tmp_path / "in").write_text("".join(text[i : i + 24] + "\n" for i in range(0, len(text), 24)))
    options = ["--memory", "40M", "--json", "--no-output", *extra]
    facts = json.loads(fullbloom("dedup", *options, "--fpr", "0.05", tmp_path / "in", check=0).stdout)
    assert 0.95 * asked <= facts["peak_memory"] <= 1.05 * asked


def test_a_memory_limit_that_is_too_small_names_the_minimum(fullbloom, refused):
    text = refused(fullbloom("dedup", "--memory", "3M"))
    least = re.search(r"the least is (\d+M)", text)[1]
    fullbloom("dedup", "--memory", least, stdin=b"a\n", check=0)


CSV = b'id,text\r\n1,"two\nlines"\r\n2,"a ""quoted"" one"\r\n1,again\r\n3,x'


@pytest.mark.parametrize("select", ["id", "1"])
@pytest.mark.parametrize("options", [[], ["--verify", "--expected", "2", "--fpr", "0.5"], ["--state", "s"]])
def test_csv_records_are_kept_unchanged_by_their_column(fullbloom, tmp_path, select, options):
    (tmp_path / "in.csv").write_bytes(CSV)
    done = fullbloom("dedup", "--select", select, "in.csv", *options, cwd=tmp_path, check=0)
    assert done.stdout == CSV.replace(b"1,again\r\n", b"")


def test_tsv_records_are_keyed_and_a_missing_column_is_refused(fullbloom, refused, tmp_path):
    (tmp_path / "in.tsv").write_bytes(b"a\tb\n1\tx\n2\tx\n")
    assert fullbloom("dedup", "--select", "b", tmp_path / "in.tsv", check=0).stdout == b"a\tb\n1\tx\n"
    assert "it has a, b" in refused(fullbloom("dedup", "--select", "c", tmp_path / "in.tsv"))


def test_json_lines_are_kept_by_a_dotted_key(fullbloom, refused):
    rows = [
        b'{"u": {"id": 1}, "n": 1}',
        b'{"u":{"id":1}}',
        b'{"u": {"id": "1"}}',
        b'{"v": 1}',
        b'{"v": 1}',
        b"",
    ]
    options = ["dedup", "--select", "u.id", "--format", "jsonl"]
    done = fullbloom(*options, stdin=b"\n".join(rows) + b"\n", check=0)
    assert done.stdout.splitlines() == [rows[0], rows[2], rows[3], rows[4], rows[5]]
    assert "line 2 is not JSON" in refused(fullbloom(*options, stdin=b'{"u":1}\n{\n'))
