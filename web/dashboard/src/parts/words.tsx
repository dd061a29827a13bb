/** Words from outside: names, keys and messages, which may hold anything. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { formatCount } from "../lib/format";
import { cut } from "../lib/text";

/** Characters of a text that are shown at first, and at most on request. */
const MOST = 80;
const MOST_SHOWN = 100_000;

/**
 * Shows a text apart from what is around it, so that marks of direction in it change nothing else. A long one is cut;
 * a button shows more of it.
 */
export function Words({ text, most = MOST, plain = false }: { text: string; most?: number; plain?: boolean }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const { head, isCut } = cut(text, isOpen ? MOST_SHOWN : most);
  return (
    <>
      <bdi class="words">{head}</bdi>
      {isCut && "…"}
      {!plain && text.length > most && (
        <button
          type="button"
          class="more"
          aria-expanded={isOpen}
          onClick={() => {
            setOpen(!isOpen);
          }}
        >
          {isOpen ? "show less" : `show all ${formatCount(text.length)} characters`}
        </button>
      )}
    </>
  );
}
