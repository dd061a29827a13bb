/**
 * From a hash to positions, as `docs/schemes.md` and the pages of the filters say it. The scenes use it where the filter
 * itself does not show where its cells are; tests compare it with the filter's own answers.
 */

const WORD = (1n << 64n) - 1n;
const M1 = 0xd1342543de82ef95n;
const M2 = 0xaf251af3b0f025b5n;
const STEP = 0x9e3779b97f4a7c15n;

/** The high 64 bits of a product. */
export function fastrange(hash: bigint, range: number | bigint): number {
  return Number((hash * BigInt(range)) >> 64n);
}

/** Product modulo 2^64. */
export function times(a: bigint, b: bigint): bigint {
  return (a * b) & WORD;
}

/** The finalizer of SplitMix64. */
export function mix(hash: bigint): bigint {
  let x = times(hash ^ (hash >> 30n), 0xbf58476d1ce4e5b9n);
  x = times(x ^ (x >> 27n), 0x94d049bb133111ebn);
  return x ^ (x >> 31n);
}

/** The hash of level number `level` of a cascade. */
export function levelHash(hash: bigint, level: number): bigint {
  return mix((hash + BigInt(level + 1) * STEP) & WORD);
}

/** Scheme 1. */
export function mcg(hash: bigint, numBits: number, numHashes: number): number[] {
  const positions: number[] = [];
  for (let i = 0; i < numHashes; i++) {
    positions.push(fastrange(hash, numBits));
    hash = times(hash, M1);
  }
  return positions;
}

/** Scheme 2 within one line: `numHashes` of its 512 bits. */
export function columns(hash: bigint, numHashes: number): number[] {
  const [g, h] = [times(hash, M1), times(hash, M2)];
  const field = (word: bigint, shift: number): number => Number((word >> BigInt(shift)) & 127n);
  const positions: number[] = [];
  for (let j = 0; j < 4; j++) {
    const first = field(g, 57 - 7 * j);
    const second = Math.max(field(g, 29 - 7 * j), 1);
    const e = 1 + Math.min(field(h, 57 - 7 * j), 125);
    for (const step of [0, second, e + (e >= second ? 1 : 0)].slice(0, numHashes / 4)) {
      const p = first ^ step;
      positions.push(64 * (p < 64 ? j : j + 4) + (p % 64));
    }
  }
  return positions;
}
