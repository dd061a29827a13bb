/** The codes of a Golomb-coded set, read from its file, as `docs/filters/golomb.md` and its source describe them. */

import type { Filter } from "fullbloom";

import { Container, SECTION, TAG, bit, field } from "./container.js";
import { fastrange } from "./schemes.js";

/** One code. */
export interface Code {
  readonly value: number;
  /** Distance from the value before; the value itself of the first. */
  readonly gap: number;
  readonly unary: string;
  readonly remainder: string;
}

/** A set of at most 128 keys, which is one block. */
export interface Codes {
  readonly universe: number;
  readonly riceBits: number;
  /** Bits of all codes. */
  readonly bits: number;
  readonly codes: readonly Code[];
}

/** Decodes the one block of a small set: unary parts from the front, remainders from the end. */
export function decode(filter: Filter): Codes {
  const info = filter.info() as Record<string, number>;
  const file = new Container(filter.toBytes());
  const bytes = file.section(SECTION.codes);
  const [width, bits, keys] = [file.parameter(TAG.riceBits), file.parameter(TAG.codeBits), info["num_added"] ?? 0];
  const codes: Code[] = [];
  let [at, value] = [0, 0];
  for (let i = 0; i < keys; i++) {
    let zeros = 0;
    while (at < bits && !bit(bytes, at)) {
      zeros++;
      at++;
    }
    at++;
    const rest = field(bytes, bits - (i + 1) * width, width);
    const coded = zeros * 2 ** width + rest;
    const gap = i === 0 ? coded : coded + 1;
    value += gap;
    codes.push({ value, gap, unary: `${"0".repeat(zeros)}1`, remainder: width === 0 ? "" : rest.toString(2).padStart(width, "0") });
  }
  return { universe: info["universe"] ?? 0, riceBits: width, bits, codes };
}

/** The value of a hash in a universe of so many. */
export function valueOf(hash: bigint, universe: number): number {
  return fastrange(hash, universe);
}
