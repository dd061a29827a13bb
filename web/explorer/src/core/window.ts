/** The generations of a window, read from its file: planes of lines side by side, a key with the same bits in each. */

import type { Filter } from "fullbloom";

import { Container, SECTION, TAG, bit, countOnes } from "./container.js";
import { columns, fastrange } from "./schemes.js";

const LINE_BYTES = 64;

/** The planes of a window. */
export class Generations {
  readonly planes: number;
  readonly lines: number;
  readonly numHashes: number;
  /** The plane that takes new keys. */
  readonly active: number;
  /** Keys that were written to each plane. */
  readonly written: readonly number[];
  readonly #bytes: Uint8Array;

  constructor(filter: Filter) {
    const file = new Container(filter.toBytes());
    this.planes = file.parameter(TAG.planes);
    this.lines = file.parameter(TAG.lines);
    this.numHashes = file.parameter(TAG.numHashes);
    this.active = file.parameter(TAG.active);
    this.written = Array.from({ length: this.planes }, (_, i) => file.parameter(TAG.count, i));
    this.#bytes = file.section(SECTION.planes);
  }

  /** The planes that hold a hash. */
  find(hash: bigint): number[] {
    const slot = fastrange(hash, this.lines);
    const positions = columns(hash, this.numHashes);
    return Array.from({ length: this.planes }, (_, plane) => plane).filter((plane) => {
      const line = this.#line(slot, plane);
      return positions.every((position) => bit(line, position));
    });
  }

  /** The share of set bits of a plane. */
  fill(plane: number): number {
    let ones = 0;
    for (let slot = 0; slot < this.lines; slot++) ones += countOnes(this.#line(slot, plane));
    return ones / (this.lines * LINE_BYTES * 8);
  }

  /** The bits of a plane, line by line. */
  bits(plane: number): Uint8Array {
    const bytes = new Uint8Array(this.lines * LINE_BYTES);
    for (let slot = 0; slot < this.lines; slot++) bytes.set(this.#line(slot, plane), slot * LINE_BYTES);
    return bytes;
  }

  #line(slot: number, plane: number): Uint8Array {
    const start = (slot * this.planes + plane) * LINE_BYTES;
    return this.#bytes.subarray(start, start + LINE_BYTES);
  }
}
