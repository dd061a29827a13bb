"""A crawler's frontier: many workers ask for each link whether anybody has taken it.

Run it with the address of a service: ``python frontier.py http://127.0.0.1:8080``.
"""

import asyncio
import sys

import fullbloom

WORKERS = 8


def links(page: int) -> list[str]:
    """The links of a page of a site of 500 pages."""
    return [f"https://example.org/{(page * step + 1) % 500}" for step in (2, 3, 5, 7)]


async def main(url: str) -> None:
    """Crawl it: no page twice."""
    async with fullbloom.AsyncClient(url) as client:
        taken = await client.create(f"crawl:{id(client):x}", grow=True, fpr=1e-6)
        frontier: asyncio.Queue[str] = asyncio.Queue()
        visited: list[str] = []
        await taken.add("https://example.org/0")
        frontier.put_nowait("https://example.org/0")

        async def work() -> None:
            while True:
                page = await frontier.get()
                visited.append(page)
                found = links(int(page.rpartition("/")[2]))
                for link, new in zip(found, await taken.add_many(found), strict=True):
                    if new:
                        frontier.put_nowait(link)
                frontier.task_done()

        workers = [asyncio.create_task(work()) for _ in range(WORKERS)]
        await frontier.join()
        for worker in workers:
            worker.cancel()
        await client.delete(taken.name)
    print(f"{len(visited)} pages visited, {len(visited) - len(set(visited))} of them twice")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
