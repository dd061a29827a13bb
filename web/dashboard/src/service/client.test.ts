import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { Problem, Service, filterPath, toProblem } from "./client";
import { anything } from "./decode";

const MINUTE = 60_000;

/** A response whose body comes in parts, each so many milliseconds after the one before. */
function respondSlowly(parts: readonly (readonly [number, Uint8Array<ArrayBuffer> | string])[], signal: AbortSignal): Response {
  let next = 0;
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const part = parts[next++];
      if (part === undefined) {
        controller.close();
        return;
      }
      const [delay, bytes] = part;
      await new Promise<void>((resume, fail) => {
        signal.addEventListener("abort", () => { fail(signal.reason as Error); });
        setTimeout(resume, delay);
      });
      controller.enqueue(typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes);
    },
  });
  return new Response(body, { status: 200 });
}

/** Has `fetch` answer so; it ends when its signal does. */
function answer(work: (signal: AbortSignal) => Promise<Response> | Response): void {
  vi.stubGlobal("fetch", (_: string, { signal }: { signal: AbortSignal }) =>
    new Promise<Response>((resolve, reject) => {
      signal.addEventListener("abort", () => { reject(signal.reason as Error); });
      Promise.resolve(work(signal)).then(resolve, reject);
    }));
}

const never = (): Promise<Response> => new Promise(() => undefined);

/** What a request comes to, while the clock runs on. */
async function settle(request: Promise<unknown>, milliseconds: number): Promise<unknown> {
  let outcome: unknown = "pending";
  request.then((value) => { outcome = value; }, (error: unknown) => { outcome = error; });
  await vi.advanceTimersByTimeAsync(milliseconds);
  return outcome;
}

beforeEach(() => { vi.useFakeTimers(); });
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("a service that is slow", () => {
  it("has 20 seconds to begin an answer", async () => {
    answer(never);
    const request = new Service().send("v1/filters", { decode: anything });
    expect(await settle(request, 19_000)).toBe("pending");
    expect(await settle(request, 2_000)).toMatchObject({ code: "unreachable", message: "The service does not answer." });
  });

  it("may take as long as it likes for a body that keeps coming", async () => {
    const parts = Array.from({ length: 10 }, (_, i): [number, string] => [15_000, i === 0 ? "[1" : i === 9 ? "]" : ",1"]);
    answer((signal) => respondSlowly(parts, signal));
    const request = new Service().send("v1/filters", { decode: anything });
    expect(await settle(request, 149_000)).toBe("pending");
    expect(await settle(request, 2_000)).toMatchObject({ data: Array<number>(9).fill(1) });
  });

  it("is not called garbage where a body stops amid", async () => {
    answer((signal) => respondSlowly([[0, "[1"], [30_000, "]"]], signal));
    const problem = await settle(new Service().send("v1/filters", { decode: anything }), 31_000);
    expect(problem).toBeInstanceOf(Problem);
    expect(problem).toMatchObject({ code: "unreachable", message: "The response of the service was cut off." });
  });

  it("has time in proportion to what is sent, and a change may have been made", async () => {
    answer(never);
    const body = new Blob([new Uint8Array(50_000_000)]);
    const request = new Service().send(filterPath("x", "freeze"), { method: "POST", body, isLong: true });
    expect(await settle(request, 10 * MINUTE)).toBe("pending");
    const problem = await settle(request, 30 * MINUTE);
    expect(problem).toMatchObject({ code: "unreachable" });
    expect((problem as Problem).message).toMatch(/may have been made/);
  });

  it("is named as such for a change whose connection ends without an answer", async () => {
    answer(() => Promise.reject(new TypeError("Failed to fetch")));
    const problem = await settle(new Service().send(filterPath("x", "add"), { method: "POST", body: { key: "a" } }), 0);
    expect((problem as Problem).message).toBe("The service does not answer. The change may have been made all the same: look before you repeat it.");
  });
});

describe("a token that is given while a request is under way", () => {
  /** Has the service refuse whoever has no token `right`, after 100 ms. */
  const guard = (): string[] => {
    const tokens: string[] = [];
    vi.stubGlobal("fetch", async (_: string, { headers, signal }: { headers: Headers; signal: AbortSignal }) => {
      signal.throwIfAborted();
      const token = headers.get("authorization") ?? "none";
      tokens.push(token);
      await new Promise((resume) => setTimeout(resume, 100));
      return token === "Bearer right" ? new Response("[1]") : new Response("{}", { status: 401 });
    });
    return tokens;
  };

  it("is sent with that request again, and nobody is asked for one", async () => {
    const [tokens, service] = [guard(), new Service()];
    service.onUnauthorized = vi.fn();
    const request = service.send("v1/filters", { decode: anything });
    service.useToken("right");
    expect(await settle(request, 300)).toMatchObject({ data: [1] });
    expect(tokens).toEqual(["none", "Bearer right"]);
    expect(service.onUnauthorized).not.toHaveBeenCalled();
  });

  it("is refused once where it is wrong", async () => {
    const [tokens, service] = [guard(), new Service()];
    service.onUnauthorized = vi.fn();
    const request = service.send("v1/filters", { decode: anything });
    service.useToken("wrong");
    expect(await settle(request, 300)).toMatchObject({ status: 401 });
    expect(tokens).toEqual(["none", "Bearer wrong"]);
    expect(service.onUnauthorized).toHaveBeenCalledExactlyOnceWith(expect.anything(), true);
  });

  it("is not sent with a request that nobody waits for", async () => {
    const [tokens, service, control] = [guard(), new Service(), new AbortController()];
    service.onUnauthorized = vi.fn();
    const request = service.send("v1/filters", { decode: anything, signal: control.signal });
    service.useToken("right");
    control.abort();
    expect(await settle(request, 300)).toMatchObject({ name: "AbortError" });
    expect(tokens).toEqual(["none"]);
    expect(service.onUnauthorized).not.toHaveBeenCalled();
  });
});

describe("an answer of a strange server", () => {
  it("is read up to 8 MB", async () => {
    const piece = new Uint8Array(1 << 20).fill(32);
    let sent = 0;
    answer(() => new Response(new ReadableStream({ pull: (controller) => { sent++; controller.enqueue(piece); } })));
    const problem = await settle(new Service().send("v1/filters", { decode: anything }), 1_000);
    expect(problem).toMatchObject({ code: "garbage" });
    expect((problem as Problem).message).toMatch(/8 MB/);
    expect(sent).toBeLessThan(12);
  });

  it("is called garbage where it is not what was asked for", async () => {
    answer(() => new Response("[1,2,3]"));
    const decode = (): never => { throw new Error("x"); };
    expect(await settle(new Service().send("v1/x", { decode }), 0)).toMatchObject({ code: "garbage" });
  });
});

it("a name that is no text has an address, too", () => {
  expect(filterPath("a\ud800", "add")).toBe("v1/filters/a%EF%BF%BD/add");
});

it("a timeout outside of a request is a sentence, too", () => {
  expect(toProblem(new DOMException("signal timed out", "TimeoutError")).message).toBe("The service does not answer.");
});
