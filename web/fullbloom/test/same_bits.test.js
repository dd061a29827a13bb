/** Answers, positions and bytes are those of Python: tests/web writes them and sets FULLBLOOM_EXPECTED. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import * as fullbloom from "fullbloom";

import { compareErrors, compareFiles, compareHashes, compareRecipes } from "./same_bits.js";

const page = process.env.FULLBLOOM_EXPECTED;
const expected = page === undefined ? undefined : JSON.parse(readFileSync(page, "utf8"));
const skip = expected === undefined && "FULLBLOOM_EXPECTED is not set: pytest tests/web sets it";
const golden = expected?.golden ?? new URL("../../../tests/golden", import.meta.url).pathname;
const load = (name) => new Uint8Array(readFileSync(join(golden, name)));

test("the vectors of keys.json", () => {
  console.log(compareHashes(fullbloom, JSON.parse(readFileSync(join(golden, "keys.json"), "utf8"))));
});

test("every golden file", { skip }, async () => {
  console.log(await compareFiles(fullbloom, expected, load));
});

test("filters made here are those of Python, byte for byte", { skip }, () => {
  console.log(compareRecipes(fullbloom, expected.recipes));
});

test("errors have the classes and the sentences of Python", { skip }, async () => {
  console.log(await compareErrors(fullbloom, expected.refusals, load));
});
