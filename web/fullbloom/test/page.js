/** The comparisons with Python in a page; tests/web serves it and reads `window.outcome`. */

import * as fullbloom from "../dist/index.js";
import { compareErrors, compareFiles, compareHashes, compareRecipes } from "./same_bits.js";

async function fetchWhole(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response;
}

async function compare() {
  await fullbloom.init();
  const expected = await (await fetchWhole("/expected.json")).json();
  const load = async (name) => new Uint8Array(await (await fetchWhole(`/golden/${name}`)).arrayBuffer());
  return [
    compareHashes(fullbloom, await (await fetchWhole("/golden/keys.json")).json()),
    await compareFiles(fullbloom, expected, load),
    compareRecipes(fullbloom, expected.recipes),
    await compareErrors(fullbloom, expected.refusals, load),
  ];
}

window.outcome = compare().then(
  (lines) => ({ lines }),
  (error) => ({ error: String(error) }),
);
