/** One line of cache for each key, and what it costs. */

import type { VNode } from "preact";
import { useMemo } from "preact/hooks";

import { choice, number } from "../address.js";
import { countOnes } from "../core/container.js";
import { contents, using, withShape } from "../core/filters.js";
import { useMeasurement } from "../measure.js";
import { count, percent } from "../numbers.js";
import { blockedFpr, classicFpr } from "../theory.js";
import { Bitmap } from "../ui/Bitmap.js";
import { Answer, Choice, Controls, Facts, Range } from "../ui/Controls.js";
import { Stopped, measuredRate } from "../ui/Measured.js";
import { Legend, Plot, type Series } from "../ui/Plot.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  bits: number;
  k: "4" | "8" | "12";
}

const ITEMS = 10_000;
const LINE = 512;
const BITS = Array.from({ length: 37 }, (_, i) => 4 + i / 2);
const LEAST = 1e-5;
const TRIALS = 2_000_000;

/** So many bits, in whole lines. */
function lined(bits: number): number {
  return LINE * Math.round((bits * ITEMS) / LINE);
}

/** The share of lines by the number of set bits, in steps of 8. */
function spread(bits: Uint8Array): number[] {
  const shares = new Array<number>(65).fill(0);
  const lines = Math.floor(bits.length / 64);
  for (let i = 0; i < lines; i++) {
    const ones = countOnes(bits.subarray(64 * i, 64 * i + 64));
    shares[Math.round(ones / 8)] = (shares[Math.round(ones / 8)] ?? 0) + 1 / lines;
  }
  return shares;
}

function Figure({ values: { bits, k: chosen }, change }: SceneProps<Values>): VNode {
  const k = Number(chosen);
  const m = lined(bits);
  const [classic, blocked] = [classicFpr(ITEMS, m, k), blockedFpr(ITEMS, m, k)];
  const shape = { numBits: m, numHashes: k, items: ITEMS, trials: TRIALS };
  const first = useMeasurement({ layout: "classic", ...shape }, 0);
  const second = useMeasurement({ layout: "blocked", ...shape }, 1);
  const held = useMemo(
    () =>
      (["classic", "blocked"] as const).map((layout) =>
        using(withShape({ layout, numBits: m, numHashes: k }), (filter) => {
          filter.addMany(Array.from({ length: ITEMS }, (_, i) => i));
          return contents(filter).bits;
        }),
      ),
    [m, k],
  );
  const nearest = BITS.reduce((found, x, i) => (Math.abs(x - bits) < Math.abs((BITS[found] ?? 0) - bits) ? i : found), 0);
  const dots = [first, second].map(({ rate }) => BITS.map((_, i) => (i === nearest && rate !== undefined && rate >= LEAST ? rate : null)));
  const lines = useMemo((): Series[] => [
    { label: "blocked, theory", ys: BITS.map((x) => blockedFpr(ITEMS, lined(x), k)), style: "strong" },
    { label: "classic, theory", ys: BITS.map((x) => classicFpr(ITEMS, lined(x), k)), style: "line" },
  ], [k]);
  const series: Series[] = [...lines, ...dots.map((ys, i): Series => ({ label: i === 0 ? "measured in this page" : "blocked, measured", ys, style: "dots" }))];
  const xs = Array.from({ length: 65 }, (_, i) => 8 * i);
  const shares = held.map(spread);
  const tops: Series[] = [
    { label: "blocked", ys: shares[1] ?? [], style: "strong" },
    { label: "classic", ys: shares[0] ?? [], style: "line" },
  ];
  return (
    <>
      <Controls>
        <Range label="Bits per key" value={bits} least={4} most={22} step={0.5} shown={bits.toFixed(1)} change={(next) => { change({ bits: next }); }} />
        <Choice label="Hash functions, k" value={chosen} options={[["4", "4"], ["8", "8"], ["12", "12"]]} change={(next) => { change({ k: next }); }} />
      </Controls>
      <Facts
        facts={[
          ["classic, theory", percent(classic)],
          ["classic, measured", measuredRate(first)],
          ["blocked, theory", percent(blocked)],
          ["blocked, measured", measuredRate(second)],
          ["absent keys looked up", count(Math.min(first.result?.trials ?? 0, second.result?.trials ?? 0))],
        ]}
      />
      <Stopped measured={[first, second]} />
      <div class="pair">
        <div>
          <Plot
            xs={BITS} series={series} yLog yRange={[LEAST, 1]} xLabel="bits per key" yLabel="false-positive rate"
            handle={{
              x: bits, y: blocked, label: "Bits per key", shown: `${bits} bits per key, rate ${percent(blocked)} blocked and ${percent(classic)} classic`,
              least: 4, most: 22, step: 0.5, change: (x) => { change({ bits: x }); },
            }}
            description={`Rate against bits per key at k = ${k}: blocked ${percent(blocked)}, classic ${percent(classic)}.`}
          />
          <Legend series={series.slice(0, 3)} />
        </div>
        <div>
          <Plot
            xs={xs} series={tops} xLabel="set bits of a line of 512" yLabel="share of lines" format={(y) => `${Math.round(100 * y)} %`}
            yRange={[0, Math.max(0.1, ...tops.flatMap(({ ys }) => ys.map((y) => y ?? 0))) * 1.1]}
            description="How many lines have how many set bits: lines of the blocked filter differ more."
          />
          <Legend series={tops} />
        </div>
      </div>
      <h2>The first 24 lines of the blocked filter, one a row</h2>
      <Bitmap bits={(held[1] ?? new Uint8Array()).subarray(0, 64 * Math.min(24, m / LINE))} numBits={LINE * Math.min(24, m / LINE)} row={LINE} description="Lines of 512 bits; some are visibly fuller than others." />
      <Answer>
        A lookup in the classic filter touches up to {k} lines of the cache, in the blocked one exactly 1. Some lines get more keys
        than others, so at {bits} bits per key the rate is {percent(blocked)} instead of {percent(classic)}.
      </Answer>
      <p class="quiet">Both filters hold {count(ITEMS)} keys in {count(m)} bits.</p>
    </>
  );
}

export const scene = hide<Values>({
  fields: { bits: number(4, 22, 12), k: choice(["4", "8", "12"], "8") },
  sentence: "A blocked filter puts all bits of a key into one cache line, so that a lookup waits for memory once; crowded lines cost some rate.",
  attempt: "Go from 8 to 20 bits per key with k = 8: the price of blocking is small at 1 % and grows with every bit.",
  Figure,
});
