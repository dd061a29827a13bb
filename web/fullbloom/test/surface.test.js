/** What the package does without Python beside it. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as fullbloom from "fullbloom";

const { Float, KeyTypeError, MissingOperation, ParameterError, ParameterTypeError, create, hashKey, kinds, open, openFile } = fullbloom;

test("types of keys are apart, and the same in a batch", () => {
  const filter = create("bloom", { capacity: 1000, fpr: 1e-6 });
  const keys = [1, "1", 1.5, [1], new Float(1), 2n ** 70n, new Uint8Array([255]), "日本語"];
  assert.deepEqual(filter.addMany(keys), keys.map(() => true));
  assert.deepEqual(filter.hasMany(keys), keys.map(() => true));
  for (const key of keys) assert.ok(filter.has(key));
  for (const key of [true, 1n]) assert.ok(filter.has(key)); // the integer 1
  for (const key of [2, "2", 2.5, [2], new Float(2), 2n ** 71n, new Uint8Array([254])]) assert.ok(!filter.has(key));
  assert.ok(filter.has(new TextEncoder().encode("日本語")));
  assert.equal(hashKey(-0), hashKey(0));
  assert.equal(hashKey(2 ** 53), hashKey(new Float(2 ** 53)));
});

test("batches of every length and mixture, in order", () => {
  const filter = create("bloom", { capacity: 100_000, fpr: 1e-9 });
  const keys = Array.from({ length: 30_000 }, (_, i) => (i % 5000 < 4500 ? `k${i}` : i % 2 ? i : `ü${i}`));
  assert.ok(filter.addMany(keys).every((isNew) => isNew));
  assert.ok(filter.hasMany(new Set(keys)).every((yes) => yes));
  const asked = keys.map((key, i) => (i % 3 ? key : `absent ${i}`));
  assert.deepEqual(filter.hasMany(asked), asked.map((_, i) => i % 3 !== 0));
  const long = ["x".repeat(3_000_000), "é".repeat(1_000_000), "", "a"];
  filter.addMany(long);
  assert.ok(long.every((key) => filter.has(key)) && filter.hasMany(long).every((yes) => yes));
  assert.deepEqual(filter.hasMany([]), []);
});

test("what is no key is refused by its place, and those before it are added", () => {
  const filter = create("bloom", { capacity: 10_000 });
  const many = Array.from({ length: 5000 }, (_, i) => `${i}`);
  for (const [bad, why] of [
    [null, /item 5000 of the batch .*got null; leave out/],
    [{}, /item 5000 .*got Object; pass an array/],
    ["a\ud800", /item 5000 .*lone surrogate/],
    [Symbol("x"), /item 5000 .*got symbol/],
  ]) {
    filter.clear();
    assert.throws(() => filter.addMany([...many, bad, "later"]), (error) => {
      assert.ok(error instanceof KeyTypeError);
      assert.match(error.message, why);
      return true;
    });
    assert.ok(filter.hasMany(many).every((yes) => yes) && !filter.has("later"));
    assert.throws(() => filter.has(bad), KeyTypeError);
  }
  // Two halves of a pair, each alone, are no text, though they stand side by side.
  assert.throws(() => filter.addMany(["a\ud83d", "\ude00b"]), KeyTypeError);
  for (const batch of ["abc", new Uint8Array(3), null, 7]) assert.throws(() => filter.addMany(batch), KeyTypeError);
});

test("tuples are bounded as in Python", () => {
  const own = [];
  own.push(own);
  assert.throws(() => hashKey(own), /may nest 64 levels/);
  let doubled = ["x"];
  for (let i = 0; i < 40; i++) doubled = [doubled, doubled];
  assert.throws(() => hashKey(doubled), /may take 16777216 bytes encoded/);
  assert.throws(() => hashKey([1, null]), /got null/);
});

test("every kind can be asked what it cannot do", () => {
  for (const { name, class: className, adds, capabilities } of kinds()) {
    const sets = { build: { keys: [1, 2] }, build_pairs: { keys: [1, 2], values: [5, 6] }, world: { included: [1], excluded: [2] } };
    const given = sets[adds] ?? { [name === "scalable" ? "initial_capacity" : "capacity"]: 100 };
    const filter = create(name, adds === "build" ? { ...given, fpr: 0.01 } : given);
    assert.equal(filter.className, className);
    if (capabilities.includes("add")) adds === "pair" ? filter.add(1, 1) : filter.add(1);
    assert.ok(filter.has(1), name);
    const copy = filter.copy();
    assert.deepEqual(open(copy.toBytes()).toBytes(), filter.toBytes(), name);
    if (!filter.can("remove") && !filter.can("delete")) assert.throws(() => filter.remove(1), MissingOperation, name);
    if (!filter.can("positions")) assert.throws(() => filter.positions(1), MissingOperation, name);
    if (!filter.can("count")) assert.throws(() => filter.count(1), MissingOperation, name);
    if (filter.can("remove")) assert.ok(filter.remove(1) && !filter.has(1), name);
    filter.free();
    assert.throws(() => filter.has(1), fullbloom.FullbloomError);
  }
});

test("values and counts", () => {
  const labels = create("spatial", { capacity: 100, areas: 3 });
  assert.deepEqual(labels.addMany(["a", "b"], [1, 2]), [true, true]);
  assert.deepEqual(labels.getMany(["a", "b", "c"]), [1, 2, 0]);
  assert.throws(() => labels.addMany(["a"], [1, 2]), ParameterError);
  assert.throws(() => labels.add("a"), ParameterTypeError);
  const counts = create("counting", { capacity: 100 });
  counts.addMany(["a", "a", "b"]);
  assert.deepEqual(counts.countMany(["a", "b", "c"]), [2, 1, 0]);
});

test("parameters are refused with a sentence", () => {
  assert.throws(() => create("nothing"), /kind must be one of bloom, /);
  assert.throws(() => create("bloom"), /missing 1 required argument: 'capacity'/);
  assert.throws(() => create("xor"), /missing 1 required argument: 'keys'/);
  assert.throws(() => create("bloom", { capacity: 1.5 }), /capacity must be a whole number, got 1.5/);
  assert.throws(() => create("bloom", { capacity: 0 }), /capacity must be between 1 and 2\*\*64 - 1, got 0/);
  assert.throws(() => create("bloom", { capacity: 2n ** 64n }), /capacity must be between/);
  assert.throws(() => create("bloom", { capacity: 1e18 }), fullbloom.FilterMemoryError);
  assert.throws(() => create("bloom", { capacity: 10, size: 3 }), /unexpected keyword argument 'size'/);
  assert.throws(() => create("bloom", { capacity: 10, strict: 1 }), /strict must be true or false, got 1/);
  assert.throws(() => create("bloom", { capacity: 10, secret: "x" }), ParameterTypeError);
  const strict = create("bloom", { capacity: 1, strict: true });
  strict.add("a");
  assert.throws(() => strict.addMany(["b", "c"]), fullbloom.FilterFull);
});

test("large filters are created, opened and copied", () => {
  for (const [kind, capacity] of [["bloom", 5_000_000], ["bloom", 100_000_000], ["cuckoo", 10_000_000], ["counting", 5_000_000]]) {
    const filter = create(kind, { capacity });
    assert.ok(filter.info().nbytes > 4 << 20);
    filter.addMany(["a", "b"]);
    const copy = filter.copy();
    const bytes = filter.toBytes();
    filter.free();
    const opened = open(bytes);
    assert.deepEqual(opened.hasMany(["a", "b", "c"]), [true, true, false]);
    assert.deepEqual(copy.hasMany(["a", "b", "c"]), [true, true, false]);
    for (const one of [copy, opened]) one.free();
  }
  const growing = create("scalable", { initial_capacity: 3_000_000 });
  growing.addMany(Array.from({ length: 4_000_000 }, (_, i) => i));
  assert.ok(growing.info().nbytes > 8 << 20);
  growing.free();
  // What no tab has is refused by a sentence, and the module goes on.
  assert.throws(() => create("bloom", { capacity: 3e9 }), fullbloom.FilterMemoryError);
  assert.ok(create("bloom", { capacity: 10 }).add("a"));
});

test("a file is opened part by part, as its bytes are", async () => {
  const large = create("bloom", { capacity: 5_000_000 });
  large.addMany(["a", "b"]);
  for (const filter of [large, create("cuckoo", { capacity: 10 })]) {
    const bytes = filter.toBytes();
    const opened = await openFile(new Blob([bytes]));
    assert.deepEqual(opened.toBytes(), bytes);
    // Other work between two parts may move the memory.
    const both = await Promise.all([openFile(new Blob([bytes])), openFile(new Blob([bytes])), create("bloom", { capacity: 1e8 })]);
    for (const one of both.slice(0, 2)) assert.deepEqual(one.toBytes(), bytes);
  }
  const bytes = large.toBytes();
  // A browser whose files are no streams of bytes.
  const plain = new Blob([bytes]);
  plain.stream = () => new ReadableStream({
    start: (controller) => {
      for (let at = 0; at < bytes.length; at += 99_999) controller.enqueue(bytes.slice(at, at + 99_999));
      controller.close();
    },
  });
  assert.deepEqual((await openFile(plain)).toBytes(), bytes);
  // One that gives more, or fewer, bytes than it has said.
  plain.stream = () => new Blob([bytes.subarray(9), bytes]).stream();
  await assert.rejects(openFile(plain), fullbloom.FormatError);
  plain.stream = () => new Blob([bytes.subarray(0, 5000)]).stream();
  await assert.rejects(openFile(plain), fullbloom.FormatError);
  await assert.rejects(openFile(new Blob([bytes.subarray(0, -1)])), fullbloom.FormatError);
  await assert.rejects(openFile(new Blob([])), fullbloom.FormatError);
  await assert.rejects(openFile(new Blob([bytes]), { max_bytes: 1 }), fullbloom.FilterMemoryError);
  await assert.rejects(openFile(bytes), ParameterTypeError);
  const secret = new Uint8Array(16).fill(7);
  const keyed = new Blob([create("bloom", { capacity: 10, secret }).toBytes()]);
  assert.ok((await openFile(keyed, { secret })).kind === "bloom");
  await assert.rejects(openFile(keyed), fullbloom.FullbloomError);
});

test("files that are no filter of the registry are refused by name", () => {
  const golden = new URL("../../../tests/golden/", import.meta.url);
  for (const [name, held] of [["banks/bank.bloom", "FilterBank"], ["signatures/flat.bloom", "SignatureIndex"]]) {
    const bytes = readFileSync(new URL(name, golden));
    assert.throws(() => open(bytes), (error) => {
      assert.ok(error instanceof fullbloom.FormatError);
      assert.equal(error.message, `the file holds a ${held}; the Python package opens it, with fullbloom.open()`);
      return true;
    });
  }
});

test("damaged files give an error, whatever the damage", () => {
  const whole = create("bloom", { capacity: 200 });
  whole.addMany(["a", "b"]);
  const bytes = whole.toBytes();
  for (let length = 0; length < bytes.length; length += 7) {
    assert.throws(() => open(bytes.subarray(0, length)), fullbloom.FormatError);
  }
  for (let at = 0; at < bytes.length; at += 3) {
    const damaged = bytes.slice();
    damaged[at] ^= 0x55;
    assert.throws(() => open(damaged), fullbloom.FullbloomError);
  }
  assert.throws(() => open("text"), ParameterTypeError);
});
