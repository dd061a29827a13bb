import { describe, expect, it } from "vitest";

import { formatBytes, formatCount, formatOdds, formatRate, formatShare, formatShort, formatSpan, formatTime, plural, readCount, readRate } from "./format";

const plain = (text: string): string => text.replaceAll("\u00a0", " ");

describe("figures", () => {
  it.each([
    [0, "0"],
    [0.523, "0.523"],
    [12.34, "12.3"],
    [9876, "9,876"],
    [12_345, "12.3 k"],
    [999_999, "1 M"],
    [999_000, "999 k"],
    [1_234_567, "1.23 M"],
    [5e9, "5 G"],
    [null, "–"],
  ])("%s is short as %s", (value, text) => {
    expect(plain(formatShort(value))).toBe(text);
  });

  it.each([
    [0, "0 B"],
    [1023, "1,023 B"],
    [1024, "1 KiB"],
    [1_955_200, "1.86 MiB"],
    [2 ** 60, "1,024 PiB"],
    [null, "–"],
  ])("%s bytes are %s", (value, text) => {
    expect(plain(formatBytes(value))).toBe(text);
  });

  it.each([
    [0, "0", "never"],
    [0.5, "50 %", "1 in 2"],
    [0.001, "0.1 %", "1 in 1,000"],
    [0.00012345, "0.0123 %", "1 in 8,100"],
    [2.5e-8, "2.5e-8", "1 in 40,000,000"],
    [1e-15, "1e-15", "1 in 1e+15"],
    [null, "–", "–"],
  ])("the rate %s is %s and %s", (value, rate, odds) => {
    expect([plain(formatRate(value)), formatOdds(value)]).toEqual([rate, odds]);
  });

  it("shares are in percent, counts have separators, nouns their number", () => {
    expect(plain(formatShare(0.4973))).toBe("49.7 %");
    expect(plain(formatShare(12.5))).toBe("1,250 %");
    expect(formatCount(1_234_567)).toBe("1,234,567");
    expect([plural(1, "filter"), plural(2000, "filter")]).toEqual(["1 filter", "2,000 filters"]);
  });

  it.each([
    [-5, "0 seconds"],
    [1000, "1 second"],
    [90_000, "2 minutes"],
    [7_199_000, "120 minutes"],
    [7_200_000, "2 hours"],
    [3 * 86_400_000, "3 days"],
    [400 * 86_400_000, "13 months"],
    [1e12, "32 years"],
    [1e300, "more than 1,000 years"],
  ])("%s milliseconds are %s", (span, text) => {
    expect(formatSpan(span)).toBe(text);
  });

  it("times of other days have their date, impossible ones none", () => {
    const now = new Date(2026, 4, 6, 12).getTime();
    expect(formatTime(new Date(2026, 4, 6, 7, 8, 9).getTime(), now)).toBe("07:08:09");
    expect(formatTime(new Date(2026, 4, 5, 7, 8, 9).getTime(), now)).toBe("2026-05-05 07:08");
    expect(formatTime(1e300, now)).toBe("–");
  });
});

describe("what people type", () => {
  it.each([
    ["1000000", "1000000"],
    ["1,000,000", "1000000"],
    ["1 000 000", "1000000"],
    ["10M", "10000000"],
    ["1.5 k", "1500"],
    ["1e6", "1000000"],
    ["", ""],
    ["-5", "-5"],
    ["many", "many"],
    ["1,00", "1,00"],
    ["9e99", "9e99"],
    ["<b>", "<b>"],
  ])("%j keys are sent as %j", (text, sent) => {
    expect(readCount(text)).toBe(sent);
  });

  it.each([
    ["0.001", "0.001"],
    ["0.1 %", "0.001"],
    ["1%", "0.01"],
    ["1 in 1,000", "0.001"],
    ["1 in 10k", "0.0001"],
    ["1 in 0", "1 in 0"],
    ["%", "%"],
    ["low", "low"],
  ])("the rate %j is sent as %j", (text, sent) => {
    expect(readRate(text)).toBe(sent);
  });
});
