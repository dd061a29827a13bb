"""The formulas of all filters as pure functions: no state, no third-party import.

Modules, one noun each:

- ``rates``: rates of the classic filter in closed form, its fill, the AND of two filters, hash collisions
- ``occupancy``: the exact law of the occupied bits, and exact rates from it (float and rational)
- ``bounds``: upper bounds, tail bounds, and limits that no filter can beat
- ``sizing``: bits, hashes, capacity and rate from each other, for the classic layout
- ``costs``: what errors and memory cost
- ``constructor``: the choices of a constructor, computed by the Rust core
- ``layouts``: laws of the partitioned, the blocked and the two-block layouts
- ``cardinality``: estimates of the number of keys, with their standard deviations
- ``counting``: laws of counters: thresholds, overflow, variable increments
- ``deletion``: d-left tables, deletable and retouched filters
- ``scalable``: stages of a growing filter
- ``quotient``: fingerprint tables and the quotient filter
- ``golomb``: sorted values, with their gaps in Rice codes
- ``tables``: the cuckoo filter, alone and in stages, and the prefix filter
- ``ribbon``: ribbon filters
- ``peeled``: xor and binary fuse filters, Bloomier maps
- ``window``: filters that forget: stable, aging, rolling
- ``invertible``: tables whose keys can be listed
- ``cascade``: cascades that separate two sets
- ``levels``: filters that share a budget of bits
- ``zone``: exact integer sets from remainders
- ``labelled``: filters that return a depth, a label or a value
- ``networked``: bits and messages of filters that are spread over several machines
- ``signatures``: superimposed codes and their false drops
- ``card``: the quick-reference card

Notation: ``items`` n keys are in the filter, ``capacity`` n keys are expected, ``fpr`` p is the
false-positive rate, ``num_bits`` m, ``num_hashes`` k. Every function that accepts single numbers also
accepts lists, tuples and NumPy arrays (elementwise; list in, list out). A number out of range raises
``ParameterError``, which is a ``ValueError``.

Where a formula lives: the formulas for a filter's own rate and size are Rust (``sizing/`` of the core);
``constructor`` and every function marked "Handed on from the core" call them. Functions marked "independent
of the core" compute such a law a second time, in another form or in the published one, and tests compare
the two: the classic filter (``rates``, ``occupancy``), the layouts, the estimates, the counters,
``deletability``, ``quotient_size``, ``spatial_cell_fprs``, ``stage_capacity``. All other functions are laws
that the filters themselves do not need.

It may import: the standard library's ``math``, ``fullbloom.errors``, and (in ``constructor``, on
first use) ``fullbloom._core``.
"""

from __future__ import annotations

from .bounds import fill_tail, goel_gupta_fpr, min_bits_per_key, stream_floor
from .card import Card, reference_card
from .cardinality import (
    Estimate,
    estimate_intersection,
    estimate_items,
    estimate_jaccard,
    estimate_std,
    estimate_union,
)
from .cascade import cascade_bits
from .constructor import Size, capacity_at, fpr_at, size_for
from .costs import cheapest_fpr, information_per_key
from .counting import (
    best_threshold_hashes,
    counter_overflow,
    counter_overflow_bound,
    threshold_fpr,
    variable_increment_fpr,
)
from .deletion import (
    deletability,
    dleft_bits_per_key,
    dleft_fpr,
    dleft_load_fpr,
    dleft_loads,
    published_deletability,
    retouched_fnr,
    retouched_fpr,
)
from .golomb import golomb_bits_per_key, rice_bits
from .invertible import decodable_cells, invertible_fpr, peeling_failure, peeling_threshold, twin_chance
from .labelled import layered_overcount, spatial_cell_fprs, spatial_fprs, spatial_promotion, value_excess
from .layouts import (
    blocked_bits_per_key,
    blocked_fpr,
    blocked_limit_fpr,
    compensated_bits_per_key,
    free_block_bits_per_key,
    free_block_fpr,
    free_block_limit_fpr,
    partitioned_fpr,
    split_bits_per_key,
    split_fpr,
    split_limit_fpr,
    two_block_bits_per_key,
    two_block_fpr,
    two_block_limit_fpr,
)
from .levels import level_fprs
from .networked import (
    aggregation_bits,
    attenuated_bits,
    attenuated_messages,
    replication_bits,
    replication_break_even,
    single_shot_answer_bits,
    single_shot_bits,
    single_shot_fpr,
)
from .occupancy import distinct_fpr, exact_fpr, occupancy_law, rational_fpr
from .peeled import bloomier_bits_per_key, bloomier_fpr, fuse_cells, fuse_failure, xor_cells
from .quotient import (
    QuotientSize,
    fingerprint_bits,
    fingerprint_fpr,
    fingerprint_load_fpr,
    quotient_bits_per_key,
    quotient_probe_slots,
    quotient_size,
    succinct_bits_per_key,
)
from .rates import classic_fpr, exponential_fpr, fill, hash_collision_fpr, intersection_fpr, second_order_fpr
from .ribbon import ribbon_bits_per_key, ribbon_failure
from .scalable import (
    compound_fpr,
    scalable_capacity,
    scalable_fpr,
    scalable_num_bits,
    stage_capacity,
    stage_fpr,
    stage_num_hashes,
    stages_for,
)
from .signatures import (
    rank_fill,
    rational_signature_fpr,
    signature_bits_per_term,
    signature_fill,
    signature_fpr,
    signature_num_bits,
    signature_query_fpr,
)
from .sizing import best_num_hashes, bits_per_key, capacity, fpr, num_bits, num_hashes, num_hashes_cost
from .tables import (
    cuckoo_fingerprint_bits,
    cuckoo_fpr,
    cuckoo_load_threshold,
    cuckoo_table_fpr,
    dynamic_cuckoo_fpr,
    prefix_fpr,
    prefix_spare_share,
)
from .window import (
    RollingSize,
    aging_capacity,
    aging_num_hashes,
    rolling_size,
    stable_decrements,
    stable_fpr,
    stable_limit_fpr,
    stable_recall,
    stable_zeros,
)
from .zone import zone_cells, zone_counter_bits, zone_num_hashes

