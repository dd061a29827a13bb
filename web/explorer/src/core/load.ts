/** Loading of the core: at once what the first picture needs, the rest when the page is idle. */

import { init } from "fullbloom";

/** The core, ready for use. */
export function loadCore(): Promise<void> {
  return init();
}

let begun = false;

/** Loads what other scenes need when nothing else is to be done, so that they work without the network. */
export function loadRest(loads: readonly (() => Promise<unknown>)[]): void {
  if (begun) return;
  begun = true;
  const idle = (work: () => void): void => {
    if ("requestIdleCallback" in window) window.requestIdleCallback(work, { timeout: 2000 });
    else setTimeout(work, 500);
  };
  const next = (at: number): void => {
    const load = loads[at];
    if (load === undefined) {
      document.documentElement.dataset["loaded"] = "all";
      return;
    }
    idle(() => {
      load().catch(() => undefined).finally(() => { next(at + 1); });
    });
  };
  next(0);
}
