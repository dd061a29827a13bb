/** The levels of a cascade, read from its file, as `docs/filters/cascade.md` describes them. */

import type { Filter } from "fullbloom";

import { Container, SECTION, bit } from "./container.js";
import { levelHash, mcg } from "./schemes.js";

/** A level: where its bits are among those of all, how many, and how many a key probes. */
export interface Level {
  readonly start: number;
  readonly numBits: number;
  readonly numHashes: number;
}

/** A cascade whose levels are bits of one section. */
export class Levels {
  readonly levels: readonly Level[];
  /** True if the first level is over the included keys. */
  readonly includedFirst: boolean;
  readonly #bits: Uint8Array;

  constructor(filter: Filter) {
    const info = filter.info() as Record<string, number>;
    const file = new Container(filter.toBytes());
    const rows = file.section(SECTION.levels);
    this.#bits = file.section(SECTION.bits);
    const view = new DataView(rows.buffer, rows.byteOffset, rows.length);
    let start = 0;
    this.levels = Array.from({ length: info["num_levels"] ?? 0 }, (_, i) => {
      const row = view.getBigUint64(8 * i, true);
      const level = { start, numBits: Number(row & ((1n << 48n) - 1n)), numHashes: Number(row >> 48n) };
      start += level.numBits;
      return level;
    });
    this.includedFirst = (info["num_included"] ?? 0) <= (info["num_excluded"] ?? 0);
  }

  /** Whether each level takes the hash, up to the first that does not. */
  walk(hash: bigint): boolean[] {
    const taken: boolean[] = [];
    for (const [i, { start, numBits, numHashes }] of this.levels.entries()) {
      const takes = mcg(levelHash(hash, i), numBits, numHashes).every((position) => bit(this.#bits, start + position));
      taken.push(takes);
      if (!takes) break;
    }
    return taken;
  }

  /** Whether the walk ends on the side of the included keys. */
  includes(hash: bigint): boolean {
    const odd = this.walk(hash).filter(Boolean).length % 2 === 1;
    return odd === this.includedFirst;
  }
}
