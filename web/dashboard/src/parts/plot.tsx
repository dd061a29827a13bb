/** A plot over time; uPlot is loaded when the first one is shown. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";

import { type PlotProps, toData } from "./series";

const HEIGHT = 170;

export function Plot(props: PlotProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const plot = useRef<uPlot | null>(null);

  useEffect(() => {
    const parent = place.current;
    if (parent === null) return undefined;
    let isOver = false;
    const draw = async (): Promise<void> => {
      const { makePlot } = await import("./uplot");
      if (isOver) return;
      plot.current?.destroy();
      plot.current = makePlot(parent, latest.current, parent.clientWidth, HEIGHT);
    };
    const redraw = (): void => void draw();
    redraw();
    const sizes = new ResizeObserver(() => {
      plot.current?.setSize({ width: parent.clientWidth, height: HEIGHT });
    });
    sizes.observe(parent);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    window.addEventListener("themechange", redraw);
    scheme.addEventListener("change", redraw);
    return () => {
      isOver = true;
      sizes.disconnect();
      window.removeEventListener("themechange", redraw);
      scheme.removeEventListener("change", redraw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  useEffect(() => {
    plot.current?.setData(toData(props));
  }, [props.times, props.lines]);

  return (
    <figure class="plot">
      <figcaption>
        <strong>{props.title}</strong>
        {props.lines.map((line) => (
          <span key={line.label} class="key">
            <i class={`swatch ${line.color}${line.isDashed === true ? " dashed" : ""}`} aria-hidden="true" />
            {line.label} <b>{props.format(line.values.at(-1) ?? null)}</b>
          </span>
        ))}
      </figcaption>
      <div ref={place} class="canvas" role="img" aria-label={`${props.title}: ${props.summary}`} />
    </figure>
  );
}
