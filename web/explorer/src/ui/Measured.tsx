/** What a scene shows of a measurement. */

import type { VNode } from "preact";

import type { Measured } from "../measure.js";
import { percent } from "../numbers.js";
import { Button } from "./Controls.js";

/** The measured rate; three dots before there is one, and a word where there will be none. */
export function measuredRate({ result, rate }: Measured): string {
  return rate === undefined ? (result?.reason === undefined ? "…" : "not measured") : percent(rate);
}

/** Why a measurement stopped, and a button to begin again; nothing while it runs. */
export function Stopped({ measured }: { measured: readonly Measured[] }): VNode | null {
  const reason = measured.find(({ result }) => result?.reason !== undefined)?.result?.reason;
  if (reason === undefined) return null;
  return (
    <p class="trouble" role="alert">
      The measurement stopped: {reason}.{" "}
      <Button plain press={() => { measured.forEach(({ result, again }) => { if (result?.reason !== undefined) again(); }); }}>Try again</Button>
    </p>
  );
}
