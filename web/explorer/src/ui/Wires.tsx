/** Bits in rows, and curves from a key to its bits. */

import type { VNode } from "preact";
import { shorten } from "../numbers.js";
import { useWidth } from "./useWidth.js";

export interface WiresProps {
  /** Number of bits. */
  readonly numBits: number;
  /** True of a bit that is set. */
  readonly isSet: (position: number) => boolean;
  /** The key at the top. */
  readonly name: string;
  readonly positions: readonly number[];
  /** True of a false positive. */
  readonly isWrong?: boolean;
  /** The figure in words. */
  readonly description: string;
}

const TOP = 46;
const RISE = 84;

/** Columns that make cells of a readable width. */
export function columnsFor(numBits: number, width: number): number {
  const most = Math.max(8, Math.floor(width / 27));
  if (numBits <= most) return numBits;
  for (const columns of [64, 32, 16, 8]) if (columns <= most) return columns;
  return 8;
}

/** The figure. */
export function Wires({ numBits, isSet, name, positions, isWrong = false, description }: WiresProps): VNode {
  const [ref, width] = useWidth();
  const columns = columnsFor(numBits, width);
  const cell = Math.min(44, width / columns);
  const left = (width - cell * columns) / 2;
  const rows = Math.ceil(numBits / columns);
  const height = TOP + RISE + rows * (cell + 4) + 4;
  const place = (position: number): [number, number] => [
    left + (position % columns) * cell,
    TOP + RISE + Math.floor(position / columns) * (cell + 4),
  ];
  const middle = width / 2;
  return (
    <div class={isWrong ? "wires wrong" : "wires"} ref={ref}>
      <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={description}>
        {Array.from({ length: numBits }, (_, i) => {
          const [x, y] = place(i);
          const probed = positions.includes(i);
          const state = `${isSet(i) ? "set" : "unset"}${probed ? " probed" : ""}`;
          return (
            <g key={i} class={`bit ${state}`}>
              <rect x={x + 1.5} y={y} width={cell - 3} height={cell} rx={Math.min(5, cell / 5)} />
              {cell >= 22 && <text x={x + cell / 2} y={y + cell / 2}>{i}</text>}
            </g>
          );
        })}
        {name !== "" && positions.map((position, i) => {
          const [x, y] = place(position);
          const end = x + cell / 2;
          const path = `M ${middle} ${TOP - 6} C ${middle} ${TOP + RISE * 0.55}, ${end} ${TOP + RISE * 0.3}, ${end} ${y - 3}`;
          return <path key={`${i} ${position}`} class={`wire ${isSet(position) ? "set" : "unset"}`} d={path} pathLength={1} />;
        })}
        {name !== "" && (
          <g class="source">
            <rect x={middle - 110} y={4} width={220} height={TOP - 10} rx={18} />
            <text x={middle} y={TOP / 2}>{shorten(name, 20)}</text>
          </g>
        )}
      </svg>
    </div>
  );
}
