/** A new filter: what it must do and hold, the service's advice with the cost of each choice, and its name. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { formatAddress } from "../lib/address";
import { formatBytes, formatCount, formatOdds, formatRate, formatShort, plural, readCount, readRate } from "../lib/format";
import { Field } from "../parts/field";
import { Failure, Fresh } from "../parts/state";
import { Words } from "../parts/words";
import { filterPath, type Problem, toProblem } from "../service/client";
import { anything } from "../service/decode";
import { type Choice, plan as decodePlan } from "../service/types";
import { useKept, usePolled } from "../state/polled";
import { hasOwners, useSession } from "../state/session";
import { emptyKeys, KeyLines, type KeySource } from "./static_keys";

/** What the needs mean; a need that has no line here shows its word alone. */
const MEANINGS: Readonly<Record<string, string>> = {
  remove: "take keys out again",
  count: "how often a key was added",
  expire: "forget old keys",
  grow: "hold more keys than planned",
  merge: "unite with another filter",
  static: "all keys are known now",
  label: "a label for each key",
  value: "a value for each key",
  union: "exact union, bit for bit",
  intersect: "intersection with another",
  positions: "show the cells of a key",
};
/** Needs that most people ask for; the others are behind a fold. */
const COMMON = ["remove", "count", "expire", "grow", "merge", "static"];
const RARELY = 3_600_000;
const PAUSE = 250;

interface Wish {
  readonly items: string;
  readonly fpr: string;
  readonly memory: string;
  readonly needs: readonly string[];
  /** A filter for each of many owners: a bank. */
  readonly isOwned: boolean;
}

/** What is created, once its name is typed. */
interface Order {
  readonly kind: string;
  /** Built of all its keys at once. */
  readonly isBuilt: boolean;
  readonly body: Record<string, unknown>;
  readonly summary: string;
}

export function CreateView(): JSX.Element {
  const { service, kinds } = useSession();
  const [wish, setWish] = useState<Wish>({ items: "1,000,000", fpr: "0.1 %", memory: "", needs: [], isOwned: false });
  const [asked, setAsked] = useState(wish);
  const [chosen, setChosen] = useState("");
  useEffect(() => {
    const timer = window.setTimeout(() => {
      setAsked(wish);
    }, PAUSE);
    return () => {
      window.clearTimeout(timer);
    };
  }, [wish]);
  const polled = useKept(
    usePolled(`plan ${JSON.stringify(asked)}`, RARELY, async (signal) => {
      const query = { items: readCount(asked.items), fpr: readRate(asked.fpr), memory: readCount(asked.memory), needs: asked.needs };
      return (await service.send("v1/plan", { decode: decodePlan, query, signal })).data;
    }),
  );
  const choices = polled.data?.choices.filter((choice) => choice.create !== null || choice.built) ?? [];
  const choice = choices.find((one) => nameOf(one) === chosen) ?? choices[0] ?? null;
  const bank = kinds.find((one) => hasOwners(kinds, one.kind))?.kind;
  const isBank = wish.isOwned && bank !== undefined;
  return (
    <>
      <h1>Create a filter</h1>
      <section class="card">
        <h2>What it holds</h2>
        <div class="fields">
          <Field label={isBank ? "Different keys of an owner" : "Different keys"} inputMode="numeric" value={wish.items} onValue={(items) => { setWish({ ...wish, items }); }} hint="1,000,000, 10M or 1e6" />
          <Field label="False-positive rate" inputMode="decimal" value={wish.fpr} onValue={(fpr) => { setWish({ ...wish, fpr }); }} hint="0.1 %, 0.001 or 1 in 1,000" />
          {!isBank && <Field label="Bytes at most" inputMode="numeric" value={wish.memory} onValue={(memory) => { setWish({ ...wish, memory }); }} hint="Optional; without a rate, the best one is found" />}
        </div>
        {!isBank && <Needs known={polled.data?.needs ?? COMMON} chosen={wish.needs} onChosen={(needs) => { setWish({ ...wish, needs }); }} />}
        {bank !== undefined && (
          <label class="check">
            <input type="checkbox" checked={wish.isOwned} onChange={(event) => { setWish({ ...wish, isOwned: event.currentTarget.checked }); }} />
            <span>
              A filter for each of many owners <small class="quiet">such as users or tenants, all of them in one bank</small>
            </span>
          </label>
        )}
      </section>
      {isBank ? (
        <Finish order={orderBank(bank, wish)} canExpire={false} />
      ) : (
        <Fresh polled={polled} what="the choices">
          {() =>
            choice === null ? (
              <p class="notice">The service creates no filter of this sort by HTTP. Build it in a process, and restore its file.</p>
            ) : (
              <>
                <Choices choices={choices} chosen={nameOf(choice)} onChosen={setChosen} />
                <Finish order={orderChoice(choice, readRate(asked.fpr))} canExpire={asked.needs.includes("expire")} />
              </>
            )
          }
        </Fresh>
      )}
    </>
  );
}

