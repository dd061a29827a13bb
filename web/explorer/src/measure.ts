/** Measurements of false-positive rates, made by a worker. */

import { useEffect, useState } from "preact/hooks";

/** What is measured: a filter of this shape with so many keys. */
export interface Measurement {
  readonly layout: "classic" | "blocked";
  readonly numBits: number;
  readonly numHashes: number;
  readonly items: number;
  /** Absent keys at most. */
  readonly trials: number;
  /** Without pauses: not at 100,000 keys a second. */
  readonly hurry?: boolean;
}

/** A message to the worker. */
export interface MeasureRequest extends Measurement {
  readonly id: number;
}

/** A message from it: how many absent keys were asked for so far, and how many of them were found. */
export interface MeasureResult {
  readonly id: number;
  readonly trials: number;
  readonly hits: number;
  /** Of the filter. */
  readonly fill: number;
  /** By the library's own law. */
  readonly fpr: number;
  readonly reason?: string;
}

/** Worker that measures; started by whoever first needs it. */
class Meter {
  readonly #worker = new Worker(new URL("./measure.worker.ts", import.meta.url), { type: "module" });
  #id = 0;
  #listen: ((result: MeasureResult) => void) | undefined;

  /** Fulfilled when the worker has loaded all that it needs. */
  readonly ready: Promise<void>;

  constructor() {
    this.ready = new Promise((resolve) => {
      this.#worker.addEventListener("message", ({ data }: MessageEvent<MeasureResult | "ready">) => {
        if (data === "ready") resolve();
        else if (data.id === this.#id) this.#listen?.(data);
      });
      this.#worker.addEventListener("error", (event) => {
        resolve();
        this.#listen?.({ id: this.#id, trials: 0, hits: 0, fill: 0, fpr: 0, reason: event.message || "the worker did not start" });
      });
    });
  }

  /** Measures; what was measured before stops. */
  measure(measurement: Measurement, listen: (result: MeasureResult) => void): () => void {
    const id = ++this.#id;
    this.#listen = listen;
    this.#worker.postMessage({ ...measurement, id } satisfies MeasureRequest);
    return () => {
      if (this.#id === id) this.#worker.postMessage({ ...measurement, id: ++this.#id, items: 0, trials: 0 });
    };
  }
}

const meters: Meter[] = [];

/** The worker of number `at`; the page starts them early, so that they are there without the network. */
export function meter(at = 0): Meter {
  for (let i = meters.length; i <= at; i++) meters.push(new Meter());
  return meters[at] as Meter;
}

/** The latest result of a measurement, which begins again when `measurement` changes. */
export function useMeasurement(measurement: Measurement, at = 0): MeasureResult | undefined {
  const [result, setResult] = useState<MeasureResult>();
  const { layout, numBits, numHashes, items, trials } = measurement;
  useEffect(() => {
    setResult(undefined);
    // A slider that moves asks for many; only the one where it rests is measured.
    let stop: (() => void) | undefined;
    const timer = setTimeout(() => { stop = meter(at).measure(measurement, setResult); }, 120);
    return () => {
      clearTimeout(timer);
      stop?.();
    };
  }, [layout, numBits, numHashes, items, trials, at]);
  return result;
}
