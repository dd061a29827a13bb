"""What the plan of a frame says: whether it gives the same rows each time, and what it contains."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JError

from fullbloom.engines.spark.sessions import is_classic

#: Nodes that may choose other rows each time: a limit without an order, and a sample of rows in any order.
_CHOOSING = r"(Global|Local|Collect)?Limit|(Global|Local)?Offset|Tail|Sample"
#: Nodes that need a shuffle before their first row.
_WIDE = r"Join|Aggregate|Window|Sort|Repartition\w*|Rebalance\w*|Distinct|Deduplicate"
#: Code whose results Spark does not know.
_FOREIGN = re.compile(r"Python|InPandas|InArrow|UDF")
#: Functions whose results depend on the order of rows, of which Spark says that they are deterministic.
_ORDERED = re.compile(r"\b(row_number|ntile|lag|lead|nth_value|max_by|min_by|mode)\(")
#: Functions with other results each time, or that choose one of several rows. Over Connect only names can be
#: seen, and in a classic session Spark calls plans with `first` deterministic.
_RANDOM = re.compile(
    r"\b(rand|randn|randstr|random|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id|first|"
    r"last|any_value|collect_list|collect_set|listagg|string_agg|reflect|try_reflect|java_method|"
    r"input_file_name|input_file_block_start|input_file_block_length)\(",
    re.IGNORECASE,
)
#: Functions of the time of a query, which the optimizer replaces by that time.
_TIMES = re.compile(
    r"\b(current_timestamp|current_date|current_time|localtimestamp|now|curdate)\(", re.IGNORECASE
)
#: A leaf, whose many columns may be abbreviated without harm.
_LEAF = re.compile(r"^[\s:+-]*(Relation|LocalRelation|LogicalRDD|Range|InMemoryRelation|OneRowRelation)\b")
_ABBREVIATED = re.compile(r"\.\.\. \d+ more fields")
_ALL_FIELDS = (1 << 31) - 1


def is_repeatable(frame: Any) -> bool:
    """Return whether a frame gives the same rows each time, as far as its plan shows.

    It does not if it has a limit, a sample, a random function or one of the order of rows or the current
    time, or code whose results Spark does not know: functions and RDDs of Python, and functions of the JVM.
    A frame that was persisted or checkpointed is the rows that it has now. A source that others write to
    cannot be seen.
    """
    text, before = _read_plans(frame)
    if _has_node(text, _CHOOSING) or _FOREIGN.search(text) or _ORDERED.search(text):
        return False
    lines = [*text.splitlines(), *before.splitlines()]
    if not all(_LEAF.match(line) or not _ABBREVIATED.search(line) for line in lines):
        return False
    if _RANDOM.search(text) or _TIMES.search(before):
        return False
    if is_classic(frame):
        plan = _get_plan(frame)
        return _is_deterministic(plan) and not _has_python_rdd(plan)
    return True


def is_narrow(frame: Any) -> bool:
    """Return whether the first rows of each partition come without a shuffle (True over Connect)."""
    return not is_classic(frame) or not _has_node(_read_plans(frame)[0], _WIDE)


def runs_python(frame: Any) -> bool:
    """Return whether the query of a classic session's frame has Python functions."""
    return _FOREIGN.search(_get_plan(frame).toString()) is not None


def has_hint(frame: Any) -> bool:
    """Return whether a frame of a classic session has a hint for a join."""
    return _has_node(frame._jdf.queryExecution().analyzed().toString(), "ResolvedHint")  # noqa: SLF001


def estimate_bytes(frame: Any) -> int | None:
    """Return Spark's own estimate of a frame's bytes; None over Connect."""
    return int(str(_get_plan(frame).stats().sizeInBytes())) if is_classic(frame) else None


def _get_plan(frame: Any) -> Any:
    return frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001


def _read_plans(frame: Any) -> tuple[str, str]:
    """Return the optimized plan as text, and that before, without the plans of frames that are persisted.

    Over Connect, one request reads both, and the plan before the optimized one does not show what is
    persisted.
    """
    if is_classic(frame):
        execution = frame._jdf.queryExecution()  # noqa: SLF001
        texts = _print_plan(execution.optimizedPlan()), _print_plan(execution.withCachedData())
    else:
        explained = frame._explain_string(extended=True)  # noqa: SLF001
        before, _, rest = explained.partition("== Optimized Logical Plan ==")
        before = before.partition("== Analyzed Logical Plan ==")[2].lstrip()
        texts = rest.partition("== Physical Plan ==")[0], before.partition("\n")[2]  # after its schema
    optimized, before = ("\n".join(_skip_persisted(text.splitlines())) for text in texts)
    return optimized, before


def _print_plan(plan: Any) -> str:
    try:
        return str(plan.treeString(True, False, _ALL_FIELDS, False, False))
    except Py4JError:  # a JVM whose method has other parameters
        return str(plan.toString())


def _skip_persisted(lines: list[str]) -> list[str]:
    """Return the lines of a plan without those below ``InMemoryRelation``, which ran already."""
    result, persisted = [], -1
    for line in lines:
        depth = len(line) - len(line.lstrip(" :+-"))
        if 0 <= persisted < depth:
            continue
        persisted = depth if line.lstrip(" :+-").startswith("InMemoryRelation") else -1
        result.append(line)
    return result


def _has_node(text: str, names: str) -> bool:
    """Return whether the text of a plan has a node with one of these names."""
    return re.search(rf"^[\s:+-]*({names})\b", text, re.MULTILINE) is not None


def _is_deterministic(plan: Any) -> bool:
    children = plan.children()
    return bool(plan.deterministic()) and all(
        _is_deterministic(children.apply(number)) for number in range(children.size())
    )


def _has_python_rdd(plan: Any) -> bool:
    """Return whether a plan reads an RDD that Python computes each time."""
    leaves = plan.collectLeaves()
    for leaf in map(leaves.apply, range(leaves.size())):
        if leaf.getClass().getSimpleName() == "LogicalRDD":
            rdd = leaf.rdd()
            if not rdd.isCheckpointed() and "PythonRDD" in rdd.toDebugString():
                return True
    return False
