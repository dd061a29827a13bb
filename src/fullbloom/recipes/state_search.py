"""Depth-first search of a state space, with the visited states in a filter, as model checkers do it.

A program with a few processes has millions of states, and an exact set of them needs more memory than there
is. *Bitstate search*, the method of SPIN, sets three bits per state. *Hash compaction* stores a signature of
each state exactly. Both omit a state that they take for one they have visited, and what is only reachable
through it; every error that they report is real.

After Gerard Holzmann, "An analysis of bitstate hashing", Formal Methods in System Design 13, 1998; Ulrich
Stern and David Dill, "Improved probabilistic verification by hash compaction", CHARME 1995.

>>> def count(state):  # one of two counters moves
...     left, right = state
...     return [pair for pair in ((left + 1, right), (left, right + 1)) if max(pair) < 4]
>>> found = explore([(0, 0)], count, make_bitstate_filter(100_000))
>>> found.states, found.error
(16, None)
>>> explore([(0, 0)], count, ExactStates(), is_error=lambda state: state == (1, 1)).error
((0, 0), (1, 0), (1, 1))
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from fullbloom import BloomFilter, QuotientFilter, theory
from fullbloom.errors import ParameterError
from fullbloom.recipes.dedup import keeps_copies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "ExactStates",
    "Exploration",
    "expect_bitstate_omission",
    "expect_compaction_omission",
    "explore",
    "make_bitstate_filter",
    "make_compaction_table",
]

S = TypeVar("S")

#: SPIN's default.
_NUM_HASHES = 3
#: Points at which the rate is averaged over a search.
_STEPS = 1000


class Exploration(NamedTuple, Generic[S]):
    """The states visited, the transitions followed, the depth, and the path to an error or None.

    ``complete`` is False if the search ended early, at an error or at ``max_states``.
    """

    states: int
    transitions: int
    depth: int
    error: tuple[S, ...] | None
    complete: bool


class ExactStates:
    """An exact set with the ``add`` of a filter, to compare with."""

    def __init__(self) -> None:
        #: The states.
        self.states: set[Any] = set()

    def add(self, state: Any) -> bool:
        """Add ``state``; return True if it is new."""
        before = len(self.states)
        self.states.add(state)
        return len(self.states) > before


def explore(
    initial: Iterable[S],
    successors: Callable[[S], Iterable[S]],
    seen: Any,
    *,
    is_error: Callable[[S], bool] | None = None,
    max_states: int | None = None,
) -> Exploration[S]:
    """Visit the states that can be reached from ``initial``, depth first.

    successors: the states that follow a state; states are keys, such as tuples of small numbers. seen: a
    filter, empty at first: `make_bitstate_filter`, `make_compaction_table`, any other, or `ExactStates`.
    is_error: the search ends at the first such state. max_states: the search ends after as many, which
    bounds one of an infinite space. Raises the errors of ``successors`` and of ``seen.add``, such as
    ``FilterFull`` if a table is full. The current path is in memory, as in SPIN, with its states whole.
    """
    if max_states is not None and max_states < 1:
        raise ParameterError(f"max_states must be at least 1, got {max_states}")
    add = _add_once(seen) if keeps_copies(seen) else seen.add
    path: list[S] = []
    open_: list[Iterator[S]] = [iter(initial)]
    states = transitions = depth = 0
    while open_:
        for state in open_[-1]:
            transitions += len(open_) > 1
            if not add(state):
                continue
            if states == max_states:
                return Exploration(states, transitions, depth, None, complete=False)
            states += 1
            path.append(state)
            depth = max(depth, len(path))
            if is_error is not None and is_error(state):
                return Exploration(states, transitions, depth, tuple(path), complete=False)
            open_.append(iter(successors(state)))
            break
        else:
            open_.pop()
            if path:
                path.pop()
    return Exploration(states, transitions, depth, None, complete=True)


def _add_once(seen: Any) -> Callable[[Any], bool]:
    return lambda state: state not in seen and bool(seen.add(state))


def make_bitstate_filter(num_bits: int, num_hashes: int = _NUM_HASHES, *, seed: int = 0) -> BloomFilter:
    """Return the filter of a bitstate search. Searches with different seeds omit different states.

    Raises ``ParameterError`` for a shape that no filter has.
    """
    return BloomFilter.with_shape(num_bits, num_hashes, capacity=num_bits, seed=seed)


def make_compaction_table(states: int, omitted: float = 0.01, *, seed: int = 0) -> QuotientFilter:
    """Return a table of signatures for so many states, of which ``omitted`` will be omitted on average.

    A signature is as long as that takes. Raises ``ParameterError`` for numbers that are not positive.

    >>> table = make_compaction_table(100_000)
    >>> expect_compaction_omission(100_000, table.quotient_bits + table.remainder_bits) * 100_000 <= 0.01
    True
    """
    if states < 1 or not omitted > 0:
        raise ParameterError(f"states must be at least 1 and omitted positive, got {states}, {omitted}")
    # The last state is omitted at the rate of the full table, and all of them at half of it on average.
    return QuotientFilter(states, min(2 * omitted / states, 0.5), seed=seed)


def expect_bitstate_omission(states: int, num_bits: int, num_hashes: int = _NUM_HASHES) -> float:
    """Return the expected share of states that a bitstate search takes for visited ones when it meets them.

    The average of the filter's rate while it fills. States that are only reachable through omitted ones come
    on top. Raises ``ParameterError`` for numbers below 1.

    >>> round(expect_bitstate_omission(100_000, 1_000_000), 4)
    0.0048
    """
    if states < 1:
        raise ParameterError(f"states must be at least 1, got {states}")
    loads = [states * (step + 0.5) / _STEPS for step in range(_STEPS)]
    return math.fsum(theory.exponential_fpr(loads, num_bits, num_hashes)) / _STEPS


def expect_compaction_omission(states: int, signature_bits: int) -> float:
    """Return the expected share of states whose signature another state already has.

    ``(n - 1) / 2^(bits + 1)`` if that is small. Raises ``ParameterError`` for numbers below 1.

    >>> round(expect_compaction_omission(100_000, 32) * 100_000, 2)
    1.16
    """
    if states < 1 or signature_bits < 1:
        raise ParameterError(f"states and bits must be at least 1, got {states}, {signature_bits}")
    signatures = 2.0**signature_bits
    occupied = -signatures * math.expm1(states * math.log1p(-1 / signatures))
    return max(1 - occupied / states, 0.0)
