"""Takes container files apart and builds lying ones with valid checksums."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

HEAD = struct.Struct("<8s4H3QI2H12sI")
PARAM = struct.Struct("<2HIQ")
SECTION = struct.Struct("<2I2Q2I")

CAPACITY, FPR, NUM_BITS, NUM_HASHES, LAYOUT, COUNT, GROWTH, TIGHTENING, STRICT, SCHEME = range(1, 11)
KEY_DOMAINS = 93


def aligned(offset: int) -> int:
    """The next multiple of 64."""
    return -(-offset // 64) * 64


@dataclass
class File:
    """The fields of a file, free to be changed."""

    magic: bytes
    version: int
    variant: int
    scheme: int
    rule: int
    seed: int
    secret: int
    length: int
    flags: int
    num_params: int
    num_sections: int
    reserved: bytes
    params: list[tuple[int, int, int, int]] = field(default_factory=list)
    sections: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    payload: bytes = b""

    @classmethod
    def parse(cls, data: bytes) -> File:
        """Take a sound file apart."""
        head = HEAD.unpack_from(data)
        instance = cls(*head[:-1])
        at = HEAD.size
        instance.params = [PARAM.unpack_from(data, at + 16 * i) for i in range(instance.num_params)]  # type: ignore[misc]
        at += 16 * instance.num_params
        instance.sections = [SECTION.unpack_from(data, at + 32 * i) for i in range(instance.num_sections)]  # type: ignore[misc]
        instance.payload = data[aligned(at + 32 * instance.num_sections) :]
        return instance

    def set(self, tag: int, value: int, index: int = 0) -> None:
        """Change a parameter."""
        self.params = [
            (t, i, r, value % 2**64 if (t, i) == (tag, index) else v) for t, i, r, v in self.params
        ]

    def without_domains(self) -> bytes:
        """The file with an empty record of key domains: ready hashes do not show theirs."""
        for index in {index for tag, index, _, _ in self.params if tag == KEY_DOMAINS}:
            self.set(KEY_DOMAINS, 0, index)
        return self.build()

    def set_float(self, tag: int, value: float, index: int = 0) -> None:
        """Change a float parameter."""
        self.set(tag, struct.unpack("<Q", struct.pack("<d", value))[0], index)

    def start(self, section: int) -> int:
        """Where a section starts within the payload; 0 for one that lies outside of it."""
        head = aligned(HEAD.size + PARAM.size * len(self.params) + SECTION.size * len(self.sections))
        start = self.sections[section][2] - head
        return start if 0 <= start <= len(self.payload) else 0

    def move_sections(self, original: bytes) -> File:
        """After parameters went or came: the sections where they now are, and the length of it all."""
        before, head = File.parse(original), HEAD.size + PARAM.size * len(self.params)
        head = aligned(head + SECTION.size * len(self.sections))
        self.sections = [
            (kind, index, head + before.start(i), length, crc, rest)
            for i, (kind, index, _, length, crc, rest) in enumerate(before.sections)
        ]
        self.length = head + len(self.payload)
        return self

    def build(self, *, fix_payload_crc: bool = True) -> bytes:
        """The file with valid checksums, whatever its fields say."""
        if fix_payload_crc:
            for i, (kind, index, offset, length, _, rest) in enumerate(self.sections):
                start = self.start(i)
                crc = zlib.crc32(self.payload[start : start + length])
                self.sections[i] = (kind, index, offset, length, crc, rest)
        fixed = (self.magic, self.version, self.variant, self.scheme, self.rule, self.seed, self.secret)
        counts = (self.length, self.flags, self.num_params, self.num_sections, self.reserved)
        tables = b"".join(PARAM.pack(*param) for param in self.params)
        tables += b"".join(SECTION.pack(*section) for section in self.sections)
        size = aligned(HEAD.size + len(tables))
        head = (HEAD.pack(*fixed, *counts, 0) + tables).ljust(size, b"\0")
        # The reader takes the length of the head from its counts, so a lying count moves the checksum.
        claimed = min(
            aligned(64 + 16 * self.num_params + 32 * self.num_sections), len(head) + len(self.payload)
        )
        crc = zlib.crc32((head + self.payload)[:claimed])
        return head[:60] + struct.pack("<I", crc) + head[64:] + self.payload
