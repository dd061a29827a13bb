/** What a small filter of words holds, word by word. */

import { type Filter, hashKey } from "fullbloom";

import { candidates } from "../words.js";
import { bitsOf, using, withShape } from "./filters.js";

/** A word in the filter. */
export interface Member {
  readonly word: string;
  readonly hash: bigint;
  readonly positions: readonly number[];
}

/** A filter of words, looked into. */
export interface Anatomy {
  readonly members: readonly Member[];
  readonly bits: Uint8Array;
  /** The words that set a bit, by its position. */
  readonly owners: ReadonlyMap<number, readonly string[]>;
}

/** The shape of the filter of a scene. */
export interface SmallShape {
  readonly numBits: number;
  readonly numHashes: number;
  readonly seed: number;
}

/** The filter of these words; the caller frees it. */
export function build(shape: SmallShape, words: readonly string[]): Filter {
  const filter = withShape(shape);
  filter.addMany(words);
  return filter;
}

/** What the filter of these words looks like inside. */
export function dissect(filter: Filter, seed: number, words: readonly string[]): Anatomy {
  const members = words.map((word) => ({ word, hash: hashKey(word, { seed }), positions: filter.positions(word) }));
  const owners = new Map<number, string[]>();
  for (const { word, positions } of members) {
    for (const position of new Set(positions)) owners.set(position, [...(owners.get(position) ?? []), word]);
  }
  return { members, bits: bitsOf(filter), owners };
}

/** A word that the filter takes for one of its own; `undefined` if none of the candidates is. */
export function findFalsePositive(filter: Filter, words: readonly string[]): string | undefined {
  const known = new Set(words);
  for (const word of candidates()) if (!known.has(word) && filter.has(word)) return word;
  return undefined;
}

/** The first seed from `seed` on with which two of the words share a bit; `seed` itself if none of 200 does. */
export function findSharing(shape: SmallShape, words: readonly string[]): number {
  for (let seed = shape.seed; seed < shape.seed + 200; seed++) {
    const shares = using(withShape({ ...shape, seed }), (filter) => {
      const seen = new Set<number>();
      return words.some((word) => {
        const own = new Set(filter.positions(word));
        const meets = [...own].some((position) => seen.has(position));
        own.forEach((position) => seen.add(position));
        return meets;
      });
    });
    if (shares) return seed;
  }
  return shape.seed;
}

/** The words that are no longer found once the bits of `gone` are cleared: the library's answers, from cleared bits. */
export function clear(shape: SmallShape, anatomy: Anatomy, gone: string): { bits: Uint8Array; lost: string[] } {
  const bits = anatomy.bits.slice();
  const member = anatomy.members.find(({ word }) => word === gone);
  for (const position of member?.positions ?? []) bits[position >> 3] = (bits[position >> 3] ?? 0) & ~(1 << (position & 7));
  const words = anatomy.members.map(({ word }) => word);
  const lost = using(withShape({ ...shape, bits, count: words.length }), (filter) => {
    const found = filter.hasMany(words);
    return words.filter((_, i) => found[i] === false);
  });
  return { bits, lost };
}
