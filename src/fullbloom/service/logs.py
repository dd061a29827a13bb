"""Logs: one JSON object per line, on standard error. Keys are never logged."""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings

from fullbloom.errors import CapacityWarning

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line: time, level, logger, message, and the record's extra members."""
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in _PLAIN},
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
            where = record.exc_info[2]
            while where is not None and where.tb_next is not None:
                where = where.tb_next
            if where is not None:
                line["at"] = f"{where.tb_frame.f_code.co_filename}:{where.tb_lineno}"
        return json.dumps(line, default=str)


def configure(level: str) -> None:
    """Send all logs to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # Samples report filters over capacity, once each and as a line of the log.
    warnings.simplefilter("ignore", CapacityWarning)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
