"""A crawl with a duplicate filter: stopped halfway, continued, and no page is fetched twice.

Run it as ``python crawl.py``; it crawls a site of its own on this machine. Needs Scrapy.
"""

import collections
import http.server
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response

PAGES = 200
SETTINGS = {
    "DUPEFILTER_CLASS": "fullbloom.recipes.scrapy.DupeFilter",
    "FULLBLOOM_CAPACITY": 1_000_000,
    "LOG_LEVEL": "WARNING",
    "TELNETCONSOLE_ENABLED": False,
}
FETCHED: collections.Counter[str] = collections.Counter()


class Site(http.server.BaseHTTPRequestHandler):
    """Pages that link to each other."""

    def do_GET(self) -> None:
        """Answer with five links."""
        FETCHED[self.path] += 1
        number = int(self.path[1:])
        links = "".join(f'<a href="/{(number * n + n) % PAGES}">{n}</a>' for n in (1, 2, 3, 5, 7))
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(links.encode())

    def log_message(self, *_: object) -> None:
        """Be quiet."""


class Links(scrapy.Spider):
    """Follows every link of the site."""

    name = "links"
    first: str

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """Begin at the first page; those of ``start_urls`` would pass the filter in each run."""
        yield scrapy.Request(self.first)

    def parse(self, response: Response, **_: Any) -> Iterator[scrapy.Request]:
        """Yield a request a link; Scrapy drops those it has seen."""
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


def crawl(url: str, folder: str, pages: int) -> None:
    """Crawl until ``pages`` were fetched; 0: until nothing is left."""
    process = CrawlerProcess({**SETTINGS, "JOBDIR": folder, "CLOSESPIDER_PAGECOUNT": pages})
    process.crawl(Links, first=url)
    process.start()


def main() -> None:
    """Crawl in two runs, each a process of its own."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/0"
    with tempfile.TemporaryDirectory() as folder:
        for pages in (80, 0):
            before = FETCHED.total()
            subprocess.run([sys.executable, __file__, url, folder, str(pages)], check=True)
            assert FETCHED.total() > before
    server.shutdown()
    twice = sum(count > 1 for count in FETCHED.values())
    print(f"{len(FETCHED)} pages in two runs, {twice} of them twice")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        crawl(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main()
