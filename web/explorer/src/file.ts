/** A filter file that somebody dropped: opened, described and asked by a worker. */

import type { Info } from "fullbloom";

/** Files beyond this are described by their header only: one of 250 MB takes 550 MB of a tab, the next one 800. */
export const MOST_BYTES = 256 * 1024 * 1024;
/** Keys that are asked for at once. */
export const MOST_KEYS = 1000;
export const MOST_KEY_TEXT = 20_000;

/** To the worker. */
export type FileRequest =
  | { readonly id: number; readonly do: "open"; readonly file: Blob; readonly secret?: string }
  | { readonly id: number; readonly do: "ask"; readonly keys: readonly (string | bigint)[] };

/** An answer about one key. */
export interface KeyAnswer {
  readonly found: boolean;
  readonly positions?: readonly number[];
  readonly count?: number;
  readonly value?: string;
}

/** From the worker. */
export type FileReply =
  | { readonly id: number; readonly is: "filter"; readonly info: Record<string, Info>; readonly size: number }
  | { readonly id: number; readonly is: "keyed" }
  | { readonly id: number; readonly is: "answers"; readonly answers: readonly KeyAnswer[] }
  | { readonly id: number; readonly is: "refused"; readonly reason: string; readonly details?: Record<string, Info> };

/** The bytes of a secret of 32 hexadecimal digits; `undefined` for anything else. */
export function parseSecret(text: string): Uint8Array | undefined {
  const digits = text.replace(/[\s:-]/g, "");
  if (!/^[0-9a-f]{32}$/i.test(digits)) return undefined;
  return Uint8Array.from({ length: 16 }, (_, i) => parseInt(digits.slice(2 * i, 2 * i + 2), 16));
}

/** The keys of lines: texts, or whole numbers. */
export function parseKeys(text: string, type: "text" | "number"): { keys: (string | bigint)[]; refused: string | undefined } {
  const lines = text.split(/\r?\n/).filter((line) => line !== "").slice(0, MOST_KEYS);
  if (type === "text") return { keys: lines, refused: undefined };
  const wrong = lines.find((line) => !/^\s*[+-]?\d{1,400}\s*$/.test(line));
  return wrong === undefined
    ? { keys: lines.map((line) => BigInt(line.trim().replace(/^\+/, ""))), refused: undefined }
    : { keys: [], refused: wrong };
}
