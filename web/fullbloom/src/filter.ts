/** Filters of every kind behind one class. */

import { Handle, KeySet, Operation, kinds as rows } from "../wasm/fullbloom_wasm.js";
import { ParameterError, ParameterTypeError, guard, translate } from "./errors.js";
import { type Key, each, writeKey, writeText } from "./keys.js";
import { staging } from "./module.js";

/** A parameter of `create`, as the registry declares it: the type is that of Python. */
export interface Parameter {
  readonly name: string;
  readonly type: string;
  /** The default, as the core writes it; `null` for a parameter that must be given. */
  readonly default: string | null;
}

/** A row of the registry. */
export interface Kind {
  /** What `create` takes, and `filter.kind` shows. */
  readonly name: string;
  /** The class in Python. */
  readonly class: string;
  /** How keys come: alone (`key`, `number`), with a value (`pair`), or all at once (`build`, `build_pairs`, `world`). */
  readonly adds: "key" | "number" | "pair" | "build" | "build_pairs" | "world";
  readonly capabilities: readonly string[];
  readonly layouts: readonly string[];
  readonly false_negatives: string;
  readonly parameters: readonly Parameter[];
}

/** A value of `info()`: whole numbers beyond 2^53 are bigints. */
export type Info = string | number | bigint | boolean | null;

/** 16 bytes that whoever asks the filter must have; nobody else can predict its answers. */
export interface Secret {
  readonly secret?: Uint8Array | null | undefined;
}

/** Options of `open` and `openFile`. */
export interface OpenOptions extends Secret {
  /** For files from strangers: more bytes of cells are refused, now and when the filter grows. */
  readonly max_bytes?: number | bigint | undefined;
}

/** Parameters of `create`, by the names that they have in Python, on the command line and over HTTP. */
export interface Parameters extends Secret {
  readonly seed?: number | bigint | undefined;
  /** All keys of a kind that is built of them. */
  readonly keys?: Iterable<Key> | undefined;
  /** The value of each key, where a kind that is built has values. */
  readonly values?: Iterable<number | bigint> | undefined;
  /** The keys for which a cascade answers yes, and those for which it answers no. */
  readonly included?: Iterable<Key> | undefined;
  readonly excluded?: Iterable<Key> | undefined;
  readonly [name: string]: unknown;
}

let registry: readonly Kind[] | undefined;

/** The registry: one row a kind of filter. */
export function kinds(): readonly Kind[] {
  staging(); // says that the module is missing, where it is
  registry ??= JSON.parse(rows()) as Kind[];
  return registry;
}

/** The bytes of a secret; none without one. */
function bytesOf(secret: unknown): Uint8Array {
  if (secret === undefined || secret === null) return new Uint8Array();
  if (!(secret instanceof Uint8Array)) {
    throw new ParameterTypeError(`secret must be 16 bytes or null, got ${typeof secret}`);
  }
  if (secret.length === 0) throw new ParameterError("secret must be 16 bytes long, got 0 bytes");
  return secret;
}

/** A value beside a key, as the module takes it. */
function valueOf(value: unknown): bigint {
  if (typeof value === "bigint" ? value >= 0n : Number.isSafeInteger(value)) {
    const whole = BigInt(value as bigint | number);
    if (whole === BigInt.asUintN(64, whole)) return whole;
  }
  const whole = typeof value === "bigint" || Number.isSafeInteger(value);
  if (whole) throw new ParameterError(`values must be between 0 and 2**64 - 1, got ${String(value)}`);
  throw new ParameterTypeError(`values must be whole numbers, got ${typeof value}`);
}

