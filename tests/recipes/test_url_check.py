"""Guarantee: a listed URL is found however it is spelled, and a server learns only four bytes."""

from __future__ import annotations

import random
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from fullbloom import BloomFilter, KeyTypeError, ParameterError
from fullbloom.recipes.url_check import Answer, UrlCheck, build_list, hash_expression, list_expressions

SEED = 1970
#: From the documentation of Safe Browsing: a URL, and its canonical host and path.
CANONICAL = [
    ("http://host/%25%32%35", "host/%25"),
    ("http://host/%25%32%35%25%32%35", "host/%25%25"),
    ("http://host/%2525252525252525", "host/%25"),
    ("http://host/asdf%25%32%35asd", "host/asdf%25asd"),
    ("http://host/%%%25%32%35asd%%", "host/%25%25%25asd%25%25"),
    ("http://www.google.com/", "www.google.com/"),
    ("http://host%23.com/%257Ea%2521b%2540c%2523d%2524e%25f%255E00%252611%252A22%252833%252944_55%252B",
     "host%23.com/~a!b@c%23d$e%25f^00&11*22(33)44_55+"),
    ("http://www.google.com/blah/..", "www.google.com/"),
    ("www.google.com/", "www.google.com/"),
    ("www.google.com", "www.google.com/"),
    ("http://www.evil.com/blah#frag", "www.evil.com/blah"),
    ("http://www.GOOgle.com/", "www.google.com/"),
    ("http://www.google.com.../", "www.google.com/"),
    ("http://www.google.com/foo\tbar\rbaz\n2", "www.google.com/foobarbaz2"),
    ("http://www.google.com/q?", "www.google.com/q"),
    ("http://www.google.com/q?r?", "www.google.com/q?r?"),
    ("http://evil.com/foo#bar#baz", "evil.com/foo"),
    ("http://evil.com/foo;", "evil.com/foo;"),
    ("http://evil.com/foo?bar;", "evil.com/foo?bar;"),
    ("http://notrailingslash.com", "notrailingslash.com/"),
    ("http://www.gotaport.com:1234/", "www.gotaport.com/"),
    ("  http://www.google.com/  ", "www.google.com/"),
    ("https://www.securesite.com/", "www.securesite.com/"),
    ("http://host.com/ab%23cd", "host.com/ab%23cd"),
    ("http://host.com//twoslashes?more//slashes", "host.com/twoslashes?more//slashes"),
]  # fmt: skip


@pytest.mark.parametrize(("url", "canonical"), CANONICAL)
def test_spellings_are_resolved_as_published(url, canonical):
    assert list_expressions(url)[0] == canonical


def test_a_url_without_a_scheme_may_hold_another_url_in_its_query():
    assert list_expressions("evil.example/login?next=http://good.example/")[-1] == "evil.example/"
    assert list_expressions("//evil.example/login")[0] == "evil.example/login"


@pytest.mark.parametrize(
    "url",
    [
        r"http://good.example\@evil.example/",
        "http:good.example/@evil.example/",
        r"\\good.example\@evil.example/",
    ],
)
def test_the_host_is_the_one_that_a_browser_visits(url):
    assert list_expressions(url)[0] == "good.example/@evil.example/"
    assert list_expressions(r"http://good.example/?next=\\evil")[-1] == "good.example/"


def test_a_list_takes_expressions_and_no_single_text():
    with pytest.raises(KeyTypeError, match="one str"):
        build_list("evil.example/login")


def test_hosts_and_folders_are_those_published():
    assert set(list_expressions("http://a.b.c/1/2.html?param=1")) == {
        host + path for host in ("a.b.c", "b.c") for path in ("/1/2.html?param=1", "/1/2.html", "/", "/1/")
    }
    assert set(list_expressions("http://a.b.c.d.e.f.g/1.html")) == {
        host + path
        for host in ("a.b.c.d.e.f.g", "c.d.e.f.g", "d.e.f.g", "e.f.g", "f.g")
        for path in ("/1.html", "/")
    }
    assert set(list_expressions("http://1.2.3.4/1/")) == {"1.2.3.4/1/", "1.2.3.4/"}
    assert len(list_expressions("http://a.b.c.d.e.f.g/1/2/3/4/5/6?q")) == 30


def test_listed_pages_are_found_and_others_are_not():
    draw = random.Random(SEED)
    listed = [f"site{draw.getrandbits(30)}.example/{number}" for number in range(5000)]
    hashes = {hash_expression(expression) for expression in listed}
    bits = draw.randint(5, 10)
    asked = []

    def confirm(prefix):
        asked.append(prefix)
        return {full for full in hashes if full.startswith(prefix)}

    check = UrlCheck(build_list(listed, bits=bits), confirm)
    for expression in draw.sample(listed, 50):
        assert check.find(f"HTTPS://user@www.{expression}/deeper?q#f") is None
        assert check.find(f"HTTPS://user@www.{expression}#f") == expression
    assert {len(prefix) for prefix in asked} == {4}
    before, trials = check.questions, 3000
    for number in range(trials):
        assert check.find(f"http://good{number}.example/{draw.getrandbits(60)}") is None
    expected = trials * 2 / 2**bits  # each with two expressions
    assert check.questions - before <= expected + 5 * expected**0.5, SEED


class Server:
    """The server of a list, which counts the questions and can change."""

    def __init__(self, *listed):
        self.listed = set(listed)
        self.lifetimes = None

    def __call__(self, prefix):
        hashes = {full for full in map(hash_expression, self.listed) if full.startswith(prefix)}
        return hashes if self.lifetimes is None else Answer(hashes, *self.lifetimes)


