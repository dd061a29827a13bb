"""The calls of the native half, for one filter in Redis as a request found it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import fullbloom
from fullbloom.errors import FilterLost, FullbloomError
from fullbloom.service.failures import Refused
from fullbloom.service.redis import keys
from fullbloom.service.redis.described import described
from fullbloom.service.redis.refusals import cannot, missing, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom.service.redis.handles import Handles, One

T = TypeVar("T")
#: Answers, keys, how many of them had a yes, what the body held, over capacity, the warning of a lookup.
Answers = tuple[bytes, int, int, str, bool, str | None]


class Asked:
    """A filter by its row. Calls wait for the server; they take its name as those of the native half do.

    They raise ``Refused``: "missing" where the registry no longer has the filter, "unavailable" while the
    server cannot be asked, "lost" where it has lost what it acknowledged. Conditions on versions
    were refused before.
    """

    def __init__(self, handles: Handles, row: dict[str, Any]) -> None:
        """Take what has it open, and its row."""
        self._handles, self.row = handles, row

    def takes_hashes(self, _name: str) -> bool:
        """Tell that the key hash is the package's own."""
        return True

    def hashing(self, _name: str) -> tuple[int, bytes | None, str]:
        """Return seed, secret and base of the key hash."""
        row = self.row
        return int(row["seed"]), row["secret"], row["options"].get("hash", "xxh3")

    def check(
        self,
        _name: str,
        form: str,
        body: bytes,
        *,
        pack: bool = True,
        wait: bool = True,
        of: int | None = None,
    ) -> Any:
        """Look for keys: answers, keys, how many were found, what the body held; None if it may not wait."""
        del of
        if not wait:
            return None

        def look(one: One) -> tuple[bytes, str]:
            hashes, what = self._hashes(form, body)
            found = bytes(one.handle.contains_hashed(hashes))
            one.traffic.looked(len(found), found.count(1))
            return found, what

        return _told(*self._do(look, form=form), pack=pack)

    def add(self, _name: str, form: str, body: bytes, *, pack: bool = True, of: int | None = None) -> Answers:
        """Add keys: for each whether it was certainly new."""
        del of

        def put(one: One) -> tuple[bytes, str]:
            hashes, what = self._hashes(form, body)
            new = bytes(one.handle.add_hashed(hashes))
            one.traffic.added(len(new), new.count(1))
            return new, what

        return _told(*self._do(put, form=form), pack=pack)

    def remove(self, *_: Any, **__: Any) -> Any:
        """Refuse."""
        raise cannot("takes no keys out; delete it, or take one in memory of a kind that does")

    def count(self, *_: Any, **__: Any) -> Any:
        """Refuse."""
        raise cannot("counts no keys; its info estimates how many there are")

    def values(self, *_: Any, **__: Any) -> Any:
        """Refuse."""
        raise cannot("has no labels or values")

    def advance(self, *_: Any, **__: Any) -> Any:
        """Refuse."""
        raise cannot("has no window")

    def positions(self, *_: Any, **__: Any) -> Any:
        """Refuse."""
        raise cannot("does not tell positions; open its dump, whose positions() does")

    def version(self, _name: str) -> None:
        """Return nothing: any node may change it, and none counts."""

    def clear(self, _name: str, **_: Any) -> None:
        """Forget every key."""
        self._do(lambda one: one.handle.clear())

    def merge(self, source: Any) -> None:
        """Take in the keys of another of these filters, or of one in memory."""
        other = source.handle() if isinstance(source, Asked) else source

        def unite(one: One) -> None:
            handle = one.handle
            handle |= other

        self._do(unite)

    def handle(self) -> Any:
        """Return the engine's filter."""
        return self._do(lambda one: one.handle)

    def dump(self, _name: str) -> bytes:
        """Return the filter as the bytes of a file."""
        return bytes(self._do(lambda one: one.handle.dump().to_bytes()))

    def load(self, data: bytes) -> None:
        """Put the cells in a file's bytes in the place of the filter's."""
        self._do(lambda one: one.handle.load(fullbloom.loads(data, secret=self.row["secret"])))

    def expire(self, _name: str, at: int | None, **_: Any) -> None:
        """Say when it is to be dropped, in milliseconds since 1970; None: never."""
        if not self._handles.rows.expire(self.row["id"], at):
            raise missing()

    def info(self, _name: str, *, counted: bool = True) -> dict[str, Any]:
        """Return what it is and holds; its cells are counted by the server, or not at all."""
        handles = self._handles
        if not counted:
            return described(self.row, handles.waiting(self.row), None)
        self.row = handles.found(self.row["name"])
        there = self._do(lambda one: one.handle.info())
        return described(self.row, handles.waiting(self.row), there)

    def _hashes(self, form: str, body: bytes) -> tuple[memoryview, str]:
        return keys.hashes(form, body, self._handles.limits, *self.hashing(""))

    def _do(self, work: Callable[[One], T], *, form: str = "") -> T:
        """Do something with the filter; one that was made anew under its name is opened anew.

        Not for hashes: those of a request are of the filter that it found.
        """
        handles, name = self._handles, self.row["name"]
        try:
            with handles.at_work():
                try:
                    return work(handles.handle(self.row))
                except FilterLost:
                    row = handles.found(name)
                    if row["place"] == self.row["place"]:
                        raise
                    self.row = row
                if form.startswith("hashes"):
                    raise Refused("unavailable", f"{name} was made anew meanwhile; try again")
                return work(handles.handle(row))
        except FullbloomError as error:
            raise refused(error) from None


def _told(answers: bytes, what: str, *, pack: bool) -> Answers:
    yes = answers.count(1)
    # Only its bits know whether it is beyond its capacity: its info, which counts them, says so. No record is
    # kept of the types of its keys.
    return (keys.packed(answers) if pack else answers), len(answers), yes, what, False, None
