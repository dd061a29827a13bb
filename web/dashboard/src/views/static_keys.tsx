/** The keys of a static filter, which is built of all of them at once, and its kind. */

import type { JSX } from "preact";
import { useId } from "preact/hooks";

import { formatBytes, formatRate, plural } from "../lib/format";
import { Fresh } from "../parts/state";
import { plan as decodePlan } from "../service/types";
import { useKept, usePolled } from "../state/polled";
import { useSession } from "../state/session";

export interface KeySource {
  readonly text: string;
  readonly file: File | null;
  readonly kind: string;
}

export const emptyKeys: KeySource = { text: "", file: null, kind: "" };

/** Milliseconds after which a plan is asked for again: it changes with the release only. */
const RARELY = 3_600_000;
/** Bytes of a line of a file, by which its keys are counted roughly before it is read. */
const LINE = 20;

export function countLines(text: string): number {
  return text.split("\n").filter((line) => line !== "" && line !== "\r").length;
}

/** Changes some members of the present keys: whoever waited for an answer must not bring back those of before. */
export type ChangeKeys = (change: (before: KeySource) => KeySource) => void;

export function StaticKeys({ value, onValue, target }: { value: KeySource; onValue: ChangeKeys; target: number }): JSX.Element {
  const { service } = useSession();
  const id = useId();
  const items = Math.max(1, value.file === null ? countLines(value.text) : Math.ceil(value.file.size / LINE));
  const polled = useKept(
    usePolled(`static ${String(items)} ${String(target)}`, RARELY, async (signal) => {
      const query = { items, fpr: target, needs: ["static"] };
      const { data } = await service.send("v1/plan", { decode: decodePlan, query, signal });
      const choices = data.choices.filter((choice) => choice.built);
      onValue((before) => {
        const kind = choices.some((choice) => choice.kind === before.kind) ? before.kind : (choices[0]?.kind ?? "");
        return { ...before, kind };
      });
      return choices;
    }),
  );
  return (
    <>
      <KeyLines value={value} onValue={onValue} />
      <Fresh polled={polled} what="the kinds">
        {(choices) => (
          <div class="field">
            <label for={`${id}-kind`}>Kind, at a rate of {formatRate(target)}</label>
            <select
              id={`${id}-kind`}
              value={value.kind}
              onChange={(event) => {
                const kind = event.currentTarget.value;
                onValue((before) => ({ ...before, kind }));
              }}
            >
              {choices.map((choice) => (
                <option key={choice.kind} value={choice.kind}>
                  {choice.kind}: about {formatBytes(choice.nbytes)}
                </option>
              ))}
            </select>
          </div>
        )}
      </Fresh>
    </>
  );
}

/** The keys themselves: typed, or a file. */
export function KeyLines({ value, onValue }: { value: KeySource; onValue: ChangeKeys }): JSX.Element {
  const id = useId();
  return (
    <>
      <div class="field">
        <label for={`${id}-text`}>Keys, one per line</label>
        <textarea
          id={`${id}-text`}
          rows={5}
          spellcheck={false}
          value={value.text}
          disabled={value.file !== null}
          onInput={(event) => {
            const text = event.currentTarget.value;
            onValue((before) => ({ ...before, text }));
          }}
        />
      </div>
      <div class="field">
        <label for={`${id}-file`}>or a text file of them</label>
        <input
          id={`${id}-file`}
          type="file"
          onChange={(event) => {
            const file = event.currentTarget.files?.[0] ?? null;
            onValue((before) => ({ ...before, file }));
          }}
        />
        {value.file === null && value.text !== "" && <small class="quiet">{plural(countLines(value.text), "key")}</small>}
      </div>
    </>
  );
}
