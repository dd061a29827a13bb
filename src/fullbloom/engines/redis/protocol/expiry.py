"""Sets when a new string expires, unless it has other cells by now, which expire at another moment."""

from __future__ import annotations

from fullbloom.engines.redis.protocol import Steps, call, try_script
from fullbloom.engines.redis.protocol.manifest import Manifest, make_expiry_command

#: Sets the time to live, unless the tag at the end has a generation after ARGV[1].
_SET_EXPIRY = (
    b"local tag = redis.call('GETRANGE', KEYS[1], -16, -1) "
    b"if #tag == 16 and struct.unpack('<I4', tag, 9) > tonumber(ARGV[1]) then return 0 end "
    b"return redis.call(ARGV[2], KEYS[1], ARGV[3])"
)


def set_expiry(key: bytes, manifest: Manifest) -> Steps[None]:
    """Set the final time to live of a string that was created in the generation of ``manifest``.

    A client that was paused before this would set the end of a ttl that a clear has started again since.
    """
    command = make_expiry_command(manifest)
    if (
        not manifest.ttl
        or (yield from try_script(_SET_EXPIRY, (key,), manifest.generation, *command)) is None
    ):
        yield from call(key, command[0], key, *command[1:])
