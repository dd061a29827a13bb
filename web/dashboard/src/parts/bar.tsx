/** A share as a bar; the number stands beside it, so a screen reader skips the bar. */

import type { JSX } from "preact";

export function Bar({ share, isOver = false }: { share: number | null; isOver?: boolean }): JSX.Element {
  const width = `${String(Math.min(100, Math.max(0, 100 * (share ?? 0))))}%`;
  return (
    <span class={isOver ? "bar over" : "bar"} aria-hidden="true">
      <span style={{ width }} />
    </span>
  );
}
