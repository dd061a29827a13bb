/**
 * Keys on their way into the module's memory. What the canonical bytes of a key are is the core's to say; here it is
 * only written down which type a key has. `crates/fullbloom-wasm/src/keys.rs` describes the form.
 */

import { Form } from "../wasm/fullbloom_wasm.js";
import { KeyTypeError, ParameterTypeError } from "./errors.js";
import { type Staging, staging } from "./module.js";

/** A number that is a float whatever its value: `new Float(1)` is the key `1.0` of Python. */
export class Float {
  constructor(readonly value: number) {
    if (typeof value !== "number") throw new ParameterTypeError(`a Float takes a number, got ${typeof value}`);
  }
}

/**
 * A key. Safe integers are integers, all other numbers floats; an array is a tuple; `true` is 1. The same keys have the
 * same hashes in Python.
 */
export type Key = string | number | bigint | boolean | Uint8Array | Float | readonly Key[];

/** Keys of a call, and characters: their text stays among the young objects, which are collected quickly. */
const CHUNK = 4096;
const PORTION = 1 << 16;
/** Up to this length, a loop over ASCII is faster than a call of the encoder. */
const SHORT = 64;
/** As in Python. */
const DEEPEST = 64;
const LONGEST = 16 << 20;

const encoder = new TextEncoder();
const surrogates = /\p{Surrogate}/u;

/** True of text that has UTF-8. */
function isText(text: string): boolean {
  const known = text as string & { isWellFormed?(): boolean }; // of 2023
  return known.isWellFormed?.() ?? !surrogates.test(text);
}

/** Refuses text that has no UTF-8. */
function checkText(text: string): void {
  if (isText(text)) return;
  throw new KeyTypeError(
    "a string key must encode to UTF-8, this one holds a lone surrogate; pass key.toWellFormed() or bytes instead",
  );
}

/** Writes text at address `at`, where there is room for it; its length in bytes. */
function putText(memory: Uint8Array, at: number, text: string): number {
  const length = text.length;
  if (length <= SHORT) {
    let i = 0;
    for (; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 127) break;
      memory[at + i] = code;
    }
    if (i === length) return length;
  }
  const { written } = encoder.encodeInto(text, memory.subarray(at, at + 3 * length));
  if (written !== length) checkText(text); // ASCII has as many bytes as characters
  return written;
}

/** The refusal of what is no key. */
function refuse(key: unknown): KeyTypeError {
  const accepted = "string, number, bigint, boolean, Uint8Array, Float, or an array of these";
  const named = key === null || key === undefined || typeof key !== "object";
  const name = named ? (key === null ? "null" : typeof key) : (key.constructor?.name ?? "object");
  const remedies: Record<string, string> = {
    null: "leave out what is missing",
    undefined: "leave out what is missing",
    ArrayBuffer: "pass new Uint8Array(key)",
    Date: "pass key.toISOString()",
    Map: "pass [...key]",
    Set: "pass [...key]",
    Object: "pass an array of its parts",
  };
  const remedy = Object.hasOwn(remedies, name) ? `; ${remedies[name]}` : "";
  return new KeyTypeError(`a key must be ${accepted}; got ${name}${remedy}`);
}

/** Writes keys behind tags. */
class Writer {
  /** Bytes written. */
  at = 0;
  readonly #staging: Staging;

  constructor(to: Staging) {
    this.#staging = to;
  }

  /** Makes room for so many bytes more; their address. */
  #room(bytes: number): number {
    if (this.at + bytes > this.#staging.length) this.#staging.room(2 * (this.at + bytes));
    return this.#staging.start + this.at;
  }

