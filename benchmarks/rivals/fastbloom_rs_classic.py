"""fastbloom-rs: Rust, classic layout; the only rival with a native batch lookup."""

from typing import Any

from fastbloom_rs import FilterBuilder

from benchmarks.rivals import Rival


def _make(capacity: int, fpr: float) -> Any:
    return FilterBuilder(capacity, fpr).build_bloom_filter()


RIVAL = Rival(
    name="fastbloom-rs",
    make=_make,
    add=lambda f, kind: f.add_str if kind == "str" else f.add_int,
    update=lambda f, kind: f.add_str_batch if kind == "str" else f.add_int_batch,
    contains_many=lambda f, kind: f.contains_str_batch if kind == "str" else f.contains_int_batch,
    contains=lambda f, kind: f.contains_str if kind == "str" else f.contains_int,
    bits=lambda f: len(f.get_bytes()) * 8,
)
