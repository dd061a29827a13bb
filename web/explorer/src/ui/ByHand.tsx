/** Small examples whose positions a person chose: no hash, no library. */

import type { VNode } from "preact";
import { useState } from "preact/hooks";

import { list } from "../numbers.js";
import { Answer, Choice, Controls, Key } from "./Controls.js";
import { Wires } from "./Wires.js";

/** An example: which positions each of its keys has. */
export interface Toy {
  readonly numBits: number;
  readonly added: Readonly<Record<string, readonly number[]>>;
  readonly asked: Readonly<Record<string, readonly number[]>>;
  readonly about: string;
}

/** Two words that share a bit. */
export const SHARED: Toy = {
  numBits: 8,
  added: { cat: [4, 1], dog: [6, 1] },
  asked: { bird: [6, 4], cow: [2, 6] },
  about: "Both words use bit 1: clear the bits of one of them, and the other is lost with it.",
};

/** Three fruits in 10 bits. */
export const FRUIT: Toy = {
  numBits: 10,
  added: { apple: [1, 4], banana: [4, 7], cherry: [2, 9] },
  asked: { grape: [1, 7], melon: [3, 7] },
  about: "grape has bit 1 from apple and bit 7 from banana: it was never added, and the filter answers yes.",
};

/** The figure of the encyclopedia: x, y and z in 18 bits. */
export const FIGURE: Toy = {
  numBits: 18,
  added: { x: [1, 5, 13], y: [4, 11, 16], z: [3, 5, 11] },
  asked: { w: [4, 13, 15] },
  about: "w is not in the set {x, y, z}: one of its three bits, 15, is 0.",
};

/** The bits of the keys that are in. */
export function bitsByHand(toy: Toy, without = ""): Set<number> {
  const bits = new Set(Object.values(toy.added).flat());
  for (const position of toy.added[without] ?? []) bits.delete(position);
  return bits;
}

/** An example with its keys to ask for. */
export function ByHand({ toy }: { toy: Toy }): VNode {
  const names = [...Object.keys(toy.added), ...Object.keys(toy.asked)];
  const [asked, setAsked] = useState(Object.keys(toy.asked)[0] ?? "");
  const [gone, setGone] = useState("");
  const bits = bitsByHand(toy, gone);
  const positions = toy.added[asked] ?? toy.asked[asked] ?? [];
  const missing = positions.filter((position) => !bits.has(position));
  const isMember = asked in toy.added && asked !== gone;
  return (
    <>
      <p class="toy">A toy: people chose these positions by hand, and no hash is computed. {toy.about}</p>
      <Controls>
        <Choice label="Look up" value={asked} options={names.map((name) => [name, name] as const)} change={setAsked} />
        <Choice
          label="Clear the bits of" value={gone} change={setGone}
          options={[["", "nobody"], ...Object.keys(toy.added).map((name) => [name, name] as const)]}
        />
      </Controls>
      <Wires
        numBits={toy.numBits} isSet={(position) => bits.has(position)} name={asked} positions={positions}
        isWrong={missing.length === 0 && !isMember}
        description={`${toy.numBits} bits; set: ${[...bits].sort((a, b) => a - b).join(", ")}. ${asked} has ${positions.join(", ")}.`}
      />
      {missing.length > 0
        ? (
          <Answer tone={isMember ? "wrong" : "no"}>
            <Key>{asked}</Key>: <b>no</b>, because {missing.length === 1 ? "bit" : "bits"} {list(missing.map(String))}{" "}
            {missing.length === 1 ? "is" : "are"} 0.
            {isMember && " It was added, so this answer is wrong: clearing the bits of one key broke another."}
          </Answer>
        )
        : isMember
          ? <Answer tone="yes"><Key>{asked}</Key>: <b>probably</b>, and it was added.</Answer>
          : (
            <Answer tone="wrong">
              <Key>{asked}</Key>: <b>probably</b>, yet {asked === gone ? "its bits were cleared" : "it was never added"}: a false
              positive made of the bits of others.
            </Answer>
          )}
      <ul class="owners" aria-label="Positions by hand">
        {Object.entries(toy.added).map(([name, own]) => <li key={name}><Key>{name}</Key> sets {list(own.map(String))}</li>)}
      </ul>
    </>
  );
}
