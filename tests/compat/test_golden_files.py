"""Files of every released format stay readable, and the same keys make the same bytes on every machine."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import for_each
from golden import make
from support import SECRET, Keys, variants_with

import fullbloom
from fullbloom import _core

FILTERS = make.filters()
HERE = Path(make.__file__).parent
FORGETS = {variant.id for variant in variants_with() if not variant.can("keeps")}


def secret_of(name: str) -> bytes | None:
    return SECRET if "keyed" in name else None


def look_up(instance: Any, keys: list[Any]) -> list[bool]:
    """The answers for ``keys``; of a closed world all of them are."""
    ask = instance.contains_many if hasattr(instance, "contains_many") else instance.includes_many
    answers: list[bool] = ask(keys)
    return answers


@for_each("name", FILTERS)
def test_the_same_keys_make_the_same_bytes(name: str) -> None:
    stored = (HERE / f"{name}.bloom").read_bytes()
    assert len(stored) <= 4096
    assert make.written(name, FILTERS[name]) == stored


@pytest.mark.parametrize("isa", _core.isas())
def test_every_instruction_set_writes_the_same_bytes(isa: str, force_isa: Any) -> None:
    force_isa(isa)
    for name, instance in make.filters().items():
        assert make.written(name, instance) == (HERE / f"{name}.bloom").read_bytes(), name


@for_each("name", FILTERS)
def test_golden_files_are_read(name: str, tmp_path: Path) -> None:
    path = HERE / f"{name}.bloom"
    secret = secret_of(name)
    keys = [] if name == "bloom-empty" or "-domains" in name else make.contents(name)
    opened = fullbloom.open(path, verify="full", secret=secret)
    loaded = fullbloom.loads(path.read_bytes(), secret=secret)
    by_class = type(FILTERS[name]).open(path, secret=secret)
    for bloom in (opened, loaded, by_class):
        assert type(bloom) is type(FILTERS[name])
        assert look_up(bloom, keys) == look_up(FILTERS[name], keys)
        assert all(look_up(bloom, keys)) or name.split("-", maxsplit=1)[0] in FORGETS
        assert bloom.to_bytes() == path.read_bytes()
        assert bloom == FILTERS[name]
        for field in ("capacity", "target_fpr", "num_added", "seed", "layout", "keyed", "fill", "nbytes"):
            assert getattr(bloom, field, None) == getattr(FILTERS[name], field, None), field
    loaded.save(tmp_path / "again.bloom")
    assert (tmp_path / "again.bloom").read_bytes() == path.read_bytes()


def test_a_file_of_an_earlier_release_holds_keys_of_unknown_types(recwarn: pytest.WarningsRecorder) -> None:
    old = fullbloom.loads((HERE / "bloom-classic.bloom").read_bytes())
    assert (old.key_domains, old.info()["key_domains"]) == ("unknown", "unknown")
    assert dt.date(2024, 1, 1) not in old
    old.add(dt.date(2024, 1, 1))
    old.clear()
    assert old.key_domains == "unknown"
    assert not recwarn.list


@for_each(
    ("name", "domains"),
    [
        ("bloom-domains", "text, integer, float, tuple"),
        ("bloom-domains-none", "none"),
        ("scalable-domains", "text, hashed"),
        ("spatial-domains", "date"),
        ("golomb-domains", "float"),
        ("cascade-domains", "text, tuple"),
    ],
)
def test_files_record_the_types_of_their_keys(name: str, domains: str) -> None:
    assert fullbloom.loads((HERE / f"{name}.bloom").read_bytes()).key_domains == domains


def test_every_golden_file_has_a_recipe() -> None:
    assert {path.stem for path in HERE.glob("*.bloom")} == set(FILTERS)


def test_a_recipe_cannot_overwrite(capsys: pytest.CaptureFixture[str]) -> None:
    before = (HERE / "keys.json").read_bytes()
    assert not make.write("keys.json", b"other")
    assert "kept" in capsys.readouterr().out
    assert (HERE / "keys.json").read_bytes() == before


@pytest.mark.parametrize("name", make.COUNTED)
def test_false_positives_are_exactly_these(name: str) -> None:
    pinned = json.loads((HERE / f"{name}.json").read_text())
    assert make.false_positives(make.COUNTED[name]) == pinned


@for_each(
    ("cls", "options", "pinned"),
    [
        ("CountingBloomFilter", {"layout": "classic", "counter_bits": 2}, 964),
        ("CountingBloomFilter", {"layout": "classic", "counter_bits": 3}, 964),
        ("CountingBloomFilter", {"layout": "blocked", "counter_bits": 4}, 1004),
        ("CountingBloomFilter", {"layout": "blocked", "counter_bits": 8}, 992),
        ("VariableIncrementFilter", {"increments": 2}, 993),
        ("VariableIncrementFilter", {"increments": 4}, 983),
        ("VariableIncrementFilter", {"increments": 8}, 992),
    ],
)
def test_false_positives_of_counters_are_pinned(cls: str, options: dict[str, Any], pinned: int) -> None:
    instance = getattr(fullbloom, cls)(10_000, 0.01, seed=11, **options)
    source = Keys("random", 3)
    instance.update(source.take(10_000))
    assert int(instance.contains_many(source.take(100_000)).sum()) == pinned


@for_each(
    ("cls", "options", "pinned"),
    [
        ("CuckooFilter", {}, 7243),
        ("CuckooFilter", {"semi_sort": True}, 7243),
        ("CuckooFilter", {"bucket_size": 2}, 6494),
        ("CuckooFilter", {"bucket_size": 8, "fingerprint_bits": 20}, 14),
        ("DynamicCuckooFilter", {"capacity": 1000}, 4585),
        ("DynamicCuckooFilter", {"capacity": 1000, "bucket_size": 2, "max_stages": 64}, 940),
        ("DynamicCuckooFilter", {"capacity": 1000, "bucket_size": 8, "fingerprint_bits": 12}, 36821),
        ("PrefixFilter", {"fpr": 0.05}, 31141),
        ("PrefixFilter", {"fpr": 0.01}, 6738),
        ("PrefixFilter", {"fpr": 0.004}, 3731),
        ("PrefixFilter", {"fpr": 1e-4}, 51),
    ],
)
def test_false_positives_of_fingerprints_are_pinned(cls: str, options: dict[str, Any], pinned: int) -> None:
    instance = getattr(fullbloom, cls)(**{"capacity": 10_000, "fpr": 0.01, "seed": 11, **options})
    instance.update(np.arange(10_000))
    assert int(instance.contains_many(np.arange(10_000, 1_010_000)).sum()) == pinned


def test_the_file_header_matches_the_documentation() -> None:
    data = (HERE / "bloom-classic.bloom").read_bytes()
    assert data[:8] == b"\x89BLOOM\r\n"
    version, variant, scheme, rule = (int.from_bytes(data[i : i + 2], "little") for i in (8, 10, 12, 14))
    assert (version, variant, scheme, rule) == (1, 1, 1, 1)
    assert int.from_bytes(data[16:24], "little") == 7
    assert int.from_bytes(data[32:40], "little") == len(data)