def watch(*expressions):
    """Return a filter that finds these expressions."""
    listed = BloomFilter(10_000)
    listed.update(expressions)
    return listed


def test_a_page_that_is_listed_later_is_found_when_the_negative_answer_expires():
    now, server = [1000.0], Server()
    check = UrlCheck(watch("a.example/"), server, negative_lifetime=60.0, clock=lambda: now[0])
    assert check.find("a.example") is None
    server.listed.add("a.example/")
    now[0] += 59.9
    assert (check.find("a.example"), check.questions) == (None, 1)
    now[0] += 0.1
    assert (check.find("a.example"), check.questions) == ("a.example/", 2)


def test_a_page_that_is_taken_off_the_list_is_free_when_the_positive_answer_expires():
    now, server = [0.0], Server("a.example/")
    check = UrlCheck(
        watch("a.example/"), server, positive_lifetime=10.0, negative_lifetime=1e6, clock=lambda: now[0]
    )
    assert check.find("a.example") == "a.example/"
    server.listed.clear()
    now[0] = 9.9
    assert check.find("a.example") == "a.example/"
    now[0] = 10.0
    assert check.find("a.example") is None
    now[0] = 9e5
    assert (check.find("a.example"), check.questions) == (None, 2)


def test_a_server_may_shorten_the_lifetimes_but_not_lengthen_them():
    for stated, asked_again_at in [(5.0, 5.0), (1e9, 300.0), (-1.0, 0.0), (float("nan"), 0.0)]:
        now, server = [0.0], Server()
        server.lifetimes = (stated, stated)
        check = UrlCheck(watch("a.example/"), server, clock=lambda now=now: now[0])
        check.find("a.example")
        if asked_again_at:
            now[0] = asked_again_at * 0.999
            check.find("a.example")
            assert check.questions == 1, stated
        now[0] = asked_again_at
        check.find("a.example")
        assert check.questions == 2, stated


def test_answers_from_before_a_clock_went_back_do_not_last():
    now, server = [1e9], Server()
    check = UrlCheck(watch("a.example/"), server, clock=lambda: now[0])
    check.find("a.example")
    now[0] = 0.0
    check.find("a.example")
    assert check.questions == 2


@pytest.mark.parametrize("lifetime", [-1.0, float("inf"), float("nan")])
def test_an_answer_cannot_be_cached_forever(lifetime):
    with pytest.raises(ParameterError, match="finite"):
        UrlCheck(watch(), Server(), negative_lifetime=lifetime)
    with pytest.raises(ParameterError, match="finite"):
        UrlCheck(watch(), Server(), positive_lifetime=lifetime)


def test_the_cache_is_bounded_in_answers_and_in_hashes():
    class Everything:
        def __contains__(self, _):
            return True

    def confirm(prefix):
        # A server that wastes memory: as many hashes as it likes, and many that were not asked for.
        return {prefix + bytes(24) + n.to_bytes(4, "big") for n in range(size)} | {bytes(32), b"\xff" * 32}

    check = UrlCheck(Everything(), confirm)
    size = 32
    for number in range(5000):
        check.find(f"{number}.example")
    assert len(check._entries) == 4096
    assert max(len(entry.hashes) for entry in check._entries.values()) <= 32
    size = 40
    asked = check.questions
    for _ in range(2):
        check.find("long.example")
    assert check.questions == asked + 2
    assert len(check._entries) <= 4096


def test_threads_that_share_a_check_get_right_answers():
    listed = {f"bad{number}.example/" for number in range(0, 6000, 2)}
    hashes = {hash_expression(expression) for expression in listed}
    check = UrlCheck(
        watch(*(f"bad{number}.example/" for number in range(6000))),
        lambda prefix: by_prefix.get(prefix, ()),
    )
    by_prefix = {}
    for full in hashes:
        by_prefix.setdefault(full[:4], []).append(full)

    def work(seed):
        draw = random.Random(seed)
        for _ in range(3000):
            number = draw.randrange(6000)
            found = check.find(f"bad{number}.example")
            assert found == (f"bad{number}.example/" if number % 2 == 0 else None)
        return True

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert check.urls == 24_000


def test_answers_are_kept_and_errors_are_not():
    answers = iter([OSError("no network"), set()])

    def confirm(_):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    listed = BloomFilter(10)
    listed.add("a.example/")
    check = UrlCheck(listed, confirm)
    with pytest.raises(OSError, match="no network"):
        check.find("a.example")
    assert check.find("a.example") is None
    assert check.find("a.example") is None
    assert check.questions == 2


@pytest.mark.parametrize(
    "url",
    ["", "http://", "http://[", "/path", "http://..", "x" * 70_000, "http://a" + ":x" * 40_000],
)
def test_what_is_no_url_is_refused(url):
    with pytest.raises(ParameterError):
        list_expressions(url)


def test_random_texts_give_expressions_or_a_parameter_error():
    draw = random.Random(SEED)
    for _ in range(5000):
        text = "".join(draw.choices("ab./:%25?#@[]\\ \u00fc\ud800é2\x00", k=draw.randint(0, 30)))
        try:
            found = list_expressions(f"http://{text}")
        except ParameterError:
            continue
        assert 1 <= len(found) <= 30, text
        assert all(expression.isascii() for expression in found), text
