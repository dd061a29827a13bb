/** A filter over time: keys, rate, operations, and when it will be full. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";

import { differentiate, forecastFull } from "../lib/forecast";
import { formatCount, formatRate, formatShort, formatSpan, formatTime, plural } from "../lib/format";
import { Plot } from "../parts/plot";
import { Fresh } from "../parts/state";
import { filterPath } from "../service/client";
import { type Filter, history as decodeHistory, MOST_SAMPLES, type Sample } from "../service/types";
import { usePolled } from "../state/polled";
import { findCapabilities, hasOwners, useSession } from "../state/session";

const HOUR = 3_600_000;
const SPANS = [
  ["1 hour", HOUR],
  ["1 day", 24 * HOUR],
  ["1 week", 7 * 24 * HOUR],
  ["30 days", 30 * 24 * HOUR],
] as const;
const EVERY = 15_000;

export function History({ filter }: { filter: Filter }): JSX.Element {
  const { service } = useSession();
  const [span, setSpan] = useState<number>(HOUR);
  const polled = usePolled(`history ${filter.name} ${String(span)}`, EVERY, async (signal) => {
    const query = { since: Math.max(0, Date.now() - span), limit: MOST_SAMPLES };
    const { data } = await service.send(filterPath(filter.name, "history"), { decode: decodeHistory, query, signal });
    // A plot runs forwards; the service sends the newest first.
    return data.samples.sort((one, other) => one.sampled_at - other.sampled_at);
  });
  return (
    <section class="card">
      <div class="head">
        <h2>History</h2>
        <div class="choices" role="group" aria-label="Span of time">
          {SPANS.map(([label, length]) => (
            <button
              key={label}
              type="button"
              aria-pressed={span === length}
              onClick={() => {
                setSpan(length);
              }}
            >
              {label}
            </button>
          ))}
        </div>
      </div>
      <Fresh polled={polled} what="the history">
        {(samples) => <Samples filter={filter} samples={samples} label={SPANS.find(([, length]) => length === span)?.[0] ?? ""} />}
      </Fresh>
    </section>
  );
}

function Samples({ filter, samples, label }: { filter: Filter; samples: Sample[]; label: string }): JSX.Element {
  const columns = useMemo(() => toColumns(filter, samples), [samples, filter.name]);
  if (samples.length < 2) {
    return (
      <>
        <Outlook filter={filter} samples={samples} label={label} />
        <p class="quiet">
          {samples.length === 0 ? "No sample of this span yet." : "One sample yet."} By default the service samples each filter in use once a minute.
        </p>
      </>
    );
  }
  const { times, keys, capacity, fpr, target, lookups, adds } = columns;
  const first = samples[0]?.sampled_at ?? 0;
  const ago = `over ${formatSpan(Date.now() - first)}`;
  return (
    <>
      <Outlook filter={filter} samples={samples} label={label} />
      <div class="plots">
        <Plot
          title="Keys"
          summary={`from ${formatCount(keys[0] ?? null)} to ${formatCount(keys.at(-1) ?? null)} ${ago}`}
          times={times}
          lines={[
            { label: "by its cells", values: keys, color: "accent" },
            { label: "capacity", values: capacity, color: "quiet", isDashed: true },
          ]}
          format={formatShort}
        />
        <Plot
          title="False-positive rate"
          summary={`from ${formatRate(fpr[0] ?? null)} to ${formatRate(fpr.at(-1) ?? null)} ${ago}`}
          times={times}
          lines={[
            { label: "present", values: fpr, color: "accent" },
            { label: "target", values: target, color: "quiet", isDashed: true },
          ]}
          format={formatRate}
          isLogarithmic
        />
        <Plot
          title="Operations per second"
          summary={`${formatShort(lookups.at(-1) ?? null)} lookups and ${formatShort(adds.at(-1) ?? null)} adds per second at the end`}
          times={times}
          lines={[
            { label: "lookups", values: lookups, color: "accent" },
            { label: "adds", values: adds, color: "second" },
          ]}
          format={formatShort}
        />
      </div>
      <p class="quiet">{plural(samples.length, "sample")}; the last one is from {formatTime(samples.at(-1)?.sampled_at ?? 0, Date.now())}.</p>
    </>
  );
}

/** The sentence about when the filter will be full. */
function Outlook({ filter, samples, label }: { filter: Filter; samples: readonly Sample[]; label: string }): JSX.Element {
  const { kinds } = useSession();
  const can = findCapabilities(kinds, filter.kind) ?? [];
  if (hasOwners(kinds, filter.kind)) return <p>Each of its owners grows alone, so the bank as a whole does not fill up.</p>;
  if (can.includes("static")) return <p>It is static: no key is added, and its rate stays as it is.</p>;
  if (can.includes("expire")) return <p>It forgets its oldest keys, so it does not fill up.</p>;
  const now = Date.now();
  const present = { sampled_at: now, new: filter.new, removed: filter.removed };
  const outlook = forecastFull(filter.num_added, filter.capacity, [...samples, present], now);
  if (can.includes("grow")) {
    return <p>It grows beyond its first size{outlook.state === "filling" ? `; it gains ${formatShort(outlook.pace)} keys per second` : ""}.</p>;
  }
  switch (outlook.state) {
    case "full":
      return (
        <p class="notice">
          It holds {formatCount(filter.num_added)} keys of {formatCount(filter.capacity)}: it is full. Build a larger one beside it, and let that take its name.
        </p>
      );
    case "filling":
      return (
        <p>
          At the pace of the last {label.replace(/^1 /, "")}, {formatShort(outlook.pace)} keys per second, it is full in <strong>{formatSpan(outlook.at - now)}</strong>, at {formatTime(outlook.at, now)}.
        </p>
      );
    case "steady":
      return <p>It gained no key in the last {label.replace(/^1 /, "")}, so it does not fill up at this pace.</p>;
    case "unknown":
      return <p class="quiet">The samples do not yet span enough time to say when it will be full.</p>;
  }
}

function toColumns(filter: Filter, samples: readonly Sample[]): Record<"times" | "keys" | "capacity" | "fpr" | "target" | "lookups" | "adds", (number | null)[]> & { times: number[] } {
  const times = samples.map((sample) => sample.sampled_at);
  return {
    times,
    keys: samples.map((sample) => sample.estimated_items),
    capacity: samples.map(() => filter.capacity),
    // A logarithm has no zero.
    fpr: samples.map((sample) => (sample.fpr_estimate > 0 ? sample.fpr_estimate : null)),
    target: samples.map(() => filter.target_fpr),
    lookups: differentiate(times, samples.map((sample) => sample.hits + sample.misses)),
    adds: differentiate(times, samples.map((sample) => sample.adds)),
  };
}
