/** Words, their hashes, their bits; removal; examples by hand; false positives made of the bits of others. */

import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";

import { choice, text, whole } from "../address.js";
import { bit } from "../core/container.js";
import { using } from "../core/filters.js";
import { build, clear, dissect, findFalsePositive, findSharing } from "../core/words.js";
import { hex, list, plural } from "../numbers.js";
import { ByHand, FIGURE, FRUIT, SHARED } from "../ui/ByHand.js";
import { Answer, Button, Choice, Controls, Key, Range, Text } from "../ui/Controls.js";
import { Wires } from "../ui/Wires.js";
import { MOST_LETTERS, MOST_TEXT, parseWords } from "../words.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  view: "words" | "removal" | "pets" | "fruit" | "figure";
  words: string;
  ask: string;
  m: number;
  k: number;
  seed: number;
  gone: string;
}

const VIEWS = [
  ["words", "Your words"],
  ["removal", "Remove one"],
  ["pets", "8 bits by hand"],
  ["fruit", "10 bits by hand"],
  ["figure", "18 bits by hand"],
] as const;

/** The word that a filter is asked for, cut as the words in it are. */
function askedOf(value: string): string {
  return parseWords(value)[0] ?? "";
}

function Live({ values, change }: SceneProps<Values>): VNode {
  const words = useMemo(() => parseWords(values.words), [values.words]);
  const asked = askedOf(values.ask);
  const shape = { numBits: values.m, numHashes: values.k, seed: values.seed };
  const [searched, setSearched] = useState("");
  const { anatomy, found, positions } = useMemo(
    () =>
      using(build(shape, words), (filter) => ({
        anatomy: dissect(filter, values.seed, words),
        found: asked !== "" && filter.has(asked),
        positions: asked === "" ? [] : filter.positions(asked),
      })),
    [words, asked, values.m, values.k, values.seed],
  );
  const isSet = (position: number): boolean => bit(anatomy.bits, position);
  const isMember = words.includes(asked);
  const missing = [...new Set(positions.filter((position) => !isSet(position)))];
  const ones = Array.from({ length: values.m }, (_, i) => i).filter(isSet);
  const search = (): void => {
    const word = using(build(shape, words), (filter) => findFalsePositive(filter, words));
    setSearched(word === undefined ? "No word of a thousand is mistaken here. Use fewer bits or add words." : "");
    if (word !== undefined) change({ ask: word });
  };
  return (
    <>
      <Controls>
        <Text
          label="Words in the filter" value={values.words} most={MOST_TEXT}
          change={(typed) => { change({ words: typed }); }}
        />
        <Text label="Look up" value={values.ask} most={MOST_LETTERS} change={(typed) => { change({ ask: typed }); }} />
        <Range label="Bits, m" value={values.m} least={8} most={128} change={(m) => { change({ m }); }} />
        <Range label="Hash functions, k" value={values.k} least={1} most={8} change={(k) => { change({ k }); }} />
        <Button press={search}>Find a false positive</Button>
        <Button plain press={() => { change({ seed: (values.seed + 1) % 1000 }); }}>Another seed ({values.seed})</Button>
      </Controls>
      <Wires
        numBits={values.m} isSet={isSet} name={asked} positions={positions} isWrong={found && !isMember}
        description={
          `${plural(values.m, "bit")}, of which ${plural(ones.length, "bit")} ${ones.length === 1 ? "is" : "are"} set: ` +
          `${ones.join(", ") || "none"}. ${asked === "" ? "" : `${asked} has the positions ${positions.join(", ")}.`}`
        }
      />
      <Verdict asked={asked} found={found} isMember={isMember} missing={missing} />
      {searched !== "" && <p role="status">{searched}</p>}
      {asked !== "" && found && !isMember && (
        <ul class="owners" aria-label="Who set the bits of the false positive">
          {[...new Set(positions)].map((position) => (
            <li key={position}>
              bit <b>{position}</b> was set by {(anatomy.owners.get(position) ?? []).map((word, i) => (
                <span key={word}>{i > 0 && " and "}<Key>{word}</Key></span>
              ))}
            </li>
          ))}
        </ul>
      )}
      <Members anatomy={anatomy} asked={asked} ask={(word) => { change({ ask: word }); }} />
    </>
  );
}

function Verdict({ asked, found, isMember, missing }: {
  asked: string; found: boolean; isMember: boolean; missing: readonly number[];
}): VNode {
  if (asked === "") return <Answer>Type a word to look up.</Answer>;
  if (!found) {
    const [noun, verb] = missing.length === 1 ? ["bit", "is"] : ["bits", "are"];
    return (
      <Answer tone="no">
        <Key>{asked}</Key>: <b>no</b>. It is certainly not there, because {noun} {list(missing.map(String))} {verb} not set.
      </Answer>
    );
  }
  if (isMember) {
    return <Answer tone="yes"><Key>{asked}</Key>: <b>probably</b>. All of its bits are set, and it was added.</Answer>;
  }
  return (
    <Answer tone="wrong">
      <Key>{asked}</Key>: <b>probably</b>. All of its bits are set, yet it was never added. This is a <b>false positive</b>,
      made of the bits of others.
    </Answer>
  );
}

