/** The first rows of a table, and a sentence about the others. */

import type { ComponentChildren, JSX } from "preact";

import { formatCount } from "../lib/format";

/** Rows of a table that the service does not page. */
const MOST_ROWS = 500;

export function firstRows<T>(rows: readonly T[]): readonly T[] {
  return rows.slice(0, MOST_ROWS);
}

export function MoreRows({ count, children }: { count: number; children?: ComponentChildren }): JSX.Element | null {
  if (count <= MOST_ROWS) return null;
  return (
    <p class="quiet under">
      The first {formatCount(MOST_ROWS)} of {formatCount(count)} are shown{children}.
    </p>
  );
}
