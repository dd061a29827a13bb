"""A secret that was drawn is handed out once, and no file is written that nobody could open."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from cases import for_each
from support import SECRET, Variant, every_variant

import fullbloom

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def ways_out(instance: Any, path: Path) -> list[Callable[[], Any]]:
    """Everything that writes a filter down."""
    return [instance.to_bytes, lambda: instance.save(path)]


@for_each("variant", every_variant("keys"))
def test_every_saved_keyed_file_can_be_opened(variant: Variant, tmp_path: Path) -> None:
    path = tmp_path / "f.bloom"
    instance = variant.make(100, 0.01, secret=True)
    variant.add(instance, "a")
    for way in ways_out(instance, path):
        with pytest.raises(fullbloom.SecretError, match=r"take_secret\(\)"):
            way()
    assert not path.exists()
    secret = instance.take_secret()
    assert type(secret) is bytes
    assert len(secret) == 16
    instance.save(path)
    found = fullbloom.open(path, secret=secret)
    assert found.to_bytes() == instance.to_bytes()
    assert "a" in found
    assert fullbloom.loads(instance.to_bytes(), secret=secret).to_bytes() == instance.to_bytes()
    twin = variant.make(100, 0.01, secret=secret)
    variant.add(twin, "a")
    assert twin.to_bytes() == instance.to_bytes()


@for_each("variant", every_variant("keys"))
def test_a_random_secret_is_returned_once(variant: Variant, tmp_path: Path) -> None:
    instance = variant.make(100, 0.01, secret=True)
    twin = instance.copy()
    for way in ways_out(twin, tmp_path / "f.bloom"):
        with pytest.raises(fullbloom.SecretError):
            way()
    secret = instance.take_secret()
    for other in (instance, twin, instance.copy(), copy.copy(instance), copy.deepcopy(twin)):
        with pytest.raises(fullbloom.SecretError, match="once"):
            other.take_secret()
        # It is the secret of the copies as well.
        fullbloom.loads(other.to_bytes(), secret=secret)
    for text in (repr(instance), str(instance.info())):
        assert secret.hex() not in text
        assert repr(secret) not in text
    with pytest.raises(TypeError, match="secret"):
        pickle.dumps(instance)


@for_each("variant", every_variant("keys"))
@for_each("secret", [None, False, SECRET])
def test_a_secret_of_the_caller_is_not_returned(variant: Variant, secret: Any, tmp_path: Path) -> None:
    instance = variant.make(100, 0.01, secret=secret)
    with pytest.raises(fullbloom.SecretError, match="secret=True"):
        instance.take_secret()
    for way in ways_out(instance, tmp_path / "f.bloom"):
        way()


def test_a_union_has_the_secret_of_its_parts(tmp_path: Path) -> None:
    one = fullbloom.BloomFilter(100, secret=True)
    other = one.copy()
    one.add("a")
    other.add("b")
    for way in ways_out(one | other, tmp_path / "f.bloom"):
        with pytest.raises(fullbloom.SecretError):
            way()
    secret = other.take_secret()
    (one | other).save(tmp_path / "f.bloom")
    both = fullbloom.open(tmp_path / "f.bloom", secret=secret)
    assert "a" in both
    assert "b" in both


def test_true_is_refused_as_a_secret_for_open_and_hash(tmp_path: Path) -> None:
    instance = fullbloom.BloomFilter(100, secret=SECRET)
    path = tmp_path / "f.bloom"
    instance.save(path)
    calls: list[Callable[[], Any]] = [
        lambda: fullbloom.open(path, secret=True),  # type: ignore[arg-type]
        lambda: fullbloom.loads(instance.to_bytes(), secret=True),  # type: ignore[arg-type]
        lambda: fullbloom.BloomFilter.open(path, secret=True),  # type: ignore[arg-type]
        lambda: fullbloom.hash_key("a", secret=True),  # type: ignore[arg-type]
        lambda: fullbloom.hash_many(["a"], secret=True),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(fullbloom.ParameterTypeError, match="16 bytes"):
            call()


@pytest.mark.parametrize("name", ["BloomFilter", "DeletableBloomFilter"])
def test_with_shape_draws_secrets(name: str) -> None:
    instance = getattr(fullbloom, name).with_shape(1000, 7, secret=True)
    with pytest.raises(fullbloom.SecretError):
        instance.to_bytes()
    secret = instance.take_secret()
    assert fullbloom.loads(instance.to_bytes(), secret=secret).keyed


@pytest.mark.parametrize("variant", every_variant("build"))
def test_build_draws_secrets(variant: Variant) -> None:
    instance = variant.build(["a", "b"], secret=True)
    with pytest.raises(fullbloom.SecretError):
        instance.to_bytes()
    secret = instance.take_secret()
    assert "a" in fullbloom.loads(instance.to_bytes(), secret=secret)
    # Hashes that were made elsewhere are of a secret that the caller has.
    with pytest.raises(fullbloom.ParameterTypeError, match="16 bytes"):
        variant.build([1, 2], hashed=True, secret=True)