function nameOf(choice: Choice): string {
  return choice.layout === null ? choice.kind : `${choice.kind}, ${choice.layout}`;
}

function orderChoice(choice: Choice, fpr: string): Order {
  const rate = choice.fpr > 0 ? `${formatOdds(choice.fpr)} absent keys is reported as present` : "no absent key is reported as present";
  return {
    kind: choice.kind,
    isBuilt: choice.built,
    body: choice.built ? { fpr } : { ...choice.create },
    summary: `${choice.kind} for ${plural(choice.items, "key")}: ${formatBytes(choice.nbytes)}, at capacity ${rate}.`,
  };
}

function orderBank(kind: string, wish: Wish): Order {
  return {
    kind,
    isBuilt: false,
    body: { kind, ...readNumber("capacity", readCount(wish.items)), ...readNumber("fpr", readRate(wish.fpr)) },
    summary: "A bank takes a key together with its owner. Each owner has a filter of its own, which grows beyond these keys at twice the rate or less.",
  };
}

function Needs({ known, chosen, onChosen }: { known: readonly string[]; chosen: readonly string[]; onChosen: (needs: readonly string[]) => void }): JSX.Element {
  const box = (need: string): JSX.Element => (
    <label key={need} class="check">
      <input
        type="checkbox"
        checked={chosen.includes(need)}
        onChange={(event) => {
          onChosen(event.currentTarget.checked ? [...chosen, need] : chosen.filter((one) => one !== need));
        }}
      />
      <span>
        <Words text={need} most={32} plain />
        {MEANINGS[need] !== undefined && <small class="quiet"> {MEANINGS[need]}</small>}
      </span>
    </label>
  );
  const rest = known.filter((need) => !COMMON.includes(need) && need !== "add");
  return (
    <fieldset>
      <legend>What it must be able to do, besides adding and looking up</legend>
      <div class="boxes">{COMMON.map(box)}</div>
      {rest.length > 0 && (
        <details>
          <summary>More</summary>
          <div class="boxes">{rest.map(box)}</div>
        </details>
      )}
    </fieldset>
  );
}

