/** The views of the dashboard, and their addresses: all state that is worth a link is in the fragment. */

import { cut, encodePart, toUnicode } from "./text";

export const SORTS = ["name", "kind", "keys", "load", "fill", "fpr", "target_fpr", "bytes", "operations", "hits"] as const;
export type Sort = (typeof SORTS)[number];

export interface Query {
  readonly search: string;
  readonly sort: Sort;
  readonly order: "asc" | "desc";
  readonly page: number;
}

export type View =
  | { readonly view: "filters"; readonly query: Query }
  | { readonly view: "filter"; readonly name: string }
  | { readonly view: "create" }
  | { readonly view: "tokens" }
  | { readonly view: "nodes" };

/** The longest name or search that an address may hold; the service takes no longer ones. */
const LONGEST = 128;
const LAST_PAGE = 100_000;

export const FIRST_QUERY: Query = { search: "", sort: "name", order: "asc", page: 1 };

/** Returns the view of a fragment such as "#/filter/logs"; anything else is the list of filters. */
export function parseAddress(fragment: string): View {
  const [path, query] = splitOnce(fragment.replace(/^#\/?/, ""), "?");
  if (path === "create" || path === "tokens" || path === "nodes") return { view: path };
  const [first, rest] = splitOnce(path, "/");
  const name = first === "filter" ? decode(rest) : null;
  if (name !== null && name !== "" && name.length <= LONGEST) return { view: "filter", name };
  return { view: "filters", query: parseQuery(query) };
}

/** Returns the fragment of a view. */
export function formatAddress(view: View): string {
  if (view.view === "filter") return `#/filter/${encodePart(view.name)}`;
  if (view.view !== "filters") return `#/${view.view}`;
  const words = new URLSearchParams();
  const { search, sort, order, page } = view.query;
  if (search !== FIRST_QUERY.search) words.set("search", toUnicode(search));
  if (sort !== FIRST_QUERY.sort) words.set("sort", sort);
  if (order !== FIRST_QUERY.order) words.set("order", order);
  if (page !== FIRST_QUERY.page) words.set("page", String(page));
  const text = words.toString();
  return text === "" ? "#/" : `#/?${text}`;
}

function parseQuery(text: string): Query {
  const words = new URLSearchParams(text);
  const sort = SORTS.find((name) => name === words.get("sort")) ?? FIRST_QUERY.sort;
  const page = Number(words.get("page") ?? 1);
  return {
    search: cut(words.get("search") ?? "", LONGEST).head,
    sort,
    order: words.get("order") === "desc" ? "desc" : "asc",
    page: Number.isInteger(page) && page >= 1 && page <= LAST_PAGE ? page : 1,
  };
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null; // a percent sign that escapes nothing
  }
}
