/** The sentence of filters that did not load. */

/** Waits for the module; an error says that it is the module that is missing, and what to do about it. */
export async function loading(loads: Promise<void>): Promise<void> {
  try {
    await loads;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`the filters did not load (${reason}); try again when the connection is back`, { cause: error });
  }
}

/** Fulfilled when a worker says anything, or failed. */
export function firstMessage(worker: Worker): Promise<void> {
  return new Promise((resolve) => {
    worker.addEventListener("message", () => { resolve(); }, { once: true });
    worker.addEventListener("error", () => { resolve(); }, { once: true });
  });
}
