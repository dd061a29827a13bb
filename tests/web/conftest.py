"""Browser tabs and a running service for tests of built pages."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest
from service.conftest import new_service, service, start
from web.browser import Tab, launch
from web.faulty_proxy import FaultyProxy

__all__ = ["new_service", "service", "start"]

_numbers = itertools.count()
#: What `make test` runs where the pages are built: one test per page, seconds in total. The others are long.
SMOKE = {
    "test_the_summary_names_each_skipped_page_and_the_reason",
    "test_the_list_and_a_filter_can_be_reached_by_keyboard",
    "test_dropping_a_filter_requires_typing_its_name",
    "test_the_form_advises_on_a_kind_creates_the_filter_and_its_numbers_update",
    "test_hostile_names_from_another_server_are_shown_as_inert_text",
    "test_hashes_positions_and_bits_of_words_equal_pythons",
    "test_golden_files_and_new_filters_equal_pythons_in_node",
}


def pytest_collection_modifyitems(items):
    """Mark every test of this folder as long, except the smoke tests."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.originalname not in SMOKE:
            item.add_marker(pytest.mark.long)


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

    def open_tab(url, **options):
        tabs.append(Tab(browser, url, **options))
        return tabs[-1]

    yield open_tab
    for one in tabs:
        one.close()


@pytest.fixture
def proxy(service):
    """A proxy in front of the service."""
    one = FaultyProxy(service.url)
    yield one
    one.stop()


@pytest.fixture(scope="module")
def filled_service(new_service):
    """A service with a filter of each category, and samples."""
    one = new_service(FULLBLOOM_HISTORY__EVERY="0.3", FULLBLOOM_LOG_LEVEL="warning")
    one.create("shown", capacity=2000)
    one.create("read:articles", kind="bank", capacity=50)
    pairs = [[f"user-{number % 7}", number] for number in range(140)]
    one.http.post("/v1/filters/read:articles/add", json={"keys": pairs}).raise_for_status()
    one.create("areas", kind="spatial", capacity=100)
    one.http.post("/v1/filters/static/freeze?kind=ribbon", json={"keys": ["ada", "alan"]}).raise_for_status()
    one.create("over:capacity", capacity=10)
    one.http.post("/v1/filters/over:capacity/add", json={"keys": list(range(100))}).raise_for_status()
    for start_ in range(0, 900, 100):
        keys = list(range(start_, start_ + 100))
        one.http.post("/v1/filters/shown/add", json={"keys": keys}).raise_for_status()
        time.sleep(0.4)
    return one


@pytest.fixture
def name(service):
    """The name of a filter that this test owns."""
    filter_name = f"test:{next(_numbers)}"
    service.create(filter_name, keyed=False, seed=3)
    return filter_name
