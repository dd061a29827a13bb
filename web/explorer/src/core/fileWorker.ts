/** The worker that opens files; the page starts it early, so that it is there without the network. */

import { firstMessage } from "./loading.js";
import type { FileReply, FileRequest } from "../file.js";

/** Hears replies; `undefined` if the worker did not start, or ran out of memory. */
export type Hear = (reply: FileReply | undefined) => void;

let shared: Worker | undefined;
const hearing = new Set<Hear>();

/** The one worker; another one after it failed. */
function start(): Worker {
  if (shared !== undefined) return shared;
  const worker = new Worker(new URL("../file.worker.ts", import.meta.url), { type: "module" });
  worker.addEventListener("message", ({ data }: MessageEvent<FileReply | "ready">) => {
    if (data !== "ready") hearing.forEach((hear) => { hear(data); });
  });
  worker.addEventListener("error", () => {
    worker.terminate();
    if (shared === worker) shared = undefined;
    hearing.forEach((hear) => { hear(undefined); });
  });
  shared = worker;
  return worker;
}

/** Sends a request. */
export function post(request: FileRequest): void {
  start().postMessage(request);
}

/** Has `hear` called with each reply, until the function that is returned is called. */
export function listen(hear: Hear): () => void {
  hearing.add(hear);
  return () => { hearing.delete(hear); };
}

/** Fulfilled when the worker has loaded all that it needs, or failed to. */
export function loadFileWorker(): Promise<void> {
  if (shared !== undefined) return Promise.resolve();
  return firstMessage(start());
}
