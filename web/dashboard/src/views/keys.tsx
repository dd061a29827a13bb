/** A box to try a key: the answer, its cells, its count, label or value. */

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";

import { formatCount } from "../lib/format";
import { Failure } from "../parts/state";
import { Words } from "../parts/words";
import { filterPath, Problem, toProblem } from "../service/client";
import { type Filter, type KeyAnswer, keyAnswer, positions as decodePositions } from "../service/types";
import { findCapabilities, useSession } from "../state/session";

type KeyType = "text" | "integer";

interface Result {
  readonly key: string;
  readonly verb: "check" | "add" | "remove";
  readonly answer: KeyAnswer;
  readonly count: number | null;
  readonly value: number | null | undefined;
  readonly positions: readonly number[] | null;
}

/** Longest key whose cells are asked for: the key is part of that address. */
const MOST_IN_ADDRESS = 4_096;
const MOST_CELLS = 64;

export function Keys({ filter, onChange }: { filter: Filter; onChange: () => void }): JSX.Element {
  const { service, kinds } = useSession();
  const can = findCapabilities(kinds, filter.kind) ?? [];
  const [key, setKey] = useState("");
  const [type, setType] = useState<KeyType>("text");
  const [result, setResult] = useState<Result | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const id = useId();

  const ask = async (verb: Result["verb"]): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      const body = makeBody(key, type);
      const send = async (action: string): Promise<KeyAnswer> =>
        (await service.send(filterPath(filter.name, action), { method: "POST", body, decode: keyAnswer })).data;
      const answer = await send(verb);
      const isLabelled = can.includes("label") || can.includes("value");
      setResult({
        key,
        verb,
        answer,
        count: can.includes("count") ? (await send("count")).count : null,
        value: isLabelled ? (await send("values")).value : undefined,
        positions: can.includes("positions") && filter.backend !== "redis" ? await findPositions() : null,
      });
      if (verb !== "check") onChange();
    } catch (error) {
      setResult(null);
      setProblem(toProblem(error));
    }
    setBusy(false);
  };
  const findPositions = async (): Promise<readonly number[] | null> => {
    if (key.length > MOST_IN_ADDRESS) return null;
    try {
      const query = { key, type };
      return (await service.send(filterPath(filter.name, "positions"), { decode: decodePositions, query })).data.positions;
    } catch (error) {
      if (toProblem(error).code === "unsupported" || toProblem(error).status === 400) return null;
      throw error;
    }
  };
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
        <label for={`${id}-key`}>Key</label>
        <div class="row">
          <input
            id={`${id}-key`}
            dir="auto"
            value={key}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            onInput={(event) => {
              setKey(event.currentTarget.value);
            }}
          />
          <label class="hidden" for={`${id}-type`}>
            Type of the key
          </label>
          <select
            id={`${id}-type`}
            value={type}
            onChange={(event) => {
              setType(event.currentTarget.value === "integer" ? "integer" : "text");
            }}
          >
            <option value="text">text</option>
            <option value="integer">integer</option>
          </select>
        </div>
        <p class="buttons start">
          <button type="submit" class="primary" disabled={isBusy}>
            Look it up
          </button>
          {!can.includes("static") && !can.includes("label") && !can.includes("value") && (
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

function Outcome({ result, filter }: { result: Result; filter: Filter }): JSX.Element {
  const { positions } = result;
  return (
    <div class="outcome">
      <p>
        <q>
          <Words text={result.key} most={60} />
        </q>{" "}
        <strong>{describe(result)}</strong>
      </p>
      {result.count !== null && <p>Count: {formatCount(result.count)}</p>}
      {result.value !== undefined && <p>{result.value === null ? "It has no value." : `Label or value: ${formatCount(result.value)}`}</p>}
      {result.answer.key_domain_warning !== null && <p class="notice">{result.answer.key_domain_warning}</p>}
      {positions !== null && (
        <p>
          Its {positions.length} cells:{" "}
          {positions.slice(0, MOST_CELLS).map((cell, index) => (
            <code key={index}>{formatCount(cell)}</code>
          ))}
          {positions.length > MOST_CELLS && "…"}
        </p>
      )}
      {positions === null && result.key.length > MOST_IN_ADDRESS && <p class="quiet">The key is too long to show its cells.</p>}
      {filter.keyed === true && positions !== null && <p class="quiet">The filter is keyed: without its secret nobody can tell these cells.</p>}
    </div>
  );
}

function describe({ verb, answer }: Result): string {
  if (verb === "add") return answer.new === true ? "was new and is in the filter now." : "was in the filter already, or looks as if it was.";
  if (verb === "remove") return answer.removed === true ? "was removed." : "is certainly not in the filter.";
  return answer.found === true ? "is probably in the filter." : "is certainly not in the filter.";
}

/** Returns the body of a request about one key. An integer of any length is written as it is: `JSON` would round it. */
function makeBody(key: string, type: KeyType): string {
  if (type === "text") return JSON.stringify({ key });
  const digits = key.trim();
  if (!/^-?\d{1,300}$/.test(digits)) throw new Problem("invalid", "An integer key has digits only, and perhaps a minus sign before them.");
  return `{"key":${BigInt(digits).toString()}}`;
}
