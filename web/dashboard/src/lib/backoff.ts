/** Pauses between attempts to reach a service that refuses or does not answer. */

const SHORTEST = 1_000;
const LONGEST = 30_000;

/**
 * Returns the milliseconds to wait before the next attempt: what the service asked for, at least, or twice as long
 * after each failure. `random` (0 to 1) spreads the pages that lost the service at the same moment.
 */
export function backoff(failures: number, retryAfter: number | null, random: number): number {
  const own = Math.min(LONGEST, SHORTEST * 2 ** Math.min(failures - 1, 10));
  const spread = own * (0.5 + random / 2);
  return retryAfter === null ? spread : Math.min(Math.max(retryAfter * 1000, spread), 10 * LONGEST);
}

/** Returns the seconds of a `Retry-After` header, a number or a date; null if there is none that can be read. */
export function parseRetryAfter(header: string | null, now: number): number | null {
  if (header === null) return null;
  if (/^\d{1,6}$/.test(header.trim())) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(0, (date - now) / 1000);
}
