/** Asks for a token; it stays in the memory of this tab. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { Dialog } from "./dialog";
import { Field } from "./field";

export function AskToken({ isRejected, onToken, onClose }: { isRejected: boolean; onToken: (token: string) => void; onClose: () => void }): JSX.Element {
  const [token, setToken] = useState("");
  return (
    <Dialog title="The service needs a token" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const given = token.trim();
          if (given !== "") onToken(given);
        }}
      >
        <div role="alert">{isRejected && <p class="notice">The service does not accept this token: it was revoked, or it is mistyped.</p>}</div>
        <Field label="Token" type="password" value={token} onValue={setToken} hint="It stays in the memory of this tab, and is gone when you close or reload it." />
        <p class="quiet">
          Somebody with access to the data folder makes one with <code>fullbloom token create NAME --scope read</code>.
        </p>
        <p class="buttons">
          <button type="button" onClick={onClose}>
            Not now
          </button>
          <button type="submit" class="primary" disabled={token.trim() === ""}>
            Use it
          </button>
        </p>
      </form>
    </Dialog>
  );
}
