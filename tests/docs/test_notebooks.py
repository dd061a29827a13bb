"""Guarantee: the notebooks run from the first cell to the last, and are committed without outputs.

Their cells are plain Python, so no Jupyter is needed: they are executed in order, and the value of a last
expression is shown as a notebook would show it.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))


@pytest.fixture
def plots(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    pyplot.switch_backend("Agg")
    yield pyplot
    pyplot.close("all")


def run_cell(source: str, names: dict[str, object], where: str) -> str:
    """Run a cell; return what a notebook would show of its last expression."""
    tree = ast.parse(source, where)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    if last is None:
        return ""
    value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    render = getattr(value, "_repr_html_", value.__repr__)
    return render()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, plots, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    shown = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            shown.append(run_cell("".join(cell["source"]), names, f"{path.name}, cell {number}"))
    assert plots.get_fignums(), "a notebook has a picture"
    assert any("<strong>BloomFilter</strong>" in text or "bloom" in text for text in shown)


def test_there_are_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["choosing", "deduplicate_table", "first_filter"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs_and_magics(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None), "clear the outputs"
            ast.parse("".join(cell["source"]))
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert path.stat().st_size < 20_000
