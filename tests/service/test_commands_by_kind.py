"""Every RESP command on every kind of filter answers as a filter in a process does, or refuses.

The commands are those that the service lists, the kinds those of the registry, of RedisBloom, banks, and
notes: a new kind is part of the test by itself, and a new command fails it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
from hostile.container import File
from service.banks import Bank, BankKind, pairs
from support import Variant, variants_with

import fullbloom
from fullbloom import registry

redis = pytest.importorskip("redis", reason="redis-py is not installed")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEYS = [f"key {i}" for i in range(60)]
FRESH = ["fresh 1", "fresh 2"]
#: Kinds without a row, with the command that makes one and the one that adds to it.
OTHERS = {
    "redisbloom": ("BF.ADD", "capacity", 1000, "fpr", 0.01),
    "redisbloom-cuckoo": ("CF.ADD", "capacity", 1000),
}
ABSENT, NOTE, BANK = "nothing", "note", "bank"


def kinds() -> list[Any]:
    rows: dict[str, Variant] = {}
    for variant in [*variants_with(), *variants_with("numbers"), *variants_with("worlds")]:
        rows.setdefault(variant.name, variant)
    assert len(rows) == len(fullbloom.variants())
    return [*rows.values(), *OTHERS, BANK, NOTE, ABSENT]


def name_of(kind: Any) -> str:
    return kind.name if isinstance(kind, Variant) else kind


class Subject:
    """One filter of the service under a name, beside the same filter in this process where there is one."""

    def __init__(self, client: Any, kind: Any):
        self.client, self.kind, self.name = client, kind, f"one:{name_of(kind)}"
        self.variant = kind if isinstance(kind, Variant) else None

    def put(self) -> None:
        """Puts it there, as it was the first time."""
        self.client.execute_command("DEL", self.name)
        if self.variant is not None:
            numbers = self.variant.can("numbers")
            options = {"universe": 1000} if self.variant.can("zones") else {}
            own = range(60) if numbers else KEYS
            self.client.execute_command(
                "BLOOM.RESTORE", self.name, self.variant.build_from(own, 1000, seed=7, **options).to_bytes()
            )
        elif self.kind == BANK:
            own_pairs = BankKind().build_from(pairs(KEYS), 1000, seed=7)
            self.client.execute_command("BLOOM.RESTORE", self.name, own_pairs.to_bytes())
        elif self.kind in OTHERS:
            command, *options = OTHERS[self.kind]
            self.client.execute_command("BLOOM.CREATE", self.name, "KIND", self.kind, "keyed", "no", *options)
            for key in KEYS:
                self.client.execute_command(command, self.name, key)
        elif self.kind == NOTE:
            self.client.execute_command("SET", self.name, "text")

    def bytes(self) -> bytes | None:
        """The filter as a file; the text of a note; None where there is nothing."""
        try:
            return self.client.execute_command("BLOOM.DUMP", self.name)
        except redis.ResponseError:
            return self.client.execute_command("GET", self.name)

    def here(self) -> Any:
        """The same filter in this process; None where the kind is of no row."""
        return self.load(self.bytes())

    def load(self, data: bytes | None) -> Any:
        """The filter of a file; None where the kind is of no row."""
        if self.kind == BANK:
            return BankKind().load(data)
        return None if self.variant is None else fullbloom.loads(data)

    def tell(self, *keys: str) -> list[int]:
        """Whether the service finds keys, asked by the command of the kind's own family."""
        family = "CF" if self.kind == "redisbloom-cuckoo" else "BF"
        return self.client.execute_command(f"{family}.MEXISTS", self.name, *keys)


def pack(keys: list[str]) -> bytes:
    return b"".join(struct.pack("<I", len(key)) + key.encode() for key in keys)


def hash_keys(keys: list[str]) -> bytes:
    return b"".join(struct.pack("<Q", h) for h in fullbloom.hash_many(keys, seed=7))


def bits(answers: list[bool]) -> bytes:
    eights = [answers[at : at + 8] for at in range(0, len(answers), 8)]
    return bytes(sum(bool(answer) << at for at, answer in enumerate(eight)) for eight in eights)


# What a process answers, by operation; afterwards its filter is as the service's should be.


