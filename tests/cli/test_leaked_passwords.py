"""Lists of leaked passwords: `HASH:count` in either case, passwords themselves; nothing of it is printed."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import signal
import subprocess
import termios

import pytest

import fullbloom as package

PASSWORDS = [b"password", b"hunter2", "p\u00e4ssw\u00f6rd".encode(), b" spaces ", b"", b"a:b", b"\xff\xfe"]
ALGORITHMS = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"]


def digest(word, algorithm="sha1"):
    return hashlib.new(algorithm, word).hexdigest().upper()


def leaked(words=PASSWORDS, algorithm="sha1"):
    return "".join(f"{digest(word, algorithm)}:{3 * i + 1}\r\n" for i, word in enumerate(words)).encode()


@pytest.fixture
def built(fullbloom, tmp_path):
    (tmp_path / "leaked.txt").write_bytes(leaked())
    fullbloom("build", "--hex", "--fpr", "1e-9", "f", "leaked.txt", cwd=tmp_path, check=0)
    return tmp_path / "f"


def test_hashes_are_hashed_in_upper_case(built):
    found = package.open(built)
    assert found.num_added == len(PASSWORDS)
    assert all(digest(word) in found for word in PASSWORDS)
    assert digest(b"password").lower() not in found


FORMS = {
    "upper with counts": leaked(),
    "lower with counts": leaked().lower(),
    "upper alone": re.sub(rb":[0-9]+", b"", leaked()),
    "lower alone, no end": re.sub(rb":[0-9]+", b"", leaked()).replace(b"\r", b"").lower().rstrip(b"\n"),
    "mixed": leaked([b"password"]) + leaked([b"hunter2"]).lower(),
    "nothing behind the colon": re.sub(rb":[0-9]+", b":", leaked()),
    "more behind the colon": re.sub(rb":[0-9]+", b":7:name@example.org", leaked()),
    "nothing": b"",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_hashes_are_found_in_every_form(fullbloom, built, form):
    done = fullbloom("check", "--hex", built, stdin=form, check=0)
    assert done.stdout == b""
    lines = len(form.splitlines())
    assert fullbloom("check", "--hex", "--count", built, stdin=form, check=0).stdout == b"%d\n" % lines
    text = leaked([b"other"]) + form
    assert fullbloom("check", "--hex", "-q", built, stdin=text, check=1).stdout == b""


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_usual_hash_length_is_accepted(fullbloom, tmp_path, algorithm):
    text = leaked(algorithm=algorithm)
    fullbloom("build", "--hex", tmp_path / "f", "--capacity", "99", stdin=text, check=0)
    fullbloom("check", "--hex", tmp_path / "f", stdin=text.lower(), check=0)
    fullbloom("check", "--hex", tmp_path / "f", stdin=leaked([b"x"], algorithm), check=1)


def test_passwords_are_found_by_their_hash(fullbloom, built):
    text = b"\n".join(PASSWORDS) + b"\r\n"
    assert fullbloom("check", "--sha1-of", built, stdin=text, check=0).stdout == b""
    result = json.loads(
        fullbloom("check", "--sha1-of", built, "--json", stdin=text + b"other", check=1).stdout
    )
    assert (result["lines"], result["found"], result["absent"]) == (len(PASSWORDS) + 1, len(PASSWORDS), 1)
    absent = fullbloom("check", "--sha1-of", built, "--absent", "--count", stdin=text + b"other", check=1)
    assert absent.stdout == b"1\n"


@pytest.mark.parametrize("command", [["build", "g", "--capacity", "99"], ["insert", "f"]], ids=lambda c: c[0])
def test_filters_are_built_from_passwords_and_from_hashes(fullbloom, built, command):
    folder = built.parent
    fullbloom(*command, "--sha1-of", cwd=folder, stdin=b"x\ny\n", check=0)
    fullbloom("insert", command[1], "--hex", cwd=folder, stdin=leaked([b"z"]).lower(), check=0)
    found = package.open(folder / command[1], verify="full")
    assert all(digest(word) in found for word in (b"x", b"y", b"z"))
    assert b"x" not in found


BAD = {
    "no digit": (b"G" + leaked()[1:], 1),
    "too short": (leaked() + b"ABCD:1\n", len(PASSWORDS) + 1),
    "another length": (leaked() + leaked(algorithm="md5"), len(PASSWORDS) + 1),
    "a password": (leaked() + b"secret password\n" + leaked(), len(PASSWORDS) + 1),
    "an empty line": (b"\n" + leaked(), 1),
    "shifted": (leaked()[:39] + b"\n" + leaked()[39:], 1),
    "cut off": (leaked() + leaked()[:10], len(PASSWORDS) + 1),
    "swapped lengths": (digest(b"a")[:39].encode() + b"\n" + digest(b"a").encode() + b"A\n", 1),
    "space behind": (leaked().replace(b":1\r\n", b" \r\n"), 1),
    "binary": (bytes(range(256)) * 9, 1),
    "unicode digits": (("\u0660" * 20 + "\n").encode(), 1),
}


@pytest.mark.parametrize(("text", "line"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("command", [["check", "f"], ["insert", "f"], ["build", "new"]], ids=lambda c: c[0])
def test_a_malformed_hash_is_refused_by_its_line_number_only(fullbloom, refused, built, command, text, line):
    folder = built.parent
    (folder / "in").write_bytes(text)
    before = built.read_bytes()
    done = fullbloom(*command, "--hex", "in", cwd=folder)
    assert f"in: line {line} is " in refused(done)
    assert_unseen(done, text.splitlines())
    assert (built.read_bytes(), (folder / "new").exists()) == (before, False)


def test_line_numbers_are_counted_per_file(fullbloom, refused, built):
    folder = built.parent
    (folder / "one").write_bytes(leaked().rstrip())  # its last line has no end
    (folder / "two").write_bytes(leaked() + b"wrong\n")
    message = refused(fullbloom("check", "--hex", "f", "one", "one", "two", cwd=folder))
    assert f"two: line {len(PASSWORDS) + 1} is not a hash" in message
    many = leaked() * 60_000  # more than a block
    (folder / "long").write_bytes(many + b"wrong\n")
    message = refused(fullbloom("check", "--hex", "f", "long", cwd=folder))
    assert f"long: line {60_000 * len(PASSWORDS) + 1:,} is not a hash" in message


def assert_unseen(done, words):
    """Nothing of ``words`` (of four bytes and more), nor of their hashes, is in what was printed."""
    for word in (word for word in words if len(word) > 3):
        for form in (word, digest(word).encode(), digest(word).lower().encode(), word.upper(), word.lower()):
            assert form not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "options", [[], ["--absent"], ["--count"], ["--json"], ["-q"], ["--absent", "--json"]]
)
@pytest.mark.parametrize("mode", ["--hex", "--sha1-of"])
def test_no_part_of_a_line_is_printed(fullbloom, built, mode, options):
    words = [*PASSWORDS, b"other password"]
    text = leaked(words) if mode == "--hex" else b"\n".join(words)
    done = fullbloom("check", mode, built, *options, stdin=text, check=1)
    assert_unseen(done, [*words, *text.splitlines()])
    done = fullbloom("check", mode, built, "--max-line", "64K", stdin=b"password" * 10_000)
    assert done.returncode == 2
    assert_unseen(done, words)


@pytest.mark.parametrize(
    "words",
    [["check", "--hex", "--sha1-of", "f"], ["insert", "--hex", "--select", "1", "f"],
     ["build", "--sha1-of", "--select", "1", "g"]],
    ids=" ".join,
)  # fmt: skip
def test_options_that_contradict_are_refused(fullbloom, refused, built, words):
    refused(fullbloom(*words, cwd=built.parent, stdin=b"a\n"))
    assert not (built.parent / "g").exists()


@pytest.mark.parametrize("kind", ["bloom", "scalable", "xor", "cuckoo"])
def test_a_password_looked_up_among_hashes_is_warned_of(fullbloom, tmp_path, kind):
    """It would be absent, however often it leaked."""
    (tmp_path / "leaked.txt").write_bytes(leaked())
    fullbloom("build", "--hex", "--fpr", "1e-9", "--kind", kind, "f", "leaked.txt", cwd=tmp_path, check=0)
    for options in ([], ["--absent"], ["--count"]):
        done = fullbloom("check", *options, "f", cwd=tmp_path, stdin=b"password\n", check=1)
        (line,) = done.stderr.decode().splitlines()
        assert re.search("holds hashes .* --sha1-of .* --hex", line), line
    # Without the mistake nothing is said, nor where the lines are hashes.
    for options, text, code in (
        (["--sha1-of"], b"password\n", 0),
        (["--sha1-of"], b"no such password\n", 1),
        (["--hex"], leaked(), 0),
        (["--no-hex"], f"{digest(b'password')}\n".encode(), 0),
        (["-q"], b"password\n", 1),
        ([], b"", 0),
    ):
        done = fullbloom("check", "--count", *options, "f", cwd=tmp_path, stdin=text, check=code)
        assert b"--sha1-of" not in done.stderr, options


def test_hashes_are_recorded_wherever_they_are_added(fullbloom, tmp_path):
    (tmp_path / "leaked.txt").write_bytes(leaked())
    fullbloom("build", "--capacity", "99", "f", cwd=tmp_path, stdin=b"text\n", check=0)
    assert package.open(tmp_path / "f").key_domains == "text"
    fullbloom("check", "--count", "f", cwd=tmp_path, stdin=b"password\n", check=1)
    for options in ([], ["--in-place"]):
        done = fullbloom("insert", "--hex", *options, "f", "leaked.txt", cwd=tmp_path, check=0)
        assert b"were added to" not in done.stderr
        assert package.open(tmp_path / "f").key_domains == "text, digest"
    fullbloom("build", "--capacity", "99", "g", cwd=tmp_path, stdin=b"text\n", check=0)
    fullbloom("merge", "h", "f", "f", cwd=tmp_path, check=0)
    assert package.open(tmp_path / "h").key_domains == "text, digest"


@pytest.fixture
def asked(program, built):
    """A run that asks for a password on a terminal; a function that types and returns (code, all shown)."""
    ours, theirs = pty.openpty()
    words = [*program, "check", "--sha1-of", str(built)]
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    shown = b""
    while b"not shown" not in shown:
        shown += os.read(ours, 1000)

    def type_(text):
        nonlocal shown
        os.write(ours, text)
        if text == b"":
            process.send_signal(signal.SIGINT)
        code = process.wait(timeout=60)
        echoes = bool(termios.tcgetattr(theirs)[3] & termios.ECHO)
        assert echoes  # as it was before
        os.close(theirs)
        try:
            while more := os.read(ours, 1000):
                shown += more
        except OSError:  # the other end is closed
            pass
        return code, shown

    yield type_
    os.close(ours)
    process.kill()


@pytest.mark.parametrize(("word", "code"), [(b"hunter2", 0), (b"hunter3", 1)])
def test_a_typed_password_is_not_echoed(asked, word, code):
    ended, shown = asked(word + b"\n")
    assert ended == code
    assert b"hunter" not in shown
    assert (b"1 of 1 found" if code == 0 else b"0 of 1 found") in shown


def test_the_password_prompt_ends_with_the_input(asked):
    ended, shown = asked(b"\x04")
    assert ended == 0
    assert b"0 of 0 found" in shown


def test_the_password_prompt_ends_with_a_signal(asked):
    ended, shown = asked(b"")
    assert ended == 130
    assert shown.endswith(b"interrupted\r\n")
