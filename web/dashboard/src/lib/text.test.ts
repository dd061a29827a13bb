import { expect, it } from "vitest";

import { cut, encodePart, toUnicode } from "./text";

it("long texts are cut between characters", () => {
  expect(cut("abc", 3)).toEqual({ head: "abc", isCut: false });
  expect(cut("abcd", 3)).toEqual({ head: "abc", isCut: true });
  expect(cut("ab😀cd", 3)).toEqual({ head: "ab", isCut: true });
  expect(cut("x".repeat(1 << 20), 80).head).toHaveLength(80);
});

it("lone halves of characters are replaced, and pairs are not", () => {
  expect(toUnicode("a\ud800😀\udc00")).toBe("a\ufffd😀\ufffd");
  expect(encodePart("ü/\udbff")).toBe("%C3%BC%2F%EF%BF%BD");
});
