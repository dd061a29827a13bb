/** The owners of a bank: how many there are, one of them by its name, and what can be done with it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { formatBytes, formatCount, formatRate, plural } from "../lib/format";
import { formatOwner, type TypedKey } from "../lib/key";
import { Confirm } from "../parts/confirm";
import { KeyField } from "../parts/key_field";
import { Failure } from "../parts/state";
import { Words } from "../parts/words";
import { filterPath, type Problem, toProblem } from "../service/client";
import { anything } from "../service/decode";
import { type Filter, type Owner, owner as decodeOwner } from "../service/types";
import { useSession } from "../state/session";

/** What was found of an owner; null if the bank has none of this name. */
interface Result {
  readonly typed: TypedKey;
  readonly owner: Owner | null;
}

export function Owners({ filter, details, onChange }: { filter: Filter; details: Filter["details"]; onChange: () => void }): JSX.Element {
  const { service, announce } = useSession();
  const [typed, setTyped] = useState<TypedKey>({ text: "", type: "text" });
  const [result, setResult] = useState<Result | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [verb, setVerb] = useState<"clear" | "remove" | null>(null);
  const ask = async (): Promise<void> => {
    setProblem(null);
    setResult(null);
    try {
      const request = { method: "POST", body: formatOwner(typed), decode: decodeOwner, isLookup: true } as const;
      const { data } = await service.send(filterPath(filter.name, "owners/info"), request);
      setResult({ typed, owner: data });
    } catch (error) {
      const failed = toProblem(error);
      if (failed.code === "missing") setResult({ typed, owner: null });
      else setProblem(failed);
    }
  };
  const { owners, capacity } = details ?? {};
  const own = typeof capacity === "number" ? capacity : null;
  return (
    <section class="card">
      <h2>Owners</h2>
      <p class="quiet">
        {typeof owners === "number" && own !== null && `${plural(owners, "owner")}, each with a filter sized for ${plural(own, "key")}. `}
        A bank keeps hashes of its owners, not their names: look one up by its name.
      </p>
      <form
        class="try"
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        <KeyField label="Name of an owner" value={typed} onValue={setTyped} />
        <p class="buttons start">
          <button type="submit">Look the owner up</button>
        </p>
      </form>
      <Failure problem={problem} />
      <div role="status">{result !== null && <Found result={result} capacity={own} />}</div>
      {result?.owner != null && (
        <p class="buttons start">
          <button type="button" class="danger" onClick={() => { setVerb("clear"); }}>
            Clear the owner …
          </button>
          <button type="button" class="danger" onClick={() => { setVerb("remove"); }}>
            Remove the owner …
          </button>
        </p>
      )}
      {verb !== null && result !== null && (
        <Confirm
          title={verb === "clear" ? "Clear the owner" : "Remove the owner"}
          name={result.typed.text}
          verb={verb === "clear" ? "Clear" : "Remove"}
          onClose={() => { setVerb(null); }}
          act={async () => {
            const request = { method: "POST", body: formatOwner(result.typed), decode: anything } as const;
            await service.send(filterPath(filter.name, `owners/${verb}`), request);
            announce(`The owner ${result.typed.text} was ${verb === "clear" ? "cleared" : "removed"}.`);
            setResult(null);
            onChange();
          }}
        >
          <p>
            All {plural(result.owner?.num_added ?? 0, "key")} of the owner are forgotten.{" "}
            {verb === "clear" ? "It stays in the bank, with the filters that it has." : "The bank no longer has it, and uses its memory for others."}
          </p>
        </Confirm>
      )}
    </section>
  );
}

function Found({ result: { typed, owner }, capacity }: { result: Result; capacity: number | null }): JSX.Element {
  const name = <q><Words text={typed.text} most={60} /></q>;
  if (owner === null) return <p>The bank has no owner {name}.</p>;
  const { num_added: keys, stages, nbytes, fpr } = owner;
  return (
    <p>
      {name} has {capacity === null ? plural(keys, "key") : `${formatCount(keys)} of ${plural(capacity, "key")}`} in {plural(stages, "filter")} of {formatBytes(nbytes)}, at a rate of {formatRate(fpr)}.
    </p>
  );
}
