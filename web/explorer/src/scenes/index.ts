/** The list of scenes, in the order in which they are told. */

import type { Entry } from "./scene.js";

export const SCENES: readonly Entry[] = [
  { name: "words", title: "Words become bits", load: () => import("./words.js") },
];
