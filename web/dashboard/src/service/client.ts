/** Requests to the service that serves this page. */

import { parseRetryAfter } from "../lib/backoff";
import { encodePart, toUnicode } from "../lib/text";
import { BodyTooLong, Deadline, GrowingBlob, readParts } from "./body";
import type { Decode } from "./decode";
import { Problem } from "../lib/problem";

export { Problem } from "../lib/problem";

/** Milliseconds until an answer begins, and between two parts of its body. */
const TIMEOUT = 20_000;
/** Milliseconds for work that takes its time, such as building a filter of millions of keys. */
const LONG_TIMEOUT = 600_000;
/** Bytes a millisecond that an upload may be as slow as. */
const SLOWEST = 50;
/** Bytes of JSON that are read: pages and histories have a tenth of it. */
const MOST_JSON = 8_000_000;
/** Bytes of an error that are read. */
const MOST_PROBLEM = 100_000;

const NO_ANSWER = "The service does not answer.";
const CUT_OFF = "The response of the service was cut off.";
const UNSURE = "The change may have been made all the same: look before you repeat it.";

export interface Options<T> {
  readonly decode?: Decode<T>;
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE" | "PUT";
  readonly query?: Record<string, string | number | readonly string[] | undefined>;
  readonly headers?: Record<string, string>;
  /** The body, sent as JSON; a text is sent as it is. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  /** Nothing is changed by it, though it is no GET: a lookup. */
  readonly isLookup?: boolean;
  /** The service may work for minutes before it answers. */
  readonly isLong?: boolean;
}

export interface Answer<T> {
  readonly data: T;
  readonly etag: string | null;
}

export class Service {
  /** The token of this tab, in memory only: it is in no storage, no cookie and no address. */
  #token: string | null = null;
  /** Called when the service requires a token, or rejects the one it was sent. */
  onUnauthorized: (problem: Problem, hadToken: boolean) => void = () => undefined;

  get hasToken(): boolean {
    return this.#token !== null;
  }

  useToken(token: string | null): void {
    this.#token = token;
  }

  /** Sends a request and returns the decoded answer; throws `Problem`. */
  async send<T>(path: string, options: Options<T> = {}): Promise<Answer<T>> {
    return this.#run(path, options, async (response, deadline) => {
      const etag = response.headers.get("etag");
      if (options.decode === undefined || response.status === 204) return { data: undefined as T, etag };
      const body = await readText(response, deadline, MOST_JSON);
      try {
        return { data: options.decode(JSON.parse(body)), etag };
      } catch {
        throw new Problem("garbage", "What came back is not an answer of this service. A proxy or another program may be in between.");
      }
    });
  }

  /** Sends a request and returns the body, of any length, outside of this page's memory; throws `Problem`. */
  async download(path: string, onProgress: (bytes: number) => void, options: Options<unknown> = {}): Promise<Blob> {
    return this.#run(path, options, async (response, deadline) => {
      const file = new GrowingBlob();
      await readParts(response, deadline, TIMEOUT, Number.MAX_SAFE_INTEGER, (part) => {
        onProgress(file.append(part));
      });
      return file.finish();
    });
  }

  /** Sends a request and has `read` read the response, which is a success. */
  async #run<T, R>(path: string, options: Options<T>, read: (response: Response, deadline: Deadline) => Promise<R>): Promise<R> {
    const request = this.#request(options);
    const deadline = new Deadline(allowTime(options, request.body));
    const signal = options.signal === undefined ? deadline.signal : AbortSignal.any([options.signal, deadline.signal]);
    const isChange = (options.method ?? "GET") !== "GET" && options.isLookup !== true;
    const token = this.#token;
    let response: Response | undefined;
    try {
      response = await fetch(makeAddress(path, options.query), { ...request, signal });
      if (!response.ok) throw await readProblem(response, deadline);
      return await read(response, deadline);
    } catch (error) {
      if (error instanceof Problem) {
        // The answer is about the token of then: one that was given meanwhile deserves an attempt of its own.
        if (error.status === 401 && token !== this.#token) return await this.#run(path, options, read);
        if (error.status === 401) this.onUnauthorized(error, token !== null);
        throw error;
      }
      if (options.signal?.aborted === true) throw error;
      if (error instanceof BodyTooLong) throw new Problem("garbage", "What came back is longer than 8 MB, and no answer of this service is.");
      const sentence = response === undefined ? NO_ANSWER : CUT_OFF;
      throw new Problem("unreachable", isChange ? `${sentence} ${UNSURE}` : sentence);
    } finally {
      deadline.stop();
    }
  }

  #request(options: Options<unknown>): RequestInit {
    const headers = new Headers(options.headers);
    if (this.#token !== null) headers.set("authorization", `Bearer ${this.#token}`);
    const { body } = options;
    if (body !== undefined && !headers.has("content-type")) headers.set("content-type", "application/json");
    return {
      method: options.method ?? "GET",
      headers,
      body: body === undefined ? null : typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
    };
  }
}

/** Returns the path of a filter, or of an action of it. */
export function filterPath(name: string, action = ""): string {
  return `v1/filters/${encodePart(name)}${action === "" ? "" : `/${action}`}`;
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Returns any error as a problem with a sentence. */
export function toProblem(error: unknown): Problem {
  if (error instanceof DOMException && error.name === "TimeoutError") return new Problem("unreachable", NO_ANSWER);
  return error instanceof Problem ? error : new Problem("page", `The page failed: ${String(error)}`);
}

function makeAddress(path: string, query: Options<unknown>["query"] = {}): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [value]) {
      if (one !== undefined && one !== "") words.append(name, String(one));
    }
  }
  const text = words.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** Returns the milliseconds that a request may take until its answer begins. */
function allowTime({ isLong }: Options<unknown>, body: unknown): number {
  const length = body instanceof Blob ? body.size : typeof body === "string" ? body.length : 0;
  return (isLong === true ? LONG_TIMEOUT : TIMEOUT) + length / SLOWEST;
}

/** Returns a body as text. */
async function readText(response: Response, deadline: Deadline, most: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  await readParts(response, deadline, TIMEOUT, most, (part) => {
    text += decoder.decode(part, { stream: true });
  });
  return text + decoder.decode();
}

async function readProblem(response: Response, deadline: Deadline): Promise<Problem> {
  let code = "unknown";
  let detail = `The service answered ${String(response.status)} and gave no reason.`;
  try {
    const body = JSON.parse(await readText(response, deadline, MOST_PROBLEM)) as Record<string, unknown> | null;
    if (typeof body?.code === "string") code = body.code;
    if (typeof body?.detail === "string" && body.detail !== "") detail = toSentence(toUnicode(body.detail));
  } catch {
    // no JSON, or no end of it: the status says all that is known
  }
  const retryAfter = parseRetryAfter(response.headers.get("retry-after"), Date.now());
  return new Problem(code, detail, response.status, retryAfter);
}

/** Returns a message of the service, which begins in small letters, as a sentence. */
export function toSentence(message: string): string {
  const whole = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
