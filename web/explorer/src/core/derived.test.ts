/** What the scenes read from files agrees with what the filters answer. */

import { type Filter, create, hashKey } from "fullbloom";
import { describe, expect, it } from "vitest";

import { Levels } from "./cascade.js";
import { Container, SECTION, bit, countOnes, crc32, readHeader } from "./container.js";
import { bitsOf, withShape } from "./filters.js";
import { decode, valueOf } from "./golomb.js";
import { columns, fastrange, mcg } from "./schemes.js";
import { CuckooTable, QuotientTable, findMoves } from "./tables.js";
import { Generations } from "./window.js";
import { build, clear, dissect, findFalsePositive, findSharing } from "./words.js";

const words = (start: number, length: number): string[] => Array.from({ length }, (_, i) => `word-${start + i}`);
const SEEDS = [0, 1, 77, 2 ** 40];

describe("filters of a chosen shape", () => {
  it("are opened by the core with that shape, for every small size", () => {
    for (let numBits = 8; numBits <= 130; numBits++) {
      for (const numHashes of [1, 3, 8, 14]) {
        const filter = withShape({ numBits, numHashes, seed: 5 });
        expect(filter.info()).toMatchObject({ num_bits: numBits, num_hashes: numHashes, layout: "classic", seed: 5, num_added: 0 });
        filter.free();
      }
    }
  });

  it("have the positions of scheme 1, and of scheme 2 when blocked", () => {
    for (const seed of SEEDS) {
      const classic = withShape({ numBits: 1000, numHashes: 7, seed });
      const blocked = withShape({ layout: "blocked", numBits: 512 * 9, numHashes: 8, seed });
      for (const word of words(0, 200)) {
        const hash = hashKey(word, { seed });
        expect(classic.positions(word)).toEqual([...new Set(mcg(hash, 1000, 7))]);
        const line = 512 * fastrange(hash, 9);
        const sorted = (positions: number[]): number[] => positions.sort((a, b) => a - b);
        expect(sorted(blocked.positions(word))).toEqual(sorted(columns(hash, 8).map((position) => line + position)));
      }
    }
  });

  it("hold the bits of their keys and no other", () => {
    const filter = withShape({ numBits: 100, numHashes: 3 });
    filter.addMany(words(0, 9));
    const bits = bitsOf(filter);
    const want = new Set(words(0, 9).flatMap((word) => filter.positions(word)));
    expect(Array.from({ length: 100 }, (_, i) => i).filter((i) => bit(bits, i))).toEqual([...want].sort((a, b) => a - b));
    expect(countOnes(bits)).toBe(want.size);
  });
});

describe("the container", () => {
  it("is refused as no filter when it has another beginning", () => {
    expect(readHeader(new Uint8Array(64))).toBeUndefined();
    expect(readHeader(new Uint8Array())).toBeUndefined();
    expect(() => new Container(new Uint8Array(100))).toThrow("no filter");
  });

  it("has the checksum of zlib", () => {
    expect(crc32(new TextEncoder().encode("123456789"))).toBe(0xcbf43926);
  });
});

describe("words", () => {
  const shape = { numBits: 32, numHashes: 3, seed: 2 };

  it("are those of the tutorial", () => {
    const filter = build(shape, ["cat", "dog"]);
    expect(filter.positions("cod")).toEqual([6, 19, 28]);
    expect([filter.has("cod"), filter.has("cow")]).toEqual([true, false]);
    const anatomy = dissect(filter, 2, ["cat", "dog"]);
    expect(anatomy.owners.get(19)).toEqual(["dog"]);
    expect(anatomy.owners.get(28)).toEqual(["cat"]);
  });

  it("are mistaken only where the filter says so", () => {
    const filter = build(shape, ["cat", "dog"]);
    const found = findFalsePositive(filter, ["cat", "dog"]);
    expect(found).toBeDefined();
    expect(filter.has(found ?? "")).toBe(true);
    expect(findFalsePositive(build({ ...shape, numBits: 128 }, []), [])).toBeUndefined();
  });

  it("are lost with the bits of others, exactly if they share one", () => {
    const seed = findSharing(shape, ["cat", "dog"]);
    const anatomy = dissect(build({ ...shape, seed }, ["cat", "dog"]), seed, ["cat", "dog"]);
    expect([...anatomy.owners.values()].some((owners) => owners.length === 2)).toBe(true);
    expect(clear({ ...shape, seed }, anatomy, "cat").lost).toEqual(["cat", "dog"]);
    const apart = dissect(build(shape, ["cat", "dog"]), 2, ["cat", "dog"]);
    expect(clear(shape, apart, "cat").lost).toEqual(["cat"]);
    expect(clear(shape, apart, "nobody").lost).toEqual([]);
  });
});