  #number(tag: number, value: number): void {
    const start = this.#room(9);
    this.#staging.view.setUint8(start, tag);
    this.#staging.view.setFloat64(start + 1, value, true);
    this.at += 9;
  }

  #bytes(tag: number, bytes: Uint8Array): void {
    const start = this.#room(5 + bytes.length);
    this.#staging.view.setUint8(start, tag);
    this.#staging.view.setUint32(start + 1, bytes.length, true);
    this.#staging.bytes.set(bytes, start + 5);
    this.at += 5 + bytes.length;
  }

  #text(text: string): void {
    const start = this.#room(5 + 3 * text.length);
    const length = putText(this.#staging.bytes, start + 5, text);
    this.#staging.view.setUint8(start, 0);
    this.#staging.view.setUint32(start + 1, length, true);
    this.at += 5 + length;
  }

  #integer(value: bigint): void {
    const start = this.#room(13);
    if (BigInt.asIntN(64, value) === value) {
      this.#staging.view.setUint8(start, 3);
      this.#staging.view.setUint32(start + 1, 8, true);
      this.#staging.view.setBigInt64(start + 5, value, true);
      this.at += 13;
      return;
    }
    // Two's complement with a whole byte of the sign, by way of hexadecimal digits: time in proportion to the length.
    const flip = value < 0n ? 0xff : 0;
    const digits = (value < 0n ? ~value : value).toString(16);
    const bytes = new Uint8Array((digits.length >> 1) + 2).fill(flip);
    for (let i = 0, end = digits.length; end > 0; i++, end -= 2) {
      bytes[i] = Number.parseInt(digits.slice(Math.max(0, end - 2), end), 16) ^ flip;
    }
    this.#bytes(3, bytes);
  }

  #tuple(parts: readonly unknown[], depth: number, origin: number): void {
    if (depth > DEEPEST) throw new KeyTypeError(`a tuple key may nest ${DEEPEST} levels, got more`);
    const start = this.#room(5);
    this.#staging.view.setUint8(start, 4);
    this.#staging.view.setUint32(start + 1, parts.length, true);
    this.at += 5;
    for (let i = 0; i < parts.length; i++) {
      this.put(parts[i], depth, origin);
      // What is written here is shorter than what the core makes of it.
      if (this.at - origin > LONGEST) {
        const remedy = "hash its long parts and put the digests in their place";
        throw new KeyTypeError(`a tuple key may take ${LONGEST} bytes encoded, got more; ${remedy}`);
      }
    }
  }

  /** Writes a key, which lies in `depth` tuples, the outermost at `origin`. */
  put(key: unknown, depth = 0, origin = this.at): void {
    if (typeof key === "string") this.#text(key);
    else if (typeof key === "number") this.#number(1, key);
    else if (typeof key === "bigint") this.#integer(key);
    else if (typeof key === "boolean") this.#number(1, Number(key));
    else if (key instanceof Uint8Array) this.#bytes(0, key);
    else if (Array.isArray(key)) this.#tuple(key, depth + 1, origin);
    else if (key instanceof Float) this.#number(2, key.value);
    else throw refuse(key);
  }
}

/** Writes one text at the beginning; its length. */
export function writeText(to: Staging, text: string): number {
  to.room(3 * text.length);
  return putText(to.bytes, to.start, text);
}

/** Writes one key; its form. */
export function writeKey(to: Staging, key: unknown): Form {
  if (typeof key === "string") {
    const length = writeText(to, key);
    to.lengths(1)[0] = length;
    return Form.Texts;
  }
  new Writer(to).put(key);
  return Form.Tagged;
}

/**
 * Writes texts from `start` on, as many as there are in a row and fit: how many, and their form.
 *
 * They are concatenated and encoded by one call, 21 ns a key of 25 letters; `join` took 26, a call for each key 37.
 */
