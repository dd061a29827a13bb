"""Messages arrive twice; their task runs once. Run it as ``python once.py``. Needs Celery.

Broker and worker are in this process here, and so is the filter: between processes take a
``fullbloom.engines.redis.RedisBloomFilter``, or a filter of the service.
"""

from celery import Celery
from celery.contrib.testing.worker import start_worker

from fullbloom import BloomFilter
from fullbloom.recipes.celery import once

app = Celery("shop", broker="memory://", backend="cache+memory://")
app.conf.broker_transport_options = {"polling_interval": 0.01}
seen = BloomFilter(1_000_000, fpr=1e-9)
sent: list[int] = []


@app.task  # type: ignore[untyped-decorator]
@once(seen, key="order", skipped="sent before")
def send_receipt(order: int, address: str) -> str:
    """Send a receipt, once an order."""
    sent.append(order)
    return f"sent to {address}"


def main() -> None:
    """Deliver each of 100 orders three times."""
    with start_worker(app, perform_ping_check=False, pool="threads", concurrency=4):
        results = [send_receipt.delay(order, "ada@example.org") for order in range(100) for _ in range(3)]
        answers = [result.get(timeout=60, interval=0.01) for result in results]
    print(f"{len(answers)} delivered, {len(sent)} sent, {answers.count('sent before')} skipped")


if __name__ == "__main__":
    main()
