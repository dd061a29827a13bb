/** Figures that are read again and again, and survive a service that is away. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { backoff } from "../lib/backoff";
import { isAbort, type Problem, toProblem } from "../service/client";
import { useSession } from "./session";

export interface Polled<T> {
  /** The last data that arrived; null before the first. */
  readonly data: T | null;
  /** When they arrived, in milliseconds since 1970. */
  readonly at: number;
  /** Why the last request failed; null if it succeeded. */
  readonly problem: Problem | null;
  /** When the next attempt after a failure is due; null if none is. */
  readonly retryAt: number | null;
  readonly reload: () => void;
}

/** How much longer than an answer took the page waits before it asks again, so that it never keeps a service busy. */
const REST = 10;
/** Milliseconds between attempts after a refusal that time alone does not lift, such as a filter that was dropped. */
const REFUSED = 10_000;

/**
 * Calls `load` now, again when `key` changes, and every `interval` milliseconds while the page is visible. After a
 * failure the last data stay, and the pauses grow. Data of another key are dropped.
 */
export function usePolled<T>(key: string, interval: number, load: (signal: AbortSignal) => Promise<T>): Polled<T> {
  const { generation } = useSession();
  const [state, setState] = useState<Omit<Polled<T>, "reload"> & { key: string }>({ data: null, at: 0, problem: null, retryAt: null, key });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;

  useEffect(() => {
    const control = new AbortController();
    let timer: number | undefined;
    let failures = 0;
    const plan = (delay: number): void => {
      window.clearTimeout(timer);
      timer = window.setTimeout(() => void run(), delay);
    };
    const run = async (): Promise<void> => {
      if (document.hidden && failures === 0) {
        plan(interval); // nobody looks; the first answer after that is a moment away
        return;
      }
      const begun = performance.now();
      try {
        const data = await latest.current(control.signal);
        failures = 0;
        setState({ data, at: Date.now(), problem: null, retryAt: null, key });
        plan(Math.max(interval, REST * (performance.now() - begun)));
      } catch (error) {
        if (isAbort(error) || control.signal.aborted) return;
        const problem = toProblem(error);
        failures += 1;
        const delay = problem.isTemporary || problem.code === "garbage" ? backoff(failures, problem.retryAfter, Math.random()) : REFUSED;
        const isFinal = problem.status === 401; // a token starts it again
        setState((before) => ({
          ...(before.key === key ? before : { data: null, at: 0, key }),
          problem,
          retryAt: isFinal ? null : Date.now() + delay,
        }));
        if (!isFinal) plan(delay);
      }
    };
    const wake = (): void => {
      if (!document.hidden) plan(0);
    };
    document.addEventListener("visibilitychange", wake);
    window.addEventListener("online", wake);
    void run();
    return () => {
      control.abort();
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", wake);
      window.removeEventListener("online", wake);
    };
  }, [key, interval, generation, turn]);

  const reload = useCallback(() => {
    setTurn((before) => before + 1);
  }, []);
  const own = state.key === key ? state : { ...state, data: null, problem: null, retryAt: null };
  return { data: own.data, at: own.at, problem: own.problem, retryAt: own.retryAt, reload };
}

/** Returns the same with the data of the key before, until those of the present one arrive. */
export function useKept<T>(polled: Polled<T>): Polled<T> & { readonly isOld: boolean } {
  const last = useRef<T | null>(null);
  if (polled.data !== null) last.current = polled.data;
  return { ...polled, data: polled.data ?? last.current, isOld: polled.data === null };
}

/** Returns the present time, which changes every second: for ages and countdowns. */
export function useNow(every = 1000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = window.setInterval(() => {
      setNow(Date.now());
    }, every);
    return () => {
      window.clearInterval(timer);
    };
  }, [every]);
  return now;
}
