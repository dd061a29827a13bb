/** When a filter will be full, from its samples. */

/** What a forecast reads of a sample; counters count from the start of the service. */
export interface Counters {
  readonly sampled_at: number;
  readonly new: number;
  readonly removed: number;
}

export type Forecast =
  | { readonly state: "full" }
  | { readonly state: "unknown" }
  | { readonly state: "steady" }
  | { readonly state: "filling"; readonly at: number; readonly pace: number };

/** The shortest span of samples, in milliseconds, from which a pace is read. */
const SHORTEST = 5_000;

/**
 * Returns the keys per second that a filter gained over the samples, which may be in any order; null if they span too
 * little time. Counters that fall show a restart of the service: the pair of samples around it is left out.
 */
export function measurePace(samples: readonly Counters[]): number | null {
  const ordered = [...samples].sort((one, other) => one.sampled_at - other.sampled_at);
  let gained = 0;
  let span = 0;
  ordered.forEach((sample, index) => {
    const before = ordered[index - 1];
    if (before === undefined || sample.new < before.new || sample.removed < before.removed) return;
    gained += sample.new - sample.removed - (before.new - before.removed);
    span += sample.sampled_at - before.sampled_at;
  });
  return span < SHORTEST ? null : (1000 * gained) / span;
}

/** Returns when a filter of `keys` keys reaches its capacity at the pace of its samples. */
export function forecastFull(keys: number, capacity: number, samples: readonly Counters[], now: number): Forecast {
  if (keys >= capacity) return { state: "full" };
  const pace = measurePace(samples);
  if (pace === null) return { state: "unknown" };
  if (pace <= 0) return { state: "steady" };
  return { state: "filling", at: now + (1000 * (capacity - keys)) / pace, pace };
}

/** Returns the rate of change per second between successive samples of a counter, null around restarts. */
export function differentiate(times: readonly number[], values: readonly number[]): (number | null)[] {
  return values.map((value, index) => {
    const before = values[index - 1];
    const span = (times[index] ?? 0) - (times[index - 1] ?? 0);
    return before === undefined || value < before || span <= 0 ? null : (1000 * (value - before)) / span;
  });
}
