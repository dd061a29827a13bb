/**
 * What is inside of tables of fingerprints, read from their files: buckets and moves of a cuckoo filter, runs of a
 * quotient filter. The pages of the filters in `docs/filters` give the rules.
 */

import type { Filter } from "fullbloom";

import { Container, SECTION, TAG, bit, field } from "./container.js";
import { fastrange, times } from "./schemes.js";

const CUCKOO_FINGERPRINT = 0x9e3779b97f4a7c15n;
const CUCKOO_SPREAD = 0xd6e8feb86659fd93n;

/** A fingerprint and its two buckets. */
export interface Spot {
  readonly fingerprint: number;
  readonly first: number;
  readonly second: number;
}

/** The table of a cuckoo filter. */
export class CuckooTable {
  /** Fingerprints, bucket by bucket; 0 is a free slot. */
  readonly buckets: readonly (readonly number[])[];
  /** The fingerprint that found no slot, and one of its buckets. */
  readonly stash: { readonly fingerprint: number; readonly bucket: number } | undefined;
  readonly width: number;

  constructor(filter: Filter) {
    const { num_buckets: count, bucket_size: size, fingerprint_bits: width } = filter.info() as Record<string, number>;
    const file = new Container(filter.toBytes());
    const bytes = file.section(SECTION.fingerprints);
    const [n, slots, bits] = [count ?? 0, size ?? 0, width ?? 0];
    this.width = bits;
    this.buckets = Array.from({ length: n }, (_, i) =>
      Array.from({ length: slots }, (_, j) => field(bytes, (i * slots + j) * bits, bits)),
    );
    const fingerprint = file.parameter(TAG.stashFingerprint);
    this.stash = fingerprint === 0 ? undefined : { fingerprint, bucket: file.parameter(TAG.stashBucket) };
  }

  /** The places of a hash. */
  spot(hash: bigint): Spot {
    const fingerprint = 1 + fastrange(times(hash, CUCKOO_FINGERPRINT), 2 ** this.width - 1);
    const first = fastrange(hash, this.buckets.length);
    return { fingerprint, first, second: this.other(fingerprint, first) };
  }

  /** The other bucket of a fingerprint. */
  other(fingerprint: number, bucket: number): number {
    const n = this.buckets.length;
    return (fastrange(times(BigInt(fingerprint), CUCKOO_SPREAD), n) - bucket + n) % n;
  }

  /** True if the table holds the fingerprint of a spot. */
  holds({ fingerprint, first, second }: Spot): boolean {
    const found = [first, second].some((bucket) => this.buckets[bucket]?.includes(fingerprint));
    const stashed = this.stash?.fingerprint === fingerprint && [first, second].includes(this.stash.bucket);
    return found || stashed;
  }

  /** Number of fingerprints, without the stash. */
  get count(): number {
    return this.buckets.flat().filter((fingerprint) => fingerprint !== 0).length;
  }
}

/** A fingerprint was put into a slot; `from` is the bucket that it left. */
export interface Move {
  readonly fingerprint: number;
  readonly from?: number;
  readonly to: number;
  readonly slot: number;
}

/**
 * The moves that turned one table into the next, in order: the new fingerprint, the one it pushed out, and so on. A walk
 * that comes through one slot twice leaves no trace of the first time; then `undefined`.
 */
export function findMoves(before: CuckooTable, after: CuckooTable, spot: Spot): readonly Move[] | undefined {
  const changed = after.buckets.flatMap((slots, bucket) =>
    slots.flatMap((now, slot) => {
      const old = before.buckets[bucket]?.[slot] ?? 0;
      return now === old ? [] : [{ bucket, slot, old, now }];
    }),
  );
  const moves: Move[] = [];
  let [fingerprint, targets, from]: [number, readonly number[], number | undefined] = [spot.fingerprint, [spot.first, spot.second], undefined];
  while (changed.length > 0) {
    const at = changed.findIndex(({ bucket, now }) => now === fingerprint && targets.includes(bucket));
    const [found] = at < 0 ? [] : changed.splice(at, 1);
    if (found === undefined) return undefined;
    moves.push({ fingerprint, ...(from === undefined ? {} : { from }), to: found.bucket, slot: found.slot });
    if (found.old === 0) return changed.length === 0 ? moves : undefined;
    [fingerprint, from, targets] = [found.old, found.bucket, [after.other(found.old, found.bucket)]];
  }
  // The last one pushed out is in the stash.
  const stashed = after.stash?.fingerprint === fingerprint && moves.length > 0;
  return stashed ? moves : undefined;
}

/** A slot in use of a quotient filter. */
export interface Slot {
  readonly quotient: number;
  readonly remainder: number;
  readonly slot: number;
}

/** The table of a quotient filter of 64 slots. */
export class QuotientTable {
  readonly slots: readonly Slot[];
  readonly numSlots: number;
  readonly quotientBits: number;
  readonly remainderBits: number;
  readonly occupied: readonly boolean[];
  readonly runEnds: readonly boolean[];

  constructor(filter: Filter) {
    const info = filter.info() as Record<string, number>;
    const [q, r, n] = [info["quotient_bits"] ?? 0, info["remainder_bits"] ?? 0, info["num_slots"] ?? 0];
    const file = new Container(filter.toBytes());
    const [marks, slots, offsets] = [
      file.section(SECTION.quotientBits), file.section(SECTION.quotientSlots), file.section(SECTION.quotientOffsets),
    ];
    // For each 64 slots a word of occupied bits, then a word of run ends.
    const mark = (i: number, word: 0 | 1): boolean => bit(marks, 128 * Math.floor(i / 64) + 64 * word + (i % 64));
    [this.quotientBits, this.remainderBits, this.numSlots] = [q, r, n];
    this.occupied = Array.from({ length: n }, (_, i) => mark(i, 0));
    this.runEnds = Array.from({ length: n }, (_, i) => mark(i, 1));
    const found: Slot[] = [];
    let free = offsets[0] ?? 0;
    this.occupied.forEach((occupied, quotient) => {
      if (!occupied) return;
      free = Math.max(free, quotient);
      for (let ends = false; !ends; free++) {
        const slot = free % n;
        found.push({ quotient, remainder: field(slots, slot * r, r), slot });
        ends = this.runEnds[slot] ?? true;
      }
    });
    this.slots = found;
  }

  /** Quotient and remainder of a hash. */
  split(hash: bigint): { quotient: number; remainder: number } {
    const fingerprint = hash >> BigInt(64 - this.quotientBits - this.remainderBits);
    return {
      quotient: Number(fingerprint >> BigInt(this.remainderBits)),
      remainder: Number(fingerprint & ((1n << BigInt(this.remainderBits)) - 1n)),
    };
  }

  /** True if the table holds the fingerprint of a hash. */
  holds(hash: bigint): boolean {
    const { quotient, remainder } = this.split(hash);
    return this.slots.some((slot) => slot.quotient === quotient && slot.remainder === remainder);
  }
}
