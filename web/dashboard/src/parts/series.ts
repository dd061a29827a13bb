/** What a plot over time shows. */

import type uPlot from "uplot";

export interface Line {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** Name of a custom property of the style sheet. */
  readonly color: string;
  readonly isDashed?: boolean;
}

export interface PlotProps {
  readonly title: string;
  /** What the plot shows, for those who do not see it. */
  readonly summary: string;
  /** Milliseconds since 1970, rising. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number | null) => string;
  readonly isLogarithmic?: boolean;
}

/** Returns the columns that uPlot takes; its times are in seconds. */
export function toData({ times, lines }: Pick<PlotProps, "times" | "lines">): uPlot.AlignedData {
  return [times.map((time) => time / 1000), ...lines.map((line) => [...line.values])];
}