function Members({ anatomy, asked, ask }: {
  anatomy: ReturnType<typeof dissect>; asked: string; ask: (word: string) => void;
}): VNode {
  if (anatomy.members.length === 0) return <p class="quiet">The filter is empty: it answers no to everything.</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Words with their hashes and positions">
      <table>
        <thead>
          <tr><th scope="col">word</th><th scope="col">hash (XXH3, 64 bits)</th><th scope="col">positions</th></tr>
        </thead>
        <tbody>
          {anatomy.members.map(({ word, hash, positions }) => (
            <tr key={word} data-word={word} class={word === asked ? "now" : undefined}>
              <th scope="row">
                <button type="button" class="link" onClick={() => { ask(word); }}><bdi>{word}</bdi></button>
              </th>
              <td class="mono">{hex(hash)}</td>
              <td class="mono">{positions.join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Removal({ values, change }: SceneProps<Values>): VNode {
  const words = useMemo(() => parseWords(values.words), [values.words]);
  const shape = { numBits: values.m, numHashes: values.k, seed: values.seed };
  const gone = words.includes(values.gone) ? values.gone : "";
  const { anatomy, bits, lost } = useMemo(() => {
    const anatomy = using(build(shape, words), (filter) => dissect(filter, values.seed, words));
    return { anatomy, ...clear(shape, anatomy, gone) };
  }, [words, gone, values.m, values.k, values.seed]);
  const harmed = lost.filter((word) => word !== gone);
  const member = anatomy.members.find(({ word }) => word === gone);
  const share = (): void => {
    change({ seed: findSharing({ ...shape, seed: values.seed + 1 }, words), gone: "" });
  };
  return (
    <>
      <Controls>
        <Text
          label="Words in the filter" value={values.words} most={MOST_TEXT}
          change={(typed) => { change({ words: typed }); }}
        />
        <Choice
          label="Clear the bits of" value={gone} options={[["", "nobody"], ...words.slice(0, 8).map((word) => [word, word] as const)]}
          change={(word) => { change({ gone: word }); }}
        />
        <Button plain press={share}>Let words share a bit</Button>
      </Controls>
      <Wires
        numBits={values.m} isSet={(position) => bit(bits, position)} name={gone} positions={member?.positions ?? []}
        description={gone === "" ? "All bits as the words set them." : `The bits of ${gone} are cleared: ${member?.positions.join(", ") ?? ""}.`}
      />
      {gone === ""
        ? <Answer>Choose a word. A Bloom filter has no way to remove it, so this scene clears its bits and looks the words up again.</Answer>
        : harmed.length === 0
          ? <Answer><Key>{gone}</Key> is gone, and this time nobody else used its bits. That was luck: press “Let words share a bit”.</Answer>
          : (
            <Answer tone="wrong">
              <Key>{gone}</Key> is gone, and so is {harmed.map((word, i) => (
                <span key={word}>{i > 0 && ", "}<Key>{word}</Key></span>
              ))}: the filter now answers no for a word that was added. A no that is wrong is what a Bloom filter never does,
              so it never removes.
            </Answer>
          )}
      <ul class="owners" aria-label="Bits that words share">
        {[...anatomy.owners].filter(([, owners]) => owners.length > 1).sort(([a], [b]) => a - b).map(([position, owners]) => (
          <li key={position}>bit <b>{position}</b> belongs to {owners.map((word, i) => (
            <span key={word}>{i > 0 && " and "}<Key>{word}</Key></span>
          ))}</li>
        ))}
      </ul>
    </>
  );
}

function Figure({ values, change }: SceneProps<Values>): VNode {
  const show = (view: Values["view"]): void => {
    if (view !== "removal") {
      change({ view });
      return;
    }
    const words = parseWords(values.words);
    const seed = findSharing({ numBits: values.m, numHashes: values.k, seed: values.seed }, words);
    change({ view, seed, gone: words[0] ?? "" });
  };
  return (
    <>
      <Choice label="Show" value={values.view} options={VIEWS} change={show} />
      {values.view === "words" && <Live values={values} change={change} />}
      {values.view === "removal" && <Removal values={values} change={change} />}
      {values.view === "pets" && <ByHand key="pets" toy={SHARED} />}
      {values.view === "fruit" && <ByHand key="fruit" toy={FRUIT} />}
      {values.view === "figure" && <ByHand key="figure" toy={FIGURE} />}
    </>
  );
}

export const scene = hide<Values>({
  fields: {
    view: choice(["words", "removal", "pets", "fruit", "figure"], "words"),
    words: text(MOST_TEXT, "cat dog"),
    ask: text(MOST_LETTERS, "cod"),
    m: whole(8, 128, 32),
    k: whole(1, 8, 3),
    seed: whole(0, 9999, 2),
    gone: text(MOST_LETTERS, ""),
  },
  sentence:
    "A hash turns each word into a few positions; adding sets the bits there, and a lookup checks whether all of them are set.",
  attempt:
    "Look up cod: nobody added it, and every one of its bits is set. Give the filter 64 bits and the mistake is gone. " +
    "Then open “Remove one” and clear the bits of cat.",
  Figure,
});
