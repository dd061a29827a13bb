"""Queries that filters save: listed URLs, user names, revoked tokens."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.outcome import Outcome, Table
from fullbloom import BinaryFuseFilter, BloomFilter
from fullbloom.recipes.names import NameCheck
from fullbloom.recipes.prefix_set import PrefixSet, hash_prefix
from fullbloom.recipes.tokens import RevokedTokens
from fullbloom.recipes.url_check import UrlCheck, build_list, hash_expression, list_expressions

SEED, LISTED, VISITS, BITS = 13, 500_000, 100_000, 12
NAMES, TRIES, FREE = 500_000, 100_000, 0.7
REVOKED, TOKENS = 100_000, 500_000


def check_urls(draw: random.Random) -> tuple[dict[str, float], Table]:
    """Visits to sites that are not listed, one of a thousand excepted."""
    listed = [f"bad{draw.getrandbits(40):x}.example/{draw.getrandbits(20):x}" for _ in range(LISTED)]
    full = {hash_expression(expression) for expression in listed}
    by_prefix: dict[bytes, set[bytes]] = {}
    for digest in full:
        by_prefix.setdefault(digest[:4], set()).add(digest)
    check = UrlCheck(
        build_list(listed, bits=BITS), lambda prefix: by_prefix.get(prefix, set()), clock=lambda: 0.0
    )
    found = bad = lookups = 0
    for visit in range(VISITS):
        is_bad = visit % 1000 == 0
        url = (
            f"http://{draw.choice(listed)}"
            if is_bad
            else f"http://www.site{draw.getrandbits(30)}.example/a/{visit}"
        )
        lookups += len(list_expressions(url))
        bad += is_bad
        found += (check.find(url) is not None) == is_bad
    sizes: dict[str, Any] = {
        "SHA-256 prefixes of 4 bytes, sorted": 4 * LISTED,
        "the same as differences, `PrefixSet`": len(
            PrefixSet(hash_prefix(expression) for expression in listed).to_bytes()
        ),
        "`BloomFilter`, classic": BloomFilter(LISTED, 2.0**-BITS, layout="classic").nbytes,
        "`BinaryFuseFilter`": BinaryFuseFilter.build(listed, bits=BITS).nbytes,
        "`GolombSet`": check.listed.nbytes,  # type: ignore[attr-defined]
    }
    rows = [
        [
            name,
            f"{size / 1000:,.0f} kB",
            f"{8 * size / LISTED:.1f}",
            f"1 in {1 << 32 if 'SHA' in name else 1 << BITS:,}",
        ]
        for name, size in sizes.items()
    ]
    rows[0][3] = rows[1][3] = f"1 in {(1 << 32) // LISTED:,}"
    figures = {
        "urls_right": found / VISITS,
        "urls_questions": check.questions / VISITS,
        "urls_expected": (bad + lookups * 2.0**-BITS) / VISITS,
        "urls_bytes": sizes["`GolombSet`"] / LISTED,
        "urls_golomb_bits": 8 * sizes["`GolombSet`"] / LISTED,
    }
    return figures, Table("url sets", "online-checks.md", ["set", "size", "bits per entry", "errs"], rows)


def check_names(draw: random.Random) -> dict[str, float]:
    taken = [f"user{draw.getrandbits(40):x}" for _ in range(NAMES)]
    known = set(taken)
    check = NameCheck(taken, known.__contains__)
    wrong = free = 0
    for _ in range(TRIES):
        is_new = draw.random() < FREE
        name = f"new{draw.getrandbits(40):x}" if is_new else draw.choice(taken)
        free += is_new
        wrong += check.is_free(name) != is_new
    return {
        "names_queries": check.queries / TRIES,
        "names_least": 1 - free / TRIES,
        "names_wrong": wrong,
        "names_bytes": check.filter.nbytes / NAMES,
    }


def check_tokens(draw: random.Random) -> dict[str, float]:
    """Revocations over three lifetimes, and checks of valid and revoked tokens in the third."""
    now = 0.0
    revoked = RevokedTokens(REVOKED, 3600.0, clock=lambda: now)
    living = []
    for number in range(3 * REVOKED):
        now = number * 3600.0 / REVOKED
        token = f"{draw.getrandbits(128):032x}"
        revoked.revoke(token)
        living.append(token)
    missed = sum(not revoked.is_revoked(token) for token in living[-REVOKED:])
    wrong = sum(revoked.is_revoked(f"{draw.getrandbits(128):032x}") for _ in range(TOKENS))
    return {
        "tokens_missed": missed,
        "tokens_wrong": wrong,
        "tokens_wrong_share": wrong / TOKENS,
        "tokens_bytes": revoked.filter.nbytes / REVOKED,
    }


def measure() -> Outcome:
    draw = random.Random(SEED)
    figures, sizes = check_urls(draw)
    figures |= check_names(draw) | check_tokens(draw)
    least = f"{1 / 1000:.2%}", f"{figures['names_least']:.2%}", "0.00%"
    named = {
        "listed URLs: questions to the server": ("urls_questions", "urls_bytes"),
        "user names: queries": ("names_queries", "names_bytes"),
        "valid tokens: found by mistake": ("tokens_wrong_share", "tokens_bytes"),
    }
    rows = [
        [name, "100%", f"{figures[share]:.2%}", best, f"{figures[size]:.1f}"]
        for (name, (share, size)), best in zip(named.items(), least, strict=True)
    ]
    columns = ["check", "without a filter", "with it", "at best", "bytes per key"]
    parameters = {
        "listed": LISTED,
        "visits": VISITS,
        "names": NAMES,
        "tries": TRIES,
        "revoked": REVOKED,
        "seed": SEED,
    }
    return Outcome(parameters, figures, [Table("checks", "online-checks.md", columns, rows), sizes])
