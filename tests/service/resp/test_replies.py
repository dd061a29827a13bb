"""The reply of every command, in both versions of the protocol, against a table.

Replies of ``BF.*`` and ``CF.*`` are those of RedisBloom 8, others those of Redis 7. A row
of a table is a command and what is answered: bytes in version 2, and in version 3 where it differs.
"""

from __future__ import annotations

import pytest
from service.resp.data_plane import Service

WRONG_TYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"


def words(line: str) -> bytes:
    """A command as an array of bulk strings."""
    parts = [part.encode() for part in line.split(" ")]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def error(text: str) -> str:
    return f"-{text}\r\n"


def arity(name: str) -> str:
    return error(f"ERR wrong number of arguments for '{name}' command")


def array(*parts: str) -> str:
    return f"*{len(parts)}\r\n" + "".join(parts)


def bulk(text: str) -> str:
    return f"${len(text)}\r\n{text}\r\n"


def field(name: str, two: str, three: str = "") -> tuple[str, str]:
    """One field of BF.INFO, in both versions."""
    return array(two), f"%1\r\n+{name}\r\n{three or two}"


OK, YES, NO, NONE = "+OK\r\n", ":1\r\n", ":0\r\n", "$-1\r\n"
TRUE, FALSE, NULL = "#t\r\n", "#f\r\n", "_\r\n"
MISSING = error("ERR not found")
EXISTS = error("ERR item exists")
WRONG = WRONG_TYPE.decode()
INFO2 = (
    "*10\r\n+Capacity\r\n:100\r\n+Size\r\n:192\r\n+Number of filters\r\n:1\r\n"
    "+Number of items inserted\r\n:1\r\n+Expansion rate\r\n"
)

