/** Measurements of false-positive rates, made by a worker. */

import { useCallback, useEffect, useState } from "preact/hooks";

import { firstMessage } from "./core/loading.js";

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

/** Called with each result of a measurement. */
type Listen = (result: MeasureResult) => void;

/** A worker that measures; started by whoever first needs it, and again after it failed to start. */
class Meter {
  #worker: Worker | undefined;
  #id = 0;
  #listen: Listen | undefined;
  #loaded: Promise<void> = Promise.resolve();

  /** Fulfilled when the worker has loaded all that it needs, or failed to. */
  load(): Promise<void> {
    this.#start();
    return this.#loaded;
  }

  /** Measures; what was measured before stops. */
  measure(measurement: Measurement, listen: Listen): () => void {
    const id = ++this.#id;
    this.#listen = listen;
    this.#start().postMessage({ ...measurement, id } satisfies MeasureRequest);
    return () => {
      if (this.#id === id) this.#worker?.postMessage({ ...measurement, id: ++this.#id, items: 0, trials: 0 });
    };
  }

  #start(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    const worker = new Worker(new URL("./measure.worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }: MessageEvent<MeasureResult | "ready">) => {
      if (data !== "ready" && data.id === this.#id) this.#listen?.(data);
    });
    worker.addEventListener("error", (event) => {
      // A worker whose script did not load never answers: the next measurement starts another.
      worker.terminate();
      if (this.#worker === worker) this.#worker = undefined;
      const reason = event.message || "the worker that measures did not load; try again when the connection is back";
      this.#listen?.({ id: this.#id, trials: 0, hits: 0, fill: 0, fpr: 0, reason });
    });
    this.#loaded = firstMessage(worker);
    this.#worker = worker;
    return worker;
  }
}

const meters: Meter[] = [];

/** The worker of number `at`; the page starts them early, so that they are there without the network. */
export function meter(at = 0): Meter {
  for (let i = meters.length; i <= at; i++) meters.push(new Meter());
  return meters[at] as Meter;
}

/** A measurement under way. */
export interface Measured {
  /** The latest result; none before the first. */
  readonly result: MeasureResult | undefined;
  /** The share of absent keys that were found so far; none before the first. */
  readonly rate: number | undefined;
  /** Begins again, after it failed. */
  readonly again: () => void;
}

/** The measurement of a shape, which begins again when the shape changes, and when a connection is back after a failure. */
export function useMeasurement(measurement: Measurement, at = 0): Measured {
  const [result, setResult] = useState<MeasureResult>();
  const [attempt, setAttempt] = useState(0);
  const { layout, numBits, numHashes, items, trials } = measurement;
  const again = useCallback(() => { setAttempt((before) => before + 1); }, []);
  useEffect(() => {
    setResult(undefined);
    // A slider that moves asks for many; only the one where it rests is measured.
    let stop: (() => void) | undefined;
    const timer = setTimeout(() => { stop = meter(at).measure(measurement, setResult); }, 120);
    return () => {
      clearTimeout(timer);
      stop?.();
    };
  }, [layout, numBits, numHashes, items, trials, at, attempt]);
  const isStopped = result?.reason !== undefined;
  useEffect(() => {
    if (!isStopped) return;
    window.addEventListener("online", again);
    return () => { window.removeEventListener("online", again); };
  }, [isStopped, again]);
  return { result, rate: result === undefined || result.trials === 0 ? undefined : result.hits / result.trials, again };
}