def add(f: Any, keys: list[str]) -> list[Any]:
    return [f.add(key) for key in keys]


def added_hashed(f: Any, keys: list[Any]) -> list[Any]:
    if isinstance(f, Bank):
        return [f.add_hashed(fullbloom.hash_many(pair, seed=7)) for pair in keys]
    return [f.add_hashed(key_hash) for key_hash in fullbloom.hash_many(keys, seed=7)]


def added_absent(f: Any, keys: list[str]) -> list[Any]:
    return [int(not look_up(f, [key])[0] and [f.add(key)] != []) for key in keys]


def remove(f: Any, keys: list[str]) -> list[Any]:
    return list(f.discard_many(keys))


def look_up(f: Any, keys: list[str]) -> list[Any]:
    # A closed world has no `in`.
    return list(f.includes_many(keys) if hasattr(f, "includes_many") else f.contains_many(keys))


def count(f: Any, keys: list[str]) -> list[Any]:
    return list(f.count_many(keys))


def get_values(f: Any, keys: list[str]) -> list[Any]:
    return [(f.label(key) or 0) if hasattr(f, "label") else f.get(key) for key in keys]


Form = tuple["Callable[[str, list[str]], list[Any]]", "Callable[[list[Any]], Any]"]
ONE: Form = (lambda name, keys: [name, keys[0]], lambda answers: int(answers[0]))
MANY: Form = (lambda name, keys: [name, *keys], lambda answers: [int(a) for a in answers])
ITEMS: Form = (lambda name, keys: [name, "ITEMS", *keys], MANY[1])
PACKED: Form = (lambda name, keys: [name, pack(keys)], bits)
VALUES: Form = (MANY[0], list)
HASHES: Form = (lambda name, keys: [name, hash_keys(keys)], PACKED[1])
STORED = (ONE[0], lambda _: 1)
ALL_STORED = (ITEMS[0], lambda answers: [1] * len(answers))

#: Commands about keys: their words, what the answers in a process look like on the wire, and the operation.
ON_KEYS: dict[str, tuple[Form, Any]] = {
    "bf.add": (ONE, add),
    "bf.madd": (MANY, add),
    "bf.insert": (ITEMS, add),
    "bf.exists": (ONE, look_up),
    "bf.mexists": (MANY, look_up),
    "cf.add": (STORED, add),
    "cf.addnx": (ONE, added_absent),
    "cf.insert": (ALL_STORED, add),
    "cf.insertnx": (ITEMS, added_absent),
    "cf.exists": (ONE, look_up),
    "cf.mexists": (MANY, look_up),
    "cf.del": (ONE, remove),
    "cf.count": (ONE, count),
    "bloom.add": (MANY, add),
    "bloom.check": (MANY, look_up),
    "bloom.remove": (MANY, remove),
    "bloom.count": (MANY, count),
    "bloom.values": (VALUES, get_values),
    "bloom.padd": (PACKED, add),
    "bloom.pcheck": (PACKED, look_up),
    "bloom.premove": (PACKED, remove),
    "bloom.hadd": (HASHES, added_hashed),
    "bloom.hcheck": (HASHES, look_up),
    "bloom.hremove": (HASHES, remove),
}
LOOK_UPS = {name for name, (_, operation) in ON_KEYS.items() if operation in {look_up, count, get_values}}
NAME: Callable[[str], list[Any]] = lambda name: [name]  # noqa: E731
#: Commands about a filter as a whole, or its name, that change nothing of it.
ASKING: dict[str, Callable[[str], list[Any]]] = {
    "bf.card": NAME,
    "bf.info": NAME,
    "bf.debug": NAME,
    "bf.scandump": lambda name: [name, 0],
    "cf.info": NAME,
    "cf.debug": NAME,
    "cf.scandump": lambda name: [name, 0],
    "bloom.info": NAME,
    "bloom.stats": NAME,
    "bloom.dump": NAME,
    "bloom.positions": lambda name: [name, KEYS[0]],
    "bloom.owners": NAME,
    "bloom.ownerinfo": lambda name: [name, "heavy"],
    "bloom.exportowner": lambda name: [name, "heavy"],
    "exists": NAME,
    "touch": NAME,
    "type": NAME,
    "ttl": NAME,
    "pttl": NAME,
    "expiretime": NAME,
    "pexpiretime": NAME,
    "persist": NAME,
    "get": NAME,
    "watch": NAME,
    # Refused where there is something already, or what comes is no filter.
    "bf.reserve": lambda name: [name, 0.01, 100],
    "cf.reserve": lambda name: [name, 100],
    "bloom.create": lambda name: [name, "KIND", "bloom", "capacity", 100],
    "bloom.restore": lambda name: [name, b"no filter", "REPLACE"],
    "bf.loadchunk": lambda name: [name, 1, b"no filter"],
    "cf.loadchunk": lambda name: [name, 1, b"no filter"],
    "renamenx": lambda name: [name, name],
    "expire": lambda name: [name, 1000],
    "pexpire": lambda name: [name, 1_000_000],
    "expireat": lambda name: [name, 99_999_999_999],
    "pexpireat": lambda name: [name, 99_999_999_999_000],
}
MAKING = {"bf.reserve", "cf.reserve", "bloom.create"}
#: The others, each with a test below.
WHOLE = {
    "del",
    "unlink",
    "rename",
    "set",
    "bloom.setpair",
    "bloom.clear",
    "bloom.advance",
    "bloom.merge",
    "bloom.clearowner",
    "bloom.removeowner",
    "cf.compact",
}
#: Commands that only a bank has.
OWNERS = {"bloom.owners", "bloom.ownerinfo", "bloom.exportowner"}


