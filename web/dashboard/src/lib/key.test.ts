import { describe, expect, it } from "vitest";

import { formatEntry, formatKey } from "./key";

describe("a typed key", () => {
  it.each([
    ["5", "text", '"5"'],
    ['"\u2028\\', "text", JSON.stringify('"\u2028\\')],
    ["", "text", '""'],
    [" -0012 ", "integer", "-12"],
    ["12345678901234567890123", "integer", "12345678901234567890123"],
  ] as const)("%j as %s is sent as %s", (text, type, sent) => {
    expect(formatKey({ text, type })).toBe(sent);
  });

  it.each(["", "5.5", "1e3", "0x10", "five", "-", "1".repeat(301)])("is no integer as %j", (text) => {
    expect(() => formatKey({ text, type: "integer" })).toThrow(/digits only/);
  });
});

it("an entry has its owner before its key, and its value beside it", () => {
  const key = { text: "k", type: "text" } as const;
  expect(formatEntry({ key })).toBe('{"key":"k"}');
  expect(formatEntry({ key, owner: { text: "7", type: "integer" } })).toBe('{"key":[7,"k"]}');
  expect(formatEntry({ key, value: " 3 " })).toBe('{"keys":["k"],"values":[3]}');
  expect(formatEntry({ key, value: "18446744073709551615" })).toContain("[18446744073709551615]");
  for (const value of ["", "-1", "1.5", "x"]) expect(() => formatEntry({ key, value })).toThrow(/whole number/);
});
