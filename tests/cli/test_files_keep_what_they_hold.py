from __future__ import annotations

import itertools
import os
import subprocess

import pytest

ROLES = ("-o", "--dupes-output", "--state")


@pytest.mark.parametrize("other", ["x", "./x", "link", "hard"])
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("roles", [*itertools.combinations(ROLES, 2), *((None, role) for role in ROLES)])
def test_one_file_in_two_roles_is_refused_before_anything_is_read(
    bloomery, refused, tmp_path, roles, exists, other
):
    if not exists and (None in roles or other == "hard"):
        pytest.skip("needs a file that exists")
    if exists:
        (tmp_path / "x").write_bytes(b"a\na\n")
        os.link(tmp_path / "x", tmp_path / "hard")
    (tmp_path / "link").symlink_to("x")
    first, second = roles
    options = [*([first] if first else []), "x", second, other]
    text = refused(bloomery("dedup", *options, *(["-"] if first else []), cwd=tmp_path, stdin=b"b\n"))
    assert "both" in text
    assert (tmp_path / "x").exists() == exists
    assert not exists or (tmp_path / "x").read_bytes() == b"a\na\n"


def test_standard_output_is_a_role_too(program, refused, tmp_path):
    (tmp_path / "in").write_bytes(b"a\na\n")
    for role in ("--dupes-output", "--state"):
        command = f"{' '.join(program)} dedup in {role} d > d"
        refused(subprocess.run(["bash", "-c", command], cwd=tmp_path, stderr=subprocess.PIPE, timeout=60))


def test_build_and_seen_do_not_overwrite_their_input(bloomery, refused, tmp_path):
    (tmp_path / "in").write_bytes(b"a\n")
    refused(bloomery("build", "in", "./in", cwd=tmp_path))
    refused(bloomery("seen", "in", "--state", "./in", cwd=tmp_path))
    assert (tmp_path / "in").read_bytes() == b"a\n"


def test_devices_have_room_for_every_role(bloomery):
    bloomery("dedup", "-o", "/dev/null", "--dupes-output", "/dev/null", stdin=b"a\na\n", check=0)
