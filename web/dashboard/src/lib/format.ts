/** Figures as text. */

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const NOTHING = "–";
const YEAR = 365.25 * 86_400;
/** No line breaks between a number and its unit. */
const GAP = "\u00a0";

/** Returns a whole number with separators: 1,234,567. */
export function formatCount(value: number | null): string {
  return value === null ? NOTHING : WHOLE.format(value);
}

/** Returns a number in three digits: 0.52, 12.3, 1.23 M. */
export function formatShort(value: number | null): string {
  if (value === null) return NOTHING;
  if (value === 0) return "0";
  const size = Math.abs(value);
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]] as const) {
    // 999,999 is 1 M in three digits, not 1000 k.
    if (size >= 0.9995 * unit) {
      const by = name === "k" ? 1e3 : unit;
      return `${trim(value / by)}${GAP}${name}`;
    }
  }
  return size >= 1000 ? WHOLE.format(value) : trim(value);
}

/** Returns bytes in binary units: 1.86 MiB. */
export function formatBytes(value: number | null): string {
  if (value === null) return NOTHING;
  let unit = 0;
  let left = value;
  while (left >= 1024 && unit < UNITS.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? WHOLE.format(left) : trim(left)}${GAP}${UNITS[unit] ?? ""}`;
}

/** Returns a share from 0 to 1 in percent: 49.7 %. */
export function formatShare(value: number | null): string {
  if (value === null) return NOTHING;
  return `${trim(100 * value)}${GAP}%`;
}

/** Returns a false-positive rate: in percent down to 0.01 %, and as a power of ten below. */
export function formatRate(value: number | null): string {
  if (value === null) return NOTHING;
  if (value === 0) return "0";
  if (value >= 0.0001) return `${significant(100 * value, 3)}${GAP}%`;
  return value.toExponential(1).replace(".0e", "e");
}

/** Returns a rate as people say it: "1 in 1,000". */
export function formatOdds(value: number | null): string {
  if (value === null) return NOTHING;
  if (value <= 0) return "never";
  const odds = 1 / value;
  return odds >= 1e12 ? `1 in ${odds.toExponential(0)}` : `1 in ${WHOLE.format(odds < 100 ? odds : Number(odds.toPrecision(3)))}`;
}

/** Returns a span of time in its largest unit, in full words: "3 hours". */
export function formatSpan(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds / 1000);
  if (seconds >= 1000 * YEAR) return "more than 1,000 years";
  const units = [
    [YEAR, "year"],
    [30.4375 * 86_400, "month"],
    [86_400, "day"],
    [3_600, "hour"],
    [60, "minute"],
  ] as const;
  for (const [unit, name] of units) {
    if (seconds >= 2 * unit || (name === "minute" && seconds >= unit)) return plural(Math.round(seconds / unit), name);
  }
  return plural(Math.round(seconds), "second");
}

/** Returns a number with a noun: "1 filter", "2 filters". */
export function plural(count: number, noun: string): string {
  return `${WHOLE.format(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Returns a time of today as a time, any other with its date, in the reader's time zone. */
export function formatTime(milliseconds: number, now: number): string {
  const time = new Date(milliseconds);
  if (Number.isNaN(time.getTime())) return NOTHING;
  const clock = `${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}`;
  const day = `${String(time.getFullYear())}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
  return new Date(now).toDateString() === time.toDateString() ? clock : `${day} ${clock.slice(0, 5)}`;
}

/**
 * Returns the whole number of a text with separators or a unit, such as "1 000 000", "10M" or "1e6", in digits. Any
 * other text is returned as it is: the service says what is wrong with it.
 */
export function readCount(text: string): string {
  const plain = text.trim().replaceAll(/(?<=\d)[ _,\u00a0\u202f](?=\d{3})/g, "");
  const found = /^(\d{1,15}(?:\.\d{1,12})?(?:e\+?\d{1,2})?)\s?([kMGT]?)$/.exec(plain);
  if (found === null) return plain;
  const unit = { k: 1e3, M: 1e6, G: 1e9, T: 1e12 }[found[2] ?? ""] ?? 1;
  const value = Math.round(Number(found[1]) * unit);
  return Number.isSafeInteger(value) ? String(value) : plain;
}

/** Returns the rate of a text, where "0.1 %" and "1 in 1,000" mean 0.001; any other text is returned as it is. */
export function readRate(text: string): string {
  const plain = text.trim();
  const percent = /^(\d{0,6}(?:\.\d{1,15})?)\s?%$/.exec(plain);
  if (percent?.[1] !== undefined && percent[1] !== "") return String(Number((Number(percent[1]) / 100).toPrecision(12)));
  const odds = /^1 in (.+)$/i.exec(plain);
  if (odds?.[1] !== undefined) {
    const count = Number(readCount(odds[1]));
    if (count > 0) return String(Number((1 / count).toPrecision(12)));
  }
  return plain;
}

function trim(value: number): string {
  return significant(value, 3);
}

function significant(value: number, digits: number): string {
  return Math.abs(value) >= 1000 ? WHOLE.format(value) : String(Number(value.toPrecision(digits)));
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
