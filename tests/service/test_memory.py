"""What the service holds for its clients is taken from one budget, and refused beyond it."""

from __future__ import annotations

import fullbloom_server as native
import pytest


def test_what_is_held_for_clients_is_taken_from_one_budget():
    service = native.Service(None, limits={"memory_bytes": 1000})
    with service.hold(600) as held:
        held.grow(300)
        assert service.memory()[:2] == (900, 1000)
        with pytest.raises(native.Fault, match=r"limits\.memory_bytes") as refused:
            held.grow(101)
        assert refused.value.code == "overloaded"
        with pytest.raises(native.Fault) as refused:
            service.hold(1001)
        assert refused.value.code == "limit"
        held.resize(1000)
        assert held.nbytes == 1000
    assert service.memory() == (0, 1000, 1000, 2)


def test_without_a_setting_the_largest_filter_can_be_copied():
    service = native.Service(None, limits={"filter_bytes": 1 << 20, "request_bytes": 1000})
    assert service.memory()[1] == (1 << 20) + 16_000
