/** Fill climbs to one half at the optimum. */

import type { VNode } from "preact";
import { useMemo } from "preact/hooks";

import { whole } from "../address.js";
import { contents, using, withShape } from "../core/filters.js";
import { count, percent } from "../numbers.js";
import { classicFpr, fill as fillLaw } from "../theory.js";
import { Bitmap } from "../ui/Bitmap.js";
import { Answer, Button, Controls, Facts, Range } from "../ui/Controls.js";
import { Legend, Plot, type Series } from "../ui/Plot.js";
import { usePlay } from "../ui/usePlay.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  m: number;
  k: number;
  n: number;
}

/** Points of the curve. */
const POINTS = 64;

/** The fill of a real filter of this shape while keys 0, 1, 2, ... are added, at each of `xs`. */
export function climb(numBits: number, numHashes: number, xs: readonly number[]): number[] {
  return using(withShape({ numBits, numHashes }), (filter) => {
    let at = 0;
    return xs.map((x) => {
      filter.addMany(Array.from({ length: x - at }, (_, i) => at + i));
      at = x;
      return (filter.info() as { fill: number }).fill;
    });
  });
}

function Figure({ values: { m, k, n: wanted }, change }: SceneProps<Values>): VNode {
  const most = Math.ceil((2.5 * m * Math.LN2) / k);
  const n = Math.min(wanted, most);
  const half = Math.round((m * Math.LN2) / k);
  const xs = useMemo(() => Array.from({ length: POINTS + 1 }, (_, i) => Math.round((i * most) / POINTS)), [most]);
  const measured = useMemo(() => climb(m, k, xs), [m, k, xs]);
  const { bits, fill } = useMemo(
    () =>
      using(withShape({ numBits: m, numHashes: k }), (filter) => {
        filter.addMany(Array.from({ length: n }, (_, i) => i));
        return { bits: contents(filter).bits, fill: (filter.info() as { fill: number }).fill };
      }),
    [m, k, n],
  );
  const series: Series[] = [
    { label: "fill of this filter", ys: measured, style: "strong" },
    { label: "theory, 1 − (1 − 1/m)^(kn)", ys: xs.map((x) => fillLaw(x, m, k)), style: "dashed" },
    { label: "one half", ys: xs.map(() => 0.5), style: "quiet" },
  ];
  const { playing, toggle } = usePlay(() => {
    const next = Math.min(half, n + Math.max(1, Math.round(half / 80)));
    change({ n: next });
    return next < half;
  });
  const play = (): void => {
    if (!playing) change({ n: 0 });
    toggle();
  };
  const best = Math.max(1, Math.round((m / Math.max(1, n)) * Math.LN2));
  return (
    <>
      <Controls>
        <Range label="Bits, m" value={m} least={256} most={8192} step={256} shown={count(m)} change={(next) => { change({ m: next }); }} />
        <Range label="Hash functions, k" value={k} least={1} most={14} change={(next) => { change({ k: next }); }} />
        <Range label="Keys, n" value={n} least={0} most={most} shown={count(n)} change={(next) => { change({ n: next }); }} />
        <Button press={play}>{playing ? "Stop" : "Fill to one half"}</Button>
      </Controls>
      <Bitmap bits={bits} numBits={m} most={180} description={`${count(m)} bits, ${percent(fill)} of them set.`} />
      <Facts
        facts={[
          ["fill", percent(fill)],
          ["rate now", percent(classicFpr(n, m, k))],
          ["bits per key", n === 0 ? "–" : (m / n).toFixed(2)],
          ["best k for this load", n === 0 ? "–" : count(best)],
        ]}
      />
      <Plot
        xs={xs} series={series} xLabel="keys added" yLabel="share of set bits" yRange={[0, 1]}
        format={(y) => `${Math.round(y * 100)} %`}
        handle={{
          x: n, y: fill, label: "Keys added", shown: `${count(n)} keys, fill ${percent(fill)}`, least: 0, most, step: Math.max(1, Math.round(most / 100)),
          change: (x) => { change({ n: x }); },
        }}
        description={`Fill against keys. It is one half at ${count(half)} keys and ${percent(fill)} at ${count(n)}.`}
      />
      <Legend series={series} />
      <Answer>
        With {count(n)} keys, {percent(fill)} of the bits are set.{" "}
        {Math.abs(fill - 0.5) < 0.03
          ? "This is the optimum: each bit is a fair coin and carries as much as a bit can, so no other k has a lower rate."
          : fill < 0.5
            ? "Zeros are left over: more hash functions would lower the rate."
            : "Too many ones: an absent key finds its bits set too often, and fewer hash functions would lower the rate."}
      </Answer>
    </>
  );
}

export const scene = hide<Values>({
  fields: { m: whole(256, 8192, 2048), k: whole(1, 14, 7), n: whole(0, 1e5, 203) },
  sentence: "A filter that is sized for its keys is half full: at n = (m/k) ln 2 keys every bit is set with probability one half.",
  attempt: "Press “Fill to one half”, then raise k without removing keys. The fill passes one half, and the best k stays behind.",
  Figure,
});