@pytest.fixture(scope="module")
def client(new_service) -> Iterator[Any]:
    host, _, port = new_service("--durability", "off").resp.rpartition(":")
    with redis.Redis(host, int(port), socket_timeout=60, protocol=2) as one:
        one.response_callbacks.clear()
        yield one


def ask(subject: Subject, command: str, *words: Any) -> Any:
    """The answer, or the refusal; a connection that breaks is a fault of the service."""
    try:
        return subject.client.execute_command(command.upper(), *words)
    except redis.ResponseError as error:
        return error


def is_refusal(answer: Any) -> bool:
    # BF.MADD and BF.INSERT answer key by key, and end at the one that is refused.
    refused = isinstance(answer[0] if isinstance(answer, list) and answer else answer, redis.ResponseError)
    assert not refused or "panic" not in str(answer).lower(), answer
    return refused


def in_process(operation: Any, f: Any, keys: list[str]) -> list[Any] | None:
    """The result in a process; None if the kind lacks the operation."""
    try:
        return operation(f, keys)
    except (AttributeError, TypeError, ValueError):
        return None


def test_every_command_is_covered_by_this_table(client):
    commands = {row[0].decode(): row[3] for row in client.execute_command("COMMAND")}
    about = {name for name, first in commands.items() if first}
    # Names that may be left out are no keys to COMMAND.
    assert about | {"bloom.stats"} == {*ON_KEYS, *ASKING, *WHOLE}


@pytest.mark.parametrize("kind", kinds(), ids=name_of)
def test_commands_on_keys_equal_a_filter_in_a_process(client, kind):
    subject = Subject(client, kind)
    for command, (form, operation) in ON_KEYS.items():
        for several in (KEYS[:9], FRESH, [KEYS[0], "fresh 3", KEYS[0]]):
            keys = several[:1] if form in (ONE, STORED) else several
            subject.put()
            before, f = subject.bytes(), subject.here()
            # To a bank, an owner comes before each key.
            words = [word for pair in pairs(keys) for word in pair] if kind == BANK else keys
            answer = ask(subject, command, *form[0](subject.name, words))
            after, case = subject.bytes(), (name_of(kind), command, keys, answer)
            if is_refusal(answer):
                assert after == before, case
            if f is not None:
                # Commands about one key do not take the two words of a pair.
                is_single = kind == BANK and form in (ONE, STORED)
                given = pairs(keys) if kind == BANK else keys
                right = None if is_single else in_process(operation, f, given)
                if right is None:
                    assert says_no(answer), case
                else:
                    assert answer == form[1](right), case
                if form is HASHES:  # a hash does not show the domain of its key
                    assert (
                        File.parse(after).without_domains() == File.parse(f.to_bytes()).without_domains()
                    ), case
                else:
                    assert after == f.to_bytes(), case
            elif kind in OTHERS:
                check_foreign(subject, command, operation, keys, answer, before)
            elif kind == NOTE or command in LOOK_UPS:
                assert says_no(answer), case
                assert after == before, case
            elif after is not None:  # it was made
                family = command.partition(".")[0].upper()
                assert client.execute_command(f"{family}.MEXISTS", subject.name, *keys) == [1] * len(keys)


