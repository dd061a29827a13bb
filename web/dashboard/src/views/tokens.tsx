/** Tokens: create, shown once; list; revoke. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { formatTime } from "../lib/format";
import { cut, encodePart } from "../lib/text";
import { Confirm } from "../parts/confirm";
import { Copyable } from "../parts/copy";
import { Dialog } from "../parts/dialog";
import { Field } from "../parts/field";
import { MoreRows, firstRows } from "../parts/rows";
import { Failure, Fresh } from "../parts/state";
import { Words } from "../parts/words";
import { type Problem, toProblem } from "../service/client";
import { newToken, tokens as decodeTokens } from "../service/types";
import { usePolled } from "../state/polled";
import { useSession } from "../state/session";

const EVERY = 5_000;
const SCOPES = [
  ["read", "look keys up, list filters"],
  ["write", "add and remove keys, create and drop filters"],
  ["admin", "tokens, secrets, backups, nodes"],
] as const;

export function TokensView(): JSX.Element {
  const { service, announce } = useSession();
  const polled = usePolled("tokens", EVERY, async (signal) => (await service.send("v1/tokens", { decode: decodeTokens, signal })).data.tokens);
  const [revoked, setRevoked] = useState<string | null>(null);
  const isLast = polled.data?.length === 1;
  return (
    <>
      <h1>Tokens</h1>
      <Fresh polled={polled} what="the tokens">
        {(tokens) => (
          <>
            {tokens.length === 0 ? (
              <p>No token exists: everybody on this machine may use the service, and nobody else can. With the first token, every request needs one.</p>
            ) : (
              <div class="scroll" role="region" aria-label="Tokens" tabIndex={0}>
                <table>
                  <caption class="hidden">Tokens</caption>
                  <thead>
                    <tr>
                      <th scope="col">Name</th>
                      <th scope="col">Scopes</th>
                      <th scope="col">Filters</th>
                      <th scope="col" class="w2">Created</th>
                      <th scope="col"><span class="hidden">Change</span></th>
                    </tr>
                  </thead>
                  <tbody>
                    {firstRows(tokens).map((token) => (
                      <tr key={token.name}>
                        <th scope="row"><Words text={token.name} /></th>
                        <td><Words text={token.scopes.join(", ")} /></td>
                        <td>{token.patterns.length === 0 ? "all" : <Words text={token.patterns.join(", ")} />}</td>
                        <td class="w2">{formatTime(token.created, Date.now())}</td>
                        <td class="number">
                          <button type="button" class="danger" onClick={() => { setRevoked(token.name); }}>
                            Revoke<span class="hidden"> {cut(token.name, 128).head}</span> …
                          </button>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
            <MoreRows count={tokens.length}>; <code>fullbloom token list</code> shows all</MoreRows>
            <NewToken isFirst={tokens.length === 0} onCreated={polled.reload} />
          </>
        )}
      </Fresh>
      {revoked !== null && (
        <Confirm
          title="Revoke the token"
          name={revoked}
          verb="Revoke"
          onClose={() => { setRevoked(null); }}
          act={async () => {
            await service.send(`v1/tokens/${encodePart(revoked)}`, { method: "DELETE" });
            announce(`The token ${revoked} was revoked.`);
            polled.reload();
          }}
        >
          <p>
            Clients that use it are refused from now on.
            {isLast && " It is the last one: after it, every request is refused until somebody creates another with fullbloom token create."}
          </p>
        </Confirm>
      )}
    </>
  );
}

function NewToken({ isFirst, onCreated }: { isFirst: boolean; onCreated: () => void }): JSX.Element {
  const { service, useToken } = useSession();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly string[]>(isFirst ? ["read", "write", "admin"] : ["read"]);
  const [patterns, setPatterns] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [created, setCreated] = useState<{ name: string; token: string; wasFirst: boolean } | null>(null);
  const submit = async (): Promise<void> => {
    setProblem(null);
    try {
      const body = { name, scopes, patterns: patterns.split(/[\s,]+/).filter((pattern) => pattern !== "") };
      const { data } = await service.send("v1/tokens", { method: "POST", body, decode: newToken });
      // From the first token on, this page needs one as well: another request would ask for it over this dialog.
      if (isFirst && scopes.includes("admin")) service.useToken(data.token);
      setCreated({ ...data, wasFirst: isFirst });
      setName("");
    } catch (error) {
      setProblem(toProblem(error));
    }
  };
  return (
    <section class="card">
      <h2>{isFirst ? "Create the first token" : "Create a token"}</h2>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <div class="fields">
          <Field label="Name" value={name} onValue={setName} hint="The person or program that uses it" />
          <Field label="Filters" value={patterns} onValue={setPatterns} hint="Patterns such as logs:*, with spaces between; empty: all filters" />
        </div>
        <fieldset>
          <legend>Scopes</legend>
          <div class="boxes">
            {SCOPES.map(([scope, meaning]) => (
              <label key={scope} class="check">
                <input
                  type="checkbox"
                  checked={scopes.includes(scope)}
                  onChange={(event) => { setScopes(event.currentTarget.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope)); }}
                />
                <span>{scope} <small class="quiet">{meaning}</small></span>
              </label>
            ))}
          </div>
        </fieldset>
        <Failure problem={problem} />
        <p class="buttons start">
          <button type="submit" class="primary">Create</button>
        </p>
      </form>
      {created !== null && (
        <Dialog title="The token" onClose={() => { setCreated(null); onCreated(); }}>
          <div>
            <p>Copy it now: it is shown this once, and the service keeps only its digest.</p>
            <Copyable text={created.token}>
              {(button) => (
                <>
                  {created.wasFirst && <p class="quiet">{service.hasToken ? "This tab uses it from now on." : "Every request needs a token now. It lacks the scope admin, so this tab does not use it."}</p>}
                  <p class="buttons">
                    {button}
                    {!created.wasFirst && <button type="button" onClick={() => { useToken(created.token); setCreated(null); }}>Use it in this tab</button>}
                    <button type="button" class="primary" onClick={() => { setCreated(null); onCreated(); }}>Done</button>
                  </p>
                </>
              )}
            </Copyable>
          </div>
        </Dialog>
      )}
    </section>
  );
}
