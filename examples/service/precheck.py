"""A pre-check in front of PostgreSQL, in a FastAPI application: absent users cost no query.

``BLOOMERY_URL`` is the address of a service, ``DATABASE_URL`` that of a database with a table
``users (name text primary key, mail text)``: ``uvicorn precheck:app``, ``curl localhost:8000/users/ada``.
A name that is not in the filter is certainly not in the table; whoever writes a row adds its name first, so
that no reader misses it.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from sqlalchemy import create_engine, text

import bloomery
from bloomery.client import ServiceError

engine = create_engine(os.environ["DATABASE_URL"])
client = bloomery.Client(os.environ["BLOOMERY_URL"])
users = client.filter("users")
saved = {"queries": 0}


@asynccontextmanager
async def begin(_: FastAPI) -> AsyncIterator[None]:
    """Make the filter, and fill it with the rows that are there already."""
    try:
        client.create("users", capacity=1_000_000, fpr=0.001)
    except ServiceError as error:
        if error.code != "exists":
            raise
    with engine.connect() as connection:
        users.update(name for (name,) in connection.execute(text("SELECT name FROM users")))
    yield
    client.close()


app = FastAPI(lifespan=begin)


@app.put("/users/{name}")
def put(name: str, mail: str) -> dict[str, str]:
    """Write a user."""
    users.add(name)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM users WHERE name = :name"), {"name": name})
        connection.execute(text("INSERT INTO users VALUES (:name, :mail)"), {"name": name, "mail": mail})
    return {"name": name, "mail": mail}


@app.get("/users/{name}")
def get(name: str) -> dict[str, str]:
    """Read a user; the database is asked where the filter says maybe."""
    row = None
    if name in users:
        with engine.connect() as connection:
            row = connection.execute(
                text("SELECT mail FROM users WHERE name = :name"), {"name": name}
            ).first()
    else:
        saved["queries"] += 1
    if row is None:
        raise HTTPException(404)
    return {"name": name, "mail": row[0]}


@app.get("/saved")
def told() -> dict[str, int]:
    """How many queries the filter saved."""
    return saved
