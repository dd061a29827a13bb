/** The list of scenes, in the order in which they are told. */

import { loadWhole } from "../core/load.js";
import type { Entry } from "./scene.js";

/** A scene of kinds that only the whole package has. */
async function whole<T>(load: () => Promise<T>): Promise<T> {
  const [scene] = await Promise.all([load(), loadWhole()]);
  return scene;
}

export const SCENES: readonly Entry[] = [
  { name: "words", title: "Words become bits", load: () => import("./words.js") },
  { name: "fill", title: "Half full is best", load: () => import("./fill.js") },
  { name: "rate", title: "How often is it wrong?", load: () => import("./rate.js") },
  { name: "curves", title: "Keys against size", load: () => import("./curves.js") },
  { name: "blocked", title: "One cache line", load: () => import("./blocked.js") },
  { name: "counting", title: "Counting and removal", load: () => import("./counting.js") },
  { name: "growth", title: "A filter that grows", load: () => whole(() => import("./growth.js")) },
  { name: "window", title: "A window that forgets", load: () => import("./window.js") },
  { name: "cuckoo", title: "Cuckoos and their nests", load: () => whole(() => import("./cuckoo.js")) },
  { name: "quotient", title: "Quotients in runs", load: () => whole(() => import("./quotient.js")) },
  { name: "golomb", title: "Gaps, not places", load: () => import("./golomb.js") },
  { name: "cascade", title: "Revoked or good?", load: () => whole(() => import("./cascade.js")) },
  { name: "duplicates", title: "Four machines", load: () => import("./duplicates.js") },
  { name: "file", title: "Your own file", load: () => import("./file.js") },
];
