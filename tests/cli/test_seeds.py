from __future__ import annotations

import json

import pytest

import fullbloom as package

COMMANDS = [["dedup"], ["dedup", "--expected", "100"], ["dedup", "--memory", "64M"], ["dedup", "--keyed"]]
SELECT = ["dedup", "--select", "1", "--format", "tsv", "--no-header"]


def _filter(fullbloom, *words, **options):
    return json.loads(
        fullbloom(*words, "--json", "--no-output", stdin=b"a\nb\na\n", check=0, **options).stdout
    )["filter"]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_two_runs_of_dedup_use_different_seeds(fullbloom, words):
    one, other = (_filter(fullbloom, *words) for _ in range(2))
    keyed = "--keyed" in words
    assert one["keyed"] is other["keyed"] is keyed
    assert keyed or one["seed"] != other["seed"]


def _dropped_by_all(fullbloom, words, data, runs):
    """Return how many lines that occur once are dropped in every one of ``runs`` runs."""
    kept = [set(fullbloom(*words, stdin=data).stdout.split()) for _ in range(runs)]
    return len(set(data.split()) - set.union(*kept))


@pytest.mark.parametrize(
    "words",
    [
        ["dedup", "-q"],
        ["dedup", "-q", "--keyed"],
        ["dedup", "-q", "--verify"],
        ["seen", "-q"],
        [*SELECT, "-q"],
    ],
    ids=" ".join,
)
def test_no_line_is_lost_in_every_run(fullbloom, tmp_path, words):
    """At a rate of 30 % some 0.3^8 of lines are lost to eight runs; with one hash for all, a tenth."""
    data = b"".join(b"%d\n" % i for i in range(20_000))
    words = [*words, "--expected", "20000", "--fpr", "0.3"]
    if "--verify" in words:
        (tmp_path / "in").write_bytes(data)
        assert fullbloom(*words, tmp_path / "in", check=0).stdout == data
        return
    assert _dropped_by_all(fullbloom, words, data, 8) <= 5
    assert _dropped_by_all(fullbloom, [*words, "--seed", "7"], data, 2) > 50


@pytest.mark.parametrize("words", [["dedup"], ["seen"], SELECT], ids=" ".join)
def test_a_seed_repeats_a_run(fullbloom, words):
    data = b"".join(b"%d\n" % i for i in range(20_000))
    words = [*words, "-q", "--expected", "20000", "--fpr", "0.3", "--seed", "5"]
    assert fullbloom(*words, stdin=data).stdout == fullbloom(*words, stdin=data).stdout != data


def test_the_reported_seed_repeats_the_run(fullbloom):
    data = b"".join(b"%d\n" % i for i in range(20_000))
    done = fullbloom("dedup", "--expected", "20000", "--fpr", "0.3", "--json", stdin=data, check=0)
    seed = json.loads(done.stderr)["filter"]["seed"]
    again = fullbloom(
        "dedup", "--expected", "20000", "--fpr", "0.3", "-q", "--seed", str(seed), stdin=data, check=0
    )
    assert again.stdout == done.stdout


@pytest.mark.parametrize("command", ["dedup", "seen"])
def test_a_state_keeps_its_random_seed(fullbloom, tmp_path, command):
    for name in "st":
        fullbloom(command, "--state", tmp_path / name, stdin=b"a\n", check=0)
        assert fullbloom(command, "--state", tmp_path / name, stdin=b"a\nb\n", check=0).stdout == b"b\n"
    one, other = (package.open(tmp_path / name) for name in "st")
    assert one.seed != other.seed
    assert "a" in one
    assert "a" in other
    assert not one.info()["keyed"]
    fullbloom(command, "--state", tmp_path / "u", "--seed", "3", stdin=b"a\n", check=0)
    assert package.open(tmp_path / "u").seed == 3


def test_a_secret_keys_a_state(fullbloom, tmp_path):
    (tmp_path / "secret").write_bytes(bytes(range(16)))
    keyed = ["dedup", "--state", tmp_path / "s", "--secret-file", tmp_path / "secret"]
    fullbloom(*keyed, stdin=b"a\n", check=0)
    assert package.open(tmp_path / "s", secret=bytes(range(16))).info()["keyed"]
    assert fullbloom(*keyed, stdin=b"a\nb\n", check=0).stdout == b"b\n"


def test_built_filters_use_the_public_hash(fullbloom, tmp_path):
    fullbloom("build", tmp_path / "f", stdin=b"a\n", check=0)
    assert package.open(tmp_path / "f").seed == 0


@pytest.mark.parametrize("option", [["--state", "s"], ["--seed", "1"], ["--secret-file", "k"]], ids=" ".join)
def test_a_random_secret_is_refused_together_with_another(fullbloom, refused, tmp_path, option):
    assert "--keyed" in refused(fullbloom("dedup", "--keyed", *option, stdin=b"a\n", cwd=tmp_path))
