/** A labelled text field. */

import type { JSX } from "preact";
import { useId } from "preact/hooks";

export interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly hint?: string;
  readonly type?: "text" | "password" | "search";
  readonly inputMode?: "numeric" | "decimal" | "text";
  readonly placeholder?: string;
  readonly isHidden?: boolean;
}

export function Field({ label, value, onValue, hint, type = "text", inputMode = "text", placeholder, isHidden = false }: FieldProps): JSX.Element {
  const id = useId();
  // As an object: the types of Preact take no type that may be one of several.
  const kind: object = { type };
  return (
    <div class="field">
      <label for={id} class={isHidden ? "hidden" : ""}>
        {label}
      </label>
      <input
        id={id}
        {...kind}
        inputMode={inputMode}
        value={value}
        placeholder={placeholder ?? ""}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onInput={(event) => {
          onValue(event.currentTarget.value);
        }}
      />
      {hint !== undefined && (
        <small id={`${id}-hint`} class="quiet">
          {hint}
        </small>
      )}
    </div>
  );
}
