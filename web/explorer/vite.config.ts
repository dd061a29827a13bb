import { defineConfig, type Plugin } from "vite";

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
  plugins: [policy],
  worker: { format: "es" },
  build: {
    target: "es2022",
    // Data URLs are no addresses of our own folder, which the policy demands of modules.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
  },
});
