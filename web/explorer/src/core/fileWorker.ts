/** The worker that opens files; the page starts it early, so that it is there without the network. */

let shared: Worker | undefined;

/** The one worker. */
export function fileWorker(): Worker {
  shared ??= new Worker(new URL("../file.worker.ts", import.meta.url), { type: "module" });
  return shared;
}

/** Fulfilled when it has loaded all that it needs, or failed to. */
export function fileWorkerReady(): Promise<void> {
  if (shared !== undefined) return Promise.resolve();
  const worker = fileWorker();
  return new Promise((resolve) => {
    worker.addEventListener("message", () => { resolve(); }, { once: true });
    worker.addEventListener("error", () => { resolve(); }, { once: true });
  });
}
