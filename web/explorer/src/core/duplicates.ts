/** Single-shot duplicates: each machine sends its hashes once, in order and in few bits. */

import { create, hashKey } from "fullbloom";

import { valueOf } from "./golomb.js";
import { using } from "./filters.js";

export const MACHINES = 4;

/** What was sent, and what came of it. */
export interface Exchange {
  /** Keys of each machine. */
  readonly keys: readonly (readonly string[])[];
  /** Range of values; its quarters belong to the machines in order. */
  readonly universe: number;
  /** Bits that machine `from` sends to the owner of quarter `to`. */
  readonly bits: readonly (readonly number[])[];
  /** Values that more than one machine sent. */
  readonly candidates: number;
  /** Distinct keys that more than one machine has. */
  readonly duplicates: number;
  /** Keys that are asked about a second time, exactly, though only one machine has them. */
  readonly falsely: number;
}

/** Keys of the machines: each its own, and some that `shared` of the machines have. */
export function deal(own: number, shared: number): string[][] {
  return Array.from({ length: MACHINES }, (_, machine) => [
    ...Array.from({ length: own - shared }, (_, i) => `order-${machine}-${i}`),
    // Each shared key is on two machines, in turn.
    ...Array.from({ length: shared }, (_, i) => `order-both-${Math.floor(machine / 2)}-${i}`),
  ]);
}

/** Runs the exchange at a false-positive rate. */
export function exchange(keys: readonly (readonly string[])[], fpr: number): Exchange {
  const total = keys.reduce((sum, own) => sum + own.length, 0);
  const hashes = keys.map((own) => own.map((key) => hashKey(key)));
  let universe = 0;
  // Quarter by quarter: each message is a Golomb-coded set of the library, of one capacity, so that values agree.
  const bits = keys.map((own, machine) =>
    Array.from({ length: MACHINES }, (_, quarter) => {
      const part = own.filter((_, i) => Number((hashes[machine]?.[i] ?? 0n) >> 62n) === quarter);
      if (part.length === 0) return 0;
      // Gaps in one quarter of one machine's keys are longer by the number of machines than in all.
      const rice = Math.max(0, Math.floor(Math.log2((Math.LN2 * MACHINES) / fpr)));
      return using(create("golomb", { keys: part, capacity: total, fpr, rice_bits: rice }), (set) => {
        const info = set.info() as { universe: number; code_bits: number };
        universe = info.universe;
        return info.code_bits;
      });
    }),
  );
  const seen = new Map<number, Set<number>>();
  const owners = new Map<string, Set<number>>();
  keys.forEach((own, machine) => {
    own.forEach((key, i) => {
      const value = valueOf(hashes[machine]?.[i] ?? 0n, universe);
      seen.set(value, (seen.get(value) ?? new Set()).add(machine));
      owners.set(key, (owners.get(key) ?? new Set()).add(machine));
    });
  });
  const candidates = new Set([...seen].filter(([, machines]) => machines.size > 1).map(([value]) => value));
  const duplicates = [...owners.values()].filter((machines) => machines.size > 1).length;
  let falsely = 0;
  keys.forEach((own, machine) => {
    own.forEach((key, i) => {
      if ((owners.get(key)?.size ?? 0) === 1 && candidates.has(valueOf(hashes[machine]?.[i] ?? 0n, universe))) falsely++;
    });
  });
  return { keys, universe, bits, candidates: candidates.size, duplicates, falsely };
}
