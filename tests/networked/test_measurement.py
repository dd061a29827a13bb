"""Guarantee: the benchmark of networked filters ends with an error if one of its processes does."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from benchmarks.networked.processes import run_processes

if TYPE_CHECKING:
    from fullbloom.compose.networked import ProcessingElement

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def test_results_are_by_rank() -> None:
    assert run_processes(3, lambda element: element.rank) == [0, 1, 2]


def test_a_process_that_is_killed_is_an_error() -> None:
    def job(element: ProcessingElement) -> None:
        if element.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        element.barrier()

    with pytest.raises(ChildProcessError, match="rank 1 ended with status -9"):
        run_processes(3, job)


def test_the_error_that_came_first_is_raised() -> None:
    def job(element: ProcessingElement) -> None:
        if element.rank == 2:
            raise KeyError("the first")
        element.barrier()

    with pytest.raises(KeyError, match="the first"):
        run_processes(3, job)
