/**
 * One million strings: fullbloom, npm's bloomfilter and bloom-filters in turn, several rounds.
 *
 *   npm install --prefix FOLDER --no-save bloomfilter bloom-filters
 *   RIVALS=FOLDER node --expose-gc bench/strings.js [KEYS] [ROUNDS]
 */

import { createRequire } from "node:module";
import { resolve } from "node:path";
import { setTimeout } from "node:timers/promises";

import { create } from "fullbloom";

const [keys, rounds] = [Number(process.argv[2] ?? 1e6), Number(process.argv[3] ?? 5)];
const folder = process.env.RIVALS;
const rival = folder === undefined ? undefined : createRequire(`${resolve(folder)}/package.json`);

const members = Array.from({ length: keys }, (_, i) => `user-${i * 7919}@example.org`);
const absent = Array.from({ length: keys }, (_, i) => `guest-${i * 7919}@example.org`);
const asked = members.map((key, i) => (i % 2 === 0 ? key : absent[i]));
const count = (answers) => answers.reduce((sum, yes) => sum + (yes ? 1 : 0), 0);

/** Each contestant: a new filter, adding all, an answer for each. The slow one takes a tenth of the keys. */
const contestants = [
  {
    name: "fullbloom addMany / hasMany",
    share: 1,
    create: () => create("bloom", { capacity: keys, fpr: 0.01 }),
    add: (filter, keys) => filter.addMany(keys),
    has: (filter, keys) => filter.hasMany(keys),
  },
  {
    name: "fullbloom add / has",
    share: 1,
    create: () => create("bloom", { capacity: keys, fpr: 0.01 }),
    add: (filter, keys) => keys.forEach((key) => filter.add(key)),
    has: (filter, keys) => keys.map((key) => filter.has(key)),
  },
];
if (rival !== undefined) {
  const { BloomFilter } = rival("bloomfilter");
  contestants.push({
    name: "npm bloomfilter",
    share: 1,
    create: () => BloomFilter.withTargetError(keys, 0.01),
    add: (filter, keys) => keys.forEach((key) => filter.add(key)),
    has: (filter, keys) => keys.map((key) => filter.test(key)),
  });
  const { BloomFilter: Other } = rival("bloom-filters");
  contestants.push({
    name: "npm bloom-filters",
    share: 0.1,
    create: () => Other.create(keys, 0.01),
    add: (filter, keys) => keys.forEach((key) => filter.add(key)),
    has: (filter, keys) => keys.map((key) => filter.has(key)),
  });
}

/**
 * Collects what others left behind, and waits for the engine's threads, which go on sweeping: both at the cost of nobody.
 * Without the pause a pass took 16 to 18 ns a key longer, ours as well as theirs.
 */
async function settle() {
  globalThis.gc?.();
  await setTimeout(200);
}

const times = new Map(contestants.map(({ name }) => [name, { add: [], has: [], yes: 0 }]));
for (let round = 0; round < rounds; round++) {
  for (const { name, share, create, add, has } of contestants) {
    const some = Math.round(keys * share);
    const filter = create();
    const [own, asks] = [members.slice(0, some), asked.slice(0, some)];
    await settle();
    let start = process.hrtime.bigint();
    add(filter, own);
    times.get(name).add.push(Number(process.hrtime.bigint() - start) / some);
    await settle();
    start = process.hrtime.bigint();
    const answers = has(filter, asks);
    times.get(name).has.push(Number(process.hrtime.bigint() - start) / some);
    times.get(name).yes = count(answers) / some;
  }
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const figures = (values) => [median(values), Math.min(...values)].map((ns) => ns.toFixed(0).padStart(6)).join(" ");
console.log(`${keys} strings, ${rounds} interleaved rounds, ns per key: median, minimum (Node ${process.version})`);
for (const [name, { add, has, yes }] of times) {
  console.log(`${name.padEnd(28)} add ${figures(add)}   has ${figures(has)}   ${(100 * yes).toFixed(2)} % yes`);
}
