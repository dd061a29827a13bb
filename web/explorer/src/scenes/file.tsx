/** A dropped file is opened, described and asked. */

import type { Info } from "fullbloom";
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { choice } from "../address.js";
import { listen, post } from "../core/fileWorker.js";
import { type KeyAnswer, MOST_KEY_TEXT, parseKeys } from "../file.js";
import { bytes, count, percent, shorten } from "../numbers.js";
import { Answer, Button, Choice, Controls, Facts, Key, Text } from "../ui/Controls.js";
import { type SceneProps, hide } from "./scene.js";

interface Values {
  type: "text" | "number";
}

/** What became of the dropped file. */
type State =
  | { readonly is: "none" }
  | { readonly is: "reading"; readonly name: string }
  | { readonly is: "keyed"; readonly name: string; readonly reason?: string }
  | { readonly is: "refused"; readonly name: string; readonly reason: string; readonly details?: Record<string, Info> | undefined }
  | { readonly is: "open"; readonly name: string; readonly size: number; readonly info: Record<string, Info> };


/** A file name or a key of any length, cut. */
const shortName = (name: string): string => shorten(name, 60);

/** A value of `info()` as text. */
function show(name: string, value: Info): string {
  if (typeof value === "number") {
    if (/fpr|fill/.test(name)) return percent(value);
    if (name === "nbytes") return bytes(value);
    return Number.isInteger(value) ? count(value) : value.toPrecision(4);
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  return String(value).slice(0, 200);
}

function Figure({ values: { type }, change }: SceneProps<Values>): VNode {
  const [state, setState] = useState<State>({ is: "none" });
  const [over, setOver] = useState(false);
  const [text, setText] = useState("");
  const [secret, setSecret] = useState("");
  const [answers, setAnswers] = useState<{ keys: readonly (string | bigint)[]; answers: readonly KeyAnswer[] }>();
  const [trouble, setTrouble] = useState("");
  const id = useRef(0);
  const file = useRef<File | undefined>(undefined);
  const asked = useRef<readonly (string | bigint)[]>([]);

  useEffect(() => {
    const stop = listen((data) => {
      const name = shortName(file.current?.name ?? "");
      if (data === undefined) {
        if (id.current > 0) setState({ is: "refused", name, reason: "the worker that opens files did not load, or ran out of memory; choose the file again" });
        return;
      }
      if (data.id !== id.current) return;
      if (data.is === "filter") setState({ is: "open", name, size: data.size, info: data.info });
      else if (data.is === "keyed") setState({ is: "keyed", name });
      else if (data.is === "answers") setAnswers({ keys: asked.current, answers: data.answers });
      else {
        setState((old) =>
          old.is === "open" ? old : secretWanted.current ? { is: "keyed", name, reason: data.reason } : { is: "refused", name, reason: data.reason, details: data.details },
        );
        setTrouble(data.reason);
      }
    });
    // A file that misses the field must not replace the page.
    const hold = (event: DragEvent): void => { event.preventDefault(); };
    window.addEventListener("dragover", hold);
    window.addEventListener("drop", hold);
    return () => {
      stop();
      window.removeEventListener("dragover", hold);
      window.removeEventListener("drop", hold);
    };
  }, []);

  const secretWanted = useRef(false);
  const take = (chosen: File | undefined, key?: string): void => {
    if (chosen === undefined) return;
    file.current = chosen;
    secretWanted.current = key !== undefined;
    setAnswers(undefined);
    setTrouble("");
    setState({ is: "reading", name: shortName(chosen.name) });
    post({ id: ++id.current, do: "open", file: chosen, ...(key === undefined ? {} : { secret: key }) });
  };
  const ask = (): void => {
    const { keys, refused } = parseKeys(text, type);
    setAnswers(undefined);
    setTrouble(refused === undefined ? "" : `${JSON.stringify(refused.slice(0, 60))} is not a whole number`);
    if (refused !== undefined || keys.length === 0) return;
    asked.current = keys;
    post({ id: ++id.current, do: "ask", keys });
  };
  return (
    <>
      <div
        class={`drop${over ? " over" : ""}`}
        onDragOver={(event) => { event.preventDefault(); setOver(true); }}
        onDragLeave={() => { setOver(false); }}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          take(event.dataTransfer?.files[0]);
        }}
      >
        <p><b>Drop a filter file here</b></p>
        <label class="pick">
          <span>Choose a file</span>
          <input type="file" class="hidden" onChange={(event) => { take(event.currentTarget.files?.[0]); event.currentTarget.value = ""; }} />
        </label>
        <p class="quiet">It is opened in this page and sent nowhere.</p>
      </div>
      <div aria-live="polite">
        {state.is === "reading" && <p class="answer">Reading <Key>{state.name}</Key> …</p>}
        {state.is === "refused" && (
          <>
            <p class="trouble"><Key>{state.name}</Key> was not opened: {state.reason}.</p>
            {state.details !== undefined && <Facts facts={Object.entries(state.details).map(([name, value]) => [name.replaceAll("_", " "), show(name, value)] as const)} />}
          </>
        )}
        {state.is === "open" && (
          <p class="answer yes"><Key>{state.name}</Key> is a <b>{String(state.info["class"])}</b> of {bytes(state.size)}.</p>
        )}
      </div>
      {state.is === "keyed" && (
        <form class="controls" onSubmit={(event) => { event.preventDefault(); take(file.current, secret); setSecret(""); }}>
          <p class="trouble"><Key>{state.name}</Key> is keyed: it answers only to who has its secret.{state.reason !== undefined && ` ${state.reason}.`}</p>
          <div class="text">
            <label class="name" for="secret">Secret<small>, 32 hexadecimal digits</small></label>
            <input id="secret" type="password" autocomplete="off" maxLength={100} value={secret} onInput={(event) => { setSecret(event.currentTarget.value); }} />
          </div>
          <button type="submit" class="strong">Open</button>
        </form>
      )}
      {state.is === "open" && (
        <>
          <Facts facts={Object.entries(state.info).filter(([name]) => name !== "class").map(([name, value]) => [name.replaceAll("_", " "), show(name, value)] as const)} />
          <Controls>
            <Text label="Keys to look up" hint="one per line" lines={3} value={text} most={MOST_KEY_TEXT} change={setText} />
            <Choice label="Keys are" value={type} options={[["text", "text"], ["number", "whole numbers"]]} change={(next) => { change({ type: next }); }} />
            <Button press={ask}>Look up</Button>
          </Controls>
          {trouble !== "" && <p class="trouble" role="alert">{trouble}.</p>}
          {answers !== undefined && <Answers {...answers} />}
        </>
      )}
    </>
  );
}

