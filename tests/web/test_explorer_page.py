"""The explorer as a page: its address, hostile input, files, keyboard, policy and speed."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from golden import make
from support import SECRET
from web.explorer_page import (
    FOLDER,
    SCENES,
    WATCH,
    PageHandler,
    drop,
    find_knob,
    parse_rate,
    read_fact,
    show,
    wait_for_all,
    wait_for_hash,
    wait_for_value,
)

import fullbloom
from fullbloom import theory

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytest_plugins = ["web.explorer_page"]

GOLDEN = Path(make.__file__).parent


def test_the_address_restores_the_scene(context: BrowserContext, page: Page, address: str) -> None:
    show(page, address, "words")
    page.get_by_label("Words in the filter").fill("ä日本 <b>x</b> a&b=c#d")
    page.get_by_label("Look up").fill("ä日本")
    page.get_by_role("slider", name="Bits, m").fill("77")
    wait_for_hash(page, "m=77")
    other = context.new_page()
    other.goto(page.url)
    other.wait_for_selector('main[data-ready="true"] .answer')
    assert other.get_by_label("Words in the filter").input_value() == "ä日本 <b>x</b> a&b=c#d"
    assert other.locator("main").inner_text() == page.locator("main").inner_text()
    # Another scene and back, by the browser's own buttons.
    page.get_by_role("link", name="Half full is best").first.click()
    page.wait_for_selector('main[data-scene="fill"][data-ready="true"]')
    page.go_back()
    page.wait_for_selector('main[data-scene="words"][data-ready="true"] .answer')
    assert page.get_by_role("slider", name="Bits, m").input_value() == "77"


HOSTILE = [
    "words?words=<img src=x onerror=alert(1)>&ask=<script>alert(1)</script>",
    "words?words=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&m=1e999&k=-3&seed=0x10&view=constructor",
    "words?words=" + "%F0%9F%92%A5" * 500,
    "words?words=%E2%80%AE%E2%80%AEabc%20%D7%A9%D7%9C%D7%95%D7%9D&ask=%E2%80%AEabc",
    "words?words=%00%01%ED%A0%80%FF&ask=%ED%A0%80",
    "__proto__?m=1",
    "constructor",
    "x" * 100_000,
    "words?" + "words=a&" * 5000,
    "curves?n=NaN&m=99",
    "cascade?revoked=2000&times=20&ask=99999999",
    "duplicates?own=-1&shared=1e9&fpr=7",
    "cuckoo?n=60&slots=2&ask=%3C%2Fscript%3E",
    "%",
    "?=&&=?",
]


@pytest.mark.parametrize("fragment", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_addresses_show_a_scene_and_run_nothing(page: Page, address: str, fragment: str) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(f"{address}#{fragment}")
    page.wait_for_selector('main[data-ready="true"] .attempt')
    page.wait_for_timeout(300)
    assert not dialogs
    assert page.evaluate("broken") == []
    assert page.locator("main img, main script, main iframe").count() == 0
    assert page.locator(".trouble[role=alert]").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_files_of_every_kind_can_be_opened(page: Page, address: str) -> None:
    show(page, address, "file")
    files = sorted(path for path in GOLDEN.glob("*.bloom") if b"BLOOM" in path.read_bytes()[:8])
    assert len(files) > 20
    for path in files:
        header = path.read_bytes()[:64]
        if struct.unpack_from("<Q", header, 24)[0]:
            continue
        filter_: Any = fullbloom.loads(path.read_bytes())
        drop(page, path)
        page.wait_for_selector(f'.answer.yes:has-text("{path.name}")')
        assert type(filter_).__name__ in page.locator(".answer.yes").inner_text(), path.name


def test_lookups_in_a_file_equal_pythons(page: Page, address: str, tmp_path: Path) -> None:
    filter_ = fullbloom.CountingBloomFilter(1000, 0.01, seed=9)
    filter_.update(["ada", "grace", "ada", 7])
    filter_.save(tmp_path / "words.bloom")
    show(page, address, "file")
    drop(page, tmp_path / "words.bloom")
    page.get_by_label("Keys to look up").fill("ada\ngrace\nnobody\n<b>x</b>")
    page.get_by_role("button", name="Look up", exact=True).click()
    page.wait_for_selector("tbody tr:nth-child(4)")
    rows = [row.split("\t") for row in page.locator("tbody tr").all_inner_texts()]
    for word, answer, count, positions in rows:
        assert (answer == "probably") == (word in filter_)
        assert int(count) == filter_.count(word)
        assert sorted(int(cell) for cell in positions.split(", ")) == sorted(filter_.positions(word))
    page.get_by_role("radio", name="whole numbers").check()
    page.get_by_label("Keys to look up").fill("7\n8")
    page.get_by_role("button", name="Look up", exact=True).click()
    page.wait_for_selector("tbody tr:nth-child(2):has-text('8')")
    answers = page.locator("tbody td:nth-child(2)").all_inner_texts()
    assert [answer == "probably" for answer in answers] == [7 in filter_, 8 in filter_]


def test_bad_files_get_an_error_message_and_the_page_keeps_working(
    page: Page, address: str, tmp_path: Path
) -> None:
    whole_file = fullbloom.BloomFilter(1000).to_bytes()
    huge = bytearray(whole_file[:64])
    struct.pack_into("<Q", huge, 32, 500 * 1024 * 1024)
    flipped = bytearray(whole_file)
    flipped[-5] ^= 4
    cases = {
        "no filter.txt": (b"hello, world", "not a Fullbloom file"),
        "empty": (b"", "not a Fullbloom file"),
        "short.bloom": (whole_file[:-1], "damaged"),
        "long.bloom": (whole_file + b"\0", "damaged"),
        "flipped.bloom": (bytes(flipped), "checksum"),
        "header.bloom": (whole_file[:64], "damaged"),
        "<img src=x onerror=alert(1)>.bloom": (b"<svg onload=alert(1)>" * 9, "not a Fullbloom file"),
        "\u202emoolb.rtl": (os.urandom(4096), "not a Fullbloom file"),
    }
    show(page, address, "file")
    for name, (content, reason) in cases.items():
        (tmp_path / name).write_bytes(content)
        drop(page, tmp_path / name)
        page.wait_for_selector(f'.trouble:has-text("{reason}")')
        assert page.locator("main img").count() == 0
    for name, start, reason in (("zeros", b"", "not a Fullbloom file"), ("huge", bytes(huge), "up to")):
        with (tmp_path / name).open("wb") as file:
            file.write(start)
            file.truncate(500 * 1024 * 1024)
        drop(page, tmp_path / name)
        page.wait_for_selector(f'.trouble:has-text("{reason}")')
        # The tab stays responsive while it reads the file.
        assert page.evaluate("1 + 1") == 2
    (tmp_path / "good.bloom").write_bytes(whole_file)
    drop(page, tmp_path / "good.bloom")
    page.wait_for_selector('.answer.yes:has-text("BloomFilter")')
    assert page.evaluate("broken") == []


def test_a_keyed_file_requires_its_secret(page: Page, address: str, tmp_path: Path) -> None:
    filter_ = fullbloom.BloomFilter(1000, secret=SECRET)
    filter_.add("ada")
    filter_.save(tmp_path / "keyed.bloom")
    show(page, address, "file")
    drop(page, tmp_path / "keyed.bloom")
    secret = page.get_by_label("Secret")
    for wrong in ("", "beef", "00" * 16):
        secret.fill(wrong)
        page.get_by_role("button", name="Open").click()
        page.wait_for_selector(".trouble:has-text('secret')")
        secret.wait_for()
    secret.fill(SECRET.hex())
    page.get_by_role("button", name="Open").click()
    page.get_by_label("Keys to look up").fill("ada\nnobody")
    page.get_by_role("button", name="Look up", exact=True).click()
    page.wait_for_selector("tbody tr")
    assert page.locator("tbody td:nth-child(2)").all_inner_texts() == ["probably", "no"]
    assert SECRET.hex() not in page.content()
    assert SECRET.hex() not in page.evaluate("JSON.stringify([location.href, {...localStorage}])")


def test_controls_and_links_work_by_keyboard(page: Page, address: str) -> None:
    show(page, address, "rate", bits=10, k=7)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    point = page.get_by_role("slider", name="Hash functions").last
    point.focus()
    for key, want in (
        ("ArrowRight", "8"),
        ("ArrowLeft", "7"),
        ("End", "16"),
        ("Home", "1"),
        ("ArrowUp", "2"),
    ):
        page.keyboard.press(key)
        page.wait_for_function(
            "want => document.activeElement.getAttribute('aria-valuenow') === want", arg=want
        )
    wait_for_hash(page, "k=2")
    page.get_by_role("link", name="Keys against size").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector('main[data-scene="curves"][data-ready="true"]')
    assert page.evaluate("document.activeElement.textContent") == "Keys against size"


def test_dragging_a_point_changes_the_rate(page: Page, address: str) -> None:
    show(page, address, "rate", bits=10, k=7)
    knob = find_knob(page)
    box = knob.bounding_box()
    assert box
    page.mouse.move(box["x"] + 15, box["y"] + 15)
    page.mouse.down()
    page.mouse.move(box["x"] + 95, box["y"] + 15, steps=5)
    page.mouse.up()
    bits = wait_for_value(page, knob, "bits")
    assert bits > 11
    assert parse_rate(read_fact(page, "theory")) == pytest.approx(
        theory.classic_fpr(10_000, round(bits * 10_000), 7), rel=0.01
    )


def test_every_scene_obeys_the_csp_and_requests_only_its_own_folder(page: Page, address: str) -> None:
    PageHandler.requested.clear()
    outside: list[str] = []
    errors: list[str] = []
    page.on(
        "request", lambda request: None if request.url.startswith(address) else outside.append(request.url)
    )
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    for scene in SCENES:
        show(page, address, scene)
    wait_for_all(page)
    names = page.locator(".rail a").evaluate_all("all => all.map(one => one.getAttribute('href').slice(1))")
    assert names == SCENES
    assert page.evaluate("broken") == []
    assert not errors
    assert not outside
    assert all(path.startswith(FOLDER) for path in PageHandler.requested)


def test_scenes_work_offline(context: BrowserContext, page: Page, address: str, tmp_path: Path) -> None:
    show(page, address, "words")
    wait_for_all(page)
    context.set_offline(True)
    for scene in SCENES:
        page.evaluate("scene => { location.hash = scene; }", scene)
        page.wait_for_selector(f'main[data-scene="{scene}"][data-ready="true"] .attempt')
    page.evaluate("() => { location.hash = 'rate'; }")
    page.wait_for_function("() => document.querySelector('[data-fact=measured]')?.innerText.endsWith('%')")
    page.evaluate("() => { location.hash = 'file'; }")
    (tmp_path / "words.bloom").write_bytes(fullbloom.CuckooFilter(100).to_bytes())
    drop(page, tmp_path / "words.bloom")
    page.wait_for_selector('.answer.yes:has-text("CuckooFilter")')
    context.set_offline(False)
    assert page.evaluate("broken") == []


def test_data_saver_loads_a_scene_only_when_it_is_opened(
    context: BrowserContext, page: Page, address: str
) -> None:
    PageHandler.requested.clear()
    saver = context.new_cdp_session(page)
    saver.send("Emulation.setDataSaverOverride", {"dataSaverEnabled": True})
    show(page, address, "words")
    page.wait_for_timeout(4000)
    modules = [path for path in PageHandler.requested if path.endswith(".wasm")]
    print(f"{len(PageHandler.requested)} requests, of modules: {modules}")
    assert len(modules) == 1
    assert not [path for path in PageHandler.requested if "worker" in path]
    show(page, address, "cuckoo")
    assert len({path for path in PageHandler.requested if path.endswith(".wasm")}) == 2
    # Without data saver, the page loads the rest.
    saver.send("Emulation.setDataSaverOverride", {"dataSaverEnabled": False})
    page.reload()
    wait_for_all(page)


@pytest.mark.parametrize("width", [360, 1280])
def test_the_header_is_one_row_also_with_a_note(browser: Browser, address: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900})
    context.set_default_timeout(60_000)
    page = context.new_page()
    show(page, address, "words")

    def measure() -> float:
        brand, tools = (page.locator(part).bounding_box() for part in (".brand", ".tools"))
        assert brand is not None
        assert tools is not None
        assert abs(brand["y"] + brand["height"] / 2 - tools["y"] - tools["height"] / 2) <= 1
        assert brand["x"] + brand["width"] < tools["x"]
        height: float = page.evaluate("document.querySelector('.top').offsetHeight")
        return height

    before = measure()
    page.get_by_role("button", name="Copy link").click()
    page.locator(".note:not(:empty)").wait_for()
    note = page.locator(".note").bounding_box()
    assert note is not None
    assert measure() == before
    assert 0 <= note["x"] <= note["x"] + note["width"] <= width
    context.close()


@pytest.mark.parametrize("width", [360, 768, 1280, 3840])
def test_no_scene_scrolls_sideways(browser: Browser, address: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900})
    context.set_default_timeout(60_000)
    page = context.new_page()
    for scene in SCENES:
        show(page, address, scene)
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, scene
    context.close()


@pytest.mark.timed
def test_the_first_picture_appears_within_a_second(browser: Browser, address: str) -> None:
    times = []
    for _ in range(3):  # a busy machine: the best counts
        context = browser.new_context()
        context.add_init_script(WATCH)
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.goto(address)
        page.wait_for_function("() => window.picture !== undefined")
        times.append(page.evaluate("picture"))
        context.close()
        if times[-1] < 1000:
            break
    print(f"first picture after {[round(time) for time in times]} ms")
    assert min(times) < 1000


@pytest.mark.timed
def test_typing_causes_no_long_task(page: Page, address: str) -> None:
    longest = {}
    show(page, address, "words")
    wait_for_all(page)
    for scene, label in (
        ("words", "Words in the filter"),
        ("counting", "Added"),
        ("cuckoo", "Look up"),
        ("quotient", "Look up"),
        ("golomb", "Look up"),
    ):
        page.evaluate("scene => { location.hash = scene; }", scene)
        page.wait_for_selector(f'main[data-scene="{scene}"][data-ready="true"] .attempt')
        page.wait_for_timeout(300)
        longest[scene] = 1000
        # A machine that is busy elsewhere stops the page now and then, 270 ms once. What the page does itself
        # comes again.
        for _ in range(3):
            begun = page.evaluate("performance.now()")
            page.get_by_label(label).first.press_sequentially(" quick brown foxes jump over dogs", delay=20)
            page.wait_for_timeout(400)
            seen = page.evaluate(
                "begun => Math.max(0, ...tasks.filter(([start]) => start >= begun).map(([, took]) => took))",
                begun,
            )
            longest[scene] = min(longest[scene], seen)
            if seen <= 100:
                break
    print(f"longest tasks while typing, ms: {longest}")
    assert max(longest.values()) <= 100
