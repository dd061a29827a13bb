/** Loading of the core: at once what the first picture needs, the rest when the page is idle. */

import { init } from "fullbloom";
import core from "virtual:core";

/** The core of the first scenes, ready for use. */
export function loadCore(): Promise<void> {
  return init(core);
}

/** The whole package beside it, for the scenes whose kinds the core leaves out. */
export async function loadWhole(): Promise<void> {
  await (await import("fullbloom?whole")).init();
}

/** True where the reader asked the browser to transfer as little as possible. */
function savesData(): boolean {
  return (navigator as { connection?: { saveData?: boolean } }).connection?.saveData === true;
}

let begun = false;

/**
 * Loads the other scenes and the workers when nothing else is to be done, so that they work without the network. Then
 * the page's root has `data-loaded="all"`. A browser that saves data loads each scene when it is opened.
 */
export function loadRest(scenes: readonly (() => Promise<unknown>)[]): void {
  if (begun || savesData()) return;
  begun = true;
  const workers = [
    async () => (await import("../measure.js")).meter(0).load(),
    async () => (await import("../measure.js")).meter(1).load(),
    async () => (await import("./fileWorker.js")).loadFileWorker(),
  ];
  void loadIdly([...scenes, ...workers]);
}

/** One after the other, each when the page is idle. What fails is loaded again when it is needed. */
async function loadIdly(loads: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const load of loads) {
    await new Promise<void>((resume) => {
      if ("requestIdleCallback" in window) window.requestIdleCallback(() => { resume(); }, { timeout: 2000 });
      else setTimeout(resume, 200);
    });
    await load().catch(() => undefined);
  }
  document.documentElement.dataset["loaded"] = "all";
}
