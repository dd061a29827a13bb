"""docs/coverage.md: the inventory of the literature, row by row, and where each row lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scripts.pages.blocks import DOCS, format_table, replace_block

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "coverage.md"
#: A row that has no code: its paragraph on the page says why.
PARAGRAPH = "below"


class Entry(NamedTuple):
    """A row: its number, what it is, names of the package, a page, and the page's title for it."""

    number: int
    item: str
    names: str
    page: str
    about: str = ""


def row(number: int, item: str, names: str, page: str, about: str = "") -> Entry:
    """One row; ``names`` are separated by blanks, relative to ``fullbloom``; ``$`` begins a command."""
    return Entry(number, item, names, page, about)


#: Part of the inventory, and its rows.
PARTS: dict[str, tuple[Entry, ...]] = {
    "The filter, its positions and its operations": (
        row(1, "Bloom filter", "BloomFilter", "filters/bloom.md"),
        row(2, "Plain bit array over a small universe", "BitSet", "filters/bit-set.md"),
        row(3, "Filter with k = 1", "BloomFilter.with_shape theory.information_per_key", "filters/golomb.md"),
        row(
            4,
            "Positions from slices of a wide hash",
            "BloomFilter.with_shape",
            "schemes.md",
            "scheme `sliced`",
        ),
        row(5, "Positions from k seeds", "recipes.textbook.TextbookFilter", "schemes.md", "scheme `seeded`"),
        row(6, "Double hashing", "BloomFilter.with_shape", "schemes.md", "scheme `double`"),
        row(
            7,
            "Enhanced double hashing, three forms",
            "BloomFilter.with_shape",
            "schemes.md",
            "`enhanced-double`, `quadratic`, `odd-step`",
        ),
        row(8, "Triple hashing", "BloomFilter.with_shape", "schemes.md", "scheme `triple`"),
        row(
            9,
            "Base hashes",
            "hash_many hash_key",
            "explanation/base-hashes.md",
            "eight functions; FNV-1a, not FNV-1",
        ),
        row(10, "Removal by a second filter", "compose.WithRemovals", "removals.md"),
        row(11, "Regeneration of an overfull filter", "BloomFilter.regenerate", "filters/bloom.md"),
        row(12, "Union and intersection", "BloomFilter.union BloomFilter.intersection", "sets.md"),
        row(13, "Superimposed codes, Zatocoding", "SignatureIndex", "how-to/signatures.md"),
        row(14, "Worked examples of 10 and 18 bits", "BloomFilter.positions", "explanation/how-it-works.md"),
        row(15, "Hazard of deletion: cat and dog", "CountingBloomFilter", "explanation/how-it-works.md"),
    ),
    "Formulas": (
        row(16, "Share of bits that are zero", "theory.fill", "theory.md"),
        row(17, "Textbook rate", "theory.classic_fpr theory.exponential_fpr", "theory.md"),
        row(18, "Exact rate", "theory.exact_fpr theory.rational_fpr theory.distinct_fpr", "figures.md"),
        row(19, "Concentration of the fill", "theory.occupancy_law theory.fill_tail", "theory.md"),
        row(
            20,
            "Best number of hashes",
            "theory.num_hashes theory.best_num_hashes",
            "explanation/how-it-works.md",
        ),
        row(21, "Size and bits per key", "theory.num_bits theory.bits_per_key theory.size_for", "figures.md"),
        row(
            22,
            "Why the formula is approximate",
            "theory.exact_fpr theory.second_order_fpr",
            "explanation/how-it-works.md",
        ),
        row(23, "Goel and Gupta's bound", "theory.goel_gupta_fpr", "figures.md"),
        row(
            24, "Number of keys from the bits", "BloomFilter.approx_count theory.estimate_items", "figures.md"
        ),
        row(
            25,
            "Sizes of unions and intersections",
            "BloomFilter.union_count BloomFilter.intersection_count",
            "filters/bloom.md",
        ),
        row(26, "Lower bound of space", "theory.min_bits_per_key", "explanation/how-it-works.md"),
        row(27, "Lower bound over a stream", "theory.stream_floor", "figures.md"),
        row(28, "When copies of a filter pay", "theory.replication_break_even", "networked.md"),
        row(29, "Worked sizes, wrong numbers of hashes", "theory.num_hashes_cost", "figures.md"),
    ),
    "Alternatives and static structures": (
        row(
            30,
            "Fingerprints in a compact table",
            "QuotientFilter theory.fingerprint_fpr",
            "filters/quotient.md",
        ),
        row(31, "Optimal replacement of Pagh, Pagh and Rao", "theory.succinct_bits_per_key", PARAGRAPH),
        row(32, "Quotient filter", "QuotientFilter", "filters/quotient.md"),
        row(33, "Cuckoo filter", "CuckooFilter", "filters/cuckoo.md"),
        row(34, "Succinct hash tables", "theory.succinct_bits_per_key", PARAGRAPH),
        row(35, "Prefix filter", "PrefixFilter", "filters/prefix.md"),
        row(
            36,
            "Blocked filters of one and two lines",
            "BloomFilter theory.blocked_fpr theory.two_block_fpr",
            "filters/bloom.md",
        ),
        row(37, "Golomb-coded set", "GolombSet", "filters/golomb.md"),
        row(38, "The same with insertion and deletion", "GolombSet.union", "filters/golomb.md", "why not"),
        row(39, "Xor and binary fuse filters", "XorFilter BinaryFuseFilter", "filters/xor.md"),
        row(40, "Retrieval by linear equations", "RibbonFilter", "filters/ribbon.md"),
        row(41, "Bloomier filter", "BloomierMap", "filters/bloomier.md"),
        row(42, "Bloomier filter, second look", "BloomierMap.set_many", "filters/bloomier.md"),
        row(43, "Compact approximators", "CompactApproximator", "filters/compact.md"),
        row(44, "Comparison of space", "plan.choices", "explanation/hash-set.md"),
        row(45, "Zone without false positives", "ZoneFilter", "filters/zone.md"),
        row(46, "Filter cascade", "FilterCascade", "filters/cascade.md"),
    ),
    "Counting and removal": (
        row(47, "Counting filter", "CountingBloomFilter", "filters/counting.md"),
        row(48, "d-left counting filter", "DLeftCountingFilter", "filters/d-left.md"),
        row(49, "Variable increments", "VariableIncrementFilter", "filters/variable-increment.md"),
        row(
            50,
            "Count thresholds",
            "CountingBloomFilter.contains_many_at_least theory.best_threshold_hashes",
            "filters/counting.md",
        ),
        row(51, "Cache architecture for counters", "", PARAGRAPH),
        row(52, "Deletable filter", "DeletableBloomFilter", "filters/deletable.md"),
        row(53, "Spectral filter", "SpectralBloomFilter", "filters/spectral.md"),
        row(54, "Retouched filter", "RetouchedBloomFilter", "filters/retouched.md"),
        row(55, "Layered filter", "LayeredBloomFilter", "filters/layered.md"),
    ),
    "Growth and streams": (
        row(56, "Scalable filter", "ScalableBloomFilter", "filters/scalable.md"),
        row(57, "Stable filter", "StableBloomFilter", "filters/stable.md"),
        row(58, "Aging filter", "AgingBloomFilter RollingBloomFilter", "filters/aging.md"),
        row(
            59,
            "Partitioned filter",
            "BloomFilter theory.partitioned_fpr",
            "filters/bloom.md",
            "layout `partitioned`",
        ),
    ),
    "Networks and synchronisation": (
        row(60, "Distributed single-shot filter", "compose.networked.find_duplicates", "networked.md"),
        row(61, "Distributed duplicate detection", "compose.networked.find_duplicates", "networked.md"),
        row(62, "Replication by hypercube exchange", "compose.networked.replicate", "networked.md"),
        row(63, "Repartitioning", "compose.networked.find_duplicates", "networked.md"),
        row(64, "Decentralised aggregation", "compose.networked.AggregationNode", "networked.md"),
        row(65, "Approximate data synchronisation", "compose.ReconciliationTree", "reconciliation.md"),
        row(
            66, "Number of differences by counting filters", "compose.count_differences", "reconciliation.md"
        ),
        row(67, "Characteristic polynomials", "compose.CharacteristicSketch", "reconciliation.md"),
        row(68, "Invertible filter, stragglers", "InvertibleBloomFilter", "filters/invertible.md"),
        row(69, "Attenuated filter", "compose.networked.AttenuatedNetwork", "networked.md"),
        row(70, "Spatial filter", "SpatialBloomFilter", "filters/spatial.md"),
        row(71, "Filter in Redis bitmaps", "engines.redis.RedisBitmapFilter", "engines/redis.md"),
        row(72, "Commands of RedisBloom", "engines.redis.RedisBloomFilter $serve", "resp.md"),
        row(73, "Packet classification", "", PARAGRAPH),
        row(74, "Small subsets with associative memory", "", PARAGRAPH),
        row(75, "Load and store queues in hardware", "", PARAGRAPH),
        row(76, "Dynamic range reporting", "", PARAGRAPH),
    ),
    "Applications": (
        row(
            77,
            "Bloom's hyphenation dictionary",
            "recipes.hyphenation.Hyphenator",
            "applications/hyphenation.md",
        ),
        row(
            78, "Novelty filter of the fruit fly", "recipes.novelty.NoveltyFilter", "applications/novelty.md"
        ),
        row(
            79,
            "Cache admission on the second request",
            "recipes.admission.SecondRequestCache",
            "applications/admission.md",
        ),
        row(80, "Filters of LSM stores", "recipes.lsm.Store", "applications/lsm.md"),
        row(81, "Filter in front of a key-value store", "engines.sqlalchemy.PreCheck", "how-to/database.md"),
        row(82, "PostgreSQL's bloom index", "SignatureIndex", "how-to/signatures.md"),
        row(
            83,
            "Check of malicious addresses",
            "recipes.url_check.UrlCheck recipes.prefix_set.PrefixSet",
            "applications/online-checks.md",
        ),
        row(84, "BitFunnel", "SignatureIndex theory.rank_fill", "how-to/signatures.md"),
        row(
            85,
            "Cache digests",
            "recipes.digests.Neighbours recipes.squid.SquidDigest",
            "applications/cache-digests.md",
        ),
        row(86, "Bitcoin wallet filters", "ForeignFilter formats.open_foreign", "formats.md", "`bip37`"),
        row(
            87,
            "Blocks of an archive",
            "recipes.blocks.Archive recipes.venti.VentiFilter",
            "applications/blocks.md",
        ),
        row(88, "Bitstate search", "recipes.state_search.explore", "applications/state-search.md"),
        row(
            89,
            "Hash compaction",
            "recipes.state_search.make_compaction_table",
            "applications/state-search.md",
        ),
        row(90, "Bloom join", "recipes.join.join", "applications/bloom-join.md"),
        row(91, "Filters in Spark", "engines.spark engines.dask", "engines/spark.md"),
        row(92, "Rate limiting", "recipes.rate_limit.RateLimiter", "applications/rate-limiter.md"),
        row(93, "Already read", "FilterBank recipes.already_read", "applications/already-read.md"),
        row(94, "Log blooms of Ethereum", "ForeignFilter formats.open_foreign", "formats.md", "`ethereum`"),
        row(95, "Trace filters of Tempo", "recipes.blocks.BlockFilters", "applications/blocks.md"),
        row(96, "Chemical fingerprints", "SignatureIndex", "how-to/signatures.md"),
        row(97, "Check before a database", "engines.sqlalchemy.PreCheck", "how-to/database.md"),
        row(98, "Duplicate messages", "recipes.celery $seen", "how-to/stream.md"),
        row(99, "Duplicate addresses of a crawler", "recipes.scrapy recipes.fleet $dedup", "recipes.md"),
        row(100, "Revoked tokens", "recipes.tokens.RevokedTokens", "applications/online-checks.md"),
        row(101, "User names that are free", "recipes.names.NameCheck", "applications/online-checks.md"),
    ),
    "Interfaces, service, evaluation": (
        row(102, "Class with a constructor of n and p", "BloomFilter BloomFilter.fpr", "filters/bloom.md"),
        row(
            103,
            "Class with fill ratio and count",
            "BloomFilter.fill BloomFilter.num_added",
            "filters/bloom.md",
        ),
        row(
            104,
            "Counting class with the width of counters",
            "CountingBloomFilter.with_shape",
            "filters/counting.md",
        ),
        row(105, "Registry of filters and snapshots", "service.registry $serve", "service.md"),
        row(106, "Table of errors", "errors", "errors.md"),
        row(107, "Self-describing files", "BloomFilter.save open", "format.md"),
        row(108, "Benchmarks of throughput and rate", "", "figures.md", "`make figures`, `make bench`"),
        row(109, "Quick-reference card", "theory.reference_card", "theory.md"),
        row(110, "Surveys", "", PARAGRAPH),
        row(111, "Random projections, compressive sensing, LSH", "", PARAGRAPH),
        row(112, "Count-min, feature hashing, MinHash and others", "", PARAGRAPH),
    ),
}


def list_entries() -> list[Entry]:
    """Return all rows, in order."""
    return [entry for entries in PARTS.values() for entry in entries]


def format_names(names: str) -> str:
    """Return names as code: commands with their program."""
    return ", ".join(
        f"`fullbloom {name[1:]}`" if name.startswith("$") else f"`{name}`" for name in names.split()
    )


def format_place(entry: Entry) -> str:
    """Return a link to the page of a row."""
    if entry.page == PARAGRAPH:
        return f"[paragraph](#row-{entry.number})"
    title = entry.about or entry.page.removesuffix(".md")
    return f"[{title}]({entry.page})"


def format_rows() -> str:
    """Return a table for each part."""
    parts = []
    for title, entries in PARTS.items():
        rows = [
            [str(entry.number), entry.item, format_names(entry.names), format_place(entry)]
            for entry in entries
        ]
        parts.append(f"## {title}\n\n{format_table(['row', 'what', 'in `fullbloom`', 'page'], rows)}")
    return "\n\n".join(parts)


def render_pages() -> dict[Path, str]:
    """Return the current text of the page."""
    text = PAGE.read_text(encoding="utf-8")
    return {PAGE: replace_block(text, format_rows()) or text}
