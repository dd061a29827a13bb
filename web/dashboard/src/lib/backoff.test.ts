import { expect, it } from "vitest";

import { backoff, parseRetryAfter } from "./backoff";

it("doubles the pause after each failure, up to half a minute", () => {
  expect([1, 2, 3, 4, 5, 6, 50].map((failures) => backoff(failures, null, 1))).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
});

it("spreads the pages over the upper half of the pause", () => {
  expect(backoff(3, null, 0)).toBe(2000);
  expect(backoff(3, null, 0.5)).toBe(3000);
});

it("waits as long as the service asks, and at most five minutes", () => {
  expect(backoff(1, 7, 0)).toBe(7000);
  expect(backoff(6, 1, 1)).toBe(30_000);
  expect(backoff(1, 999_999, 0)).toBe(300_000);
});

it("reads seconds and dates, and nothing else", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  expect(parseRetryAfter("3", now)).toBe(3);
  expect(parseRetryAfter("Thu, 01 Jan 2026 00:00:09 GMT", now)).toBe(9);
  expect(parseRetryAfter("Wed, 31 Dec 2025 00:00:00 GMT", now)).toBe(0);
  for (const text of [null, "", "soon", "-1x", "99999999999"]) expect(parseRetryAfter(text, now)).toBeNull();
});
