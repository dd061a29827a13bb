/** Measures rates away from the page: 100,000 absent keys a second, in slices. */

import { type Filter, init } from "fullbloom";

import core from "virtual:core";

import { withShape } from "./core/filters.js";
import { loading } from "./core/loading.js";
import type { MeasureRequest, MeasureResult } from "./measure.js";

/** Keys of one slice, and milliseconds between slices: 100,000 a second. */
const SLICE = 5000;
const PAUSE = 50;
/** Absent keys begin here: integers that no scene adds. */
const ABSENT = 2 ** 40;

// Early, so that it is there without the network. A load that fails is tried again by whoever needs it.
init(core).then(() => { self.postMessage("ready"); }, () => { self.postMessage("ready"); });
let latest = -1;

/** Sends to the page. */
function send(result: MeasureResult): void {
  self.postMessage(result);
}

/** Integers from `start` on. */
function integers(start: number, length: number): number[] {
  return Array.from({ length }, (_, i) => start + i);
}

/** Asks for absent keys until another request comes, or enough were asked for. */
async function run(request: MeasureRequest): Promise<void> {
  let filter: Filter | undefined;
  try {
    await loading(init(core));
    filter = withShape(request);
    for (let at = 0; at < request.items; at += SLICE) {
      filter.addMany(integers(at, Math.min(SLICE, request.items - at)));
    }
    const { fill, fpr } = filter.info() as { fill: number; fpr: number };
    let [trials, hits] = [0, 0];
    while (latest === request.id && trials < request.trials) {
      const begun = performance.now();
      hits += filter.hasMany(integers(ABSENT + trials, SLICE)).filter(Boolean).length;
      trials += SLICE;
      send({ id: request.id, trials, hits, fill, fpr });
      await new Promise((resume) => setTimeout(resume, request.hurry === true ? 0 : PAUSE - (performance.now() - begun)));
    }
  } catch (error) {
    send({ id: request.id, trials: 0, hits: 0, fill: 0, fpr: 0, reason: error instanceof Error ? error.message : String(error) });
  } finally {
    filter?.free();
  }
}

self.addEventListener("message", ({ data }: MessageEvent<MeasureRequest>) => {
  latest = data.id;
  void run(data);
});
