"""Guarantee: a file that maps lines to numbers is built of lines of both, and tells the numbers."""

from __future__ import annotations

import json

import pytest

import fullbloom as package

KIND = ["--kind", "bloomier"]
PAIRS = {f"key {i}": i * i for i in range(5000)}
TEXT = "".join(f"{key}\t{value}\r\n" for key, value in PAIRS.items()).encode()


def test_the_map_equals_the_one_that_python_builds(fullbloom, tmp_path):
    (tmp_path / "in").write_bytes(TEXT)
    options = ["--fpr", "1e-6", "--seed", "5"]
    result = fullbloom("build", *KIND, "f", "in", *options, "--json", cwd=tmp_path, check=0)
    facts = json.loads(result.stdout)
    assert (facts["lines"], facts["num_added"], facts["class"]) == (5000, 5000, "BloomierMap")
    assert package.open(tmp_path / "f", verify="full") == package.BloomierMap.build(PAIRS, fpr=1e-6, seed=5)
    fullbloom("build", *KIND, "piped", *options, "--threads", "2", cwd=tmp_path, stdin=TEXT, check=0)
    assert (tmp_path / "piped").read_bytes() == (tmp_path / "f").read_bytes()


def test_values_of_found_lines_are_printed(fullbloom, tmp_path):
    fullbloom("build", *KIND, "--fpr", "1e-9", "f", cwd=tmp_path, stdin=TEXT, check=0)
    keys = "".join(f"{key}\n" for key in PAIRS).encode()
    result = fullbloom("check", "--values", "f", cwd=tmp_path, stdin=keys, check=0).stdout
    assert result == TEXT.replace(b"\r", b"")
    asked = b"nobody\nkey 7"
    assert fullbloom("check", "--values", "f", cwd=tmp_path, stdin=asked, check=1).stdout == b"key 7\t49\n"
    assert fullbloom("check", "f", cwd=tmp_path, stdin=asked, check=1).stdout == b"key 7"
    count = fullbloom("check", "--values", "--count", "f", cwd=tmp_path, stdin=asked, check=1).stdout
    assert count == b"1\n"


def test_a_key_may_contain_tabs_or_be_empty(fullbloom, tmp_path):
    fullbloom("build", *KIND, "f", cwd=tmp_path, stdin=b"a\tb\t1\n\t2\n18\t144115188075855871", check=0)
    result = fullbloom("check", "--values", "f", cwd=tmp_path, stdin=b"a\tb\n\n18\n", check=0).stdout
    assert result == b"a\tb\t1\n\t2\n18\t144115188075855871\n"


@pytest.mark.parametrize(
    "line", [b"alone", b"a\t", b"a\t-1", b"a\t1.5", b"a\t18446744073709551616", b"a\t\xb2", b""]
)
def test_a_line_without_a_value_is_refused_by_its_line_number(fullbloom, refused, tmp_path, line):
    (tmp_path / "in").write_bytes(b"a\t1\n" + line + b"\nb\t2\n")
    assert "in: line 2 of the input is not a key, a tab and a whole number" in refused(
        fullbloom("build", *KIND, "f", "in", cwd=tmp_path)
    )
    assert not (tmp_path / "f").exists()


def test_a_key_with_two_values_is_refused_by_its_line_numbers(fullbloom, refused, tmp_path):
    result = refused(fullbloom("build", *KIND, "f", cwd=tmp_path, stdin=b"a\t1\nb\t2\nb\t2\na\t3\n"))
    assert "lines 1 and 4 of the input are one key" in result


def test_values_too_wide_for_the_rate_are_refused(fullbloom, refused, tmp_path):
    result = refused(fullbloom("build", *KIND, "f", cwd=tmp_path, stdin=b"a\t18446744073709551615\n"))
    assert result.strip().endswith(
        "numbers up to 18446744073709551615 at --fpr 0.01 take more than 64 bits; give a higher --fpr"
    )


def test_a_secret_keeps_lines_out_of_messages(fullbloom, refused, tmp_path):
    (tmp_path / "secret").write_bytes(b"sixteen secrets!")
    words = ["build", *KIND, "f", "--secret-file", "secret"]
    assert "private" not in refused(fullbloom(*words, cwd=tmp_path, stdin=b"private\n"))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["build", *KIND, "g", "in", "--memory", "1G"], "drop --memory"),
        (["build", *KIND, "g", "in", "--select", "1"], "drop --select"),
        (["build", *KIND, "g", "in", "--hex"], "drop --hex"),
        (["build", *KIND, "g", "in", "--capacity", "9"], "drop --capacity"),
        (["check", "f", "in", "--values", "--absent"], "--values and --absent exclude each other"),
        (["check", "bloom", "in", "--values"], "a BloomFilter has no values"),
        (["insert", "f", "in"], "fullbloom build --kind bloomier"),
        (["merge", "g", "f", "f"], "build one from all lines"),
    ],
)
def test_options_without_effect_on_maps_are_refused(fullbloom, refused, tmp_path, words, why):
    (tmp_path / "in").write_bytes(b"a\t1\n")
    package.BloomierMap.build({"a": 1}).save(tmp_path / "f")
    package.BloomFilter(9).save(tmp_path / "bloom")
    assert why in refused(fullbloom(*words, cwd=tmp_path))
