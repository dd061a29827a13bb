"""The bits of an index as a matrix of rows, read from the bytes of its file."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from fullbloom import SignatureIndex

SIGNATURES, LINE = 120, 64


def read_signatures(index: SignatureIndex) -> npt.NDArray[np.uint64]:
    """Return a row of 64-bit words for each row of an index of rank 0: the same bits, row by row."""
    data, (num_bits,) = index.to_bytes(), index.num_bits
    params, sections = struct.unpack_from("<HH", data, 44)
    block_rows = index.info()["block_rows"]
    words = -(-num_bits // 64)
    out = np.zeros((len(index), words), dtype=np.uint64)
    for i in range(sections):
        kind, number, offset, length = struct.unpack_from("<IIQQ", data, 64 + 16 * params + 32 * i)
        if kind != SIGNATURES:
            continue
        slices = np.frombuffer(data, np.uint8, length, offset).reshape(-1, block_rows // 8)[:num_bits]
        bits = np.unpackbits(slices, axis=1, bitorder="little").T
        packed = np.packbits(bits, axis=1, bitorder="little")
        rows = np.zeros((block_rows, 8 * words), dtype=np.uint8)
        rows[:, : packed.shape[1]] = packed
        first = number * block_rows
        part = out[first : first + block_rows]
        part[:] = rows.view(np.uint64)[: len(part)]
    return out


def signature_of(index: SignatureIndex, query: list[int]) -> npt.NDArray[np.uint64]:
    """Return the signature of ``query`` as words."""
    signature = np.zeros(-(-index.num_bits[0] // 64), dtype=np.uint64)
    for _, row in index.positions(query):
        signature[row // 64] |= np.uint64(1 << (row % 64))
    return signature