__all__ = [
    "Card",
    "Estimate",
    "QuotientSize",
    "RollingSize",
    "Size",
    "aggregation_bits",
    "aging_capacity",
    "aging_num_hashes",
    "attenuated_bits",
    "attenuated_messages",
    "best_num_hashes",
    "best_threshold_hashes",
    "bits_per_key",
    "blocked_bits_per_key",
    "blocked_fpr",
    "blocked_limit_fpr",
    "bloomier_bits_per_key",
    "bloomier_fpr",
    "capacity",
    "capacity_at",
    "cascade_bits",
    "cheapest_fpr",
    "classic_fpr",
    "compensated_bits_per_key",
    "compound_fpr",
    "counter_overflow",
    "counter_overflow_bound",
    "cuckoo_fingerprint_bits",
    "cuckoo_fpr",
    "cuckoo_load_threshold",
    "cuckoo_table_fpr",
    "decodable_cells",
    "deletability",
    "distinct_fpr",
    "dleft_bits_per_key",
    "dleft_fpr",
    "dleft_load_fpr",
    "dleft_loads",
    "dynamic_cuckoo_fpr",
    "estimate_intersection",
    "estimate_items",
    "estimate_jaccard",
    "estimate_std",
    "estimate_union",
    "exact_fpr",
    "exponential_fpr",
    "fill",
    "fill_tail",
    "fingerprint_bits",
    "fingerprint_fpr",
    "fingerprint_load_fpr",
    "fpr",
    "fpr_at",
    "free_block_bits_per_key",
    "free_block_fpr",
    "free_block_limit_fpr",
    "fuse_cells",
    "fuse_failure",
    "goel_gupta_fpr",
    "golomb_bits_per_key",
    "hash_collision_fpr",
    "information_per_key",
    "intersection_fpr",
    "invertible_fpr",
    "layered_overcount",
    "level_fprs",
    "min_bits_per_key",
    "num_bits",
    "num_hashes",
    "num_hashes_cost",
    "occupancy_law",
    "partitioned_fpr",
    "peeling_failure",
    "peeling_threshold",
    "prefix_fpr",
    "prefix_spare_share",
    "published_deletability",
    "quotient_bits_per_key",
    "quotient_probe_slots",
    "quotient_size",
    "rank_fill",
    "rational_fpr",
    "rational_signature_fpr",
    "reference_card",
    "replication_bits",
    "replication_break_even",
    "retouched_fnr",
    "retouched_fpr",
    "ribbon_bits_per_key",
    "ribbon_failure",
    "rice_bits",
    "rolling_size",
    "scalable_capacity",
    "scalable_fpr",
    "scalable_num_bits",
    "second_order_fpr",
    "signature_bits_per_term",
    "signature_fill",
    "signature_fpr",
    "signature_num_bits",
    "signature_query_fpr",
    "single_shot_answer_bits",
    "single_shot_bits",
    "single_shot_fpr",
    "size_for",
    "spatial_cell_fprs",
    "spatial_fprs",
    "spatial_promotion",
    "split_bits_per_key",
    "split_fpr",
    "split_limit_fpr",
    "stable_decrements",
    "stable_fpr",
    "stable_limit_fpr",
    "stable_recall",
    "stable_zeros",
    "stage_capacity",
    "stage_fpr",
    "stage_num_hashes",
    "stages_for",
    "stream_floor",
    "succinct_bits_per_key",
    "threshold_fpr",
    "twin_chance",
    "two_block_bits_per_key",
    "two_block_fpr",
    "two_block_limit_fpr",
    "value_excess",
    "variable_increment_fpr",
    "xor_cells",
    "zone_cells",
    "zone_counter_bits",
    "zone_num_hashes",
]
