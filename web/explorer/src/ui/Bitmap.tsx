/** Thousands of bits on a canvas. */

import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { bit } from "../core/container.js";
import { colour } from "../theme.js";
import { useWidth } from "./useWidth.js";

interface BitmapProps {
  readonly bits: Uint8Array;
  readonly numBits: number;
  readonly description: string;
  /** Bits of a row, where rows mean something: lines of 512. */
  readonly row?: number;
  /** Tallest that the picture may be. */
  readonly most?: number;
}

/** Counts the changes of the theme. */
export function useTheme(): number {
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const follow = (): void => { setChanges((old) => old + 1); };
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    window.addEventListener("theme", follow);
    scheme.addEventListener("change", follow);
    return () => {
      window.removeEventListener("theme", follow);
      scheme.removeEventListener("change", follow);
    };
  }, []);
  return changes;
}

/** The bits, row by row. */
export function Bitmap({ bits, numBits, description, row, most = 260 }: BitmapProps): VNode {
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  let cell = row === undefined ? 12 : Math.max(1, width / row);
  if (row === undefined) while (cell > 2 && Math.ceil(numBits / Math.floor(width / cell)) * cell > most) cell--;
  const columns = row ?? Math.floor(width / cell);
  const rows = Math.ceil(numBits / columns);
  const height = row === undefined ? rows * cell : Math.min(most, rows * Math.max(3, Math.min(9, most / rows)));
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (canvas.current === null || context === null || context === undefined) return;
    const scale = Math.min(3, devicePixelRatio);
    canvas.current.width = Math.round(width * scale);
    canvas.current.height = Math.round(height * scale);
    context.scale(scale, scale);
    const [wide, tall] = [row === undefined ? cell : width / columns, height / rows];
    const gap = wide >= 4 ? 1 : 0;
    const [free, set] = [colour("cell"), colour("accent")];
    context.fillStyle = free;
    if (gap === 0) context.fillRect(0, 0, wide * columns, height);
    else for (let i = 0; i < numBits; i++) fillCell(i);
    context.fillStyle = set;
    for (let i = 0; i < numBits; i++) if (bit(bits, i)) fillCell(i);
    function fillCell(i: number): void {
      const tight = tall >= 3 ? 1 : 0;
      context?.fillRect((i % columns) * wide, Math.floor(i / columns) * tall, Math.max(0.6, wide - gap), tall - tight);
    }
  }, [bits, numBits, width, height, theme]);
  return (
    <div class="bitmap" ref={ref}>
      <canvas ref={canvas} role="img" aria-label={description} style={{ width: `${width}px`, height: `${height}px` }} />
    </div>
  );
}