function Answers({ keys, answers }: { keys: readonly (string | bigint)[]; answers: readonly KeyAnswer[] }): VNode {
  const found = answers.filter((answer) => answer.found).length;
  const [counts, values, positions] = [answers.some((one) => one.count !== undefined), answers.some((one) => one.value !== undefined), answers.some((one) => one.positions !== undefined)];
  return (
    <>
      <Answer>{count(found)} of {count(answers.length)} {answers.length === 1 ? "key is" : "keys are"} probably there; {count(answers.length - found)} certainly not.</Answer>
      <div class="scroll" tabIndex={0} role="region" aria-label="Answers">
        <table>
          <thead>
            <tr>
              <th scope="col">key</th><th scope="col">answer</th>
              {counts && <th scope="col">count</th>}{values && <th scope="col">value</th>}{positions && <th scope="col">positions</th>}
            </tr>
          </thead>
          <tbody>
            {answers.map((answer, i) => (
              <tr key={i}>
                <th scope="row"><Key>{shortName(String(keys[i]))}</Key></th>
                <td>{answer.found ? "probably" : "no"}</td>
                {counts && <td>{answer.count}</td>}{values && <td>{answer.value}</td>}
                {positions && <td class="mono">{answer.positions?.join(", ")}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

export const scene = hide<Values>({
  fields: { type: choice(["text", "number"], "text") },
  sentence: "A filter that Python, the command line or the service saved opens here with the same bits, and answers without any request.",
  attempt: "In Python: fullbloom.BloomFilter(1000) with a few words, then save(\"words.bloom\"). Drop the file here and look them up.",
  Figure,
});
