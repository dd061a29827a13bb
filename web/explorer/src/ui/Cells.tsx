/** Cells side by side: bits, counters, slots. */

import type { ComponentChildren, VNode } from "preact";

export interface Cell {
  /** Set, free, or something else that the style sheet knows. */
  readonly state: string;
  readonly shown?: ComponentChildren;
}

interface CellsProps {
  readonly cells: readonly Cell[];
  /** The cells in words. */
  readonly description: string;
  /** Width of a cell: small ones have no text. */
  readonly size?: "tiny" | "small" | "wide";
}

/** The cells, as many in a row as fit. */
export function Cells({ cells, description, size = "small" }: CellsProps): VNode {
  return (
    <div class={`cells ${size}`} role="img" aria-label={description}>
      {cells.map((cell, i) => <span key={i} class={cell.state}>{cell.shown}</span>)}
    </div>
  );
}
