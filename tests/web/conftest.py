"""Tabs of a browser, and a running service, for tests of built pages."""

from __future__ import annotations

import itertools

import pytest
from service.conftest import new_service, service, start
from web.browser import Tab, launch
from web.faulty_proxy import FaultyProxy

__all__ = ["new_service", "service", "start"]

_numbers = itertools.count()


@pytest.fixture(scope="module")
def browser():
    with launch() as running:
        yield running


@pytest.fixture
def tab(browser, service):
    one = Tab(browser, service.url)
    yield one
    one.close()


@pytest.fixture
def new_tab(browser):
    tabs = []

    def make(url, **options):
        tabs.append(Tab(browser, url, **options))
        return tabs[-1]

    yield make
    for one in tabs:
        one.close()


@pytest.fixture
def proxy(service):
    """A proxy in front of the service."""
    one = FaultyProxy(service.url)
    yield one
    one.stop()


@pytest.fixture
def name(service):
    """A filter of this test."""
    made = f"test:{next(_numbers)}"
    service.create(made, keyed=False, seed=3)
    return made
