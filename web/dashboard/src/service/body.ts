/** Reading of a response's body, in bounded memory and with a bound on the pauses between its parts. */

/** Thrown where a body is longer than what was asked for. */
export class BodyTooLong extends Error {}

/** Ends a request by its signal when nothing happens for too long. */
export class Deadline {
  readonly #control = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Ends it after so many milliseconds, unless something happens before. */
  constructor(milliseconds: number) {
    this.extend(milliseconds);
  }

  get signal(): AbortSignal {
    return this.#control.signal;
  }

  /** Something happened: counts so many milliseconds from now on. */
  extend(milliseconds: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#control.abort(new DOMException("nothing came in time", "TimeoutError"));
    }, milliseconds);
  }

  /** Ends nothing any more. */
  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** Gives `take` the parts of a body as they come; throws `BodyTooLong` beyond `most` bytes. */
export async function readParts(response: Response, deadline: Deadline, pause: number, most: number, take: (part: Uint8Array<ArrayBuffer>) => void): Promise<void> {
  const reader = response.body?.getReader();
  let length = 0;
  for (;;) {
    deadline.extend(pause);
    const part = await reader?.read();
    if (part?.value === undefined) return;
    length += part.value.length;
    if (length > most) {
      await reader?.cancel().catch(() => undefined);
      throw new BodyTooLong();
    }
    take(part.value);
  }
}

/** Bytes that wait in this page until they are handed to the browser. */
const PORTION = 4 << 20;

/** A file that grows: the browser keeps what was handed to it outside of this page's memory, and on disk where it is long. */
export class GrowingBlob {
  #waiting: Uint8Array<ArrayBuffer>[] = [];
  #waitingLength = 0;
  readonly #parts: Blob[] = [];
  #length = 0;

  /** Appends bytes; returns how many the file has. */
  append(bytes: Uint8Array<ArrayBuffer>): number {
    this.#waiting.push(bytes);
    this.#waitingLength += bytes.length;
    this.#length += bytes.length;
    if (this.#waitingLength >= PORTION) this.#hand();
    return this.#length;
  }

  /** Returns the whole file. */
  finish(): Blob {
    this.#hand();
    return new Blob(this.#parts);
  }

  #hand(): void {
    this.#parts.push(new Blob(this.#waiting));
    [this.#waiting, this.#waitingLength] = [[], 0];
  }
}