# Rows are done in order on one service: the command, the answer, that of version 3 where it is another.
BF = [
    ("BF.RESERVE b 0.01 100", OK),
    ("BF.RESERVE b 0.01 100", EXISTS),
    ("BF.RESERVE b", arity("bf.reserve")),
    ("BF.RESERVE b 0.01", arity("bf.reserve")),
    ("BF.RESERVE n 0.01 100 EXPANSION 2 NONSCALING x", arity("bf.reserve")),
    ("BF.RESERVE n x 100", error("ERR bad error rate")),
    ("BF.RESERVE n 0 100", error("ERR error rate must be in the range (0.000000, 1.000000)")),
    ("BF.RESERVE n 1 100", error("ERR error rate must be in the range (0.000000, 1.000000)")),
    ("BF.RESERVE n nan 100", error("ERR bad error rate")),
    ("BF.RESERVE n 0.01 x", error("ERR bad capacity")),
    ("BF.RESERVE n 0.01 0", error("ERR capacity must be in the range [1, 1073741824]")),
    ("BF.RESERVE n 0.01 1099511627776", error("ERR capacity must be in the range [1, 1073741824]")),
    ("BF.RESERVE n 0.01 100 EXPANSION", error("ERR no expansion")),
    ("BF.RESERVE n 0.01 100 EXPANSION x", error("ERR bad expansion")),
    ("BF.RESERVE n 0.01 100 EXPANSION -1", error("ERR expansion must be in the range [0, 32768]")),
    ("BF.RESERVE n 0.01 100 EXPANSION 32769", error("ERR expansion must be in the range [0, 32768]")),
    ("BF.RESERVE n 0.01 100 NONSCALING EXPANSION 2", error("Nonscaling filters cannot expand")),
    ("BF.RESERVE n 0.01 2 NONSCALING", OK),
    ("BF.RESERVE z 0.01 2 EXPANSION 0", OK),
    ("BF.RESERVE e/e 0.01 2", error("ERR a name is 1 to 128 of A-Z a-z 0-9 . _ : - { }")),
    ("BF.ADD b x", YES, TRUE),
    ("BF.ADD b x", NO, FALSE),
    ("BF.ADD b", arity("bf.add")),
    ("BF.ADD b x y", arity("bf.add")),
    ("bf.exists b x", YES, TRUE),
    ("BF.EXISTS b absent", NO, FALSE),
    ("BF.EXISTS nothing x", NO, FALSE),
    ("BF.EXISTS b", arity("bf.exists")),
    ("BF.MEXISTS b x absent", array(YES, NO), array(TRUE, FALSE)),
    ("BF.MEXISTS nothing x y", array(NO, NO), array(FALSE, FALSE)),
    ("BF.MEXISTS b", arity("bf.mexists")),
    ("BF.CARD b", YES),
    ("BF.CARD nothing", NO),
    ("BF.CARD", arity("bf.card")),
    ("BF.INFO b", INFO2 + ":2\r\n", INFO2.replace("*10", "%5") + ":2\r\n"),
    ("BF.INFO b CAPACITY", *field("Capacity", ":100\r\n")),
    ("BF.INFO b filters", *field("Number of filters", YES)),
    ("BF.INFO b items", *field("Number of items inserted", YES)),
    ("BF.INFO b EXPANSION", *field("Expansion rate", ":2\r\n")),
    ("BF.INFO n EXPANSION", *field("Expansion rate", NONE, NULL)),
    ("BF.INFO z EXPANSION", *field("Expansion rate", NONE, NULL)),
    ("BF.INFO b x", error("Invalid information value")),
    ("BF.INFO b CAPACITY SIZE", arity("bf.info")),
    ("BF.INFO nothing", MISSING),
    ("BF.DEBUG nothing", MISSING),
    ("BF.MADD b p q p", array(YES, YES, NO), array(TRUE, TRUE, FALSE)),
    ("BF.MADD b", arity("bf.madd")),
    # A filter that does not grow tells what was added, then why no more is, and is silent about the rest.
    (
        "BF.MADD n 1 1 2 3 4",
        array(YES, NO, YES, error("ERR non scaling filter is full")),
        array(TRUE, FALSE, TRUE, error("ERR non scaling filter is full")),
    ),
    ("BF.ADD n 3", error("ERR non scaling filter is full")),
    ("BF.ADD n 2", NO, FALSE),
    ("BF.MADD n 1 2", array(NO, NO), array(FALSE, FALSE)),
    ("BF.INSERT b ITEMS r", array(YES), array(TRUE)),
    ("BF.INSERT i CAPACITY 10 ERROR 0.5 EXPANSION 3 ITEMS r s", array(YES, YES), array(TRUE, TRUE)),
    ("BF.INFO i EXPANSION", *field("Expansion rate", ":3\r\n")),
    ("BF.INFO i CAPACITY", *field("Capacity", ":10\r\n")),
    ("BF.INSERT j nonscaling i r", array(YES), array(TRUE)),
    ("BF.INFO j EXPANSION", *field("Expansion rate", NONE, NULL)),
    ("BF.INSERT nothing NOCREATE ITEMS r", MISSING),
    ("BF.INSERT b ITEMS", arity("bf.insert")),
    ("BF.INSERT b NOCREATE CAPACITY", arity("bf.insert")),
    ("BF.INSERT b NOCREATE NOCREATE", arity("bf.insert")),
    ("BF.INSERT b x ITEMS r", error("Unknown argument received")),
    ("BF.INSERT b ERROR x ITEMS r", error("Bad error rate")),
    ("BF.INSERT b CAPACITY x ITEMS r", error("Bad capacity")),
    ("BF.INSERT b EXPANSION x ITEMS r", error("Bad expansion")),
    ("BF.SCANDUMP b x", error("Second argument must be numeric")),
    ("BF.SCANDUMP nothing 0", MISSING),
    ("BF.SCANDUMP b", arity("bf.scandump")),
    ("BF.LOADCHUNK b x y", error("ERR Second argument must be numeric")),
    ("BF.LOADCHUNK b 1 y", error("ERR received bad data")),
    ("BF.LOADCHUNK nothing 1 y", error("ERR received bad data")),
    ("BF.LOADCHUNK nothing 9 y", MISSING),
]

