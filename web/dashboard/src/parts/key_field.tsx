/** A field for a key, and the choice of its type. */

import type { JSX } from "preact";
import { useId } from "preact/hooks";

import type { TypedKey } from "../lib/key";

interface KeyFieldProps {
  readonly label: string;
  readonly value: TypedKey;
  readonly onValue: (value: TypedKey) => void;
  /** Keys are whole numbers: there is no choice. */
  readonly isInteger?: boolean;
}

export function KeyField({ label, value, onValue, isInteger = false }: KeyFieldProps): JSX.Element {
  const id = useId();
  return (
    <>
      <label for={`${id}-key`}>{label}</label>
      <div class="row">
        <input
          id={`${id}-key`}
          dir="auto"
          value={value.text}
          inputMode={isInteger ? "numeric" : "text"}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          onInput={(event) => {
            onValue({ ...value, text: event.currentTarget.value });
          }}
        />
        {!isInteger && (
          <>
            <label class="hidden" for={`${id}-type`}>
              Type of the {label.toLowerCase()}
            </label>
            <select
              id={`${id}-type`}
              value={value.type}
              onChange={(event) => {
                onValue({ ...value, type: event.currentTarget.value === "integer" ? "integer" : "text" });
              }}
            >
              <option value="text">text</option>
              <option value="integer">integer</option>
            </select>
          </>
        )}
      </div>
    </>
  );
}
