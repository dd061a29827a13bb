"""Commands of RedisBloom, in the order in which they are played on one server: what is right, and every way
to be wrong.

``{128}`` is replaced by so many letters.
"""

from __future__ import annotations


def _options() -> list[str]:
    """Options of BF.INSERT and CF.INSERT, alone and together, on filters of their own."""
    parts = ["CAPACITY 10", "ERROR 0.1", "EXPANSION 4", "NONSCALING", "NOCREATE"]
    lines = []
    for chosen in range(1 << len(parts)):
        words = [part for at, part in enumerate(parts) if chosen >> at & 1]
        name = f"o{chosen}"
        lines += [
            " ".join(["BF.INSERT", name, *words, "ITEMS", "a", "b", "a"]),
            f"BF.INFO {name}",
            f"BF.CARD {name}",
        ]
    for chosen in range(4):
        words = [part for at, part in enumerate(["CAPACITY 100", "NOCREATE"]) if chosen >> at & 1]
        for nx in ("", "NX"):
            name = f"c{chosen}{nx}"
            lines += [" ".join([f"CF.INSERT{nx}", name, *words, "ITEMS", "a", "b", "a"]), f"CF.INFO {name}"]
    return lines


_BOTH = ["RESERVE", "ADD", "INSERT", "EXISTS", "MEXISTS", "INFO", "DEBUG", "SCANDUMP", "LOADCHUNK"]
_NAMES = [
    *(f"{sort}.{name}" for sort in ("BF", "CF") for name in _BOTH),
    *("BF.MADD", "BF.CARD", "CF.ADDNX", "CF.INSERTNX", "CF.DEL", "CF.COUNT", "CF.COMPACT"),
]


def _arities() -> list[str]:
    """Each command with none to six words."""
    return [
        " ".join([name, *["none"] * count])
        for name in _NAMES
        for count in range(7)
        if not _makes(name, count)
    ]


def _makes(line: str, count: int) -> bool:
    """True of a command that would be right, and make a filter that later ones would find."""
    return line[3:] in {"ADD", "MADD", "ADDNX"} and count >= 2


_RATES = [
    "0",
    "1",
    "-1",
    "1.5",
    "0.0",
    "1e-400",
    "nan",
    "inf",
    "x",
    "",
    "0.25",
    "0.5",
    "0.999",
    "1e-9",
    "0x1p-3",
    " 0.1",
]
_WHOLE = ["0", "-1", "x", "", "1.0", "1e2", "+5", "05", " 5", "9223372036854775808", "99999999999999999999"]

_BF_RESERVE = [
    *(f"BF.RESERVE r{at} {rate} 100" for at, rate in enumerate(_RATES)),
    *(f"BF.INFO r{at}" for at in range(len(_RATES))),
    *(f"BF.RESERVE q {'0.01'} {capacity}" for capacity in _WHOLE),
    *(f"BF.RESERVE q 0.01 100 EXPANSION {expansion}" for expansion in [*_WHOLE, "32769"]),
    "BF.RESERVE q 0.01 100 EXPANSION",
    "BF.RESERVE q 0.01 100 NONSCALING EXPANSION",
    "BF.RESERVE q 0.01 100 NONSCALING EXPANSION 2",
    "BF.RESERVE q 0.01 100 EXPANSION 2 NONSCALING",
    "BF.RESERVE q x x EXPANSION x",
    "BF.RESERVE q 2 0 EXPANSION 0",
    "BF.RESERVE u1 0.01 100 nonscaling",
    "BF.INFO u1",
    "BF.RESERVE u2 0.01 100 expansion 32768",
    "BF.INFO u2",
    "BF.RESERVE u3 0.01 100 EXPANSION 1",
    "BF.INFO u3",
    "BF.RESERVE u4 0.01 100 SOMETHING",
    "BF.INFO u4",
    "BF.RESERVE u5 0.01 1",
    "BF.MADD u5 a b c d e f g h",
    "BF.INFO u5",
    "BF.DEBUG u5",
    "BF.RESERVE u5 0.01 1",
    "BF.RESERVE u5 x 1",
    "BF.RESERVE cf 0.01 100",
]