CF = [
    ("CF.RESERVE c 1000", OK),
    ("CF.RESERVE c 1000", EXISTS),
    ("CF.RESERVE c", arity("cf.reserve")),
    ("CF.RESERVE d 1000 BUCKETSIZE", arity("cf.reserve")),
    ("CF.RESERVE d x", error("Bad capacity")),
    ("CF.RESERVE d 0", error("Capacity must be in the range [2 * BUCKETSIZE, 1073741824]")),
    ("CF.RESERVE d 1000 BUCKETSIZE x", error("Couldn't parse BUCKETSIZE")),
    ("CF.RESERVE d 1000 BUCKETSIZE 0", error("BUCKETSIZE: value must be in the range [1, 255]")),
    ("CF.RESERVE d 1000 MAXITERATIONS x", error("Couldn't parse MAXITERATIONS")),
    ("CF.RESERVE d 1000 EXPANSION x", error("Couldn't parse EXPANSION")),
    ("CF.RESERVE d 3 BUCKETSIZE 2", error("Capacity must be in the range [2 * BUCKETSIZE, 1073741824]")),
    ("CF.RESERVE d 1000 BUCKETSIZE 4 MAXITERATIONS 10 EXPANSION 2", OK),
    ("CF.ADD c x", YES, TRUE),
    ("CF.ADD c x", YES, TRUE),
    ("CF.ADDNX c x", NO, FALSE),
    ("CF.ADDNX c y", YES, TRUE),
    ("CF.ADD c", arity("cf.add")),
    ("CF.ADDNX c", arity("cf.addnx")),
    ("CF.COUNT c x", ":2\r\n"),
    ("CF.COUNT c absent", NO),
    ("CF.COUNT nothing x", NO),
    ("CF.EXISTS c x", YES, TRUE),
    ("CF.EXISTS c absent", NO, FALSE),
    ("CF.EXISTS nothing x", NO, FALSE),
    ("CF.MEXISTS c x absent", array(YES, NO), array(TRUE, FALSE)),
    ("CF.DEL c x", YES, TRUE),
    ("CF.DEL c absent", NO, FALSE),
    ("CF.DEL nothing x", error("Not found")),
    ("CF.COUNT c x", YES),
    ("CF.INSERT c ITEMS x z", array(YES, YES), array(TRUE, TRUE)),
    ("CF.INSERTNX c ITEMS x w", array(NO, YES)),
    ("CF.INSERT e CAPACITY 100 ITEMS x", array(YES), array(TRUE)),
    ("CF.INSERT nothing NOCREATE ITEMS x", MISSING),
    ("CF.INSERT c ITEMS", arity("cf.insert")),
    ("CF.INSERT c x ITEMS y", error("Unknown argument received")),
    ("CF.INSERT c CAPACITY x ITEMS y", error("Bad capacity")),
    ("CF.INFO nothing", MISSING),
    ("CF.COMPACT c", OK),
    ("CF.COMPACT nothing", error("Cuckoo filter was not found")),
    ("CF.SCANDUMP nothing 0", MISSING),
    ("CF.SCANDUMP c x", error("Invalid position")),
    ("CF.LOADCHUNK nothing 1 y", error("Invalid header")),
    # Each sort of filter refuses to be changed as the other, and knows no key as the other.
    ("BF.ADD c x", WRONG),
    ("BF.MADD c x", WRONG),
    ("BF.INSERT c ITEMS x", WRONG),
    ("BF.RESERVE c 0.01 100", WRONG),
    ("BF.CARD c", WRONG),
    ("BF.INFO c", WRONG),
    ("BF.SCANDUMP c 0", WRONG),
    ("BF.EXISTS c x", NO, FALSE),
    ("BF.MEXISTS c x", array(NO), array(FALSE)),
    ("BF.ADD b x", YES, TRUE),
    ("CF.ADD b x", WRONG),
    ("CF.DEL b x", error("Not found")),
    ("CF.INFO b", WRONG),
    ("CF.EXISTS b x", NO, FALSE),
    ("CF.COUNT b x", NO),
]

NAMES = [
    ("BF.ADD b x", YES, TRUE),
    ("CF.ADD c x", YES, TRUE),
    ("BLOOM.CREATE a KIND bloom capacity 10", OK),
    ("EXISTS b c b nothing", ":3\r\n"),
    ("TOUCH b nothing", YES),
    ("EXISTS", arity("exists")),
    ("TYPE b", "+MBbloom--\r\n"),
    ("TYPE c", "+MBbloomCF\r\n"),
    ("TYPE a", "+fullbloom\r\n"),
    ("TYPE nothing", "+none\r\n"),
    ("DBSIZE", ":3\r\n"),
    ("TTL b", ":-1\r\n"),
    ("TTL nothing", ":-2\r\n"),
    ("EXPIRE b 100", YES),
    ("TTL b", ":100\r\n"),
    ("EXPIRE b 50 NX", NO),
    ("EXPIRE b 50 GT", NO),
    ("EXPIRE b 50 LT", YES),
    ("EXPIRE b 70 XX", YES),
    ("TTL b", ":70\r\n"),
    ("EXPIRE c 70 XX", NO),
    ("EXPIRE b 70 NX GT", error("ERR NX and XX, GT or LT options at the same time are not compatible")),
    ("EXPIRE b 70 GT LT", error("ERR GT and LT options at the same time are not compatible")),
    ("EXPIRE b 70 maybe", error("ERR Unsupported option maybe")),
    ("EXPIRE b x", error("ERR value is not an integer or out of range")),
    ("EXPIRE b 9223372036854775807", error("ERR invalid expire time in 'expire' command")),
    ("EXPIRE nothing 10", NO),
    ("EXPIREAT b 99999999999", YES),
    ("EXPIRETIME b", ":99999999999\r\n"),
    ("PEXPIRETIME b", ":99999999999000\r\n"),
    ("PERSIST b", YES),
    ("PERSIST b", NO),
    ("EXPIRE a 0", YES),
    ("EXISTS a", NO),
    ("RENAME b d", OK),
    ("BF.EXISTS d x", YES, TRUE),
    ("RENAME b d", error("ERR no such key")),
    ("RENAMENX d c", NO),
    ("RENAMENX d e", YES),
    ("RENAME e e", OK),
    ("RENAME e x/y", error("ERR a name is 1 to 128 of A-Z a-z 0-9 . _ : - { }")),
    ("SCAN 0", array(bulk("0"), array(bulk("e"), bulk("c")))),
    ("SCAN 0 MATCH c*", array(bulk("0"), array(bulk("c")))),
    ("SCAN 0 TYPE MBbloom-- COUNT 100", array(bulk("0"), array(bulk("e")))),
    ("SCAN x", error("ERR invalid cursor")),
    ("SCAN 0 COUNT 0", error("ERR syntax error")),
    ("SCAN 0 COUNT", error("ERR syntax error")),
    ("KEYS [cd]", array(bulk("c"))),
    ("DEL c nothing", YES),
    ("UNLINK e", YES),
    ("FLUSHDB maybe", error("ERR syntax error")),
    ("FLUSHDB ASYNC", OK),
    ("DBSIZE", NO),
]

