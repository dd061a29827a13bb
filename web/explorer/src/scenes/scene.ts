/** A scene: one sentence, controls, a figure and something to try. */

import type { ComponentType } from "preact";

import type { Fields } from "../address.js";

/** What a scene draws from. */
export interface SceneProps<P> {
  readonly values: P;
  /** Changes some values, and the address with them. */
  readonly change: (some: Partial<P>) => void;
}

/** A scene as its file exports it. */
export interface Scene<P> {
  readonly fields: Fields<P>;
  /** One sentence: what is seen here. */
  readonly sentence: string;
  /** Something to try. */
  readonly attempt: string;
  readonly Figure: ComponentType<SceneProps<P>>;
}

/** A scene whose values only it knows. */
export type AnyScene = Scene<Record<string, unknown>>;

/** A scene, its values known to nobody else. */
export function hide<P>(scene: Scene<P>): AnyScene {
  return scene as unknown as AnyScene;
}

/** A scene in the list of all. */
export interface Entry {
  /** Its name in the address. */
  readonly name: string;
  readonly title: string;
  readonly load: () => Promise<{ readonly scene: AnyScene }>;
}
