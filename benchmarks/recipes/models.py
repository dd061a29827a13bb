"""State spaces to search: the sliding puzzle, and philosophers who can block each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The sliding puzzle of 3 x 3: half of the 9! arrangements can be reached.
PUZZLE, PUZZLE_STATES = bytes(range(9)), 181_440
_NEIGHBOURS = tuple(
    tuple(
        3 * row + column
        for row, column in (
            (at // 3 - 1, at % 3),
            (at // 3 + 1, at % 3),
            (at // 3, at % 3 - 1),
            (at // 3, at % 3 + 1),
        )
        if 0 <= row < 3 and 0 <= column < 3
    )
    for at in range(9)
)


def slide(state: bytes) -> Iterator[bytes]:
    """The puzzle after each possible move of the empty place."""
    empty = state.index(0)
    for other in _NEIGHBOURS[empty]:
        board = bytearray(state)
        board[empty], board[other] = board[other], 0
        yield bytes(board)


#: What a philosopher does: thinks, holds the left fork, eats, holds the left fork still.
THINKS, HUNGRY, EATS, FULL = range(4)


def dine(state: bytes) -> Iterator[bytes]:
    """The table after each possible step of one philosopher; forks lie between neighbours."""
    count = len(state)
    for at, now in enumerate(state):
        left, right = state[at - 1], state[(at + 1) % count]
        if now == THINKS and left != EATS:  # a neighbour who eats has the fork on the right, too
            step = HUNGRY
        elif now == HUNGRY and right == THINKS:
            step = EATS
        elif now == EATS:
            step = FULL
        elif now == FULL:
            step = THINKS
        else:
            continue
        yield state[:at] + bytes([step]) + state[at + 1 :]


def is_deadlock(state: bytes) -> bool:
    """Whether nobody can move."""
    return next(dine(state), None) is None