CONNECTION = [
    ("PING", "+PONG\r\n"),
    ("PING a", bulk("a")),
    ("PING a b", arity("ping")),
    ("ECHO a", bulk("a")),
    ("ECHO", arity("echo")),
    ("SELECT 0", OK),
    ("SELECT 1", error("ERR DB index is out of range")),
    ("SELECT x", error("ERR value is not an integer or out of range")),
    ("CLIENT SETNAME me", OK),
    ("CLIENT GETNAME", bulk("me")),
    ("CLIENT SETINFO LIB-NAME lib", OK),
    ("CLIENT SETINFO x lib", error("ERR Unrecognized option 'x'")),
    ("CLIENT ID x", arity("client|id")),
    ("CLIENT x", error("ERR unknown subcommand 'x'. Try CLIENT HELP.")),
    ("NOTHING a b", error("ERR unknown command 'NOTHING', with args beginning with: 'a' 'b' ")),
    (
        "AUTH x",
        error(
            "ERR AUTH <password> called without any password configured for the default user. "
            "Are you sure your configuration is correct?"
        ),
    ),
    ("HELLO 4", error("NOPROTO unsupported protocol version")),
    ("HELLO x", error("ERR Protocol version is not an integer or out of range")),
    ("HELLO 3 x", error("ERR Syntax error in HELLO option 'x'")),
    ("CONFIG GET save", array(bulk("save"), bulk("")), "%1\r\n" + bulk("save") + bulk("")),
    ("CONFIG GET nothing", "*0\r\n", "%0\r\n"),
    ("CONFIG SET save x", error("ERR settings cannot be changed while the service runs; use CONFIG GET")),
    ("COMMAND GETKEYS RENAME a b", array(bulk("a"), bulk("b"))),
    ("COMMAND GETKEYS PING", error("ERR The command has no key arguments")),
    ("COMMAND x", error("ERR unknown subcommand 'x'. Try COMMAND HELP.")),
    ("COMMAND INFO nothing", array(NONE), array(NULL)),
    ("WATCH a", error("ERR WATCH is not supported: MULTI and EXEC execute as one without it")),
    ("UNWATCH", OK),
    ("EXEC", error("ERR EXEC without MULTI")),
    ("DISCARD", error("ERR DISCARD without MULTI")),
    ("MULTI", OK),
    ("MULTI", error("ERR MULTI calls can not be nested")),
    ("BF.ADD m x", "+QUEUED\r\n"),
    ("BF.EXISTS m x", "+QUEUED\r\n"),
    ("BF.RESERVE m x 1", "+QUEUED\r\n"),
    ("EXEC", array(YES, YES, error("ERR bad error rate")), array(TRUE, TRUE, error("ERR bad error rate"))),
    ("MULTI", OK),
    ("BF.ADD m y", "+QUEUED\r\n"),
    ("BF.ADD m", arity("bf.add")),
    ("EXEC", error("EXECABORT Transaction discarded because of previous errors.")),
    ("BF.EXISTS m y", NO, FALSE),
    ("MULTI", OK),
    ("ECHO a", "+QUEUED\r\n"),
    ("DISCARD", OK),
    ("BGSAVE", "+Background saving started\r\n"),
]

