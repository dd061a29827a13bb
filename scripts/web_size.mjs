// Prints what a browser loads of the package, compressed as servers do; exit code 1 beyond the bar.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

const [folder, bar = "350"] = process.argv.slice(2);
const most = 1000 * Number(bar);
const parts = ["wasm", "dist"].map((part) => join(folder, part)).filter((part) => existsSync(part));
const files = (parts.length === 0 ? [folder] : parts).flatMap((part) => readdirSync(part).map((name) => join(part, name)));
let total = 0;
for (const file of files.filter((name) => /\.(wasm|js)$/.test(name))) {
  const data = readFileSync(file);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 };
  const { length } = brotliCompressSync(data, { params });
  total += length;
  if (length > 1000) console.log(`${file}: ${data.length} bytes, ${length} compressed`);
}
console.log(`${folder}: ${total} bytes compressed, at most ${most}`);
process.exitCode = total > most ? 1 : 0;
