/** Keys as people type them, and the bodies of requests about them. */

import { Problem } from "./problem";

export type KeyType = "text" | "integer";

/** A key as it was typed. */
export interface TypedKey {
  readonly text: string;
  readonly type: KeyType;
}

/** What a request is about: a key, its owner in a bank, its value where the kind has values. */
export interface Entry {
  readonly key: TypedKey;
  readonly owner?: TypedKey | undefined;
  readonly value?: string | undefined;
}

const MOST_DIGITS = 300;

/** Returns a key as JSON. An integer of any length is written as it is: a number of JavaScript would round it. */
export function formatKey({ text, type }: TypedKey): string {
  if (type === "text") return JSON.stringify(text);
  const digits = text.trim();
  if (digits.length > MOST_DIGITS || !/^-?\d+$/.test(digits)) {
    throw new Problem("invalid", "An integer key has digits only, 300 at most, and perhaps a minus sign before them.");
  }
  return BigInt(digits).toString();
}

/** Returns the body of a request about an owner. */
export function formatOwner(owner: TypedKey): string {
  return `{"owner":${formatKey(owner)}}`;
}

/** Returns the body of a request about one entry; throws `Problem` if something in it cannot be sent. */
export function formatEntry({ key, owner, value }: Entry): string {
  const shown = owner === undefined ? formatKey(key) : `[${formatKey(owner)},${formatKey(key)}]`;
  if (value === undefined) return `{"key":${shown}}`;
  const digits = value.trim();
  if (!/^\d{1,20}$/.test(digits)) throw new Problem("invalid", "A label or value is a whole number, 0 or more.");
  // Kinds with values take several at once only.
  return `{"keys":[${shown}],"values":[${BigInt(digits).toString()}]}`;
}
