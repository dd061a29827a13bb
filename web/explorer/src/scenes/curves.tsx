/** Rate against the number of keys for several sizes: the figure of the encyclopedia. */

import type { VNode } from "preact";

import { number, whole } from "../address.js";
import { useMeasurement } from "../measure.js";
import { bytes, count, percent, raise } from "../numbers.js";
import { bestFpr, bestNumHashes, classicFpr } from "../theory.js";
import { Answer, Controls, Facts, Range } from "../ui/Controls.js";
import { Stopped, measuredRate } from "../ui/Measured.js";
import { Plot, type Series } from "../ui/Plot.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  /** Decimal logarithms of keys and bits. */
  n: number;
  m: number;
}

const SIZES = [4, 5, 6, 7, 8, 9, 10];
const XS = Array.from({ length: 141 }, (_, i) => 10 ** (2 + i / 20));
const LEAST = 1e-9;
/** Beyond this, a filter is too large to be measured while a point is dragged. */
const MOST_MEASURED = 7;

function Figure({ values, change }: SceneProps<Values>): VNode {
  const { m } = values;
  const numBits = 10 ** m;
  const n = Math.max(1, Math.round(10 ** values.n));
  const k = Math.min(64, bestNumHashes(numBits, n));
  const rate = classicFpr(n, numBits, k);
  const canMeasure = m <= MOST_MEASURED && n <= 2e6;
  const measurement = useMeasurement({ layout: "classic", numBits: canMeasure ? numBits : 10_000, numHashes: canMeasure ? k : 1, items: canMeasure ? n : 0, trials: canMeasure ? 2_000_000 : 0, hurry: true });
  const curve = (size: number): (number | null)[] =>
    XS.map((x) => {
      const y = bestFpr(x, 10 ** size);
      return y < LEAST ? null : y;
    });
  const series: Series[] = SIZES.map((size) => ({
    label: `${raise(size)} bits`, ys: curve(size), style: size === m ? "strong" : "quiet", tag: raise(size),
  }));
  return (
    <>
      <Controls>
        <Range label="Bits, m" value={m} least={4} most={10} shown={`${raise(m)} (${bytes(numBits / 8)})`} change={(next) => { change({ m: next }); }} />
        <Range label="Keys, n" value={values.n} least={2} most={9} step={0.05} shown={count(n)} change={(next) => { change({ n: next }); }} />
      </Controls>
      <Plot
        xs={XS} series={series} xLog yLog yRange={[LEAST, 1]} xLabel="keys, n" yLabel="false-positive rate" height={400}
        formatX={(x) => raise(Math.round(Math.log10(x)))}
        format={(y) => (y === 1 ? "1" : raise(Math.round(Math.log10(y))))}
        handle={{
          x: values.n, y: Math.max(rate, LEAST), log: true, label: "Keys", shown: `${count(n)} keys, rate ${percent(rate)}`, least: 2, most: 9, step: 0.05,
          change: (x) => { change({ n: x }); },
        }}
        description={`Rate against keys for filters of ${SIZES.map(raise).join(", ")} bits, each with the best k. ${count(n)} keys in ${raise(m)} bits: ${percent(rate)}.`}
      />
      <Facts
        facts={[
          ["theory", percent(rate)],
          ["measured", canMeasure ? measuredRate(measurement) : "too large to measure here"],
          ["best k", count(k)],
          ["bits per key", numBits / n >= 100 ? count(numBits / n) : (numBits / n).toPrecision(3)],
        ]}
      />
      {canMeasure && <Stopped measured={[measurement]} />}
      <Answer>
        {count(n)} keys in {bytes(numBits / 8)} have a rate of {percent(rate)}.{" "}
        {rate > 0.5 ? "The filter says yes to nearly everything: it is far too small." : "Ten times the bits for ten times the keys leaves the rate as it is."}
      </Answer>
    </>
  );
}

export const scene = hide<Values>({
  fields: { n: number(2, 9, 5), m: whole(4, 10, 6) },
  sentence: "Each line is a filter of one size, always with the best k: it is nearly never wrong until its bits run out, and then nearly always.",
  attempt: "Drag the point along its line from 10⁴ to 10⁶ keys. Between “almost never” and “almost always” lies one factor of ten.",
  Figure,
});
