/** Answers, positions and bytes are those of Python: tests/web writes them and sets FULLBLOOM_EXPECTED. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import * as fullbloom from "fullbloom";

const { Float, create, hashKey, open } = fullbloom;
const page = process.env.FULLBLOOM_EXPECTED;
const expected = page === undefined ? undefined : JSON.parse(readFileSync(page, "utf8"));
const skip = expected === undefined && "FULLBLOOM_EXPECTED is not set: pytest tests/web sets it";
const golden = expected?.golden ?? new URL("../../../tests/golden", import.meta.url).pathname;

const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));
const secret = (hex) => (hex === null ? undefined : bytes(hex));

/** A float as Python's float.hex writes it. */
function hexFloat(text) {
  const found = /^(-?)0x([01])\.?([0-9a-f]*)p([+-]\d+)$/.exec(text);
  if (found === null) return { inf: Infinity, "-inf": -Infinity, nan: NaN }[text];
  const [, sign, whole, digits, power] = found;
  const value = Number.parseInt(whole + digits, 16) * 2 ** (-4 * digits.length);
  return (sign === "-" ? -1 : 1) * value * 2 ** Math.max(Number(power), -1000) * 2 ** Math.min(0, Number(power) + 1000);
}

/** A key as Python wrote it down. Safe integers come as numbers, others as bigints. */
function read(spelt) {
  const [[kind, value]] = Object.entries(spelt);
  if (kind === "tuple") return value.map(read);
  if (kind === "str") return value;
  if (kind === "bytes") return bytes(value);
  if (kind === "uuid") return bytes(value.replaceAll("-", ""));
  if (kind === "bool") return value === "True";
  if (kind === "int") return Number.isSafeInteger(Number(value)) ? Number(value) : BigInt(value);
  const number = /^[0-9a-f]{16}$/.test(value) ? Buffer.from(value, "hex").readDoubleBE() : hexFloat(value);
  return Number.isSafeInteger(number) ? new Float(number) : number;
}

test("the vectors of keys.json", () => {
  const { vectors, secret: hex } = JSON.parse(readFileSync(join(golden, "keys.json"), "utf8"));
  let hashes = 0;
  for (const { key: spelt, xxh3, sip13 } of vectors) {
    const key = read(spelt);
    for (const [seed, hash] of Object.entries(xxh3)) {
      assert.equal(hashKey(key, { seed: BigInt(seed) }).toString(16).padStart(16, "0"), hash, JSON.stringify(spelt));
      const keyed = hashKey(key, { seed: BigInt(seed), secret: bytes(hex) });
      assert.equal(keyed.toString(16).padStart(16, "0"), sip13[seed], JSON.stringify(spelt));
      hashes += 2;
    }
    if (typeof key === "number" && Number.isSafeInteger(key)) assert.equal(hashKey(BigInt(key)), hashKey(key));
  }
  console.log(`${vectors.length} keys, ${hashes} hashes`);
});

test("every golden file", { skip }, () => {
  const keys = Object.fromEntries(Object.entries(expected.keys).map(([kind, some]) => [kind, some.map(read)]));
  let [answers, positions] = [0, 0];
  for (const file of expected.files) {
    const data = readFileSync(join(golden, `${file.name}.bloom`));
    const filter = open(data, { secret: secret(file.secret) });
    assert.deepEqual(filter.toBytes(), new Uint8Array(data), file.name);
    const info = filter.info();
    assert.deepEqual(Object.keys(info), Object.keys(file.info), file.name);
    for (const [name, value] of Object.entries(info)) {
      const [shown, wanted] = [typeof value === "bigint" ? `${value}n` : value, file.info[name]];
      // Exponentials and logarithms differ between systems in the last digits.
      const near = typeof value === "number" && Math.abs(value - wanted) <= 1e-12 * Math.abs(wanted);
      assert.ok(near || shown === wanted, `${file.name}, ${name}: ${shown} is not ${wanted}`);
    }
    assert.equal(filter.className, file.info.class);
    assert.equal(filter.can("positions"), file.positions !== null, file.name);
    for (const [kind, some] of Object.entries(keys)) {
      const found = filter.hasMany(some);
      const text = found.map(Number).join("");
      assert.equal(text, file.answers[kind], `${file.name}, ${kind}`);
      some.slice(0, 100).forEach((key, i) => assert.equal(filter.has(key), found[i], `${file.name}, ${kind} ${i}`));
      answers += found.length;
      if (file.positions === null) continue;
      some.forEach((key, i) => {
        assert.deepEqual(filter.positions(key), file.positions[kind][i], `${file.name}, ${kind} ${i}`);
      });
      positions += some.length;
    }
    // All types in one batch.
    const [mixed, wanted] = [[], []];
    for (let i = 0; i < 200; i++) {
      for (const [kind, some] of Object.entries(keys)) {
        mixed.push(some[i]);
        wanted.push(file.answers[kind][i] === "1");
      }
    }
    assert.deepEqual(filter.hasMany(new Set(mixed)).length, new Set(mixed).size);
    assert.deepEqual(filter.hasMany(mixed), wanted, file.name);
    filter.free();
  }
  console.log(`${expected.files.length} files, ${answers} answers, positions of ${positions} keys`);
});

test("filters made here are those of Python, byte for byte", { skip }, () => {
  for (const { name, kind, parameters, keys, values, file } of expected.recipes) {
    const given = { ...parameters };
    for (const set of ["keys", "included", "excluded"]) if (set in given) given[set] = given[set].map(read);
    const built = "keys" in given || "included" in given;
    if (built && values !== null) given.values = values;
    const filter = create(kind, given);
    if (!built) filter.addMany(keys.map(read), values ?? undefined);
    assert.equal(Buffer.from(filter.toBytes()).toString("base64"), file, name);
    if (built) continue;
    // Key by key likewise.
    const single = create(kind, given);
    keys.map(read).forEach((key, i) => single.add(key, values?.[i]));
    assert.equal(Buffer.from(single.toBytes()).toString("base64"), file, name);
  }
  console.log(`${expected.recipes.length} filters`);
});

test("errors have the classes and the sentences of Python", { skip }, () => {
  const file = (name) => readFileSync(join(golden, name));
  const damaged = file("bloom-classic.bloom");
  damaged[damaged.length - 1] ^= 1;
  const cases = {
    rate: () => create("bloom", { capacity: 100, fpr: 1.5 }),
    layout: () => create("bloom", { capacity: 100, layout: "square" }),
    "no file": () => open(Buffer.from("no filter")),
    damaged: () => open(damaged),
    "no secret": () => open(file("bloom-keyed.bloom")),
    large: () => open(file("bloom-classic.bloom"), { max_bytes: 1 }),
    incompatible: () => create("bloom", { capacity: 100 }).merge(create("bloom", { capacity: 200 })),
    secret: () => create("bloom", { capacity: 100, secret: Buffer.from("short") }),
  };
  for (const { name, class: wanted, message } of expected.refusals) {
    assert.throws(cases[name], (error) => {
      assert.ok(error instanceof fullbloom[wanted] && error instanceof fullbloom.FullbloomError, `${name}: ${error}`);
      assert.equal(error.name, wanted);
      assert.equal(error.message, message);
      return true;
    });
  }
});
