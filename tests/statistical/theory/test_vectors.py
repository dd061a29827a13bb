"""Guarantee: a list, tuple or array gives the results of its elements, in the caller's type."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
from cases import for_each

from fullbloom import theory
from fullbloom.errors import ParameterError

# One call per function, each argument with a value that all of them accept.
CALLS: dict[str, dict[str, float]] = {
    "aging_capacity": {"num_bits": 1000, "fpr": 0.01},
    "aging_num_hashes": {"fpr": 0.01},
    "aggregation_bits": {"nodes": 8, "rounds": 2, "name_bytes": 6, "value_bytes": 2},
    "attenuated_bits": {"num_bits": 1536, "links": 3, "depth": 2},
    "attenuated_messages": {"degree": 4, "depth": 3},
    "best_num_hashes": {"fpr": 0.01},
    "best_threshold_hashes": {"items": 100, "num_cells": 1000, "threshold": 2},
    "bits_per_key": {"fpr": 0.01, "num_hashes": 5},
    "blocked_bits_per_key": {"fpr": 0.01, "num_hashes": 8},
    "blocked_fpr": {"items": 100, "num_bits": 5120, "num_hashes": 8},
    "blocked_limit_fpr": {"bits_per_key": 10, "num_hashes": 8},
    "bloomier_bits_per_key": {"keys": 1000, "value_bits": 8, "check_bits": 8, "arity": 4},
    "bloomier_fpr": {"check_bits": 8, "arity": 4},
    "capacity": {"num_bits": 1000, "fpr": 0.01},
    "cascade_bits": {"included": 100, "excluded": 1000},
    "cheapest_fpr": {
        "items": 1000,
        "absent_lookups": 1e6,
        "cost_of_false_positive": 1e-3,
        "cost_of_byte": 1e-3,
    },
    "classic_fpr": {"items": 10, "num_bits": 100, "num_hashes": 7},
    "compensated_bits_per_key": {"bits_per_key": 10, "block_bits": 512},
    "counter_overflow": {"load": 0.7, "counter_bits": 4},
    "counter_overflow_bound": {"num_cells": 1000, "counter_bits": 4},
    "cuckoo_fingerprint_bits": {"fpr": 0.01, "bucket_size": 4, "load": 0.95},
    "cuckoo_fpr": {"fingerprint_bits": 12, "bucket_size": 4, "load": 0.95},
    "cuckoo_load_threshold": {"bucket_size": 4, "choices": 3},
    "cuckoo_table_fpr": {"items": 100, "buckets": 40, "fingerprint_bits": 12},
    "decodable_cells": {"items": 100},
    "deletability": {"items": 10, "num_bits": 100, "num_hashes": 3, "regions": 20},
    "distinct_fpr": {"items": 3, "num_bits": 18, "num_hashes": 3},
    "dleft_bits_per_key": {"load": 6, "cells": 8, "remainder_bits": 14},
    "dleft_fpr": {"items": 1000, "buckets": 50, "remainder_bits": 12},
    "dleft_load_fpr": {"subtables": 4, "load": 6, "remainder_bits": 14},
    "dynamic_cuckoo_fpr": {"fingerprint_bits": 14, "bucket_size": 4, "load": 0.95, "stages": 16},
    "estimate_intersection": {"bits_a": 30, "bits_b": 40, "bits_or": 55, "num_bits": 100, "num_hashes": 2},
    "estimate_items": {"set_bits": 50, "num_bits": 100, "num_hashes": 2},
    "estimate_jaccard": {"bits_a": 30, "bits_b": 40, "bits_or": 55, "num_bits": 100, "num_hashes": 2},
    "estimate_std": {"items": 50, "num_bits": 100, "num_hashes": 2},
    "estimate_union": {"bits_or": 50, "num_bits": 100, "num_hashes": 2},
    "exact_fpr": {"items": 3, "num_bits": 18, "num_hashes": 3},
    "exponential_fpr": {"items": 10, "num_bits": 100, "num_hashes": 7},
    "fill": {"items": 10, "num_bits": 100, "num_hashes": 7},
    "fill_tail": {"deviation": 0.01, "items": 1000, "num_bits": 10_000, "num_hashes": 7},
    "fingerprint_bits": {"items": 1000, "fpr": 0.01},
    "fingerprint_fpr": {"items": 1000, "fingerprint_bits": 20},
    "fingerprint_load_fpr": {"load": 0.75, "remainder_bits": 8},
    "fpr": {"capacity": 10, "num_bits": 100},
    "free_block_bits_per_key": {"fpr": 0.01, "num_hashes": 6},
    "free_block_fpr": {"items": 100, "num_bits": 5120, "num_hashes": 6},
    "free_block_limit_fpr": {"bits_per_key": 10, "num_hashes": 6},
    "fuse_cells": {"keys": 1000, "arity": 4},
    "fuse_failure": {"keys": 100_000, "arity": 4, "factor": 1.07},
    "goel_gupta_fpr": {"items": 10, "num_bits": 100, "num_hashes": 7},
    "golomb_bits_per_key": {"fpr": 0.01, "rice_bits": 6},
    "hash_collision_fpr": {"items": 1000, "hash_bits": 32},
    "information_per_key": {"fpr": 0.01, "num_hashes": 3},
    "intersection_fpr": {"items_a": 10, "items_b": 12, "items_both": 5, "num_bits": 100, "num_hashes": 3},
    "invertible_fpr": {"items": 100, "num_cells": 228},
    "layered_overcount": {"items": 100, "num_bits": 5120, "num_hashes": 8, "extra": 2},
    "min_bits_per_key": {"fpr": 0.01},
    "num_bits": {"capacity": 100, "fpr": 0.01},
    "num_hashes": {"num_bits": 1000, "capacity": 100},
    "num_hashes_cost": {"bits_per_key": 10, "num_hashes": 4},
    "partitioned_fpr": {"items": 10, "num_bits": 96, "num_hashes": 6},
    "peeling_failure": {"items": 1000, "num_cells": 1300, "num_hashes": 4},
    "peeling_threshold": {"num_hashes": 4},
    "prefix_fpr": {"remainder_bits": 8, "load": 0.95, "spare_fpr": 0.01, "bin_size": 25},
    "prefix_spare_share": {"load": 0.95, "bin_size": 25},
    "published_deletability": {"items": 10, "num_bits": 100, "num_hashes": 3, "regions": 20},
    "quotient_bits_per_key": {"load": 0.95, "remainder_bits": 8, "metadata_bits": 2.125},
    "quotient_probe_slots": {"load": 0.75},
    "rank_fill": {"fill": 0.1, "rank": 2},
    "replication_bits": {"num_bits": 1000, "elements": 6},
    "replication_break_even": {"items": 1000, "elements": 8, "fpr": 0.01},
    "retouched_fnr": {"share": 0.1, "num_hashes": 3},
    "retouched_fpr": {"fill": 0.5, "share": 0.1, "num_hashes": 3},
    "ribbon_bits_per_key": {"fpr": 0.01},
    "ribbon_failure": {"keys": 10_000, "starts": 10_400},
    "rice_bits": {"fpr": 0.01},
    "rolling_size": {"capacity": 100, "fpr": 0.01},
    "scalable_capacity": {"first_capacity": 100, "growth": 2, "stages": 5},
    "scalable_fpr": {"fpr": 0.01, "tightening": 0.5, "stages": 5},
    "scalable_num_bits": {"first_capacity": 100, "growth": 2, "fpr": 0.01, "tightening": 0.5, "stages": 5},
    "second_order_fpr": {"items": 10, "num_bits": 100, "num_hashes": 7},
    "single_shot_answer_bits": {"items": 1000, "elements": 8, "returned": 0.2},
    "single_shot_bits": {"items": 1000, "elements": 8, "fpr": 0.125},
    "single_shot_fpr": {"fpr": 0.125, "elements": 8},
    "split_bits_per_key": {"fpr": 0.01},
    "split_fpr": {"items": 100, "num_bits": 2560},
    "split_limit_fpr": {"bits_per_key": 10},
    "stable_decrements": {"fpr": 0.01, "num_hashes": 3, "max_value": 3, "num_cells": 1000},
    "stable_fpr": {"num_cells": 1000, "num_hashes": 3, "decrements": 36, "max_value": 3},
    "stable_limit_fpr": {"num_cells": 1000, "num_hashes": 3, "decrements": 36, "max_value": 3},
    "stable_recall": {"age": 100, "num_cells": 1000, "num_hashes": 3, "decrements": 36, "max_value": 3},
    "stable_zeros": {"num_cells": 1000, "num_hashes": 3, "decrements": 36, "max_value": 3},
    "stage_capacity": {"first_capacity": 100, "growth": 2, "stage": 3},
    "stage_fpr": {"fpr": 0.01, "tightening": 0.5, "stage": 3},
    "signature_bits_per_term": {"fpr": 0.01, "fill": 0.5},
    "signature_fill": {"num_bits": 64, "bits_per_term": 3, "terms": 9},
    "signature_fpr": {"num_bits": 64, "bits_per_term": 3, "terms": 9, "probe_bits": 5},
    "signature_num_bits": {"terms": 9, "fpr": 0.01, "fill": 0.5},
    "signature_query_fpr": {"num_bits": 64, "bits_per_term": 3, "terms": 9, "query_terms": 2},
    "stage_num_hashes": {"fpr": 0.01, "tightening": 0.5, "stage": 3},
    "stages_for": {"items": 1000, "first_capacity": 100, "growth": 2},
    "stream_floor": {"num_bits": 1024, "window": 100_000, "alphabet": 65536},
    "succinct_bits_per_key": {"fpr": 0.01},
    "threshold_fpr": {"items": 100, "num_cells": 1000, "num_hashes": 7, "threshold": 2, "occurrences": 0},
    "twin_chance": {"items": 50, "num_cells": 100, "num_hashes": 4},
    "two_block_bits_per_key": {"fpr": 0.01, "num_hashes": 8},
    "two_block_fpr": {"items": 100, "num_bits": 5120, "num_hashes": 8},
    "two_block_limit_fpr": {"bits_per_key": 10, "num_hashes": 8},
    "value_excess": {"keys_above": 10, "num_cells": 100, "num_hashes": 7},
    "variable_increment_fpr": {"items": 100, "num_cells": 1000, "num_hashes": 4, "increments": 4},
    "xor_cells": {"keys": 1000},
    "zone_cells": {"universe": 1000, "capacity": 3},
    "zone_counter_bits": {"capacity": 3},
    "zone_num_hashes": {"universe": 1000, "capacity": 3},
}
# Native functions (tested with the native module), records, and functions that take no single numbers.
NOT_ELEMENTWISE = {"Card", "Estimate", "Size", "capacity_at", "fpr_at", "size_for"}
NOT_ELEMENTWISE |= {"RollingSize", "spatial_cell_fprs", "spatial_fprs", "spatial_promotion"}
NOT_ELEMENTWISE |= {"dleft_loads", "QuotientSize", "quotient_size"}
NOT_ELEMENTWISE |= {
    "compound_fpr",
    "level_fprs",
    "occupancy_law",
    "rational_fpr",
    "reference_card",
    "rational_signature_fpr",
}


def test_every_public_function_is_covered_here() -> None:
    assert set(theory.__all__) == CALLS.keys() | NOT_ELEMENTWISE
    assert theory.__all__ == sorted(theory.__all__)
    assert all(inspect.getdoc(getattr(theory, name)) for name in theory.__all__)


@for_each("name", CALLS)
def test_each_argument_may_be_a_list_a_tuple_or_an_array(name: str) -> None:
    function, arguments = getattr(theory, name), CALLS[name]
    alone = function(**arguments)
    for argument, value in arguments.items():
        row = {**arguments, argument: [value, value, value]}
        assert function(**row) == [alone] * 3
        assert function(*row.values()) == [alone] * 3
        row[argument] = (value, value)
        assert function(**row) == (alone, alone)
        row[argument] = np.array([[value, value]])
        result = function(**row)
        for part, expected in (
            zip(result, alone, strict=True) if isinstance(alone, tuple) else [(result, alone)]
        ):
            assert isinstance(part, np.ndarray)
            assert part.shape == (1, 2)
            assert part.dtype == (np.int64 if isinstance(expected, int) else np.float64)
            assert (part == expected).all()


def test_vectors_are_taken_pairwise_and_arrays_broadcast() -> None:
    pairs = theory.exponential_fpr([10, 20], 100, [3, 4])
    assert pairs == [theory.exponential_fpr(10, 100, 3), theory.exponential_fpr(20, 100, 4)]
    grid = theory.exponential_fpr(np.array([[10], [20]]), 100, np.array([3, 4, 5]))
    assert grid.shape == (2, 3)
    assert grid[1, 2] == theory.exponential_fpr(20, 100, 5)
    assert theory.exponential_fpr(np.array([10, 20]), 100, [3, 4]).tolist() == pairs
    assert theory.exponential_fpr((10, 20), 100, [3, 4]) == pairs


def test_empty_vectors_give_empty_results_of_their_type() -> None:
    assert theory.exponential_fpr([], 100, 3) == []
    assert theory.exponential_fpr((), 100, 3) == ()
    assert theory.exponential_fpr(np.array([]), 100, 3).shape == (0,)
    assert theory.num_bits(np.array([]), 0.01).dtype == np.int64
    value, std = theory.estimate_items(np.zeros((0, 2)), 100, 3)
    assert value.shape == std.shape == (0, 2)


def test_numpy_scalars_are_numbers() -> None:
    assert theory.num_bits(np.int64(10**7), np.float64(0.01)) == 95_850_584
    assert theory.exact_fpr(np.uint8(3), np.int32(18), np.float32(3)) == theory.exact_fpr(3, 18, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], 100, [1, 2, 3]), "lengths \\[2, 3\\]"),
        ((np.ones(2), 100, np.ones(3)), "broadcast"),
        (([10, -1], 100, 3), "items must be at least 0, got -1"),
    ],
)
def test_vectors_that_do_not_fit_are_rejected(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        theory.exponential_fpr(*arguments)  # type: ignore[call-overload]


def test_the_decorated_functions_keep_their_signature_and_docstring() -> None:
    assert list(inspect.signature(theory.classic_fpr).parameters) == ["items", "num_bits", "num_hashes"]
    assert "lower bound" in str(inspect.getdoc(theory.classic_fpr))


def test_importing_theory_loads_neither_numpy_nor_fractions() -> None:
    loaded = "print({*sys.modules} & {'numpy', 'fractions'})"
    program = f"import sys, fullbloom.theory as t; t.fill([1, 2], 64, 3); {loaded}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
