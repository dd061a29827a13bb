/** A filter that grows. */

import { create } from "fullbloom?whole";
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";

import { choice, whole } from "../address.js";
import { Container, SECTION, TAG, countOnes } from "../core/container.js";
import { using } from "../core/filters.js";
import { bytes, count, percent } from "../numbers.js";
import { classicFpr } from "../theory.js";
import { Answer, Button, Choice, Controls, Facts, Range } from "../ui/Controls.js";
import { Legend, Plot, type Series } from "../ui/Plot.js";
import { usePlay } from "../ui/usePlay.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  n: number;
  growth: "2" | "4";
  fpr: "0.1" | "0.01" | "0.001";
}

const FIRST = 500;
const MOST = 20_000;
const POINTS = 40;
const XS = Array.from({ length: POINTS + 1 }, (_, i) => Math.round((i * MOST) / POINTS));

interface Stage {
  readonly capacity: number;
  readonly keys: number;
  readonly numBits: number;
  readonly fill: number;
  readonly target: number;
}

/** Rates of a filter while it grows, at each of `XS`. */
function climb(growth: number, fpr: number): number[] {
  return using(create("scalable", { initial_capacity: FIRST, fpr, growth, layout: "classic" }), (filter) => {
    let at = 0;
    return XS.map((x) => {
      filter.addMany(Array.from({ length: x - at }, (_, i) => at + i));
      at = x;
      return (filter.info() as { fpr: number }).fpr;
    });
  });
}

/** The filter of `n` keys, its stages and its rate. */
function grow(n: number, growth: number, fpr: number): { stages: Stage[]; rate: number; nbytes: number } {
  return using(create("scalable", { initial_capacity: FIRST, fpr, growth, layout: "classic" }), (filter) => {
    filter.addMany(Array.from({ length: n }, (_, i) => i));
    const info = filter.info() as { stages: number; fpr: number; nbytes: number };
    const file = new Container(filter.toBytes());
    const stages = Array.from({ length: info.stages }, (_, i) => {
      const numBits = file.parameter(TAG.numBits, i);
      return {
        capacity: file.parameter(TAG.capacity, i), keys: file.parameter(TAG.count, i), numBits,
        fill: countOnes(file.section(SECTION.bits, i)) / numBits, target: file.parameter(TAG.fpr, i),
      };
    });
    return { stages, rate: info.fpr, nbytes: info.nbytes };
  });
}

function Figure({ values, change }: SceneProps<Values>): VNode {
  const { n } = values;
  const [growth, fpr] = [Number(values.growth), Number(values.fpr)];
  const rates = useMemo(() => climb(growth, fpr), [growth, fpr]);
  const { stages, rate, nbytes } = useMemo(() => grow(n, growth, fpr), [n, growth, fpr]);
  // A filter of one size, made for the first stage's keys at this rate.
  const fixed = useMemo(() => using(create("bloom", { capacity: FIRST, fpr, layout: "classic" }), (filter) => filter.info() as { num_bits: number; num_hashes: number }), [fpr]);
  const series: Series[] = [
    { label: "growing filter", ys: rates, style: "strong" },
    { label: `fixed filter for ${FIRST} keys`, ys: XS.map((x) => classicFpr(x, fixed.num_bits, fixed.num_hashes)), style: "line" },
    { label: "target", ys: XS.map(() => fpr), style: "dashed" },
  ];
  const { playing, toggle } = usePlay(() => {
    const next = Math.min(MOST, Math.round(n * 1.06) + 20);
    change({ n: next });
    return next < MOST;
  });
  const widest = Math.max(...stages.map(({ numBits }) => numBits));
  return (
    <>
      <Controls>
        <Range label="Keys added" value={n} least={0} most={MOST} step={50} shown={count(n)} change={(next) => { change({ n: next }); }} />
        <Choice label="Growth" value={values.growth} options={[["2", "× 2"], ["4", "× 4"]]} change={(next) => { change({ growth: next }); }} />
        <Choice label="Rate" value={values.fpr} options={[["0.1", "10 %"], ["0.01", "1 %"], ["0.001", "0.1 %"]]} change={(next) => { change({ fpr: next }); }} />
        <Button press={() => { if (!playing) change({ n: 0 }); toggle(); }}>{playing ? "Stop" : "Grow"}</Button>
      </Controls>
      <ol class="stages" aria-label="Stages of the filter">
        {stages.map((stage, i) => (
          <li key={i}>
            <span class="caption">
              <b>Stage {i + 1}</b> {count(stage.keys)} of {count(stage.capacity)} keys, {bytes(Math.ceil(stage.numBits / 8))}, rate {percent(stage.target)}
            </span>
            <span class="track" style={{ width: `${Math.max(4, (100 * stage.numBits) / widest)}%` }}>
              <span class="level" style={{ width: `${Math.min(100, (100 * stage.keys) / stage.capacity)}%` }} />
            </span>
          </li>
        ))}
      </ol>
      <Facts facts={[["stages", String(stages.length)], ["rate now", percent(rate)], ["target", percent(fpr)], ["memory", bytes(nbytes)]]} />
      <Plot
        xs={XS} series={series} yLog yRange={[1e-5, 1]} xLabel="keys added" yLabel="false-positive rate"
        handle={{
          x: n, y: rate, label: "Keys added", shown: `${count(n)} keys, rate ${percent(rate)}`, least: 0, most: MOST, step: 50,
          change: (x) => { change({ n: x }); },
        }}
        description={`Rate against keys: the growing filter is at ${percent(rate)} after ${count(n)} keys and stays below ${percent(fpr)}; a fixed filter for ${FIRST} keys climbs towards 100 %.`}
      />
      <Legend series={series} />
      <Answer>
        {count(n)} keys are in {stages.length} {stages.length === 1 ? "stage" : "stages"}. Each further one is {growth} times as large and gets half of
        the rate of the one before, so that the sum stays below {percent(fpr)}; it is {percent(rate)} now.
      </Answer>
    </>
  );
}

export const scene = hide<Values>({
  fields: { n: whole(0, MOST, 6000), growth: choice(["2", "4"], "2"), fpr: choice(["0.1", "0.01", "0.001"], "0.01") },
  sentence: "Nobody knows how many keys will come, so a scalable filter adds a larger stage when one is full, and keeps its promise about the rate.",
  attempt: "Press “Grow” and watch the fixed filter leave the target behind while the growing one steps along below it.",
  Figure,
});