describe("cuckoo tables", () => {
  for (const [bucket_size, capacity] of [[1, 10], [2, 24], [4, 28], [4, 300]] as const) {
    it(`hold what the filter holds: ${capacity} keys, ${bucket_size} a bucket`, () => {
      const filter = create("cuckoo", { capacity, fpr: 0.05, bucket_size, seed: 3 });
      let [before, explained, kicked] = [new CuckooTable(filter), 0, 0];
      for (const [i, word] of words(0, capacity).entries()) {
        filter.add(word);
        const after = new CuckooTable(filter);
        const moves = findMoves(before, after, after.spot(hashKey(word, { seed: 3 })));
        expect(after.count + (after.stash === undefined ? 0 : 1)).toBe(i + 1);
        if (moves !== undefined) {
          explained++;
          kicked += moves.length - 1;
          moves.forEach((move) => { expect(after.buckets[move.to]?.[move.slot]).toBe(move.fingerprint); });
          moves.slice(1).forEach((move, i) => { expect(move.from).toBe(moves[i]?.to); });
        }
        before = after;
      }
      expect(explained).toBeGreaterThan(0.9 * capacity);
      if (bucket_size === 4) expect(kicked).toBeGreaterThanOrEqual(0);
      for (const word of words(0, 3000)) {
        expect(before.holds(before.spot(hashKey(word, { seed: 3 })))).toBe(filter.has(word));
      }
    });
  }

  it("push each other out when they are crowded", () => {
    const filter = create("cuckoo", { capacity: 12, fpr: 0.1, bucket_size: 2 });
    let [before, longest] = [new CuckooTable(filter), 0];
    for (const word of words(0, 40)) {
      try {
        filter.add(word);
      } catch {
        break;
      }
      const after = new CuckooTable(filter);
      longest = Math.max(longest, findMoves(before, after, after.spot(hashKey(word)))?.length ?? 0);
      before = after;
    }
    expect(longest).toBeGreaterThan(1);
  });
});

describe("quotient tables", () => {
  for (const seed of SEEDS) {
    it(`hold what the filter holds, also past the last slot: seed ${seed}`, () => {
      const filter = create("quotient", { capacity: 56, fpr: 0.1, seed });
      for (const [i, word] of words(0, 56).entries()) {
        filter.add(word);
        const table = new QuotientTable(filter);
        expect(table.slots).toHaveLength(i + 1);
        const want = words(0, i + 1).map((one) => table.split(hashKey(one, { seed })));
        const sorted = (slots: readonly { quotient: number; remainder: number }[]): string[] =>
          slots.map(({ quotient, remainder }) => `${quotient} ${remainder}`).sort();
        expect(sorted(table.slots)).toEqual(sorted(want));
      }
      const table = new QuotientTable(filter);
      for (const word of words(0, 2000)) expect(table.holds(hashKey(word, { seed }))).toBe(filter.has(word));
    });
  }
});

describe("Golomb codes", () => {
  it("decode to the values of the keys", () => {
    for (const [keys, fpr, seed] of [[1, 0.5, 0], [40, 0.05, 1], [128, 0.001, 9], [100, 0.9, 4]] as const) {
      const set = create("golomb", { keys: words(0, keys), fpr, seed });
      const { codes, universe, bits } = decode(set);
      const values = new Set(words(0, keys).map((word) => valueOf(hashKey(word, { seed }), universe)));
      expect(codes.map((code) => code.value)).toEqual([...values].sort((a, b) => a - b));
      expect(codes.reduce((sum, code) => sum + code.unary.length + code.remainder.length, 0)).toBe(bits);
      for (const word of words(0, 1000)) expect(values.has(valueOf(hashKey(word, { seed }), universe))).toBe(set.has(word));
    }
  });
});

describe("cascades", () => {
  it("are walked as the filter walks them, whichever set is smaller", () => {
    for (const [included, excluded, seed] of [[50, 1000, 0], [1000, 50, 3], [200, 200, 8]] as const) {
      const cascade = create("cascade", { included: words(0, included), excluded: words(included, excluded), seed });
      const levels = new Levels(cascade);
      for (const [i, word] of words(0, included + excluded).entries()) {
        expect(cascade.has(word)).toBe(i < included);
        expect(levels.includes(hashKey(word, { seed }))).toBe(i < included);
      }
      for (const word of words(1e6, 500)) expect(levels.includes(hashKey(word, { seed }))).toBe(cascade.has(word));
    }
  });
});

describe("windows", () => {
  for (const [kind, more] of [["rolling", { generations: 3 }], ["rolling", { generations: 5 }], ["aging", {}]] as const) {
    it(`find a key in some plane exactly if the filter finds it: ${kind} ${JSON.stringify(more)}`, () => {
      const filter: Filter = create(kind, { capacity: 40, fpr: 0.02, seed: 6, ...more });
      for (const word of words(0, 300)) {
        filter.add(word);
        const window = new Generations(filter);
        expect(window.find(hashKey(word, { seed: 6 }))).toContain(window.active);
      }
      const window = new Generations(filter);
      for (const word of words(0, 1000)) {
        expect(window.find(hashKey(word, { seed: 6 })).length > 0).toBe(filter.has(word));
      }
      const fills = Array.from({ length: window.planes }, (_, i) => window.fill(i));
      const mean = fills.reduce((sum, fill) => sum + fill, 0) / window.planes;
      expect(mean).toBeCloseTo((filter.info() as { fill: number }).fill, 10);
    });
  }
});

describe("a growing filter", () => {
  it("has its stages in its file", () => {
    const filter = create("scalable", { initial_capacity: 100, fpr: 0.01 });
    filter.addMany(words(0, 2000));
    const file = new Container(filter.toBytes());
    const { stages } = filter.info() as { stages: number };
    expect(stages).toBeGreaterThan(3);
    const ones = Array.from({ length: stages }, (_, i) => countOnes(file.section(SECTION.bits, i)));
    expect(ones.every((set) => set > 0)).toBe(true);
    expect(file.section(SECTION.bits, stages)).toHaveLength(0);
  });
});