_BF = [
    "CF.ADD cf x",
    "BF.ADD bf x",
    "BF.ADD bf x",
    "bf.add bf y",
    "BF.MADD bf a b a x",
    "BF.MEXISTS bf a b absent",
    "BF.EXISTS bf absent",
    "BF.EXISTS nothing x",
    "BF.MEXISTS nothing x y",
    "BF.EXISTS cf x",
    "BF.MEXISTS cf x y",
    "BF.CARD bf",
    "BF.CARD nothing",
    "BF.CARD cf",
    "BF.ADD cf x",
    "BF.MADD cf x y",
    "BF.INSERT cf ITEMS x",
    "BF.INFO cf",
    "BF.DEBUG cf",
    "BF.SCANDUMP cf 0",
    "BF.INFO bf",
    *(
        f"BF.INFO bf {field}"
        for field in ["CAPACITY", "SIZE", "FILTERS", "ITEMS", "EXPANSION", "items", "x", ""]
    ),
    "BF.INFO nothing",
    "BF.INFO nothing x",
    "BF.INFO bf x y",
    "BF.DEBUG bf",
    "BF.DEBUG nothing",
    *_BF_RESERVE,
    "BF.RESERVE full 0.01 3 NONSCALING",
    "BF.MADD full a b a c d e",
    "BF.ADD full d",
    "BF.ADD full a",
    "BF.MADD full a b",
    "BF.INSERT full ITEMS a d b",
    "BF.INFO full",
    "BF.INFO full EXPANSION",
    "BF.DEBUG full",
    "BF.RESERVE grow 0.01 3 EXPANSION 2",
    "BF.MADD grow a b c d e f g h i j k l m n o p",
    "BF.INFO grow",
    "BF.DEBUG grow",
    "BF.INSERT i1 ITEMS",
    "BF.INSERT i1 ITEMS x ITEMS y",
    "BF.INSERT i1 x ITEMS y",
    "BF.INSERT i1 ITEM x",
    "BF.INSERT i1 i x",
    "BF.INSERT i1 CAPACITY",
    "BF.INSERT i1 CAPACITY 10",
    "BF.INSERT i1 CAPACITY ITEMS x",
    "BF.INSERT i1 ERROR",
    "BF.INSERT i1 NOCREATE",
    "BF.INSERT i1 NOCREATE NOCREATE",
    "BF.INSERT nothing NOCREATE ITEMS x",
    "BF.INSERT nothing nocreate CAPACITY 10 ITEMS x",
    *(f"BF.INSERT i2 ERROR {rate} ITEMS x" for rate in ["0", "1", "-1", "x", "", "nan", "0.9"]),
    *(f"BF.INSERT i3 CAPACITY {capacity} ITEMS x" for capacity in _WHOLE),
    *(f"BF.INSERT i4 EXPANSION {expansion} ITEMS x" for expansion in ["-1", "x", "", "32769", "1"]),
    "BF.INFO i4",
    "BF.INSERT i5 NONSCALING EXPANSION 3 ITEMS x",
    "BF.INFO i5",
    "BF.INSERT i6 n ITEMS x",
    "BF.INSERT i6 e 3 c 10 er 0.1 ITEMS x",
    "BF.INFO i6",
    "BF.SCANDUMP bf x",
    "BF.SCANDUMP bf -1",
    "BF.SCANDUMP bf 0",
    "BF.SCANDUMP bf 145",
    "BF.SCANDUMP bf 9223372036854775807",
    "BF.SCANDUMP nothing 0",
    "BF.SCANDUMP nothing x",
    "BF.SCANDUMP cf x",
    "BF.LOADCHUNK bf x y",
    "BF.LOADCHUNK bf 1 y",
    "BF.LOADCHUNK bf 0 y",
    "BF.LOADCHUNK bf -1 y",
    "BF.LOADCHUNK bf 200 y",
    "BF.LOADCHUNK nothing 1 y",
    "BF.LOADCHUNK nothing 9 y",
    "BF.LOADCHUNK nothing x y",
    "BF.LOADCHUNK cf 1 y",
    "TYPE bf",
    "BF.NOTHING bf",
    "BF.ADD long {300}",
    "BF.EXISTS long {300}",
]

