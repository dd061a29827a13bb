"""A crawl, run as a process of its own: ``python spider.py URL SETTINGS``; prints its statistics."""

from __future__ import annotations

import json
import sys

import scrapy
from scrapy.crawler import CrawlerProcess


class Links(scrapy.Spider):
    """Follows every link."""

    name = "links"

    async def start(self):
        yield scrapy.Request(sys.argv[1])

    def parse(self, response):
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


def main():
    process = CrawlerProcess(
        {
            "LOG_LEVEL": "INFO",
            "TELNETCONSOLE_ENABLED": False,
            "ROBOTSTXT_OBEY": False,
            "DOWNLOAD_DELAY": 0,
            **json.loads(sys.argv[2]),
        }
    )
    crawler = process.create_crawler(Links)
    process.crawl(crawler)
    process.start()
    print(json.dumps(crawler.stats.get_stats(), default=str))


if __name__ == "__main__":
    main()
