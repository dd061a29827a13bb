/** A window over a stream: old keys are forgotten. */

import { create, hashKey } from "fullbloom";
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";

import { choice, whole } from "../address.js";
import { using } from "../core/filters.js";
import { Generations } from "../core/window.js";
import { count, percent } from "../numbers.js";
import { Answer, Button, Choice, Controls, Facts, Range } from "../ui/Controls.js";
import { usePlay } from "../ui/usePlay.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  n: number;
  window: number;
  kind: "rolling" | "aging";
}

const MOST = 600;
const SHOWN = 160;

function Figure({ values: { n, window, kind }, change }: SceneProps<Values>): VNode {
  const state = useMemo(
    () =>
      using(create(kind, { capacity: window, fpr: 0.01, ...(kind === "rolling" ? { generations: 4 } : {}) }), (filter) => {
        const visitors = Array.from({ length: n }, (_, i) => `visitor-${i + 1}`);
        filter.addMany(visitors);
        const generations = new Generations(filter);
        const recent = visitors.slice(-SHOWN);
        const found = filter.hasMany(recent);
        return {
          generations,
          chips: recent.map((name, i) => ({ name, found: found[i] ?? false, planes: generations.find(hashKey(name)) })),
          first: n - recent.length,
          rate: (filter.info() as { fpr: number }).fpr,
        };
      }),
    [n, window, kind],
  );
  const { generations } = state;
  const { playing, toggle } = usePlay(() => {
    const next = Math.min(MOST, n + 1);
    change({ n: next });
    return next < MOST;
  });
  const remembered = state.chips.filter(({ found }) => found).length;
  // Oldest first, the active one last.
  const order = Array.from({ length: generations.planes }, (_, age) => (generations.active + 1 + age) % generations.planes);
  return (
    <>
      <Controls>
        <Range label="Visitors so far" value={n} least={0} most={MOST} shown={count(n)} change={(next) => { change({ n: next }); }} />
        <Range label="Window, keys" value={window} least={10} most={100} change={(next) => { change({ window: next }); }} />
        <Choice label="Kind" value={kind} options={[["rolling", "rolling, 4 generations"], ["aging", "aging, 2 buffers"]]} change={(next) => { change({ kind: next }); }} />
        <Button press={() => { if (!playing && n >= MOST) change({ n: 0 }); toggle(); }}>{playing ? "Stop" : "Let visitors come"}</Button>
      </Controls>
      <div class="cells tiny visitors" role="img" aria-label={`The last ${state.chips.length} visitors; ${remembered} of them are remembered, and the last ${Math.min(window, n)} certainly.`}>
        {state.chips.map(({ name, found }, i) => (
          <span key={name} class={`${found ? "set" : ""}${state.first + i >= n - window ? " mark" : ""}`} title={name} />
        ))}
      </div>
      <ul class="legend marks"><li class="remembered">remembered</li><li class="forgotten">forgotten</li><li class="promised">within the window: never missed</li></ul>
      <h2>Generations, oldest first</h2>
      <ol class="stages" aria-label="Generations of the filter">
        {order.map((plane) => (
          <li key={plane} class={plane === generations.active ? "active" : ""}>
            <span class="caption">
              {plane === generations.active ? <b>active: takes new keys</b> : "read only"}, {count(generations.written[plane] ?? 0)} keys, {percent(generations.fill(plane))} of its bits set
            </span>
            <span class="track"><span class="level" style={{ width: `${100 * generations.fill(plane)}%` }} /></span>
          </li>
        ))}
      </ol>
      <Facts facts={[["visitors", count(n)], ["remembered of those shown", `${remembered} of ${state.chips.length}`], ["rate now", percent(state.rate)]]} />
      <Answer>
        {n <= window ? "No visitor is forgotten yet." : `The last ${window} visitors are certainly remembered; older ones go a whole generation at a time, when the oldest is cleared and becomes the new active one.`}
      </Answer>
    </>
  );
}

export const scene = hide<Values>({
  fields: { n: whole(0, MOST, 150), window: whole(10, 100, 48), kind: choice(["rolling", "aging"], "rolling") },
  sentence: "In an endless stream only the recent matters: generations of bits take turns, and the oldest is cleared to take the next keys.",
  attempt: "Let visitors come and watch the oldest generation empty at once. Then compare the aging kind, which has two buffers only.",
  Figure,
});
