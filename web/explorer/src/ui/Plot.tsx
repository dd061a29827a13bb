/** A plot whose point can be dragged, and moved by the arrow keys. */

import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { colour } from "../theme.js";

export interface Series {
  readonly label: string;
  /** One value for each x; `null` where it has none. */
  readonly ys: readonly (number | null)[];
  readonly style: "line" | "quiet" | "dashed" | "dots" | "strong";
  /** Text at the beginning of the line. */
  readonly tag?: string;
}

/** The point that people move along x. */
export interface Handle {
  readonly x: number;
  readonly y: number;
  readonly label: string;
  /** The value in words. */
  readonly shown: string;
  readonly least: number;
  readonly most: number;
  readonly step: number;
  /** True: values are decimal logarithms of x. */
  readonly log?: boolean;
  readonly change: (x: number) => void;
}

interface PlotProps {
  readonly xs: readonly number[];
  readonly series: readonly Series[];
  readonly xLabel: string;
  readonly yLabel: string;
  readonly xLog?: boolean;
  readonly yLog?: boolean;
  readonly yRange: readonly [number, number];
  readonly format?: (y: number) => string;
  readonly formatX?: (x: number) => string;
  readonly handle?: Handle | undefined;
  /** The plot in words. */
  readonly description: string;
  readonly height?: number;
}

const COLOURS = { line: "s2", quiet: "s3", dashed: "s3", dots: "wrong", strong: "s1" } as const;

/** A power of ten as a percentage. */
function tenth(y: number): string {
  return `${Number((y * 100).toPrecision(6))} %`;
}

/** Values of an axis without those between powers of ten. */
function powersOnly(_: uPlot, values: number[]): (number | null)[] {
  return values.map((value) => {
    const exponent = Math.log10(value);
    return Math.abs(exponent - Math.round(exponent)) < 1e-9 ? value : null;
  });
}

/** Steps between the numbers of an axis. */
const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5];

/** Linear or logarithmic, as the library numbers them. */
function scaleOf(log: boolean | undefined): uPlot.Scale.Distr {
  // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- its const enum has no values at run time
  return log === true ? 3 : 1;
}

function options(props: PlotProps, width: number, drawn: () => void): uPlot.Options {
  const { series, xLog, yLog, yRange, format, formatX } = props;
  const axis = (label: string, log: boolean): Partial<uPlot.Axis> => ({
    ...(log ? { filter: powersOnly } : { incrs: STEPS }),
    label,
    labelSize: 26,
    labelFont: "600 13px system-ui, sans-serif",
    font: "12px system-ui, sans-serif",
    stroke: () => colour("quiet"),
    grid: { stroke: () => colour("line"), width: 1, ...(log ? { filter: powersOnly } : {}) },
    ticks: { stroke: () => colour("line"), width: 1, size: 5, ...(log ? { filter: powersOnly } : {}) },
  });
  // Between powers of ten, a logarithmic axis has lines without numbers.
  const named = (values: (number | null)[], shown: (value: number) => string): (string | null)[] =>
    values.map((value) => (value === null ? null : shown(value)));
  return {
    width,
    height: props.height ?? Math.round(Math.min(420, Math.max(260, width * 0.48))),
    legend: { show: false },
    cursor: { show: false },
    // The last number of the x axis extends 20 pixels beyond its line.
    padding: [12, 24, 0, 0],
    scales: {
      x: { time: false, distr: scaleOf(xLog) },
      y: { distr: scaleOf(yLog), range: [yRange[0], yRange[1]] },
    },
    axes: [
      {
        ...axis(props.xLabel, xLog === true), size: 42,
        values: (_, values) => named(values, formatX ?? ((x) => x.toLocaleString("en-US"))),
      },
      {
        ...axis(props.yLabel, yLog === true), size: 62,
        values: (_, values) => named(values, format ?? (yLog === true ? tenth : String)),
      },
    ],
    series: [
      {},
      ...series.map((one): uPlot.Series => ({
        label: one.label,
        stroke: () => colour(COLOURS[one.style]),
        width: one.style === "strong" ? 2.6 : one.style === "dots" ? 0 : 1.6,
        ...(one.style === "dashed" ? { dash: [6, 5] } : {}),
        points: one.style === "dots"
          ? { show: true, size: 9, fill: () => colour("wrong"), stroke: () => colour("ground") }
          : { show: false },
        spanGaps: false,
      })),
    ],
    hooks: {
      draw: [
        (plot) => {
          const { ctx } = plot;
          ctx.save();
          ctx.textBaseline = "top";
          ctx.textAlign = "center";
          ctx.font = `600 ${12 * devicePixelRatio}px system-ui, sans-serif`;
          props.series.forEach((one) => {
            if (one.tag === undefined) return;
            const at = one.ys.findIndex((y) => y !== null && y >= yRange[0] && y <= yRange[1]);
            if (at < 0) return;
            ctx.fillStyle = colour(COLOURS[one.style]);
            const [x, y] = [plot.valToPos(props.xs[at] ?? 0, "x", true), plot.valToPos(one.ys[at] ?? 0, "y", true)];
            ctx.fillText(one.tag, x, Math.min(y + 4 * devicePixelRatio, plot.bbox.top + plot.bbox.height - 15 * devicePixelRatio));
          });
          ctx.restore();
          drawn();
        },
      ],
    },
  };
}

