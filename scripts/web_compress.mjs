// web_compress.mjs FOLDER [KILOBYTES]: writes a copy compressed by brotli (.br) beside each file of a built page, as
// the service sends it, and prints what a browser transfers; exit code 1 beyond so many kilobytes of brotli.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

const [folder, most] = process.argv.slice(2);
let total = 0;
const names = readdirSync(folder, { recursive: true }).filter((name) => /\.(html|js|css|svg|json|wasm|txt)$/.test(name));
for (const name of names) {
  const path = join(folder, name);
  const data = readFileSync(path);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: data.length };
  const packed = brotliCompressSync(data, { params });
  total += packed.length;
  writeFileSync(`${path}.br`, packed);
  if (data.length > 1000) console.log(`${path}: ${data.length} bytes, ${packed.length} compressed`);
}
console.log(`${folder}: ${total} bytes compressed${most ? `, at most ${1000 * most}` : ""}`);
process.exitCode = most && total > 1000 * most ? 1 : 0;
