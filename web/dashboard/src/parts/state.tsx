/** What a view says while it has no data, or only old ones. */

import type { ComponentChildren, JSX } from "preact";

import { formatTime, plural } from "../lib/format";
import type { Problem } from "../service/client";
import { type Polled, useNow } from "../state/polled";
import { Words } from "./words";

/** Shows data, greyed while they are old, with a sentence about what is wrong. */
export function Fresh<T>({
  polled,
  what,
  children,
}: {
  polled: Polled<T>;
  what: string;
  children: (data: T) => ComponentChildren;
}): JSX.Element {
  const { data, problem } = polled;
  return (
    <>
      <div role="status">{problem !== null && <Trouble polled={polled} />}</div>
      {data === null && problem === null && <p class="quiet">Reading {what} …</p>}
      {data !== null && <div class={problem === null ? "fresh" : "fresh stale"}>{children(data)}</div>}
    </>
  );
}

function Trouble<T>({ polled }: { polled: Polled<T> }): JSX.Element {
  const { data, at, problem, retryAt, reload } = polled;
  const now = useNow();
  return (
    <div class="notice">
      <p>
        <Sentence problem={problem} /> {data !== null && `The figures are from ${formatTime(at, now)}. `}
        {retryAt !== null && (
          <span aria-hidden="true" class="quiet">
            {retryAt > now ? `Next attempt in ${plural(Math.ceil((retryAt - now) / 1000), "second")}. ` : "Trying again … "}
          </span>
        )}
        {retryAt !== null && (
          <button type="button" onClick={reload}>
            Try now
          </button>
        )}
      </p>
    </div>
  );
}

/** The sentence of a problem. */
export function Sentence({ problem }: { problem: Problem | null }): JSX.Element | null {
  return problem === null ? null : <Words text={problem.message} most={600} />;
}

/** The sentence of a change that failed. */
export function Failure({ problem }: { problem: Problem | null }): JSX.Element {
  return <div role="alert">{problem !== null && <p class="notice"><Sentence problem={problem} /></p>}</div>;
}
