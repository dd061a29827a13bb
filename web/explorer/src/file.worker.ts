/** Opens a filter file away from the page, whose tab answers whatever the file is. */

import { type Filter, FullbloomError, type Info, init, kinds, openFile } from "fullbloom";

import { Container, TAG, readHeader } from "./core/container.js";
import { loading } from "./core/loading.js";
import { type FileReply, type FileRequest, type KeyAnswer, MOST_BYTES, parseSecret } from "./file.js";
import { bytes } from "./numbers.js";

/** Header and tables, at most: 65,535 parameters and sections. */
const MOST_HEAD = 64 + 65_535 * 48;

// Early, so that it is there without the network. A load that fails is tried again when a file comes.
init().then(() => { self.postMessage("ready"); }, () => { self.postMessage("ready"); });
let filter: Filter | undefined;
/** A file that waits for its secret. */
let waiting: Blob | undefined;

/** Sends to the page. */
function send(reply: FileReply): void {
  self.postMessage(reply);
}

/** The sentence of whatever was thrown. */
function sentence(error: unknown): string {
  if (error instanceof FullbloomError) return error.message;
  if (error instanceof RangeError || error instanceof WebAssembly.RuntimeError) {
    return "this tab has no memory for the filter; open the file with the command line: fullbloom info FILE";
  }
  return error instanceof Error ? error.message : String(error);
}

/** What the header of a large file says. */
async function describe(file: Blob): Promise<Record<string, Info>> {
  const head = new Uint8Array(await file.slice(0, Math.min(file.size, MOST_HEAD)).arrayBuffer());
  const header = readHeader(head);
  if (header === undefined || head.length < 64 + 16 * header.parameters) return {};
  const container = new Container(head);
  const details: Record<string, Info> = { "number of its kind": header.variant };
  if (container.has(TAG.capacity)) details["capacity"] = container.parameter(TAG.capacity);
  if (container.has(TAG.fpr)) details["target_fpr"] = container.parameter(TAG.fpr);
  if (container.has(TAG.count)) details["num_added"] = container.parameter(TAG.count);
  return details;
}

/** Opens a file, or says why not. */
async function openChosen(id: number, file: Blob, secret: string | undefined): Promise<void> {
  filter?.free();
  filter = undefined;
  const header = readHeader(new Uint8Array(await file.slice(0, 64).arrayBuffer()));
  if (header === undefined) {
    send({ id, is: "refused", reason: "this is not a Fullbloom file: its first bytes are not those of one" });
    return;
  }
  if (header.length !== file.size) {
    send({ id, is: "refused", reason: `the file is damaged: it says that it has ${header.length} bytes, and it has ${file.size}` });
    return;
  }
  if (file.size > MOST_BYTES) {
    send({
      id, is: "refused", details: await describe(file),
      reason: `the file has ${bytes(file.size)}, and this page opens files up to ${bytes(MOST_BYTES)}; use the command line: fullbloom check FILE`,
    });
    return;
  }
  let key: Uint8Array | undefined;
  if (header.fingerprint !== 0n) {
    waiting = file;
    if (secret === undefined) {
      send({ id, is: "keyed" });
      return;
    }
    key = parseSecret(secret);
    if (key === undefined) {
      send({ id, is: "refused", reason: "a secret has 16 bytes: type 32 hexadecimal digits" });
      return;
    }
  }
  await loading(init());
  filter = await openFile(file, { ...(key === undefined ? {} : { secret: key }), max_bytes: 2 * MOST_BYTES });
  waiting = undefined;
  send({ id, is: "filter", info: { ...filter.info() }, size: file.size });
}

/** Asks the open filter. */
function ask(id: number, keys: readonly (string | bigint)[]): void {
  if (filter === undefined) throw new FullbloomError("open a file first");
  const asked = filter;
  const row = kinds().find(({ name }) => name === asked.kind);
  const takes = row?.adds === "number" ? keys.map((key) => (typeof key === "string" ? Number(key) : key)) : keys;
  const found = asked.hasMany(takes);
  const answers = takes.map((key, i): KeyAnswer => ({
    found: found[i] ?? false,
    ...(asked.can("positions") && takes.length <= 50 ? { positions: asked.positions(key) } : {}),
    ...(asked.can("count") ? { count: asked.count(key) } : {}),
    ...(asked.can("value") || asked.can("label") ? { value: String(asked.get(key)) } : {}),
  }));
  send({ id, is: "answers", answers });
}

async function work(request: FileRequest): Promise<void> {
  try {
    if (request.do === "open") await openChosen(request.id, request.secret === undefined ? request.file : (waiting ?? request.file), request.secret);
    else ask(request.id, request.keys);
  } catch (error) {
    send({ id: request.id, is: "refused", reason: sentence(error) });
  }
}

// One after the other: a file that is dropped while another one is opened waits.
let queue = Promise.resolve();
self.addEventListener("message", ({ data }: MessageEvent<FileRequest>) => {
  queue = queue.then(() => work(data));
});