ANY = [
    ("BLOOM.CREATE q KIND quotient capacity 100", OK),
    ("BLOOM.CREATE q KIND quotient capacity 100", EXISTS),
    ("BLOOM.CREATE q KIND", arity("bloom.create")),
    ("BLOOM.CREATE q LIKE quotient", error("ERR syntax error: BLOOM.CREATE name KIND kind [name value ...]")),
    ("BLOOM.CREATE r KIND quotient", error("ERR capacity is missing; give capacity=...")),
    ("BLOOM.ADD q a b a", array(YES, YES, NO), array(TRUE, TRUE, FALSE)),
    ("BLOOM.CHECK q a c", array(YES, NO), array(TRUE, FALSE)),
    ("BLOOM.COUNT q a c", array(":2\r\n", NO)),
    ("BLOOM.REMOVE q b c", array(YES, NO), array(TRUE, FALSE)),
    ("BLOOM.CHECK nothing a", MISSING),
    ("BLOOM.CHECK q", arity("bloom.check")),
    ("BLOOM.CREATE p KIND bloom capacity 10 strict yes expire 100", OK),
    ("TTL p", ":100\r\n"),
    ("BLOOM.REMOVE p a", error("ERR a BloomFilter cannot remove keys")),
    ("BLOOM.CREATE o KIND bloom capacity 10 strict maybe", error("ERR strict must be yes or no")),
    (
        "BLOOM.CREATE o KIND bloom capacity 10 expire 0",
        error("ERR invalid expire time in 'bloom.create' command"),
    ),
    ("BLOOM.CREATE m KIND compact capacity 10", OK),
    ("BLOOM.SETPAIR m a 5 b 1", OK),
    ("BLOOM.VALUES m a b c", array(":5\r\n", YES, NO)),
    ("BLOOM.SETPAIR m a", arity("bloom.setpair")),
    ("BLOOM.SETPAIR m a x", error("ERR a value is a whole number of at least 0")),
    ("BLOOM.CREATE f KIND bloom capacity 10 keyed no seed 1", OK),
    ("BLOOM.CREATE g KIND bloom capacity 10 keyed no seed 1", OK),
    ("BLOOM.ADD f a", array(YES), array(TRUE)),
    ("BLOOM.MERGE g f f", OK),
    ("BLOOM.MERGE g g", OK),
    ("BLOOM.CHECK g a b", array(YES, NO), array(TRUE, FALSE)),
    ("BLOOM.CLEAR g", OK),
    ("BLOOM.CHECK g a", array(NO), array(FALSE)),
    ("BLOOM.MERGE g nothing", MISSING),
    ("BLOOM.ADVANCE g x", error("ERR a time is a number of seconds, at least 0")),
    (
        "BLOOM.PCHECK g abc",
        error("ERR packed keys are each 4 bytes of length, little-endian, and so many bytes"),
    ),
    ("BLOOM.HCHECK g abc", error("ERR packed hashes are 8 bytes each, little-endian")),
    ("BLOOM.RESTORE h abc", error("ERR this is not a fullbloom file (it does not start with \\x89BLOOM)")),
]

TABLES = {"bf": BF, "cf": CF, "names": NAMES, "connection": CONNECTION, "any": ANY}


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("table", TABLES)
def test_commands_reply_as_the_table_says(start, table, protocol):
    raw = start().socket()
    if protocol == 3:
        raw.send(words("HELLO 3"))
        assert raw.reply().startswith(b"%7")
    wrong = []
    # All at once: from an EXPIRE to the TTL behind it, no pause of this process counts.
    raw.send(b"".join(words(line) for line, *_ in TABLES[table]))
    for line, *answers in TABLES[table]:
        said, expected = raw.reply(), answers[-1 if protocol == 3 else 0].encode()
        if said != expected:
            wrong.append((line, said, expected))
    assert not wrong


def test_every_command_refuses_too_few_arguments_and_is_documented(service: Service):
    client = service.client()
    rows = client.execute_command("COMMAND")
    names = client.execute_command("COMMAND LIST")
    assert len(rows) == len(names) == client.execute_command("COMMAND COUNT")
    docs = client.execute_command("COMMAND DOCS")
    raw = service.socket()
    for row in rows.values() if isinstance(rows, dict) else rows:
        name, words_wanted = (
            (row["name"], row["arity"]) if isinstance(row, dict) else (row[0].decode(), row[1])
        )
        assert name.encode() in names
        assert name.encode() in docs
        if abs(words_wanted) > 1:
            short = " ".join([name] + ["x"] * (abs(words_wanted) - 2))
            raw.ask(words(short), arity(name).encode())
    raw.close()
