"""Filters on Spark: built by the executors, looked up in columns, used to cut joins and find duplicates.

>>> from fullbloom.engines.spark import build, contains            # doctest: +SKIP
>>> customers = build(orders, "customer", capacity=1_000_000)      # doctest: +SKIP
>>> visits.where(contains("customer", customers)).count()          # doctest: +SKIP

Needs pyspark 4.3 or newer and pyarrow (``pip install 'fullbloom[spark]'``), on every worker in the version
of the driver. docs/engines/spark.md has runnable examples.
"""

from fullbloom.extras import require_extra

with require_extra("spark"):
    import pyspark  # noqa: F401 - first, because the message names what is missing, and py4j comes with it

    from fullbloom.engines.spark.building import approx_count_distinct_union, build
    from fullbloom.engines.spark.duplicates import deduplicate, find_duplicates
    from fullbloom.engines.spark.joins import JoinPlan, bloom_join, plan_join
    from fullbloom.engines.spark.jvm import from_jvm, might_contain, to_jvm
    from fullbloom.engines.spark.lookups import contains
    from fullbloom.engines.spark.shipping import TranslateErrors

__all__ = [
    "JoinPlan",
    "TranslateErrors",
    "approx_count_distinct_union",
    "bloom_join",
    "build",
    "contains",
    "deduplicate",
    "find_duplicates",
    "from_jvm",
    "might_contain",
    "plan_join",
    "to_jvm",
]
