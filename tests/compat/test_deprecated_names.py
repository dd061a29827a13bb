"""Names of earlier releases go on working, with a warning, and so do files and pickles written under them."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import fullbloom

FORMER = {"SpectralFilter": "SpectralBloomFilter"}


@pytest.mark.parametrize("name", FORMER)
def test_a_former_name_warns_and_returns_the_class(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=FORMER[name]):
        former = getattr(fullbloom, name)
    assert former is getattr(fullbloom, FORMER[name])
    assert name not in fullbloom.__all__
    assert name not in dir(fullbloom)
    code = f"from fullbloom import {name}; print({name}.__name__)"
    run = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert "DeprecationWarning" in done.stderr
    quiet = subprocess.run([run[0], *run[3:]], capture_output=True, text=True, check=True)
    assert quiet.stdout.strip() == FORMER[name]


@pytest.mark.parametrize("name", FORMER)
def test_a_pickle_under_a_former_name_loads(name: str) -> None:
    cls = getattr(fullbloom, FORMER[name])
    instance = cls(100)
    instance.update(["a", "a", "b"])
    data = pickle.dumps(instance, protocol=0)
    assert FORMER[name].encode() in data
    with pytest.warns(DeprecationWarning, match=FORMER[name]):
        assert pickle.loads(data.replace(FORMER[name].encode(), name.encode())) == instance


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'SpectralSieve'"):
        fullbloom.SpectralSieve  # noqa: B018
