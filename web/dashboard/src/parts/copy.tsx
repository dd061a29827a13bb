/** A text to copy, with a button that does so where the browser lets it. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";

const FIRST = "Copy";

export function Copyable({ text, children }: { text: string; children: (button: JSX.Element) => JSX.Element }): JSX.Element {
  const [state, setState] = useState(FIRST);
  const shown = useRef<HTMLElement>(null);
  const copy = async (): Promise<void> => {
    try {
      // Browsers have a clipboard on secure pages alone: not over plain HTTP from another machine.
      await navigator.clipboard.writeText(text);
      setState("Copied");
    } catch {
      if (shown.current !== null) getSelection()?.selectAllChildren(shown.current);
      setState("Selected: copy it by hand");
    }
  };
  return (
    <>
      <p>
        <code class="secret" ref={shown}>
          {text}
        </code>
      </p>
      {children(
        <button type="button" onClick={() => void copy()}>
          {state}
        </button>,
      )}
      <span role="status" class="hidden">{state !== FIRST && state}</span>
    </>
  );
}
