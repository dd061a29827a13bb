/** Duplicates between four machines, found by one short message each way. */

import type { VNode } from "preact";
import { useMemo } from "preact/hooks";

import { choice, whole } from "../address.js";
import { MACHINES, deal, exchange } from "../core/duplicates.js";
import { bytes, count, percent } from "../numbers.js";
import { Answer, Choice, Controls, Facts, Range } from "../ui/Controls.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  own: number;
  shared: number;
  fpr: "0.1" | "0.01" | "0.001";
}

const NAMES = ["A", "B", "C", "D"];

function Figure({ values: { own, shared: wanted, fpr }, change }: SceneProps<Values>): VNode {
  const shared = Math.min(wanted, own);
  const found = useMemo(() => exchange(deal(own, shared), Number(fpr)), [own, shared, fpr]);
  const sent = found.bits.flatMap((row, from) => row.filter((_, to) => to !== from)).reduce((sum, bits) => sum + bits, 0);
  const total = own * MACHINES;
  const whole = (total * 8 * (MACHINES - 1)) / MACHINES;
  const most = Math.max(1, ...found.bits.flat());
  return (
    <>
      <Controls>
        <Range label="Keys of a machine" value={own} least={100} most={2000} step={100} shown={count(own)} change={(next) => { change({ own: next }); }} />
        <Range label="Shared with one other" value={shared} least={0} most={own} step={10} shown={count(shared)} change={(next) => { change({ shared: next }); }} />
        <Choice label="Rate" value={fpr} options={[["0.1", "10 %"], ["0.01", "1 %"], ["0.001", "0.1 %"]]} change={(next) => { change({ fpr: next }); }} />
      </Controls>
      <p class="quiet">Each machine sorts its hashes and sends one quarter of their range to each machine, as a Golomb-coded list.</p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Messages between the machines">
        <table class="matrix">
          <thead>
            <tr><td />{NAMES.map((name, i) => <th key={name} scope="col">to {name}, quarter {i + 1}</th>)}</tr>
          </thead>
          <tbody>
            {found.bits.map((row, from) => (
              <tr key={from}>
                <th scope="row">from {NAMES[from]}</th>
                {row.map((bits, to) => (
                  <td key={to} class={from === to ? "kept" : ""}>
                    <span class="bar" style={{ width: `${(100 * bits) / most}%` }} />
                    {bytes(Math.ceil(bits / 8))}{from === to && <small> stays</small>}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Facts
        facts={[
          ["sent in all", bytes(Math.ceil(sent / 8))], ["bits per key", (sent / ((total * (MACHINES - 1)) / MACHINES)).toFixed(1)],
          ["as 64-bit hashes", bytes(whole)], ["saved", percent(1 - sent / 8 / whole)],
          ["candidate duplicates", count(found.candidates)], ["real duplicates", count(found.duplicates)],
          ["keys checked in vain", `${count(found.falsely)}, ${percent(found.falsely / total)}`],
        ]}
      />
      <Answer>
        The owner of each quarter sees which values came from two machines, and only these {count(found.candidates)} candidates are compared in
        full. No real duplicate is missed, because equal keys have equal hashes.
      </Answer>
    </>
  );
}

export const scene = hide<Values>({
  fields: { own: whole(100, 2000, 1000), shared: whole(0, 2000, 50), fpr: choice(["0.1", "0.01", "0.001"], "0.01") },
  sentence: "Four machines find the keys that two of them hold by sending each hash once, in some ten bits, to the machine that owns its range.",
  attempt: "Raise the rate to 10 %: messages shrink by three bits per key, and more keys are checked in vain.",
  Figure,
});