def says_no(answer: Any) -> bool:
    """True for a refusal, and for a lookup that finds nothing."""
    return is_refusal(answer) or not any(answer if isinstance(answer, list | bytes) else [answer])


def check_foreign(
    subject: Subject, command: str, operation: Any, keys: list[str], answer: Any, before: bytes | None
) -> None:
    """Compare a filter of RedisBloom's, which this process does not have, with its own info."""
    case, now = (subject.kind, command, keys, answer), subject.tell(*keys)
    cuckoo = subject.kind == "redisbloom-cuckoo"
    known = [int(key in KEYS) for key in keys]
    listed = [answer] if isinstance(answer, int) else answer
    takes_hashes = command in {"bloom.hadd", "bloom.hcheck", "bloom.hremove"}
    if takes_hashes or operation is get_values or (operation in {remove, count} and not cuckoo):
        assert is_refusal(answer), case
    elif operation is remove:
        assert not is_refusal(answer), case
        info = subject.client.execute_command("CF.INFO", subject.name)
        left = dict(zip(info[::2], info[1::2], strict=True))[b"Number of items inserted"]
        assert left == len(KEYS) - len({key for key in keys if key in KEYS}), case
    elif operation is count:
        assert listed == known, case
    elif operation is look_up:
        assert listed == known or answer == bits(known), case
        assert subject.bytes() == before, case
    else:
        assert not is_refusal(answer), case
        assert now == [1] * len(keys), case
        counts = [subject.client.execute_command("CF.COUNT", subject.name, key) for key in keys if cuckoo]
        absent = operation is added_absent
        once = [max(1, known[at] + (0 if absent else keys.count(key))) for at, key in enumerate(keys)]
        assert counts == (once if cuckoo else []), case


@pytest.mark.parametrize("kind", kinds(), ids=name_of)
def test_read_commands_equal_a_filter_in_a_process(client, kind):
    subject = Subject(client, kind)
    subject.put()
    before, f = subject.bytes(), subject.here()
    for command, words in ASKING.items():
        answer = ask(subject, command, *words(subject.name))
        if kind == ABSENT:
            assert command in MAKING or subject.bytes() is None, command
            client.execute_command("DEL", subject.name)
            continue
        assert subject.bytes() == before, command
        if command in MAKING or (command in OWNERS and kind != BANK):
            assert is_refusal(answer), command
    if f is None:
        return
    assert client.execute_command("BF.CARD", subject.name) == f.num_added
    info = client.execute_command("BLOOM.INFO", subject.name)
    facts = dict(zip(info[::2], info[1::2], strict=True))
    assert (facts[b"num_added"], facts[b"nbytes"]) == (f.num_added, f.nbytes)
    right = in_process(lambda f, keys: f.positions(keys[0]), f, KEYS)
    answer = ask(subject, "BLOOM.POSITIONS", subject.name, KEYS[0])
    assert is_refusal(answer) if right is None else answer == right


@pytest.mark.parametrize("kind", kinds(), ids=name_of)
def test_dumps_in_pieces_are_loaded_or_refused(client, kind):
    subject = Subject(client, kind)
    for family in ("BF", "CF"):
        subject.put()
        at, name, pieces = 0, f"{subject.name}:again", []
        client.execute_command("DEL", name)
        while True:
            answer = ask(subject, f"{family}.SCANDUMP", subject.name, at)
            if is_refusal(answer) or answer[0] == 0:
                break
            at = answer[0]
            pieces.append(answer)
        assert is_refusal(answer) == (not pieces), (name_of(kind), family, answer)
        for piece in pieces:
            client.execute_command(f"{family}.LOADCHUNK", name, *piece)
        again = Subject(client, kind)
        again.name = name
        assert again.bytes() == (subject.bytes() if pieces else None), (name_of(kind), family)


