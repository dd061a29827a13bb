/** Checks of what the service sent: a proxy in between, or another program at its port, may send anything. */

export type Decode<T> = (value: unknown) => T;

/** Thrown where a value is not of the type that is expected. */
export class DecodeError extends Error {}

export const text: Decode<string> = (value) => {
  if (typeof value !== "string") throw new DecodeError("not a text");
  return value;
};

export const number: Decode<number> = (value) => {
  if (typeof value !== "number") throw new DecodeError("not a number");
  return value;
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

export function list<T>(decode: Decode<T>): Decode<T[]> {
  return (value) => {
    if (!Array.isArray(value)) throw new DecodeError("not a list");
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
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, decode(member)]));
  };
}
