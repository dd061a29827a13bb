/** A cascade decides which certificates are revoked. */

import { create, hashKey } from "fullbloom?whole";
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";

import { whole } from "../address.js";
import { Levels } from "../core/cascade.js";
import { using } from "../core/filters.js";
import { bytes, count } from "../numbers.js";
import { cascadeBits } from "../theory.js";
import { Answer, Button, Controls, Facts, Range } from "../ui/Controls.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  revoked: number;
  times: number;
  ask: number;
}

const nameOf = (i: number): string => `certificate ${i}`;

/** The cascade of certificates, of which the first are revoked. */
export function decide(revoked: number, issued: number): { levels: Levels; nbits: number; fileBytes: number; mistakes: number; plainRate: number } {
  const all = Array.from({ length: issued }, (_, i) => nameOf(i));
  return using(create("cascade", { included: all.slice(0, revoked), excluded: all.slice(revoked) }), (cascade) => {
    const answers = cascade.hasMany(all);
    const mistakes = answers.filter((answer, i) => answer !== i < revoked).length;
    const info = cascade.info() as { num_bits: number };
    // A single filter with as many bits, for comparison.
    const plainRate = Math.exp((-info.num_bits / revoked) * Math.LN2 ** 2);
    return { levels: new Levels(cascade), nbits: info.num_bits, fileBytes: cascade.toBytes().length, mistakes, plainRate };
  });
}

function Figure({ values: { revoked, times, ask }, change }: SceneProps<Values>): VNode {
  const issued = revoked * (times + 1);
  const { levels, nbits, fileBytes, mistakes, plainRate } = useMemo(() => decide(revoked, issued), [revoked, issued]);
  const asked = Math.min(ask, issued - 1);
  const hash = hashKey(nameOf(asked));
  const walk = levels.walk(hash);
  const isRevoked = levels.includes(hash);
  const taken = walk.filter(Boolean).length;
  const widest = Math.max(1, ...levels.levels.map(({ numBits }) => numBits));
  // A good certificate that the first level takes: the case for which there are more levels.
  const mistaken = useMemo(() => {
    const found: number[] = [];
    for (let i = revoked; i < issued && found.length < 20; i++) if (levels.walk(hashKey(nameOf(i)))[0] === levels.includedFirst) found.push(i);
    return found;
  }, [levels, revoked, issued]);
  const next = mistaken.find((i) => i > asked) ?? mistaken[0];
  return (
    <>
      <Controls>
        <Range label="Revoked" value={revoked} least={50} most={2000} step={50} shown={count(revoked)} change={(value) => { change({ revoked: value }); }} />
        <Range label="Good ones for each" value={times} least={1} most={20} change={(value) => { change({ times: value }); }} />
        <Range label="Certificate" value={asked} least={0} most={issued - 1} shown={`no. ${count(asked)}`} change={(value) => { change({ ask: value }); }} />
        <Button disabled={next === undefined} press={() => { change({ ask: next ?? 0 }); }}>A good one that level 1 takes</Button>
      </Controls>
      <ol class="stages levels" aria-label="Levels of the cascade">
        {levels.levels.map((level, i) => {
          const step = walk[i];
          const about = i % 2 === (levels.includedFirst ? 0 : 1) ? "revoked" : "good";
          return (
            <li key={level.start} class={step === undefined ? "untouched" : step ? "takes" : "stops"}>
              <span class="caption">
                <b>Level {i + 1}</b> of {about} ones, {bytes(Math.ceil(level.numBits / 8))}, k = {level.numHashes}
                {step !== undefined && <>: <em>{step ? "takes it" : "does not take it"}</em></>}
              </span>
              <span class="track" style={{ width: `${Math.max(0.8, (100 * level.numBits) / widest)}%` }}><span class="level" /></span>
            </li>
          );
        })}
      </ol>
      <Answer tone={isRevoked ? "yes" : "no"}>
        Certificate {count(asked)} is <b>{isRevoked ? "revoked" : "good"}</b>: {taken} {taken === 1 ? "level takes" : "levels take"} it before{" "}
        {taken === levels.levels.length ? "the levels end" : "one does not"}, an {taken % 2 === 1 ? "odd" : "even"} number. In truth it is{" "}
        {asked < revoked ? "revoked" : "good"}.
      </Answer>
      <Facts
        facts={[
          ["certificates", count(issued)], ["mistakes among all of them", count(mistakes)],
          ["bits per revoked one", (nbits / revoked).toFixed(2)], ["file", bytes(fileBytes)],
          ["theory, bits per revoked one", (cascadeBits(revoked, issued - revoked) / Math.min(revoked, issued - revoked)).toFixed(2)],
          ["one filter of this size would mistake", count(Math.round(plainRate * (issued - revoked)))],
        ]}
      />
    </>
  );
}

export const scene = hide<Values>({
  fields: { revoked: whole(50, 2000, 500), times: whole(1, 20, 10), ask: whole(0, 50_000, 3) },
  sentence: "Where every key is known, filters of each other’s mistakes answer without any: browsers learn this way which certificates are revoked.",
  attempt: "Press “A good one that level 1 takes”: the first level is wrong about it, the second one knows it, and the answer is right.",
  Figure,
});
