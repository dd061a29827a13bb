/** The laws agree with `fullbloom.theory` in Python, which computed the numbers here. */

import { expect, it } from "vitest";

import { bestFpr, bestNumHashes, binomialMean, blockedFpr, cascadeBits, classicFpr, compoundFpr, fill, measurementError } from "./theory.js";

it("classic_fpr", () => {
  for (const [n, m, k, want] of [
    [1, 8, 1, 0.125], [10, 64, 3, 0.05338144096943909], [203, 2048, 7, 0.007860177689733662],
    [10000, 100000, 7, 0.008193920091727524], [100000, 1000000, 7, 0.008193741868176715],
    [1000000, 10000000, 14, 0.018983804953544636], [10000, 20000, 16, 0.9946471490775218],
  ] as const) expect(classicFpr(n, m, k) / want).toBeCloseTo(1, 9);
});

it("blocked_fpr", () => {
  for (const [n, m, k, want] of [
    [10, 512, 4, 3.2380864033169555e-5], [50, 512, 8, 0.0076470680970658535], [10000, 119808, 8, 0.004170411967887734],
    [10000, 79872, 4, 0.02542219321840597], [10000, 200192, 12, 0.00019803593652680912],
    [100000, 768000, 8, 0.03465459743171915], [1000000, 10240000, 8, 0.00920931892809821],
  ] as const) expect(blockedFpr(n, m, k) / want).toBeCloseTo(1, 9);
});

it("fill", () => {
  for (const [n, m, k, want] of [[0, 64, 3, 0], [1, 10, 2, 0.19], [100, 1024, 7, 0.49536897154701137], [10000, 100000, 7, 0.5034164342656993]] as const) {
    expect(fill(n, m, k)).toBeCloseTo(want, 12);
  }
  expect(fill(1, 1, 1)).toBe(1);
});

it("num_hashes", () => {
  for (const [m, n, want] of [[100000, 10000, 7], [120000, 10000, 8], [64, 10, 4], [1000, 1000, 1], [200000, 10000, 14]] as const) {
    expect(bestNumHashes(m, n)).toBe(want);
  }
});

it("cascade_bits", () => {
  for (const [r, s, want] of [[100, 1000, 899.6850643210744], [1000, 100, 899.6850643210744], [1e5, 1e6, 899685.0643210744]] as const) {
    expect(cascadeBits(r, s)).toBeCloseTo(want, 6);
  }
});

it("compound_fpr", () => {
  expect(compoundFpr([0.01, 0.005, 0.0025])).toBeCloseTo(0.017412625, 12);
  expect(compoundFpr([1e-9, 1e-9]) / 1.999999999e-9).toBeCloseTo(1, 9);
  expect(compoundFpr([])).toBeCloseTo(0, 15);
});

it("the textbook's best rate is the law at k = (m/n) ln 2", () => {
  expect(bestFpr(1000, 10000) / classicFpr(1000, 10000, 10 * Math.LN2)).toBeCloseTo(1, 2);
});

it("a mean over a binomial law is exact for its moments", () => {
  expect(binomialMean(1000, 0.01, () => 1)).toBeCloseTo(1, 12);
  expect(binomialMean(1000, 0.01, (i) => i)).toBeCloseTo(10, 9);
  expect(binomialMean(1000, 0.01, (i) => (i - 10) ** 2)).toBeCloseTo(9.9, 9);
});

it("an error of measurement shrinks with the root of the trials", () => {
  expect(measurementError(0.01, 10000)).toBeCloseTo(0.000995, 6);
});
