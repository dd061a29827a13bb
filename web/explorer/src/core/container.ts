/** The container of a filter, read and written byte by byte as `docs/format.md` describes it. */

const MAGIC = [0x89, 0x42, 0x4c, 0x4f, 0x4f, 0x4d, 0x0d, 0x0a];
const HEADER = 64;

/** Tags of parameters that scenes read. */
export const TAG = {
  capacity: 1,
  fpr: 2,
  numBits: 3,
  numHashes: 4,
  layout: 5,
  count: 6,
  strict: 9,
  scheme: 10,
  active: 42,
  lines: 40,
  planes: 41,
  stashFingerprint: 54,
  stashBucket: 55,
  riceBits: 77,
  codeBits: 78,
  keyDomains: 93,
} as const;

/** Kinds of sections that scenes read. */
export const SECTION = {
  bits: 1,
  counters: 20,
  planes: 40,
  fingerprints: 50,
  quotientBits: 60,
  quotientOffsets: 61,
  quotientSlots: 62,
  codes: 73,
  levels: 77,
} as const;

/** Tags whose value is a binary64. */
const FLOATS: ReadonlySet<number> = new Set([2, 7, 8, 12, 13, 44, 45]);

/** What a header says. */
export interface Header {
  readonly version: number;
  readonly variant: number;
  readonly scheme: number;
  readonly seed: bigint;
  /** 0 of a filter without a secret. */
  readonly fingerprint: bigint;
  /** Of the whole file, in bytes. */
  readonly length: number;
  readonly parameters: number;
  readonly sections: number;
}

/** The header in the first 64 bytes; `undefined` for what is no filter. */
export function readHeader(bytes: Uint8Array): Header | undefined {
  if (bytes.length < HEADER || MAGIC.some((byte, i) => bytes[i] !== byte)) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return {
    version: view.getUint16(8, true),
    variant: view.getUint16(10, true),
    scheme: view.getUint16(12, true),
    seed: view.getBigUint64(16, true),
    fingerprint: view.getBigUint64(24, true),
    length: Number(view.getBigUint64(32, true)),
    parameters: view.getUint16(44, true),
    sections: view.getUint16(46, true),
  };
}

/** A file, in parts. */
export class Container {
  readonly header: Header;
  readonly #parameters = new Map<string, number>();
  readonly #sections = new Map<string, Uint8Array>();

  /** Reads a file that the core has checked. */
  constructor(bytes: Uint8Array) {
    const header = readHeader(bytes);
    if (header === undefined) throw new Error("the bytes are no filter");
    this.header = header;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    let at = HEADER;
    for (let i = 0; i < header.parameters; i++, at += 16) {
      const tag = view.getUint16(at, true);
      const value = FLOATS.has(tag) ? view.getFloat64(at + 8, true) : Number(view.getBigUint64(at + 8, true));
      this.#parameters.set(`${view.getUint16(at + 2, true)} ${tag}`, value);
    }
    for (let i = 0; i < header.sections; i++, at += 32) {
      const offset = Number(view.getBigUint64(at + 8, true));
      const length = Number(view.getBigUint64(at + 16, true));
      const key = `${view.getUint32(at + 4, true)} ${view.getUint32(at, true)}`;
      this.#sections.set(key, bytes.subarray(offset, offset + length));
    }
  }

  /** A parameter; 0 where the file has none. */
  parameter(tag: number, index = 0): number {
    return this.#parameters.get(`${index} ${tag}`) ?? 0;
  }

  /** True of a parameter that the file has. */
  has(tag: number, index = 0): boolean {
    return this.#parameters.has(`${index} ${tag}`);
  }

  /** The bytes of a section; none where the file has no such section. */
  section(kind: number, index = 0): Uint8Array {
    return this.#sections.get(`${index} ${kind}`) ?? new Uint8Array();
  }
}

/** True if bit `i` is set. */
export function bit(bytes: Uint8Array, i: number): boolean {
  return (((bytes[i >> 3] ?? 0) >> (i & 7)) & 1) === 1;
}

/** The number in `width` bits from bit `start` on, at most 53. */
export function field(bytes: Uint8Array, start: number, width: number): number {
  let value = 0;
  for (let i = 0; i < width; i++) if (bit(bytes, start + i)) value += 2 ** i;
  return value;
}

/** Number of set bits. */
export function countOnes(bytes: Uint8Array): number {
  let ones = 0;
  for (let byte of bytes) {
    for (; byte !== 0; byte &= byte - 1) ones++;
  }
  return ones;
}

const CRC = Uint32Array.from({ length: 256 }, (_, i) => {
  for (let j = 0; j < 8; j++) i = (i >>> 1) ^ (i & 1 ? 0xedb88320 : 0);
  return i >>> 0;
});

/** CRC-32 of zlib. */
export function crc32(...parts: readonly Uint8Array[]): number {
  let crc = 0xffffffff;
  for (const part of parts) for (const byte of part) crc = (crc >>> 8) ^ (CRC[(crc ^ byte) & 255] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}

/** The shape of a Bloom filter. */
export interface Shape {
  /** `classic` unless given; `blocked` takes a multiple of 512 bits and of 4 hash functions. */
  readonly layout?: "classic" | "blocked";
  readonly numBits: number;
  readonly numHashes: number;
  /** Keys and rate that the filter states; they do not change its answers. */
  readonly capacity: number;
  readonly fpr: number;
  readonly seed?: number | bigint;
  /** Keys in it, and its bits from bit 0 on; none unless given. */
  readonly count?: number;
  readonly bits?: Uint8Array;
}

/** The file of a Bloom filter of this shape, whose keys are text. */
export function writeBloom(shape: Shape): Uint8Array {
  const count = shape.count ?? 0;
  const layout = shape.layout === "blocked" ? 2 : 1;
  const parameters: readonly (readonly [number, number])[] = [
    [TAG.keyDomains, count > 0 ? 1 : 0],
    [TAG.capacity, shape.capacity],
    [TAG.fpr, shape.fpr],
    [TAG.layout, layout],
    [TAG.scheme, layout],
    [TAG.numBits, shape.numBits],
    [TAG.numHashes, shape.numHashes],
    [TAG.count, count],
    [TAG.strict, 0],
  ];
  const tables = HEADER + 16 * parameters.length + 32;
  const start = 64 * Math.ceil(tables / 64);
  const length = 64 * Math.ceil(shape.numBits / 512);
  const bytes = new Uint8Array(start + length);
  bytes.set(MAGIC);
  if (shape.bits !== undefined) bytes.set(shape.bits, start);
  const view = new DataView(bytes.buffer);
  [1, 1, layout, 1].forEach((value, i) => { view.setUint16(8 + 2 * i, value, true); });
  view.setBigUint64(16, BigInt(shape.seed ?? 0), true);
  view.setBigUint64(32, BigInt(bytes.length), true);
  view.setUint16(44, parameters.length, true);
  view.setUint16(46, 1, true);
  let at = HEADER;
  for (const [tag, value] of parameters) {
    view.setUint16(at, tag, true);
    if (FLOATS.has(tag)) view.setFloat64(at + 8, value, true);
    else view.setBigUint64(at + 8, BigInt(value), true);
    at += 16;
  }
  view.setUint32(at, SECTION.bits, true);
  view.setBigUint64(at + 8, BigInt(start), true);
  view.setBigUint64(at + 16, BigInt(length), true);
  view.setUint32(at + 24, crc32(bytes.subarray(start)), true);
  view.setUint32(60, crc32(bytes.subarray(0, 60), new Uint8Array(4), bytes.subarray(64, start)), true);
  return bytes;
}
