"""Guarantee: a file that tells two sets apart is built of both, asked, and turned into another by a delta."""

from __future__ import annotations

import json

import pytest

import fullbloom as package
from fullbloom import FilterCascade

INCLUDED = [f"in {i}" for i in range(600)]
EXCLUDED = [f"out {i}" for i in range(5000)]
KIND = ["--kind", "cascade"]


def text(lines, end="\n"):
    return "".join(line + end for line in lines).encode()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").write_bytes(text(INCLUDED, "\r\n"))
    (tmp_path / "out").write_bytes(text(EXCLUDED))
    (tmp_path / "more").write_bytes(b"out 7\nlast")
    (tmp_path / "secret").write_bytes(b"sixteen secrets!")
    package.BloomFilter(9).save(tmp_path / "bloom")
    return tmp_path


@pytest.mark.parametrize("levels", FilterCascade.kinds())
def test_the_file_equals_the_one_that_python_builds(fullbloom, folder, levels):
    options = ["--except", "out", "--except", "more", "--levels", levels, "--seed", "5"]
    result = fullbloom("build", *KIND, "f", "in", *options, "--json", cwd=folder, check=0)
    facts = json.loads(result.stdout)
    assert (facts["lines"], facts["num_included"], facts["num_excluded"]) == (5602, 600, 5001)
    instance = FilterCascade.build(INCLUDED, [*EXCLUDED, "last"], kind=levels, seed=5)
    assert package.open(folder / "f", verify="full") == instance
    fullbloom(
        *("build", *KIND, "bounded", *options, "--memory", "200M", "--threads", "2"),
        cwd=folder,
        stdin=text(INCLUDED),
        check=0,
    )
    assert (folder / "bounded").read_bytes() == (folder / "f").read_bytes()


def test_check_classifies_the_lines_of_both_sets(fullbloom, folder):
    fullbloom("build", *KIND, "f", "in", "--except", "out", cwd=folder, check=0)
    assert fullbloom("check", "f", "in", cwd=folder, check=0).stdout == text(INCLUDED, "\r\n")
    assert fullbloom("check", "f", "out", cwd=folder, check=1).stdout == b""
    assert fullbloom("check", "--absent", "f", "out", cwd=folder, check=1).stdout == text(EXCLUDED)
    assert json.loads(fullbloom("info", "--json", "f", cwd=folder, check=0).stdout)["num_excluded"] == 5000


def test_records_are_keyed_by_their_columns(fullbloom, folder):
    for name, numbers in (("in.csv", range(300)), ("out.csv", range(300, 3000))):
        (folder / name).write_text("name,n\n" + "".join(f"a,{i}\n" for i in numbers))
    chosen = ["--select", "n", "--key-type", "int"]
    fullbloom("build", *KIND, "f", *chosen, "in.csv", "--except", "out.csv", cwd=folder, check=0)
    assert package.open(folder / "f") == FilterCascade.build(range(300), range(300, 3000))
    assert fullbloom("check", "f", *chosen, "--count", "in.csv", cwd=folder, check=0).stdout == b"300\n"


