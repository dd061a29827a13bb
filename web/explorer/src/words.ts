/** Words as people type them: the keys of the small scenes. */

import { clean } from "./address.js";

/** Bounds of what is typed and of what an address may hold. */
export const MOST_WORDS = 64;
export const MOST_LETTERS = 40;
export const MOST_TEXT = 1200;

/** The distinct words of a text, in order; separated by spaces, commas or lines. */
export function parseWords(text: string): string[] {
  const found = clean(text, MOST_TEXT).split(/[\s,;]+/u).filter((word) => word !== "");
  return [...new Set(found.map((word) => Array.from(word).slice(0, MOST_LETTERS).join("")))].slice(0, MOST_WORDS);
}

/** A thousand short words that are said by no person: what a search for a false positive tries. */
export function* candidates(): Generator<string> {
  const animals =
    "cod cow hen fox owl bee ant elk emu gnu ram yak pig rat bat eel ape hog jay kid asp auk koi doe ewe cub pup " +
    "bear bird boar buck bull calf carp clam colt crab crow deer dodo dove duck fawn flea foal frog goat gull hare " +
    "hawk ibex kite kiwi lamb lion lynx mink mole moth mule newt orca oryx puma quail rook seal slug swan tick toad " +
    "tuna vole wasp wolf worm wren zebra";
  yield* animals.split(" ");
  for (let i = 0; i < 900; i++) yield `word-${i}`;
}
