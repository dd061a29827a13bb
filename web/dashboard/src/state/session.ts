/** What all views share: the service, and the time of the last change made here. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";

import { Service } from "../service/client";
import type { Kind } from "../service/types";

export interface Session {
  readonly service: Service;
  /** Increases when a token was given, so that views ask again. */
  readonly generation: number;
  readonly kinds: readonly Kind[];
  readonly useToken: (token: string | null) => void;
  /** Shows a sentence about a change that was made, and has a screen reader say it. */
  readonly announce: (sentence: string) => void;
}

export const SessionContext = createContext<Session>({
  service: new Service(),
  generation: 0,
  kinds: [],
  useToken: () => undefined,
  announce: () => undefined,
});

export function useSession(): Session {
  return useContext(SessionContext);
}

/** Returns what is added to a kind, such as "key"; null for a kind that the service does not list. */
export function findAdds(kinds: readonly Kind[], kind: string): string | null {
  return kinds.find((one) => one.kind === kind)?.adds ?? null;
}

/** Whether a kind is a bank: its keys come with their owners, and its capacity is that of one owner. */
export function hasOwners(kinds: readonly Kind[], kind: string): boolean {
  return findAdds(kinds, kind) === "owner and key";
}

/** Returns what a kind can do; null for a kind that the service does not list. */
export function findCapabilities(kinds: readonly Kind[], kind: string): readonly string[] | null {
  return kinds.find((one) => one.kind === kind)?.capabilities ?? null;
}
