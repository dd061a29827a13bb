from __future__ import annotations

import pytest


def test_a_quote_in_tsv_is_text(bloomery, tmp_path):
    rows = [b"id\ttext", b'1\tsays "hi', b'2\t"quoted start', b"3\tq", b"3\tq", b'"4\tq', b"", b""]
    (tmp_path / "in.tsv").write_bytes(b"\n".join(rows) + b"\n")
    done = bloomery("dedup", "--select", "id", tmp_path / "in.tsv", check=0)
    assert done.stdout.split(b"\n") == [*rows[:4], *rows[5:], b""]


@pytest.mark.parametrize("rest", [1, 200_000])
def test_a_quote_that_never_ends_is_refused_with_its_line(bloomery, refused, tmp_path, rest):
    (tmp_path / "in.csv").write_bytes(
        b'id,text\n1,"two\nlines"\n2,"stray\n' + b"3,q\n" * 2 + b"4,abcdef\n" * rest
    )
    text = refused(bloomery("dedup", "--select", "id", "in.csv", "-o", "out", cwd=tmp_path))
    assert "in.csv: line 4: a quoted field is not closed" in text
    assert not (tmp_path / "out").exists()


def test_a_long_cell_on_one_line_is_no_open_quote(bloomery, tmp_path):
    rows = b'id,text\n1,"%s"\n1,x\n' % (b"w," * (1 << 20))
    (tmp_path / "in.csv").write_bytes(rows)
    assert bloomery("dedup", "--select", "id", tmp_path / "in.csv", check=0).stdout == rows[: -len(b"1,x\n")]
