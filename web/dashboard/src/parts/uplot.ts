/** Draws the plots of `plot.tsx`: the one file that loads uPlot. */

import "uplot/dist/uPlot.min.css";

import uPlot from "uplot";

import { type PlotProps, toData } from "./series";

const DAY = 86_400;
/** Most labels of a logarithmic axis: more would overlap. */
const MOST_POWERS = 5;

/** Returns powers of ten from `low` to `high`, a few of them. */
function splitPowers(_plot: uPlot, _axis: number, low: number, high: number): number[] {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first) / MOST_POWERS));
  const powers = [];
  // From the top, where the target is.
  for (let power = last; power >= first; power -= step) powers.unshift(10 ** power);
  return powers;
}

/** Returns the labels of an axis of times: the time of day, or the date where the ticks are days apart. */
function formatTimes(_plot: uPlot, splits: number[], _axis: number, _space: number, step: number): string[] {
  const pad = (value: number): string => String(value).padStart(2, "0");
  return splits.map((seconds) => {
    const time = new Date(1000 * seconds);
    if (step >= DAY) return `${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
    return `${pad(time.getHours())}:${pad(time.getMinutes())}${step < 60 ? `:${pad(time.getSeconds())}` : ""}`;
  });
}

export function makePlot(parent: HTMLElement, props: PlotProps, width: number, height: number): uPlot {
  const style = getComputedStyle(parent);
  const read = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const axis = { stroke: read("quiet"), grid: { stroke: read("line"), width: 1 }, ticks: { show: false }, font: `11px ${style.fontFamily}` };
  // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- a constant that exists for types only
  const logarithmic: uPlot.Scale = { distr: 3 };
  const powers: uPlot.Axis = { splits: splitPowers, filter: (_plot, splits) => splits };
  const options: uPlot.Options = {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { y: props.isLogarithmic === true ? logarithmic : { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
    axes: [{ ...axis, size: 28, values: formatTimes }, { ...axis, size: 68, values: (_plot, splits) => splits.map((value) => props.format(value)), ...(props.isLogarithmic === true ? powers : {}) }],
    series: [
      {},
      ...props.lines.map((line) => ({
        label: line.label,
        stroke: read(line.color),
        width: 1.5,
        points: { show: line.values.length < 3, size: 5 },
        ...(line.isDashed === true ? { dash: [5, 4] } : {}),
      })),
    ],
  };
  return new uPlot(options, toData(props), parent);
}
