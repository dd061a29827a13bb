/** Requests to the service that serves this page. */

import { parseRetryAfter } from "../lib/backoff";
import type { Decode } from "./decode";

/** Milliseconds after which a request without an answer counts as unanswered. */
const TIMEOUT = 20_000;

/** Why a request failed; `message` is a sentence for people, mostly the service's own. */
export class Problem extends Error {
  constructor(
    /** The service's stable word for it; "unreachable" or "garbage" are this page's own. */
    readonly code: string,
    message: string,
    readonly status: number = 0,
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 408 || this.status >= 500;
  }
}

export interface Options<T> {
  readonly decode?: Decode<T>;
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE" | "PUT";
  readonly query?: Record<string, string | number | readonly string[] | undefined>;
  readonly headers?: Record<string, string>;
  /** The body, sent as JSON; a text is sent as it is. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
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
    const response = await this.fetch(path, options);
    const etag = response.headers.get("etag");
    if (options.decode === undefined || response.status === 204) return { data: undefined as T, etag };
    let body: unknown;
    try {
      body = await response.json();
      return { data: options.decode(body), etag };
    } catch (error) {
      if (isAbort(error)) throw error;
      throw new Problem("garbage", "What came back is not an answer of this service. A proxy or another program may be in between.");
    }
  }

  /** Sends a request and returns the response, which is a success; throws `Problem`. */
  async fetch<T>(path: string, options: Options<T> = {}): Promise<Response> {
    const timeout = AbortSignal.timeout(TIMEOUT);
    const signal = options.signal === undefined ? timeout : AbortSignal.any([options.signal, timeout]);
    const hadToken = this.#token !== null;
    let response: Response;
    try {
      response = await fetch(makeAddress(path, options.query), { ...this.#request(options), signal });
    } catch (error) {
      if (isAbort(error) && options.signal?.aborted === true) throw error;
      throw new Problem("unreachable", "The service does not answer.");
    }
    if (response.ok) return response;
    const problem = await readProblem(response);
    if (response.status === 401) this.onUnauthorized(problem, hadToken);
    throw problem;
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
  return `v1/filters/${encodeURIComponent(name)}${action === "" ? "" : `/${action}`}`;
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Returns any error as a problem with a sentence. */
export function toProblem(error: unknown): Problem {
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

async function readProblem(response: Response): Promise<Problem> {
  let code = "unknown";
  let detail = `The service answered ${String(response.status)} and gave no reason.`;
  try {
    const body = (await response.json()) as Record<string, unknown> | null;
    if (typeof body?.code === "string") code = body.code;
    if (typeof body?.detail === "string" && body.detail !== "") detail = toSentence(body.detail);
  } catch {
    // no JSON: the status says all that is known
  }
  const retryAfter = parseRetryAfter(response.headers.get("retry-after"), Date.now());
  return new Problem(code, detail, response.status, retryAfter);
}

/** Returns a message of the service, which begins in small letters, as a sentence. */
export function toSentence(message: string): string {
  const whole = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
