/** One filter: its figures now, over time and under more load, a key to try, and what can be done with it. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { formatBytes, formatCount, formatOdds, formatRate, formatShare, formatShort, formatTime, plural } from "../lib/format";
import { Bar } from "../parts/bar";
import { Fresh } from "../parts/state";
import { Words } from "../parts/words";
import { filterPath } from "../service/client";
import { type Filter, filter as decodeFilter } from "../service/types";
import { usePolled } from "../state/polled";
import { findCapabilities, hasOwners, useSession } from "../state/session";
import { Actions } from "./actions";
import { History } from "./history";
import { Keys } from "./keys";
import { Owners } from "./owners";
import { Rates } from "./rates";

const EVERY = 2_000;
/** Milliseconds between two requests that count the cells of the filter. */
const COUNTED_EVERY = 10_000;

export function FilterView({ name }: { name: string }): JSX.Element {
  const { service, kinds } = useSession();
  const meter = useRef<{ at: number; total: number } | null>(null);
  const [operations, setOperations] = useState<number | null>(null);
  const live = usePolled(`live ${name}`, EVERY, async (signal) => {
    const { data } = await service.send(filterPath(name), { decode: decodeFilter, query: { counted: "false" }, signal });
    const now = performance.now();
    const total = data.hits + data.misses + data.adds + data.removed;
    const before = meter.current;
    if (before !== null && total >= before.total && now > before.at) setOperations((1000 * (total - before.total)) / (now - before.at));
    meter.current = { at: now, total };
    return data;
  });
  const counted = usePolled(`counted ${name}`, COUNTED_EVERY, async (signal) => (await service.send(filterPath(name), { decode: decodeFilter, signal })).data);
  useEffect(() => {
    document.title = `${name.slice(0, 60)} – Fullbloom`;
    return () => {
      document.title = "Fullbloom";
    };
  }, [name]);
  const isGone = live.problem?.code === "missing" && live.data !== null;
  return (
    <>
      <p class="crumbs">
        <a href="#/">All filters</a>
      </p>
      <h1>
        <Words text={name} most={128} />
      </h1>
      {isGone && (
        <p class="notice">
          The filter was dropped or renamed while this page was open. <a href="#/">Go to the list</a>
        </p>
      )}
      <Fresh polled={live} what="the filter">
        {(data) => (
          <>
            <Facts filter={data} />
            <Figures filter={data} counted={counted.data} operations={operations} />
            <div class="columns">
              {hasOwners(kinds, data.kind) ? <Owners filter={data} details={counted.data?.details ?? data.details} onChange={live.reload} /> : <Rates filter={data} />}
              <Keys filter={data} details={counted.data?.details ?? data.details} onChange={live.reload} />
            </div>
            <History filter={data} />
            <Actions filter={data} />
            <Details counted={counted.data} />
          </>
        )}
      </Fresh>
      {live.problem?.code === "missing" && live.data === null && (
        <p class="quiet">
          The service has no filter with this name that you may see. <a href="#/create">Create a filter</a> or go to <a href="#/">the list</a>.
        </p>
      )}
    </>
  );
}

function Facts({ filter }: { filter: Filter }): JSX.Element {
  const { kinds } = useSession();
  const guarantee = kinds.find((kind) => kind.kind === filter.kind)?.false_negatives;
  const now = Date.now();
  return (
    <p class="quiet facts">
      <span>
        <Words text={filter.class ?? filter.kind} most={40} plain />
        {filter.backend === "redis" && " in Redis"}
      </span>
      {guarantee !== undefined && <span>false negatives: {guarantee}</span>}
      {filter.keyed !== null && <span>{filter.keyed ? "keyed by a secret" : "not keyed"}</span>}
      {filter.strict === true && <span>strict: refuses keys beyond its capacity</span>}
      <span>created {formatTime(filter.created, now)}</span>
      {filter.expires !== null && <span>expires {formatTime(filter.expires, now)}</span>}
    </p>
  );
}

function Figures({ filter, counted, operations }: { filter: Filter; counted: Filter | null; operations: number | null }): JSX.Element {
  const { kinds } = useSession();
  const load = filter.capacity > 0 ? filter.num_added / filter.capacity : null;
  const lookups = filter.hits + filter.misses;
  const isBank = hasOwners(kinds, filter.kind);
  const isGrowing = findCapabilities(kinds, filter.kind)?.includes("grow") === true;
  return (
    <dl class="tiles">
      <Tile label="Keys" value={formatCount(filter.num_added)}>
        <Bar share={load} isOver={filter.over_capacity} />
        {formatShare(load)} of {formatCount(filter.capacity)}
        {isBank ? ", of all its owners" : isGrowing && ", grows"}
      </Tile>
      <Tile label="False-positive rate" value={formatRate(filter.fpr)} isAlarming={filter.over_capacity}>
        {filter.fpr > 0 ? formatOdds(filter.fpr) : "no key yet"}; target {formatRate(filter.target_fpr)}
      </Tile>
      <Tile label="Fill" value={formatShare(counted?.fill ?? null)}>
        {counted === null
          ? "counting the cells"
          : counted.estimated === null
            ? "of its cells in use"
            : `about ${plural(Math.round(counted.estimated), "key")} by its cells`}
      </Tile>
      <Tile label="Memory" value={formatBytes(filter.nbytes)}>
        {filter.num_added > 0 ? `${formatShort((8 * filter.nbytes) / filter.num_added)} bits per key` : "no key yet"}
      </Tile>
      <Tile label="Ops per second" value={formatShort(operations)}>
        {plural(filter.adds, "add")}, {plural(lookups, "lookup")}
      </Tile>
      <Tile label="Hits" value={formatCount(filter.hits)}>
        {lookups > 0 ? `${formatShare(filter.hits / lookups)} of the lookups` : "no lookup since the start"}
      </Tile>
    </dl>
  );
}

function Tile({ label, value, isAlarming = false, children }: { label: string; value: string; isAlarming?: boolean; children: preact.ComponentChildren }): JSX.Element {
  return (
    <div class={isAlarming ? "tile alarming" : "tile"}>
      <dt>{label}</dt>
      <dd>
        <b>{value}</b>
        <small>{children}</small>
      </dd>
    </div>
  );
}

/** Members that the figures above show already, or that are of no use on a page. */
const SHOWN = new Set(["capacity", "target_fpr", "num_added", "fpr", "fill", "nbytes", "seed", "keyed", "strict", "approx_count", "approx_count_sd", "mapped"]);

function Details({ counted }: { counted: Filter | null }): JSX.Element | null {
  const rows = Object.entries(counted?.details ?? {}).filter(([name]) => !SHOWN.has(name));
  if (rows.length === 0) return null;
  return (
    <details class="card">
      <summary>Parameters</summary>
      <dl class="pairs">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{typeof value === "number" ? formatShort(value) === String(value) ? String(value) : value.toLocaleString("en") : <Words text={typeof value === "string" ? value : JSON.stringify(value)} />}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
