"""`fullbloom.viz` draws what the filter says, for every structure, on the axes that it is given."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support import SECRET

import fullbloom
from fullbloom import registry, viz

pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
GOLDEN = sorted((Path(__file__).resolve().parents[1] / "golden").glob("*.bloom"))


@pytest.fixture(autouse=True)
def _closed():
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


@pytest.fixture
def axes():
    return pyplot.subplots()[1]


def line(ax, label):
    return next(line for line in ax.get_lines() if str(line.get_label()).startswith(label))


def load_module(path):
    return fullbloom.loads(path.read_bytes(), secret=SECRET if path.stem.endswith("keyed") else None)


def test_the_curve_of_a_rate_is_the_law_and_the_point_is_measured(axes):
    made = fullbloom.BloomFilter(2000, 0.02)
    made.update(range(1500))
    assert viz.rate_by_load(made, probes=50_000, ax=axes) is axes
    loads, rates = line(axes, "law").get_data()
    assert list(rates) == [made.fpr(items=load) for load in loads]
    assert loads[-1] >= 2 * made.capacity
    [bars] = axes.containers
    [at], [measured] = bars.lines[0].get_data()
    assert at == made.num_added
    deviation = (made.fpr() * (1 - made.fpr()) / 50_000) ** 0.5
    assert abs(measured - made.fpr()) < 4 * deviation


def test_a_rate_too_low_to_measure_is_a_bound(axes):
    made = fullbloom.BloomFilter(1000, 1e-9)
    made.update(range(100))
    viz.rate_by_load(made, probes=1000, ax=axes)
    assert line(axes, "measured below 0.3 %").get_ydata()[0] == 3 / 1000


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_structure_can_be_drawn(path, axes):
    made = load_module(path)
    assert viz.cells(made, ax=axes) is axes
    assert type(made).__name__ in axes.get_title()
    if hasattr(made, "contains_hashed"):
        viz.rate_by_load(made, probes=500)
    else:
        with pytest.raises(fullbloom.ParameterError, match="only for the keys it was built of"):
            viz.rate_by_load(made)


def test_the_image_has_the_cells_and_marks_those_of_keys(axes):
    made = fullbloom.CountingBloomFilter(500)
    made.update(["cat", "dog", "cat"])
    viz.cells(made, keys=["cat", "x" * 1000], ax=axes)
    image = axes.get_images()[0].get_array()
    flat = [value for value in image.ravel().tolist() if value is not None]
    assert flat == list(made.bits())
    marks, others = axes.collections
    assert [marks.get_label(), others.get_label()] == ["'cat'", f"'{'x' * 19}..."]
    width = image.shape[1]
    assert {int(x + y * width) for x, y in marks.get_offsets()} == set(made.positions("cat"))


def test_a_large_filter_is_drawn_by_region(axes):
    made = fullbloom.BitSet(1_000_000)
    made.update(range(500_000))
    viz.cells(made, ax=axes)
    image = axes.get_images()[0].get_array()
    assert image.size <= 20_000
    assert image.ravel()[0] == 1
    assert image.compressed()[-1] == 0
    assert "a point is" in axes.get_xlabel()


def test_a_key_with_dollars_is_a_text_and_no_formula(axes):
    made = fullbloom.BloomFilter(100)
    viz.cells(made, keys=[r"$\frac{$", b"\xff", 5, ("a", 1)], ax=axes)
    axes.get_figure().canvas.draw()


def test_a_stage_is_chosen(axes):
    made = fullbloom.ScalableBloomFilter(1000)
    made.update(range(5000))
    bits = [stage["num_bits"] for stage in made.stage_info()]
    for stage in (0, 1, -1):
        assert f"{bits[stage]:,} bits" in viz.cells(made, stage=stage).get_title()
    with pytest.raises(fullbloom.ParameterError, match=f"between 0 and {len(bits) - 1}, got 9"):
        viz.cells(made, stage=9, ax=axes)


def test_the_bits_of_a_rate_are_those_of_the_classes(axes):
    viz.rate_by_bits(10_000, ax=axes)
    sized = [row for row in registry.rows() if any(name == "fpr" for name, _, _ in row["parameters"])]
    assert [line.get_label() for line in axes.get_lines()] == [row["name"] for row in sized]
    bits, rates = line(axes, "cuckoo").get_data()
    assert [8 * fullbloom.CuckooFilter.nbytes_for(10_000, rate) / 10_000 for rate in rates] == list(bits)


def test_a_history_is_drawn_from_samples_and_pairs():
    samples = [
        {"sampled_at": 120_000, "fill": 0.2},
        {"sampled_at": 60_000, "fill": 0.1},
        {"sampled_at": 0, "fill": None},
    ]
    drawn = line(viz.fill_history(samples), "_").get_data()
    assert list(drawn[0]) == [datetime.fromtimestamp(at, UTC) for at in (60, 120)]
    assert list(drawn[1]) == [0.1, 0.2]
    pairs = line(viz.fill_history((at, at / 10) for at in (3, 1, 2)), "_").get_data()
    assert [list(part) for part in pairs] == [[1, 2, 3], [0.1, 0.2, 0.3]]


def test_mistakes_are_named():
    made = fullbloom.BloomFilter(100)
    for call, error, why in (
        (lambda: viz.cells({1, 2}), fullbloom.ParameterTypeError, "must be a filter of fullbloom, got set"),
        (lambda: viz.rate_by_load(None), fullbloom.ParameterTypeError, "got NoneType"),
        (lambda: viz.rate_by_load(made, probes=0), fullbloom.ParameterError, "probes must be at least 1"),
        (lambda: viz.rate_by_bits(structures=["blom"]), fullbloom.ParameterError, "got 'blom'"),
        (lambda: viz.rate_by_bits(structures=["bit-set"]), fullbloom.ParameterError, "got 'bit-set'"),
        (lambda: viz.rate_by_bits(structures=[]), fullbloom.ParameterError, "at least one"),
        (lambda: viz.rate_by_bits(structures="bloom"), fullbloom.ParameterTypeError, "a list of names"),
        (lambda: viz.rate_by_bits(0, structures=["bloom"]), fullbloom.ParameterError, "got 0"),
        (lambda: viz.fill_history([]), fullbloom.ParameterError, "got none"),
        (lambda: viz.fill_history([0.5]), fullbloom.ParameterTypeError, "got float"),
        (
            lambda: viz.cells(fullbloom.CuckooFilter(100), keys=["a"]),
            fullbloom.ParameterError,
            "a CuckooFilter does not name the cells of a key",
        ),
        (lambda: viz.cells(fullbloom.BitSet(1 << 30)), fullbloom.FilterMemoryError, "128.0 MiB.*show"),
    ):
        with pytest.raises(error, match=why):
            call()


def test_without_matplotlib_the_error_names_the_extra():
    program = """
import sys
sys.modules["matplotlib"] = None
import fullbloom
try:
    fullbloom.viz.rate_by_bits(structures=["bloom"])
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "plots need matplotlib: pip install 'fullbloom[viz]'\n"


def test_importing_the_module_loads_no_other_package():
    program = "import sys, fullbloom.viz; print('matplotlib' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
