/** A box to try a key: the answer, its cells, its count, label or value; in a bank, with its owner. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { formatCount } from "../lib/format";
import { type Entry, formatEntry, type TypedKey } from "../lib/key";
import { Field } from "../parts/field";
import { KeyField } from "../parts/key_field";
import { Failure, Sentence } from "../parts/state";
import { Words } from "../parts/words";
import { filterPath, type Problem, toProblem } from "../service/client";
import { type Filter, type KeyAnswer, keyAnswer, positions as decodePositions } from "../service/types";
import { findAdds, findCapabilities, hasOwners, useSession } from "../state/session";

/** What the service says of a key besides the answer itself. */
interface More {
  readonly count: number | null;
  readonly value: number | null | undefined;
  readonly positions: readonly number[] | null;
}

interface Result {
  readonly entry: Entry;
  readonly verb: "check" | "add" | "remove";
  readonly answer: KeyAnswer;
  /** Null until they came. */
  readonly more: More | null;
  /** Why they did not come. */
  readonly problem: Problem | null;
}

/** Longest key whose cells are asked for: the key is part of that address. */
const MOST_IN_ADDRESS = 4_096;
const MOST_CELLS = 64;
const EMPTY: TypedKey = { text: "", type: "text" };

interface KeysProps {
  readonly filter: Filter;
  /** Parameters of its kind; null until they were read. */
  readonly details: Filter["details"];
  readonly onChange: () => void;
}

export function Keys({ filter, details, onChange }: KeysProps): JSX.Element {
  const { service, kinds } = useSession();
  const can = findCapabilities(kinds, filter.kind) ?? [];
  const adds = findAdds(kinds, filter.kind);
  const isBank = hasOwners(kinds, filter.kind);
  const [key, setKey] = useState(EMPTY);
  const [owner, setOwner] = useState(EMPTY);
  const [value, setValue] = useState("");
  const [result, setResult] = useState<Result | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);

  const ask = async (verb: Result["verb"]): Promise<void> => {
    setBusy(true);
    setProblem(null);
    setResult(null);
    try {
      const entry: Entry = {
        key: adds === "number" ? { ...key, type: "integer" } : key,
        ...(isBank ? { owner } : {}),
      };
      const body = formatEntry(adds === "pair" && verb === "add" ? { ...entry, value } : entry);
      const isLookup = verb === "check";
      const { data } = await service.send(filterPath(filter.name, verb), { method: "POST", body, decode: keyAnswer, isLookup });
      // The key is in, or out, from here on: what fails below must not look as if it were not.
      setResult({ entry, verb, answer: data, more: null, problem: null });
      if (verb !== "check") onChange();
      try {
        const more = await findMore(entry);
        setResult((before) => before && { ...before, more });
      } catch (error) {
        setResult((before) => before && { ...before, problem: toProblem(error) });
      }
    } catch (error) {
      setProblem(toProblem(error));
    }
    setBusy(false);
  };
  const findMore = async (entry: Entry): Promise<More> => {
    const body = formatEntry(entry);
    const send = async (action: string): Promise<KeyAnswer> =>
      (await service.send(filterPath(filter.name, action), { method: "POST", body, decode: keyAnswer, isLookup: true })).data;
    const isLabelled = can.includes("label") || can.includes("value");
    return {
      count: can.includes("count") ? (await send("count")).count : null,
      value: isLabelled ? (await send("values")).value : undefined,
      positions: can.includes("positions") && filter.backend !== "redis" ? await findPositions(entry.key) : null,
    };
  };
  const findPositions = async ({ text, type }: TypedKey): Promise<readonly number[] | null> => {
    if (text.length > MOST_IN_ADDRESS) return null;
    try {
      const query = { key: type === "integer" ? text.trim() : text, type };
      return (await service.send(filterPath(filter.name, "positions"), { decode: decodePositions, query })).data.positions;
    } catch (error) {
      if (toProblem(error).code === "unsupported" || toProblem(error).status === 400) return null;
      throw error;
    }
  };
  const canAdd = can.includes("add") && adds !== null;
  return (
    <section class="card">
      <h2>Try a key</h2>
      <form
        class="try"
        onSubmit={(event) => {
          event.preventDefault();
          void ask("check");
        }}
      >
        {isBank && <KeyField label="Owner" value={owner} onValue={setOwner} />}
        <KeyField label="Key" value={key} onValue={setKey} isInteger={adds === "number"} />
        {adds === "pair" && canAdd && (
          <Field
            label={can.includes("label") ? "Label" : "Value"}
            inputMode="numeric"
            value={value}
            onValue={setValue}
            hint={`To add the key: ${describeValues(details, can.includes("label"))}`}
          />
        )}
        <p class="buttons start">
          <button type="submit" class="primary" disabled={isBusy}>
            Look it up
          </button>
          {canAdd && (
            <button type="button" disabled={isBusy} onClick={() => void ask("add")}>
              Add it
            </button>
          )}
          {(can.includes("remove") || can.includes("delete")) && (
            <button type="button" disabled={isBusy} onClick={() => void ask("remove")}>
              Remove it
            </button>
          )}
        </p>
      </form>
      <Failure problem={problem} />
      <div role="status">{result !== null && <Outcome result={result} filter={filter} />}</div>
    </section>
  );
}

