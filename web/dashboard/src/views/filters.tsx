/** The list of filters; the service searches, sorts and pages it. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { FIRST_QUERY, formatAddress, type Query, type Sort } from "../lib/address";
import { formatBytes, formatCount, formatRate, formatShare, formatShort, plural } from "../lib/format";
import { Bar } from "../parts/bar";
import { Field } from "../parts/field";
import { Fresh } from "../parts/state";
import { Words } from "../parts/words";
import { type Filter, page as decodePage, PAGE_SIZE, type Page } from "../service/types";
import { useKept, usePolled } from "../state/polled";
import { useSession } from "../state/session";

const EVERY = 2_000;
/** Milliseconds after the last letter before a search is sent. */
const PAUSE = 250;

interface Column {
  readonly sort: Sort;
  readonly label: string;
  readonly hint: string;
  /** How wide the page must be to show it: 1 narrow, 3 wide. */
  readonly width: 1 | 2 | 3;
}

const COLUMNS: readonly Column[] = [
  { sort: "name", label: "Name", hint: "", width: 1 },
  { sort: "kind", label: "Kind", hint: "", width: 2 },
  { sort: "keys", label: "Keys", hint: "Keys that were added and were new", width: 2 },
  { sort: "load", label: "Load", hint: "Keys in percent of the capacity", width: 1 },
  { sort: "fill", label: "Fill", hint: "Share of the cells in use", width: 3 },
  { sort: "fpr", label: "Rate", hint: "False-positive rate at the present number of keys", width: 1 },
  { sort: "target_fpr", label: "Target", hint: "False-positive rate at capacity", width: 3 },
  { sort: "bytes", label: "Bytes", hint: "", width: 2 },
  { sort: "operations", label: "Ops/s", hint: "Keys looked up, added and removed per second", width: 2 },
  { sort: "hits", label: "Hits", hint: "Lookups that found their key, since the service started", width: 3 },
];

export function FiltersView({ query }: { query: Query }): JSX.Element {
  const { service } = useSession();
  const key = formatAddress({ view: "filters", query });
  const polled = usePolled(key, EVERY, async (signal) => {
    const { search, sort, order, page } = query;
    const words = { search, sort, order, page, limit: PAGE_SIZE, figures: "true" };
    return (await service.send("v1/filters", { decode: decodePage, query: words, signal })).data;
  });
  const shown = useKept(polled);
  return (
    <>
      <div class="head">
        <h1>Filters</h1>
        <Search query={query} />
        <a class="button primary" href="#/create">
          Create a filter
        </a>
      </div>
      <Fresh polled={shown} what="the filters">
        {(data) => (data.filters.length === 0 ? <Nothing query={query} total={data.total ?? 0} /> : <Table data={data} query={query} isOld={shown.isOld} />)}
      </Fresh>
    </>
  );
}

function Search({ query }: { query: Query }): JSX.Element {
  const [text, setText] = useState(query.search);
  useEffect(() => {
    setText(query.search);
  }, [query.search]);
  useEffect(() => {
    if (text === query.search) return undefined;
    const timer = window.setTimeout(() => {
      go({ ...query, search: text.slice(0, 128), page: 1 });
    }, PAUSE);
    return () => {
      window.clearTimeout(timer);
    };
  }, [text, query]);
  return (
    <div role="search">
      <Field label="Search names" isHidden type="search" value={text} onValue={setText} placeholder="Search names; * is any text" />
    </div>
  );
}

function go(query: Query): void {
  location.replace(formatAddress({ view: "filters", query }));
}

function Nothing({ query, total }: { query: Query; total: number }): JSX.Element {
  if (total > 0) {
    return (
      <p>
        The list is shorter than this page. <a href={formatAddress({ view: "filters", query: { ...query, page: 1 } })}>Go to the first page</a>
      </p>
    );
  }
  if (query.search !== "") {
    return (
      <p>
        No filter that you may see has <q><Words text={query.search} plain /></q> in its name. <a href="#/">Show all</a>
      </p>
    );
  }
  return (
    <div class="empty">
      <p>The service has no filter yet.</p>
      <p class="quiet">A filter answers whether it has seen a key. Create one here, or with any Redis client: <code>BF.ADD seen ada</code>.</p>
      <p>
        <a class="button primary" href="#/create">
          Create the first filter
        </a>
      </p>
    </div>
  );
}

