"""``for_each``: many cases in one test, which names those that failed.

A test of pytest costs some 8 ms of processor time to collect in every worker, to set up and to report; a case
that takes microseconds does not need one of its own. With ``FULLBLOOM_SEPARATE=1`` in the environment each
case is a test of its own again, so that ``-k`` selects it.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pytest
from _pytest.outcomes import Failed, Skipped

SEPARATE = bool(os.environ.get("FULLBLOOM_SEPARATE"))
#: Failures that are shown in full; the message names all of them.
SHOWN = 5


def for_each(
    names: str | Sequence[str],
    values: Iterable[Any],
    ids: Iterable[str] | Callable[[Any], object] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each of the values, as ``pytest.mark.parametrize`` does, but in one test.

    All cases run. Those that fail are listed by their ids, and the first of them are raised as a group.
    Several of these decorators give every combination. Each case has a folder of its own in ``tmp_path``;
    other fixtures are shared.
    """
    if SEPARATE:
        return pytest.mark.parametrize(names, values, ids=ids)
    words = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    ids = ids if ids is None or callable(ids) else list(ids)
    cases = [Case.of(words, value, i, ids) for i, value in enumerate(values)]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        return _loop(function, [*getattr(function, "axes", []), cases])

    return decorate


class Case(NamedTuple):
    """A value of one decorator: its id, and the arguments that it gives the test."""

    label: str
    arguments: dict[str, Any]

    @classmethod
    def of(cls, words: list[str], value: Any, number: int, ids: Any) -> Case:
        """Return a case with the id that pytest would give it, or a better one."""
        row, label = (value,) if len(words) == 1 else value, None
        if hasattr(value, "marks"):  # pytest.param
            assert not value.marks, "a case has no marks of its own"
            row, label = value.values, value.id
        elif ids is not None and not callable(ids):
            label = ids[number]
        if label is None:
            given = [ids(item) if callable(ids) else None for item in row]
            texts = [
                _describe(item) if text is None else str(text) for item, text in zip(row, given, strict=True)
            ]
            label = "-".join(texts)
        return cls(str(label), dict(zip(words, row, strict=True)))


def _describe(value: Any) -> str:
    """Describe a value in an id."""
    name = getattr(value, "id", None) or getattr(value, "__name__", None)
    text = name if isinstance(name, str) else str(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= 100 else text[:97] + "..."


def _loop(function: Callable[..., None], axes: list[list[Case]]) -> Callable[..., None]:
    """Return the test that runs the function for every combination of cases."""
    inner = function.__wrapped__ if hasattr(function, "axes") else function  # type: ignore[attr-defined]
    given = {name for axis in axes for case in axis[:1] for name in case.arguments}
    signature = inspect.signature(inner)
    fixtures = [parameter for name, parameter in signature.parameters.items() if name not in given]

    @functools.wraps(function)
    def run(**shared: Any) -> None:
        failed: dict[str, BaseException] = {}
        skipped: list[Skipped] = []
        combinations = list(itertools.product(*axes))
        assert combinations, "there are no cases"
        for number, combination in enumerate(combinations):
            arguments = dict(shared)
            for case in combination:
                arguments |= case.arguments
            if "tmp_path" in shared:
                arguments["tmp_path"] = shared["tmp_path"] / f"case{number}"
                arguments["tmp_path"].mkdir()
            try:
                inner(**arguments)
            except Skipped as skip:
                skipped.append(skip)
            except (Exception, Failed) as error:  # noqa: BLE001 - raised below, with the others
                label = "-".join(case.label for case in combination)
                error.add_note(f"in case {number} [{label}]")
                failed[f"{number} [{label}]"] = error
        if failed:
            message = f"{len(failed)} of {len(combinations)} cases failed: {', '.join(failed)}"
            raise BaseExceptionGroup(message, list(failed.values())[:SHOWN])
        if len(skipped) == len(combinations):
            raise skipped[0]

    run.axes = axes  # type: ignore[attr-defined]
    run.__wrapped__ = inner
    run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
    return run
