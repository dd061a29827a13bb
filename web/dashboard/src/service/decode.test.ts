import { describe, expect, it } from "vitest";

import { DecodeError, amount, list, nullable, number, object, record, text, time } from "./decode";
import { history, page, positions, tokens } from "./types";

it("takes what it expects, and leaves out other members", () => {
  const decode = object<{ a: number; b: string[]; c: number | null }>({ a: number, b: list(text), c: nullable(number) });
  expect(decode({ a: 1, b: ["x"], more: {} })).toEqual({ a: 1, b: ["x"], c: null });
  expect(record(number)({ x: 1 })).toEqual({ x: 1 });
});

it.each([null, undefined, 1, "text", [], {}, { filters: {} }, { filters: [null] }, { filters: [{ name: "x" }] }, { filters: [], total: "1" }])(
  "refuses %j as a page of filters",
  (value) => {
    expect(() => page(value)).toThrow(DecodeError);
  },
);

describe("whatever a strange server sends", () => {
  it("a number is finite", () => {
    for (const body of ["1e999", "-1e999"]) expect(() => number(JSON.parse(body))).toThrow(DecodeError);
  });

  it("what is plotted or dated has a bound", () => {
    for (const value of [-1, 1e31, Infinity, NaN]) expect(() => amount(value)).toThrow(DecodeError);
    for (const value of [-1, 8.64e15 + 1, 1e300]) expect(() => time(value)).toThrow(DecodeError);
    expect([amount(0), amount(2 ** 64), time(1.8e12)]).toEqual([0, 2 ** 64, 1.8e12]);
    const sample = { sampled_at: 1, estimated_items: 1, fpr_estimate: 0.1, fill: null, hits: 0, misses: 0, adds: 0, new: 0, removed: 0 };
    expect(history({ samples: [sample] }).samples).toHaveLength(1);
    for (const wrong of [{ sampled_at: 1e300 }, { adds: 1e300 }, { estimated_items: -5 }, { fpr_estimate: 1e9 }]) {
      expect(() => history({ samples: [{ ...sample, ...wrong }] })).toThrow(DecodeError);
    }
  });

  it("a text is Unicode, so that it can be part of an address", () => {
    expect(text("a\ud800b\udc00")).toBe("a\ufffdb\ufffd");
    expect(text("😀")).toBe("😀");
    expect(Object.keys(record(number)({ "x\ud800": 1 }))).toEqual(["x\ufffd"]);
  });

  it("a list is no longer than what was asked for", () => {
    expect(() => page({ filters: new Array(51).fill(null) })).toThrow(/more than 50/);
    expect(() => positions({ positions: new Array(20_000).fill(1) })).toThrow(DecodeError);
    expect(() => tokens({ tokens: new Array(100_001).fill(null) })).toThrow(DecodeError);
    const members = Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [String(i), 1]));
    expect(() => record(number)(members)).toThrow(DecodeError);
  });
});
