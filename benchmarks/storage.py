"""Records of measurements: one JSON file each, beside the programs that measure."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def load_record(path: Path) -> dict[str, Any]:
    """Return a record, empty if nothing was measured yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def save_record(path: Path, record: dict[str, Any]) -> None:
    """Replace a record; its lines are short, for readable differences."""
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def today() -> str:
    """Return the date of a measurement, in UTC."""
    return dt.datetime.now(tz=dt.UTC).date().isoformat()
