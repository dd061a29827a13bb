"""The import of pyarrow, which reads and writes Parquet and Arrow IPC."""

from __future__ import annotations

from typing import Any


def import_arrow() -> Any:
    """Import pyarrow with its parts; raises ``ImportError`` if it is not installed."""
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.ipc
    import pyarrow.parquet

    return pa