/** Says which labels or values a filter takes, as far as its parameters show it. */
function describeValues(details: Filter["details"], isLabel: boolean): string {
  const largest = details?.largest;
  const bound = typeof largest === "number" ? ` up to ${formatCount(largest)}` : "";
  return isLabel ? `the number of its area, from 1${bound}` : `a whole number${bound}`;
}

function Outcome({ result, filter }: { result: Result; filter: Filter }): JSX.Element {
  const { entry, more } = result;
  return (
    <div class="outcome">
      <p>
        <q>
          <Words text={entry.key.text} most={60} />
        </q>{" "}
        {entry.owner !== undefined && (
          <>
            of <q><Words text={entry.owner.text} most={60} /></q>{" "}
          </>
        )}
        <strong>{describe(result)}</strong>
      </p>
      {result.answer.key_domain_warning !== null && (
        <p class="notice">
          <Words text={result.answer.key_domain_warning} most={300} />
        </p>
      )}
      {more !== null && <Found more={more} filter={filter} isLong={entry.key.text.length > MOST_IN_ADDRESS} />}
      {result.problem !== null && (
        <p class="notice">
          More of the key cannot be shown: <Sentence problem={result.problem} />
        </p>
      )}
    </div>
  );
}

function Found({ more: { count, value, positions }, filter, isLong }: { more: More; filter: Filter; isLong: boolean }): JSX.Element {
  return (
    <>
      {count !== null && <p>Count: {formatCount(count)}</p>}
      {value !== undefined && <p>{value === null ? "It has no value." : `Label or value: ${formatCount(value)}`}</p>}
      {positions !== null && (
        <p>
          Its {positions.length} cells:{" "}
          {positions.slice(0, MOST_CELLS).map((cell, index) => (
            <code key={index}>{formatCount(cell)}</code>
          ))}
          {positions.length > MOST_CELLS && "…"}
        </p>
      )}
      {positions === null && isLong && <p class="quiet">The key is too long to show its cells.</p>}
      {filter.keyed === true && positions !== null && <p class="quiet">The filter is keyed: nobody can compute these cells without its secret.</p>}
    </>
  );
}

function describe({ verb, answer }: Result): string {
  if (verb === "add") {
    if (answer.new === null) return "is in the filter with this label or value.";
    return answer.new ? "was new and is in the filter now." : "was in the filter already, or looks as if it was.";
  }
  if (verb === "remove") return answer.removed === true ? "was removed." : "is certainly not in the filter.";
  return answer.found === true ? "is probably in the filter." : "is certainly not in the filter.";
}
