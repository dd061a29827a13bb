import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { defineConfig, type Plugin } from "vite";

/** The module with the kinds of most scenes, which scripts/web.sh builds; a third of the whole one. */
const CORE = fileURLToPath(new URL("core/fullbloom_wasm_bg.wasm", import.meta.url));
const WHOLE = "?whole";
/** Where the package's own files refer to each other. */
const INSIDE = /\/web\/fullbloom\/(dist|wasm)\//;

/**
 * `virtual:core` is the address of the small module. `fullbloom?whole` is the package a second time, with a memory and
 * a module of its own: all of its files have the mark, and so are other modules than those without it.
 */
const cores = (): Plugin => ({
  name: "two-cores",
  enforce: "pre",
  async resolveId(source, importer) {
    if (source === "virtual:core") return "\0virtual:core";
    const inside = importer?.endsWith(WHOLE) === true && source.startsWith(".");
    if (source !== `fullbloom${WHOLE}` && !inside) return null;
    const found = await this.resolve(source.replace(WHOLE, ""), importer?.replace(WHOLE, ""), { skipSelf: true });
    return found !== null && INSIDE.test(found.id) ? `${found.id}${WHOLE}` : found;
  },
  load(id) {
    if (id === "\0virtual:core") {
      const file = existsSync(CORE) ? CORE : "fullbloom/fullbloom.wasm";
      return `export { default } from ${JSON.stringify(`${file}?url`)};`;
    }
    return id.endsWith(WHOLE) ? readFileSync(id.slice(0, -WHOLE.length), "utf8") : null;
  },
});

/**
 * The policy under which the page works, wherever it is served: no inline script or style, no eval, no other host.
 * Only built pages have it, since Vite's development server writes styles into the page.
 */
const POLICY = [
  "default-src 'self'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const policy: Plugin = {
  name: "content-security-policy",
  apply: "build",
  transformIndexHtml: () => [
    { tag: "meta", attrs: { "http-equiv": "Content-Security-Policy", content: POLICY }, injectTo: "head-prepend" },
  ],
};

export default defineConfig({
  // Relative, so that the page works in any folder of a site.
  base: "./",
  plugins: [cores(), policy],
  worker: { format: "es", plugins: () => [cores()] },
  build: {
    target: "es2022",
    // Data URLs are no addresses of our own folder, which the policy demands of modules.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
  },
});
