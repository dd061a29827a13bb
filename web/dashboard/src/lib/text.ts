/** Texts from outside, which may hold halves of characters. */

/** Returns a text whose lone halves of characters are U+FFFD: only such a text can be part of an address. */
export function toUnicode(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}

/** Returns a text as a part of an address. */
export function encodePart(text: string): string {
  return encodeURIComponent(toUnicode(text));
}

/** Returns the first `most` characters of a text, whole ones, and whether any are left. */
export function cut(text: string, most: number): { head: string; isCut: boolean } {
  if (text.length <= most) return { head: text, isCut: false };
  let end = most;
  const code = text.charCodeAt(end - 1);
  if (code >= 0xd800 && code <= 0xdbff) end -= 1; // the first half of a character
  return { head: text.slice(0, end), isCut: true };
}