@pytest.mark.parametrize("kind", kinds(), ids=name_of)
def test_commands_on_whole_filters_equal_a_filter_in_a_process(client, kind):
    subject = Subject(client, kind)

    def run_command(command: str, *words: Any) -> tuple[Any, bytes | None, bytes | None]:
        subject.put()
        before = subject.bytes()
        answer = ask(subject, command, *words)
        after = subject.bytes()
        assert not is_refusal(answer) or after == before, (name_of(kind), command, answer)
        return answer, before, after

    there = int(kind != ABSENT)
    for command in ("DEL", "UNLINK"):
        assert run_command(command, subject.name)[::2] == (there, None)
    client.execute_command("DEL", "renamed")
    answer, before, after = run_command("RENAME", subject.name, "renamed")
    assert is_refusal(answer) or after is None
    subject.name = "renamed"
    assert subject.bytes() == before
    subject.name = f"one:{name_of(kind)}"
    answer, before, after = run_command("SET", subject.name, "other")
    assert (after == b"other") if kind in (NOTE, ABSENT) else is_refusal(answer)

    for command, operation in (
        ("BLOOM.CLEAR", lambda f: f.clear()),
        ("BLOOM.MERGE", lambda f: f.merge(f.copy())),
    ):
        words = [subject.name] * (2 if command == "BLOOM.MERGE" else 1)
        answer, before, after = run_command(command, *words)
        f = subject.load(before)
        right = None if f is None else in_process(lambda f, _: [operation(f)], f, [])  # noqa: B023
        if right is None:
            assert is_refusal(answer), (name_of(kind), command)
        else:
            assert answer == b"OK", (name_of(kind), command, answer)
            assert after == f.to_bytes(), (name_of(kind), command)
    for command, operation in (
        ("BLOOM.CLEAROWNER", lambda f: f.clear_owner("heavy")),
        ("BLOOM.REMOVEOWNER", lambda f: f.remove_owner("heavy")),
    ):
        answer, before, after = run_command(command, subject.name, "heavy", "absent")
        if kind == BANK:
            f = subject.load(before)
            operation(f)
            assert (answer, after) == ([1, 0], f.to_bytes()), command
        else:
            assert is_refusal(answer), (name_of(kind), command)
    answer, before, after = run_command("BLOOM.ADVANCE", subject.name, 10)
    window = subject.variant is not None and getattr(fullbloom.loads(before), "window", None)
    assert is_refusal(answer) or isinstance(window, float), (name_of(kind), answer)
    answer, before, after = run_command("BLOOM.SETPAIR", subject.name, "fresh 1", 2)
    if subject.variant is None or not (subject.variant.can("pairs") or subject.variant.can("valued")):
        assert is_refusal(answer), (name_of(kind), "BLOOM.SETPAIR")
    elif not is_refusal(answer):
        assert client.execute_command("BLOOM.VALUES", subject.name, "fresh 1")[0] >= 2
    answer, before, after = run_command("CF.COMPACT", subject.name)
    takes_out = subject.variant is not None and hasattr(subject.variant.cls, "discard")
    assert is_refusal(answer) == (not (takes_out or kind == "redisbloom-cuckoo")), (name_of(kind), answer)
    if not is_refusal(answer):
        assert subject.tell(KEYS[0]) == [1] or subject.variant.can("numbers")


def test_kinds_without_secrets_are_unkeyed_and_refuse_keyed(client):
    others = [row["name"] for row in fullbloom.variants() if registry.is_open(row, "number")]
    for kind in [*others, *OTHERS]:
        words = ["KIND", kind, "capacity", 100, *(["universe", 1000] if kind == "zone" else [])]
        assert client.execute_command("BLOOM.CREATE", f"unasked:{kind}", *words) == b"OK"
        with pytest.raises(redis.ResponseError, match=f"a {kind} cannot be keyed.*say keyed no"):
            client.execute_command("BLOOM.CREATE", f"asked:{kind}", *words, "keyed", "yes")