function Table({ data, query, isOld }: { data: Page; query: Query; isOld: boolean }): JSX.Element {
  return (
    <>
      <div class={isOld ? "scroll waiting" : "scroll"} role="region" aria-label="Filters" tabIndex={0}>
        <table class="filters">
          <caption class="hidden">Filters and their figures, read every two seconds</caption>
          <thead>
            <tr>
              {COLUMNS.map((column) => (
                <Heading key={column.sort} column={column} query={query} />
              ))}
            </tr>
          </thead>
          <tbody>
            {data.filters.map((filter) => (
              <Row key={filter.name} filter={filter} />
            ))}
          </tbody>
        </table>
      </div>
      <Pager query={query} total={data.total ?? data.filters.length} count={data.filters.length} />
    </>
  );
}

function Heading({ column, query }: { column: Column; query: Query }): JSX.Element {
  const isSorted = query.sort === column.sort;
  // Figures are first sorted with the largest on top, names with the first.
  const first = column.sort === "name" || column.sort === "kind" ? "asc" : "desc";
  const order = isSorted ? (query.order === "asc" ? "desc" : "asc") : first;
  return (
    <th
      scope="col"
      class={`w${String(column.width)} ${column.sort === "name" || column.sort === "kind" ? "" : "number"}`}
      aria-sort={isSorted ? (query.order === "asc" ? "ascending" : "descending") : undefined}
    >
      <button
        type="button"
        title={column.hint}
        onClick={() => {
          go({ ...query, sort: column.sort, order, page: 1 });
        }}
      >
        {column.label}
        <span aria-hidden="true" class="arrow">
          {isSorted ? (query.order === "asc" ? "▲" : "▼") : ""}
        </span>
      </button>
    </th>
  );
}

function Row({ filter }: { filter: Filter }): JSX.Element {
  const load = filter.capacity > 0 ? filter.num_added / filter.capacity : null;
  return (
    <tr class={filter.over_capacity ? "over" : ""}>
      <th scope="row">
        <a href={formatAddress({ view: "filter", name: filter.name })}>
          <Words text={filter.name} most={128} plain />
        </a>
        {filter.over_capacity && <span class="tag">over capacity</span>}
        {filter.backend === "redis" && <span class="tag calm">Redis</span>}
      </th>
      <td class="w2">
        <Words text={filter.kind} most={32} plain />
      </td>
      <td class="w2 number">{formatCount(filter.num_added)}</td>
      <td class="number">
        <span class="load">
          <Bar share={load} isOver={filter.over_capacity} />
          <span>{formatShare(load)}</span>
        </span>
      </td>
      <td class="w3 number">{formatShare(filter.fill)}</td>
      <td class="number">{formatRate(filter.fpr)}</td>
      <td class="w3 number">{formatRate(filter.target_fpr)}</td>
      <td class="w2 number">{formatBytes(filter.nbytes)}</td>
      <td class="w2 number">{formatShort(filter.operations)}</td>
      <td class="w3 number">{formatCount(filter.hits)}</td>
    </tr>
  );
}

function Pager({ query, total, count }: { query: Query; total: number; count: number }): JSX.Element {
  const pages = Math.max(1, Math.ceil(total / PAGE_SIZE));
  const first = (query.page - 1) * PAGE_SIZE + 1;
  const link = (page: number, label: string): JSX.Element => (
    <button
      type="button"
      disabled={page < 1 || page > pages || page === query.page}
      onClick={() => {
        go({ ...query, page });
        window.scrollTo(0, 0);
      }}
    >
      {label}
    </button>
  );
  return (
    <nav class="pager" aria-label="Pages">
      <p>
        {formatCount(first)} to {formatCount(first + count - 1)} of {plural(total, "filter")}
      </p>
      {pages > 1 && (
        <p class="buttons">
          {link(FIRST_QUERY.page, "First")}
          {link(query.page - 1, "Previous")}
          <span>
            {formatCount(query.page)} of {formatCount(pages)}
          </span>
          {link(query.page + 1, "Next")}
          {link(pages, "Last")}
        </p>
      )}
    </nav>
  );
}
