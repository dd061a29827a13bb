"""Tasks for workers with several processes; the broker is the folder in ``JOBS``."""

from __future__ import annotations

import os
from pathlib import Path

import redis
from celery import Celery

from fullbloom import BloomFilter
from fullbloom.engines.redis import RedisBloomFilter
from fullbloom.recipes.celery import once

FOLDER = Path(os.environ["JOBS"])
app = Celery("jobs", broker="filesystem://", backend=f"file://{FOLDER}/results")
app.conf.broker_transport_options = {
    "polling_interval": 0.05,
    "data_folder_in": str(FOLDER / "queue"),
    "data_folder_out": str(FOLDER / "queue"),
    "control_folder": str(FOLDER / "control"),
}


@app.task
@once(BloomFilter(1000, 1e-9))
def in_memory(number):
    return number


def connect():
    """Return the filter that the processes share."""
    client = redis.Redis(port=int(os.environ["JOBS_REDIS"]))
    return RedisBloomFilter(client, "jobs", 10_000, 1e-9)


@app.task
@once(connect, key="number")
def in_redis(number, attempt):
    with (FOLDER / "runs").open("a") as runs:
        runs.write(f"{number} {attempt} {os.getpid()}\n")
    return os.getpid()
