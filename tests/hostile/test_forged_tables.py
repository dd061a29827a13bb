"""Files with forged counts, tables and cells: FormatError, or a filter that answers without a crash."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import for_each
from hostile.container import COUNT, File
from support import SCALE, Variant, every_variant

import fullbloom

COUNTS = sorted({sign + value for sign in (-1, 0, 1) for value in (2**i for i in range(65))} - {-1})


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4 * SCALE))
def test_fill_and_rate_stay_in_range_for_any_stated_count(seed: int, golden: Path, tmp_path: Path) -> None:
    """Whatever number of keys a file tells, what is opened tells a fill and a rate of at most 1."""
    path, draw, sound = tmp_path / "lie.bloom", random.Random(seed), 0
    for stored in sorted(golden.glob("*.bloom")):
        file = File.parse(stored.read_bytes())
        if file.secret:
            continue
        true = next((value for tag, _, _, value in file.params if tag == COUNT), 1)
        for count in {*draw.sample(COUNTS, 8), *(true + draw.randrange(true + 2) for _ in range(8))}:
            file.set(COUNT, count)
            path.write_bytes(file.build())
            try:
                f = fullbloom.open(path, verify="header")
            except fullbloom.FormatError:
                continue
            sound += 1
            assert 0 <= f.fill <= 1, (stored.name, count)
            assert not hasattr(f, "fpr") or 0 <= f.fpr() <= 1, (stored.name, count)
    assert sound > 0


PROBER = Path(__file__).parent / "prober.py"
GOLDEN = Path(__file__).parents[1] / "golden"


class Prober:
    """The process that probes golden files, each in a fork of its own."""

    def __init__(self, errors: Path, golden: Path):
        self._errors, self._golden = errors, golden
        with errors.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(PROBER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def probe(self, variant: Variant, kind: str, rounds: int) -> dict[str, int]:
        """Return the report on this row's golden file; fail if it is empty or names a fault."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(self._golden / f"{variant.id}.bloom", kind, rounds, file=self.process.stdin, flush=True)
        last = line = ""
        while not line.startswith("end "):
            last, line = line.strip(), self.process.stdout.readline()
            assert line, f"the prober ended at {last!r}: {self._errors.read_text()[-500:]}"
        assert line == "end 0\n", f"{line.strip()} at {last!r}: {self._errors.read_text()[-500:]}"
        outcome: dict[str, int] = json.loads(last)
        problems = outcome.pop("problems")
        assert not problems, "\n".join(problems[:20])  # type: ignore[index]
        return outcome


@pytest.fixture(scope="module")
def prober(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prober]:
    running = Prober(tmp_path_factory.mktemp("prober") / "errors.txt", GOLDEN)
    yield running
    running.process.kill()
    running.process.wait()


@pytest.mark.long
@for_each("variant", every_variant())
def test_every_structure_survives_any_cells(variant: Variant, prober: Prober) -> None:
    outcome = prober.probe(variant, "payload", 60 * SCALE)
    assert outcome["variations"] >= 60


@pytest.mark.long
@for_each("variant", every_variant())
def test_every_structure_survives_any_header_parameters(variant: Variant, prober: Prober) -> None:
    outcome = prober.probe(variant, "params", 100 * SCALE)
    assert 0 < outcome["opened"] < 2 * outcome["variations"], "some lies are harmless, others are refused"
