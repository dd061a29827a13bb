/** State in the address: bounded, and what is out of bounds is the default. */

import { expect, it } from "vitest";

import { choice, clean, format, number, readFields, split, text, whole } from "./address.js";
import { candidates, MOST_LETTERS, MOST_WORDS, parseWords } from "./words.js";
import * as numbers from "./numbers.js";

const FIELDS = { m: whole(8, 128, 32), bits: number(2, 20, 10), words: text(20, "cat dog"), view: choice(["a", "b"], "a") };

function read(fragment: string): { m: number; bits: number; words: string; view: "a" | "b" } {
  return readFields<{ m: number; bits: number; words: string; view: "a" | "b" }>(FIELDS, split(fragment).query);
}

it("what is written is read again", () => {
  const values: ReturnType<typeof read> = { m: 64, bits: 7.25, words: "ä & ö = ü#?", view: "b" };
  const fragment = format("words", FIELDS, values);
  expect(split(fragment).scene).toBe("words");
  expect(read(fragment)).toEqual(values);
  expect(format("words", FIELDS, read("#words"))).toBe("#words");
});

it("what is out of bounds is the default", () => {
  for (const hostile of ["m=7", "m=129", "m=1e99", "m=NaN", "m=", "m=12.5", "m=%00", "m=0x", "m=-32", "m=Infinity"]) {
    expect(read(`#words?${hostile}`).m).toBe(32);
  }
  expect(read("#words?view=__proto__").view).toBe("a");
  expect(read("#words?bits=1").bits).toBe(10);
});

it("text is cut, and loses control characters and halves of characters", () => {
  expect(read(`#words?words=${"x".repeat(5000)}`).words).toHaveLength(20);
  expect(clean("a\u0000b\u001bc\ud800d", 20)).toBe("abc\ufffdd");
  expect(clean("a\nb\tc", 20)).toBe("a\nb\tc");
  expect(() => encodeURIComponent(clean("𝄞𝄞", 3))).not.toThrow();
});

it("the scene and the whole fragment are bounded", () => {
  expect(split(`#${"s".repeat(500)}`).scene).toHaveLength(40);
  expect(split(`#words?words=${"%41".repeat(1e5)}`).query.get("words")?.length ?? 0).toBeLessThan(4000);
  expect(split("").scene).toBe("");
  expect(split("#words?%E0%A4%A").scene).toBe("words");
});

it("words are distinct, bounded and in order", () => {
  expect(parseWords(" cat, dog;cat\nbird ")).toEqual(["cat", "dog", "bird"]);
  expect(parseWords("x".repeat(900))).toEqual(["x".repeat(MOST_LETTERS)]);
  expect(parseWords("𝄞".repeat(60))[0]).toBe("𝄞".repeat(MOST_LETTERS));
  expect(parseWords(Array.from({ length: 300 }, (_, i) => `w${i}`).join(" "))).toHaveLength(MOST_WORDS);
  expect(parseWords("  ,; ")).toEqual([]);
  expect(new Set(candidates()).size).toBeGreaterThan(950);
});

it("numbers read as people write them", () => {
  expect([0, 0.5, 0.01, 0.00819, 1e-5, 3.21e-9, 1, 0.99961, 0.9996].map(numbers.percent)).toEqual(
    ["0 %", "50.0 %", "1 %", "0.819 %", "0.001 %", "3.2 × 10⁻⁹", "100 %", "99.96 %", "99.96 %"],
  );
  expect([1, 999, 1000, 125_000, 999_900, 1.25e9].map(numbers.bytes)).toEqual(
    ["1 byte", "999 bytes", "1.00 kB", "125 kB", "1.00 MB", "1.25 GB"],
  );
  expect(numbers.list(["a"])).toBe("a");
  expect(numbers.list(["a", "b", "c"])).toBe("a, b and c");
  expect(numbers.plural(1, "key")).toBe("1 key");
  expect(numbers.plural(2000, "key")).toBe("2,000 keys");
  expect(numbers.hex(255n)).toBe("00000000000000ff");
});