function Choices({ choices, chosen, onChosen }: { choices: readonly Choice[]; chosen: string; onChosen: (name: string) => void }): JSX.Element {
  return (
    <section>
      <div class="scroll" role="region" aria-label="Choices, the best first" tabIndex={0}>
        <table>
          <caption class="hidden">Choices, the best first</caption>
          <thead>
            <tr>
              <th scope="col">Kind</th>
              <th scope="col" class="number">Memory</th>
              <th scope="col" class="number w2">Bits per key</th>
              <th scope="col" class="number">Rate</th>
              <th scope="col" class="number w2">Keys</th>
              <th scope="col" class="number w3">Lookup</th>
              <th scope="col" class="number w3">Add</th>
              <th scope="col" class="w2">False negatives</th>
            </tr>
          </thead>
          <tbody>
            {choices.map((choice) => {
              const name = nameOf(choice);
              return (
                <tr key={name} class={name === chosen ? "chosen" : ""}>
                  <th scope="row">
                    <label class="check">
                      <input type="radio" name="choice" checked={name === chosen} onChange={() => { onChosen(name); }} />
                      <span>
                        <Words text={name} most={60} plain />
                        {choice.recommended && <span class="tag calm">recommended</span>}
                        {!choice.fits && <span class="tag">too large</span>}
                      </span>
                    </label>
                  </th>
                  <td class="number">{formatBytes(choice.nbytes)}</td>
                  <td class="number w2">{formatShort(choice.bits_per_key)}</td>
                  <td class="number">{formatRate(choice.fpr)}</td>
                  <td class="number w2">{formatCount(choice.items)}</td>
                  <td class="number w3">{formatShort(choice.ns_check)} ns</td>
                  <td class="number w3">{choice.ns_add === null ? "–" : `${formatShort(choice.ns_add)} ns`}</td>
                  <td class="w2"><Words text={choice.false_negatives} most={40} plain /></td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <p class="quiet under">Times are estimates for a key of a batch on one core, within a factor of two.</p>
    </section>
  );
}

function Finish({ order, canExpire }: { order: Order; canExpire: boolean }): JSX.Element {
  const { service, announce } = useSession();
  const [name, setName] = useState("");
  const [window_, setWindow] = useState("");
  const [expire, setExpire] = useState("");
  const [isStrict, setStrict] = useState(false);
  const [keys, setKeys] = useState<KeySource>(emptyKeys);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      if (order.isBuilt) {
        const query = { kind: order.kind, fpr: String(order.body.fpr) };
        const headers = { "content-type": "text/plain" };
        await service.send(filterPath(name, "freeze"), { method: "POST", query, headers, body: keys.file ?? keys.text, decode: anything, isLong: true });
      } else {
        const more = { ...readNumber("window", window_), ...readNumber("expire", expire), ...(isStrict ? { strict: true } : {}) };
        await service.send("v1/filters", { method: "POST", body: { ...order.body, name, ...more }, decode: anything });
      }
      announce(`${name} was created.`);
      location.hash = formatAddress({ view: "filter", name });
    } catch (error) {
      setProblem(toProblem(error));
      setBusy(false);
    }
  };
  return (
    <section class="card">
      <h2>Create it</h2>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <div class="fields">
          <Field label="Name" value={name} onValue={setName} hint="Such as users:seen" />
          {!order.isBuilt && <Field label="Drop it after" inputMode="decimal" value={expire} onValue={setExpire} hint="Seconds; empty: never" />}
          {canExpire && !order.isBuilt && <Field label="Forget keys after" inputMode="decimal" value={window_} onValue={setWindow} hint="Seconds; empty: by their number" />}
        </div>
        {order.isBuilt ? (
          <KeyLines value={keys} onValue={setKeys} />
        ) : (
          <label class="check">
            <input type="checkbox" checked={isStrict} onChange={(event) => { setStrict(event.currentTarget.checked); }} />
            <span>
              Strict <small class="quiet">refuse keys beyond the capacity instead of raising the rate</small>
            </span>
          </label>
        )}
        <p><Words text={order.summary} most={300} plain /></p>
        <Failure problem={problem} />
        <p class="buttons start">
          <button type="submit" class="primary" disabled={isBusy || name === ""}>
            Create
          </button>
        </p>
      </form>
    </section>
  );
}

/** Returns a member that is a number; a text that is no number is sent as it is, and the service says so. */
function readNumber(name: string, text: string): Record<string, number | string> {
  const plain = text.trim();
  if (plain === "") return {};
  const value = Number(plain);
  return { [name]: Number.isFinite(value) ? value : plain };
}
