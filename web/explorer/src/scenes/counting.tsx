/** Counters in place of bits: removal works. */

import { type Filter, create } from "fullbloom";
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";

import { text, whole } from "../address.js";
import { Container, SECTION, field } from "../core/container.js";
import { using } from "../core/filters.js";
import { percent } from "../numbers.js";
import { Answer, Button, Controls, Facts, Key, Range, Text } from "../ui/Controls.js";
import { Cells } from "../ui/Cells.js";
import { MOST_LETTERS, MOST_TEXT, parseWords } from "../words.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  words: string;
  removed: string;
  ask: string;
  n: number;
}

/** The words, each as often as it was typed. */
function parseAll(value: string): string[] {
  return value.split(/[\s,;]+/u).flatMap((word) => parseWords(word)).slice(0, 64);
}

/** The counters of a small filter, read from its file. */
export function counters(filter: Filter): number[] {
  const { num_counters: cells, counter_bits: width } = filter.info() as { num_counters: number; counter_bits: number };
  const bytes = new Container(filter.toBytes()).section(SECTION.counters);
  return Array.from({ length: cells }, (_, i) => field(bytes, i * width, width));
}

function Figure({ values, change }: SceneProps<Values>): VNode {
  const [added, removed] = useMemo(() => [parseAll(values.words), parseAll(values.removed)], [values.words, values.removed]);
  const asked = parseWords(values.ask)[0] ?? "";
  const state = useMemo(
    () =>
      using(create("counting", { capacity: values.n, fpr: 0.05, layout: "classic" }), (filter) => {
        filter.addMany(added);
        // Only what was added is removed: anything else would take from the counters of others.
        const left = [...added];
        const refused: string[] = [];
        for (const word of removed) {
          const at = left.indexOf(word);
          if (at < 0) refused.push(word);
          else {
            left.splice(at, 1);
            filter.remove(word);
          }
        }
        const info = filter.info() as { fpr: number; num_hashes: number; num_added: number };
        return {
          cells: counters(filter), info, left, refused,
          positions: asked === "" ? [] : filter.positions(asked),
          count: asked === "" ? 0 : filter.count(asked),
          found: asked !== "" && filter.has(asked),
        };
      }),
    [added, removed, asked, values.n],
  );
  const distinct = [...new Set(state.left)];
  return (
    <>
      <Controls>
        <Text label="Added" hint="twice counts twice" value={values.words} most={MOST_TEXT} change={(typed) => { change({ words: typed }); }} />
        <Text label="Removed" value={values.removed} most={MOST_TEXT} change={(typed) => { change({ removed: typed }); }} />
        <Text label="Look up" value={values.ask} most={MOST_LETTERS} change={(typed) => { change({ ask: typed }); }} />
        <Range label="Sized for, keys" value={values.n} least={2} most={24} change={(n) => { change({ n }); }} />
      </Controls>
      <Cells
        cells={state.cells.map((value, i) => ({ state: `${value > 0 ? "set" : ""}${state.positions.includes(i) ? " mark" : ""}`, shown: value }))}
        description={`${state.cells.length} counters of 4 bits: ${state.cells.map((value, i) => [i, value] as const).filter(([, value]) => value > 0).map(([i, value]) => `${i} is ${value}`).join(", ") || "all 0"}.`}
      />
      <Answer tone={asked === "" ? "calm" : state.found ? (state.left.includes(asked) ? "yes" : "wrong") : "no"}>
        {asked === "" ? "Type a word to look up." : state.found
          ? state.left.includes(asked)
            ? <><Key>{asked}</Key>: <b>probably</b>. The least of its counters ({state.positions.join(", ")}) is {state.count}: so often it was added, or less.</>
            : <><Key>{asked}</Key>: <b>probably</b>, though it is not there: the counters of others make a <b>false positive</b>.</>
          : <><Key>{asked}</Key>: <b>no</b>. One of its counters ({state.positions.join(", ")}) is 0.</>}
      </Answer>
      <div class="actions">
        {distinct.slice(0, 12).map((word) => (
          <Button key={word} plain press={() => { change({ removed: `${values.removed} ${word}`.trim() }); }}>Remove <bdi>{word}</bdi></Button>
        ))}
        {removed.length > 0 && <Button plain press={() => { change({ removed: "" }); }}>Take all removals back</Button>}
      </div>
      {state.refused.length > 0 && (
        <p class="trouble">Not removed, because it was never added, or no longer: {state.refused.map((word, i) => <span key={i}>{i > 0 && ", "}<Key>{word}</Key></span>)}. Removing it would have taken from the counters of others.</p>
      )}
      <Facts facts={[["keys in it", String(state.info.num_added)], ["counters", String(state.cells.length)], ["k", String(state.info.num_hashes)], ["rate now", percent(state.info.fpr)]]} />
    </>
  );
}

export const scene = hide<Values>({
  fields: { words: text(MOST_TEXT, "cat dog bird dog"), removed: text(MOST_TEXT, "cat"), ask: text(MOST_LETTERS, "dog"), n: whole(2, 24, 6) },
  sentence: "With a counter of four bits in place of each bit, adding counts up and removing counts down, so a word can leave without taking others along.",
  attempt: "Remove dog once: it is still there, because it was added twice. Remove it again. Shared counters keep their other words.",
  Figure,
});
