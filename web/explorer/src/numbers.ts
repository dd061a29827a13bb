/** Numbers as people read them. */

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** With separators: 12,345. */
export function count(value: number): string {
  return whole.format(value);
}

/** A rate as a percentage with two or three digits, or in powers of ten where it is tiny. */
export function percent(rate: number): string {
  if (!Number.isFinite(rate)) return "–";
  if (rate === 0) return "0 %";
  const shown = rate * 100;
  if (shown < 0.001) return power(rate);
  if (shown >= 99.95) return shown >= 100 ? "100 %" : `${shown.toFixed(2)} %`;
  return `${shown >= 10 ? shown.toFixed(1) : String(Number(shown.toPrecision(3)))} %`;
}

const HIGH = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** `3.2 × 10⁻⁷`. */
export function power(value: number): string {
  const [digits, exponent] = value.toExponential(1).split("e") as [string, string];
  return `${digits} × ${raise(Number(exponent))}`;
}

/** A power of ten: 10⁻⁷. */
export function raise(exponent: number): string {
  return `10${exponent < 0 ? "⁻" : ""}${String(Math.abs(exponent)).replace(/\d/g, (digit) => HIGH[Number(digit)] ?? "")}`;
}

/** A text of at most so many characters, which are not cut in two. */
export function shorten(text: string, most: number): string {
  const letters = Array.from(text);
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
}

/** Bytes in the unit that suits them. */
export function bytes(value: number): string {
  if (value < 1000) return `${value} ${value === 1 ? "byte" : "bytes"}`;
  const units = ["kB", "MB", "GB"];
  let at = -1;
  do {
    value /= 1000;
    at++;
  } while (value >= 999.5 && at < units.length - 1);
  return `${value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0)} ${units[at] ?? ""}`;
}

/** `1 key`, `2 keys`. */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** `a, b and c`. */
export function list(items: readonly string[]): string {
  if (items.length <= 1) return items[0] ?? "";
  return `${items.slice(0, -1).join(", ")} and ${items[items.length - 1] ?? ""}`;
}

/** A hash as 16 hexadecimal digits. */
export function hex(hash: bigint): string {
  return hash.toString(16).padStart(16, "0");
}
