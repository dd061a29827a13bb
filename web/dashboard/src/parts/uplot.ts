/** The plots of `plot.tsx`: the one file that loads uPlot. */

import "uplot/dist/uPlot.min.css";

import uPlot from "uplot";

import { type PlotProps, toData } from "./plot";

export function makePlot(parent: HTMLElement, props: PlotProps, width: number, height: number): uPlot {
  const style = getComputedStyle(parent);
  const read = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const axis = { stroke: read("quiet"), grid: { stroke: read("line"), width: 1 }, ticks: { show: false }, font: `11px ${style.fontFamily}` };
  const options: uPlot.Options = {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { y: props.isLogarithmic === true ? { distr: 3 } : { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
    axes: [axis, { ...axis, size: 68, values: (_plot, splits) => splits.map((value) => (value === null ? "" : props.format(value))) }],
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