/** The plot. */
export function Plot(props: PlotProps): VNode {
  const { xs, series, handle } = props;
  const box = useRef<HTMLDivElement>(null);
  const knob = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;

  /** Puts the knob where its point is. */
  const place = (): void => {
    const { handle, yRange } = latest.current;
    const now = plot.current;
    if (now === undefined || knob.current === null || handle === undefined) return;
    const y = Math.min(Math.max(handle.y, yRange[0]), yRange[1]);
    const [left, top] = [now.over.offsetLeft + now.valToPos(handle.log === true ? 10 ** handle.x : handle.x, "x"), now.over.offsetTop + now.valToPos(y, "y")];
    knob.current.style.transform = `translate(${left}px, ${top}px)`;
  };

  const shape = JSON.stringify([props.xLabel, props.yLabel, props.xLog, props.yLog, props.yRange, series.map((one) => [one.style, one.tag])]);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const data = (): uPlot.AlignedData => {
      const { xs, series } = latest.current;
      return [[...xs], ...series.map((one) => [...one.ys])] as uPlot.AlignedData;
    };
    const make = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(options(latest.current, Math.max(220, element.clientWidth), place), data(), element);
      plot.current.root.setAttribute("aria-hidden", "true");
      place();
    };
    make();
    const observer = new ResizeObserver(() => {
      const width = Math.max(220, element.clientWidth);
      if (plot.current !== undefined && plot.current.width !== width) {
        plot.current.setSize({ width, height: latest.current.height ?? Math.round(Math.min(420, Math.max(260, width * 0.48))) });
        place();
      }
    });
    observer.observe(element);
    const repaint = (): void => { plot.current?.redraw(false, true); };
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    window.addEventListener("theme", repaint);
    scheme.addEventListener("change", repaint);
    return () => {
      observer.disconnect();
      window.removeEventListener("theme", repaint);
      scheme.removeEventListener("change", repaint);
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [shape]);

  useEffect(() => {
    const next = [[...xs], ...series.map((one) => [...one.ys])] as uPlot.AlignedData;
    plot.current?.setData(next);
    place();
  });

  /** Moves the point to where the pointer is, in whole steps. */
  const drag = (event: PointerEvent): void => {
    const now = plot.current;
    const { handle } = latest.current;
    if (now === undefined || handle === undefined) return;
    const x = now.posToVal(event.clientX - now.over.getBoundingClientRect().left, "x");
    set(handle.log === true ? Math.log10(x) : x);
  };
  const set = (x: number): void => {
    const { handle } = latest.current;
    if (handle === undefined) return;
    const stepped = Math.round(x / handle.step) * handle.step;
    const bounded = Math.min(handle.most, Math.max(handle.least, Number(stepped.toFixed(6))));
    if (bounded !== handle.x) handle.change(bounded);
  };
  const press = (event: KeyboardEvent): void => {
    if (handle === undefined) return;
    const far = 10 * handle.step;
    const moves: Record<string, number> = {
      ArrowRight: handle.x + handle.step, ArrowUp: handle.x + handle.step,
      ArrowLeft: handle.x - handle.step, ArrowDown: handle.x - handle.step,
      PageUp: handle.x + far, PageDown: handle.x - far, Home: handle.least, End: handle.most,
    };
    const next = moves[event.key];
    if (next === undefined) return;
    event.preventDefault();
    set(next);
  };
  return (
    <div class="plot">
      <div
        class="canvas" ref={box} role="img" aria-label={props.description}
        onPointerDown={(event) => {
          if (handle === undefined || event.target === knob.current) return;
          // A press beside the point moves it there, but not a finger that scrolls.
          if (event.pointerType === "mouse") drag(event);
        }}
      />
      {handle !== undefined && (
        <div
          ref={knob} class="knob" role="slider" tabIndex={0} aria-label={handle.label} aria-valuemin={handle.least}
          aria-valuemax={handle.most} aria-valuenow={handle.x} aria-valuetext={handle.shown} onKeyDown={press}
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            event.currentTarget.focus();
            event.preventDefault();
          }}
          onPointerMove={(event) => {
            if (event.currentTarget.hasPointerCapture(event.pointerId)) drag(event);
          }}
        />
      )}
    </div>
  );
}

/** The lines of a plot with their names. */
export function Legend({ series }: { series: readonly Series[] }): VNode {
  return (
    <ul class="legend">
      {series.map((one) => <li key={one.label} class={one.style}>{one.label}</li>)}
    </ul>
  );
}
