"""Tasks for workers with several processes; the broker is the Redis server at the port ``JOBS_REDIS``.

Kombu's broker of files does not suffice: a worker may take a message between its creation and its writing; it
reads nothing then, and ends.
"""

from __future__ import annotations

import os
from pathlib import Path

import redis
from celery import Celery

from fullbloom import BloomFilter
from fullbloom.engines.redis import RedisBloomFilter
from fullbloom.recipes.celery import once

FOLDER = Path(os.environ["JOBS"])
PORT = int(os.environ["JOBS_REDIS"])
app = Celery("jobs", broker=f"redis://127.0.0.1:{PORT}/1", backend=f"file://{FOLDER}/results")


@app.task
@once(BloomFilter(1000, 1e-9))
def in_memory(number):
    return number


def connect():
    """Return the filter that the processes share."""
    client = redis.Redis(port=PORT)
    return RedisBloomFilter(client, "jobs", 10_000, 1e-9)


@app.task
@once(connect, key="number")
def in_redis(number, attempt):
    with (FOLDER / "runs").open("a") as runs:
        runs.write(f"{number} {attempt} {os.getpid()}\n")
    return os.getpid()