@pytest.mark.parametrize("secret", [[], ["--secret-file", "secret"]])
@pytest.mark.parametrize("levels", ["bloom", "ribbon"])
def test_a_delta_turns_one_version_into_another(fullbloom, folder, levels, secret):
    (folder / "in2").write_bytes(text([*INCLUDED[5:], "in new"]))
    seed = [] if secret else ["--seed", "9"]
    fullbloom(
        "build",
        *KIND,
        "old",
        "in",
        "--except",
        "out",
        "--levels",
        levels,
        *secret,
        *seed,
        cwd=folder,
        check=0,
    )
    like = ["--like", "old", *secret]
    fullbloom("build", *KIND, "new", "in2", "--except", "out", *like, cwd=folder, check=0)
    fullbloom("build", *KIND, "apart", "in2", "--except", "out", *secret, cwd=folder, check=0)
    whole = (folder / "new").read_bytes()
    result = fullbloom("delta", "d", "old", "new", "--json", *secret, cwd=folder, check=0)
    facts = json.loads(result.stdout)
    assert facts == {"file": "d", "bytes": len((folder / "d").read_bytes()), "whole": len(whole)}
    assert facts["bytes"] < 0.6 * facts["whole"]
    fullbloom("delta", "--apply", "same", "old", "d", *secret, cwd=folder, check=0)
    assert (folder / "same").read_bytes() == whole
    fullbloom("delta", "--apply", "old", "old", "d", *secret, cwd=folder, check=0)
    assert (folder / "old").read_bytes() == whole
    # What it was for is gone.
    done = fullbloom("delta", "--apply", "again", "old", "d", *secret, cwd=folder, check=2)
    assert b"d: the delta is for another version" in done.stderr
    if not secret:
        assert b"seed" in fullbloom("delta", "e", "new", "apart", cwd=folder, check=2).stderr
    else:
        assert b"secret" in fullbloom("delta", "e", "new", "apart", cwd=folder, check=2).stderr


WRONG = {
    "build f in --kind cascade": "--except FILE",
    "build f in --kind bloom --except out": "--except is of use with --kind cascade only",
    "build f in --levels ribbon": "--levels is of use with --kind cascade only",
    "build f in --like bloom": "--like is of use with --kind cascade only",
    "build f in --kind cascade --except in": "in and in have a line in common: in ",
    "build f in more --kind cascade --except out": "more and out have a line in common: out 7",
    "build f in more --kind cascade --except out --secret-file secret": "a key is in both sets",
    "build f --kind cascade --except -": "standard input can be read once",
    "build f in --kind cascade --except missing": "missing: No such file",
    "build f in --kind cascade --except out --fpr 0.1": "drop --fpr",
    "build f in --kind cascade --except out --capacity 9": "drop --capacity",
    "build f in --kind cascade --except out --memory 1M": "--memory must be above",
    "build out in --kind cascade --except out": "give each its own",
    "build f in --kind cascade --except out --like bloom": "bloom: holds a BloomFilter",
    "build f in --kind cascade --except out --like c --levels xor": "--levels is that of --like c",
    "build f in --kind cascade --except out --like c --seed 3": "--seed is that of --like c",
    "build f in --kind cascade --except out --like c --secret-file secret": "secret",
    "insert c in": "fullbloom build --kind cascade",
    "dedup --kind cascade in": "fullbloom build --kind cascade",
    "dedup --state c in": "fullbloom build --kind cascade",
    "merge f c c": "build one from all lines",
    "delta f bloom c": "bloom: a BloomFilter has no deltas",
    "delta f c bloom": "bloom: a BloomFilter has no deltas",
    "delta f in c": "in: this is not a fullbloom file",
    "delta f c in --apply": "in: this is not a delta",
    "delta f c empty --apply": "empty: the delta is cut short",
    "delta c c c": "give each its own",
    "delta f c": "required: NEW",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_input_is_refused_in_one_line_and_leaves_no_file(fullbloom, refused, folder, words):
    (folder / "empty").write_bytes(b"")
    fullbloom("build", *KIND, "c", "in", "--except", "out", cwd=folder, check=0)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert WRONG[words] in refused(fullbloom(*words.split(), cwd=folder, stdin=b"x\n"))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("included", "excluded"), [(b"", b"a\n"), (b"a\n", b""), (b"", b""), (b"a\na\n", b"b\nb")]
)
def test_empty_sets_and_sets_of_one_line_are_built(fullbloom, tmp_path, included, excluded):
    (tmp_path / "in").write_bytes(included)
    (tmp_path / "out").write_bytes(excluded)
    fullbloom("build", *KIND, "f", "in", "--except", "out", cwd=tmp_path, check=0)
    instance = package.open(tmp_path / "f")
    assert instance.verify(included.split(), excluded.split()) == 0
