/** Fingerprints that push each other out. */

import { FilterFull, create, hashKey } from "fullbloom?whole";
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";

import { choice, text, whole } from "../address.js";
import { using } from "../core/filters.js";
import { CuckooTable, type Move, type Spot, findMoves } from "../core/tables.js";
import { percent, plural } from "../numbers.js";
import { Answer, Button, Choice, Controls, Facts, Key, Range, Text } from "../ui/Controls.js";
import { MOST_LETTERS, parseWords } from "../words.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  n: number;
  slots: "2" | "4";
  ask: string;
}

const MOST = 60;
const CAPACITY = 24;

/** The buckets of a spot, which may be one. */
const either = ({ first, second }: Spot): string => (first === second ? String(first) : `${first} or ${second}`);

/** The key that is added as number `i`. */
const nameOf = (i: number): string => `nest-${i}`;

interface State {
  readonly table: CuckooTable;
  readonly added: number;
  readonly last: { readonly name: string; readonly spot: Spot; readonly moves: readonly Move[] | undefined } | undefined;
  /** Why the key after those asked for was refused, if it was; and why the search for `next` ended. */
  readonly refused: string | undefined;
  readonly ends: string | undefined;
  readonly found: boolean;
  readonly rate: number;
  /** The next number of keys at which one pushes others out. */
  readonly next: number | undefined;
}

/** A filter with so many keys, and what adding the last of them moved. */
export function nest(n: number, slots: number, asked: string): State {
  return using(create("cuckoo", { capacity: CAPACITY, fpr: 0.05, bucket_size: slots }), (filter) => {
    let [before, added, refused] = [new CuckooTable(filter), 0, undefined as string | undefined];
    let last: State["last"];
    const add = (): boolean => {
      const name = nameOf(added + 1);
      try {
        filter.add(name);
      } catch (error) {
        if (!(error instanceof FilterFull)) throw error;
        refused = error.message;
        return false;
      }
      added++;
      const after = new CuckooTable(filter);
      const spot = after.spot(hashKey(name));
      last = { name, spot, moves: findMoves(before, after, spot) };
      before = after;
      return true;
    };
    while (added < n && add());
    const state = { table: before, added, last, refused, found: asked !== "" && filter.has(asked), rate: (filter.info() as { fpr: number }).fpr };
    let next: number | undefined;
    while (next === undefined && refused === undefined && added < MOST && add()) {
      if (last !== undefined && (last.moves === undefined || last.moves.length > 1)) next = added;
    }
    return { ...state, next, ends: next === undefined ? refused : undefined };
  });
}

function Figure({ values: { n, slots, ask }, change }: SceneProps<Values>): VNode {
  const asked = parseWords(ask)[0] ?? "";
  const state = useMemo(() => nest(n, Number(slots), asked), [n, slots, asked]);
  const { table, last } = state;
  const spot = asked === "" ? undefined : table.spot(hashKey(asked));
  const moved = new Map((last?.moves ?? []).map((move, i) => [`${move.to} ${move.slot}`, i]));
  const digits = Math.ceil(table.width / 4);
  const shown = (fingerprint: number): string => fingerprint.toString(16).padStart(digits, "0");
  const total = table.buckets.length * Number(slots);
  return (
    <>
      <Controls>
        <Range label="Keys added" value={n} least={0} most={MOST} change={(next) => { change({ n: next }); }} />
        <Choice label="Slots of a bucket" value={slots} options={[["2", "2"], ["4", "4"]]} change={(next) => { change({ slots: next }); }} />
        <Text label="Look up" value={ask} most={MOST_LETTERS} change={(typed) => { change({ ask: typed }); }} />
        <Button disabled={state.next === undefined} press={() => { change({ n: state.next ?? n }); }}>Add until one is pushed out</Button>
      </Controls>
      <div class="buckets" role="img" aria-label={`${table.buckets.length} buckets of ${slots} slots, ${table.count} of ${total} slots taken.`}>
        {table.buckets.map((bucket, i) => (
          <div key={i} class={spot !== undefined && (i === spot.first || i === spot.second) ? "bucket asked" : "bucket"}>
            <small>{i}</small>
            {bucket.map((fingerprint, j) => {
              const at = moved.get(`${i} ${j}`);
              const state = fingerprint === 0 ? "" : at === undefined ? "taken" : at === 0 ? "taken new" : "taken kicked";
              return <span key={j} class={state}>{fingerprint === 0 ? "" : shown(fingerprint)}</span>;
            })}
          </div>
        ))}
      </div>
      {last !== undefined && (
        <ol class="moves" aria-label="What adding the last key moved">
          {last.moves === undefined
            ? <li><Key>{last.name}</Key> set off a walk that came through one slot twice; the table shows only its end.</li>
            : last.moves.map((move, i) => (
              <li key={i}>
                {i === 0
                  ? <><Key>{last.name}</Key> has the fingerprint <b class="mono">{shown(move.fingerprint)}</b> and the buckets {last.spot.first} and {last.spot.second}; it went into {move.to}.</>
                  : <><b class="mono">{shown(move.fingerprint)}</b> was pushed out of bucket {move.from} and went to its other one, {move.to}.</>}
              </li>
            ))}
          {table.stash !== undefined && <li>The fingerprint <b class="mono">{shown(table.stash.fingerprint)}</b> found no slot and waits in the stash.</li>}
        </ol>
      )}
      <Answer tone={asked === "" ? "calm" : state.found ? "yes" : "no"}>
        {asked === "" || spot === undefined ? "Type a key to look up." : (
          <><Key>{asked}</Key>: <b>{state.found ? "probably" : "no"}</b>. Its fingerprint <span class="mono">{shown(spot.fingerprint)}</span> {state.found ? "is" : "is not"} in bucket {either(spot)}.</>
        )}
      </Answer>
      {state.refused === undefined && state.ends !== undefined && (
        <p class="quiet">No further key pushes another one out: soon one is refused, since the table holds more than the {CAPACITY} keys that it was made for.</p>
      )}
      {state.refused !== undefined && <p class="trouble">After {plural(state.added, "key")} the next one was refused: {state.refused}</p>}
      <Facts facts={[["slots taken", `${table.count} of ${total}`], ["load", percent(table.count / total)], ["bits of a fingerprint", String(table.width)], ["rate now", percent(state.rate)]]} />
    </>
  );
}

export const scene = hide<Values>({
  fields: { n: whole(0, MOST, 38), slots: choice(["2", "4"], "4"), ask: text(MOST_LETTERS, "nest-3") },
  sentence: "A cuckoo filter keeps a fingerprint of each key in one of two buckets; where both are full, one that is there must move to its other bucket.",
  attempt: "Press “Add until one is pushed out” a few times: moves are rare at first and frequent at the end, until a key is refused.",
  Figure,
});
