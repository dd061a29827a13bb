"""A pre-check in front of PostgreSQL, in a FastAPI application: absent users cost no query.

``FULLBLOOM_URL`` is the address of a service, ``DATABASE_URL`` that of a database with a table
``users (name text primary key, mail text)``: ``uvicorn precheck:app``, ``curl localhost:8000/users/ada``.
A name that is not in the filter is certainly not in the table: whoever writes a row adds its name first.

While the service is away, reads ask the database, as they would without a filter, and writes are refused: a
row whose name the filter lacks would not be found later.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI, HTTPException
from sqlalchemy import create_engine, text

import fullbloom
from fullbloom.client import ServiceError

engine = create_engine(os.environ["DATABASE_URL"])
# A pre-check that takes longer than the query saves nothing.
client = fullbloom.Client(os.environ["FULLBLOOM_URL"], timeout=0.5, retries=0)
users = client.filter("users")
AWAY = (ServiceError, httpx.HTTPError, OSError)
state = {"filled": False}
saved = {"queries": 0}


def fill() -> None:
    """Create the filter, and add the names of the existing rows."""
    try:
        client.create("users", capacity=1_000_000, fpr=0.001)
    except ServiceError as error:
        if error.code != "exists":
            raise
    with engine.connect() as connection:
        users.update(name for (name,) in connection.execute(text("SELECT name FROM users")))
    state["filled"] = True


async def keep_filling() -> None:
    """Fill the filter once the service is there."""
    while not state["filled"]:
        try:
            await asyncio.to_thread(fill)
        except AWAY:
            await asyncio.sleep(1)


@asynccontextmanager
async def begin(_: FastAPI) -> AsyncIterator[None]:
    """Start, with the service or without it."""
    filling = asyncio.create_task(keep_filling())
    await asyncio.wait([filling], timeout=5)
    yield
    filling.cancel()
    client.close()


app = FastAPI(lifespan=begin)


def is_absent(name: str) -> bool:
    """Return whether the filter rules a name out; it cannot while it is away or not filled."""
    try:
        return state["filled"] and name not in users
    except AWAY:
        return False


@app.put("/users/{name}")
def put(name: str, mail: str) -> dict[str, str]:
    """Write a user."""
    try:
        users.add(name)
    except AWAY:
        raise HTTPException(503, "the filter cannot add the name; try again") from None
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM users WHERE name = :name"), {"name": name})
        connection.execute(text("INSERT INTO users VALUES (:name, :mail)"), {"name": name, "mail": mail})
    return {"name": name, "mail": mail}


@app.get("/users/{name}")
def get(name: str) -> dict[str, str]:
    """Read a user; the database is queried unless the filter rules the name out."""
    row = None
    if is_absent(name):
        saved["queries"] += 1
    else:
        with engine.connect() as connection:
            row = connection.execute(
                text("SELECT mail FROM users WHERE name = :name"), {"name": name}
            ).first()
    if row is None:
        raise HTTPException(404)
    return {"name": name, "mail": row[0]}


@app.get("/saved")
def report() -> dict[str, int]:
    """Return how many queries the filter saved."""
    return saved
