/** Controls with their labels: ranges, texts, choices, buttons. */

import type { ComponentChildren, VNode } from "preact";
import { useId } from "preact/hooks";

/** The row of controls of a scene. */
export function Controls({ children }: { children: ComponentChildren }): VNode {
  return <div class="controls" role="group" aria-label="Controls">{children}</div>;
}

interface RangeProps {
  readonly label: string;
  readonly value: number;
  readonly least: number;
  readonly most: number;
  readonly step?: number;
  /** How the value is shown; as a number unless given. */
  readonly shown?: string;
  readonly change: (value: number) => void;
}

/** A slider with its value. */
export function Range({ label, value, least, most, step = 1, shown, change }: RangeProps): VNode {
  const id = useId();
  return (
    <div class="range">
      <label class="name" for={id}>{label}</label>
      <span class="value" aria-hidden="true">{shown ?? value}</span>
      <input
        id={id} type="range" min={least} max={most} step={step} value={value} aria-valuetext={shown}
        onInput={(event) => { change(Number(event.currentTarget.value)); }}
      />
    </div>
  );
}

interface TextProps {
  readonly label: string;
  readonly value: string;
  readonly most: number;
  readonly hint?: string;
  readonly lines?: number;
  readonly change: (value: string) => void;
}

/** A line of text, or several. */
export function Text({ label, value, most, hint, lines, change }: TextProps): VNode {
  const id = useId();
  const shared = {
    id, value, maxLength: most, spellcheck: false, autocomplete: "off", autocapitalize: "off" as const,
  };
  return (
    <div class="text">
      <label class="name" for={id}>{label}{hint !== undefined && <small>, {hint}</small>}</label>
      {lines === undefined
        ? <input type="text" dir="auto" {...shared} onInput={(event) => { change(event.currentTarget.value); }} />
        : <textarea rows={lines} dir="auto" {...shared} onInput={(event) => { change(event.currentTarget.value); }} />}
    </div>
  );
}

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly (readonly [T, string])[];
  readonly change: (value: T) => void;
}

/** One of a few, side by side. */
export function Choice<T extends string>({ label, value, options, change }: ChoiceProps<T>): VNode {
  const name = useId();
  return (
    <fieldset class="choice">
      <legend class="name">{label}</legend>
      <div class="options">
        {options.map(([option, shown]) => (
          <label key={option}>
            <input
              type="radio" name={name} value={option} checked={option === value} onChange={() => { change(option); }}
            />
            <span>{shown}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

interface ButtonProps {
  readonly children: ComponentChildren;
  readonly press: () => void;
  readonly plain?: boolean;
  readonly disabled?: boolean;
}

/** A button. */
export function Button({ children, press, plain = false, disabled = false }: ButtonProps): VNode {
  return (
    <button type="button" class={plain ? "plain" : "strong"} disabled={disabled} onClick={press}>{children}</button>
  );
}

/** What a scene answers, read aloud where it changes. */
export function Answer({ tone = "calm", children }: { tone?: "calm" | "yes" | "no" | "wrong"; children: ComponentChildren }): VNode {
  return <p class={`answer ${tone}`} aria-live="polite">{children}</p>;
}

/** Numbers with their names. */
export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }): VNode {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd data-fact={name}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A key as it was typed, apart from the text around it: it may run from right to left. */
export function Key({ children }: { children: string }): VNode {
  return <bdi class="key">{children}</bdi>;
}