_CF = [
    "CF.ADD cf x",
    "CF.ADDNX cf x",
    "CF.ADDNX cf y",
    "cf.addnx cf y",
    "CF.COUNT cf x",
    "cf.count cf x",
    "CF.COUNT cf absent",
    "CF.COUNT nothing x",
    "CF.COUNT bf x",
    "CF.EXISTS cf x",
    "CF.EXISTS cf absent",
    "CF.EXISTS nothing x",
    "CF.EXISTS bf x",
    "CF.MEXISTS cf x absent",
    "CF.MEXISTS nothing x y",
    "CF.MEXISTS bf x y",
    "CF.DEL cf x",
    "CF.DEL cf absent",
    "CF.DEL nothing x",
    "CF.DEL bf x",
    "CF.INFO cf",
    "CF.INFO nothing",
    "CF.INFO bf",
    "CF.DEBUG cf",
    "CF.DEBUG nothing",
    "CF.DEBUG bf",
    "CF.ADD bf x",
    "CF.ADDNX bf x",
    "CF.INSERT bf ITEMS x",
    "CF.INSERTNX bf ITEMS x",
    "CF.RESERVE bf 100",
    "CF.RESERVE cf 100",
    *(f"CF.RESERVE s{at} {capacity}" for at, capacity in enumerate(_WHOLE)),
    *(f"CF.RESERVE t{at} 1000 BUCKETSIZE {size}" for at, size in enumerate([*_WHOLE, "256", "65536", "255"])),
    *(f"CF.RESERVE v{at} 1000 MAXITERATIONS {count}" for at, count in enumerate([*_WHOLE, "65536", "65535"])),
    *(
        f"CF.RESERVE w{at} 1000 EXPANSION {factor}"
        for at, factor in enumerate([*_WHOLE, "32769", "32768", "3"])
    ),
    *(f"CF.INFO w{at}" for at in range(14)),
    "CF.RESERVE x1 3",
    "CF.RESERVE x1 3 BUCKETSIZE 2",
    "CF.RESERVE x1 1000 BUCKETSIZE",
    "CF.RESERVE x1 1000 BUCKETSIZE 4 MAXITERATIONS",
    "CF.RESERVE x1 1000 SOMETHING 4",
    "CF.INFO x1",
    "CF.RESERVE x2 1000 expansion 2 bucketsize 4 maxiterations 10",
    "CF.INFO x2",
    "CF.RESERVE x3 x BUCKETSIZE x",
    "CF.RESERVE one 4 EXPANSION 0",
    "CF.INSERT one ITEMS a b c d e f g h",
    "CF.INSERTNX one ITEMS a b y z",
    "CF.ADD one q",
    "CF.ADDNX one q",
    "CF.INFO one",
    "CF.RESERVE many 4",
    *(f"CF.INSERT many ITEMS {' '.join(f'{turn}{letter}' for letter in 'abcdefgh')}" for turn in range(16)),
    "CF.INFO many",
    "CF.INSERT many ITEMS " + " ".join(["x"] * 30),
    *(f"CF.INSERT many ITEMS {' '.join(['x'] * 8)}" for _ in range(14)),
    "CF.ADD many x",
    "CF.ADDNX many x",
    "CF.COUNT many x",
    "CF.INFO many",
    *(["CF.DEL many x"] * 30),
    "CF.COUNT many x",
    "CF.INFO many",
    "CF.COMPACT many",
    "CF.INFO many",
    "CF.COMPACT nothing",
    "CF.COMPACT bf",
    "CF.INSERT j1 ITEMS",
    "CF.INSERT j1 x ITEMS y",
    "CF.INSERT j1 CAPACITY",
    "CF.INSERT j1 CAPACITY x ITEMS y",
    *(f"CF.INSERT j2 CAPACITY {capacity} ITEMS y" for capacity in ["0", "-1", "1", "3", "", "1.5"]),
    "CF.INSERT nothing NOCREATE ITEMS x",
    "CF.INSERTNX nothing NOCREATE ITEMS x",
    "CF.INSERT cf NOCREATE",
    "CF.INSERT cf n i x",
    "CF.INSERT cf ITEMS x z",
    "CF.INSERTNX cf ITEMS x w",
    "CF.SCANDUMP cf x",
    "CF.SCANDUMP cf -1",
    "CF.SCANDUMP cf 0",
    "CF.SCANDUMP cf 1025",
    "CF.SCANDUMP nothing 0",
    "CF.SCANDUMP nothing x",
    "CF.SCANDUMP bf 0",
    "CF.RESERVE void 8",
    "CF.SCANDUMP void 0",
    "CF.SCANDUMP void 1",
    "CF.LOADCHUNK cf 1 y",
    "CF.LOADCHUNK cf x y",
    "CF.LOADCHUNK cf 0 y",
    "CF.LOADCHUNK cf -1 y",
    "CF.LOADCHUNK cf 99999 y",
    "CF.LOADCHUNK nothing 1 y",
    "CF.LOADCHUNK nothing 9 y",
    "CF.LOADCHUNK bf 1 y",
    "TYPE cf",
    "CF.NOTHING cf",
]

CORPUS: list[str] = [*_BF, *_CF, *_options(), *_arities()]


def encode_command(line: str) -> bytes:
    """A command of the corpus as an array of bulk strings."""
    words = [b"x" * int(word[1:-1]) if word.startswith("{") else word.encode() for word in line.split(" ")]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
