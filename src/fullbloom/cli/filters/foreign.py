"""Opens files of other programs' filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from fullbloom.cli.options import ForeignOptions


def open_any(
    options: ForeignOptions, path: str, secret_file: str | None, *, verify: Literal["header", "full"]
) -> Any:
    """Open a filter's file of fullbloom's or of another program."""
    import fullbloom
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.secret import read_secret
    from fullbloom.formats import detect, open_foreign

    foreign = options.format or detect(path)
    if foreign is None:
        theirs = {
            "--key-type": options.key_type,
            "--num-bits": options.num_bits,
            "--num-hashes": options.num_hashes,
            "--order": options.order,
        }
        for name in (name for name, value in theirs.items() if value is not None):
            raise Refusal(f"{path}: is a file of fullbloom's; {name} is for those of other programs")
        return fullbloom.open(path, verify=verify, secret=read_secret(secret_file))
    return open_foreign(
        path,
        foreign,
        key_type=options.key_type,
        num_bits=options.num_bits,
        num_hashes=options.num_hashes,
        order=options.order,
    )
