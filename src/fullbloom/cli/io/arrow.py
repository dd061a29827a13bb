"""pyarrow for commands."""

from __future__ import annotations

from typing import Any

from fullbloom.cli.failures import Refusal


def import_arrow() -> Any:
    """Import pyarrow with its parts; refuse in one line if it is not installed."""
    from fullbloom.formats import arrow

    try:
        return arrow.import_arrow()
    except ImportError:
        raise Refusal(
            "reading Parquet and Arrow files needs the extra: pip install 'fullbloom[arrow]'"
        ) from None
