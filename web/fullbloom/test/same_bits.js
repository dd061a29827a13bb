/**
 * Comparisons of the package with Python, for Node (same_bits.test.js) and for a page (page.js). tests/web writes what
 * Python answers. Each function throws at the first difference and returns what it compared.
 */

/** The bytes of hexadecimal digits. */
export const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
const secretOf = (hex) => (hex === null ? undefined : bytes(hex));
const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Throws unless both are the same value, or lists of the same values. */
function same(found, wanted, where) {
  const isList = typeof wanted === "object" && wanted !== null;
  if (isList && found?.length === wanted.length) {
    for (let i = 0; i < wanted.length; i++) if (found[i] !== wanted[i]) same(found[i], wanted[i], `${where}, ${i}`);
  } else if (isList || !Object.is(found, wanted)) {
    throw new Error(`${where}: ${String(found)} is not ${String(wanted)}`);
  }
}

/** A float as Python's float.hex writes it, or as the 16 digits of its bytes. */
function readFloat(text) {
  if (/^[0-9a-f]{16}$/.test(text)) return new DataView(bytes(text).buffer).getFloat64(0);
  const found = /^(-?)0x([01])\.?([0-9a-f]*)p([+-]\d+)$/.exec(text);
  if (found === null) return { inf: Infinity, "-inf": -Infinity, nan: NaN }[text];
  const [, sign, whole, digits, power] = found;
  const value = Number.parseInt(whole + digits, 16) * 2 ** (-4 * digits.length);
  return (sign === "-" ? -1 : 1) * value * 2 ** Math.max(Number(power), -1000) * 2 ** Math.min(0, Number(power) + 1000);
}

/** A key as Python wrote it down. Safe integers come as numbers, others as bigints. */
export function readKey(spelt, { Float }) {
  const [[kind, value]] = Object.entries(spelt);
  if (kind === "tuple") return value.map((part) => readKey(part, { Float }));
  if (kind === "str") return value;
  if (kind === "bytes") return bytes(value);
  if (kind === "uuid") return bytes(value.replaceAll("-", ""));
  if (kind === "bool") return value === "True";
  if (kind === "int") return Number.isSafeInteger(Number(value)) ? Number(value) : BigInt(value);
  const number = readFloat(value);
  return Number.isSafeInteger(number) ? new Float(number) : number;
}

/** Compares the hashes of keys.json. */
export function compareHashes(fullbloom, { vectors, secret }) {
  const { hashKey } = fullbloom;
  let hashes = 0;
  for (const { key: spelt, xxh3, sip13 } of vectors) {
    const key = readKey(spelt, fullbloom);
    for (const [seed, hash] of Object.entries(xxh3)) {
      same(hashKey(key, { seed: BigInt(seed) }).toString(16).padStart(16, "0"), hash, JSON.stringify(spelt));
      const keyed = hashKey(key, { seed: BigInt(seed), secret: bytes(secret) });
      same(keyed.toString(16).padStart(16, "0"), sip13[seed], JSON.stringify(spelt));
      hashes += 2;
    }
    if (typeof key === "number" && Number.isSafeInteger(key)) same(hashKey(BigInt(key)), hashKey(key), `bigint ${key}`);
  }
  return `${vectors.length} keys, ${hashes} hashes`;
}

/** Compares answers, positions, facts and bytes of each golden file; `load` returns the bytes of one. */
export async function compareFiles(fullbloom, expected, load) {
  const keys = Object.fromEntries(
    Object.entries(expected.keys).map(([kind, some]) => [kind, some.map((key) => readKey(key, fullbloom))]),
  );
  let [answers, positions] = [0, 0];
  for (const file of expected.files) {
    const data = await load(`${file.name}.bloom`);
    const filter = fullbloom.open(data, { secret: secretOf(file.secret) });
    same(filter.toBytes(), data, file.name);
    compareInfo(filter.info(), file);
    same(filter.className, file.info.class, file.name);
    same(filter.can("positions"), file.positions !== null, file.name);
    for (const [kind, some] of Object.entries(keys)) {
      const found = filter.hasMany(some);
      same(found.map(Number).join(""), file.answers[kind], `${file.name}, ${kind}`);
      some.slice(0, 100).forEach((key, i) => same(filter.has(key), found[i], `${file.name}, ${kind} ${i}`));
      answers += found.length;
      if (file.positions === null) continue;
      some.forEach((key, i) => same(filter.positions(key), file.positions[kind][i], `${file.name}, ${kind} ${i}`));
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
    same(filter.hasMany(new Set(mixed)).length, new Set(mixed).size, file.name);
    same(filter.hasMany(mixed), wanted, file.name);
    filter.free();
  }
  return `${expected.files.length} files, ${answers} answers, positions of ${positions} keys`;
}

function compareInfo(info, file) {
  same(Object.keys(info), Object.keys(file.info), file.name);
  for (const [name, value] of Object.entries(info)) {
    const [shown, wanted] = [typeof value === "bigint" ? `${value}n` : value, file.info[name]];
    // Exponentials and logarithms differ between systems in the last digits.
    const near = typeof value === "number" && Math.abs(value - wanted) <= 1e-12 * Math.abs(wanted);
    if (!near) same(shown, wanted, `${file.name}, ${name}`);
  }
}

/** Compares the bytes of filters that are created and filled here, in batches and key by key. */
export function compareRecipes(fullbloom, recipes) {
  const read = (key) => readKey(key, fullbloom);
  for (const { name, kind, parameters, keys, values, file } of recipes) {
    const given = { ...parameters };
    for (const set of ["keys", "included", "excluded"]) if (set in given) given[set] = given[set].map(read);
    const built = "keys" in given || "included" in given;
    if (built && values !== null) given.values = values;
    const filter = fullbloom.create(kind, given);
    if (!built) filter.addMany(keys.map(read), values ?? undefined);
    same(filter.toBytes(), fromBase64(file), name);
    if (built) continue;
    const single = fullbloom.create(kind, given);
    keys.map(read).forEach((key, i) => single.add(key, values?.[i]));
    same(single.toBytes(), fromBase64(file), name);
  }
  return `${recipes.length} filters`;
}

/** Compares the classes and sentences of errors. */
export async function compareErrors(fullbloom, refusals, load) {
  const { create, open } = fullbloom;
  const [classic, keyed] = [await load("bloom-classic.bloom"), await load("bloom-keyed.bloom")];
  const damaged = classic.slice();
  damaged[damaged.length - 1] ^= 1;
  const text = (letters) => new TextEncoder().encode(letters);
  const cases = {
    rate: () => create("bloom", { capacity: 100, fpr: 1.5 }),
    layout: () => create("bloom", { capacity: 100, layout: "square" }),
    "no file": () => open(text("no filter")),
    damaged: () => open(damaged),
    "no secret": () => open(keyed),
    large: () => open(classic, { max_bytes: 1 }),
    incompatible: () => create("bloom", { capacity: 100 }).merge(create("bloom", { capacity: 200 })),
    secret: () => create("bloom", { capacity: 100, secret: text("short") }),
  };
  for (const { name, class: wanted, message } of refusals) {
    let thrown;
    try {
      cases[name]();
    } catch (error) {
      thrown = error;
    }
    same(thrown instanceof fullbloom[wanted] && thrown instanceof fullbloom.FullbloomError, true, `${name}: ${thrown}`);
    same([thrown.name, thrown.message], [wanted, message], name);
  }
  return `${refusals.length} errors`;
}
