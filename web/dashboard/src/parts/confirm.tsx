/** A change that cannot be taken back: it waits until the name of what it changes is typed. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { type Problem, toProblem } from "../service/client";
import { useSession } from "../state/session";
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
  const { announce } = useSession();
  const isOpen = useRef(true);
  useEffect(
    () => () => {
      isOpen.current = false;
    },
    [],
  );
  const submit = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      await act(isForced);
      if (isOpen.current) onClose();
    } catch (error) {
      const found = toProblem(error);
      // The dialog may have been closed meanwhile: the change went on, and its failure must not be lost.
      if (!isOpen.current) announce(`${name}: ${found.message}`);
      setProblem(found);
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
        <div role="status">{isBusy && <p class="quiet">The service is at work …</p>}</div>
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
