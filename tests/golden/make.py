"""Write the golden files that are missing. What exists is never written again.

A golden file pins bytes that users have on disk: when a test says that one no longer matches, the code is
wrong, not the file. For a new variant, run this once and commit what it adds::

    python tests/golden/make.py
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import sys
import uuid
import zlib
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from compat import key_oracle  # noqa: E402
from support import ABSENT, HASHES, SCHEMES, SECRET, Keys, variants_with  # noqa: E402

import fullbloom  # noqa: E402
from fullbloom import _core  # noqa: E402

SEEDS = (0, 1, 42, 2**64 - 1)
PROBES = 100_000


def keys() -> list[Any]:
    """Keys that walk along the borders of the rule."""
    lengths = (1, 2, 3, 4, 5, 8, 9, 12, 16, 17, 31, 32, 64, 128, 129, 240, 241, 255, 256, 1024, 1025, 3000)
    texts = ["", "a", "abc", "é", "日本語", "𝄞", "a\0b", *("x" * n for n in lengths)]
    powers = [0, 1, 7, 8, 31, 32, 62, 63, 64, 71, 72, 127, 128, 200]
    ints = [0, *(s * (2**p + d) for p in powers for d in (-1, 0, 1) for s in (1, -1))]
    floats = [0.0, -0.0, 1.0, -1.5, 0.1, 1e300, 5e-324, float("inf"), float("-inf"), float("nan")]
    tuples = [
        (),
        ("a",),
        ("a", "b"),
        ("ab",),
        ("ab", ""),
        ("", "ab"),
        (1, 2.0),
        ((),),
        ((1,), 2),
        (1, (2,)),
        (1, 2),
        ("a", b"\xff", 1, 1.5, ("n", (2**70,))),
    ]
    data = [b"\x00", b"\xff\xfe", bytes(range(256))]
    return [*texts, *data, *dict.fromkeys(ints), *floats, *tuples, True, False, uuid.UUID(int=2**127 + 5)]


def keys_of_columns() -> list[Any]:
    """Keys of the domains that rule 1 got for columns: dates, times, timestamps, durations, decimals."""
    dates = [
        dt.date(*day) for day in ((1970, 1, 1), (1969, 12, 31), (2024, 2, 29), (1, 1, 1), (9999, 12, 31))
    ]
    times = [dt.time(), dt.time(0, 0, 0, 1), dt.time(23, 59, 59, 999_999), dt.time(12, 30)]
    days = [dt.datetime.combine(day, time) for day in dates for time in times[:3]]
    zones = [
        dt.UTC,
        dt.timezone(dt.timedelta(hours=-5, minutes=-30)),
        dt.timezone(dt.timedelta(0, 1, 1)),
    ]
    zoned = [day.replace(tzinfo=zone) for day in days[:9] for zone in zones]
    spans = [dt.timedelta(*span) for span in ((), (0, 0, 1), (-1,), (0, -1), (999_999_999,), (-999_999_999,))]
    counts = [0, 1, -1, 999, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1]
    units = [
        "datetime64[ns]",
        "datetime64[us]",
        "datetime64[s]",
        "datetime64[D]",
        "timedelta64[ns]",
        "timedelta64[s]",
    ]
    numpy = [np.array(count).view(unit)[()] for unit in units for count in counts]
    texts = [
        "0",
        "-0.00",
        "1",
        "-1",
        "1.0",
        "1.00",
        "100",
        "1E+2",
        "0.1",
        "-12.50",
        "123456789012345678901234567890",
    ]
    texts += [
        "1E+999999999999999999",
        "1E-999999999999999999",
        "0." + "0" * 40 + "7",
        "9" * 76,
        "-" + "9" * 100,
    ]
    decimals = [decimal.Decimal(text) for text in texts]
    tuples = [(dates[0], days[1], 1), (zoned[0], ("a", decimals[3])), (times[1], spans[2])]
    return [*dates, *times, *days, *zoned, *spans, *numpy, *decimals, *tuples]


def spell(key: Any) -> Any:
    """A key as JSON that every language reads the same way."""
    if isinstance(key, tuple):
        return {"tuple": [spell(part) for part in key]}
    return spell_part(key)


def spell_part(key: Any) -> Any:
    """A key of one part."""
    if isinstance(key, (np.datetime64, np.timedelta64)):
        return {str(key.dtype): str(key.view("int64"))}
    if isinstance(key, dt.timedelta):
        return {"timedelta": f"{key.days} {key.seconds} {key.microseconds}"}
    if isinstance(key, (dt.date, dt.time)):
        return {type(key).__name__: key.isoformat()}
    if isinstance(key, bytes):
        return {"bytes": key.hex()}
    if isinstance(key, float):
        return {"float": key.hex()}
    return {type(key).__name__.lower(): str(key)}


def read(spelt: Any) -> Any:
    """The key that ``spell`` wrote."""
    ((kind, value),) = spelt.items()
    if kind == "tuple":
        return tuple(read(part) for part in value)
    if "64[" in kind:
        return np.array(int(value)).view(kind)[()]
    parsers: dict[str, Any] = {
        "date": dt.date.fromisoformat,
        "time": dt.time.fromisoformat,
        "datetime": dt.datetime.fromisoformat,
        "timedelta": lambda text: dt.timedelta(*map(int, text.split())),
        "decimal": decimal.Decimal,
        "bytes": bytes.fromhex,
        "float": float.fromhex,
        "int": int,
        "bool": lambda text: text == "True",
        "str": str,
        "uuid": uuid.UUID,
    }
    return parsers[kind](value)


def key_vectors(instance: list[Any]) -> str:
    """Keys with their canonical bytes and hashes, by the independent oracle."""
    rows = []
    for key in instance:
        domain, data = key_oracle.canonical(key)
        hashes = {str(seed): f"{key_oracle.hash_key(key, seed):016x}" for seed in SEEDS}
        keyed = {str(seed): f"{key_oracle.hash_key(key, seed, SECRET):016x}" for seed in SEEDS}
        row = {"key": spell(key), "domain": domain, "canonical": data.hex(), "xxh3": hashes, "sip13": keyed}
        rows.append(json.dumps(row))
    head = f'{{"rule": 1, "secret": "{SECRET.hex()}",\n"vectors": [\n'
    return head + ",\n".join(rows) + "\n]}\n"


def contents(name: str = "") -> list[Any]:
    """The keys of a golden filter: each domain is there where it takes any key."""
    if name == "zone-counting":
        return list(range(12))
    if name in {variant.id for variant in variants_with("numbers")}:
        return list(range(60))
    return [*range(60), *(f"key-{i}" for i in range(30)), 1.5, float("nan"), ("t", 1), 2**64, b"\xff"]


# Where the default would be too long for a golden file.
NARROW = {"spectral": {"counter_bits": 16}, "zone": {"universe": 100}}


#: Capacities where a cell takes 16 bytes, or cells grow with their square: no golden file is beyond 4 kB.
SMALL = {"invertible": 40, "zone": 60}


def filters() -> dict[str, Any]:
    """Every golden filter by file name, filled."""
    instance: dict[str, Any] = {}
    kinds = ("add", "numbers", "build", "worlds")
    for variant in [variant for kind in kinds for variant in variants_with(kind)]:
        # A filter of stages goes through three of them; a fixed one stays below its capacity, mostly.
        capacity = 20 if variant.can("stages") else SMALL.get(variant.name, 120)
        options = NARROW.get(variant.name, {})
        instance[variant.id] = variant.build_from(contents(variant.id), capacity, 0.01, seed=7, **options)
    rest = of_rules()
    rest["bloom-keyed"] = fullbloom.BloomFilter(120, 0.01, seed=7, secret=SECRET, strict=True)
    rest["bloom-empty"] = fullbloom.BloomFilter(1, 0.5)
    rest["scalable-auto"] = fullbloom.ScalableBloomFilter(20, 0.001, growth=1.5, tightening=0.8)
    rest["quotient-counting"] = fullbloom.QuotientFilter(120, 0.01, counting=True, seed=7)
    rest["cuckoo-semi-sorted"] = fullbloom.CuckooFilter(120, 0.001, semi_sort=True, seed=7)
    rest["dynamic-cuckoo-narrow"] = fullbloom.DynamicCuckooFilter(
        33, max_stages=4, bucket_size=2, fingerprint_bits=9, seed=7
    )
    rest["cuckoo-eight"] = fullbloom.CuckooFilter(120, 0.001, bucket_size=8, seed=7)
    for mode in ("minimum-selection", "recurring-minimum"):
        rest[f"spectral-{mode}"] = fullbloom.SpectralBloomFilter(120, 0.01, mode=mode, seed=7, counter_bits=8)
    # Windows go past their capacity, so that their planes have turned.
    for name in ("stable", "aging", "rolling"):
        cls = next(v.cls for v in variants_with("add") if v.name == name)
        rest[f"{name}-turned"] = cls(60, 0.01, seed=7)
    rest["layered-three"] = fullbloom.LayeredBloomFilter(120, 0.01, layers=3, seed=7)
    rest["prefix-wide"] = fullbloom.PrefixFilter(95, 1e-5, seed=7)
    for name, made_filter in rest.items():
        if name != "bloom-empty":
            made_filter.update(contents())
    rest["bloomier-mutable"] = fullbloom.BloomierMap.build(
        contents(), range(len(contents())), check_bits=20, value_bits=33, mutable=True, arity=4, seed=7
    )
    rest["zone-counting"] = fullbloom.ZoneFilter(12, universe=64, counting=True, seed=7)
    rest["zone-counting"].update(contents("zone-counting"))
    rest["binary-fuse-four"] = fullbloom.BinaryFuseFilter.build(contents(), bits=16, arity=4, seed=7)
    rest["cascade-blocked"] = fullbloom.FilterCascade.build(contents(), ABSENT, layout="blocked", seed=7)
    # Another version, whose first level was kept with bits for a new key beside it.
    earlier = fullbloom.FilterCascade.build(contents()[1:], ABSENT, kind="ribbon", seed=7)
    rest["cascade-later"] = fullbloom.FilterCascade.build(contents(), ABSENT, like=earlier)
    # So many keys that some are passed on to the last ribbon, at one or two bits a key.
    rest["ribbon-passing"] = fullbloom.RibbonFilter.build([*contents(), *range(12_000)], 0.3, seed=7)
    # Repeated keys, some of which are taken out again.
    for name in ("quotient-counting", "dynamic-cuckoo-narrow"):
        rest[name].update(contents()[:20])
        rest[name].discard_many(contents()[10:20])
    rest["layered-three"].update(contents()[::2])
    low = fullbloom.CompactApproximator(120, 0.01, lattice="min", value_bits=6, seed=7)
    low.update(contents(), [i % 63 for i in range(len(contents()))])
    aging = fullbloom.AgingBloomFilter(60, 0.01, window=30.0, seed=7)
    for second, key in enumerate(contents()):
        aging.advance(float(second))
        aging.add(key)
    rest |= {"compact-min": low, "aging-seconds": aging}
    return instance | rest | of_domains()


def of_domains() -> dict[str, Any]:
    """Filters whose files record the domains of their keys, as those above do not: see `bare`."""
    texts = [f"key-{i}" for i in range(40)]
    instance: dict[str, Any] = {
        "bloom-domains": fullbloom.BloomFilter(120, 0.01, seed=7),
        "bloom-domains-none": fullbloom.BloomFilter(120, 0.01, seed=7),
        "scalable-domains": fullbloom.ScalableBloomFilter(20, 0.01, seed=7),
        "spatial-domains": fullbloom.SpatialBloomFilter(60, 0.01, areas=3, seed=7),
    }
    instance["bloom-domains"].update(contents("bloom-domains"))
    instance["scalable-domains"].update(texts)
    instance["scalable-domains"].add_hashed(7)
    instance["spatial-domains"].update([dt.date(2024, 1, 1 + i) for i in range(20)], 2)
    instance["golomb-domains"] = fullbloom.GolombSet.build([1.5 + i for i in range(40)], seed=7)
    instance["cascade-domains"] = fullbloom.FilterCascade.build(
        texts[:20], [(i, "x") for i in range(60)], seed=7
    )
    return instance


def of_foreign() -> dict[str, Any]:
    """A filter of each format of other programs, in a container; their files are in a folder of their own."""
    made: dict[str, Any] = {}
    for row in _core.foreign_formats():
        key_type = row["key_types"][0]
        if row["class"] == "ForeignStaticFilter":
            texts = [f"key-{i}" for i in range(30)]
            block_hash = bytes(range(32)) if "block_hash" in row["needs"] else None
            made[row["name"]] = fullbloom.ForeignStaticFilter.build(
                row["name"], texts, key_type=key_type, block_hash=block_hash
            )
            continue
        if row["class"] != "ForeignFilter":
            made[row["name"]] = getattr(fullbloom, row["class"])(16)
            made[row["name"]].update(f"key-{i}" for i in range(30))
            continue
        keys = [*(f"key-{i}" for i in range(30)), *(range(30) if key_type == "any" else [])]
        keys = list(range(30)) if key_type == "hash" else keys
        seed = 7 if row["seeded"] else 0
        made[row["name"]] = fullbloom.ForeignFilter(row["name"], 60, 0.01, key_type=key_type, seed=seed)
        made[row["name"]].update(keys)
    return made


def pairs() -> tuple[list[str], list[int]]:
    """Pairs of owners and keys: some owners grow."""
    return [f"owner-{i * i % 17}" for i in range(600)], [i % 150 for i in range(600)]


def of_banks() -> dict[str, Any]:
    """Banks of filters, whose keys come with owners; their files are in a folder of their own."""
    made: dict[str, Any] = {
        "bank": fullbloom.FilterBank(40, 0.01, seed=7),
        "bank-keyed": fullbloom.FilterBank(40, 0.01, max_fpr=0.05, growth=1.5, secret=SECRET),
        "bank-empty": fullbloom.FilterBank(1000, 0.001, max_fpr=0.001, max_owners=5),
    }
    made["bank"].update(*pairs())
    made["bank"].update(["removed", "removed too"], [1, 2])
    made["bank"].remove_owner("removed")
    made["bank-keyed"].update(*pairs())
    return made


def foreign_keys(bloom: Any) -> list[Any]:
    """30 keys of such a filter."""
    return list(range(30)) if getattr(bloom, "key_type", "") == "hash" else [f"key-{i}" for i in range(30)]


#: The parameter of a file that records the domains of keys.
KEY_DOMAINS = 93


def bare(data: bytes) -> bytes:
    """A file as releases wrote it that did not record the domains of keys."""
    params, sections = (int.from_bytes(data[at : at + 2], "little") for at in (44, 46))
    tags = [data[64 + 16 * i : 80 + 16 * i] for i in range(params)]
    kept = [tag for tag in tags if int.from_bytes(tag[:2], "little") != KEY_DOMAINS]
    old = -(-(64 + 16 * params + 32 * sections) // 64) * 64
    new = -(-(64 + 16 * len(kept) + 32 * sections) // 64) * 64
    head = bytearray(data[:64])
    head[32:40] = (len(data) + new - old).to_bytes(8, "little")
    head[44:46] = len(kept).to_bytes(2, "little")
    head[60:64] = bytes(4)
    head += b"".join(kept)
    for at in range(64 + 16 * params, 64 + 16 * params + 32 * sections, 32):
        section = bytearray(data[at : at + 32])
        offset = int.from_bytes(section[8:16], "little") + new - old
        section[8:16] = offset.to_bytes(8, "little")
        head += section
    head += bytes(new - len(head))
    head[60:64] = zlib.crc32(head).to_bytes(4, "little")
    return bytes(head) + data[old:]


def of_rules() -> dict[str, Any]:
    """An empty filter for every scheme and base hash but the defaults."""
    instance = {
        f"bloom-{layout}-{s}": of_scheme(layout, s) for layout, rules in SCHEMES.items() for s in rules[1:]
    }
    hashes = {f"bloom-hash-{h}": fullbloom.BloomFilter(120, 0.01, hash=h, seed=7) for h in HASHES[1:]}
    return instance | hashes


def of_scheme(layout: str, scheme: str) -> Any:
    """An empty filter for a golden file of a scheme."""
    if scheme not in FIRST:
        return fullbloom.BloomFilter(120, 0.01, layout=layout, scheme=scheme, seed=7)
    # Its size is that of independent positions, which no constructor takes for this scheme any more.
    instance = fullbloom.loads((HERE / f"bloom-{layout}-{scheme}.bloom").read_bytes())
    instance.clear()
    return instance


#: Schemes of the first golden files, and of later ones.
FIRST = ("mcg", "double", "enhanced-double", "columns", "parquet")
SECOND = ("seeded", "sliced", "triple", "quadratic", "odd-step")
THIRD = ("two-lines",)
#: What pins their false positives.
COUNTED = {
    "false_positives": FIRST,
    "false_positives_of_schemes": SECOND,
    "false_positives_of_two_lines": THIRD,
}


def false_positives(which: tuple[str, ...]) -> dict[str, int]:
    """How many of PROBES absent keys each layout and scheme reports, at the size of the layout's own."""
    counts = {}
    for layout, schemes in SCHEMES.items():
        for scheme in [scheme for scheme in schemes if scheme in which]:
            for fpr in (0.1, 0.01, 0.001):
                size = _core.size_for(layout, 10_000, fpr)
                bloom = fullbloom.BloomFilter.with_shape(
                    *size, capacity=10_000, layout=layout, scheme=scheme, seed=11
                )
                source = Keys("random", 3)
                bloom.update(source.take(10_000))
                counts[f"{layout} {scheme} {fpr}"] = int(bloom.contains_many(source.take(PROBES)).sum())
    return counts


def written(name: str, instance: Any) -> bytes:
    """The bytes of a golden file: without the domains of keys, unless it is there for them."""
    data: bytes = instance.to_bytes()
    return data if "-domains" in name else bare(data)


def write(name: str, data: bytes) -> bool:
    """Write a file that does not exist yet; False, and no change, for one that does."""
    try:
        with (HERE / name).open("xb") as out:
            out.write(data)
    except FileExistsError:
        print(f"kept   {name}")
        return False
    print(f"wrote  {name}")
    return True


def main() -> None:
    """Write whatever is missing."""
    write("keys.json", key_vectors(keys()).encode())
    write("keys_of_columns.json", key_vectors(keys_of_columns()).encode())
    for name, instance in filters().items():
        write(f"{name}.bloom", written(name, instance))
    for name, instance in of_foreign().items():
        write(f"foreign/{name}.bloom", instance.to_bytes())
    for name, instance in of_banks().items():
        write(f"banks/{name}.bloom", instance.to_bytes())
    for name, which in COUNTED.items():
        counts = json.dumps(false_positives(which), indent=1)
        write(f"{name}.json", f"{counts}\n".encode())


if __name__ == "__main__":
    main()
