import { expect, it } from "vitest";

import { DecodeError, list, nullable, number, object, record, text } from "./decode";
import { page } from "./types";

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
