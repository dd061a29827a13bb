import { describe, expect, it } from "vitest";

import { differentiate, forecastFull, measurePace } from "./forecast";

const at = (seconds: number, added: number, removed = 0): { sampled_at: number; new: number; removed: number } => ({ sampled_at: 1000 * seconds, new: added, removed });

describe("the pace", () => {
  it("is the keys that a filter gains per second, in any order of the samples", () => {
    expect(measurePace([at(20, 300), at(0, 100), at(10, 200)])).toBe(10);
    expect(measurePace([at(0, 100), at(10, 200, 50)])).toBe(5);
    expect(measurePace([at(0, 100), at(10, 100, 50)])).toBe(-5);
  });

  it("leaves out the pair of samples around a restart, which sets the counters to zero", () => {
    expect(measurePace([at(0, 1000), at(10, 1100), at(100, 0), at(110, 100)])).toBe(10);
  });

  it("is unknown for samples that span too little", () => {
    expect(measurePace([])).toBeNull();
    expect(measurePace([at(0, 1)])).toBeNull();
    expect(measurePace([at(0, 1), at(1, 100)])).toBeNull();
    expect(measurePace([at(0, 500), at(60, 0)])).toBeNull();
  });
});

describe("a filter", () => {
  it("is full after what is left, at its pace", () => {
    expect(forecastFull(500, 1000, [at(0, 0), at(100, 500)], 100_000)).toEqual({ state: "filling", pace: 5, at: 200_000 });
  });

  it("is full at and beyond its capacity, whatever its pace", () => {
    expect(forecastFull(1000, 1000, [], 0).state).toBe("full");
    expect(forecastFull(1500, 1000, [at(0, 5), at(60, 5)], 0).state).toBe("full");
  });

  it("stays as it is without new keys, and is unknown without samples", () => {
    expect(forecastFull(10, 1000, [at(0, 10), at(60, 10)], 0).state).toBe("steady");
    expect(forecastFull(10, 1000, [at(0, 10, 0), at(60, 10, 5)], 0).state).toBe("steady");
    expect(forecastFull(10, 1000, [at(0, 10)], 0).state).toBe("unknown");
  });
});

it("a counter's rate has gaps where the counter falls, and at its begin", () => {
  expect(differentiate([0, 1000, 3000, 4000, 4000], [0, 10, 50, 3, 9])).toEqual([null, 10, 20, null, null]);
});
