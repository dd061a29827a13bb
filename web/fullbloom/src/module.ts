/** The WebAssembly module: loading it once, and the memory through which keys go in and answers come out. */

import load, { Batch, initSync as loadSync } from "../wasm/fullbloom_wasm.js";
import { FullbloomError, guard } from "./errors.js";

/** Where the module comes from: an address, a response, its bytes, or the compiled module. */
export type Source = string | URL | Response | Promise<Response> | BufferSource | WebAssembly.Module;

/** Bytes of a file that are read at once. */
const PART = 1 << 20;

let memory: WebAssembly.Memory | undefined;
let loading: Promise<void> | undefined;

/**
 * Loads the module; further calls wait for the first one. In Node it is loaded on import, and this call does nothing.
 *
 * @param source the module, where it is not served beside the package's own files
 */
export function init(source?: Source): Promise<void> {
  if (memory !== undefined) return Promise.resolve();
  loading ??= load(source === undefined ? undefined : { module_or_path: source }).then(
    (loaded) => {
      memory = loaded.memory;
    },
    (error: unknown) => {
      loading = undefined; // another call may find the network up
      throw error;
    },
  );
  return loading;
}

/** Loads the module from its bytes, at once: for workers and servers. Browsers refuse large modules on a page's thread. */
export function initSync(source: BufferSource | WebAssembly.Module): void {
  memory ??= loadSync({ module: source }).memory;
}

/** A reader into one buffer; where files have none, another one, which takes no notice of the buffer. */
function readerOf(stream: ReadableStream<Uint8Array>): ReadableStreamBYOBReader {
  try {
    return stream.getReader({ mode: "byob" });
  } catch {
    return stream.getReader() as unknown as ReadableStreamBYOBReader;
  }
}

/** The memory of keys and answers. Each `room` call may move it, so addresses are read again behind it. */
class Staging {
  readonly batch = guard(() => new Batch());
  /** Address and length of the bytes of keys. */
  start = 0;
  length = 0;
  #lengths = 0;
  #held: Uint8Array;
  #view: DataView;
  readonly #memory: WebAssembly.Memory;

  constructor(memory: WebAssembly.Memory) {
    this.#memory = memory;
    this.#held = new Uint8Array(memory.buffer);
    this.#view = new DataView(memory.buffer);
    this.room(1 << 18);
  }

  /** The whole memory. A view is cut off from the memory when that grows. */
  get bytes(): Uint8Array {
    this.#refresh();
    return this.#held;
  }

  /** The whole memory, for numbers. */
  get view(): DataView {
    this.#refresh();
    return this.#view;
  }

  /** Takes new views after the memory has grown, which empties the old ones. */
  #refresh(): void {
    if (this.#held.length > 0) return;
    this.#held = new Uint8Array(this.#memory.buffer);
    this.#view = new DataView(this.#memory.buffer);
  }

  /** Makes room for so many bytes of keys. */
  room(bytes: number): void {
    if (bytes <= this.length) return;
    this.start = guard(() => this.batch.bytes(bytes));
    this.length = bytes;
  }

  /** The lengths of the keys of a batch, or room for them. */
  lengths(keys: number): Uint32Array {
    if (keys > this.#lengths) {
      guard(() => this.batch.lengths(keys));
      this.#lengths = keys;
    }
    return new Uint32Array(this.bytes.buffer, this.batch.lengths(keys), keys);
  }

  /** Room for a value beside each key. */
  values(keys: number): BigUint64Array {
    const start = guard(() => this.batch.values(keys));
    return new BigUint64Array(this.bytes.buffer, start, keys);
  }

  /** One answer a key, until the next call. */
  answers(keys: number): Uint8Array {
    return new Uint8Array(this.bytes.buffer, this.batch.answers(), keys);
  }

  /** One count or value a key, until the next call. */
  words(keys: number): BigUint64Array {
    return new BigUint64Array(this.bytes.buffer, this.batch.words(), keys);
  }

  /** Copies bytes into a memory of their own, for the time of `work`. */
  lend<T>(bytes: Uint8Array, work: (batch: Batch) => T): T {
    const batch = new Batch();
    try {
      const start = batch.bytes(bytes.length);
      this.bytes.set(bytes, start);
      return work(batch);
    } finally {
      batch.free();
    }
  }

  /**
   * Reads a file into a memory of its own, part by part, for the time of `work`. All parts come in one buffer: of buffers
   * of their own, Chromium kept as many bytes as the file has.
   */
  async lendFile<T>(file: Blob, work: (batch: Batch) => T): Promise<T> {
    // Chromium keeps a pipe for each stream until it collects garbage, and has 57: the next file was never read.
    if (file.size <= PART) return this.lend(new Uint8Array(await file.arrayBuffer()), work);
    const batch = new Batch();
    const reader = readerOf(file.stream());
    try {
      const start = batch.bytes(file.size);
      let [at, buffer] = [start, new ArrayBuffer(PART)];
      for (;;) {
        const { value } = await reader.read(new Uint8Array(buffer));
        if (value === undefined || value.length === 0 || at + value.length > start + file.size) break;
        this.bytes.set(value, at);
        at += value.length;
        buffer = value.buffer;
      }
      return work(batch);
    } finally {
      batch.free();
    }
  }
}

export type { Staging };

let held: Staging | undefined;

/** The memory of keys and answers. */
export function staging(): Staging {
  if (held !== undefined) return held;
  if (memory === undefined) throw new FullbloomError("the WebAssembly module is not loaded; await init() first");
  held = new Staging(memory);
  return held;
}
