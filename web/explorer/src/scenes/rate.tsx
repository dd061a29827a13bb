/** The rate, by theory and measured live, against bits a key and k. */

import type { VNode } from "preact";
import { useMemo } from "preact/hooks";

import { number, whole } from "../address.js";
import { useMeasurement } from "../measure.js";
import { count, percent } from "../numbers.js";
import { bestNumHashes, classicFpr, measurementError } from "../theory.js";
import { Controls, Facts, Range } from "../ui/Controls.js";
import { Stopped, measuredRate } from "../ui/Measured.js";
import { Legend, Plot, type Series } from "../ui/Plot.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  bits: number;
  k: number;
}

const ITEMS = 10_000;
const MOST_BITS = 20;
const MOST_K = 16;
const BITS = Array.from({ length: 73 }, (_, i) => 2 + i / 4);
const HASHES = Array.from({ length: MOST_K }, (_, i) => i + 1);
const LEAST = 1e-5;

function Figure({ values: { bits, k }, change }: SceneProps<Values>): VNode {
  const m = Math.round(bits * ITEMS);
  const theory = classicFpr(ITEMS, m, k);
  const best = bestNumHashes(m, ITEMS);
  const measurement = useMeasurement({ layout: "classic", numBits: m, numHashes: k, items: ITEMS, trials: 5_000_000 });
  const { result, rate: measured } = measurement;
  const error = result === undefined ? 0 : measurementError(theory, Math.max(1, result.trials));
  const dot = (xs: readonly number[], at: number): (number | null)[] => {
    const nearest = xs.reduce((found, x, i) => (Math.abs(x - at) < Math.abs((xs[found] ?? 0) - at) ? i : found), 0);
    return xs.map((_, i) => (i === nearest && measured !== undefined && measured >= LEAST ? measured : null));
  };
  const byBits: Series[] = useMemo(
    () => [
      { label: `theory, k = ${k}`, ys: BITS.map((x) => classicFpr(ITEMS, Math.round(x * ITEMS), k)), style: "strong" },
      {
        label: "theory, best k",
        ys: BITS.map((x) => classicFpr(ITEMS, Math.round(x * ITEMS), bestNumHashes(Math.round(x * ITEMS), ITEMS))),
        style: "dashed",
      },
    ],
    [k],
  );
  const byHashes: Series[] = useMemo(
    () => [{ label: `theory, ${bits} bits per key`, ys: HASHES.map((x) => classicFpr(ITEMS, m, x)), style: "strong" }],
    [m],
  );
  const legend: Series[] = [...byBits, { label: "measured in this page", ys: [], style: "dots" }];
  return (
    <>
      <Controls>
        <Range label="Bits per key, m/n" value={bits} least={2} most={MOST_BITS} step={0.25} shown={bits.toFixed(2)} change={(next) => { change({ bits: next }); }} />
        <Range label="Hash functions, k" value={k} least={1} most={MOST_K} change={(next) => { change({ k: next }); }} />
      </Controls>
      <Facts
        facts={[
          ["theory", percent(theory)],
          ["measured", measuredRate(measurement)],
          ["absent keys looked up", count(result?.trials ?? 0)],
          ["best k here", `${best}, ${percent(classicFpr(ITEMS, m, best))}`],
        ]}
      />
      <div class="pair">
        <Plot
          xs={BITS} series={[...byBits, { label: "measured", ys: dot(BITS, bits), style: "dots" }]} yLog yRange={[LEAST, 1]}
          xLabel="bits per key" yLabel="false-positive rate"
          handle={{
            x: bits, y: theory, label: "Bits per key", shown: `${bits} bits per key, rate ${percent(theory)}`, least: 2, most: MOST_BITS, step: 0.25,
            change: (x) => { change({ bits: x }); },
          }}
          description={`Rate against bits per key with ${k} hash functions. At ${bits} bits per key it is ${percent(theory)}.`}
        />
        <Plot
          xs={HASHES} series={[...byHashes, { label: "measured", ys: dot(HASHES, k), style: "dots" }]} yLog yRange={[LEAST, 1]}
          xLabel="hash functions, k" yLabel="false-positive rate"
          handle={{
            x: k, y: theory, label: "Hash functions", shown: `${k} hash functions, rate ${percent(theory)}`, least: 1, most: MOST_K, step: 1,
            change: (x) => { change({ k: x }); },
          }}
          description={`Rate against hash functions at ${bits} bits per key. The least, ${percent(classicFpr(ITEMS, m, best))}, is at k = ${best}.`}
        />
      </div>
      <Legend series={legend} />
      <Stopped measured={[measurement]} />
      {result?.reason === undefined && <Verdict measured={measured} theory={theory} error={error} trials={result?.trials ?? 0} />}
    </>
  );
}

function Verdict({ measured, theory, error, trials }: { measured: number | undefined; theory: number; error: number; trials: number }): VNode {
  // Not read aloud at each of twenty changes a second.
  if (measured === undefined || trials < 100_000) return <p class="answer">A filter with {count(ITEMS)} keys is looking up 100,000 absent keys per second.</p>;
  const off = Math.abs(measured - theory) / error;
  return (
    <p class="answer">
      {off <= 3
        ? <>Theory and measurement agree: the difference is {off.toFixed(1)} standard deviations of chance.</>
        : <>The difference is {off.toFixed(1)} standard deviations: this one filter is a little fuller or emptier than the mean.</>}
    </p>
  );
}

export const scene = hide<Values>({
  fields: { bits: number(2, MOST_BITS, 10), k: whole(1, MOST_K, 7) },
  sentence: "Ten bits per key and seven hash functions give about 1 %: theory says so, and this page looks absent keys up in a filter to prove it.",
  attempt: "Drag the point of the right plot to k = 1 and to k = 16: both cost more than the best k. Each 4.8 bits per key divide the rate by ten.",
  Figure,
});
