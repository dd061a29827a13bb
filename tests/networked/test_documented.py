"""Guarantee: all that the package exports is documented, and its examples run."""

from __future__ import annotations

import doctest
import inspect
import pickle

from cases import for_each

from fullbloom.compose import networked
from fullbloom.errors import PeerError

EXPORTS = [getattr(networked, name) for name in networked.__all__]


@for_each("export", EXPORTS, ids=networked.__all__)
def test_an_export_is_documented_and_its_example_runs(export: object) -> None:
    assert inspect.getdoc(export)
    if inspect.isclass(export):
        public = [
            name for name in vars(export) if not name.startswith("_") and callable(getattr(export, name))
        ]
        assert all(inspect.getdoc(getattr(export, name)) for name in public)
    names = vars(networked) | vars(inspect.getmodule(export))
    for case in doctest.DocTestFinder(recurse=False).find(export, globs=dict(names)):
        report: list[str] = []
        doctest.DocTestRunner().run(case, out=report.append)
        assert not report, "".join(report)


def test_the_error_names_the_rank_in_any_process() -> None:
    error = PeerError(3, "stopped")
    assert str(error) == "rank 3 stopped"
    assert (error.rank, error.reason) == (3, "stopped")
    assert isinstance(pickle.loads(pickle.dumps(error)), ConnectionError)
