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
  readonly fpr: number;
}

export const emptyKeys: KeySource = { text: "", file: null, kind: "", fpr: 0.01 };

/** Milliseconds after which a plan is asked for again: it changes with the release only. */
const RARELY = 3_600_000;
/** Bytes of a line of a file, by which its keys are counted roughly before it is read. */
const LINE = 20;

export function countLines(text: string): number {
  return text.split("\n").filter((line) => line !== "" && line !== "\r").length;
}

export function StaticKeys({ value, onValue, target }: { value: KeySource; onValue: (value: KeySource) => void; target: number }): JSX.Element {
  const { service } = useSession();
  const id = useId();
  const items = Math.max(1, value.file === null ? countLines(value.text) : Math.ceil(value.file.size / LINE));
  const polled = useKept(
    usePolled(`static ${String(items)} ${String(target)}`, RARELY, async (signal) => {
      const query = { items, fpr: target, needs: ["static"] };
      const { data } = await service.send("v1/plan", { decode: decodePlan, query, signal });
      const choices = data.choices.filter((choice) => choice.built);
      const kind = choices.some((choice) => choice.kind === value.kind) ? value.kind : (choices[0]?.kind ?? "");
      onValue({ ...value, kind, fpr: target });
      return choices;
    }),
  );
  return (
    <>
      <div class="field">
        <label for={`${id}-text`}>Keys, one a line</label>
        <textarea
          id={`${id}-text`}
          rows={5}
          spellcheck={false}
          value={value.text}
          disabled={value.file !== null}
          onInput={(event) => {
            onValue({ ...value, text: event.currentTarget.value });
          }}
        />
      </div>
      <div class="field">
        <label for={`${id}-file`}>or a text file of them</label>
        <input
          id={`${id}-file`}
          type="file"
          onChange={(event) => {
            onValue({ ...value, file: event.currentTarget.files?.[0] ?? null });
          }}
        />
        {value.file === null && value.text !== "" && <small class="quiet">{plural(items, "key")}</small>}
      </div>
      <Fresh polled={polled} what="the kinds">
        {(choices) => (
          <div class="field">
            <label for={`${id}-kind`}>Kind, at a rate of {formatRate(target)}</label>
            <select
              id={`${id}-kind`}
              value={value.kind}
              onChange={(event) => {
                onValue({ ...value, kind: event.currentTarget.value });
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
