/**
 * State in the address: `#scene?name=value&...`. Whoever writes an address is a stranger, so that each field has a
 * bound, and what is out of it becomes the default. Values are shown as text only.
 */

/** The longest fragment that is read. */
const MOST_FRAGMENT = 4000;

/** A field of a scene: its default, how it is read from text, and how it is written. */
export interface Field<T> {
  readonly initial: T;
  /** The value that the text stands for; `undefined` if it stands for none. */
  read(text: string): T | undefined;
  write(value: T): string;
}

/** The fields of a scene. */
export type Fields<P> = { readonly [K in keyof P]: Field<P[K]> };

/** A number from `least` to `most`. */
export function number(least: number, most: number, initial: number): Field<number> {
  return {
    initial,
    read: (text) => {
      const value = text.trim() === "" ? NaN : Number(text);
      return value >= least && value <= most ? value : undefined;
    },
    write: String,
  };
}

/** A whole number from `least` to `most`. */
export function whole(least: number, most: number, initial: number): Field<number> {
  const field = number(least, most, initial);
  return {
    ...field,
    read: (text) => {
      const value = field.read(text);
      return value !== undefined && Number.isInteger(value) ? value : undefined;
    },
  };
}

/** One of several texts. */
export function choice<const T extends string>(options: readonly T[], initial: NoInfer<T>): Field<T> {
  return { initial, read: (text) => options.find((option) => option === text), write: (value) => value };
}

/** Text of at most `most` characters; a longer one is cut. */
export function text(most: number, initial: string): Field<string> {
  return { initial, read: (value) => clean(value, most), write: (value) => clean(value, most) };
}

/** Text without control characters and halves of characters, which no filter takes as a key. */
export function clean(value: string, most: number): string {
  let cut = value.slice(0, most).replace(/\p{Surrogate}/gu, "\uFFFD");
  // eslint-disable-next-line no-control-regex -- these are what is removed
  cut = cut.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "");
  return cut;
}

/** The scene and the query of a fragment; an empty name where it has none. */
export function split(fragment: string): { scene: string; query: URLSearchParams } {
  const bare = fragment.replace(/^#/, "").slice(0, MOST_FRAGMENT);
  const mark = bare.indexOf("?");
  const scene = mark < 0 ? bare : bare.slice(0, mark);
  return { scene: scene.slice(0, 40), query: new URLSearchParams(mark < 0 ? "" : bare.slice(mark + 1)) };
}

/** The values in a query; the default where a field is absent or out of bounds. */
export function readFields<P>(fields: Fields<P>, query: URLSearchParams): P {
  const values: Partial<P> = {};
  for (const name of Object.keys(fields) as (keyof P & string)[]) {
    const given = query.get(name);
    const field: Field<P[typeof name]> = fields[name];
    values[name] = (given === null ? undefined : field.read(given)) ?? field.initial;
  }
  return values as P;
}

/** The fragment of a scene and its values; defaults are left out. */
export function format<P>(scene: string, fields: Fields<P>, values: P): string {
  const query = new URLSearchParams();
  for (const name of Object.keys(fields) as (keyof P & string)[]) {
    const field: Field<P[typeof name]> = fields[name];
    const written = field.write(values[name]);
    if (written !== field.write(field.initial)) query.set(name, written);
  }
  const shown = query.toString();
  return `#${scene}${shown === "" ? "" : `?${shown}`}`;
}