function writeTexts(to: Staging, keys: readonly unknown[], start: number): [number, Form] {
  const [most, lengths] = [Math.min(keys.length - start, CHUNK), to.lengths(CHUNK)];
  let [n, text] = [0, ""];
  for (; n < most; n++) {
    const key = keys[start + n];
    if (typeof key !== "string" || text.length + key.length > PORTION) break;
    lengths[n] = key.length;
    text += key;
  }
  to.room(3 * PORTION + CHUNK);
  if (encoder.encodeInto(text, rest(to)).written === text.length) return [n, Form.Texts]; // all of it ASCII
  const row = keys.slice(start, start + n) as readonly string[];
  // What stands between two texts keeps halves of a pair apart, one at the end of a text, one at the beginning of the next.
  const joined = `${row.join("\n")}\n`;
  if (!isText(joined)) return [0, Form.Texts]; // written once more, each alone, one of them throws with its place
  encoder.encodeInto(joined, rest(to));
  return [n, Form.Units];
}

/** The bytes of keys. */
function rest(to: Staging): Uint8Array {
  return to.bytes.subarray(to.start, to.start + to.length);
}

/** Writes numbers from `start` on, as many as there are in a row and fit; how many. */
function writeNumbers(to: Staging, keys: readonly unknown[], start: number): number {
  const most = Math.min(keys.length - start, CHUNK);
  to.room(8 * CHUNK);
  const [view, origin] = [to.view, to.start];
  let n = 0;
  for (; n < most; n++) {
    const key = keys[start + n];
    if (typeof key !== "number") break;
    view.setFloat64(origin + 8 * n, key, true);
  }
  return n;
}

/** What is done with keys that have been written: the first of them is number `first` of the batch. */
export type Work = (keys: number, form: Form, first: number) => void;

/** The error of the key at `position` in a batch, which it names. */
function at(position: number, error: unknown): unknown {
  if (!(error instanceof KeyTypeError)) return error;
  return new KeyTypeError(`item ${position} of the batch (the first is 0): ${error.message}`);
}

/** `work` for keys that have been written; what the core refuses is named by its place. */
function run(to: Staging, work: Work, keys: number, form: Form, first: number): void {
  try {
    work(keys, form, first);
  } catch (error) {
    throw at(first + to.batch.hashed(), error);
  }
}

/** Writes keys in portions that a call takes, and has `work` done with each of them. */
function eachOf(keys: readonly unknown[], first: number, work: Work): void {
  const to = staging();
  for (let i = 0; i < keys.length; ) {
    const kind = typeof keys[i];
    let form: Form = Form.Numbers;
    let n = 0;
    if (kind === "string") [n, form] = writeTexts(to, keys, i);
    else if (kind === "number") n = writeNumbers(to, keys, i);
    let failed: { error: unknown } | undefined;
    // A few keys of one type among others are written with these: a call costs as much as ten keys.
    if (n < 64 && n < keys.length - i) {
      [n, form] = [0, Form.Tagged];
      const writer = new Writer(to);
      for (; n < CHUNK && i + n < keys.length && (n === 0 || writer.at < PORTION); n++) {
        const before = writer.at;
        try {
          writer.put(keys[i + n]);
        } catch (error) {
          writer.at = before;
          failed = { error };
          break;
        }
      }
    }
    if (n > 0) run(to, work, n, form, first + i);
    i += n;
    if (failed !== undefined) throw at(first + i, failed.error);
  }
}

/** Has `work` done with all keys, in portions. Keys before one that is refused are done. */
export function each(keys: Iterable<Key>, work: Work): void {
  if (typeof keys === "string" || keys instanceof Uint8Array) {
    const name = typeof keys === "string" ? "string" : "Uint8Array";
    throw new KeyTypeError(`a batch takes many keys, got one ${name}; use add(), has(), or [key]`);
  }
  if (keys === null || keys === undefined || typeof keys[Symbol.iterator] !== "function") {
    throw new KeyTypeError(`a batch takes an iterable of keys, got ${keys === null ? "null" : typeof keys}`);
  }
  if (Array.isArray(keys)) return eachOf(keys, 0, work);
  let [first, portion]: [number, Key[]] = [0, []];
  for (const key of keys) {
    portion.push(key);
    if (portion.length === CHUNK) {
      eachOf(portion, first, work);
      [first, portion] = [first + CHUNK, []];
    }
  }
  eachOf(portion, first, work);
}
