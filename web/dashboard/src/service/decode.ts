/** Checks of what the service sent: a proxy in between, or another program at its port, may send anything. */

import { toUnicode } from "../lib/text";

export type Decode<T> = (value: unknown) => T;

/** Thrown where a value is not of the type that is expected. */
export class DecodeError extends Error {}

/** Items of a list, and members of a record, where nothing else is said. */
const MOST_ITEMS = 10_000;
const MOST_MEMBERS = 1_000;
/** The largest figure that a plot scales to; no count or rate comes near it. */
const LARGEST = 1e30;
/** How far a share that was computed may be beyond 1. */
const ROUNDING = 1e-9;
/** The last millisecond that a date has. */
const LAST_TIME = 8.64e15;

/** Takes a text, whose lone halves of characters are replaced: it may become a part of an address. */
export const text: Decode<string> = (value) => {
  if (typeof value !== "string") throw new DecodeError("not a text");
  return toUnicode(value);
};

/** Takes a finite number: JSON spells infinity as 1e999. */
export const number: Decode<number> = (value) => {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new DecodeError("not a number");
  return value;
};

/** Takes a number that may be plotted: a count, a rate, bytes. */
export const amount: Decode<number> = (value) => {
  const found = number(value);
  if (found < 0 || found > LARGEST) throw new DecodeError("not an amount");
  return found;
};

/** Takes a share or a rate, from 0 to 1. */
export const share: Decode<number> = (value) => {
  const found = amount(value);
  if (found > 1 + ROUNDING) throw new DecodeError("not a share");
  return found;
};

/** Takes milliseconds since 1970 that are a date. */
export const time: Decode<number> = (value) => {
  const found = number(value);
  if (found < 0 || found > LAST_TIME) throw new DecodeError("not a time");
  return found;
};

export const flag: Decode<boolean> = (value) => {
  if (typeof value !== "boolean") throw new DecodeError("neither true nor false");
  return value;
};

/** Takes anything: for bodies that are not read. */
export const anything: Decode<unknown> = (value) => value;

/** Takes null, and a member that is absent, as null. */
export function nullable<T>(decode: Decode<T>): Decode<T | null> {
  return (value) => (value === null || value === undefined ? null : decode(value));
}

/** Takes a list of at most so many items; a longer one is refused before any item is looked at. */
export function list<T>(decode: Decode<T>, most = MOST_ITEMS): Decode<T[]> {
  return (value) => {
    if (!Array.isArray(value)) throw new DecodeError("not a list");
    if (value.length > most) throw new DecodeError(`a list of more than ${String(most)}`);
    return value.map((item) => decode(item));
  };
}

/** Takes an object that has these members, and leaves out any other. */
export function object<T extends object>(members: { [Name in keyof T]: Decode<T[Name]> }): Decode<T> {
  return (value) => {
    if (typeof value !== "object" || value === null) throw new DecodeError("not an object");
    const given = value as Record<string, unknown>;
    const entries = Object.entries<Decode<unknown>>(members).map(([name, decode]) => [name, decode(given[name])]);
    return Object.fromEntries(entries) as T;
  };
}

/** Takes an object of any members, all of one type. */
export function record<T>(decode: Decode<T>): Decode<Record<string, T>> {
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new DecodeError("not an object");
    const entries = Object.entries(value);
    if (entries.length > MOST_MEMBERS) throw new DecodeError(`an object of more than ${String(MOST_MEMBERS)} members`);
    return Object.fromEntries(entries.map(([name, member]) => [toUnicode(name), decode(member)]));
  };
}