/** A whole number as people expect it: a number where it is safe. */
function plain(value: bigint): number | bigint {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

/**
 * A filter. Methods that its kind does not have throw `MissingOperation`; `can()` says which it has.
 *
 * Memory: the cells are outside of JavaScript's heap and are freed some time after the filter is garbage, or by `free()`
 * (or `using`) at once.
 */
export class Filter implements Disposable {
  readonly #handle: Handle;
  readonly #row: Kind;

  /** Use `open` or `create`. */
  constructor(handle: Handle) {
    const row = kinds()[handle.row()];
    if (!(handle instanceof Handle) || row === undefined) {
      throw new ParameterTypeError("a Filter is not constructed; use open() or create()");
    }
    [this.#handle, this.#row] = [handle, row];
  }

  /** The name of the kind: `bloom`, `cuckoo`, ... */
  get kind(): string {
    return this.#row.name;
  }

  /** The class in Python. */
  get className(): string {
    return this.#row.class;
  }

  /** True of a capability in the registry's row: `add`, `remove`, `count`, `positions`, `merge`, `value`, ... */
  can(capability: string): boolean {
    return this.#row.capabilities.includes(capability);
  }

  /** False: the key was never added. True: it probably was. A cascade answers for the keys of its world alone. */
  has(key: Key): boolean {
    const to = staging();
    try {
      if (typeof key === "string") return this.#handle.has_text(to.batch, writeText(to, key));
      if (typeof key === "number") return this.#handle.has_number(key);
    } catch (thrown) {
      guard(() => {
        throw thrown;
      });
    }
    return this.#one(Operation.Has, key) === 1;
  }

  /** `has` for many keys: one call of the module for thousands of them. */
  hasMany(keys: Iterable<Key>): boolean[] {
    return this.#many(Operation.Has, keys);
  }

  /** Adds a key, with a value where the kind has values. True when it was certainly new. */
  add(key: Key, value?: number | bigint): boolean {
    if (value === undefined) return this.#one(this.#adds(false), key) === 1;
    const operation = this.#adds(true);
    staging().values(1)[0] = valueOf(value);
    return this.#one(operation, key) === 1;
  }

  /** Adds many keys in order, with as many values where the kind has values: whether each was certainly new. */
  addMany(keys: Iterable<Key>, values?: Iterable<number | bigint>): boolean[] {
    const operation = this.#adds(values !== undefined);
    return this.#many(operation, keys, values);
  }

  /** Removes one occurrence of a key; false when it was certainly absent. */
  remove(key: Key): boolean {
    return this.#one(Operation.Remove, key) === 1;
  }

  /** `remove` for many keys. */
  removeMany(keys: Iterable<Key>): boolean[] {
    return this.#many(Operation.Remove, keys);
  }

  /** How often a key was added, as far as the kind counts. */
  count(key: Key): number {
    this.#one(Operation.Count, key);
    return Number(staging().words(1)[0]);
  }

  /** `count` for many keys. */
  countMany(keys: Iterable<Key>): number[] {
    return this.#words(Operation.Count, keys).map(Number);
  }

  /** The label or value of a key; 0 for a key without one. */
  get(key: Key): number | bigint {
    this.#one(Operation.Get, key);
    return plain(staging().words(1)[0] ?? 0n);
  }

  /** `get` for many keys. */
  getMany(keys: Iterable<Key>): (number | bigint)[] {
    return this.#words(Operation.Get, keys).map(plain);
  }

  /** The cells of a key, in the order of its probes. */
  positions(key: Key): number[] {
    const to = staging();
    const form = writeKey(to, key);
    return Array.from(guard(() => this.#handle.positions(to.batch, form)));
  }

  /** Everything worth knowing, by the names that Python's `info()` has. Counts the cells: O(nbytes). */
  info(): Record<string, Info> {
    const flat = guard((): unknown => this.#handle.info()) as Info[];
    const info: Record<string, Info> = { class: this.#row.class };
    for (let i = 0; i < flat.length; i += 2) {
      const value = flat[i + 1] ?? null;
      if (value !== null) info[flat[i] as string] = typeof value === "bigint" ? plain(value) : value;
    }
    return info;
  }

  /** The bytes of a file, which Python, the command line and the service open. */
  toBytes(): Uint8Array {
    return guard(() => this.#handle.to_bytes());
  }

  /** An independent copy. */
  copy(): Filter {
    return new Filter(guard(() => this.#handle.copy()));
  }

  /** Takes in another filter of the same class, parameters and seed; on an error nothing has changed. */
  merge(other: Filter): void {
    if (!(other instanceof Filter)) throw new ParameterTypeError(`other must be a Filter, got ${typeof other}`);
    if (other === this) other = this.copy();
    guard(() => this.#handle.merge(other.#handle));
  }

  /** Forgets every key. */
  clear(): void {
    guard(() => this.#handle.clear());
  }

  /** Lets time pass until `now`, in seconds, where keys expire by time: how many generations expired. */
  advance(now: number): number {
    return guard(() => this.#handle.advance(now));
  }

  /** Frees the memory now; every later call throws. */
  free(): void {
    guard(() => this.#handle.free());
  }

  [Symbol.dispose](): void {
    this.free();
  }

  /** The operation that adds keys, with a value each or without. */
  #adds(valued: boolean): Operation {
    const wants = this.#row.adds === "pair" || this.#row.adds === "build_pairs";
    if (valued && !wants) throw new ParameterTypeError(`a ${this.className} takes keys without values`);
    if (!valued && wants) throw new ParameterTypeError(`a ${this.className} takes a value with each key`);
    return valued ? Operation.Put : Operation.Add;
  }

  /** Does something with one key: 1 or 0. */
  #one(operation: Operation, key: Key): number {
    const to = staging();
    const form = writeKey(to, key);
    guard(() => this.#handle.run(operation, to.batch, 1, form));
    return to.bytes[to.batch.answers()] ?? 0;
  }

  /** Does something with many keys: whether, for each. */
  #many(operation: Operation, keys: Iterable<Key>, values?: Iterable<number | bigint>): boolean[] {
    const beside = values === undefined ? undefined : Array.from(values, valueOf);
    // Of a known length it need not be copied as it grows: a quarter of the time of a million keys.
    const answers = new Array<boolean>(Array.isArray(keys) && keys.length < 1 << 24 ? keys.length : 0);
    if (beside !== undefined) keys = sized(keys, beside.length);
    each(keys, (n, form, first) => {
      const to = staging();
      if (beside !== undefined) to.values(n).set(beside.slice(first, first + n));
      guard(() => this.#handle.run(operation, to.batch, n, form));
      const found = to.answers(n);
      for (let i = 0; i < n; i++) answers[first + i] = found[i] === 1;
    });
    return answers;
  }

  /** Does something with many keys: a whole number for each. */
  #words(operation: Operation, keys: Iterable<Key>): bigint[] {
    const words: bigint[] = [];
    each(keys, (n, form) => {
      const to = staging();
      guard(() => this.#handle.run(operation, to.batch, n, form));
      for (const word of to.words(n)) words.push(word);
    });
    return words;
  }
}

/** As many keys as values, or an error. */
function sized(keys: Iterable<Key>, values: number): readonly Key[] {
  const all = typeof keys === "string" || keys instanceof Uint8Array ? (keys as never) : Array.from(keys);
  if (all.length === values) return all;
  throw new ParameterError(`there must be as many values as keys, got ${values} values for ${all.length} keys`);
}

/** Hashes keys for a filter that is built of them. */
function keySet(keys: Iterable<Key>, parameters: Parameters, secret: Uint8Array): KeySet {
  const set = guard(() => new KeySet(parameters.seed, secret));
  const beside = parameters.values === undefined ? undefined : Array.from(parameters.values, valueOf);
  if (beside !== undefined) keys = sized(keys, beside.length);
  each(keys, (n, form, first) => {
    const to = staging();
    if (beside !== undefined) to.values(n).set(beside.slice(first, first + n));
    guard(() => set.push(to.batch, n, form, beside !== undefined));
  });
  return set;
}

/** The sets of keys that a way of adding wants, by name. */
const SETS: Partial<Record<Kind["adds"], readonly (keyof Parameters)[]>> = {
  build: ["keys"],
  build_pairs: ["keys", "values"],
  world: ["included", "excluded"],
};

/**
 * A new filter of a kind of the registry: `create("bloom", { capacity: 1000, fpr: 0.01 })`. What is built of all its keys
 * at once takes them as `keys` (with `values`, where it has any), a cascade as `included` and `excluded`.
 */
export function create(kind: string, parameters: Parameters = {}): Filter {
  const secret = bytesOf(parameters.secret);
  const row = kinds().find((row) => row.name === kind);
  const sets = row === undefined ? [] : (SETS[row.adds] ?? []);
  const missing = sets.find((name) => parameters[name] === undefined);
  if (row !== undefined && missing !== undefined) {
    const why = `a ${row.class} is made of all its keys at once`;
    throw new ParameterTypeError(`${row.class}() missing 1 required argument: '${missing}'; ${why}`);
  }
  const own = Object.entries(parameters).filter(
    ([name, value]) => value !== undefined && !["seed", "secret", ...sets].includes(name),
  );
  const of = (name: keyof Parameters | undefined): KeySet =>
    keySet(name === undefined ? [] : (parameters[name] as Iterable<Key>), parameters, secret);
  // Values come with the first set, and are no set of keys.
  const first = of(sets[0]);
  const second = row?.adds === "world" ? of(sets[1]) : guard(() => new KeySet(parameters.seed, secret));
  try {
    const names = own.map(([name]) => name);
    const values = own.map(([, value]) => value);
    return new Filter(
      guard(() => Handle.create(String(kind), names, values, parameters.seed, secret, first, second)),
    );
  } finally {
    first.free();
    second.free();
  }
}

/**
 * The filter in a file that somebody chose or that was fetched as a `Blob`: read part by part, so that it lies in memory
 * twice while it is opened and once afterwards. `open` of all its bytes needs three times its size.
 */
export async function openFile(file: Blob, options: OpenOptions = {}): Promise<Filter> {
  if (!(file instanceof Blob)) throw new ParameterTypeError(`file must be a Blob, got ${typeof file}`);
  const secret = bytesOf(options.secret);
  try {
    return new Filter(
      await staging().lendFile(file, (batch) => Handle.open(batch, file.size, secret, options.max_bytes)),
    );
  } catch (thrown) {
    throw translate(thrown);
  }
}

/** The filter in the bytes of a file, whatever its kind; every byte is checked. */
export function open(bytes: Uint8Array | ArrayBuffer, options: OpenOptions = {}): Filter {
  const data = bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes;
  if (!(data instanceof Uint8Array)) {
    throw new ParameterTypeError(`bytes must be a Uint8Array or an ArrayBuffer, got ${typeof bytes}`);
  }
  const secret = bytesOf(options.secret);
  const handle = guard(() =>
    staging().lend(data, (batch) => Handle.open(batch, data.length, secret, options.max_bytes)),
  );
  return new Filter(handle);
}

/** The 64-bit hash of a key, as every filter with this seed and secret sees it. */
export function hashKey(key: Key, options: Secret & { readonly seed?: number | bigint } = {}): bigint {
  const to = staging();
  const form = writeKey(to, key);
  const set = guard(() => new KeySet(options.seed, bytesOf(options.secret)));
  try {
    guard(() => set.hash(to.batch, 1, form));
    return to.view.getBigUint64(to.batch.hashes(), true);
  } finally {
    set.free();
  }
}


