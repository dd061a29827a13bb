/** A change that cannot be taken back: it waits until the name of what it changes is typed. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useState } from "preact/hooks";

import { type Problem, toProblem } from "../service/client";
import { Dialog } from "./dialog";
import { Failure } from "./state";
import { Words } from "./words";

export interface Confirmation {
  readonly title: string;
  /** The name that must be typed. */
  readonly name: string;
  readonly verb: string;
  readonly children: ComponentChildren;
  /** Makes the change; `force`: even if somebody else has changed the filter since the dialog opened. */
  readonly act: (force: boolean) => Promise<void>;
  readonly onClose: () => void;
}

export function Confirm({ title, name, verb, children, act, onClose }: Confirmation): JSX.Element {
  const [typed, setTyped] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isForced, setForced] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const id = useId();
  const submit = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      await act(isForced);
      onClose();
    } catch (error) {
      setProblem(toProblem(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (typed === name) void submit();
        }}
      >
        {children}
        <label for={id}>
          Type <strong><Words text={name} most={128} plain /></strong> to confirm
        </label>
        <input
          id={id}
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
          }}
        />
        <Failure problem={problem} />
        {problem?.code === "changed" && (
          <label class="check">
            <input
              type="checkbox"
              checked={isForced}
              onChange={(event) => {
                setForced(event.currentTarget.checked);
              }}
            />
            Go on, whatever was changed meanwhile
          </label>
        )}
        <p class="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="danger" disabled={typed !== name || isBusy}>
            {verb}
          </button>
        </p>
      </form>
    </Dialog>
  );
}
