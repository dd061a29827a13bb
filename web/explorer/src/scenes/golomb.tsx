/** Gaps between sorted hashes, in few bits. */

import { create, hashKey } from "fullbloom";
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";

import { choice, text, whole } from "../address.js";
import { using } from "../core/filters.js";
import { decode, valueOf } from "../core/golomb.js";
import { count, percent } from "../numbers.js";
import { Answer, Choice, Controls, Facts, Key, Range, Text } from "../ui/Controls.js";
import { useWidth } from "../ui/useWidth.js";
import { MOST_LETTERS, parseWords } from "../words.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  n: number;
  fpr: "0.1" | "0.02" | "0.002";
  ask: string;
}

const MOST = 60;

function Figure({ values: { n, fpr, ask }, change }: SceneProps<Values>): VNode {
  const asked = parseWords(ask)[0] ?? "";
  const [ref, width] = useWidth();
  const { set, found } = useMemo(
    () =>
      using(create("golomb", { keys: Array.from({ length: n }, (_, i) => `leak-${i + 1}`), fpr: Number(fpr) }), (filter) => ({
        set: decode(filter), found: asked !== "" && filter.has(asked),
      })),
    [n, fpr, asked],
  );
  const value = asked === "" ? undefined : valueOf(hashKey(asked), set.universe);
  const x = (one: number): number => 6 + (one / set.universe) * (width - 12);
  const naive = Math.ceil(Math.log2(set.universe)) * set.codes.length;
  return (
    <>
      <Controls>
        <Range label="Keys" value={n} least={1} most={MOST} change={(next) => { change({ n: next }); }} />
        <Choice label="Rate" value={fpr} options={[["0.1", "10 %"], ["0.02", "2 %"], ["0.002", "0.2 %"]]} change={(next) => { change({ fpr: next }); }} />
        <Text label="Look up" value={ask} most={MOST_LETTERS} change={(typed) => { change({ ask: typed }); }} />
      </Controls>
      <div class="ruler" ref={ref}>
        <svg viewBox={`0 0 ${width} 76`} width={width} height={76} role="img" aria-label={`${set.codes.length} values between 0 and ${count(set.universe)}.`}>
          <line x1={6} x2={width - 6} y1={44} y2={44} class="base" />
          {set.codes.map((code) => <line key={code.value} x1={x(code.value)} x2={x(code.value)} y1={22} y2={44} class="tick" />)}
          {value !== undefined && <path d={`M ${x(value)} 46 l -6 12 h 12 z`} class={found ? "pointer found" : "pointer"} />}
          <text x={6} y={72}>0</text>
          <text x={width - 6} y={72} class="end">{count(set.universe)}</text>
        </svg>
      </div>
      <div class="codes" role="img" aria-label={`The ${set.codes.length} codes, ${set.bits} bits.`}>
        {set.codes.map((code) => (
          <span key={code.value} class={code.value === value ? "code mark" : "code"}>
            <small>+{code.gap}</small>
            <b class="mono"><i>{code.unary}</i>{code.remainder}</b>
          </span>
        ))}
      </div>
      <p class="quiet">
        Each code is a gap to the next value: the front part in unary (zeros, then a 1), then {set.riceBits} bits as they are. Of the first
        code it is the value itself, of all others the gap less 1. In the file the unary parts come from the front and the rest from the end.
      </p>
      <Answer tone={asked === "" ? "calm" : found ? "yes" : "no"}>
        {value === undefined ? "Type a key to look up." : (
          <><Key>{asked}</Key>: <b>{found ? "probably" : "no"}</b>. Its value is {count(value)}, which {found ? "is" : "is not"} in the list.</>
        )}
      </Answer>
      <Facts
        facts={[
          ["bits of all codes", count(set.bits)], ["bits per key", (set.bits / n).toFixed(2)],
          ["the values as they are", `${count(naive)} bits`], ["rate", percent(set.codes.length / set.universe)],
        ]}
      />
    </>
  );
}

export const scene = hide<Values>({
  fields: { n: whole(1, MOST, 24), fpr: choice(["0.1", "0.02", "0.002"], "0.02"), ask: text(MOST_LETTERS, "leak-5") },
  sentence: "Hashes in order need no places, only gaps, and small gaps have short codes: this is the smallest list that can still be searched.",
  attempt: "Make the rate ten times lower: each code gets some three bits longer, whatever the number of keys.",
  Figure,
});
