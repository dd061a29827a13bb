"""Keccak-256 as Ethereum uses it, from its specification."""

from __future__ import annotations

RATE = 136
MASK = 2**64 - 1


def _rotated(lane: int, by: int) -> int:
    by %= 64
    return (lane << by | lane >> (64 - by)) & MASK


def _list_constants() -> list[int]:
    """Return the round constants, from the shift register of the specification."""
    register, constants = 1, []
    for _ in range(24):
        constant = 0
        for j in range(7):
            if register & 1:
                constant |= 1 << (2**j - 1)
            register <<= 1
            if register & 0x100:
                register ^= 0x171
        constants.append(constant)
    return constants


CONSTANTS = _list_constants()


def _permute(lanes: list[list[int]]) -> None:
    for constant in CONSTANTS:
        parity = [lanes[x][0] ^ lanes[x][1] ^ lanes[x][2] ^ lanes[x][3] ^ lanes[x][4] for x in range(5)]
        for x in range(5):
            change = parity[(x - 1) % 5] ^ _rotated(parity[(x + 1) % 5], 1)
            for y in range(5):
                lanes[x][y] ^= change
        x, y, moving = 1, 0, lanes[1][0]
        for t in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            moving, lanes[x][y] = lanes[x][y], _rotated(moving, (t + 1) * (t + 2) // 2)
        for y in range(5):
            row = [lanes[x][y] for x in range(5)]
            for x in range(5):
                lanes[x][y] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5] & MASK)
        lanes[0][0] ^= constant


def keccak256(data: bytes | bytearray) -> bytes:
    """Return the 32 bytes of the hash."""
    padded = bytearray(data) + bytes(RATE - len(data) % RATE)
    padded[len(data)] |= 0x01
    padded[-1] |= 0x80
    lanes = [[0] * 5 for _ in range(5)]
    for start in range(0, len(padded), RATE):
        for i in range(RATE // 8):
            at = start + 8 * i
            lanes[i % 5][i // 5] ^= int.from_bytes(padded[at : at + 8], "little")
        _permute(lanes)
    return b"".join(lanes[x][0].to_bytes(8, "little") for x in range(4))
