"""Cells and header parameters may hold anything: nothing crashes, hangs, panics or asks for much memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import SCALE, Variant, every_variant

PROBER = Path(__file__).parent / "prober.py"


def probe(variant: Variant, kind: str, rounds: int, golden: Path) -> dict[str, int]:
    """What the prober says of this row's golden file; fails when it says nothing or something is wrong."""
    command = [sys.executable, str(PROBER), str(golden / f"{variant.id}.bloom"), kind, str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    last = done.stdout.strip().rsplit("\n", 1)[-1]
    assert done.returncode == 0, f"ended by {done.returncode} at {last!r}: {done.stderr[-500:]}"
    outcome: dict[str, int] = json.loads(last)
    problems = outcome.pop("problems")
    assert not problems, "\n".join(problems[:20])  # type: ignore[index]
    return outcome


@pytest.mark.parametrize("variant", every_variant())
def test_any_cells_at_all(variant: Variant, golden: Path) -> None:
    outcome = probe(variant, "payload", 60 * SCALE, golden)
    assert outcome["variations"] >= 60


@pytest.mark.parametrize("variant", every_variant())
def test_any_header_parameters(variant: Variant, golden: Path) -> None:
    outcome = probe(variant, "params", 100 * SCALE, golden)
    assert 0 < outcome["opened"] < 2 * outcome["variations"], "some lies are harmless, others are refused"
