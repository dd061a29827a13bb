/** What the service sends, as far as the dashboard shows it. */

import { amount, anything, type Decode, flag, list, nullable, number, object, record, share, text, time } from "./decode";

/** Filters of a page of the list. */
export const PAGE_SIZE = 50;
/** Samples of a history. */
export const MOST_SAMPLES = 2_000;

export interface Filter {
  readonly id: number;
  readonly name: string;
  readonly kind: string;
  readonly backend: string | null;
  readonly class: string | null;
  readonly capacity: number;
  readonly target_fpr: number;
  readonly num_added: number;
  readonly fpr: number;
  readonly over_capacity: boolean;
  readonly fill: number | null;
  readonly nbytes: number;
  readonly estimated: number | null;
  readonly estimated_deviation: number | null;
  readonly created: number;
  readonly expires: number | null;
  readonly operations: number | null;
  readonly keyed: boolean | null;
  readonly strict: boolean | null;
  readonly hits: number;
  readonly misses: number;
  readonly adds: number;
  readonly new: number;
  readonly removed: number;
  readonly details: Record<string, string | number | boolean | null> | null;
}

/** Takes a parameter of a filter; a list or an object as its JSON. */
const detail: Decode<string | number | boolean | null> = (value) => {
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "string") return text(value);
  return typeof value === "number" ? number(value) : text(JSON.stringify(value));
};

export const filter: Decode<Filter> = object<Filter>({
  id: number,
  name: text,
  kind: text,
  backend: nullable(text),
  class: nullable(text),
  capacity: amount,
  target_fpr: share,
  num_added: amount,
  fpr: share,
  over_capacity: flag,
  fill: nullable(share),
  nbytes: amount,
  estimated: nullable(number),
  estimated_deviation: nullable(number),
  created: time,
  expires: nullable(time),
  operations: nullable(amount),
  keyed: nullable(flag),
  strict: nullable(flag),
  hits: amount,
  misses: amount,
  adds: amount,
  new: amount,
  removed: amount,
  details: nullable(record(detail)),
});

export interface Page {
  readonly filters: Filter[];
  readonly total: number | null;
}

export const page: Decode<Page> = object<Page>({ filters: list(filter, PAGE_SIZE), total: nullable(amount) });

export interface Sample {
  readonly sampled_at: number;
  readonly estimated_items: number | null;
  readonly fpr_estimate: number;
  readonly fill: number | null;
  readonly hits: number;
  readonly misses: number;
  readonly adds: number;
  readonly new: number;
  readonly removed: number;
}

export const history: Decode<{ samples: Sample[] }> = object({
  samples: list(
    object<Sample>({
      sampled_at: time,
      estimated_items: nullable(amount),
      fpr_estimate: share,
      fill: nullable(share),
      hits: amount,
      misses: amount,
      adds: amount,
      new: amount,
      removed: amount,
    }),
    MOST_SAMPLES,
  ),
});

export interface Rate {
  readonly load: number;
  readonly keys: number;
  readonly fpr: number | null;
}

export const rates: Decode<{ rates: Rate[] }> = object({
  rates: list(object<Rate>({ load: amount, keys: amount, fpr: nullable(share) }), 100),
});

export interface Kind {
  readonly kind: string;
  readonly capabilities: string[];
  /** What is added: a key, a number, a pair of a key and a value, an owner and a key; null of a service that says nothing. */
  readonly adds: string | null;
  readonly false_negatives: string;
}

export const kinds: Decode<{ kinds: Kind[] }> = object({
  kinds: list(object<Kind>({ kind: text, capabilities: list(text), adds: nullable(text), false_negatives: text })),
});

export interface Choice {
  readonly kind: string;
  readonly layout: string | null;
  readonly items: number;
  readonly nbytes: number;
  readonly bits_per_key: number;
  readonly fpr: number;
  readonly ns_add: number | null;
  readonly ns_check: number;
  readonly false_negatives: string;
  readonly capabilities: string[];
  readonly fits: boolean;
  readonly recommended: boolean;
  readonly built: boolean;
  readonly create: Record<string, unknown> | null;
}

export interface Plan {
  readonly choices: Choice[];
  readonly needs: string[];
}

export const plan: Decode<Plan> = object<Plan>({
  choices: list(
    object<Choice>({
      kind: text,
      layout: nullable(text),
      items: amount,
      nbytes: amount,
      bits_per_key: amount,
      fpr: share,
      ns_add: nullable(amount),
      ns_check: amount,
      false_negatives: text,
      capabilities: list(text),
      fits: flag,
      recommended: flag,
      built: flag,
      create: nullable(record(anything)),
    }),
  ),
  needs: list(text, 100),
});

export interface Token {
  readonly name: string;
  readonly scopes: string[];
  readonly patterns: string[];
  readonly created: number;
}

export const tokens: Decode<{ tokens: Token[] }> = object({
  tokens: list(object<Token>({ name: text, scopes: list(text), patterns: list(text), created: time })),
});

export const newToken: Decode<{ name: string; token: string }> = object({ name: text, token: text });

export interface Node {
  readonly id: string;
  readonly http: string;
  readonly resp: string;
  readonly started: number;
  readonly seen: number;
  readonly own: boolean;
  readonly silent: number | null;
}

export const nodes: Decode<{ nodes: Node[] }> = object({
  nodes: list(
    object<Node>({ id: text, http: text, resp: text, started: time, seen: time, own: flag, silent: nullable(amount) }),
  ),
});

export interface About {
  readonly version: string;
  readonly node: string;
  readonly durability: string | null;
  readonly filters: number;
  readonly nbytes: number;
  readonly trouble: string | null;
  /** Paths of the pages that the service has. */
  readonly pages: string[];
}

export const about: Decode<About> = object<About>({
  version: text,
  node: text,
  durability: nullable(text),
  filters: amount,
  nbytes: amount,
  trouble: nullable(text),
  pages: list(text),
});

/** An owner of a bank. */
export interface Owner {
  readonly num_added: number;
  readonly stages: number;
  readonly nbytes: number;
  readonly fpr: number;
}

export const owner: Decode<Owner> = object<Owner>({ num_added: amount, stages: amount, nbytes: amount, fpr: share });

/** The answer about one key: of its members each action sends one. */
export interface KeyAnswer {
  readonly found: boolean | null;
  readonly new: boolean | null;
  readonly removed: boolean | null;
  readonly count: number | null;
  readonly value: number | null;
  readonly key_domain_warning: string | null;
}

export const keyAnswer: Decode<KeyAnswer> = object<KeyAnswer>({
  found: nullable(flag),
  new: nullable(flag),
  removed: nullable(flag),
  count: nullable(number),
  value: nullable(number),
  key_domain_warning: nullable(text),
});

export const positions: Decode<{ positions: number[] }> = object({ positions: list(number, 10_000) });
