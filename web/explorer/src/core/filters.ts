/** The filters of the scenes, made by the library. */

import { type Filter, open } from "fullbloom";

import { classicFpr } from "../theory.js";
import { Container, SECTION, type Shape, countOnes, writeBloom } from "./container.js";

/** An empty Bloom filter with exactly this shape, as `BloomFilter.with_shape` makes it in Python. */
export function withShape(shape: Omit<Shape, "capacity" | "fpr">): Filter {
  const capacity = Math.max(1, Math.round((shape.numBits * Math.LN2) / shape.numHashes));
  const fpr = Math.min(0.999, Math.max(1e-12, classicFpr(capacity, shape.numBits, shape.numHashes)));
  return open(writeBloom({ ...shape, capacity, fpr }));
}

/** The bits of a Bloom filter, from bit 0 on. */
export function bitsOf(filter: Filter): Uint8Array {
  return new Container(filter.toBytes()).section(SECTION.bits);
}

/** What a filter of a shape holds. */
export interface Contents {
  readonly bits: Uint8Array;
  readonly ones: number;
}

/** Its bits and how many are set. */
export function contents(filter: Filter): Contents {
  const bits = bitsOf(filter);
  return { bits, ones: countOnes(bits) };
}

/** Does something with a filter, and frees it. */
export function using<T>(filter: Filter, work: (filter: Filter) => T): T {
  try {
    return work(filter);
  } finally {
    filter.free();
  }
}
