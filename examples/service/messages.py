"""E-mail arrives twice: a message-id that was seen within a week is dropped.

Run it with the address of a service: ``python messages.py http://127.0.0.1:8080``.
"""

import random
import sys

import fullbloom
from fullbloom.client import ServiceError

WEEK = 7 * 86_400


def main(url: str) -> None:
    """Deliver 1,000 messages of which every third arrives again."""
    draw = random.Random(1)
    ids = [f"<{draw.getrandbits(64):x}@example.org>" for _ in range(1000)]
    arriving = ids + ids[::3]
    draw.shuffle(arriving)
    with fullbloom.Client(url) as client:
        try:
            seen = client.create("mail:ids", capacity=1_000_000, fpr=1e-6, window=WEEK)
        except ServiceError as error:
            if error.code != "exists":
                raise
            seen = client.filter("mail:ids")
        delivered = sum(seen.add_many(arriving))
    print(f"{len(arriving)} arrived, {delivered} delivered, {len(arriving) - delivered} dropped")


if __name__ == "__main__":
    main(sys.argv[1])
