"""The import of pyarrow, which reads and writes Parquet and Arrow IPC."""

from __future__ import annotations

from typing import Any

from fullbloom.cli.failures import Refusal


def import_arrow() -> Any:
    """Import pyarrow with its parts; refuse in one line if it is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise Refusal(
            "reading Parquet and Arrow files needs the extra: pip install 'fullbloom[arrow]'"
        ) from None
    return pa
