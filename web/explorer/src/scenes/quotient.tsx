/** Sorted runs of remainders. */

import { create, hashKey } from "fullbloom?whole";
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";

import { text, whole } from "../address.js";
import { using } from "../core/filters.js";
import { QuotientTable } from "../core/tables.js";
import { percent } from "../numbers.js";
import { Answer, Controls, Facts, Key, Range, Text } from "../ui/Controls.js";
import { MOST_LETTERS, parseWords } from "../words.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  n: number;
  ask: string;
}

const CAPACITY = 58;

function Figure({ values: { n, ask }, change }: SceneProps<Values>): VNode {
  const asked = parseWords(ask)[0] ?? "";
  const { table, found, rate } = useMemo(
    () =>
      using(create("quotient", { capacity: CAPACITY, fpr: 0.05 }), (filter) => {
        filter.addMany(Array.from({ length: n }, (_, i) => `shelf-${i + 1}`));
        return { table: new QuotientTable(filter), found: asked !== "" && filter.has(asked), rate: (filter.info() as { fpr: number }).fpr };
      }),
    [n, asked],
  );
  const held = new Map(table.slots.map((slot) => [slot.slot, slot]));
  const place = asked === "" ? undefined : table.split(hashKey(asked));
  const run = table.slots.filter(({ quotient }) => quotient === place?.quotient);
  // Neighbouring runs get different shades.
  const shade = new Map([...new Set(table.slots.map(({ quotient }) => quotient))].map((quotient, i) => [quotient, i % 2]));
  const shifted = table.slots.filter(({ quotient, slot }) => quotient !== slot).length;
  const binary = (remainder: number): string => remainder.toString(2).padStart(table.remainderBits, "0");
  return (
    <>
      <Controls>
        <Range label="Keys added" value={n} least={0} most={CAPACITY} change={(next) => { change({ n: next }); }} />
        <Text label="Look up" value={ask} most={MOST_LETTERS} change={(typed) => { change({ ask: typed }); }} />
      </Controls>
      <div class="cells wide slots" role="img" aria-label={`${table.numSlots} slots, ${table.slots.length} of them taken; ${shifted} remainders are not in the slot of their quotient.`}>
        {Array.from({ length: table.numSlots }, (_, i) => {
          const slot = held.get(i);
          const asks = slot !== undefined && slot.quotient === place?.quotient;
          return (
            <span key={i} class={`${slot === undefined ? "" : shade.get(slot.quotient) === 0 ? "set" : "set second"}${asks ? " mark" : ""}${table.runEnds[i] === true ? " ends" : ""}`}>
              <small>{i}{table.occupied[i] === true ? "•" : ""}</small>
              {slot === undefined ? "" : <b>{binary(slot.remainder)}</b>}
              {slot !== undefined && slot.quotient !== i && <i>of {slot.quotient}</i>}
            </span>
          );
        })}
      </div>
      <p class="quiet">
        A dot marks a slot whose own number is the quotient of some key. Remainders of one quotient are a run, side by side and sorted;
        “of 7” marks one that was pushed on from slot 7. Runs alternate in shade.
      </p>
      <Answer tone={asked === "" ? "calm" : found ? "yes" : "no"}>
        {asked === "" || place === undefined ? "Type a key to look up." : (
          <>
            <Key>{asked}</Key>: <b>{found ? "probably" : "no"}</b>. Its quotient is {place.quotient} and its remainder <span class="mono">{binary(place.remainder)}</span>;{" "}
            {run.length === 0 ? "there is no run of this quotient" : `the run of this quotient is ${run.map(({ remainder }) => binary(remainder)).join(", ")}`}.
          </>
        )}
      </Answer>
      <Facts facts={[["slots taken", `${table.slots.length} of ${table.numSlots}`], ["pushed on", String(shifted)], ["bits of a remainder", String(table.remainderBits)], ["rate now", percent(rate)]]} />
    </>
  );
}

export const scene = hide<Values>({
  fields: { n: whole(0, CAPACITY, 34), ask: text(MOST_LETTERS, "shelf-7") },
  sentence: "A quotient filter cuts the hash in two: the front says which slot, the rest is stored there, and runs move on where slots are taken.",
  attempt: "Add keys one by one from 34 on: runs grow together, and a lookup reads one run however full the table is.",
  Figure,
});
