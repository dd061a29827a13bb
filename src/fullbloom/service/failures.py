"""Errors that prevent a start, and refusals of requests."""

from __future__ import annotations


class StartError(Exception):
    """The service cannot start; the message is the one line that a person reads."""


class Refused(Exception):
    """A request is refused; the native module raises its own ``Fault`` with the same codes."""

    def __init__(self, code: str, text: str, **extra: object) -> None:
        """Store a code of `STATUS`, the text, and further members of the response."""
        super().__init__(text)
        self.code = code
        self.extra = extra


#: HTTP status of each code.
STATUS = {
    "invalid": 400,
    "unauthenticated": 401,
    "denied": 403,
    "missing": 404,
    "method": 405,
    "not-acceptable": 406,
    "timeout": 408,
    "exists": 409,
    "busy": 409,
    "applied": 409,
    "changed": 412,
    "large": 413,
    "media-type": 415,
    "elsewhere": 421,
    "unprocessable": 422,
    "incompatible": 422,
    "unsupported": 422,
    "format": 422,
    "full": 507,
    "limit": 413,
    "overloaded": 503,
    "read-only": 503,
    "unavailable": 503,
    "lost": 500,
    "io": 500,
    "internal": 500,
}
